#!/usr/bin/python3
"""sublinear: peak against depth for store_all, sqrt, recursive schedules and the optimum

Chen, Xu, Zhang, Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016: O(n) to store everything, O(sqrt n) for one
more forward (section 4.1), O(log n) for O(n log n) forwards by recursion (4.2). Stages are equal; bytes are counted in
outputs of a stage. `optimal` is read off its front: the least peak in the time of sqrt, and in that of the recursive
schedule. The last rows, over its last two doublings: the slope of log peak against log depth (1 is linear,
0.5 a square root, 0 none), and the outputs that a doubling adds (constant where the peak is a logarithm).
"""
import math
import sys

from chain import plan, publish

STAGE = {"forward": 1, "backward": 2, "output": 1, "saved": 0, "gradient": 1}
DEPTHS = [8, 16, 32, 64, 128, 256, 512, 1024]
PLAIN = ["store_all", "sqrt", "chen", "revolve"]


def least(front, time):
    """The first point of a front that takes no longer than time."""
    return next((point["peak_bytes"], point["time"]) for point in front if point["time"] <= time)


def row(depth):
    """Column -> (peak, time)."""
    summary = plan(depth, STAGE)
    policies = {choice["policy"]: (choice["peak_bytes"], choice["time"]) for choice in summary["choices"]}
    columns = {name: policies[name] for name in PLAIN if name in policies}
    for name in ("sqrt", "revolve"):
        if name in columns:
            columns[f"optimal in {name}'s time"] = least(summary["front"], columns[name][1])
    return columns


def cell(name, depth, peak, time):
    return str(peak) if name.startswith("optimal") else f"{peak} (x{time / (3 * depth):.2f})"


def main():
    rows = {depth: row(depth) for depth in DEPTHS}
    last, before = rows[DEPTHS[-1]], rows[DEPTHS[-3]]
    names = ["store_all", "sqrt", "optimal in sqrt's time", "chen", "revolve", "optimal in revolve's time"]
    table = [[depth, *(cell(name, depth, *rows[depth][name]) for name in names)] for depth in DEPTHS]
    table.append([f"slope, {DEPTHS[-3]} to {DEPTHS[-1]}", *(f"{math.log(last[name][0] / before[name][0], 4):.2f}" for name in names)])
    table.append(["a doubling adds", *(f"{(last[name][0] - before[name][0]) / 2:g}" for name in names)])
    heads = [name.replace("optimal", "`optimal`") for name in names]
    publish("sublinear", ["depth", *heads], table)


sys.exit(main())
