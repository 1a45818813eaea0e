#!/bin/bash
# All that is to be seen on a machine with an NVIDIA GPU, in one report: what device it is, tests, equality in every bit,
# wrong runs caught, memory checked by compute-sanitizer, the benchmark beside PyTorch.
#
#   ./gpu.sh [PART...]      default: device tests steps experiments controls sanitizer bench
#
# GPU_LIMIT: seconds for all of it (default 540); a part that fails or takes too long does not stop the next one.
# Writes report.txt and results/ here and prints the report. Needs the driver, and CUDA 13, cuBLAS and cuDNN 9 as shared
# libraries: from the system, or from the nvidia packages of a Python; for the benchmark's ratios that Python's PyTorch.
# Ends with 1 where something failed, 77 where what is needed is missing.
set -u
cd "$(dirname "$(readlink -f "$0")")" || exit 3
PYTHON=${PYTHON:-python3}
GPU_LIMIT=${GPU_LIMIT:-540}
export REMATCH_BIN=$PWD/rematch OMP_WAIT_POLICY=passive
report=$PWD/report.txt
failed=0
mkdir -p logs results
: >"$report"

say() { printf '%s\n' "$*" | tee -a "$report" >&2; }

left() { echo $((GPU_LIMIT - SECONDS)); }

# try LIMIT CODE LINES WHAT COMMAND...: runs it for at most LIMIT seconds, expects the exit code, reports its last lines.
try() {
    local limit=$1 expected=$2 lines=$3 what=$4 log code began=$SECONDS verdict=ok
    shift 4
    [ "$(left)" -gt 5 ] || { say "LEFT OUT $what: no time was left"; failed=$((failed + 1)); return; }
    [ "$limit" -lt "$(left)" ] || limit=$(left)
    log=logs/$(printf '%s' "$what" | tr -c 'a-zA-Z0-9\n' -).txt
    timeout -k 5 "$limit" "$@" >"$log" 2>&1
    code=$?
    [ $code = "$expected" ] || { verdict=FAILED; failed=$((failed + 1)); }
    [ $code != 124 ] || verdict="FAILED (not done in $limit s)"
    say "$verdict $what: exit code $code, expected $expected, $((SECONDS - began)) s"
    tail -n "$lines" "$log" | sed 's/^/    /' >>"$report"
}

# Folders of CUDA's libraries: those of Python's packages first, so that PyTorch and we use the same.
libraries() {
    "$PYTHON" - <<'PYTHON' 2>/dev/null
import glob, sys
for path in sys.path:
    for folder in sorted(glob.glob(path + "/nvidia/*/lib")):
        print(folder)
PYTHON
    ls -d /usr/local/cuda/lib64 /usr/local/cuda-13*/lib64 /usr/local/nvidia/lib64 2>/dev/null
}
LD_LIBRARY_PATH=$(libraries | tr '\n' ':')${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH

part_device() {
    try 30 0 20 "the device" nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
    try 30 0 3 "the program" ./rematch --version
    try 60 0 12 "a plan on the device" ./rematch plan vgg16-recompute backend.name=cuda batch=8
}

part_tests() {
    for suite in backend kernels agreement attention update train rows device_runs; do
        try 90 0 6 "tests of $suite" ./suite --filter "$suite/*"
    done
}

part_steps() {
    for net in images tokens; do
        try 150 0 10 "100 steps, every policy: $net" ./rematch run bench/gpu/$net.yaml --quiet
        try 60 0 3 "100 steps, not recorded: $net" ./rematch run bench/gpu/$net.yaml --quiet \
            policy=every backend.graph=false
    done
}

part_experiments() {
    try 60 0 45 "vgg16-recompute" ./rematch run vgg16-recompute backend.name=cuda --quiet
    try 60 0 45 "sample-cnn-recompute" ./rematch run sample-cnn-recompute backend.name=cuda --quiet
    try 120 0 10 "bert-recompute" ./rematch run bert-recompute backend.name=cuda --quiet
    # of its 32 runs the 8 of rng: unsafe must differ, which is exit code 1
    try 150 1 36 "rng-replay" ./rematch run rng-replay backend.name=cuda --quiet
}

# Wrong on purpose: each must differ.
part_controls() {
    for fault in mask_bit:block-0-.projection_dropout skip_replay:block-0-.up stale_read:block-0-.up; do
        node=${fault#*:} && node=${node/-0-/[0]}
        try 40 1 4 "control: ${fault%%:*}" ./rematch run bench/gpu/tokens.yaml --quiet steps=5 \
            "policy={name: every, keep_saved: false}" "fault={kind: ${fault%%:*}, step: 2, node: '$node'}"
    done
}

part_sanitizer() {
    local tool
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -1)
    [ -n "$tool" ] || { say "LEFT OUT compute-sanitizer: it is not on this machine"; return; }
    for net in images tokens; do
        try 90 0 8 "compute-sanitizer memcheck: $net" "$tool" --tool memcheck --target-processes all --error-exitcode 9 \
            ./rematch run bench/gpu/$net.yaml --quiet --only variant batch=4 steps=2 policy=every backend.graph=false
    done
}

part_bench() {
    local more=()
    "$PYTHON" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null ||
        { say "PyTorch is not here, or sees no device: no ratios"; more=(--no-peer); }
    local limit=$(($(left) - 15))
    [ $limit -gt 20 ] || { say "LEFT OUT bench: no time was left; ./gpu.sh bench runs it alone"; return; }
    try $((limit + 10)) 0 200 "bench" "$PYTHON" -B bench/gpu.py --limit $limit "${more[@]}"
}

[ -d lib ] || tar -xzf lib.tar.gz || exit 3
missing=$(for program in program/rematch-cuda program/suite; do LD_LIBRARY_PATH=$PWD/lib:$LD_LIBRARY_PATH ldd $program; done |
    awk '/not found/ {print $1}' | sort -u | tr '\n' ' ')
if [ -n "$missing" ]; then
    say "missing shared libraries: $missing; looked in $LD_LIBRARY_PATH"
    exit 77
fi
say "$(date -u '+%Y-%m-%d %H:%M UTC'), $(uname -sr), $(nproc) cores, libraries in $LD_LIBRARY_PATH"
[ $# -gt 0 ] || set -- device tests steps experiments controls sanitizer bench
for part in "$@"; do
    say "== $part"
    if declare -F "part_$part" >/dev/null; then "part_$part"; else say "there is no part $part" && failed=$((failed + 1)); fi
done
say "== $failed failed or left out, in $SECONDS s"
cat "$report"
[ $failed = 0 ]
