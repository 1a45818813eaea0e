#!/usr/bin/python3
"""adjoint: time steps that an adjoint of 1000 steps runs forward with a given number of snapshots

As adjoint codes count: every forward step, the first ones included. Revolve (Griewank and Walther, 2000): a snapshot is a state,
from which steps run again. Mixed (Maddison, "Step-based checkpointing with high-level algorithmic differentiation", 2024): it is a
state or the tape of one step, what its adjoint reads, as large as a state. PUBLISHED has the steps that the schedules of the
package checkpoint_schedules 1.0.4 run, and spyro's measured multiples of a run without snapshots (github NDF-Poli-USP/spyro, pull
request 390). Ours: `revolve`; and the front of `optimal` on a chain whose backwards read the tape alone. The first state of that
chain costs more than all else, so that it is not computed again. While a step runs, the state that it reads, the state that it
writes and its tape are alive besides the snapshots. The exit code is 1 where a figure differs from checkpoint_schedules'.
"""
import sys

from chain import fastest, plan, plan_chain, publish

STEPS, FIRST = 1000, 10**6
PUBLISHED = [  # snapshots, steps of Revolve, of the mixed schedule, spyro's multiples of both
    (5, 7284, 6828, "7.28", "6.85"), (10, 4636, 3921, "4.62", "3.92"), (20, 3747, 2823, "3.74", "2.82"),
    (40, 3097, 2142, "3.09", "2.13"), (60, 2938, 1958, "2.94", "1.95"), (80, 2918, 1932, "", "1.93")]
STEP = {"forward": 1, "backward": 1, "output": 1, "saved": 1, "gradient": 0, "reads": "[saved]"}
START = {"forward": FIRST, "backward": 0, "output": 1, "saved": 0, "gradient": 0, "reads": "[nothing]"}


def main():
    mixed, right, rows = plan_chain([START, {"repeat": STEPS, **STEP}]), True, []
    for snapshots, revolve, optimum, *spyro in PUBLISHED:
        ours = STEPS + plan(STEPS, STEP, "policy.name=revolve", f"policy.slots={snapshots}")["recomputations"]
        forward = STEPS + round(fastest(mixed, snapshots + 3)["time"] - mixed["time"])
        rows.append([snapshots, *(f"x{times}" if times else "" for times in spyro), revolve, ours, optimum, forward])
        right &= ours == revolve and forward == optimum
    publish("adjoint", ["snapshots", "spyro, Revolve: measured", "spyro, mixed: measured", "Revolve: published", "`revolve`",
                        "mixed: published", "`optimal`"], rows)
    print("as published" if right else "NOT as published")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
