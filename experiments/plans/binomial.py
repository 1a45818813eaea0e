#!/usr/bin/python3
"""binomial: the fewest advances that reverse a uniform chain with a given number of checkpoints

Griewank and Walther, "Algorithm 799: revolve", 2000: l steps, one state between two of them, s slots for states of which the
first state takes one, one step taped at a time. A stage's saved tensors are the tape, so large that two never fit. A plan
then holds at its peak one tape, the state read, the state written and s - 1 stored ones. Each step runs once to be taped,
so the advances are the recomputations. The exit code is 1 where a figure differs from the published one.
"""
import math
import sys

from chain import plan, publish

STATE, TAPE = 1 << 20, 1 << 34
STAGE = {"forward": 1, "backward": 2, "output": STATE, "saved": TAPE, "gradient": 0}
PUBLISHED = [(10, 3, 15), (64, 4, 200), (100, 3, 490), (100, 10, 222), (1000, 10, 3636)]


def formula(steps, slots):
    """r l - C(s + r, r - 1), r the least with C(s + r, s) >= l."""
    r = 0
    while math.comb(slots + r, slots) < steps:
        r += 1
    return r * steps - math.comb(slots + r, r - 1)


def main():
    right, rows = True, []
    for steps, slots, advances in PUBLISHED:
        revolve = plan(steps, STAGE, "policy.name=revolve", f"policy.slots={slots}")
        budget = TAPE + (slots + 1) * STATE
        optimal = plan(steps, STAGE, "policy.name=optimal", f"policy.budget={budget}")
        rows.append([steps, slots, advances, revolve["recomputations"], optimal["recomputations"]])
        right &= formula(steps, slots) == advances == revolve["recomputations"] == optimal["recomputations"]
        right &= revolve["peak_bytes"] <= budget and optimal["peak_bytes"] <= budget
    publish("binomial", ["steps", "slots", "published", "`revolve`", "`optimal`, in as many bytes"], rows)
    print("as published" if right else "NOT as published")
    return 0 if right else 1


sys.exit(main())
