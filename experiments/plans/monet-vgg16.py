#!/usr/bin/python3
"""monet-vgg16: VGG16 at batch 176, time against memory

Shah et al., "Memory Optimization for Deep Networks" (MONeT), 2021, README: 14.12 GB of PyTorch brought down to 5.51 GB for 9.1 %
more time, by choosing schedules and implementations together in a day's solving. Ours: the whole front, with what each relu keeps
chosen node by node; slowdowns are planned, by flops. Beside each of theirs stands our fastest plan in no more bytes, and last our
smallest.
"""
import sys

from chain import plan_spec, publish

PAPER = [(9.71, -5.3), (7.88, -2.2), (6.82, 2.0), (5.90, 5.4), (5.51, 9.1)]
BASELINE = 14.12


def cells_of(row, stored):
    return [f"{row['peak_bytes'] / 1e9:.2f} GB", f"{100 * row['peak_bytes'] / stored:.0f} %",
            f"{100 * (row['slowdown'] - 1):+.2f} %", f"{row['gap_percent']:.2f} %"]


def main():
    answer = plan_spec("monet-vgg16", "--pareto")
    stored = answer["static_bytes"] + answer["share_of_bytes"]
    plans = [row for row in answer["plans"] if row["pareto"]]
    rows = []
    for peak, percent in PAPER:
        fastest = min((row for row in plans if row["peak_bytes"] <= peak * 1e9), key=lambda row: row["slowdown"], default=None)
        ours = cells_of(fastest, stored) if fastest else 4 * [""]
        rows.append([f"{peak:.2f} GB", f"{100 * peak / BASELINE:.0f} %", f"{percent:+.1f} %", "", *ours])
    rows.append([*4 * [""], *cells_of(min(plans, key=lambda row: row["peak_bytes"]), stored)])
    publish("monet-vgg16", ["MONeT: peak", f"of its {BASELINE} GB", "time, measured on a GPU", "", "ours: peak",
                            f"of our {stored / 1e9:.2f} GB", "time, planned by flops", "above the lower bound"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
