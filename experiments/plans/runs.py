"""The runs in results/, as run_tables.py reads them, and where they come from.

A run is a dict of the attributes of /plan and /summary of its result file (results/README.md), with `stored`, the run beside it
that stores everything (None if it is that run itself), and `given`, the keys that were set on the command line. A plan has the
same keys, without those that only a step can have.
"""
import functools
import glob
import json
import os
import re
import shlex
import subprocess
import sys

from chain import HERE, PROGRAM, ask, machine, note, program, show

ROOT = os.path.normpath(os.path.join(HERE, "../.."))
origins = []  # (commit, host, date) of every run and plan that the table was made of; a plan has no host and no date
commands = {}  # that make its runs again, in their order


# The overrides that runs of a published table may have, by experiment and where it matters by instructions; a key alone: any
# value. All others make another experiment of it.
SMALL, MEASURED = {"batch=2", "steps=2"}, {"costs.file"}
GIVEN = {"resnet50-pareto": SMALL, "mobilenet-pareto": SMALL, "densenet-pareto": SMALL, "unet-pareto": {"batch=4", "steps=2"},
         "resnet50-0.6": MEASURED, "vgg16-pareto": MEASURED, "vgg16-pareto-outputs": MEASURED,
         ("vgg16-recompute", "avx2"): {"steps=2"}}


class Run(dict):
    def __missing__(self, key):
        sys.exit(f"{self.get('path')} has no {key}; the commands above its table in EXPERIMENTS.md write one that has it")

    def __or__(self, other):
        return Run({**self, **other})


# ---- Runs of results/.
DATA = "REMATCH_DATA=/path/to/data "


def make(experiment, isa=""):
    with open(os.path.join(ROOT, f"experiments/{experiment}.yaml"), encoding="utf-8") as spec:
        made = re.search(r"^data: \{name: (ones|synthetic)", spec.read(), re.MULTILINE)
    return f"{'' if made else DATA}make {'MARCH=x86-64-v3 ' if isa == 'avx2' else ''}exp-{experiment}"


@functools.cache
def load(path, command):
    file = show(os.path.join(ROOT, path))
    if "SYNTHETIC" in file["/provenance/data"]["notice"]:
        sys.exit(f"{path}: synthetic tokens stand in for its data; {command}")
    origins.append((file["/provenance/git"]["commit"][:12] + (" with changes" if file["/provenance/git"]["dirty"] else ""),
                    file["/provenance/host"], file["/"]["created"][:10]))
    note(file["/"]["experiment"], path, file["/plan"] | file["/summary"])
    return Run(file["/plan"] | file["/summary"], path=path, command=command, stored=None, losses=file["steps"]["loss"],
               eval=file["eval"], file=file)


def overrides(run, swept):
    """What the command line set, but for the swept keys: {"batch": "batch=2"} of the file's "batch: 16 -> 2"."""
    keys = {}
    for key, text in (line.split(": ", 1) for line in run["file"]["/spec"]["overrides"]):
        before, after = text.split(" -> ")
        if key not in swept and before != after:
            keys[key] = f"{key}={after}"
    return keys


def two_sides(experiment, baseline, variant, swept=(), isa=""):
    """The variant, beside its baseline. Notes the commands with their overrides, which a published table must know."""
    command = make(experiment, isa)
    stored, run = load(baseline, command), load(variant, command)
    known = GIVEN.get((experiment, isa), GIVEN.get(experiment, ()))
    for side in (stored, run) if "PUBLISH" in os.environ else ():
        for key, text in overrides(side, swept).items():
            if key not in known and text not in known:
                sys.exit(f"{side['path']} is a run with {text}, which its published table does not have; {command}; make table-NAME "
                         "prints runs with any overrides")
    keys = overrides(run, swept)
    if "costs.file" in keys:
        others = (keys[key] for key in keys if not key.startswith("costs."))
        timed = ["build/rematch", "run", experiment, "policy=store_all", *others, "--only", "variant", "results=build/timed"]
        commands[shlex.join(timed)] = None
    arguments = shlex.join(keys.values()).replace('"', '\\"')
    commands[command + (f' ARGS="{arguments}"' if keys else "")] = None
    return Run(run, stored=stored, given=[*keys.values()])


