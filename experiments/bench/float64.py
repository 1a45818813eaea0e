#!/usr/bin/python3
"""Measures how far the gradients of a BERT are from the exact ones: `make numerics`.

A run of one step records its initial parameters, its batch and its gradients (record.state). This script computes the
same network again, in PyTorch and float64, dropout included: it draws the masks by Philox4x32-10 as results/README.md
documents. A tensor's error is the L2 norm of the difference divided by that of the exact gradient. Where the exact
gradient is 0 (a key's bias shifts all scores of a row equally), that part is divided by the norm of the whole tensor.

Exit code 1: an error exceeds its limit.
"""
import glob
import math
import os
import sys
import tempfile

import h5py
import numpy as np
import torch
from torch.nn import functional

import measure
from report import Table, provenance, write

HEAD = """# Gradients beside float64

Written by `make numerics` (experiments/bench/float64.py says how they are compared): one training step, dropout included.
"""
# experiment -> what is set for it, heads, the largest relative error allowed
RUNS = {"experiments/bert-tweets.yaml": (("batch=32", "epochs="), 2, 1e-5),
        "experiments/bert-recompute.yaml": (("batch=32",), 12, 5e-5)}
DROPOUT = 2  # place of the domain among those of framework/numerics/random.h
RATE, EPSILON, SEED = 0.1, 1e-12, 123
U32 = np.uint64(0xffffffff)


def finalised(seed, domain):
    """SplitMix64's finaliser of the seed and the domain."""
    key, most = (seed + (domain + 1) * 0x9E3779B97F4A7C15), 2 ** 64 - 1
    key = ((key & most) ^ (key & most) >> 30) * 0xBF58476D1CE4E5B9 & most
    key = (key ^ key >> 27) * 0x94D049BB133111EB & most
    return key ^ key >> 31


def philox(key, counter):
    """Philox4x32-10 (Salmon et al., 2011) of arrays of counters."""
    a, b, c, d = (np.asarray(word, dtype=np.uint64) for word in counter)
    low, high = key & 0xffffffff, key >> 32
    for _ in range(10):
        p, q = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, c = (q >> np.uint64(32)) ^ b ^ np.uint64(low), (p >> np.uint64(32)) ^ d ^ np.uint64(high)
        b, d = q & U32, p & U32
        low, high = (low + 0x9E3779B9) & 0xffffffff, (high + 0xBB67AE85) & 0xffffffff
    return a, b, c, d


