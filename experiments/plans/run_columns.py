"""Labels, columns and rows of the tables that run_tables.py makes of runs."""
import csv
import io
import os
import re
import subprocess
import sys

from chain import PROGRAM
from runs import ROOT, pair, plan, point, points

# ---- Figures.
def size(count):
    mib = count / 2**20
    return f"{mib:.1f} MiB" if mib < 1024 else f"{mib / 1024:.{2 if mib < 10240 else 1}f} GiB"


def seconds(ns):
    return f"{ns / 1e9:.2f} s" if ns >= 1e9 else f"{ns / 1e6:.1f} ms"


def percent(part, whole):
    return f"{100 * part / whole:.1f} %"


def slowdown(run):
    return "1" if run["slowdown"] == 1 else f"{run['slowdown']:.3f}"


def best_case(run, stored):
    """The best-case step, with its ratio to that of the run that stores everything, if it is not that."""
    step = run["step_best_case_ns"]
    return seconds(step) + (f" (x{step / stored['step_best_case_ns']:.3f})" if stored else "")


# ---- Labels of policies, as sweep.json has them: "optimal, 60 %" is made of {name: optimal, budget: "60%"}.
LABELS = {
    "{name: every, unit: group, keep_saved: false}": "every, none kept",
    "{name: every, keep_saved: false}": "every, none kept",
    "{name: every, unit: group}": "every group",
    "every": "every group",
    "{name: segments, segments: 4, keep_last: false, keep_saved: false}": "segments 4, none kept",
    "{name: segments, segments: 3, keep_last: false, keep_saved: false}": "segments 3, none kept",
    "{name: segments, segments: 2, keep_last: false, keep_saved: false}": "segments 2, none kept",
    "{name: segments, segments: 4}": "segments 4",
    "{name: segments, segments: 5}": "segments 5",
    '{name: manual, groups: ["stage1[0]", "stage2[0]", "stage3[0]"]}': "manual, three blocks",
    '{name: manual, groups: ["block[0]", "block[1]"]}': "manual, both blocks",
    "{name: manual, groups: [second.block2]}": "manual, second block",
    "{name: manual, groups: [block1, block2, block3, block4, block5]}": "manual by block",
    "{name: revolve, slots: 3}": "revolve, 3 slots",
    "{name: revolve, slots: 20, unit: stage}": "revolve, 20 slots of stages",
    '{name: sliced, groups: ["block[0]", "block[1]"]}': "sliced, both blocks",
    "{name: sliced, groups: [block1, second.block2]}": "sliced, both blocks"}


def label(policy):
    budget = re.fullmatch(r'\{name: (\w+), budget: "?([\w.%]+)"?(, time_limit: \d+)?\}', policy)
    kinds = re.fullmatch(r"\{name: selective, kinds: \[(.*)\]\}", policy)
    if budget:
        return f"{budget[1]}, {budget[2].replace('%', ' %')}"
    return f"selective: {kinds[1]}" if kinds else LABELS.get(policy, policy)


# ---- Columns: a head, and a cell of a run.
def live(run):
    return size(run["live_peak_bytes"])


def live_and_share(run):
    return live(run) + (f" ({of_stored(run)})" if run["stored"] else "")


def of_stored(run):
    return percent(run["live_peak_bytes"], (run["stored"] or run)["live_peak_bytes"])


def last_loss(run):
    return f"{run['eval']['loss'][-1]:.4f}"


def equal(*runs):
    return "equal in every bit" if all(run["point"]["bits"] == "equal" for run in runs) else "DIFFERS"


def first_difference(run):
    return run["point"]["first_difference"] if run["point"].get("first_difference_step") == 0 else "none"


def alike(cell, *runs):
    """The cells of runs, one if they are the same."""
    return ", ".join(dict.fromkeys(map(cell, runs)))


def beside_prediction(run):
    step, predicted = run["step_best_case_ns"], run["predicted_step_ns"]
    return f"{seconds(step)} ({100 * (step / predicted - 1):+.1f} %)"


def recomputing(run):
    """Least times of the ops that recompute, with their number."""
    text = subprocess.run([PROGRAM, "show", "--csv", "ops", os.path.join(ROOT, run["path"])], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    times = [int(op["op_least_ns"]) for op in csv.DictReader(io.StringIO(text)) if op["recompute"] == "1"]
    return f"{len(times)}: {seconds(sum(times))}" if times else ""


LIVE = "live peak", live_and_share
LIVE_ALONE = "live peak", live
OF_STORED = "of store_all", of_stored
PEAK = "peak", lambda run: size(run["peak_bytes"])
STATIC = "static", lambda run: size(run["static_bytes"])
ARENA = "arena", lambda run: size(run["arena_bytes"])
HIGH_WATER = "process, high water", lambda run: size(run["high_water_bytes"])
SAMPLED = ("sampled: forward, gradients",
           lambda run: f"{size(run['sampled_forward_bytes'])}, {size(run['sampled_gradients_bytes'])}")
PLANNED = "planned slowdown", slowdown
STEP = "best-case step", lambda run: best_case(run, run["stored"]) if "file" in run else ""  # not of a plan
PREDICTED = "predicted step", lambda run: seconds(run["predicted_step_ns"])
OF_BOUND = "above the bound", lambda run: f"{run['gap_percent']:.1f} %"
BESIDE_PREDICTION = "best-case step", beside_prediction
RATIO = "ratio", lambda run: f"{run['step_best_case_ns'] / (run['stored'] or run)['step_best_case_ns']:.3f}"
RECOMPUTING = "recomputations: least times", recomputing
ACCURACY = "test accuracy after 10 epochs", lambda run: f"{100 * run['eval']['accuracy'][-1]:.2f} %"
STEPS_EQUAL = "equal in every bit over", lambda run: f"{run['steps']:,} steps" if run["stored"] else ""


# ---- Rows: each a function that returns pairs of a label and a run, or of a label and cells.
def quoted(name, *cells):
    return lambda: [(name, cells)]


def variant(experiment, name):
    return lambda: [(name, pair(experiment))]


def both(experiment, name, stored="store_all", isa=""):
    return lambda: [(stored, pair(experiment, isa)["stored"]), (name, pair(experiment, isa))]


def planned(spec, name, policy, isa=""):
    """The plan of another policy, with the keys of the spec's run."""
    return lambda: [(name, plan(spec, *pair(spec, isa)["given"], policy)
                     | {"stored": plan(spec, *pair(spec, isa)["given"], "policy=store_all")})]


def one(experiment, name, stored=False, **keys):
    """A point of a sweep, or what it is beside: the run that stores everything."""
    return lambda: [(name, point(experiment, **keys)["stored"] if stored else point(experiment, **keys))]


def swept(experiment, stored="store_all"):
    """Every point of a sweep over policies, below its baseline."""
    return lambda: [(stored, points(experiment)[0]["stored"]),
                    *((label(run["point"]["policy"]), run) for run in points(experiment))]


def rows_of(source):
    """The pairs of a source; beside a published table none where its runs are missing, which is said."""
    try:
        return source()
    except SystemExit as missing:
        if "BESIDE" not in os.environ:
            raise
        print(f"left out: {missing}", file=sys.stderr)
        return []


def of_runs(head, columns, sources):
    """The head and the rows of cells; head is that of the labels."""
    rows = [[name, *(run if isinstance(run, tuple) else (cell(run) for _, cell in columns))]
            for source in sources for name, run in rows_of(source)]
    return [head, *(column for column, _ in columns)], rows
