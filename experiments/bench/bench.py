#!/usr/bin/python3
"""Compares the speed with PyTorch's and TensorFlow's, and judges the project's targets: `make bench [ARGS="--pairs 1"]`.

The cells of a network are measured in turns: ours, the peers, and ours again in reverse order, so that all see the same
machine. A run's time is that of its fastest step after the first. Between runs of ours, and beside a prediction, it is
the best-case step: the sum of each op's least time over the steps after the first. A shared machine, whose speed also
changes by the minute, only makes ops longer, so a ratio is one of the least times over all runs (for best-case steps, of
each op over all runs of the same plan). The range of the ratios within a turn, and the share of the processors' time
that other guests of the machine took, show how reliable it is. The peers are the newest PyTorch, eager and compiled by
torch.compile, with images in channels-last order, tcmalloc and huge pages; the newest TensorFlow, also compiled by XLA;
and the newest JAX. A ratio is to the fastest peer that stores everything. Samples are random, the same kind for all.
`make bench` installs the peers into build/bench-venv (remove it to renew them). Where it cannot, the output and the
result say so, and Debian's PyTorch is measured.

ResNet-50's memory is compared in the bytes that its plan has alive at once, static memory included, and in those that
PyTorch's allocator had given out at once, which its profiler counts in two further steps.

Exit code 1: a figure misses its target. Targets are judged at the experiments' own sizes only.
"""
import argparse
import collections
import glob
import os
import random
import statistics
import sys
import tempfile
import time

import measure
import report
from report import Table, gib, mib, seconds, spread, write

VGG16, VGG16_BLOCKS = "experiments/vgg16-recompute.yaml", "experiments/vgg16-blocks.yaml"
VGG16_PARETO = "experiments/vgg16-pareto.yaml"
RESNET50, MOBILENET = "experiments/resnet50-pareto.yaml", "experiments/mobilenet-pareto.yaml"
UNET = "experiments/unet-pareto.yaml"
GPT2 = "experiments/gpt2-124m.yaml"
SAMPLE_CNN, BERT = "experiments/sample-cnn-recompute.yaml", "experiments/bert-recompute.yaml"
OUTPUTS, BITS = "relu_save=output", "relu_save=bits"
STORE_ALL, SEGMENTS = "policy=store_all", ("policy.name=segments", "policy.segments=5")
EVERY_BLOCK, OPTIMAL = ("policy.name=every", "policy.unit=group"), "policy.name=optimal"
ALONE, PRODUCT, PRODUCT_ROWS = "a product alone", "experiments/bench/product.yaml", 8192
GIB = 1024 ** 3

# A peer: its script in bench/, and that script's arguments.
Peer = collections.namedtuple("Peer", "script arguments", defaults=((),))
TORCH, TENSORFLOW, JAX, ADAMW = "torch_peer.py", "tf_peer.py", "jax_peer.py", ("--optimizer", "adamw")
NORMALISED = {"PyTorch": Peer(TORCH)}  # the other peers have no network with batch normalisation
if measure.NEWEST:
    NORMALISED = {"PyTorch": Peer(TORCH, ("--channels-last",)),
                  "PyTorch, compiled": Peer(TORCH, ("--channels-last", "--compile"))}
IMAGES = dict(NORMALISED)
if measure.NEWEST:
    IMAGES.update({"TensorFlow": Peer(TENSORFLOW), "TensorFlow, XLA": Peer(TENSORFLOW, ("--jit",)),
                   "TensorFlow, recomputed": Peer(TENSORFLOW, ("--policy", "recompute")),
                   "JAX": Peer(JAX), "JAX, recomputed": Peer(JAX, ("--policy", "checkpoint"))})
PEERS_ARE = ("the newest PyTorch, TensorFlow and JAX, installed by pip" if measure.NEWEST else
             "Debian's PyTorch alone: the newest peers could not be installed (build/bench-venv)")
BEST = "best peer"  # that stores everything

# Of ResNet-50: without a convolution in what is recomputed, and within 0.6 of the bytes that PyTorch allocates. Norms
# contain their relus and sums. A norm that adds a shortcut writes sign bits as it goes, and its backward reads them in
# less time than the output.
CHEAP, CHEAPEST = "norms recomputed", "optimal 57.6 %"

# Of GPT-2 with 128 tokens a sample, of which 26 % is the least that optimal needs for a slowdown of 1.1.
TOKENS, CHUNKS, CHUNKED = ("data.length=128", "sweep={}"), "loss={chunks: 8}", "8 chunks, optimal 26 %"


