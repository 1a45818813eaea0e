#!/usr/bin/python3
"""The networks of the benchmark in PyTorch on the CPU, to be measured against: one process, one network, one policy.

    torch_peer.py vgg16 --batch 64
    torch_peer.py sample-cnn --batch 16 --policy segments:5
    torch_peer.py bert --batch 64 --length 128 --policy every --optimizer adamw

Policies: none; every (torch.utils.checkpoint around each stage); segments:K (checkpoint_sequential). Both leave the
first stage out: checkpoint passes no gradients to the parameters of a stage none of whose inputs needs one. Images are
ones, labels 1, plain SGD at 0.01, as in experiments/vgg16-recompute.yaml and experiments/sample-cnn-recompute.yaml;
tokens are drawn at random and none is padding, AdamW at 5e-5, as long as those of experiments/bert-recompute.yaml.

Prints one line of JSON: seconds of each step and of the fastest after the first, the process's high-water mark and what
it held before the first step in MiB, the losses. Needs Debian's python3-torch, or a newer PyTorch.
"""
import argparse
import json
import os
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


def conv(inputs, outputs, kernel, *after):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2), *after)


def linear(inputs, outputs, *before, relu=None):
    return nn.Sequential(*before, nn.Linear(inputs, outputs), *([relu] if relu else []))


def vgg16(options):
    """Simonyan and Zisserman, 2014, configuration D, without dropout."""
    stages, channels = [], 3
    for convolutions, width in (2, 64), (2, 128), (3, 256), (3, 512), (3, 512):
        for _ in range(convolutions):
            stages.append(conv(channels, width, 3, nn.ReLU(inplace=True)))
            channels = width
        stages.append(nn.MaxPool2d(2))
    stages.append(linear(channels * 7 * 7, 4096, nn.Flatten(), relu=nn.ReLU(inplace=True)))
    stages.append(linear(4096, 4096, relu=nn.ReLU(inplace=True)))
    stages.append(linear(4096, 1000))
    return stages, *images(options, 3, 224)


def sample_cnn(options):
    """Blocks of 5x5 convolutions of 10, 40 and 20 channels, each with a max pool of 1x1, on grey images of 256x256."""
    stages, channels = [], 1
    for _ in range(options.blocks):
        for width in 10, 40, 20:
            stages.append(conv(channels, width, 5, nn.ReLU(), nn.MaxPool2d(1)))
            channels = width
    head = [nn.Flatten(), nn.Linear(256 * 256 * channels, 32), nn.ReLU(), nn.Linear(32, 10)]
    return stages + [nn.Sequential(*head)], *images(options, 1, 256)


class Embedding(nn.Module):
    """The sum of a token's, its place's and its segment's vectors, normalised."""

    def __init__(self, vocabulary, places, width):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for rows in (vocabulary, places, 2))
        self.after = nn.Sequential(nn.LayerNorm(width), nn.Dropout(0.1))

    def forward(self, tokens):
        word, place, segment = self.tables
        return self.after(word(tokens) + place(torch.arange(tokens.shape[1])) + segment(torch.zeros_like(tokens)))


class Attention(nn.Module):
    """Multi-head attention on one product for queries, keys and values; every token may be attended to, but a mask is
    added, as a user's network would."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.drop = heads, nn.Dropout(0.1)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("mask", torch.zeros(1, 1, 1, 1))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).chunk(3, -1)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        scores = query @ key.transpose(2, 3) / (width // self.heads) ** 0.5 + self.mask
        return self.out((self.drop(scores.softmax(-1)) @ value).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and a perceptron, each with dropout, its input added, and normalised."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.Sequential(Attention(width, heads), nn.Dropout(0.1))
        up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.perceptron = nn.Sequential(up, nn.GELU(), down, nn.Dropout(0.1))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x):
        x = self.norms[0](x + self.attention(x))
        return self.norms[1](x + self.perceptron(x))


class First(nn.Module):
    """What stands at the first token."""

    def forward(self, x):
        return x[:, 0]


def bert(options):
    """Devlin and others, 2018, the base size, with a classifier of three classes on the first token."""
    width = 768
    head = [First(), nn.Linear(width, width), nn.Tanh(), nn.Dropout(0.1), nn.Linear(width, 3)]
    stages = [Embedding(30522, 512, width), *(Block(width, 12) for _ in range(12)), nn.Sequential(*head)]
    return stages, torch.randint(30522, (options.batch, options.length)), torch.randint(3, (options.batch,))


def images(options, channels, side):
    return torch.ones(options.batch, channels, side, side), torch.ones(options.batch, dtype=torch.long)


NETWORKS = {"vgg16": vgg16, "sample-cnn": sample_cnn, "bert": bert}
OPTIMIZERS = {"sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
              "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=5e-5)}


def policy(text):
    """What --policy says, and the function that runs the stages on a batch by it."""
    name, _, number = text.partition(":")
    if name == "none" and not number:
        return text, lambda stages, x: nn.Sequential(*stages)(x)
    if name == "every" and not number:
        return text, every
    if name == "segments" and number.isdecimal() and int(number) > 0:
        return text, lambda stages, x: checkpoint_sequential(nn.Sequential(*stages[1:]), int(number), stages[0](x))
    raise argparse.ArgumentTypeError(f"{text!r}: expected none, every or segments:K")


def every(stages, x):
    x = stages[0](x)
    for stage in stages[1:]:
        x = checkpoint(stage, x)
    return x


def memory_mib(key):
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith(key + ":"))
    return round(int(line.split()[1]) / 1024)


def libraries():
    """What PyTorch's convolutions and matrix products run on: oneDNN, and the BLAS that this process has loaded, each
    library with the folder it lies in (Debian has several of one name)."""
    config = torch.__config__.show()
    onednn = next((line.split("MKL-DNN ")[1].split()[0] for line in config.splitlines() if "MKL-DNN" in line), "none")
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if "/" in line}
    blas = {"/".join(path.split("/")[-2:]) for path in paths if "blas" in os.path.basename(path) or "mkl_rt" in path}
    return {"onednn": onednn, "blas": " ".join(sorted(blas)) or "built in"}


def step(forward, stages, optimizer, x, labels):
    """One training step; its seconds and its loss."""
    start = time.monotonic()
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(forward(stages, x), labels)
    loss.backward()
    optimizer.step()
    value = loss.item()
    return time.monotonic() - start, value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=sorted(NETWORKS))
    parser.add_argument("--policy", type=policy, default="none")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--blocks", type=int, default=5, help="of the sample CNN")
    parser.add_argument("--length", type=int, default=128, help="tokens of a sample")
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="sgd")
    parser.add_argument("--seed", type=int, default=123)
    options = parser.parse_args()
    name, forward = options.policy

    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    stages, x, labels = NETWORKS[options.network](options)
    optimizer = OPTIMIZERS[options.optimizer]([p for stage in stages for p in stage.parameters()])
    before = memory_mib("VmRSS")
    seconds, losses = zip(*(step(forward, stages, optimizer, x, labels) for _ in range(options.steps)))
    print(json.dumps({
        "torch": torch.__version__, "network": options.network, "policy": name, "batch": options.batch,
        "optimizer": options.optimizer, "threads": options.threads,
        "step_seconds": round(min(seconds[1:] or seconds), 3), "seconds": [round(s, 3) for s in seconds],
        "high_water_mib": memory_mib("VmHWM"), "before_mib": before, "losses": losses, **libraries()}))


if __name__ == "__main__":
    main()
