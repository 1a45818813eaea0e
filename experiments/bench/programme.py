#!/usr/bin/python3
"""`optimal` beside an integer programme, on networks of 20 to 40 nodes: `make bench-programme [ARGS="--networks 10 --out FILE"]`.

Random networks of four families (blocks with shortcuts, dense blocks, a U-Net, nested shortcuts), drawn by a stated seed, of unequal
sizes and times, and steps of random operators (random_trace.py). Within budgets from the least memory to that of storing
everything, `optimal` is compared with what the programme of experiments/plans/integer_programme.py finds in the seconds it is
given, and with what it proves. A budget is settled where one of both plans has the slowdown that the programme proves for every
schedule.

Exit code 1: `optimal` is over 1 % slower than the programme's plan within some budget. 77: no solver is installed.
"""
import argparse
import itertools
import json
import os
import random
import sys

import measure
import random_trace
import report
from report import Table

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../plans"))
import integer_programme  # noqa: E402
from chain import ask, written  # noqa: E402

SHARES = (75, 50, 25, 10, 0)  # of the way from the least memory to that of store_all
TARGET, NOISE = 0.01, 1e-6


class Drawing:
    """Nodes of a graph file, each with random times and bytes."""

    def __init__(self, seed):
        self.random, self.nodes = random.Random(seed), []

    def add(self, *inputs, size=None):
        size = size or self.random.randint(1, 8)
        forward = self.random.randint(1, 12)
        name = f"n{len(self.nodes)}"
        self.nodes.append({"name": name, "inputs": list(inputs) or ["batch"], "forward": forward, "backward": 2 * forward,
                           "output": size << 20, "gradient": size << 20, "saved": self.random.choice((0, 0, 1, 4)) << 20,
                           "reads": self.random.choice((["x"], ["x"], ["saved"], ["x", "saved"])), "size": size})
        return name

    def sum(self, a, b, size):
        self.nodes.append({"name": f"n{len(self.nodes)}", "inputs": [a, b], "forward": 1, "backward": 0, "output": size << 20,
                           "gradient": size << 20, "saved": 0, "reads": "nothing", "in_place": True, "passes_gradient": True})
        return self.nodes[-1]["name"]

    def size_of(self, name):
        return next(node["output"] for node in self.nodes if node["name"] == name) >> 20


def residual(draw, count):
    at = draw.add()
    while len(draw.nodes) < count - 3:
        size = draw.size_of(at)
        inner = draw.add(at)
        at = draw.sum(draw.add(inner, size=size), at, size)
    return draw.add(at)


def dense(draw, count):
    at = draw.add()
    while len(draw.nodes) < count - 3:
        before = at
        for _ in range(3):
            at = draw.add(at, *([before] if at != before else []))
    return draw.add(at)


def unet(draw, count):
    skips = [draw.add()]
    while len(skips) < count // 2 - 1:
        skips.append(draw.add(skips[-1]))
    at = draw.add(skips[-1])
    for skip in reversed(skips):
        at = draw.add(at, skip)
    return draw.add(at)


def nested(draw, count):
    def nest(at, left):
        size = draw.size_of(at)
        inner = draw.add(at)
        inner = nest(inner, left - 3) if left > 5 else inner
        return draw.sum(draw.add(inner, size=size), at, size)
    return draw.add(nest(draw.add(), count - 2))


FAMILIES = {"residual": residual, "dense": dense, "unet": unet, "nested": nested}  # and "operators"


def graph(family, seed, count):
    if family not in FAMILIES:
        return json.dumps(random_trace.Trace(seed, count).graph(f"operators-{seed}"))
    draw = Drawing(f"{family} {seed}")
    FAMILIES[family](draw, count)
    nodes = [{key: value for key, value in node.items() if key != "size"} for node in draw.nodes]
    return json.dumps({"rematch": 1, "name": f"{family}-{seed}", "placed": True, "nodes": nodes})


def plan(path, policy):
    return ask("--graph", path, f"policy={policy}", "--alone", seconds=600)


def compare(path, budget, seconds):
    """The cells of a row, whether the budget is settled, and how much slower `optimal` is than the programme's best."""
    ours = plan(path, f"{{name: optimal, budget: {budget}}}")["slowdown"]
    best, proven = integer_programme.solve(str(budget), "--graph", path, seconds=seconds)
    theirs = best["slowdown"] if best else float("inf")
    settled = min(ours, theirs) <= proven["bound"] * (1 + 1e-9)
    cells = (f"{ours:.4f}", f"{theirs:.4f}" if best else "none found", f"{proven['bound']:.4f}", "yes" if settled else "no")
    return cells, settled, ours / theirs - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=5, help="of each family")
    parser.add_argument("--seconds", type=int, default=60, help="of the solver, for one programme")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if not integer_programme.solver():
        print("skipped: neither highspy (PyPI) nor cbc (Debian's coinor-cbc) is installed")
        return 77
    rows = Table("network", "nodes", "budget", "`optimal`", "programme", "no schedule below", "settled")
    count, settled, slower, faster, worst, planned_by = 0, 0, 0, 0, 0.0, None
    for family, index in itertools.product((*FAMILIES, "operators"), range(arguments.networks)):
        nodes = 20 + 20 * index // max(arguments.networks - 1, 1)
        with written(graph(family, arguments.seed + index, nodes), ".json") as path:
            planned_by = planned_by or measure.planner("--graph", path, "policy=store_all")
            least, stored = plan(path, "{name: optimal, budget: least}"), plan(path, "store_all")
            for share in SHARES:
                budget = least["peak_bytes"] + (stored["peak_bytes"] - least["peak_bytes"]) * share // 100
                cells, proven, more = compare(path, budget, arguments.seconds)
                count, settled, worst = count + 1, settled + proven, max(worst, more)
                slower, faster = slower + (more > NOISE), faster + (more < -NOISE)
                rows.row(f"{family}-{arguments.seed + index}", stored["nodes"], f"{share} %", *cells)
                print(*rows.rows[-1], flush=True)
    summary = Table("budgets", "number")
    summary.row("all", count)
    summary.row("settled", settled)
    summary.row("`optimal` faster, or the programme found none", faster)
    summary.row("`optimal` slower", f"{slower}, by at most {100 * worst:.2f} %")
    head = "# `optimal` beside an integer programme\n\nWritten by `make bench-programme` (experiments/bench/programme.py), " \
           f"{arguments.seconds} s a programme.\n"
    report.write(arguments.out, [("Summary", summary), ("Budgets", rows), ("Provenance", report.provenance(planned_by))], head)
    return 0 if worst <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
