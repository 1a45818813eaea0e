#!/bin/sh
# Runs Python in this folder with the first python that has what the package needs: TORCH_PYTHON, build/bench-venv's,
# python3. Exit code 77 where none has it.
#
#   experiments/torch/run.sh -m unittest discover -t . -s tests
cd "$(dirname "$0")" || exit 3
needs='import sys, torch, numpy, h5py, xxhash; sys.exit([int(n) for n in torch.__version__.split(".")[:2]] < [2, 6])'
for python in ${TORCH_PYTHON:-../../build/bench-venv/bin/python python3}; do
    "$python" -c "$needs" 2>/dev/null || continue
    export REMATCH_BIN="${REMATCH_BIN:-$PWD/../../build/rematch}" PYTHONDONTWRITEBYTECODE=1
    export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
    exec "$python" "$@"
done
echo "skipped: no Python here has torch 2.6, numpy, h5py and xxhash. In a virtual environment, type
    pip install ./experiments/torch
and set TORCH_PYTHON to the path of its python" >&2
exit 77
