"""python wrong.py [FOLDER]: trainings that are wrong without an error, and right ones; `rematch compare` tells them apart."""
import os
import subprocess
import sys

import torch
import torch._functorch.config as functorch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import gpt
import llama
import rematch_torch
import resnet
from rematch_torch.plan import program


class Moved(nn.Module):
    """Reads a buffer, then moves it, under checkpoint: the recomputation reads the moved one."""

    def __init__(self, block_runner=None):
        super().__init__()
        self.scale, self.runner = nn.Buffer(torch.ones(32)), block_runner or (lambda f, *a: f(*a))
        self.layers = nn.ModuleList([nn.Linear(32, 32) for _ in range(4)])

    def forward(self, x, target):
        for layer in self.layers:
            x = self.runner(lambda x, layer=layer: (layer(x) + self.scale).sin().cos().tanh(), x)
        self.scale.add_(0.5)
        return F.mse_loss(x, target)


def moved(size, block_runner=None):
    torch.manual_seed(0)
    return Moved(block_runner), (torch.randn(64, 32), torch.randn(64, 32))


class Mixed(nn.Module):
    """A model under autocast."""

    def __init__(self, model):
        super().__init__()
        self.model, self.layers = model, model.layers

    def forward(self, *batch):
        with torch.autocast("cpu", torch.bfloat16):
            return self.model(*batch)


def mixed(size, block_runner=None):
    model, batch = llama.make(size, block_runner)
    return Mixed(model), batch


class Again(torch.autograd.Function):
    """A checkpoint of one's own, whose recomputation runs without the autocast of the forward."""

    @staticmethod
    def forward(ctx, x, block):
        ctx.save_for_backward(x)
        ctx.block = block
        return block(x)

    @staticmethod
    def backward(ctx, dy):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            ctx.block(x).backward(dy)
        return x.grad, None


def keep(block, x):
    return checkpoint(block, x, use_reentrant=False)


def forget(block, x):
    return checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)


CASES = {  # name: (model, how blocks run, PyTorch's budget, ours, whether it is right)
    "dropout without preserve_rng_state": (gpt.make, forget, None, None, False),
    "batch norm under checkpoint": (resnet.make, keep, None, None, False),
    "activation_memory_budget with dropout": (gpt.make, None, 0.2, None, False),
    "a buffer that moves, under checkpoint": (moved, keep, None, None, False),
    "autocast, not in the recomputation": (mixed, lambda block, x: Again.apply(x, block), None, None, False),
    "autocast, under checkpoint": (mixed, keep, None, None, True),
    "dropout under checkpoint": (gpt.make, keep, None, None, True),
    "dropout, planned": (gpt.make, None, None, "60%", True),
    "batch norm, planned": (resnet.make, None, None, "60%", True),
    "a buffer that moves, planned": (moved, None, None, "least", True)}


def record(path, make, runner, share, ours):
    """Three steps; recomputes: how many blocks are computed again, where that is known."""
    model, batch = make("test", runner)
    functorch.activation_memory_budget = share or 1.0
    run = torch.compile(model, backend="aot_eager", dynamic=False) if share else model
    run = rematch_torch.compile(model, ours) if ours else run
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    recomputes = None if ours else len(model.layers) if runner or share else 0
    with rematch_torch.Recorder(path, run, optimizer, recomputes=recomputes) as recorder:
        for step in range(3):
            torch.manual_seed(step)
            optimizer.zero_grad()
            loss = run(*batch)
            loss.backward()
            optimizer.step()
            recorder.step(loss)


def main(folder="."):
    torch.set_num_threads(1)
    failed = 0
    for name, (make, runner, share, ours, right) in CASES.items():
        torch._dynamo.reset()
        paths = [os.path.join(folder, f"{name.replace(' ', '-')}{end}.h5") for end in ("-plain", "")]
        record(paths[0], make, None, None, None)
        record(paths[1], make, runner, share, ours)
        done = subprocess.run([program(), "compare", *paths], capture_output=True, text=True)
        verdict = done.stdout.strip().splitlines()[-1].replace("verdict   ", "")
        failed += done.returncode != (0 if right else 1)
        print(f"{name}: {verdict}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
