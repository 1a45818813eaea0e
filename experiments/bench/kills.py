#!/usr/bin/python3
"""Kills runs at random moments, lets them go on, and measures what records and state files cost:
`experiments/bench/kills.py [--kills N] [--cost-steps N] [--out FILE]`.

A kill is SIGKILL of the parent, of the process that trains or of both, at a random moment: of every eight one is drawn
uniformly from the duration of a run, set-up and end included, the others from what remains of it once its file is there.
One that comes after the end is drawn again. Then the file must be readable and have every
step whose line the run had printed (the suite's tests see every step), and the same command must end with exit code 0 and
a file that equals the uninterrupted run's in every bit and, without its times and pieces, as a whole.

The cost of recording is the time between steps that is neither set-up nor an evaluation, and the digests; that of a
state, the time from the end of its step until it is on the disk and has its name. Both are given as shares of the steps
beside them; --cost-steps 0 leaves them out.
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import measure
import report

SPEC = """rematch: 1
name: killed
model:
  layers:
    - group:
        name: front
        layers:
          - conv: {channels: 8, kernel: 3, padding: 1, activation: relu}
          - dropout: {rate: 0.3}
          - conv: {channels: 8, kernel: 3, padding: 1, bias: false}
          - batch_norm
          - relu
    - max_pool: {kernel: 2, stride: 2}
    - flatten
    - linear: {units: classes}
data: {name: synthetic, shape: [12, 12, 3], classes: 10, samples: 600}
batch: 16
steps: 40
backend: {threads: 1}
seed: 3
rng: stash
lr_schedule: linear
optimizer: {name: adam, lr: 0.001}
policy: {name: manual, groups: [front]}
eval: {every: 15}
record: {state: true}
state_every: 10
results: out
"""
COMMAND = ["run", "killed.yaml", "--only", "variant"]
ANY_MOMENT = 1 / 8  # the share of kills that may come before there is a file
VICTIMS = ("the parent", "the process that trains", "both")
COST_SPEC, COST_STATE_EVERY = "vgg16-recompute", 10
HEAD = """# Runs that were killed and went on

Written by `experiments/bench/kills.py`, which says what is measured.
"""


def child_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, IndexError):
        return None


def end(pid):
    """Kills a process and waits until it is gone: an orphan is another process's child."""
    try:
        os.kill(pid, signal.SIGKILL)
        while True:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return
            time.sleep(0.002)
    except (FileNotFoundError, ProcessLookupError):
        return


def result(folder, tail):
    files = [name for name in os.listdir(os.path.join(folder, "out/killed")) if name.endswith(tail)] \
        if os.path.isdir(os.path.join(folder, "out/killed")) else []
    return os.path.join(folder, "out/killed", files[0]) if files else None


def shown(path):
    return json.loads(measure.output([measure.PROGRAM, "show", path, "--json"]))


def without_times(path):
    """What the file holds, without what differs from run to run."""
    def keep(name):
        return not re.search(r"_ns$|rss|high_water|overhead|created|invocation|live_peak$|^tree_", name)

    def clean(value):
        if isinstance(value, dict):
            return {name: clean(of) for name, of in value.items() if keep(name) and name not in ("path", "pieces")}
        return value
    return clean(shown(path))


class Count:
    def __init__(self):
        self.kills = self.before = self.states = self.lost = self.unreadable = self.equal = self.again = 0


def kill_once(folder, victim, duration):
    """Starts a run and kills it; returns the steps that it had printed, None where it had ended."""
    shutil.rmtree(os.path.join(folder, "out"), ignore_errors=True)
    with open(os.path.join(folder, "printed"), "w+", encoding="utf-8") as printed:
        with subprocess.Popen([measure.PROGRAM, *COMMAND], cwd=folder, stdout=subprocess.DEVNULL, stderr=printed) as run:
            begun = time.monotonic()
            if random.random() >= ANY_MOMENT:
                while run.poll() is None and not result(folder, ".h5.part") and not result(folder, ".h5"):
                    time.sleep(0.001)
            time.sleep(random.uniform(0, max(duration - (time.monotonic() - begun), 0)))
            child = child_of(run.pid)
            if victim != 1 or not child:
                run.kill()
            if child:
                end(child)  # where the parent alone is killed, the system ends its child: this waits for it
            run.wait()
        printed.seek(0)
        steps = [int(step) for step in re.findall(r"^  step (\d+) ", printed.read(), re.M)]
    return None if result(folder, ".h5") else max(steps) + 1 if steps else 0