def images(side, channels, classes):
    return f"data={{name: synthetic, shape: [{side}, {side}, {channels}], classes: {classes}}}"


VGG16_IMAGES, SAMPLE_IMAGES = images(224, 3, 1000), images(256, 1, 10)

# network -> its batch, and its cells: name -> our spec and overrides, or a peer.
TURNS = {
    "vgg16": (64, {
        "store_all": (VGG16, STORE_ALL, OUTPUTS, VGG16_IMAGES),
        "segments 5": (VGG16, *SEGMENTS, OUTPUTS, VGG16_IMAGES),
        "optimal 64 %": (VGG16_PARETO, OPTIMAL, "policy.budget=64%", VGG16_IMAGES),
        "optimal 46 %": (VGG16_PARETO, OPTIMAL, "policy.budget=46%", VGG16_IMAGES),
        **IMAGES}),
    "sample-cnn": (16, {
        "store_all": (SAMPLE_CNN, STORE_ALL, OUTPUTS, SAMPLE_IMAGES),
        **IMAGES}),
    "bert": (64, {
        "store_all": (BERT, STORE_ALL),
        "every block": (BERT, *EVERY_BLOCK),
        "optimal 40 %": (BERT, OPTIMAL, "policy.budget=40%"),
        "optimal 20 %": (BERT, OPTIMAL, "policy.budget=20%"),
        ALONE: (PRODUCT, f"batch={PRODUCT_ROWS}", "steps=10"),
        "PyTorch": Peer(TORCH, ADAMW),
        **({"PyTorch, fused attention": Peer(TORCH, ("--fused", *ADAMW))} if measure.NEWEST else {}),
        "PyTorch, every block": Peer(TORCH, ("--policy", "every", *ADAMW))}),
    "gpt2": (8, {
        "store_all": (GPT2, STORE_ALL, *TOKENS),
        "store_all, chunks": (GPT2, STORE_ALL, *TOKENS, CHUNKS),
        CHUNKED: (GPT2, OPTIMAL, "policy.budget=26%", *TOKENS, CHUNKS),
        "PyTorch": Peer(TORCH, ADAMW),
        **({"PyTorch, compiled": Peer(TORCH, ("--compile", *ADAMW)),
            "PyTorch, fused attention": Peer(TORCH, ("--fused", *ADAMW))} if measure.NEWEST else {}),
        "PyTorch, every block": Peer(TORCH, ("--policy", "every", *ADAMW))}),
    "resnet50": (32, {
        "store_all": (RESNET50, STORE_ALL),
        CHEAP: (RESNET50, "policy={name: selective, kinds: [norm]}"),
        CHEAPEST: (RESNET50, OPTIMAL, "policy.budget=57.6%", BITS),
        "optimal 50 %": (RESNET50, OPTIMAL, "policy.budget=50%"),
        **NORMALISED}),
    "mobilenet": (32, {"store_all": (MOBILENET, STORE_ALL), **NORMALISED}),
    "unet": (16, {"store_all": (UNET, STORE_ALL), **NORMALISED}),
}

# network -> the spec and overrides of a run before the cells of ours, by whose times they are planned.
COSTS = {"vgg16": (VGG16_PARETO, "sweep={}"), "resnet50": (RESNET50, BITS)}

NAMES = {"vgg16": "VGG16", "sample-cnn": "sample CNN", "bert": "BERT base", "gpt2": "GPT-2",
         "resnet50": "ResNet-50", "mobilenet": "MobileNet", "unet": "U-Net"}

