#!/usr/bin/python3
"""shortcut-bounds: how far `optimal` is from what no schedule can beat, where shortcuts are long

Three networks of 3x3 convolutions of 32 channels on 32x32 images: 20 of them under one shortcut, 20 and ten shortcuts within each
other, and 16 residual blocks under one more shortcut; ResNet-50, U-Net and BERT. The gap of `optimal` within a budget to the
lower bounds that count each value alone and Griewank and Walther's number (knapsack, binomial), and to the bound that also counts
the inputs that recomputations need (closure). For two networks, what an integer programme finds and proves in a minute or two
(integer_programme.py), where a solver is installed.
"""
import os
import sys
import time

import integer_programme
from chain import HERE, ask, publish, written

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
    "20 convolutions under a shortcut (26)": RELU + [tuple(20 * RELU)] + RELU + HEAD,
    "ten nested shortcuts (35)": RELU + nested(10) + RELU + HEAD,
    "16 residual blocks under a shortcut (55)": NONE + [tuple(16 * [tuple(2 * NONE)] + NONE)] + NONE + HEAD,
}
PROVEN = list(NETWORKS)[:2]
CNNS = os.path.join(HERE, "published-cnns.yaml")
SPECS = {
    "ResNet-50, batch 184 (142)": (CNNS, "model.file=../models/resnet50.yaml", "batch=184"),
    "U-Net, batch 32 (59)": (CNNS, "model.file=../models/unet.yaml", "data.shape=[416, 608, 3]", "data.classes=2", "batch=32"),
    "BERT base (152)": (os.path.join(HERE, "..", "bert-recompute.yaml"),),
}


def spec_text(layers):
    return ("rematch: 1\nname: shortcut-bounds\nmodel:\n  layers:\n" + "".join(f"    {line}\n" for line in lines(layers)) +
            "data: {name: synthetic, shape: [32, 32, 3], classes: 10}\nbatch: 16\nsteps: 1\n"
            "optimizer: {name: sgd, lr: 0.01}\nbackend: ref\nrelu_save: output\npolicy: store_all\n")


def gaps(answer):
    """In percent, of the older bounds and of all."""
    bounds = answer["budget_bounds"]
    before = max(bounds["knapsack_slowdown"], bounds["binomial_slowdown"])
    return 100 * (answer["slowdown"] / before - 1), bounds["gap_percent"]


def row(name, budget, spec, prove):
    answer = ask(*spec, f"policy={{name: optimal, budget: {budget}%}}", "--alone", seconds=SECONDS)
    cells = [name, f"{budget} %"]
    cells += [f"{answer['slowdown']:.4f}", *(f"{gap:.2f} %" for gap in gaps(answer))] if answer else ["none", "", ""]
    begin = time.monotonic()
    found = prove and integer_programme.text(*integer_programme.solve(f"{budget}%", *spec, seconds=SOLVED))
    return cells + [f"{found} ({time.monotonic() - begin:.0f} s)" if prove else ""]


def main():
    solver = integer_programme.solver()
    if not solver:
        print("the integer programme is left out: it needs highspy (PyPI) or cbc (Debian's coinor-cbc)")
    rows = []
    for name, layers in NETWORKS.items():
        with written(spec_text(layers)) as path:
            rows += [row(name, budget, (path,), solver and name in PROVEN) for budget in BUDGETS]
    for name, spec in SPECS.items():
        rows += [row(name, budget, spec, False) for budget in BUDGETS]
    publish("shortcut-bounds", ["network (nodes)", "budget", "`optimal`", "gap without closure", "gap",
                          f"integer programme, {SOLVED} s each: found, proven"], rows)
    return 0


sys.exit(main())
