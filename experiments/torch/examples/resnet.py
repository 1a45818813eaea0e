"""A residual network with batch norm. `python compare.py resnet` trains it in four ways."""
import torch
import torch.nn.functional as F
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, cin, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.down = None
        if stride > 1 or cin != 4 * width:
            self.down = nn.Sequential(nn.Conv2d(cin, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet(nn.Module):
    """blocks (3, 4, 6, 3) and width 64 are ResNet-50. block_runner(f, *inputs) may checkpoint a block."""

    def __init__(self, blocks=(3, 4, 6, 3), width=64, classes=100, block_runner=None):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        layers, cin = [], width
        for stage, count in enumerate(blocks):
            for k in range(count):
                layers.append(Bottleneck(cin, width << stage, 2 if k == 0 and stage else 1))
                cin = 4 * (width << stage)
        self.layers, self.head, self.runner = nn.ModuleList(layers), nn.Linear(cin, classes), block_runner

    def forward(self, x, target):
        x = F.max_pool2d(F.relu(self.bn(self.stem(x))), 3, 2, 1)
        for layer in self.layers:
            x = self.runner(layer, x) if self.runner else layer(x)
        return F.cross_entropy(self.head(x.mean((2, 3))), target)


def make(size="bench", block_runner=None):
    """A model that returns its loss, and a batch."""
    blocks, width, batch, pixels = {"test": ((1, 1), 8, 4, 32), "bench": ((3, 4, 6, 3), 64, 8, 224)}[size]
    torch.manual_seed(0)
    model = ResNet(blocks, width, block_runner=block_runner)
    return model, (torch.randn(batch, 3, pixels, pixels), torch.randint(0, 100, (batch,)))
