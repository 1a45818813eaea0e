"""A GPT with dropout. `python compare.py gpt` trains it in four ways."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads, p):
        super().__init__()
        self.heads, self.p = heads, p
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, 2)
        q, k, v = (a.view(batch, length, self.heads, -1).transpose(1, 2) for a in parts)
        a = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        a = F.dropout(F.softmax(a.masked_fill(future, float("-inf")), -1), self.p, self.training)
        a = (a @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + F.dropout(self.proj(a), self.p, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.p, self.training)


class GPT(nn.Module):
    def __init__(self, layers=6, width=384, heads=6, words=2000, length=256, p=0.1, block_runner=None):
        super().__init__()
        self.token, self.position, self.p = nn.Embedding(words, width), nn.Embedding(length, width), p
        self.layers = nn.ModuleList([Layer(width, heads, p) for _ in range(layers)])
        self.norm, self.head, self.runner = nn.LayerNorm(width), nn.Linear(width, words, bias=False), block_runner
        self.head.weight = self.token.weight

    def forward(self, x, target):
        h = self.token(x) + self.position(torch.arange(x.shape[1], device=x.device))
        h = F.dropout(h, self.p, self.training)
        for layer in self.layers:
            h = self.runner(layer, h) if self.runner else layer(h)
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), target.flatten())


def make(size="bench", block_runner=None):
    """A model that returns its loss, and a batch."""
    layers, width, heads, words, length, batch = {"test": (3, 32, 2, 50, 16, 4), "bench": (6, 384, 6, 2000, 256, 4),
                                                   "gpt2": (12, 768, 12, 50257, 128, 8)}[size]
    torch.manual_seed(0)
    model = GPT(layers, width, heads, words, length, block_runner=block_runner)
    return model, (torch.randint(0, words, (batch, length)), torch.randint(0, words, (batch, length)))
