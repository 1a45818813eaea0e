#!/usr/bin/python3
"""Trains the networks of the benchmark in PyTorch: one network, one policy after the other.

    torch_peer.py vgg16 --batch 64
    torch_peer.py bert --batch 64 --length 128 --policy every --optimizer adamw
    torch_peer.py bert --batch 64 --length 512 --policy none every sqrt --optimizer adamw --device cuda --steps 10

Policies: none; every (torch.utils.checkpoint around each block, the groups of experiments/models/); segments:K, equal
numbers of single layers (a block of BERT is one layer), the last segment stored, as checkpoint_sequential does; sqrt: as
many segments as the square root of the layers. Checkpoints are not reentrant. Images and labels are random, plain SGD at
0.01, as in experiments/vgg16-recompute.yaml and experiments/sample-cnn-recompute.yaml. Tokens are random without
padding, AdamW at 5e-5, as long as those of experiments/bert-recompute.yaml. All in fp32; on a device TF32 is off and
cudnn.benchmark on.

Prints one line of JSON for each policy: seconds of each step and of the fastest after the warm-up steps, the process's
high-water mark and its memory before it makes the network in MiB, the losses; on a device also the most bytes that PyTorch
reserved, in all steps and after the first ones, and the bytes in use by all processes at the end. With --allocated, on
a CPU, also the most bytes of all tensors at once: parameters, gradients and batch, and what oneDNN's kernels take of
PyTorch's allocator. The profiler that counts them slows the steps down. Needs Debian's python3-torch, or a newer
PyTorch.
"""
import argparse
import contextlib
import gc
import itertools
import json
import os
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def conv(inputs, outputs, kernel, *after):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2), *after)


def linear(inputs, outputs, *before, relu=None):
    return nn.Sequential(*before, nn.Linear(inputs, outputs), *([relu] if relu else []))


def vgg16(options):
    """Simonyan and Zisserman, 2014, configuration D, without dropout."""
    groups, channels = [], 3
    for convolutions, width in (2, 64), (2, 128), (3, 256), (3, 512), (3, 512):
        groups.append([])
        for _ in range(convolutions):
            groups[-1].append(conv(channels, width, 3, nn.ReLU(inplace=True)))
            channels = width
        groups[-1].append(nn.MaxPool2d(2))
    groups.append([linear(channels * 7 * 7, 4096, nn.Flatten(), relu=nn.ReLU(inplace=True)),
                   linear(4096, 4096, relu=nn.ReLU(inplace=True)), linear(4096, 1000)])
    return groups, *images(options, 3, 224)


def sample_cnn(options):
    """Blocks of 5x5 convolutions of 10, 40 and 20 channels, each with a max pool of 1x1, on grey images of 256x256."""
    groups, channels = [], 1
    for _ in range(options.blocks):
        groups.append([])
        for width in 10, 40, 20:
            groups[-1].append(conv(channels, width, 5, nn.ReLU(), nn.MaxPool2d(1)))
            channels = width
    head = [nn.Flatten(), nn.Linear(256 * 256 * channels, 32), nn.ReLU(), nn.Linear(32, 10)]
    return groups + [[nn.Sequential(*head)]], *images(options, 1, 256)


class Embedding(nn.Module):
    """The sum of a token's, its place's and its segment's vectors; then other layers."""

    def __init__(self, vocabulary, places, segments, width, *after):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for rows in (vocabulary, places, segments))
        self.after = nn.Sequential(*after)

    def forward(self, tokens):
        word, place, segment = self.tables
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.after(word(tokens) + place(places) + segment(torch.zeros_like(tokens)))


