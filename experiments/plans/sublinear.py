#!/usr/bin/python3
"""sublinear: peak against depth for store_all, sqrt, recursive schedules and the optimum

Chen, Xu, Zhang, Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016: O(n) to store everything, O(sqrt n) for one
more forward (section 4.1), O(log n) for O(n log n) forwards by recursion (4.2). Stages are equal; bytes are counted in
outputs of a stage. `optimal` is read off its front: the least peak in the time of sqrt, and in that of the recursive
schedule. Below the table, over its last two doublings: the slope of log peak against log depth (1 is linear,
0.5 a square root, 0 none), and the outputs that a doubling adds (constant where the peak is a logarithm).
"""
import math
import sys

from chain import plan

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


def main():
    rows = {}
    for depth in DEPTHS:
        rows[depth] = columns = row(depth)
        if depth == DEPTHS[0]:
            print(f"{'depth':>6}" + "".join(f" {name:>25}" for name in columns))
        cells = [f"{peak} (x{time / (3 * depth):.2f})" for peak, time in columns.values()]
        print(f"{depth:6}" + "".join(f" {cell:>25}" for cell in cells), flush=True)
    last, before = rows[DEPTHS[-1]], rows[DEPTHS[-3]]
    slopes = [math.log(last[name][0] / before[name][0], 4) for name in last]
    print(f"{'slope':>6}" + "".join(f" {slope:25.2f}" for slope in slopes))
    print(f"{'adds':>6}" + "".join(f" {(last[name][0] - before[name][0]) / 2:25.1f}" for name in last))


sys.exit(main())