# What must be reached in time: text, network, numerator, denominator, sign, bound.
RATIOS = [
    ("VGG16 step: best peer : store_all", "vgg16", BEST, "store_all", "at least", 2.25),
    ("VGG16 step: recomputed by segments : store_all", "vgg16", "segments 5", "store_all", "at most", 1.35),
    ("VGG16 step: best peer, all stored : ours by segments", "vgg16", BEST, "segments 5", "at least", 1.8),
    *((f"VGG16 step: optimal at {budget} % of the live peak, relus after pools : store_all", "vgg16",
       f"optimal {budget} %", "store_all", "at most", bound) for budget, bound in ((64, 1.00), (46, 1.03))),
    ("sample CNN step: best peer : store_all", "sample-cnn", BEST, "store_all", "at least", 2),
    ("BERT base step: every block : store_all", "bert", "every block", "store_all", "at most", 1.34),
    *((f"BERT base step: optimal at {budget} % of the live peak : store_all", "bert", f"optimal {budget} %",
       "store_all", "at most", bound) for budget, bound in ((40, 1.11), (20, 1.22))),
    ("BERT base step: best peer : store_all", "bert", BEST, "store_all", "at least", 1.4),
    ("BERT base step: PyTorch, every block : ours, every block", "bert", "PyTorch, every block", "every block",
     "at least", 1.25),
    ("GPT-2 step: best peer : store_all", "gpt2", BEST, "store_all", "at least", 1.3),
    ("GPT-2 step: 8 chunks : whole logits, all stored", "gpt2", "store_all, chunks", "store_all", "at most", 1.15),
    ("GPT-2 step: 8 chunks, optimal at 26 % of the live peak : all stored", "gpt2", CHUNKED, "store_all, chunks",
     "at most", 1.12),
    ("ResNet-50 step: best peer : store_all", "resnet50", BEST, "store_all", "at least", 1.6),
    ("ResNet-50 step: optimal at 50 % of the live peak : store_all", "resnet50", "optimal 50 %", "store_all",
     "at most", 1.12),
    *((f"ResNet-50 step: {cell} : store_all", "resnet50", cell, "store_all", "at most", 1.04)
      for cell in (CHEAP, CHEAPEST)),
    ("MobileNet step: best peer : store_all", "mobilenet", BEST, "store_all", "at least", 1.4),
    ("U-Net step: best peer : store_all", "unet", BEST, "store_all", "at least", 1.4),
]


def is_peer(network, cell):
    return isinstance(TURNS[network][1].get(cell), Peer)


class Bench:
    """The measurements so far, and the verdicts."""

    def __init__(self, options):
        self.options = options
        self.cells = {}  # (network, cell) -> list of what measure.py returned, one a run
        self.peaks = {}  # network -> flops a second that arithmetic allows, at times between the cells
        self.targets = Table("figure", "target", "measured", "")
        self.missed = 0
        self.failed = []
        self.start = time.monotonic()

    def say(self, text):
        print(f"[{time.monotonic() - self.start:5.0f} s] {text}", file=sys.stderr, flush=True)

    def judge(self, what, sign, bound, value, target, measured, own_size=True):
        verdict = "not judged"
        if own_size and self.options.batch is None:
            reached = value >= bound if sign == "at least" else value <= bound
            verdict = "reached" if reached else "**missed**"
            self.missed += not reached
        self.targets.row(what, target, measured, verdict)

    def measure(self, network):
        batch = self.options.batch or TURNS[network][0]
        ours, peers = ([cell for cell in TURNS[network][1] if is_peer(network, cell) == peer] for peer in (False, True))
        common = {"batch": batch, "backend.threads": self.options.threads}
        timed = dict(common)
        with tempfile.TemporaryDirectory(prefix="rematch-bench-") as folder:
            costs = os.path.join(folder, "costs.h5")
            for turn in range(self.options.pairs):
                began = time.monotonic()
                self.say(f"{network}, turn {turn + 1} of {self.options.pairs}")
                for cells in ours, peers, list(reversed(ours)):
                    if network in COSTS and cells != peers:
                        measure.costs(costs, *COSTS[network], *(f"{key}={value}" for key, value in timed.items()))
                        common["costs.file"] = costs
                    for cell in cells:
                        self.measure_cell(network, cell, common)
                    self.peaks.setdefault(network, []).append(measure.peak(self.options.threads))
                left = (self.options.pairs - turn - 1) * (time.monotonic() - began) / 60
                self.say(f"{network}: about {left:.0f} min left")

    def measure_cell(self, network, cell, common):
        """A peer that fails is left out from then on, and the result says so."""
        if cell not in TURNS[network][1]:
            return
        try:
            with measure.Stolen() as stolen:
                one = self.run(network, TURNS[network][1][cell], common)
        except measure.Failed as failure:
            if not is_peer(network, cell):
                raise
            lines = str(failure).strip().splitlines()
            last = next((line for line in reversed(lines) if "Error" in line), "it printed no error")
            self.say(f"    {cell} failed and is left out: {last}")
            self.failed.append((f"{cell}, {network}", f"failed and left out: {last}"))
            del TURNS[network][1][cell]
            self.cells.pop((network, cell), None)
            return
        self.cells.setdefault((network, cell), []).append({**one, "stolen": stolen.share})
        self.say(f"    {one['step_seconds']:.2f} s a step of {common['batch']}, {cell}")

    def run(self, network, cell, common):
        """common: what of a spec all cells override."""
        if isinstance(cell, Peer):
            return measure.peer(network, common["batch"], self.options.steps, self.options.threads, cell)
        spec, *own = cell
        words = {**common, "steps": self.options.steps, **dict(word.split("=", 1) for word in own)}
        return measure.ours(spec, *(f"{key}={value}" for key, value in words.items()))

    def values(self, network, cell, key):
        return [one[key] for one in self.cells[network, cell]]

    def times(self, network, cell):
        return self.values(network, cell, "step_seconds")

    def least(self, network, cell, key):
        """Over all runs; of best-case steps, of each op over all runs of the same plan."""
        if key != "best_case_seconds":
            return min(self.values(network, cell, key))
        plans = collections.defaultdict(list)
        for run in self.cells[network, cell]:
            plans[run["plan"]].append(run["parts"])
        return min(sum(map(min, zip(*runs))) for runs in plans.values()) * 1e-9

    def turns(self, network, cell, key):
        """The least of each turn."""
        values = self.values(network, cell, key)
        runs = len(values) // self.options.pairs
        return [min(values[first:first + runs]) for first in range(0, len(values), runs)]

    def resolved(self, network, cell):
        """The cell that BEST is; None: it was not measured."""
        stored = [name for name, peer in TURNS[network][1].items()
                  if is_peer(network, name) and "--policy" not in peer.arguments]
        if cell == BEST and stored:
            return min(stored, key=lambda name: self.least(network, name, "step_seconds"))
        return cell if (network, cell) in self.cells else None

    def ratios(self, networks):
        for what, network, above, below, sign, bound in RATIOS:
            above = self.resolved(network, above) if network in networks else None
            if above and (network, below) in self.cells:
                what = what.replace(BEST, f"{BEST} ({above})")
                key = "step_seconds" if is_peer(network, above) else "best_case_seconds"
                ratio = self.least(network, above, key) / self.least(network, below, key)
                each = zip(self.turns(network, above, key), self.turns(network, below, key))
                self.judge(what, sign, bound, round(ratio, 2), f"{sign} {bound}",  # as it is printed
                           spread(ratio, [a / b for a, b in each]))


