#!/usr/bin/env python3
"""Compares the speed with PyTorch's on a GPU: `experiments/bench/gpu.py [--networks vgg16-64 ...] [--limit SECONDS]`, or
the bundle's gpu.sh.

Every network is trained storing everything, with every block recomputed, with sqrt(n) segments, and with `optimal` in
half of store_all's live peak; in PyTorch, eager, with torch.utils.checkpoint, where it has an equivalent. All in fp32
without TF32, same shapes, with dropout, relu_save: bits. PyTorch chooses convolutions by timing (cudnn.benchmark), ours
by cuDNN's heuristics; ours plans with costs that are measured first.

Time: the fastest step after the warm-up steps. It includes our digests and the reading of the next batch, which the
device does not wait for, but not what is written to the result file between two steps. Launch gaps: store_all's fastest
step minus the least time that the device works within a step of another run, measured by CUPTI. Memory: for ours, what
the device has in use at the end of a run minus what it had before anything was reserved (context and libraries; code
that CUDA loads at first use counts as ours). For PyTorch, the most that its allocator reserved, which contains none of
that and compares with our static memory and arena; and the most from the last warm-up step on, without the workspaces
that cudnn.benchmark tries. Ours may use 128 MiB of scratch for a convolution or an attention, 512 MiB for attention of
512 tokens. Finally the largest batches that a device of 16 GB would hold are planned and run.

What fails, or finds no time within the limit, is named in the result, which is written after each network; the rest
continues. Exit code 3: something failed or was left out; 1: a figure misses its target.
"""
import argparse
import collections
import os
import sys
import tempfile
import time

import measure
import report
from report import Table, gib, save, write

HEAD = """# Benchmark on a GPU

Written by experiments/bench/gpu.py, which says how it measures; seconds are of the fastest step.
"""
EXPERIMENT = "experiments/{}.yaml".format
SAMPLE_CNN = EXPERIMENT("sample-cnn-recompute")
AUTO, FP32 = "relu_save=bits", "precision=fp32"
STORE_ALL, EVERY, SQRT, OPTIMAL = "store_all", "every block", "sqrt", "optimal 50 %"
STAGES = "policy.unit=stage"
CELLS = {STORE_ALL: ("policy.name=store_all",),
         EVERY: ("policy.name=every", "policy.unit=group"),
         SQRT: ("policy.name=sqrt",),
         OPTIMAL: ("policy.name=optimal", "policy.budget=50%")}
PEER_POLICIES = {STORE_ALL: "none", EVERY: "every", SQRT: "sqrt"}

# A network: spec, batch and further overrides; cells that it has otherwise, by spec and policy; the peer's words, and
# those of another that is measured too.
Network = collections.namedtuple("Network", "spec batch overrides cells peer other", defaults=(None,))


def vgg16(batch):
    spec = EXPERIMENT("vgg16-recompute")
    return Network(spec, batch, (), {SQRT: (spec, *CELLS[SQRT], STAGES)}, ("vgg16", "--batch", batch))


def bert(length):
    tokens = ("data.name=synthetic-tokens", f"data.max_length={length}", "data.vocabulary_size=30522",
              "data.lengths=full", *(("conv.scratch_limit=512MiB",) if length > 128 else ()))
    words = ("bert", "--batch", 64, "--length", length, "--optimizer", "adamw")
    return Network(EXPERIMENT("bert-recompute"), 64, tokens, {}, words, (*words, "--fused"))


NETWORKS = {
    "vgg16-64": vgg16(64),
    "bert-128": bert(128),
    "sample-cnn-16": Network(SAMPLE_CNN, 16, (), {EVERY: (EXPERIMENT("sample-cnn-blocks"),),
                                                  SQRT: (SAMPLE_CNN, *CELLS[SQRT], STAGES)},
                             ("sample-cnn", "--batch", 16)),
    "bert-512": bert(512),
    "vgg16-256": vgg16(256),
}
PEER, OTHER = "PyTorch", "PyTorch, fused attention"
LARGEST = {"bert-base, length 128": "bert-128", "vgg16": "vgg16-64"}  # whose largest batch is looked for
LIMIT = "16GB"


