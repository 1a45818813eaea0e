"""Small models, each with something that a recomputation can do wrong."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Plain(nn.Module):
    def __init__(self, layers=6, width=32):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x)).sin()
        return x


class TwoOutputs(Plain):
    """The loss is made outside, of both."""

    def forward(self, x):
        x = super().forward(x)
        return x, x.mean(0)


class OutputReadOn(Plain):
    """An output in the middle, which later layers read and the caller holds."""

    def forward(self, x):
        middle = torch.tanh(self.layers[0](x))
        y = middle
        for layer in self.layers[1:]:
            y = torch.tanh(layer(y)).sin()
        return y, middle


class NewValue(Plain):
    """A buffer that the forward moves, and whose new value it reads."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.ones(32))

    def forward(self, x):
        for layer in self.layers:
            with torch.no_grad():
                self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
            x = torch.tanh(layer(x)) * self.mean.sigmoid()
        return x


class OldValue(Plain):
    """A buffer that is read and then moved: a recomputation would read the new value."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(32))

    def forward(self, x):
        for layer in self.layers:
            x = (layer(x) + self.scale).sin().cos().tanh()
        with torch.no_grad():
            self.scale.add_(0.5)
        return x


class Draws(Plain):
    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x + 0.1 * torch.randn_like(x))).sin()
        return x


class Dropout(Plain):
    def forward(self, x):
        for layer in self.layers:
            x = x + F.dropout(F.gelu(layer(x)), 0.3, self.training)
        return x


class Norm(Plain):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm1d(32) for _ in self.layers])

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = torch.relu(norm(layer(x)))
        return x


class InPlace(Plain):
    def forward(self, x):
        x = x.clone()
        for layer in self.layers:
            y = layer(x)
            y[:, :8] = 0
            y.relu_()
            x = x + y
        return x


class Tied(Plain):
    def forward(self, x):
        for _ in range(3):
            x = torch.tanh(self.layers[0](x)) + F.linear(x, self.layers[0].weight.t())
        return x


class Gated(Plain):
    """A gradient that two products read: neither may overwrite it before the other."""

    def forward(self, x):
        for layer, gate in zip(self.layers[::2], self.layers[1::2]):
            x = torch.tanh(layer(x)) * torch.sigmoid(gate(x))
        return x


class Attention(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.qkv, self.proj, self.p = nn.Linear(32, 96), nn.Linear(32, 32), p

    def forward(self, x):
        for _ in range(3):
            q, k, v = (a.view(4, 8, 4, 8).transpose(1, 2) for a in self.qkv(x.view(4, 8, 32)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.p if self.training else 0.0)
            x = x + self.proj(y.transpose(1, 2).reshape(32, 32))
        return x


class AttentionDropout(Attention):
    def __init__(self):
        super().__init__(0.2)


class Checkpointed(Plain):
    """The model's own checkpoints stand for nothing: the plan decides."""

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(lambda x, layer=layer: torch.tanh(layer(x)).sin(), x, use_reentrant=False)
        return x


class Breaks(Plain):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = torch.tanh(layer(x)).sin()
            if i == 2:
                torch._dynamo.graph_break()
        return x


class BreaksOnce(Plain):
    """Two graphs, the first of which is planned alone."""

    def forward(self, x):
        x = torch.tanh(self.layers[0](x)).sin()
        torch._dynamo.graph_break()
        return torch.tanh(self.layers[1](x)).sin()


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(32, 32, batch_first=True)

    def forward(self, x):
        return self.cells(x.view(4, 8, 32))[0]


EQUAL = [Plain, TwoOutputs, OutputReadOn, NewValue, OldValue, Draws, Dropout, Norm, InPlace, Tied, Gated, Attention,
         AttentionDropout, Checkpointed, Breaks, BreaksOnce]


def train(model, run, batches, steps=3, autocast=False):
    """Every loss, gradient, parameter and buffer."""
    values, optimizer = [], torch.optim.AdamW(model.parameters(), 1e-2)
    for step in range(steps):
        torch.manual_seed(step)
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            out = run(*batches(step))
        parts = out if isinstance(out, tuple) else (out,)
        loss = sum(p.float().square().mean() for p in parts)
        loss.backward()
        values += [loss.detach().clone()] + [p.grad.clone() for p in model.parameters() if p.grad is not None]
        optimizer.step()
        values += [t.clone() for t in list(model.parameters()) + list(model.buffers())]
    return values