def expect_equal(run):
    paths = [os.path.join(ROOT, one["path"]) for one in (run["stored"], run)]
    if not json.loads(subprocess.run([PROGRAM, "compare", *paths, "--json"], stdout=subprocess.PIPE).stdout)["equal"]:
        sys.exit(f"{paths[1]} differs from {paths[0]}, but its table is of equal runs")
    return run


@functools.cache
def pair(experiment, isa=""):
    """The newest run of an experiment without a sweep, with instructions of that name. Both sides have one invocation."""
    files = sorted(glob.glob(os.path.join(ROOT, "results", experiment, "*.h5")), key=os.path.getmtime, reverse=True)
    found = {}
    for file in map(show, files):
        if not file["/provenance/host"]["isa"].startswith(isa):
            continue
        sides = found.setdefault(file["/"]["invocation"], {})
        sides[file["/"]["variant"]] = os.path.relpath(file["path"], ROOT)
        if len(sides) == 2:
            return expect_equal(two_sides(experiment, sides["baseline"], sides["variant"], isa=isa))
    sys.exit(f"results/{experiment}/ has no run{f' with {isa}' if isa else ''} of both sides: {make(experiment, isa)}")


@functools.cache
def points(experiment, differs=False):
    """The runs of a sweep, all equal to their baselines unless it `differs`; in each, `point` is its row of sweep.json, which has
    the swept keys."""
    path = f"results/{experiment}/sweep.json"
    if not os.path.exists(os.path.join(ROOT, path)):
        sys.exit(f"there is no {path}: {make(experiment)}")
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        rows = json.load(file)["points"]
    for row in rows:
        if row["outcome"] != "equal" and not (differs and row["outcome"] == "DIFFERS"):
            sys.exit(f"{path}: point {row['point']}: {row['outcome']} {row['reason'] or ''}: {make(experiment)}")
    return [Run(two_sides(experiment, row["baseline"], row["variant"], row), point=row) for row in rows]


def find(experiment, **keys):
    """The run of a sweep at these values, None if it has no such point; a dot of a key is written __."""
    keys = {key.replace("__", "."): value for key, value in keys.items()}
    return next((run for run in points(experiment) if keys.items() <= run["point"].items()), None)


def point(experiment, **keys):
    """The same where there must be one."""
    return find(experiment, **keys) or sys.exit(f"results/{experiment}/sweep.json has no point {keys}: {make(experiment)}")


def plan(spec, *overrides):
    """What `rematch plan` reports, by the names of a result file."""
    answer = ask(spec, *overrides, "--alone")
    origins.append((program(), None, ""))
    return Run(answer, stored=None, path=f"the plan of {spec}", sampled_forward_bytes=answer["sampled_after_forward_bytes"],
               sampled_gradients_bytes=answer["sampled_after_gradients_bytes"])


def origin():
    """The commit and the machine of the runs and the date of the newest; None if there are only plans. A published table is of
    one commit and one machine."""
    hosts = [host for _, host, _ in origins if host]
    isa = " and ".join(dict.fromkeys(host["isa"] for host in hosts))
    commits, machines = {commit for commit, _, _ in origins}, {machine(host | {"isa": isa}) for host in hosts}
    for several in commits, machines:
        if len(several) > 1 and "BESIDE" not in os.environ:
            sys.exit(f"a table is of one commit and one machine, but its runs are of {' and of '.join(sorted(several))}")
    return (" and ".join(sorted(commits)), " and ".join(sorted(machines)), max(date for *_, date in origins)) if hosts else None
