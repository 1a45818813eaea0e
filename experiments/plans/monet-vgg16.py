#!/usr/bin/python3
"""monet-vgg16: VGG16 at batch 176, time against memory

Shah et al., "Memory Optimization for Deep Networks" (MONeT), 2021, README: 14.12 GB of PyTorch brought down to 5.51 GB for 9.1 %
more time, by choosing schedules and implementations together in a day's solving. Ours: the whole front, with what each relu keeps
chosen node by node; slowdowns are planned, by flops.
"""
import sys

from chain import plan_spec

PAPER = [(9.71, -5.3), (7.88, -2.2), (6.82, 2.0), (5.90, 5.4), (5.51, 9.1)]
BASELINE = 14.12


def main():
    answer = plan_spec("monet-vgg16", "--pareto")
    static = answer["static_bytes"]
    stored = static + answer["share_of_bytes"]
    print("MONeT           peak   of its own   time")
    for peak, percent in PAPER:
        print(f"             {peak:5.2f} GB {100 * peak / BASELINE:8.1f} %   {percent:+.1f} %")
    print(f"ours: of {stored / 1e9:.2f} GB, everything stored, relu outputs kept")
    for row in answer["plans"]:
        if row["pareto"] and row["policy"] in ("optimal", "dtr", "store_all"):
            print(f"{row['policy']:12} {row['peak_bytes'] / 1e9:5.2f} GB {100 * row['peak_bytes'] / stored:8.1f} %   "
                  f"{100 * (row['slowdown'] - 1):+.2f} %   {row['gap_percent']:.2f} % above the bound   {row['settings'] or ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