def source(bench):
    """What the first experiment's source says of recomputation, by TensorFlow's own functions."""
    cells = "TensorFlow, recomputed", "TensorFlow"
    if all(("vgg16", cell) in bench.cells for cell in cells):
        (time_, memory_), (stored, high) = ([bench.least("vgg16", cell, key) for key in ("step_seconds", "high_water_mib")]
                                            for cell in cells)
        bench.targets.row("VGG16, TensorFlow: recompute_grad around each block : all stored", "",
                          f"x{time_ / stored:.2f} in time, x{memory_ / high:.2f} of the high-water mark", "")


def predictions(bench, networks):
    """Undisturbed steps beside what is predicted of them by the costs known then."""
    def off(measured, predicted):
        return 100 * (measured / predicted - 1)

    for network in (network for network in networks if network in COSTS):
        for cell in (cell for cell in TURNS[network][1] if not is_peer(network, cell)):
            keys = "best_case_seconds", "predicted_seconds"
            least = off(*(bench.least(network, cell, key) for key in keys))
            each = [off(*pair) for pair in zip(*(bench.values(network, cell, key) for key in keys))]
            bench.judge(f"{NAMES[network]} step: measured above predicted, {cell}", "at most", 5, abs(least),
                        "within 5 %", f"{least:+.1f} % (of each run {min(each):+.1f} to {max(each):+.1f})")


def time_table(bench, networks):
    table = Table("network", "cell", "median", "least", "most", "each run", "best-case", "taken by other guests",
                  "process at start", "high-water mark", "without start")
    for network in networks:
        for cell in TURNS[network][1]:
            each, memory = bench.times(network, cell), bench.cells[network, cell][0]
            table.row(network, cell, seconds(statistics.median(each)), seconds(min(each)), seconds(max(each)),
                      " ".join(f"{t:.2f}" for t in each),
                      "" if is_peer(network, cell) else
                      " ".join(f"{t:.2f}" for t in bench.values(network, cell, "best_case_seconds")),
                      " ".join(f"{100 * share:.0f} %" for share in bench.values(network, cell, "stolen")),
                      f"{memory['before_mib']:.0f} MiB", f"{memory['high_water_mib']:.0f} MiB",
                      f"{memory['high_water_mib'] - memory['before_mib']:.0f} MiB")
    return table