class Attention(nn.Module):
    """Multi-head attention on one product for queries, keys and values. Every token may be attended to, but a mask is
    added, as a user's network would; or of causal length, each token and those before it. fused: by PyTorch's own
    scaled_dot_product_attention."""

    def __init__(self, width, heads, fused, rate=0.1, causal=0):
        super().__init__()
        self.heads, self.drop, self.fused = heads, nn.Dropout(rate), fused
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        mask = torch.full((1, 1, causal, causal), -torch.inf).triu(1) if causal else torch.zeros(1, 1, 1, 1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).chunk(3, -1)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        if self.fused:
            mask = self.mask.expand(batch, 1, length, length)
            y = nn.functional.scaled_dot_product_attention(query, key, value, mask, self.drop.p if self.training else 0)
        else:
            scores = query @ key.transpose(2, 3) / (width // self.heads) ** 0.5 + self.mask
            y = self.drop(scores.softmax(-1)) @ value
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and a perceptron, each with dropout, its input added, and normalised."""

    def __init__(self, width, heads, fused):
        super().__init__()
        self.attention = nn.Sequential(Attention(width, heads, fused), nn.Dropout(0.1))
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
    blocks = [[Block(width, 12, options.fused)] for _ in range(12)]
    tokens, labels = torch.randint(30522, (options.batch, options.length)), torch.randint(3, (options.batch,))
    embedding = Embedding(30522, 512, 2, width, nn.LayerNorm(width), nn.Dropout(0.1))
    return [[embedding], *blocks, [nn.Sequential(*head)]], tokens, labels


class Decoder(nn.Module):
    """Attention and a perceptron, each normalised first, and its input added, without dropout."""

    def __init__(self, width, heads, options):
        super().__init__()
        attention = Attention(width, heads, options.fused, 0.0, options.length)
        up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.attention = nn.Sequential(nn.LayerNorm(width), attention)
        self.perceptron = nn.Sequential(nn.LayerNorm(width), up, nn.GELU(), down)

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.perceptron(x)


def gpt2(options):
    """Radford and others, 2019, 124 million parameters without dropout; a label for every token. The last weight is the
    embedding's, which is PyTorch's preset for neither."""
    width, words = 768, 50257
    embedding, head = Embedding(words, 1024, 1, width), nn.Linear(width, words, bias=False)
    nn.init.normal_(head.weight, std=0.02)
    embedding.tables[0].weight = head.weight
    blocks = [[Decoder(width, 12, options)] for _ in range(12)]
    tokens, labels = (torch.randint(words, (options.batch, options.length)) for _ in range(2))
    return [[embedding], *blocks, [nn.Sequential(nn.LayerNorm(width), head)]], tokens, labels


def normalised(inputs, outputs, kernel, stride=1, groups=1, relu=True):
    """A convolution without a bias, then batch normalisation."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(outputs), *([nn.ReLU(inplace=True)] if relu else []))


class Residual(nn.Module):
    """The sum of the layers' output and of the shortcut's, then a relu."""

    def __init__(self, layers, shortcut):
        super().__init__()
        self.layers, self.shortcut, self.relu = layers, shortcut, nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.layers(x) + self.shortcut(x))


def resnet50(options):
    """He and others, 2015, with the stride of a stage in its 3x3 convolution."""
    groups, channels = [[normalised(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]], 64
    for width, blocks, first in (64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2):
        for stride in (first, *[1] * (blocks - 1)):
            layers = nn.Sequential(normalised(channels, width, 1), normalised(width, width, 3, stride),
                                   normalised(width, 4 * width, 1, relu=False))
            projects = channels != 4 * width
            shortcut = normalised(channels, 4 * width, 1, stride, relu=False) if projects else nn.Identity()
            groups.append([Residual(layers, shortcut)])
            channels = 4 * width
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))
    return [*groups, [head]], *images(options, 3, 224)


def mobilenet(options):
    """Howard and others, 2017, width 1."""
    groups, channels = [[normalised(3, 32, 3, 2)]], 32
    for width, blocks, first in (64, 1, 1), (128, 2, 2), (256, 2, 2), (512, 6, 2), (1024, 2, 2):
        for stride in (first, *[1] * (blocks - 1)):
            groups.append([nn.Sequential(normalised(channels, channels, 3, stride, channels),
                                         normalised(channels, width, 1))])
            channels = width
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))
    return [*groups, [head]], *images(options, 3, 224)


