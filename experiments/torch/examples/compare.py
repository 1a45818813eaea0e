"""python compare.py resnet|gpt|unet|llama|bert [test|bench]: plain PyTorch, its checkpoint, its budget and ours, side by side."""
import contextlib
import importlib
import sys
import time

import torch
import torch._functorch.config as functorch
from torch.utils.checkpoint import checkpoint

import rematch_torch


def by_block(block, *inputs):
    return checkpoint(block, *inputs, use_reentrant=False)


def train(run, model, batch, steps):
    """(every loss, gradient, parameter and buffer; peak bytes of the last step; least seconds of a step)"""
    optimizer, values, seconds = torch.optim.SGD(model.parameters(), 0.01), [], []
    for step in range(steps):
        torch.manual_seed(step)
        optimizer.zero_grad()
        began = time.process_time()
        with rematch_torch.Counter() if step == steps - 1 else contextlib.nullcontext() as counter:
            loss = run(*batch)
            loss.backward()
        seconds.append(time.process_time() - began)
        values += [loss.detach().clone()] + [p.grad.clone() for p in model.parameters()]
        optimizer.step()
        values += [t.clone() for t in list(model.parameters()) + list(model.buffers())]
    return values, counter.peak, min(seconds[1:-1])


WAYS = {"plain": None, "checkpoint": "checkpoint", "torch budget 0.5": 0.5, "torch budget 0.0": 0.0,
        "ours 70%": "70%", "ours 50%": "50%", "ours least": "least"}


def main(name, size="bench", steps=5, plain=None):
    torch.set_num_threads(1)
    print(f"{name:18}{'bits':>22}{'peak':>12}{'slowdown':>10}")
    for way, setting in WAYS.items():
        torch._dynamo.reset()
        functorch.activation_memory_budget = setting if isinstance(setting, float) else 1.0
        model, batch = importlib.import_module(name).make(size, by_block if setting == "checkpoint" else None)
        run = torch.compile(model, backend="aot_eager", dynamic=False) if isinstance(setting, float) else model
        run = rematch_torch.compile(model, setting) if way.startswith("ours") else run
        try:
            values, peak, seconds = train(run, model, batch, steps)
        except torch._dynamo.exc.BackendCompilerFailed as error:
            print(f"{way:18}{str(error).strip().splitlines()[1][:110]}")
            continue
        plain = plain or (values, seconds)
        wrong = sum(not torch.equal(a, b) for a, b in zip(plain[0], values))
        bits = f"{wrong} of {len(values)} differ" if wrong else "equal"
        print(f"{way:18}{bits:>22}{peak / 2**20:>8.1f} MiB{seconds / plain[1]:>10.3f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