def breakdown(bench, network):
    """Where the time of all steps of our store_all runs went; and the share of convolutions and linear layers."""
    runs = bench.cells[network, "store_all"]
    total = sum(run["all_seconds"] for run in runs)
    parts = {key: sum(run["clocks"][key] for run in runs) for key in runs[0]["clocks"]}
    table = Table("part of a step", "share", "seconds a step")
    count = sum(len(run["seconds"]) for run in runs)
    for key, value in sorted(parts.items(), key=lambda part: -part[1]):
        table.row(key, f"{100 * value / total:.1f} %", f"{value / count:.3f}")
    rest = total - sum(parts.values())
    table.row("between them", f"{100 * rest / total:.1f} %", f"{rest / count:.3f}")
    return table, (parts["conv"] + parts["linear"]) / total


def bert_flops(bench):
    """Of the matrix products of a step with every pass once: forward, and two products backward for each."""
    batch, length, width, hidden, blocks = bench.options.batch or TURNS["bert"][0], 128, 768, 3072, 12
    linear, attention = 4 * width * width + 2 * width * hidden, 2 * length * width
    return 3 * blocks * 2 * batch * length * (linear + attention)


def bert_rate(bench):
    """At which a whole best-case step, with all else in its time, does them."""
    return bert_flops(bench) / bench.least("bert", "store_all", "best_case_seconds")


def products(bench):
    """What judge() wants of the rate of a whole best-case step's matrix products, with all else in its time, by the
    rate of a large product alone: the mean of its forward and of its weights' gradient in a network of nothing else, in
    the fastest run."""
    width, hidden = 768, 3072
    alone = 2 * 2 * PRODUCT_ROWS * width * hidden / min(run["clocks"]["linear"] / len(run["seconds"])
                                                  for run in bench.cells["bert", ALONE])
    rate = bert_rate(bench)
    return rate / alone, "at least 75 %", f"{100 * rate / alone:.1f} % ({rate / 1e9:.0f} of {alone / 1e9:.0f} GFLOP/s)"


def ceilings(bench):
    """How far the ratios to PyTorch could go on this machine: were a step nothing but its products, and they as fast as
    multiply-adds on registers alone."""
    peak = max(bench.peaks["bert"])
    rate = bert_rate(bench)
    bench.targets.row("BERT base step: matrix products' rate, of that of multiply-adds on registers", "",
                      f"{100 * rate / peak:.1f} % ({rate / 1e9:.0f} of {peak / 1e9:.0f} GFLOP/s)", "")
    for what, network, above, below, *_ in RATIOS:
        above = bench.resolved(network, above) if network == "bert" else None
        if above and is_peer(network, above):
            least = bench.cells[network, below][0]["slowdown"] * bert_flops(bench) / peak
            bench.targets.row(f"{what}, if ours were those alone at that rate", "",
                              f"{bench.least(network, above, 'step_seconds') / least:.2f}", "")


def shares(bench, networks):
    tables = {}
    for network in networks:
        tables[network], share = breakdown(bench, network)
        if network == "bert":
            bench.judge("BERT base step: matrix products' rate, of that of 8192x3072x768 alone", "at least", 0.75,
                        *products(bench))
            ceilings(bench)
        if network == "resnet50":
            bench.judge("ResNet-50 step: share outside convolution and linear primitives", "at most", 0.25, 1 - share,
                        "under 25 %", f"{100 * (1 - share):.1f} %")
        if network == "vgg16":
            bench.judge("VGG16 step: share of convolution and linear primitives", "at least", 0.85, share,
                        "at least 85 %", f"{100 * share:.1f} %")
    return tables


def overhead(bench):
    most = max(run["overhead"] for (network, cell), runs in bench.cells.items()
               if not is_peer(network, cell) and cell != ALONE for run in runs)
    bench.judge("process overhead: high-water mark minus static minus arena, largest", "at most", 150 * 1024 ** 2, most,
                "under 150 MiB", mib(most))


def live(spec, *overrides):
    return measure.plan(spec, *overrides)["live_peak_bytes"]


