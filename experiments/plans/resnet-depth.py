#!/usr/bin/python3
"""resnet-depth: peak against depth of pre-activation ResNets at batch 32

Chen, Xu, Zhang, Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016: bottleneck ResNets on 224x224 images, batch
32; 1000 layers fall from 48 GB to 7 GB in about 30 % more time. Stages grow as in the authors' example of 200 layers, blocks
3, 24, 36, 3: the second and the third stage in the ratio 2 : 3, the others as they are. `norms` recomputes batch
norms with their relus and nothing else; `dtr` and `optimal` need the least bytes they can, whatever the time; `optimal` besides
14.6 % of what storing everything needs, the paper's share. A plan that takes more than ten minutes is given up. Last: the slope
of log live peak against log depth (1 is linear, 0.5 a square root, 0 none) by least squares, of the plans that were made.
"""
import math
import sys

from chain import plan_spec, publish

STAGES = [(3, 4, 23, 3), (3, 24, 36, 3), (3, 51, 76, 3), (3, 78, 116, 3), (3, 104, 156, 3), (3, 131, 196, 3)]
SECONDS = 600
POLICIES = {"store_all": "store_all", "norms alone": "{name: selective, kinds: [norm]}", "sqrt": "sqrt", "chen": "chen",
            "revolve": "revolve", "`dtr`, least": "{name: dtr, budget: least}",
            "`optimal`, least": "{name: optimal, budget: least}", "`optimal`, 14.6 %": "{name: optimal, budget: 14.6%}"}


def slope(points):
    """Of log bytes against log depth."""
    logs = [(math.log(depth), math.log(answer["live_peak_bytes"])) for depth, answer in points]
    x, y = (sum(values) / len(logs) for values in zip(*logs))
    return sum((a - x) * (b - y) for a, b in logs) / sum((a - x) ** 2 for a, _ in logs)


def cell(answer):
    if not answer:
        return "given up"
    slowdown = f" (x{answer['slowdown']:.3f})" if answer["slowdown"] > 1 else ""
    return f"{answer['live_peak_bytes'] / 1e9:.2f}{slowdown}"


def main():
    rows = []
    found = {name: [] for name in POLICIES}
    for stages in STAGES:
        depth = 3 * sum(stages) + 2
        more = [f"model.parameters.more{i + 1}={blocks - 1}" for i, blocks in enumerate(stages)]
        answers = {name: plan_spec("resnet-depth", f"policy={policy}", *more, "--alone", seconds=SECONDS)
                   for name, policy in POLICIES.items()}
        for name, answer in answers.items():
            found[name] += [(depth, answer)] if answer else []
        rows.append([depth, f"{answers['store_all']['static_bytes'] / 1e9:.2f}", *map(cell, answers.values())])
        print(*rows[-1], sep="  ", flush=True)
    print("live peak in GB (slowdown), and in GB what no policy changes:")
    slopes = [f"{slope(points):.2f}" if len(points) > 1 else "" for points in found.values()]
    source = ["48" if name == "store_all" else "7 (about x1.3)" if name == "chen" else "" for name in POLICIES]
    publish("resnet-depth", ["layers", "fixed", *POLICIES], [*rows, ["slope", "", *slopes], ["source, 1000: measured", "", *source]])


sys.exit(main())
