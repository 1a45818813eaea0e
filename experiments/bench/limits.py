#!/usr/bin/python3
"""What the limits of searches cost and win: `make bench-limits [ARGS="--only DROPS_WORK --out FILE"]`.

Each number of framework/search/limits.h is halved, then doubled, the program is built with it, and a few models are planned within
shares of their range, by flops, with processor seconds counted. A row a limit: seconds by those of the present number, and how much
worse, or better, the plans become at most: slower within a budget, more bytes where the least is asked for, by those with the
present number. The beams of that file are left out one by one.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import engines
import measure
import report
from report import Table

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = os.path.join(measure.ROOT, "framework/search/limits.h")
MODELS = ("hrnet-like", "resnet18", "resnet50", "resnet-cifar", "unet", "googlenet", "exported gpt", "exported unet",
          "vgg16 in slices", "unet-plain in slices")
SHARES = (70, 45, 30)
ROW = re.compile(r"^(    )([A-Z_]+)( = )([^,\n]+?)(,|$| *(?=/\*))", re.M)
BEAM = re.compile(r"BEAM\([A-Z]+, [^)]*\)")


def limits():
    """The numbers by name."""
    with open(HEADER, encoding="utf-8") as file:
        return {row[2]: eval(row[4], {}) for row in ROW.finditer(file.read())}  # pylint: disable=eval-used  # "1 << 14"


def beams():
    with open(HEADER, encoding="utf-8") as file:
        return BEAM.findall(file.read())


def build(name, number=""):
    """The program with one number changed, or without a beam: its header lies in the build's folder, which is searched first."""
    folder = os.path.join("build", "limits")
    with open(HEADER, encoding="utf-8") as file:
        text = ROW.sub(lambda row: f"    {row[2]} = {number}{row[5]}" if row[2] == name else row[0], file.read())
        text = BEAM.sub(lambda row: "" if row[0] == name else row[0], text)
    path = os.path.join(measure.ROOT, folder, "search", "limits.h")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["make", "-s", f"BUILD={folder}", "DEPS=no", f"{folder}/rematch"], cwd=measure.ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    return os.path.join(measure.ROOT, folder, "rematch")


def plan_all(program, models):
    """Of all plans the slowdown, or the bytes of the least, infinite where one is refused; and processor seconds."""
    def measure_one(question):
        path, budget = question
        answer = engines.optimal(path, budget)
        return answer["arena_bytes" if budget == "least" else "slowdown"] if answer else float("inf")

    before = os.times()
    engines.PROGRAM = program
    questions = [(path, budget) for path in models.values() for budget in (*(f"{share}%" for share in SHARES), "least")]
    with ThreadPoolExecutor() as threads:
        plans = list(threads.map(measure_one, questions))
    after = os.times()
    return plans, after.children_user + after.children_system - before.children_user - before.children_system


def compare(plans, seconds, base):
    shares = [new / old for new, old in zip(plans, base[0]) if new != old] + [1]
    return f"{seconds / base[1]:.2f}", f"{max(shares) - 1:.4f}", f"{1 - min(shares):.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="limits whose names begin so; beams begin with BEAM")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    only = tuple(arguments.only)
    for name in only:
        if not any(row.startswith(name) for row in (*limits(), *beams())):
            parser.error(f"--only {name}: no limit or beam of {HEADER} begins so")
    what = ("seconds", "worse at most", "better at most")
    table = Table("limit", "number", *(f"{cell}, {times}" for times in ("half", "double") for cell in what))
    left_out = Table("beam", *what)
    with tempfile.TemporaryDirectory() as folder:
        models = engines.write_models(folder, arguments.models, steps=0)
        base = plan_all(build(None), models)
        planned_by = measure.planner(*next(iter(models.values())))
        for name, number in limits().items():
            if not name.startswith(only):
                continue
            cells = [cell for changed in (number // 2, number * 2) for cell in compare(*plan_all(build(name, changed), models), base)]
            table.row(name, number, *cells)
            print(name, number, *cells, flush=True)
        for beam in beams():
            if beam.startswith(only):
                cells = compare(*plan_all(build(beam), models), base)
                left_out.row(beam, *cells)
                print(beam, *cells, flush=True)
    head = "# What the limits of searches cost and win\n\nWritten by `make bench-limits` (experiments/bench/limits.py). " \
           f"{len(base[0])} plans, {base[1]:.0f} processor seconds in all; seconds by those. Plans within a budget are " \
           "worse by their slowdown, plans of least memory by their bytes. Limits that only larger networks reach show nothing here.\n"
    report.write(arguments.out, [("Limits", table), ("Without a beam", left_out), ("Provenance", report.provenance(planned_by))], head)
    return 0


if __name__ == "__main__":
    sys.exit(main())
