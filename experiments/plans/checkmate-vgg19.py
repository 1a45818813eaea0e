#!/usr/bin/python3
"""checkmate-vgg19: the largest batch of VGG19 in 16 GB with at most one extra forward

Jain et al., "Checkmate", 2020, and its artifact: 16 * 10^9 bytes, of which twice the parameters are set aside. Three
accountings: the paper's, as an abstract chain of one image (every layer's output and its gradient are arrays of their own; a
backward holds input, output and both gradients); our plain kernels (ref), where a fused relu's gradient is masked in
place; and the fast ones (cpu), where the plan chooses what each relu keeps. The exit code is 1 where the paper's certified
optimum is not reproduced.
"""
import sys

from chain import chain_text, plan_chain, plan_spec, publish, written
from integer_programme import solve, solver, text

MEMORY, PARAMETERS, CERTIFIED = 16 * 10**9, 143667240, 289
PAPER = {"store_all": 167, "sqrt": 197, "chen": 266, "optimal": CERTIFIED}
EXTRA_FORWARD = 4 / 3


def stage(forward, ratio, elements):
    """A layer of so many operations forward, ratio times as many backward, on one image."""
    size = 4 * elements
    return {"forward": forward, "backward": ratio * forward, "output": size, "saved": 0, "gradient": size,
            "forward_scratch": 0, "backward_scratch": size}


def vgg19():
    """Blocks of 3x3 convolutions, each with a 2x2 pool behind it; then the classifier."""
    side, channels, stages = 224, 3, []
    for count, width in ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512)):
        for _ in range(count):
            elements = width * side * side
            stages.append(stage(2 * 9 * channels * elements, 2, elements))
            channels = width
        side //= 2
        stages.append(stage(4 * width * side * side, 1, width * side * side))
    for inputs, outputs in ((25088, 4096), (4096, 4096), (4096, 1000)):
        stages.append(stage(2 * inputs * outputs, 2, outputs))
    return stages + [stage(5 * 1000, 2, 1000)]


def in_chain(policy):
    """The largest batch that fits beside two sets of parameters, and its slowdown; bytes grow with the batch."""
    plan = plan_chain(vgg19(), f"policy.name={policy}")
    return (MEMORY - 2 * 4 * PARAMETERS) // plan["peak_bytes"], plan["slowdown"]


def certify(batch):
    """What an integer programme proves of a batch in that accounting."""
    with written(chain_text(vgg19())) as path:
        return text(*solve(f"{(MEMORY - 2 * 4 * PARAMETERS) // batch}B", "--graph", path))


def in_network(*overrides):
    """By policy, its largest batch in 16 GB of static memory and arena, and the slowdown there."""
    answer = plan_spec("checkmate-vgg19", "--max-batch", "--memory", "16GB", "--slowdown", str(EXTRA_FORWARD), *overrides)
    best = {}
    for row in answer["policies"]:
        if row["largest_batch"] and row["largest_batch"] > best.get(row["policy"], (0, 0))[0]:
            best[row["policy"]] = (row["largest_batch"], row["slowdown"])
    return best


def main():
    plain, fast = in_network(), in_network("backend=cpu", "relu_save=bits")
    rows = []
    for policy, published in PAPER.items():
        cells = [in_chain(policy), plain[policy], fast[policy]]
        rows.append([policy, published, *(f"{batch} (x{slowdown:.3f})" for batch, slowdown in cells)])
    publish("checkmate-vgg19", ["largest batch (slowdown)", "paper", "its accounting", "our plain kernels (`ref`)",
                                "our fast kernels (`cpu`), `relu_save: bits`"], rows)
    for batch in (CERTIFIED, CERTIFIED + 1) if solver() else ():
        print(f"an integer programme, batch {batch} in its accounting: {certify(batch)}")
    batch, slowdown = in_chain("optimal")
    right = batch == CERTIFIED and slowdown <= EXTRA_FORWARD
    print("the certified optimum is reproduced" if right else "the certified optimum is NOT reproduced")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
