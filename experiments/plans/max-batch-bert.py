#!/usr/bin/python3
"""max-batch-bert: BERT base at length 128, the largest batch in 16 GB by policy

Q. Wu's figures, told by the Spell article: 24 samples grow to 132 in the memory of one GPU. keras_recompute's README: three
times the batch for BERT base, four for large, at 25 % more time. Ours: the largest batch that each policy fits into 16 GB,
parameters, gradients and AdamW's state included, and the same at no more than 25 % more time by flops.
"""
import sys

from chain import ask

MEMORY = "16GB"


def largest(*arguments):
    """policy -> its largest batch."""
    said = ask("bert-recompute", "policy=store_all", "--max-batch", "--memory", MEMORY, *arguments)
    return {row["policy"]: row for row in said["policies"]}


def main():
    unbounded, bounded = largest(), largest("--slowdown", "1.25")
    stored = unbounded["store_all"]["largest_batch"]
    print(f"the largest batch in {MEMORY}")
    print("policy       batch  of store_all   time  setting            at most x1.25: batch  of store_all   time")
    for policy, row in unbounded.items():
        within = bounded.get(policy)
        print(f"{policy:12} {row['largest_batch']:5} {row['largest_batch'] / stored:9.2f} x {row['time_factor']:8.3f}  "
              f"{row['settings'] or '':30}", end="")
        if within and within["largest_batch"]:
            print(f"{within['largest_batch']:10} {within['largest_batch'] / stored:9.2f} x {within['time_factor']:8.3f}", end="")
        print()
    print(f"Q. Wu: 24 to 132 samples, {132 / 24:.2f} x; keras_recompute: 3 x at x1.25")
    return 0


if __name__ == "__main__":
    sys.exit(main())
