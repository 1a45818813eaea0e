#!/usr/bin/python3
"""What `optimal` promises, and what each of its engines wins: `make bench-engines [ARGS="--budgets 10 --out FILE"]`.

Every model is planned within budgets spread over its range, by flops. For each of them: whether less memory was ever faster
(monotone), whether fewer bytes than the least are enough, whether a plan of another policy or of the least budget is ever faster in
its own bytes or those bytes are refused (behind), and how much slower the plans become without each engine (`policy.without`), and
faster, which none may.

The models: those of experiments/models, some of them also in slices; four more of the kinds that are planned worst, made here:
U-Net++ (Zhou et al., 2018), an Inception-like net, an HRNet-like net and an EfficientNet-like net of inverted residuals; steps of
PyTorch as they were exported (tests/torch_graphs); steps of random operators (random_trace.py); and, where $REMATCH_DATA has them,
the traces of DTR's authors (experiments/plans/dtr-traces.py).

Exit code 1: a promise is broken.
"""
import argparse
import glob
import json
import math
import os
import subprocess
import sys
import tempfile

import measure
import random_trace
import report
from report import Table

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../plans"))
from traced_graph import graph_of, read  # noqa: E402

MODELS = os.path.join(HERE, "../models")
GRAPHS = os.path.join(HERE, "../../tests/torch_graphs")
TRACES = os.path.join(os.environ.get("REMATCH_DATA", ""), "graphs")
PROGRAM = os.environ["REMATCH_BIN"]
ENGINES = ("chain", "dtr", "msps", "drops", "states", "windows", "policies", "slices")
SHARES = (80, 60, 45, 30)  # of store_all's live peak, at which engines are left out
OTHERS = ("store_all", "sqrt", "chen", "every", "{name: selective, kinds: [weightless]}", "{name: dtr, budget: 60%}",
          "{name: dtr, budget: 40%}", "{name: dtr, budget: least}")
BELOW = (99.5, 98, 95)  # of the least budget's bytes, in which nothing may be found
NOISE = 1e-9


def conv(channels, kernel=3, stride=1, groups=1, activation="relu"):
    padding = kernel // 2
    return f"conv: {{channels: {channels}, kernel: {kernel}, stride: {stride}, padding: {padding}, groups: {groups}, activation: {activation}}}"


def unetpp():
    lines, width = [], (16, 32, 64, 128)
    for depth, channels in enumerate(width):
        lines += ["- max_pool: {kernel: 2}"] if depth else []
        lines.append(f"- group: {{name: x{depth}0, layers: [{{{conv(channels)}}}, {{{conv(channels)}}}]}}")
    for column in range(1, 4):
        for depth in range(4 - column):
            lines += [f"- group:\n    name: x{depth}{column}\n    layers:",
                      f"      - upsample: {{factor: 2, from: x{depth + 1}{column - 1}}}"]
            lines += [f"      - concat: {{from: x{depth}{before}}}" for before in range(column)]
            lines += [f"      - {conv(width[depth])}"] * 2
    return lines, 64


def inception():
    lines = [f"- {conv(32, stride=2)}", f"- {conv(64)}"]
    for block in range(6):
        wide = 32 + 16 * block
        lines += ["- concat:\n    layers:\n      - concat:\n          layers:",
                  f"            - {conv(wide, 1)}", "          shortcut:", f"            - {conv(wide, 1)}",
                  f"            - {conv(wide)}", "    shortcut:\n      - concat:\n          layers:",
                  f"            - {conv(wide // 2, 1)}", f"            - {conv(wide // 2)}", f"            - {conv(wide // 2)}",
                  "          shortcut:", "            - max_pool: {kernel: 3, stride: 1, padding: 1}",
                  f"            - {conv(wide // 2, 1)}"]
        lines += ["- max_pool: {kernel: 2}"] if block % 3 == 2 else []
    return lines, 64


def hrnet():
    lines = [f"- {conv(32)}", f"- group: {{name: high0, layers: [{{{conv(32)}}}]}}",
             f"- group: {{name: low0, layers: [{{{conv(64, stride=2)}}}]}}"]
    for stage in range(1, 5):
        lines += [f"- group:\n    name: high{stage}\n    layers:", f"      - upsample: {{factor: 2, from: low{stage - 1}}}",
                  f"      - concat: {{from: high{stage - 1}}}", f"      - {conv(32)}", f"      - {conv(32)}",
                  f"- group:\n    name: low{stage}\n    layers:", f"      - {conv(64, stride=2)}",
                  f"      - concat: {{from: low{stage - 1}}}", f"      - {conv(64)}", f"      - {conv(64)}"]
    return lines, 64


