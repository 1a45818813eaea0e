"""A U-Net, whose skips cross the whole network. `python compare.py unet` trains it in four ways."""
import torch
import torch.nn.functional as F
from torch import nn


class Double(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(x)), inplace=True)


class UNet(nn.Module):
    def __init__(self, base=16, depth=4, classes=2, block_runner=None):
        super().__init__()
        width = [base << i for i in range(depth + 1)]
        self.down = nn.ModuleList([Double(3 if i == 0 else width[i - 1], width[i]) for i in range(depth + 1)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(width[i + 1], width[i], 2, 2) for i in reversed(range(depth))])
        self.merge = nn.ModuleList([Double(2 * width[i], width[i]) for i in reversed(range(depth))])
        self.head, self.runner = nn.Conv2d(base, classes, 1), block_runner

    def run(self, block, x):
        return self.runner(block, x) if self.runner else block(x)

    def forward(self, x, target):
        skips = []
        for i, block in enumerate(self.down):
            x = self.run(block, F.max_pool2d(x, 2) if i else x)
            skips.append(x)
        skips.pop()
        for up, block in zip(self.up, self.merge):
            x = self.run(block, torch.cat([skips.pop(), up(x)], 1))
        return F.cross_entropy(self.head(x), target)


def make(size="bench", block_runner=None):
    """A model that returns its loss, and a batch."""
    base, depth, batch, pixels = {"test": (4, 2, 2, 32), "bench": (16, 4, 2, 192)}[size]
    torch.manual_seed(0)
    model = UNet(base, depth, block_runner=block_runner)
    return model, (torch.randn(batch, 3, pixels, pixels), torch.randint(0, 2, (batch, pixels, pixels)))