def memory(bench):
    """What the plans say; no time is measured here but the planning's own."""
    bench.say("plans ...")
    plain = measure.plan(VGG16, STORE_ALL, OUTPUTS)
    outputs, static = plain["live_peak_bytes"], plain["static_bytes"]

    def most(what, bound, value):
        bench.judge(what, "at most", bound * GIB, value, f"at most {bound} GiB", gib(value))

    def share(what, bound, value):
        bench.judge(what, "at most", bound / 100, value / outputs, f"at most {bound} %",
                    f"{100 * value / outputs:.1f} % ({mib(value)})")

    most("VGG16 live peak, store_all, outputs kept", 3.9, outputs)
    most("VGG16 live peak, store_all, relu bits", 2.5, live(VGG16, STORE_ALL, BITS))
    most("VGG16 static memory", 1.07, static)
    share("VGG16 live peak, manual by block, bits, keep_saved, of store_all with outputs", 46, live(VGG16_BLOCKS))
    share("the same with keep_saved: false", 54,
          live(VGG16_BLOCKS, "policy.keep_saved=false"))
    most("sample CNN live peak, store_all, outputs kept", 2.9, live(SAMPLE_CNN, STORE_ALL, OUTPUTS))
    most("sample CNN live peak, store_all, relu bits", 1.6, live(SAMPLE_CNN, STORE_ALL, BITS))
    stored = measure.plan(BERT, STORE_ALL)
    most("BERT base live peak, store_all", 5.6, stored["live_peak_bytes"])
    most("BERT base live peak, every block", 1.0, live(BERT, *EVERY_BLOCK))
    for name, spec, budget, bound in (("VGG16", VGG16_PARETO, 64, 0), ("VGG16", VGG16_PARETO, 46, 1),
                                      ("BERT base", BERT, 40, 8), ("BERT base", BERT, 20, 18)):
        more = round(100 * measure.plan(spec, OPTIMAL, f"policy.budget={budget}%")["slowdown"] - 100, 1)
        bench.judge(f"{name} planned time, optimal at {budget} % of the live peak", "at most", bound, more,
                    f"at most +{bound} %", f"{more:+.1f} %")
    plans = [measure.plan(VGG16) for _ in range(5)]
    planning, preparing = (statistics.median(plan[key] for plan in plans) for key in ("planning_ms", "preparing_ms"))
    bench.judge("planning VGG16, kernels prepared", "at most", 50, planning, "under 50 ms",
                f"{planning:.1f} ms (and {preparing:.0f} ms before it to prepare the kernels)")


def allocated(bench):
    """ResNet-50's planned live peak beside the most bytes of PyTorch's tensors, which contain parameters, gradients and
    batch; so does the live peak with static memory. Of PyTorch's memory formats the one with less counts."""
    def of(cell, static):
        run = bench.cells["resnet50", cell][0]
        return run["live_peak_bytes"] + static * run["static_bytes"]

    peers = [peer for peer in TURNS["resnet50"][1].values() if isinstance(peer, Peer)]
    if not peers:
        return
    bench.say("PyTorch's allocations ...")
    batch = bench.options.batch or TURNS["resnet50"][0]
    least = min(measure.peer("resnet50", batch, 2, bench.options.threads,
                             peer._replace(arguments=("--allocated", *peer.arguments)))["allocated_bytes"]
                for peer in peers)
    for cell, static, bound in ("store_all", True, None), (CHEAP, False, 0.6), (CHEAP, True, None), (CHEAPEST, True, 0.6):
        what = f"ResNet-50 live peak{' and static' if static else ''}, {cell} : PyTorch's peak of allocated bytes"
        share = of(cell, static) / least
        text = f"{share:.3f} ({mib(of(cell, static))} of {mib(least)})"
        if bound:
            bench.judge(what, "at most", bound, share, f"at most {bound}", text)
        else:
            bench.targets.row(what, "", text, "")