def efficientnet():
    lines, before = [f"- {conv(32, stride=2)}"], 32
    for channels, count, stride, kernel in ((16, 1, 1, 3), (24, 2, 2, 3), (40, 2, 2, 5), (80, 3, 2, 3), (112, 3, 1, 5), (192, 4, 2, 5)):
        for at in range(count):
            inside = [conv(6 * before, 1), conv(6 * before, kernel, stride if at == 0 else 1, 6 * before),
                      conv(channels, 1, activation="none"), "batch_norm"]
            if at and channels == before:
                lines += ["- residual:\n    layers:"] + [f"      - {layer}" for layer in inside]
            else:
                lines += [f"- {layer}" for layer in inside]
            before = channels
    return lines, 128


def spec(lines, size, file=None, classes=10, slices=1):
    model = f"file: {file}" if file else "layers:\n" + "\n".join("    " + line.replace("\n", "\n    ") for line in lines) + \
        "\n    - global_avg_pool\n    - linear: {units: classes}"
    return (f"rematch: 1\nname: engines\nmodel:\n  {model}\ndata: {{name: synthetic, shape: [{size}, {size}, 3], classes: {classes}}}\n"
            f"batch: 8\nslices: {slices}\nsteps: 1\n"
            "optimizer: {name: sgd, lr: 0.1}\nbackend: ref\nrelu_save: output\npolicy: store_all\n")


SIZES = {"cifar": 32, "unet": 128, "sample-cnn": 64, "page-cnn": 64, "big-cnn": 64, "fashion-cnn": 28, "cifar10-cnn": 32, "nin": 32}
SLICED = ("vgg16", "cifar10-cnn", "unet-plain")  # planned in four slices, too
MADE = {"unet++": unetpp, "inception-like": inception, "hrnet-like": hrnet, "efficientnet-like": efficientnet}


def write_models(folder, names, steps):
    """By name, the arguments that plan a model, whose spec is written to folder; some cannot be planned so. steps: of random
    operators."""
    models, texts = {}, {name: spec(*make()) for name, make in MADE.items()}
    for file in sorted(os.listdir(MODELS)):
        name = file.removesuffix(".yaml")
        size = next((size for part, size in SIZES.items() if part in name), 224)
        if "bert" in name:
            continue
        path, classes = os.path.join(MODELS, file), 2 if "unet" in name else 10
        texts[name] = spec((), size, path, classes)
        if name in SLICED:
            texts[name + " in slices"] = spec((), size, path, classes, slices=4)
    for name, text in texts.items():
        models[name] = (os.path.join(folder, name + ".yaml"),)
        with open(models[name][0], "w", encoding="utf-8") as file:
            file.write(text)
    for path in sorted(glob.glob(os.path.join(GRAPHS, "*.json"))):
        models["exported " + os.path.basename(path).removesuffix(".json")] = ("--graph", path)
    graphs = {f"random {seed}": random_trace.Trace(seed).graph(f"random {seed}") for seed in range(steps)}
    for path in sorted(glob.glob(os.path.join(TRACES, "*.graph.json.gz"))):
        name = "traced " + os.path.basename(path).removesuffix(".graph.json.gz")
        graphs[name] = graph_of(read(path), name, 1)
    for name, graph in graphs.items():
        models[name] = ("--graph", os.path.join(folder, name + ".json"))
        with open(models[name][1], "w", encoding="utf-8") as file:
            json.dump(graph, file)
    return {name: path for name, path in models.items() if not names or name in names}


