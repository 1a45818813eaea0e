#!/usr/bin/python3
"""resnet-depth: peak against depth of pre-activation ResNets at batch 32

Chen, Xu, Zhang, Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016: bottleneck ResNets on 224x224 images, batch
32; 1000 layers fall from 48 GB to 7 GB in about 30 % more time. Stages grow as in the authors' example of 200 layers, blocks
3, 24, 36, 3: the second and the third stage in the ratio 2 : 3, the others as they are. Every policy without settings; `dtr`
and `optimal` then need the least bytes they can, whatever the time. Below the table: the slope of log live peak against log
depth (1 is linear, 0.5 a square root, 0 none), over all depths and over the last two.
"""
import math
import sys

from chain import plan_spec

STAGES = [(3, 4, 23, 3), (3, 24, 36, 3), (3, 51, 76, 3), (3, 78, 116, 3), (3, 104, 156, 3), (3, 131, 196, 3)]
NAMES = ["store_all", "every", "sqrt", "chen", "revolve", "dtr", "optimal"]


def row(stages):
    """Policy -> its live peak, its slowdown; and the bytes that no policy changes."""
    more = [f"model.parameters.more{i + 1}={blocks - 1}" for i, blocks in enumerate(stages)]
    answer = plan_spec("resnet-depth", *more)
    return {choice["policy"]: (choice["live_peak_bytes"], choice["slowdown"]) for choice in answer["choices"]}, answer["static_bytes"]


def slopes(name, rows, first):
    """Of log live peak against log depth by least squares, from the depth of that index on."""
    points = [(math.log(depth), math.log(row[name][0])) for depth, row in list(rows.items())[first:]]
    x, y = (sum(values) / len(points) for values in zip(*points))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def main():
    rows = {}
    print(f"{'depth':>6} {'fixed':>9}" + "".join(f" {name:>20}" for name in NAMES) + "   (live peak in GB, slowdown)")
    for stages in STAGES:
        depth = 3 * sum(stages) + 2
        rows[depth], fixed = row(stages)
        cells = [f"{peak / 1e9:.2f} (x{slowdown:.3f})" for peak, slowdown in (rows[depth][name] for name in NAMES)]
        print(f"{depth:6} {fixed / 1e9:6.2f} GB" + "".join(f" {cell:>20}" for cell in cells), flush=True)
    for title, first in (("slope", 0), ("at end", len(rows) - 2)):
        print(f"{title:>6} {'':9}" + "".join(f" {slopes(name, rows, first):20.2f}" for name in NAMES))


sys.exit(main())