def allocated_tokens(bench):
    """GPT-2's planned live peak beside what PyTorch's tensors take, of its checkpoints the one with less: with what is
    static here but for parameters and state, which both have, and with all of it. Where PyTorch's peak is at the end of
    the backward, gradients of parameters are most of it."""
    run = bench.cells["gpt2", CHUNKED][0]
    if not any(is_peer("gpt2", cell) for cell in TURNS["gpt2"][1]):
        return
    bench.say("PyTorch's allocations ...")
    peers = [measure.peer("gpt2", bench.options.batch or TURNS["gpt2"][0], 2, bench.options.threads,
                          Peer(TORCH, ("--allocated", "--policy", policy, *ADAMW))) for policy in ("every", "sqrt")]
    least = min(peers, key=lambda peer: peer["allocated_bytes"])
    ours, theirs = run["live_peak_bytes"] + run["static_bytes"], least["allocated_bytes"]
    kept = 3 * 4 * least["parameters"]
    for what, less in ("live peak and gradients of parameters", kept), ("live peak and static", 0):
        bench.targets.row(f"GPT-2 {what}, {CHUNKED} : PyTorch's allocated bytes, {least['policy']}"
                          f"{', less parameters and state' if less else ''}", "",
                          f"{(ours - less) / (theirs - less):.3f} ({mib(ours - less)} of {mib(theirs - less)})", "")


def random_chain(stages):
    """A graph file's text, of a chain; the same one every time."""
    numbers = random.Random(1)
    rows = [f"  - {{name: s{i}, forward: {numbers.randint(1, 100)}, backward: {numbers.randint(1, 200)}, "
            f"output: {256 * numbers.randint(1, 100)}, saved: {256 * numbers.randint(0, 300)}, "
            f"gradient: {256 * numbers.randint(1, 100)}}}" for i in range(stages)]
    return "\n".join(["rematch: 1", "name: random", "stages:", *rows, ""])


DEEP_POLICIES = {
    "store_all": "store_all", "every": "every", "segments": "{name: segments, segments: 30}", "sqrt": "sqrt", "chen": "chen",
    "revolve": "revolve", "selective": "{name: selective, kinds: [norm]}", "manual": "{name: manual, groups: ['stage1[5]']}",
    "dtr at 60 %": "{name: dtr, budget: 60%}", "dtr at 20 %": "{name: dtr, budget: 20%}"}


def planning(bench):
    """Processor seconds and memory of `rematch plan`: of an exact front, of one budget, and of 1,000 stages and blocks."""
    bench.say("planning ...")
    with tempfile.TemporaryDirectory(prefix="rematch-bench-") as folder:
        chains = {}
        for stages in 100, 200, 1000:
            chains[stages] = os.path.join(folder, f"{stages}.yaml")
            with open(chains[stages], "w", encoding="utf-8") as file:
                file.write(random_chain(stages))
        deep = "experiments/plans/resnet-depth.yaml"
        networks = {
            "ResNet": (deep, "model.file=" + os.path.join(measure.ROOT, "experiments/models/resnet-cifar.yaml"),
                       "model.parameters.more=332", "data={name: synthetic, shape: [32, 32, 3], classes: 10}"),
            "pre-activation ResNet": (deep, *(f"model.parameters.more{i}={more}" for i, more in
                                              ((1, 83), (2, 249), (3, 582), (4, 82))))}
        rows = [("exact front of 100 random stages", ("--graph", chains[100]), 1, None)]
        rows += [(f"200 random stages, {budget}", ("--graph", chains[200], OPTIMAL, f"policy.budget={budget}"), 5, 200)
                 for budget in ("30%", "15%", "least")]
        rows += [("1,000 random stages, 40 %", ("--graph", chains[1000], OPTIMAL, "policy.budget=40%"), 60, None)]
        rows += [(f"{network} of 1,000 blocks, {name}", (*words, f"policy={policy}"), 2, None)
                 for network, words in networks.items() for name, policy in DEEP_POLICIES.items()]
        rows += [("ResNet of 1,000 blocks, optimal at 20 %",
                  (*networks["ResNet"], OPTIMAL, "policy.budget=20%", "--alone"), 60, None)]
        for what, words, seconds_, mib_ in rows:
            took, most = measure.usage([measure.PROGRAM, "plan", *words])
            bench.judge(f"planning {what}", "at most", seconds_, took, f"under {seconds_} s", f"{took:.2f} s, {most:.0f} MiB")
            if mib_:
                bench.judge(f"memory of planning {what}", "at most", mib_, most, f"under {mib_} MiB", f"{most:.0f} MiB")
        smaller = (word.replace("more=332", "more=32") for word in networks["ResNet"])
        took, most = measure.usage([measure.PROGRAM, "plan", *smaller, "--max-batch", "--memory", "4GB"])
        bench.targets.row("planning --max-batch, ResNet of 99 blocks in 4 GB", "", f"{took:.2f} s, {most:.0f} MiB", "")


