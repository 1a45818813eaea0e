#!/usr/bin/python3
"""dtr-traces: U-Net, ResNet-32 and Transformer as their authors traced them, within DTR's budgets

Kirisame et al., "Dynamic Tensor Rematerialization", 2021: the logs of the authors' prototype as graphs of operators
($REMATCH_DATA/graphs), and the time of a step that the authors measured on a Titan V within a budget beside that without one:
data_files/data-full.json of github uwsampl/dtr-prototype. The measured steps include the prototype's own work at run time, ours do
not: a slowdown of ours is the planned time of all operators by that of each operator once. The exit code is 1 where `optimal` is
slower than the published step.
"""
import json
import os
import resource
import sys
import tempfile

from chain import ask, publish
from traced_graph import graph_of, live_peak, read

FOLDER = os.path.join(os.environ.get("REMATCH_DATA", ""), "graphs")
NETWORKS = [  # name, trace, batch, budgets in GB: what the authors measured with it by without one
    ("Transformer", "transformer", 10, {8: 317.5 / 284.7, 6: 326.3 / 284.7, 4: 338.6 / 284.7, 2: 454.4 / 284.7}),
    ("U-Net", "unet", 6, {8: 446.5 / 418.7, 7: 455.5 / 418.7, 6: 477.8 / 418.7, 5: None, 4: 531.2 / 418.7, 3: None}),
    # their data have no step of this one
    ("ResNet-32", "resnet32", 56, {9: None, 7: None, 5: None, 4: None, 3: None, 2: None}),
]
SECONDS = 600  # for one plan


def processor_seconds():
    """Of all commands that ended; unlike the time that passes, other processes hardly change it."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def slowdown(answer):
    return f"x{answer['slowdown']:.3f}" if answer else "none"


def main():
    slower, rows = False, []
    if not os.path.isdir(FOLDER):
        print(f"there is no folder {FOLDER}; expected the traces in $REMATCH_DATA/graphs", file=sys.stderr)
        return 77
    for title, name, batch, budgets in NETWORKS:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            trace = read(os.path.join(FOLDER, name + ".graph.json.gz"))
            json.dump(graph_of(trace, name, batch), file)
            file.flush()

            def plan(*overrides):
                return ask("--graph", file.name, *overrides, "--alone", seconds=SECONDS)

            stored = plan()
            print(f"{name}: {stored['mapping']}; the live peak by that of the trace: {stored['live_peak_bytes'] / live_peak(trace):.4f}",
                  flush=True)
            head = [f"{title}, {batch}", f"{len(trace['ops'])}, {stored['nodes']}", f"{stored['peak_bytes'] / 1e9:.2f} GB"]
            for budget, published in budgets.items():
                before = processor_seconds()
                optimal = plan("policy.name=optimal", f"policy.budget={budget}GB")
                took = processor_seconds() - before
                dtr = plan("policy.name=dtr", f"policy.budget={budget}GB")
                gap = f"{optimal['budget_bounds']['gap_percent']:.1f} %" if optimal else ""
                arena = f"{optimal['arena_bytes'] / optimal['live_peak_bytes']:.4f}" if optimal else ""
                rows.append([*head, f"{budget} GB", f"x{published:.3f}" if published else "", slowdown(optimal), gap, arena,
                             slowdown(dtr), f"{took:.1f} s"])
                head = ["", "", ""]
                slower |= published is not None and not (optimal and optimal["slowdown"] <= published)
    publish("dtr-traces", ["trace", "operators, nodes", "stored", "budget", "published: measured step", "`optimal`: planned",
                           "above the bound", "arena by live peak", "`dtr`: planned", "processor time of `optimal`"], rows)
    print("SLOWER than published" if slower else "nowhere slower than published")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
