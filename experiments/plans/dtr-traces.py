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
import sys
import tempfile

from chain import ask
from traced_graph import graph_of, live_peak, read

FOLDER = os.path.join(os.environ.get("REMATCH_DATA", ""), "graphs")
NETWORKS = [  # trace, batch, budgets in GB: what the authors measured with it by without one
    ("transformer", 10, {8: 317.5 / 284.7, 6: 326.3 / 284.7, 4: 338.6 / 284.7, 2: 454.4 / 284.7}),
    # of this one, the lowest and the highest are known here, not their budgets: 446.5 and 531.2 by 418.7 ms, 1.066 and 1.269
    ("unet", 6, {8: None, 7: None, 6: None, 5: None, 4: None, 3: None}),
    ("resnet32", 56, {9: None, 7: None, 5: None, 4: None, 3: None, 2: None}),
]
SECONDS = 600  # for one plan


def cell(answer):
    return f"{answer['slowdown']:.3f} in {answer['peak_bytes'] / 1e9:.2f} GB" if answer else "none"


def main():
    slower = False
    if not os.path.isdir(FOLDER):
        print(f"there is no folder {FOLDER}; expected the traces in $REMATCH_DATA/graphs", file=sys.stderr)
        return 77
    for name, batch, budgets in NETWORKS:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            trace = read(os.path.join(FOLDER, name + ".graph.json.gz"))
            json.dump(graph_of(trace, name, batch), file)
            file.flush()

            def plan(*overrides):
                return ask("--graph", file.name, *overrides, "--alone", seconds=SECONDS)

            stored = plan()
            print(f"{name}: {stored['mapping']}")
            print(f"  stored {stored['peak_bytes'] / 1e9:.2f} GB, of which {stored['static_bytes'] / 1e9:.2f} static; the live peak by that "
                  f"of the trace: {stored['live_peak_bytes'] / live_peak(trace):.4f}")
            print(f"  {'budget':>6}  {'published':>9}  {'optimal':>18} {'above bound':>11} {'arena/live':>10}  {'dtr':>18}")
            for budget, published in budgets.items():
                optimal, dtr = (plan(f"policy.name={policy}", f"policy.budget={budget}GB") for policy in ("optimal", "dtr"))
                gap = f"{optimal['budget_bounds']['gap_percent']:9.1f} %" if optimal else ""
                arena = f"{optimal['arena_bytes'] / optimal['live_peak_bytes']:.4f}" if optimal else ""
                print(f"  {budget:3} GB  {f'{published:.3f}' if published else '':>9}  {cell(optimal):>18} {gap:>11} {arena:>10}  {cell(dtr):>18}",
                      flush=True)
                slower |= published is not None and not (optimal and optimal["slowdown"] <= published)
    print("SLOWER than published" if slower else "nowhere slower than published")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
