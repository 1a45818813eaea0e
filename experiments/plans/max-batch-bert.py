#!/usr/bin/python3
"""max-batch-bert: BERT base at length 128, the largest batch in 16 GB by policy

Q. Wu's figures in the Spell article: 24 samples grow to 132 in the memory of one GPU. keras_recompute's README: three
times the batch for BERT base, four for large, at 25 % more time. Ours: the largest batch that each policy fits into 16 GB,
parameters, gradients and AdamW's state included, and the same at no more than 25 % more time by flops.
"""
import sys

from chain import ask, publish

MEMORY = "16GB"


def largest(*arguments):
    """policy -> its largest batch."""
    answer = ask("bert-recompute", "policy=store_all", "--max-batch", "--memory", MEMORY, *arguments)
    return {row["policy"]: row for row in answer["policies"]}


def main():
    unbounded, bounded = largest(), largest("--slowdown", "1.25")
    stored, rows = unbounded["store_all"]["largest_batch"], []
    for policy, row in unbounded.items():
        if not row["largest_batch"]:
            continue
        batch = bounded[policy]["largest_batch"]
        rows.append([policy, row["largest_batch"], f"{row['slowdown']:.3f}", batch, f"{batch / stored:.2f}"])
    publish("max-batch-bert", ["policy", "batch, whatever it takes", "slowdown", "batch, at most x1.25", "of store_all's"], rows)
    print(f"in {MEMORY}; Q. Wu: 24 to 132 samples, {132 / 24:.2f} x; keras_recompute: 3 x at x1.25")
    return 0


if __name__ == "__main__":
    sys.exit(main())
