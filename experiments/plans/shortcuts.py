#!/usr/bin/python3
"""shortcuts: how far `optimal` is from what no schedule can beat, where shortcuts are long

Three networks of 3x3 convolutions of 32 channels on 32x32 images: 20 of them under one shortcut, 20 and ten shortcuts within each
other, and 16 residual blocks under one more shortcut; ResNet-50, U-Net and BERT. The gap of `optimal` within a budget to the
lower bounds that count each value alone and Griewank and Walther's number (knapsack, binomial), and to the bound that also counts
the inputs that recomputations need (closure). For two networks, what the integer programme of `milp` finds and proves in a
minute or two, where its solver is installed.
"""
import os
import shutil
import sys
import tempfile
import time

from chain import HERE, ask, plan_spec

SECONDS, SOLVED = 600, 60  # for one plan; for one integer programme
BUDGETS = (85, 70, 60, 50, 40, 30)
HEAD = ["global_avg_pool", "linear: {units: classes}"]


def conv(activation):
    return [f"conv: {{channels: 32, kernel: 3, padding: 1, activation: {activation}}}"]


def lines(layers):
    """Layers as lines of YAML; a residual is a tuple of its layers."""
    text = []
    for layer in layers:
        if isinstance(layer, str):
            text.append(f"- {layer}")
        else:
            text += ["- residual:", "    layers:"] + ["      " + line for line in lines(layer)]
    return text


def nested(depth):
    relu = conv("relu")
    return [tuple(relu + (nested(depth - 1) if depth > 1 else []) + relu)]


RELU, NONE = conv("relu"), conv("none")
NETWORKS = {
    "20 convolutions under a shortcut": RELU + [tuple(20 * RELU)] + RELU + HEAD,
    "ten nested shortcuts": RELU + nested(10) + RELU + HEAD,
    "16 residual blocks under a shortcut": NONE + [tuple(16 * [tuple(2 * NONE)] + NONE)] + NONE + HEAD,
}
MILP = list(NETWORKS)[:2]


def plan_layers(layers, *overrides):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("rematch: 1\nname: shortcuts\nmodel:\n  layers:\n" + "".join(f"    {line}\n" for line in lines(layers)))
        file.write("data: {name: synthetic, shape: [32, 32, 3], classes: 10}\nbatch: 16\nsteps: 1\n"
                   "optimizer: {name: sgd, lr: 0.01}\nbackend: ref\nrelu_save: output\npolicy: store_all\n")
        file.flush()
        return ask(file.name, *overrides, "--alone", seconds=SECONDS)


def gaps(answer):
    """In percent, of the older bounds and of all."""
    bounds = answer["budget_bounds"]
    before = max(bounds["knapsack_slowdown"], bounds["binomial_slowdown"])
    return 100 * (answer["slowdown"] / before - 1), bounds["gap_percent"]


def print_network(name, plan, solve):
    print(f"{name}\n  {'budget':>6}  {'optimal':>9}  {'gap without closure':>19}  {'gap':>8}" + ("  milp" if solve else ""))
    for budget in BUDGETS:
        answer = plan(f"policy={{name: optimal, budget: {budget}%}}")
        before, gap = gaps(answer) if answer else (0, 0)
        row = f"{answer['slowdown']:9.4f}  {before:17.3f} %  {gap:6.3f} %" if answer else f"{'none':>9}" + 31 * " "
        if solve:
            begin = time.monotonic()
            answer = plan(f"policy={{name: milp, budget: {budget}%, time_limit: {SOLVED}}}")
            found = f"{answer['slowdown']:.4f}, {answer['policy_found']}" if answer else "none"
            row += f"  {found} ({time.monotonic() - begin:.0f} s)"
        print(f"  {budget:4} %  {row}", flush=True)


def main():
    solver = shutil.which("cbc")
    if not solver:
        print("milp is left out: it needs the program cbc, Debian's package coinor-cbc")
    for name, layers in NETWORKS.items():
        print_network(name, lambda *overrides, of=layers: plan_layers(of, *overrides), solver and name in MILP)
    for name, overrides in (("ResNet-50, batch 184", ("model.file=../models/resnet50.yaml", "batch=184")),
                            ("U-Net, batch 32", ("model.file=../models/unet.yaml", "data.shape=[416, 608, 3]", "data.classes=2", "batch=32"))):
        print_network(name, lambda *more, of=overrides: plan_spec("published-cnns", *of, *more, "--alone", seconds=SECONDS), False)
    bert = os.path.join(HERE, "..", "bert-recompute.yaml")
    print_network("BERT base", lambda *more: ask(bert, *more, "--alone", seconds=SECONDS), False)
    return 0


sys.exit(main())
