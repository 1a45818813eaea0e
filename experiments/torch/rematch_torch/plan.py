"""Asks `rematch plan --graph` for a schedule within a budget."""
import json
import os
import re
import shutil
import subprocess

from .errors import refuse


def program():
    """$REMATCH_BIN, the one in the path, or that of the repository this package lies in."""
    here = os.path.dirname(os.path.abspath(__file__))
    build = os.path.join(here, "..", "..", "..", "build")
    built = [os.path.join(build, *name) for name in (("rematch",), ("release", "rematch"))]
    for path in [os.environ.get("REMATCH_BIN"), shutil.which("rematch")] + built:
        if path and os.access(path, os.X_OK):
            return path
    return refuse("the program rematch is not found", "type make install in its repository, or set REMATCH_BIN to its path")


def as_text(budget):
    if isinstance(budget, int) and not isinstance(budget, bool) and budget > 0:
        return str(budget)
    if isinstance(budget, str) and re.fullmatch(r"least|\d+(\.\d+)?\s*(%|[KMGT]i?B|B)?", budget):
        return budget.replace(" ", "")
    return refuse(f"budget {budget!r}", 'expected bytes such as "6GB", a share of what storing everything takes such as '
                  '"60%", or "least"')


def ask(path, budget, policy="optimal", timeout=600):
    """The plan as `--json` prints it, with its operators in `ops`."""
    command = [program(), "plan", "--graph", path, f"policy.name={policy}", "--alone", "--ops", "--json"]
    command += [f"policy.budget={as_text(budget)}"] if budget is not None else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    if done.returncode == 0:
        return json.loads(done.stdout)
    reason = done.stderr.strip().replace("rematch: ", "", 1)
    floor = re.search(r"found kept is ([0-9.]+%).*?, ([0-9.]+ \w+)( \(.*?\))?, besides ([0-9.]+ \w+)", reason)
    if floor:
        share, live, _, static = floor.groups()
        refuse(f"budget {budget} is below the least that was found: {live} and {static} of parameters and batch",
               f'raise it to "{share}" or more, use "least", or make the batch smaller; it is {reason.split("; it is ")[-1]}')
    return refuse(f"rematch plan failed with exit code {done.returncode}: {reason[-600:]}", "see the graph file " + path)
