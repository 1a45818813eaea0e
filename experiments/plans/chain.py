"""Plans of chains and of specs, as JSON, for the scripts in this folder."""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = os.environ.get("REMATCH_BIN", "build/rematch")
HERE = os.path.dirname(os.path.abspath(__file__))


def ask(*arguments, seconds=None):
    """The JSON of `rematch plan ARGUMENTS --json`; ends the script where the command fails. Where seconds are given, None in
    place of a plan that takes longer or whose budget no schedule keeps."""
    try:
        done = subprocess.run([PROGRAM, "plan", *arguments, "--json"], stdout=subprocess.PIPE, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    if seconds and done.returncode == 2:
        return None
    if done.returncode:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def plan_chain(stages, *overrides):
    """Plans a chain of stages, each a dict of its keys."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("rematch: 1\nname: chain\nstages:\n")
        for stage in stages:
            file.write("  - {" + ", ".join(f"{key}: {value}" for key, value in stage.items()) + "}\n")
        file.flush()
        return ask("--graph", file.name, *overrides)


def plan(count, stage, *overrides):
    """Plans count copies of a stage."""
    return plan_chain([{"repeat": count, **stage}], *overrides)


def plan_spec(name, *arguments, seconds=None):
    """Plans a spec of this folder."""
    return ask(os.path.join(HERE, name + ".yaml"), *arguments, seconds=seconds)