def plan(path, policy):
    """The figures of a plan; None: the policy refuses."""
    done = subprocess.run([PROGRAM, "plan", *path, f"policy={policy}", "--alone", "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    return json.loads(done.stdout) if done.returncode == 0 else None


def optimal(path, budget, without=""):
    return plan(path, f"{{name: optimal, budget: {budget}, without: [{without}]}}")


class Checks:
    def __init__(self):
        self.broken = []

    def expect(self, right, text):
        if not right:
            self.broken.append(text)
            print("BROKEN:", text, flush=True)


def check_monotone(path, name, least, stored, budgets, checks):
    """Budgets from the least to all, and what they take."""
    before, plans = least["slowdown"], 0
    for i in range(budgets + 1):
        budget = least["peak_bytes"] + (stored["peak_bytes"] - least["peak_bytes"]) * i // budgets
        answer = optimal(path, budget)
        checks.expect(answer, f"{name}: {budget} bytes are refused")
        if not answer:
            continue
        checks.expect(answer["peak_bytes"] <= budget, f"{name}: {answer['peak_bytes']} for {budget} bytes")
        checks.expect(answer["slowdown"] <= before * (1 + NOISE),
                      f"{name}: x{answer['slowdown']:.6f} in {budget} bytes, x{before:.6f} in fewer")
        before, plans = answer["slowdown"], plans + 1
    return plans


def check_least(path, name, least, checks):
    """Budgets below the least."""
    for share in BELOW:
        answer = optimal(path, int(least["peak_bytes"] * share / 100))
        checks.expect(not answer, f"{name}: {answer and answer['peak_bytes']} bytes, {least['peak_bytes']} as the least")


def check_policies(path, name, least, checks):
    """What other policies' plans take, and the least's."""
    plans = 0
    for policy in (*OTHERS, "the least"):
        other = least if policy == "the least" else plan(path, policy)
        if not other:
            continue
        answer = optimal(path, other["peak_bytes"])
        plans += 1
        checks.expect(answer, f"{name}: {other['peak_bytes']} bytes of {policy} are refused")
        checks.expect(not answer or answer["slowdown"] <= other["slowdown"] * (1 + NOISE),
                      f"{name}: {answer and answer['slowdown']:.6f} in the {other['peak_bytes']} bytes of {policy}, "
                      f"which takes x{other['slowdown']:.6f}")
    return plans


def measure_engines(path, name, stored, table, most, checks):
    """A row a budget: the slowdown, and what it becomes without each engine."""
    for share in SHARES:
        budget = f"{share}%"
        answer = optimal(path, budget)
        if not answer:
            continue
        cells = []
        for engine in ENGINES:
            if engine == "slices" and not name.endswith(" in slices"):
                cells.append("")
                continue
            fewer = optimal(path, budget, engine)
            loss = fewer["slowdown"] - answer["slowdown"] if fewer else float("inf")
            most[engine] = max(most[engine], loss)
            checks.expect(loss >= -NOISE, f"{name}: x{answer['slowdown']:.6f} at {share} %, {-loss:.6f} less without {engine}")
            cells.append(f"{loss:.4f}" if fewer else "refused")
        table.row(name, answer["nodes"], f"{share} %", f"{answer['slowdown']:.4f}", f"{answer['budget_bounds']['gap_percent']:.2f} %",
                  *cells)
        print(f"{name} {share} %: x{answer['slowdown']:.4f}", *cells, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", type=int, default=30)
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--random", type=int, default=16, help="steps of random operators")
    parser.add_argument("--only", choices=("promises", "engines"))
    parser.add_argument("--out")
    arguments = parser.parse_args()
    checks, counts = Checks(), Table("model", "nodes", "stages", "budgets", "plans of others", "least, of store_all")
    rows = Table("model", "nodes", "budget", "slowdown", "gap", *(f"without {engine}" for engine in ENGINES))
    most = dict.fromkeys(ENGINES, 0.0)
    planned_by = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, path in write_models(folder, arguments.models, arguments.random).items():
            stored, least = plan(path, "store_all"), optimal(path, "least")
            if not stored or not least:
                print(f"{name}: left out, it cannot be planned so")
                continue
            planned_by = planned_by or measure.planner(*path)
            if arguments.only != "engines":
                budgets = check_monotone(path, name, least, stored, arguments.budgets, checks)
                check_least(path, name, least, checks)
                others = check_policies(path, name, least, checks)
                counts.row(name, stored["nodes"], stored["stages"], budgets, others,
                           f"{100 * least['live_peak_bytes'] / stored['live_peak_bytes']:.1f} % at x{least['slowdown']:.3f}")
            if arguments.only != "promises":
                measure_engines(path, name, stored, rows, most, checks)
    wins = Table("without", "slowdown lost at most")
    for engine in ENGINES:
        wins.row(engine, f"{most[engine]:.4f}" if math.isfinite(most[engine]) else "refused")
    broken = Table("broken promise")
    for text in checks.broken or ["none"]:
        broken.row(text)
    head = "# What `optimal` promises, and what its engines win\n\nWritten by `make bench-engines` (experiments/bench/engines.py).\n"
    promises, engines = [("Promises", broken), ("Models", counts)], [("Engines", wins), ("Budgets", rows)]
    sections = {"promises": promises, "engines": engines}.get(arguments.only, promises + engines)
    report.write(arguments.out, sections + [("Provenance", report.provenance(planned_by))], head)
    return 1 if checks.broken else 0


if __name__ == "__main__":
    sys.exit(main())