class Bench:
    """What was measured, judged, and left out."""

    def __init__(self, options):
        self.options = options
        self.start = time.monotonic()
        self.ours, self.peers = {}, {}  # by (network, cell), and by (network, peer, cell)
        self.folder = tempfile.TemporaryDirectory(prefix="rematch-timed-")
        self.files = {}  # words that make a spec read what was timed for it, by network and spec
        self.targets = Table("network", "figure", "target", "measured", "")
        self.times = Table("network", "cell", "who", "step", "median", "planned factor", "measured factor")
        self.memory = Table("network", "cell", "ours: static and arena", "ours: taken", "ours: all in use",
                            "PyTorch: reserved", "PyTorch: reserved after warming", "PyTorch: all in use")
        self.batches = Table("network", "policy", "largest batch", "planned", "taken", "step")
        self.left_out = Table("what", "why")
        self.missed = self.failed = 0
        self.card = card()

    def remaining(self):
        return self.options.limit - (time.monotonic() - self.start)

    def attempt(self, what, function):
        """What function returns, given the seconds that are left; None where it failed or there are none."""
        print(f"[{time.monotonic() - self.start:5.0f} s] {what} ...", file=sys.stderr, flush=True)
        if self.remaining() < 5:
            self.failed += 1
            self.left_out.row(what, "no time was left")
            return None
        return self.keep_on(what, lambda: function(self.remaining()))

    def keep_on(self, what, function):
        """What function returns; None where it failed: what was measured is kept, and the rest goes on."""
        try:
            return function()
        except Exception as failure:  # pylint: disable=broad-exception-caught
            self.failed += 1
            known = isinstance(failure, (measure.Failed, ValueError))
            self.left_out.row(what, f"failed: {failure}" if known else f"failed: {failure!r}")
            return None

    def judge(self, network, what, bound, value, text):
        reached = value <= bound
        self.missed += not reached
        self.targets.row(network, what, f"at most {bound}", text, "reached" if reached else "**missed**")

    def timed(self, name, spec):
        """Words by which a cell plans with costs that are measured here, once for each spec; what could not be timed
        costs its flops."""
        network = NETWORKS[name]
        if (name, spec) not in self.files:
            words = (spec, f"batch={network.batch}", *common(network))
            path = self.path("costs")
            costs = self.attempt(f"{name}, costs of {spec}",
                                 lambda left: measure.costs(path, *words, timeout=left))
            self.files[name, spec] = (f"costs.file={path}",) if costs else ()
        return self.files[name, spec]

    def path(self, what):
        return os.path.join(self.folder.name, f"{len(self.files)}.{what}.h5")

    def words(self, name, cell):
        """How a cell is asked for."""
        network = NETWORKS[name]
        spec, *policy = network.cells.get(cell, (network.spec, *CELLS[cell]))
        return (spec, *policy, f"batch={network.batch}", *common(network), *self.timed(name, spec))

    def measure(self, name):
        steps, warm = self.options.steps, self.options.warm
        network = NETWORKS[name]
        for cell in CELLS:
            words = (*self.words(name, cell), f"steps={steps}")
            one = self.attempt(f"{name}, {cell}",
                               lambda left, words=words: measure.ours(*words, warm=warm, timeout=left))
            if one:
                self.ours[name, cell] = one
        for who, peer in (PEER, network.peer), (OTHER, network.other):
            if not peer or self.options.no_peer:
                continue
            words = (*peer, "--device", "cuda", "--steps", steps, "--warm", warm, "--policy", *PEER_POLICIES.values())
            done = []
            self.attempt(f"{name}, {who}", lambda left, words=words, done=done: measure.torch_peer(
                sys.executable, *words, timeout=left, done=done))
            self.peers.update(((name, who, cell), one) for cell, one in zip(PEER_POLICIES, done))
        self.keep_on(f"{name}, its rows", lambda: self.tell(name))
        self.gaps(name)

    def gaps(self, name):
        stored = self.ours.get((name, STORE_ALL))
        traced = stored and self.attempt(
            f"{name}, launch gaps",
            lambda left: measure.traced(*self.words(name, STORE_ALL), steps=self.options.warm + 3, timeout=left))
        if traced:
            works, pieces = traced
            share = 1 - min(works) / stored["step_seconds"]
            self.judge(name, "launch gaps: share of a step not covered by kernels", 0.03, share,
                       f"{share:.3f} ({milliseconds(min(works))} on {pieces} kernels and copies)")

    def tell(self, name):
        """The rows of a network."""
        stored = self.ours.get((name, STORE_ALL))
        for cell in CELLS:
            ours = self.ours.get((name, cell))
            if ours:
                factor = ours["step_seconds"] / stored["step_seconds"] if stored else None
                plan = planned(ours, stored)
                self.times.row(name, cell, "ours", milliseconds(ours["step_seconds"]),
                               milliseconds(middle(ours["seconds"][self.options.warm:])), f"{plan:.3f}",
                               f"{factor:.3f}" if factor else "")
                if factor and cell != STORE_ALL:
                    over = factor / plan
                    self.judge(name, f"{cell}: measured : planned time, both over store_all's", 1.03, over,
                               f"{over:.3f}")
            for who in PEER, OTHER:
                peer = self.peers.get((name, who, cell))
                if peer:
                    self.times.row(name, cell, who, milliseconds(peer["step_seconds"]),
                                   milliseconds(middle(peer["seconds"][self.options.warm:])), "", "")
                if ours and peer:
                    self.beside(name, cell, who, ours, peer)
            self.tell_memory(name, cell, ours)

    def beside(self, name, cell, who, ours, peer):
        ratio = ours["step_seconds"] / peer["step_seconds"]
        self.judge(name, f"{cell}: step, ours : {who}", 1.0, ratio, f"{ratio:.3f}")
        share, blocks = (mine / peer["reserved_bytes"] for mine in (taken(ours), ours["peak_bytes"]))
        self.judge(name, f"{cell}: device memory, ours : {who}", 0.8 if cell == STORE_ALL else 0.7, share,
                   f"{share:.3f}; static and arena {blocks:.3f}")

    def tell_memory(self, name, cell, ours):
        peers = [self.peers[name, who, cell] for who in (PEER, OTHER) if (name, who, cell) in self.peers]
        if ours or peers:
            mine = [gib(ours["peak_bytes"]), gib(taken(ours)), gib(ours["device_used_bytes"])] if ours else [""] * 3
            self.memory.row(name, cell, *mine, *(", ".join(gib(peer[key]) for peer in peers)
                                                 for key in ("reserved_bytes", "later_bytes", "device_used_bytes")))

    def largest(self, what, name):
        """The largest batches that a limit holds: by plan, and then run."""
        network = NETWORKS[name]
        words = (network.spec, *CELLS[STORE_ALL], *common(network), "--max-batch", "--memory", LIMIT)
        plan = self.attempt(f"largest batch of {what} in {LIMIT}", lambda left: measure.plan(*words, timeout=left))
        rows = {row["policy"]: row for row in plan["policies"] if row["largest_batch"]} if plan else {}
        for row in (rows[policy] for policy in ("store_all", "optimal") if policy in rows):
            settings = [f"policy.{setting}" for setting in (row["settings"] or "").split()]
            batch = row["largest_batch"]
            how = (network.spec, f"policy.name={row['policy']}", *settings, f"batch={batch}", "steps=3",
                   *common(network))
            one = self.attempt(f"{what}, {row['policy']}, batch {batch}",
                               lambda left, how=how: measure.ours(*how, timeout=left))
            self.batches.row(what, row["policy"], batch, gib(row["peak_bytes"]), gib(taken(one)) if one else "not run",
                             milliseconds(one["step_seconds"]) if one else "")