class UNet(nn.Module):
    """Two convolutions, and within them, at half the height and width, the next level, whose channels are joined."""

    def __init__(self, inputs, width, levels):
        super().__init__()
        self.down = nn.Sequential(normalised(inputs, width, 3), normalised(width, width, 3))
        self.inner, self.up = None, None
        if levels > 1:
            self.inner = nn.Sequential(nn.MaxPool2d(2), UNet(width, 2 * width, levels - 1),
                                       nn.Upsample(scale_factor=2), normalised(2 * width, width, 3))
            self.up = nn.Sequential(normalised(2 * width, width, 3), normalised(width, width, 3))

    def forward(self, x):
        x = self.down(x)
        return self.up(torch.cat([self.inner(x), x], 1)) if self.inner else x


def unet(options):
    """Ronneberger and others, 2015, with padding, batch normalisation and nearest upsampling; the mean of its output,
    one channel a class, is classified."""
    head = nn.Sequential(nn.Conv2d(64, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return [[UNet(3, 64, 5)], [head]], *images(options, 3, 128)


def images(options, channels, side):
    return torch.randn(options.batch, channels, side, side), torch.randint(2, (options.batch,))


NETWORKS = {"vgg16": vgg16, "sample-cnn": sample_cnn, "bert": bert, "resnet50": resnet50, "mobilenet": mobilenet,
            "unet": unet, "gpt2": gpt2}
OPTIMIZERS = {"sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
              "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=5e-5)}


def policy(text):
    """What --policy says, and the function that runs the stages on a batch by it."""
    name, _, number = text.partition(":")
    if name == "none" and not number:
        return text, lambda groups, x: run(stages_of(groups), x)
    if name == "every" and not number:
        return text, lambda groups, x: again(groups, x)
    if name == "sqrt" and not number:
        return text, lambda groups, x: segments(stages_of(groups), round(len(stages_of(groups)) ** 0.5), x)
    if name == "segments" and number.isdecimal() and int(number) > 0:
        return text, lambda groups, x: segments(stages_of(groups), int(number), x)
    raise argparse.ArgumentTypeError(f"{text!r}: expected none, every, sqrt or segments:K")


def stages_of(groups):
    return [stage for group in groups for stage in group]


def run(stages, x):
    for stage in stages:
        x = stage(x)
    return x


def again(groups, x):
    """Each group computed again before its backward."""
    for group in groups:
        x = checkpoint(lambda x, group=group: run(group, x), x, use_reentrant=False)
    return x


def segments(stages, count, x):
    size = len(stages) // count
    parts = [stages[i * size:(i + 1) * size] for i in range(count - 1)]
    return run(stages[(count - 1) * size:], again(parts, x))


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
    blas = {"/".join(path.split("/")[-2:]) for path in paths if os.path.basename(path).startswith(("libblas", "libopenblas",
                                                                                                 "libmkl_rt"))}
    built = next((word.split("=")[1] for word in config.replace(",", " ").split() if word.startswith("BLAS_INFO=")), "?")
    return {"onednn": onednn, "blas": " ".join(sorted(blas)) or f"{built}, built in"}


def step(forward, groups, optimizer, x, labels, micro):
    """One training step, in micro-batches of so many samples whose gradients are accumulated; its seconds and loss."""
    start = time.monotonic()
    optimizer.zero_grad(set_to_none=True)
    value = 0.0
    for part, targets in zip(x.split(micro), labels.split(micro)):
        scores = forward(groups, part)
        loss = nn.functional.cross_entropy(scores.flatten(0, -2), targets.flatten()) * (len(part) / len(x))
        del scores
        loss.backward()
        value += loss.item()
    optimizer.step()
    if x.is_cuda:
        torch.cuda.synchronize()
    return time.monotonic() - start, value


def set_up_device():
    """The settings were renamed in PyTorch 2.9, which takes either kind and refuses a mixture."""
    torch.backends.cudnn.benchmark = True
    if hasattr(torch.backends.cudnn, "conv"):
        torch.backends.cuda.matmul.fp32_precision = torch.backends.cudnn.conv.fp32_precision = "ieee"
    else:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


class DeviceMemory:
    """The most that PyTorch reserves of a device in a training's steps; and from the last of the warm ones on, without
    what cudnn.benchmark takes for the algorithms that it tries before (all of them where fewer than two are warm)."""

    def __init__(self, warm):
        self.warm = warm
        self.first = 0
        gc.collect()  # what the last training left in cycles
        self.start()

    @staticmethod
    def start():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def ended(self, step):
        if step + 2 == self.warm:  # one more to take the memory again before steps count
            self.first = torch.cuda.max_memory_reserved()
            self.start()

    def read(self):
        later = torch.cuda.max_memory_reserved()
        free, total = torch.cuda.mem_get_info()
        return {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda,
                "cudnn": torch.backends.cudnn.version(), "reserved_bytes": max(self.first, later),
                "later_bytes": later, "device_used_bytes": total - free}


class HostMemory:
    """The most bytes that PyTorch's allocator for the CPU, which keeps no statistics, had given out at once while this
    was entered: the profiler sees each allocation."""

    def __enter__(self):
        self.profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True)
        self.profiler.__enter__()
        return self

    def __exit__(self, *failure):
        self.profiler.__exit__(*failure)

    def read(self):
        events = [event for event in self.profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
        when = "start_ns" if hasattr(torch._C._autograd._KinetoEvent, "start_ns") else "start_us"  # before PyTorch 2.4
        events.sort(key=lambda event: getattr(event, when)())
        live = itertools.accumulate(event.nbytes() for event in events)
        return {"allocated_bytes": max(live)}


def train(options, name, forward):
    """What becomes of a network that is trained by one policy from the start."""
    torch.manual_seed(options.seed)
    before = memory_mib("VmRSS")
    groups, x, labels = NETWORKS[options.network](options)
    order = torch.channels_last if options.channels_last and x.dim() == 4 else torch.preserve_format
    x, labels = x.to(options.device, memory_format=order), labels.to(options.device)
    stages = [stage.to(options.device, memory_format=order) for stage in stages_of(groups)]
    parameters = list(dict.fromkeys(p for stage in stages for p in stage.parameters()))  # a shared one once
    optimizer = OPTIMIZERS[options.optimizer](parameters)
    if options.compile:
        compiled = torch.compile(lambda part: forward(groups, part))
    run_batch = (lambda _, part: compiled(part)) if options.compile else forward
    memory = DeviceMemory(options.warm) if options.device == "cuda" else None
    done = []
    for i in range(options.steps):
        done.append(step(run_batch, groups, optimizer, x, labels, options.micro_batch or options.batch))
        if memory:
            memory.ended(i)
    seconds, losses = zip(*done)
    return {"torch": torch.__version__, "network": options.network, "policy": name, "batch": options.batch,
            "optimizer": options.optimizer, "threads": options.threads,
            "step_seconds": round(min(seconds[options.warm:] or seconds), 6), "seconds": [round(s, 6) for s in seconds],
            "high_water_mib": memory_mib("VmHWM"), "before_mib": before, "losses": losses,
            "parameters": sum(p.numel() for p in parameters),
            **(memory.read() if memory else {})}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=sorted(NETWORKS))
    parser.add_argument("--policy", type=policy, nargs="+", default=[policy("none")])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--micro-batch", type=int, help="samples at a time, whose gradients are accumulated")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--warm", type=int, default=1, help="first steps that do not count")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--blocks", type=int, default=5, help="of the sample CNN")
    parser.add_argument("--length", type=int, default=128, help="tokens of a sample")
    parser.add_argument("--channels-last", action="store_true", help="of images and of convolutions' weights")
    parser.add_argument("--compile", action="store_true", help="by torch.compile; the first step compiles")
    parser.add_argument("--allocated", action="store_true", help="count the bytes of tensors; on a CPU")
    parser.add_argument("--fused", action="store_true", help="attention by scaled_dot_product_attention")
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="sgd")
    parser.add_argument("--seed", type=int, default=123)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    if options.device == "cuda":
        set_up_device()
    for name, forward in options.policy:
        with HostMemory() if options.allocated else contextlib.nullcontext() as memory:
            done = train(options, name, forward)
        print(json.dumps({**done, **libraries(), **(memory.read() if memory else {})}), flush=True)


if __name__ == "__main__":
    main()
