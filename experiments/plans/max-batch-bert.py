#!/usr/bin/python3
"""max-batch-bert: BERT base at length 128, the largest batch in 16 GB by policy

Q. Wu's figures in the Spell article: 24 samples grow to 132 in the memory of one GPU. keras_recompute's README: three
times the batch for BERT base, four for large, at 25 % more time. Ours: the largest batch that each policy fits into 16 GB,
parameters, gradients and AdamW's state included, and the same at no more than 25 % more time by flops.
"""
import sys

from chain import ask

MEMORY = "16GB"


def largest(*arguments):
    """policy -> its largest batch."""
    answer = ask("bert-recompute", "policy=store_all", "--max-batch", "--memory", MEMORY, *arguments)
    return {row["policy"]: row for row in answer["policies"]}


def cell(row, stored):
    if not row or not row["largest_batch"]:
        return f"{'none':>6}{'':21}"
    return f"{row['largest_batch']:6} {row['largest_batch'] / stored:6.2f} x  x{row['slowdown']:<8.3f}"


def main():
    unbounded, bounded = largest(), largest("--slowdown", "1.25")
    stored = unbounded["store_all"]["largest_batch"]
    print(f"the largest batch in {MEMORY}, its ratio to store_all's, and its slowdown")
    print(f"{'policy':12} {'any slowdown':28} at most x1.25")
    for policy, row in unbounded.items():
        print(f"{policy:12} {cell(row, stored)} {cell(bounded.get(policy), stored)}".rstrip())
    print(f"Q. Wu: 24 to 132 samples, {132 / 24:.2f} x; keras_recompute: 3 x at x1.25")
    return 0


if __name__ == "__main__":
    sys.exit(main())