class Network:
    """BERT with a classifier on its first token, its nodes numbered as the model file's."""

    def __init__(self, parameters, heads, seed):
        self.parameters, self.heads, self.key, self.node = parameters, heads, finalised(seed, DROPOUT), 0

    def next(self):
        self.node += 1
        return self.node - 1

    def dropout(self, x):
        """Of a value whose first dimension is the batch; draws in the order of its elements."""
        node, batch = self.next(), x.shape[0]
        elements = math.prod(x.shape[1:])
        quad, sample = np.arange((elements + 3) // 4), np.arange(batch)[:, None]
        words = np.stack(np.broadcast_arrays(*philox(self.key, (quad[None], sample, np.full((1, 1), node), [[0]]))), -1)
        keep = words.reshape(batch, -1)[:, :elements] >= int(RATE * 2 ** 32)
        return x * torch.from_numpy(keep.reshape(x.shape)) / (1 - RATE)

    def linear(self, name, x):
        self.next()
        return functional.linear(x, self.parameters[name + ".weight"], self.parameters[name + ".bias"])

    def norm(self, name, x):
        self.next()
        weight, bias = self.parameters[name + ".weight"], self.parameters[name + ".bias"]
        return functional.layer_norm(x, x.shape[-1:], weight, bias, EPSILON)

    def attention(self, qkv, mask):
        batch, length, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
        q, k, v = qkv.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(mask[:, None, None, :] == 0, -math.inf)
        return (self.dropout(scores.softmax(-1)) @ v).transpose(1, 2).reshape(batch, length, width)

    def plus(self, x, y):
        self.next()
        return x + y

    def gelu(self, x):
        self.next()
        return functional.gelu(x)

    def embedding(self, ids, segments):
        self.next()
        p = self.parameters
        return p["embedding.word"][ids] + p["embedding.position"][:ids.shape[1]] + p["embedding.segment"][segments]

    def __call__(self, batch, labels):
        ids, segments, mask = batch[:, 0].long(), batch[:, 1].long(), batch[:, 2]
        x = self.dropout(self.norm("embedding_norm", self.embedding(ids, segments)))
        for i in range(sum(name.endswith("].qkv.weight") for name in self.parameters)):
            at = f"block[{i}]."
            y = self.linear(at + "projection", self.attention(self.linear(at + "qkv", x), mask))
            x = self.norm(at + "attention_norm", self.plus(x, self.dropout(y)))
            y = self.linear(at + "down", self.gelu(self.linear(at + "up", x)))
            x = self.norm(at + "norm", self.plus(x, self.dropout(y)))
        self.next()
        y = self.dropout(torch.tanh(self.linear("pooler", x[:, 0])))
        return functional.cross_entropy(self.linear("classifier", y), labels)


def recorded(spec, overrides):
    """Loss, gradients, parameters, batch and labels of a run's only step."""
    with tempfile.TemporaryDirectory(prefix="rematch-numerics-") as folder:
        measure.output([measure.PROGRAM, "run", spec, "--only", "variant", "policy=store_all", "steps=1",
                        f"seed={SEED}", "eval=", "record.state=true", *overrides, f"results={folder}"], allowed=(0, 1))
        with h5py.File(glob.glob(os.path.join(folder, "**", "*.h5"), recursive=True)[0], "r") as file:
            state = file["state"]
            each = [{name: torch.from_numpy(tensor[()]).double() for name, tensor in state[what].items()}
                    for what in ("gradient", "initial")]
            batch, labels = (torch.from_numpy(state[what][0]) for what in ("x", "labels"))
            return float(file["steps/loss"][0]), *each, batch, labels.long()


def parts(name, ours, exact):
    """A tensor as it is judged: name, difference's norm, norm to divide it by."""
    whole = exact.norm()
    if name.endswith("qkv.bias"):
        for part, a, b in zip("query key value".split(), ours.chunk(3), exact.chunk(3)):
            yield f"{name} ({part})", (a - b).norm(), whole if part == "key" else b.norm()
    else:
        yield name, (ours - exact).norm(), whole


def compare(spec, overrides, heads, limit, table):
    loss, gradients, parameters, batch, labels = recorded(spec, overrides)
    for parameter in parameters.values():
        parameter.requires_grad_(True)
    exact = Network(parameters, heads, SEED)(batch, labels)
    exact.backward()
    errors = sorted(((float(difference / norm), part) for name, tensor in gradients.items()
                     for part, difference, norm in parts(name, tensor, parameters[name].grad)), reverse=True)
    most, worst = errors[0]
    table.row(os.path.splitext(os.path.basename(spec))[0], " ".join(overrides), len(errors), f"{limit:.0e}",
              f"{most:.2e}", worst, f"{errors[len(errors) // 2][0]:.2e}", f"{abs(loss / exact.item() - 1):.1e}",
              "reached" if most <= limit else "**missed**")
    return most <= limit


def main():
    table = Table("experiment", "set", "tensors", "limit", "largest relative error", "of", "median", "of the loss", "")
    good = [compare(spec, *run, table) for spec, run in RUNS.items()]
    write("results/numerics.md", [("Relative L2 errors", table),
                                  ("Provenance", provenance(measure.planner(next(iter(RUNS)))))], HEAD)
    return 0 if all(good) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except measure.Failed as failure:
        sys.exit(f"numerics: {failure}")
