"""BERT with a classifier and dropout, from torch.nn's encoder. `python compare.py bert` trains it; bench is BERT base."""
import torch
import torch.nn.functional as F
from torch import nn


class Bert(nn.Module):
    def __init__(self, layers, width, heads, words, length, p=0.1, block_runner=None):
        super().__init__()
        self.token, self.position, self.p = nn.Embedding(words, width), nn.Embedding(length, width), p
        self.norm, self.runner = nn.LayerNorm(width), block_runner
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(width, heads, 4 * width, p, F.gelu, batch_first=True)
                                     for _ in range(layers)])
        self.pooled, self.head = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, x, target):
        h = self.norm(self.token(x) + self.position(torch.arange(x.shape[1], device=x.device)))
        h = F.dropout(h, self.p, self.training)
        for layer in self.layers:
            h = self.runner(layer, h) if self.runner else layer(h)
        return F.cross_entropy(self.head(torch.tanh(self.pooled(h[:, 0]))), target)


def make(size="bench", block_runner=None):
    """A model that returns its loss, and a batch."""
    layers, width, heads, words, length, batch = {"test": (3, 32, 2, 50, 16, 4), "bench": (12, 768, 12, 30522, 128, 8)}[size]
    torch.manual_seed(0)
    model = Bert(layers, width, heads, words, length, block_runner=block_runner)
    return model, (torch.randint(0, words, (batch, length)), torch.randint(0, 2, (batch,)))
