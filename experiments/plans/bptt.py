#!/usr/bin/python3
"""bptt: a recurrent network over 1000 steps in 5 % of the memory

Gruslys, Munos, Danihelka, Lanctot and Graves, "Memory-Efficient Backpropagation Through Time", 2016, abstract: sequences of 1000
steps in 5 % of the memory for a third more time. Ours: 1000 equal steps. The backward of a step takes twice its forward; it reads
the hidden state before the step and what the step keeps besides, as large as none, one or four hidden states. `optimal`: the
fastest point of its front within 5 %. The exit code is 1 where that is slower than published.
"""
import sys

from chain import fastest, plan, publish

STEPS, SHARE, PUBLISHED = 1000, 5, 4 / 3
KEPT = (0, 1, 4)  # by a step, in hidden states


def cell(point, stored):
    return f"{100 * point['peak_bytes'] / stored['peak_bytes']:.1f} %, x{point['time'] / stored['time']:.3f}"


def main():
    slower, rows = False, []
    for kept in KEPT:
        answer = plan(STEPS, {"forward": 1, "backward": 2, "output": 1, "saved": kept, "gradient": 1})
        choices = {choice["policy"]: choice for choice in answer["choices"] if choice["policy"] != "optimal"}
        stored = choices["store_all"]
        ours = fastest(answer, SHARE * stored["peak_bytes"] // 100)
        rows.append([kept, stored["peak_bytes"], f"{SHARE} %, x{PUBLISHED:.2f}",
                     *(cell(one, stored) for one in (ours, choices["sqrt"], choices["chen"]))])
        slower |= ours["time"] > PUBLISHED * stored["time"]
    publish("bptt", ["kept by a step", "stored", "published", "`optimal`", "`sqrt`", "`chen`"], rows)
    print("SLOWER than published" if slower else "nowhere slower than published")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
