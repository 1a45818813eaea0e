#!/usr/bin/python3
"""Tables of EXPERIMENTS.md from the runs that are in results/: `run_tables.py NAME`, after the runs that it names.

Cells are the figures of results/EXPERIMENT/sweep.json and of the result files; commit, machine and date those of one of them.
"""
import glob
import json
import os
import sys

from chain import HERE, publish, show

RESULTS = os.path.join(HERE, "../../results")


def mib(size):
    return f"{size / 2**20:.1f} MiB"


def slowdown(point):
    return f"{point['slowdown']:.3f}".removesuffix(".000")


def points(experiment):
    """The sweep's points, by the text of the policy, then in their order."""
    with open(os.path.join(RESULTS, experiment, "sweep.json"), encoding="utf-8") as file:
        by_policy = {}
        for point in json.load(file)["points"]:
            by_policy.setdefault(point["policy"], []).append(point)
    return by_policy


def result(point, side="variant"):
    return show(os.path.join(HERE, "../..", point[side]))


def last_loss(point, side):
    return f"{result(point, side)['eval']['loss'][-1]:.4f}"


def equal(point):
    return "equal in every bit" if point["bits"] == "equal" else point["bits"]


LABELS = {  # of policies, as sweep.json has them
    "{name: every, unit: group, keep_saved: false}": "every, none kept",
    "{name: segments, segments: 4, keep_last: false, keep_saved: false}": "segments 4, none kept",
    "{name: segments, segments: 3, keep_last: false, keep_saved: false}": "segments 3, none kept",
    '{name: manual, groups: ["stage1[0]", "stage2[0]", "stage3[0]"]}': "manual, three blocks",
    "{name: manual, groups: [second.block2]}": "manual, second block",
    "{name: revolve, slots: 3}": "revolve, 3 slots",
    "{name: selective, kinds: [norm, relu]}": "selective: norm, relu",
    '{name: sliced, groups: ["block[0]", "block[1]"]}': "sliced, both blocks",
    "{name: sliced, groups: [block1, second.block2]}": "sliced, both blocks",
    '{name: optimal, budget: "60%"}': "optimal, 60 %",
    "{name: optimal, budget: least}": "optimal, least",
    '{name: dtr, budget: "60%"}': "dtr, 60 %",
    '{name: milp, budget: "60%", time_limit: 60}': "milp, 60 %"}


def label(policy):
    return LABELS.get(policy, policy)


def batchnorm_once():
    sweep = points("batchnorm-once")
    rows = []
    for policy, (once, every) in sweep.items():
        if not rows:
            stored = result(once, "baseline")
            rows.append(["store_all", mib(stored["/plan"]["live_peak_bytes"]), 1,
                         f"test loss {last_loss(once, 'baseline')}", "", ""])
        rows.append([label(policy), mib(once["live_peak_bytes"]), slowdown(once), equal(once),
                     f"{every['first_difference']}" if every["first_difference_step"] == 0 else "none", last_loss(every, "variant")])
    return (["", "live peak", "planned slowdown", "`commit: once`", "`commit: every`: first difference, at step 0", "its test loss"],
            rows, result(once))


def slices_equal():
    rows = []
    for experiment, title in ("slices-tweets", "BERT tiny"), ("slices-cifar10", "CIFAR-10"):
        sweep = points(experiment)
        for policy, pair in sweep.items():
            if policy == next(iter(sweep)):
                stored = [result(point, "baseline") for point in pair]
                rows.append([f"{title}: store_all", *(mib(one["/plan"]["live_peak_bytes"]) for one in stored), 1,
                             f"loss {stored[0]['steps']['loss'][-1]:.5f}"])
            times = dict.fromkeys(slowdown(point) for point in pair)
            bits = dict.fromkeys(equal(point) for point in pair)
            rows.append([label(policy), *(mib(point["live_peak_bytes"]) for point in pair), ", ".join(times), ", ".join(bits)])
    return (["", "live peak, `update: separate`", "live peak, `update: fused`", "planned slowdown", "after 100 steps"], rows,
            result(pair[0]))


def resnet_cifar10():
    *_, newest = sorted(glob.glob(os.path.join(RESULTS, "resnet-cifar10", "*.h5")), key=os.path.getmtime)
    run = show(newest)
    accuracy = run["eval"]["accuracy"]
    return (["test accuracy after epoch", *range(1, len(accuracy) + 1)],
            [["store_all and every block, %", *(f"{100 * value:.2f}" for value in accuracy)]], run)


TABLES = {"batchnorm-once": (batchnorm_once, ["batchnorm-once"]), "slices-equal": (slices_equal, ["slices-tweets", "slices-cifar10"]),
          "resnet-cifar10": (resnet_cifar10, ["resnet-cifar10"])}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in TABLES:
        sys.exit(f"usage: run_tables.py {' | '.join(TABLES)}")
    table, experiments = TABLES[sys.argv[1]]
    columns, rows, run = table()
    command = "REMATCH_DATA=/path/to/data make " + " ".join(f"exp-{name}" for name in experiments)
    publish(sys.argv[1], columns, rows, f"{command}; make publish-{sys.argv[1]}", run)


if __name__ == "__main__":
    main()