def judge(folder, seen, whole, count):
    part = result(folder, ".h5.part")
    recorded = 0
    if part:
        try:
            recorded = len(shown(part)["steps"]["step"])
        except measure.Failed:
            count.unreadable += 1
    count.lost += max(seen - recorded, 0)
    count.before += part is None
    count.states += result(folder, ".h5.state") is not None
    run = subprocess.run([measure.PROGRAM, *COMMAND], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                         text=True, check=False)
    goes_on = re.search(r"goes on after (\d+) of", run.stderr)
    count.again += recorded - int(goes_on[1]) if goes_on else 0
    file = result(folder, ".h5")
    if run.returncode or not file or result(folder, ".h5.state") or result(folder, ".h5.part"):
        print(run.stderr[-2000:], file=sys.stderr)
        return
    # one plan on both sides: equal, but no proof, is exit code 4
    same = subprocess.run([measure.PROGRAM, "compare", whole, file], stdout=subprocess.PIPE, text=True, check=False)
    equal = same.returncode == 4 and "EQUAL IN EVERY BIT" in same.stdout and without_times(file) == without_times(whole)
    count.equal += equal
    if not equal:
        shutil.copy(file, os.path.join(folder, f"differs-{count.kills}.h5"))
        print(same.stdout, file=sys.stderr)


def kill_all(kills):
    counts = collections.defaultdict(Count)
    with tempfile.TemporaryDirectory(prefix="rematch-kills-") as folder:
        with open(os.path.join(folder, "killed.yaml"), "w", encoding="ascii") as file:
            file.write(SPEC)
        begun = time.monotonic()
        subprocess.run([measure.PROGRAM, *COMMAND, "--quiet"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        duration = time.monotonic() - begun
        whole = os.path.join(folder, "whole.h5")
        shutil.move(result(folder, ".h5"), whole)
        try:
            while (done := sum(count.kills for count in counts.values())) < kills:
                victim = done % len(VICTIMS)
                begun = time.monotonic()
                seen = kill_once(folder, victim, duration)
                if seen is None:
                    duration = min(duration, time.monotonic() - begun)
                    continue
                judge(folder, seen, whole, counts[victim])
                counts[victim].kills += 1
                duration = max(duration, (time.monotonic() - begun) * 0.7)
                print(f"{done + 1} of {kills}", end="\r", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
    table = report.Table("killed", "kills", "before a file was there", "with a state", "files that cannot be read",
                         "committed steps lost", "steps computed again", "resumed runs", "equal in every bit")
    rows = [(VICTIMS[victim], count) for victim, count in sorted(counts.items())]
    total = Count()
    for _, count in rows:
        for name, value in vars(count).items():
            setattr(total, name, getattr(total, name) + value)
    for name, count in (*rows, ("all", total)):
        table.row(name, count.kills, count.before, count.states, count.unreadable, count.lost, count.again, count.kills,
                  count.equal)
    return table, total.equal == total.kills and not total.lost and not total.unreadable


def cost(steps):
    """Of recording, and of a state every COST_STATE_EVERY steps."""
    table = report.Table("experiment", "steps", "step", "recording between steps", "digests", "one state", "state file",
                         "recording, of the step", f"a state every {COST_STATE_EVERY} steps, of the step")
    with tempfile.TemporaryDirectory(prefix="rematch-kills-", dir=measure.ROOT) as folder:
        every = max(steps // 2, 1)
        measure.output([measure.PROGRAM, "run", COST_SPEC, "--only", "variant", "--quiet", "policy=store_all",
                        f"steps={steps}", f"state_every={every}", f"results={folder}"])
        name = [os.path.join(of, file) for of, _, files in os.walk(folder) for file in files if file.endswith(".h5")][0]
        file = shown(name)
    summary, columns = file["/summary"], file["steps"]
    states = (steps - 1) // every
    total = sum(columns["total_ns"])
    between = summary["wall_ns"] - summary["setup_ns"] - total - sum(columns["undefine_ns"]) - summary["states_ns"]
    digests = sum(columns["digest_ns"])
    state = summary["states_ns"] / states
    plan, copies = file["/plan"], file["/plan"]["optimizer_copies"]
    parameters = (plan["static_bytes"] - plan["batch_bytes"] - plan["device_bytes"]) / (2 + copies)
    table.row(f"{COST_SPEC}, store_all", steps, report.seconds(total / steps / 1e9), f"{between / steps / 1e6:.1f} ms",
              f"{digests / steps / 1e6:.0f} ms", report.seconds(state / 1e9), report.mib(parameters * (1 + copies)),
              f"{100 * (between + digests) / total:.2f} % (target under 1 %)",
              f"{100 * state / COST_STATE_EVERY / (total / steps):.2f} % (target under 2 %)")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="(default 200); SIGINT ends them early")
    parser.add_argument("--seed", type=int, default=1, help="of victims' moments")
    parser.add_argument("--cost-steps", type=int, default=5, help=f"steps of {COST_SPEC} for the cost (default 5)")
    parser.add_argument("--out", help="file of the result, in the project's folder")
    options = parser.parse_args()
    random.seed(options.seed)
    sections, good = [], True
    if options.kills:
        table, good = kill_all(options.kills)
        sections.append(("Kills", table))
    if options.cost_steps:
        sections.append(("Cost", cost(options.cost_steps)))
    sections.append(("Provenance", report.provenance(measure.planner("mlp-sequential"))))
    report.write(options.out, sections, HEAD)
    return not good


if __name__ == "__main__":
    sys.exit(main())
