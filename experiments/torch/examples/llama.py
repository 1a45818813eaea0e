"""A decoder of Llama's kind: RMS norm, rotary positions, grouped queries, SwiGLU. `python compare.py llama` trains it."""
import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.gain * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5))


def rotate(x):
    """Rotary positions (Su et al., 2021) of {batch, heads, length, size}: halves as real and imaginary parts."""
    half = x.shape[3] // 2
    angle = torch.outer(torch.arange(x.shape[2], device=x.device), 10000.0 ** (-torch.arange(half, device=x.device) / half))
    (a, b), sin, cos = x.chunk(2, -1), angle.sin(), angle.cos()
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Layer(nn.Module):
    def __init__(self, width, heads, groups):
        super().__init__()
        self.size, self.shared = width // heads, heads // groups
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.q, self.k, self.v = (nn.Linear(width, n * self.size, bias=False) for n in (heads, groups, groups))
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, 8 * width // 3, bias=False) for _ in range(2))
        self.down = nn.Linear(8 * width // 3, width, bias=False)

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = (p(y).unflatten(-1, (-1, self.size)).transpose(1, 2) for p in (self.q, self.k, self.v))
        k, v = (a.repeat_interleave(self.shared, 1) for a in (rotate(k), v))
        x = x + self.out(F.scaled_dot_product_attention(rotate(q), k, v, is_causal=True).transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers, width, heads, groups, words, block_runner=None):
        super().__init__()
        self.token, self.norm, self.head = nn.Embedding(words, width), Norm(width), nn.Linear(width, words, bias=False)
        self.layers, self.runner = nn.ModuleList([Layer(width, heads, groups) for _ in range(layers)]), block_runner

    def forward(self, x, target):
        h = self.token(x)
        for layer in self.layers:
            h = self.runner(layer, h) if self.runner else layer(h)
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), target.flatten())


def make(size="bench", block_runner=None):
    """A model that returns its loss, and a batch."""
    layers, width, heads, groups, words, length, batch = {"test": (3, 48, 4, 2, 50, 16, 4), "bench": (6, 384, 6, 2, 2000, 256, 4)}[size]
    torch.manual_seed(0)
    model = Llama(layers, width, heads, groups, words, block_runner)
    return model, (torch.randint(0, words, (batch, length)), torch.randint(0, words, (batch, length)))
