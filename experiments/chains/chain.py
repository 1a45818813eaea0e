"""Uniform chains for the scripts beside this file: what `rematch plan --chain --json` says of them."""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = os.environ.get("REMATCH_BIN", "build/rematch")


def plan(stages, stage, *overrides):
    """Plans stages copies of a stage (a dict); the JSON that the program prints. Ends the script where it refuses."""
    keys = ", ".join(f"{key}: {value}" for key, value in stage.items())
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(f"rematch: 1\nname: uniform\nchain: [{{repeat: {stages}, {keys}}}]\n")
        file.flush()
        done = subprocess.run([PROGRAM, "plan", "--chain", file.name, "--json", *overrides], stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)
    return json.loads(done.stdout)