def common(network):
    return "backend.name=cuda", AUTO, FP32, *network.overrides


def planned(ours, stored):
    """The time of a planned step over store_all's: of passes and what a step does besides, or of passes alone where
    costs are flops."""
    if stored and stored["predicted_seconds"] and ours["predicted_seconds"]:
        return ours["predicted_seconds"] / stored["predicted_seconds"]
    return ours["slowdown"]


def taken(ours):
    """Device memory of a run, without what the device's context and libraries had before."""
    return ours["device_used_bytes"] - ours["device_start_bytes"]


def middle(values):
    return sorted(values)[len(values) // 2] if values else 0.0


def milliseconds(seconds):
    return f"{1000 * seconds:.2f} ms"


def breakdown(bench):
    """Where a step of store_all goes, by the backend's own clocks."""
    table = Table("network", "part of a step", "share", "a step")
    for (name, cell), run in bench.ours.items():
        if cell != STORE_ALL:
            continue
        count = len(run["seconds"])
        parts = sorted(run["clocks"].items(), key=lambda part: -part[1])
        rest = run["all_seconds"] - sum(value for _, value in parts)
        for key, value in *parts, ("between them", rest):
            if value or key == "between them":
                table.row(name, key, f"{100 * value / run['all_seconds']:.1f} %", milliseconds(value / count))
    return table


def card():
    try:
        return measure.output(["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader"],
                              timeout=30)
    except measure.Failed as failure:
        return failure


def provenance(bench):
    table = report.provenance(next(iter(bench.ours.values()), {}).get("provenance", {}))
    table.row("GPU, driver, highest clock", bench.card)
    for peer in list(bench.peers.values())[:1]:
        table.row("PyTorch", f"{peer['torch']}, CUDA {peer['cuda']}, cuDNN {peer['cudnn']}, on {peer['gpu']}")
    table.row("steps a run, of them warming", f"{bench.options.steps}, {bench.options.warm}")
    return table


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="*", choices=list(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--steps", type=int, default=10, help="training steps of a run (default 10)")
    parser.add_argument("--warm", type=int, default=3, help="first steps that do not count (default 3)")
    parser.add_argument("--limit", type=float, default=3600, help="seconds after which nothing more is begun")
    parser.add_argument("--no-peer", action="store_true", help="ours alone")
    parser.add_argument("--no-batches", action="store_true", help="no search for the largest batches")
    parser.add_argument("--out", default="results/bench-gpu.md", help="file of the result")
    options = parser.parse_args()
    if not 0 <= options.warm < options.steps:
        parser.error("--warm: expected fewer than --steps")
    return options


def sections(bench):
    return [("Figures to reach", bench.targets), ("Time of a step", bench.times), ("Device memory", bench.memory),
            (f"Largest batch in {LIMIT}", bench.batches),
            ("Where a step of store_all goes", breakdown(bench)), ("Left out", bench.left_out),
            ("Provenance", provenance(bench))]


def main():
    bench = Bench(arguments())
    for name in bench.options.networks:
        bench.measure(name)
        save(bench.options.out, sections(bench), HEAD)
    for what, name in LARGEST.items() if not bench.options.no_batches else ():
        bench.largest(what, name)
    write(bench.options.out, sections(bench), HEAD)
    return 3 if bench.failed else 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