def arenas(bench):
    """Arena bytes over live peak and over the proven bound, of every experiment's own plan."""
    table = Table("experiment", "policy", "live peak", "arena", "arena : live peak", "arena : bound", "static")
    worst = 0
    for spec in sorted(glob.glob(os.path.join(measure.ROOT, "experiments", "*.yaml"))):
        name = os.path.splitext(os.path.basename(spec))[0]
        try:
            plan = measure.plan(spec)
        except measure.Failed as failure:
            bench.say(f"{name}: not planned: {failure}")
            table.row(name, "not planned here", "", "", "", "", "")
            continue
        ratio = plan["arena_bytes"] / plan["live_peak_bytes"]
        worst = max(worst, ratio)
        table.row(name, plan["policy"], mib(plan["live_peak_bytes"]), mib(plan["arena_bytes"]), f"{ratio:.4f}",
                  f"{plan['arena_bytes'] / plan['arena_bound_bytes']:.4f}", mib(plan["static_bytes"]))
    bench.judge("arena bytes : live peak, largest over the experiments' own plans", "at most", 1.0, round(worst, 4),
                "at most 1.0000", f"{worst:.4f}")
    return table


PEER_KEYS = "torch", "tensorflow", "jax", "onednn", "blas", "parameters", "losses"


def provenance(bench, networks):
    ours = [runs[0] for key, runs in bench.cells.items() if not is_peer(*key)]
    table = report.provenance(ours[0]["provenance"] if ours else measure.planner(VGG16))
    for (network, cell), (peer, *_) in bench.cells.items():
        if is_peer(network, cell):
            table.row(f"{cell}, {network}", ", ".join(f"{key} {peer[key]}" for key in PEER_KEYS if key in peer))
    for row in bench.failed:
        table.row(*row)
    if networks:
        table.row("turns, steps a run, threads", f"{bench.options.pairs}, {bench.options.steps}, {bench.options.threads}")
        table.row("networks", ", ".join(networks))
        table.row("peers", PEERS_ARE)
    return table


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5, help="turns of each network (default 5)")
    parser.add_argument("--steps", type=int, default=3, help="training steps of a run (default 3; 2 is quicker)")
    parser.add_argument("--batch", type=int, help="instead of the experiments' own sizes; nothing is judged then")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--networks", nargs="*", choices=sorted(TURNS), default=list(TURNS), help="none: plans alone")
    parser.add_argument("--ours", action="store_true", help="without peers")
    parser.add_argument("--peers", default="", help="peers alone whose names begin so, such as PyTorch")
    parser.add_argument("--stored", action="store_true", help="only where everything is stored, and no planning")
    parser.add_argument("--out", help="file of the result (default results/bench-cpu.md where everything is measured)")
    options = parser.parse_args()
    if min(options.pairs, options.steps, options.threads, options.batch or 1) < 1:
        parser.error("--pairs, --steps, --threads and --batch: expected 1 or more")
    for network, (_, cells) in TURNS.items():
        for cell in list(cells):
            stores = "--policy" not in cells[cell].arguments if is_peer(network, cell) else cell.startswith("store_all")
            left_out = is_peer(network, cell) and (options.ours or not cell.startswith(options.peers))
            if left_out or options.stored and not (stores or cell == ALONE):
                del cells[cell]
    return options


def main():
    options = arguments()
    bench = Bench(options)
    networks = options.networks
    sections = []
    bench.say(f"peers: {PEERS_ARE}" if networks and not options.ours else "no peers")
    for network in networks:
        bench.measure(network)
    bench.ratios(networks)
    source(bench)
    predictions(bench, networks)
    if "resnet50" in networks and not options.stored:
        allocated(bench)
    if "gpt2" in networks and not options.stored:
        allocated_tokens(bench)
    for network, table in shares(bench, networks).items():
        sections.append((f"Where a step of {network} goes (store_all)", table))
    if networks:
        sections.insert(0, ("Seconds a step, of the fastest after a run's first", time_table(bench, networks)))
        overhead(bench)
    if options.batch is None and not options.stored:
        memory(bench)
        planning(bench)
        sections.append(("Memory of the experiments' own plans", arenas(bench)))
    sections.append(("Provenance", provenance(bench, networks)))
    everything = options.batch is None and not (options.ours or options.stored) and set(networks) == set(TURNS)
    out = options.out or ("results/bench-cpu.md" if everything else None)
    write(out, [("Figures to reach", bench.targets), *sections])
    return 1 if bench.missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except measure.Failed as failure:
        sys.exit(f"bench: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
