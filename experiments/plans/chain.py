"""Plans of chains and of specs, as JSON, for the scripts in this folder; and the tables that they publish."""
import contextlib
import csv
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

from deviation import beside

PROGRAM = os.environ.get("REMATCH_BIN", "build/rematch")
HERE = os.path.dirname(os.path.abspath(__file__))
# Figures of a plan or a run, as --json and result files name them; what one lacks is left empty.
FIGURES = ("policy", "settings", "nodes", "batch", "slices", "static_bytes", "live_peak_bytes", "arena_bytes", "peak_bytes",
           "high_water_bytes", "recomputations", "time", "slowdown", "gap_percent", "predicted_step_ns", "step_best_case_ns",
           "step_median_ns")
noted = []  # rows of numbers: of every plan and run that the table is made of


def note(name, made_by, figures):
    """Adds a row of numbers: the name of a spec, graph or experiment, and what the plan or run is made by."""
    noted.append([name, made_by, *(figures.get(key, "") for key in FIGURES)])


def note_answer(answer, words):
    """Adds the plans that an answer of `rematch plan` has: of all policies, unless the words set one."""
    made_by = " ".join(words)
    choices = () if "policy" in made_by else answer.get("choices")
    for figures in answer.get("plans") or answer.get("policies") or choices or [answer]:
        shared = {"nodes": answer.get("nodes"), "batch": figures.get("largest_batch", answer["batch"])}
        note(answer["name"], made_by, shared | figures)


def ask(*arguments, seconds=None, of=()):
    """The JSON of `rematch plan ARGUMENTS --json`; ends the script where the command fails. Where seconds are given, None in
    place of a plan that takes longer or whose budget no schedule keeps. of: words for its rows of numbers, in which files of
    written() are FILE."""
    try:
        done = subprocess.run([PROGRAM, "plan", *arguments, "--json"], stdout=subprocess.PIPE, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    if seconds and done.returncode == 2:
        return None
    if done.returncode:
        sys.exit(done.returncode)
    answer = json.loads(done.stdout)
    words = [re.sub(rf"{re.escape(tempfile.gettempdir())}/\w+", "FILE", word) for word in arguments if "=" in word]
    note_answer(answer, [*of, *words])
    return answer


def show(path):
    """The JSON of `rematch show PATH --json`."""
    return json.loads(subprocess.run([PROGRAM, "show", path, "--json"], stdout=subprocess.PIPE, check=True).stdout)


@contextlib.contextmanager
def written(text, suffix=".yaml"):
    """The path of a file with that text, which is removed afterwards."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix) as file:
        file.write(text)
        file.flush()
        yield file.name


def chain_lines(stages):
    """A chain of stages, each a dict of its keys, as lines of a graph file."""
    return ["{" + ", ".join(f"{key}: {value}" for key, value in stage.items()) + "}" for stage in stages]


def chain_text(stages):
    return "rematch: 1\nname: chain\nstages:\n" + "".join(f"  - {line}\n" for line in chain_lines(stages))


def plan_chain(stages, *overrides, seconds=None):
    """Plans a chain of stages; seconds as in ask."""
    lines = chain_lines(stages)
    with written(chain_text(stages)) as path:
        return ask("--graph", path, *overrides, seconds=seconds, of=lines if len(lines) < 3 else ())


def plan(count, stage, *overrides):
    """Plans count copies of a stage."""
    return plan_chain([{"repeat": count, **stage}], *overrides)


def fastest(answer, budget):
    """The fastest point of a chain's front within a budget of bytes."""
    point = min((point for point in answer["front"] if point["peak_bytes"] <= budget), key=lambda point: point["time"])
    note(answer["name"], f"the front within {budget} bytes", point | {"policy": "optimal", "nodes": answer["nodes"]})
    return point


def plan_spec(name, *arguments, seconds=None):
    """Plans a spec of this folder."""
    return ask(os.path.join(HERE, name + ".yaml"), *arguments, seconds=seconds)


def machine(host=None):
    """The processor, cores, memory and system: this one's, or those that a result file names."""
    if host:
        return f"{host['cpu']} ({host['isa']}), {host['cores']} cores, {int(host['memory_bytes']) / 2**30:.0f} GiB"

    def after(path, key):
        return next((line.split(":", 1)[1].strip() for line in open(path) if line.startswith(key)), "unknown")
    memory = int(after("/proc/meminfo", "MemTotal").split()[0]) / 2**20
    isa = "AVX-512" if "avx512f" in after("/proc/cpuinfo", "flags").split() else "no AVX-512"
    return (f"{after('/proc/cpuinfo', 'model name')} ({isa}), {os.cpu_count()} cores, {memory:.0f} GiB, "
            f"{platform.freedesktop_os_release()['PRETTY_NAME']}")


def program():
    """The commit of the program, as it prints it."""
    version = subprocess.run([PROGRAM, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return version.split(", ")[1].removeprefix("commit ")


def print_rows(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("   ".join(f"{cell:{width}}" for cell, width in zip(row, widths)).rstrip())


def publish(name, columns, rows, commands=(), origin=None):
    """Prints rows of cells. Where the environment has PUBLISH, also writes them to results/published/NAME.csv, below where they
    come from: the commands of runs, and their commit, machine and date, or this program now; and to numbers/NAME.csv the
    numbers, as they are, of the plans and runs that they are made of. Where it has BESIDE, prints them beside the rows of that
    file instead."""
    cells = [[str(cell) for cell in row] for row in (columns, *rows)]
    commit, host, date = origin or (program(), machine(), f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}")
    command = "; ".join([*commands, f"make publish-{name}"])
    comments = [f"command: {command}", f"commit: {commit}", f"machine: {host}", f"date: {date}"]
    path = os.path.join(HERE, "../../results/published", name + ".csv")
    if "BESIDE" in os.environ:
        return print_rows(beside(path, cells, comments))
    print_rows(cells)
    if "PUBLISH" not in os.environ:
        return None
    numbers = os.path.join(HERE, "../../results/published/numbers", name + ".csv")
    os.makedirs(os.path.dirname(numbers), exist_ok=True)
    for file, table in (path, cells), (numbers, [["name", "made_by", *FIGURES], *noted]):
        with open(file + ".new", "w", encoding="utf-8", newline="") as out:
            out.writelines(f"# {comment}\n" for comment in comments)
            csv.writer(out, lineterminator="\n").writerows(table)
        os.replace(file + ".new", file)
    return None
