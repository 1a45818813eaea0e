#!/bin/bash
# Tests and measures on a machine with an NVIDIA GPU and writes one report: the device, a hundred steps equal in every bit,
# tests, the experiments at full size, faults that must be detected, memory and races checked by compute-sanitizer; and, in
# a call of its own, the benchmark beside PyTorch. The most informative parts come first.
#
#   ./gpu.sh             device steps tests experiments controls equality randomness sanitizer
#   ./gpu.sh PART...     only these; ./gpu.sh bench: the benchmark
#
# GPU_LIMIT: seconds for the whole call (default 540); a part that fails or takes too long does not stop the next one.
# GPU_OUT: a folder (default reports/DATE-TIME here) for report.txt, which is printed as it grows, log.txt with all output,
# clocks.csv of the card's clocks, bench-gpu.md, and results-PART-TIME.tar.gz with the result files of each part in which
# something failed. An earlier call's files are appended to, except bench-gpu.md.
# GPU_BENCH: more arguments for experiments/bench/gpu.py, such as "--networks vgg16-64 bert-128". GPU_WORDS: more arguments
# for the sweeps, the experiments and the controls, such as "backend.graph=false".
# Needs the driver, and CUDA 13, cuBLAS and cuDNN 9 as shared libraries, from the system or from the nvidia packages of a
# Python; for the benchmark's ratios that Python's PyTorch, and CUPTI for launch gaps. Exit code 1: something failed or was
# left out; the report's last lines name it. 77: a prerequisite is missing.
set -u
cd "$(dirname "$(readlink -f "$0")")" || exit 3
PYTHON=${PYTHON:-python3}
GPU_LIMIT=${GPU_LIMIT:-540}
GPU_OUT=${GPU_OUT:-reports/$(date -u +%Y%m%d-%H%M%S)}
mkdir -p "$GPU_OUT" && GPU_OUT=$(readlink -f "$GPU_OUT") && results=$(mktemp -d) || exit 3
trap 'kill ${watch:-} 2>/dev/null; rm -rf "$results" "${now:-}"' EXIT
read -ra words <<<"${GPU_WORDS:-}"
chmod +x rematch suite program/* 2>/dev/null # copying may have removed it
# fp32 must be fp32: remove settings that make the libraries round operands, for both sides
unset CUBLAS_EMULATE_SINGLE_PRECISION CUBLAS_EMULATION_STRATEGY NVIDIA_TF32_OVERRIDE
PATH=$PATH:/usr/local/nvidia/bin:/usr/local/cuda/bin
# real: no test may pass because the device is missing
export REMATCH_BIN=$PWD/rematch REMATCH_DEVICE=real OMP_WAIT_POLICY=passive
report=$GPU_OUT/report.txt now=$GPU_OUT/now.txt # now: output of the running part
failed=() left_out=() skipped=()
: >>"$report" && : >>"$GPU_OUT/log.txt" || exit 3

say() { printf '%s\n' "$*" | tee -a "$report"; }

left() { echo $((GPU_LIMIT - SECONDS)); }

leave_out() { # WHAT WHY
    say "LEFT OUT $1: $2"
    left_out+=("$1: $2")
}

fail() { # WHAT WHY
    say "FAILED $1: $2"
    failed+=("$1: $2")
}

# try LIMIT CODES LINES WHAT COMMAND...: runs it for at most LIMIT seconds, expects one of the exit codes ("1|3"), reports
# its last lines, and more of them where the code is another. Succeeds where it is one of them.
try() {
    local limit=$1 expected=$2 lines=$3 what=$4 code right=false began=$SECONDS
    shift 4
    : >"$now"
    [ "$(left)" -gt 5 ] || { leave_out "$what" "no time was left"; return 1; }
    [ "$limit" -lt "$(left)" ] || limit=$(left)
    timeout -k 5 "$limit" "$@" >"$now" 2>&1
    code=$?
    { printf '\n==== %s: %s\n\n' "$what" "$*" && cat "$now"; } >>"$GPU_OUT/log.txt"
    [[ "|$expected|" != *"|$code|"* ]] || right=true
    if $right; then
        say "ok $what: $((SECONDS - began)) s"
    elif [ $code = 124 ] || [ $code = 137 ]; then
        fail "$what" "not done in $limit s"
    else
        fail "$what" "exit code $code, expected $expected, $((SECONDS - began)) s"
    fi
    $right || lines=$((lines + 30))
    grep -avE 'Test is disabled|^\[(RUN |PASS\]|====\] Running)' "$now" | tail -n "$lines" | sed 's/^/    /' | tee -a "$report"
    $right
}

# check LIMIT FILTER: tests, of which there must be some, and of which those that skip themselves are named.
check() {
    try "$1" 0 8 "tests $2" ./suite --verbose --jobs 5 --timeout 180 --filter "$2" && ! grep -aqE 'Tested: [1-9]' "$now" &&
        fail "tests $2" "there are none"
    mapfile -O ${#skipped[@]} -t skipped < <(grep -a '^\[SKIP\]' "$now" | grep -av 'Test is disabled' | cut -c 8-)
}

# Folders of CUDA's libraries: those of Python's packages first, so that PyTorch and we use the same.
libraries() {
    "$PYTHON" - <<'PYTHON' 2>/dev/null
import glob, sys
for path in sys.path:
    for folder in sorted(glob.glob(path + "/nvidia/*/lib")):
        print(folder)
PYTHON
    ls -d /usr/local/cuda/lib64 /usr/local/cuda-13*/lib64 /usr/local/cuda*/extras/CUPTI/lib64 /usr/local/nvidia/lib64 \
        2>/dev/null
}
LD_LIBRARY_PATH=$(libraries | tr '\n' ':')${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH

run() { # LIMIT CODE LINES WHAT ARGUMENTS...
    try "$1" "$2" "$3" "$4" ./rematch run "${@:5}" "${words[@]}" --quiet "results=$results"
}

part_device() {
    try 30 0 20 "the device" nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
    try 30 0 3 "the program" ./rematch --version
    try 60 0 12 "a plan on the device" ./rematch plan vgg16-recompute backend.name=cuda batch=8
}

# A hundred steps under every policy; and what is recorded once and queued again beside the same calls one by one.
part_steps() {
    for net in images tokens; do
        run 100 0 14 "100 steps, every policy: $net" experiments/bench/gpu/$net.yaml
        for graph in true false; do
            try 40 0 3 "100 steps, backend.graph=$graph: $net" ./rematch run experiments/bench/gpu/$net.yaml --quiet --only variant \
                policy=every backend.graph=$graph "results=$results/$net-$graph"
        done
        try 20 4 5 "recorded steps are equal to calls: $net" ./rematch compare "$results/$net"-{true,false}/*/*.h5
    done
}

# Suites that hold tests of the device, each test a process of its own.
part_tests() { check 200 '@(backend|kernels|device_convolutions|device_kernels|layers|attention|update|agreement|measure|device_runs)/*'; }

part_experiments() {
    run 60 0 45 "vgg16-recompute" vgg16-recompute backend.name=cuda
    run 60 0 45 "sample-cnn-recompute" sample-cnn-recompute backend.name=cuda
    run 90 0 10 "bert-recompute" bert-recompute backend.name=cuda
}

# Wrong on purpose: each must differ, also where what is read in place of the right numbers is none.
part_controls() {
    for fault in mask_bit:block-0-.projection_dropout skip_recompute:block-0-.down stale_read:block-0-.down; do
        node=${fault#*:} && node=${node/-0-/[0]}
        run 40 1 4 "control: ${fault%%:*}" experiments/bench/gpu/tokens.yaml steps=5 \
            "policy={name: every, keep_saved: false}" "fault={kind: ${fault%%:*}, step: 2, node: '$node'}" &&
            ! grep -aqE 'DIFFERS at step [2-4]' "$now" && # of the fault's step, or one after it
            fail "control: ${fault%%:*}" "it did not show"
    done
}

# Every policy, rng mode and memory mode on small networks.
part_equality() { check 200 'equality/*_cuda'; }

# Of its 36 runs the 9 of rng: unsafe must differ, which is exit code 1, and no others may.
part_randomness() {
    run 200 1 40 "every way to draw again" experiments/bench/gpu/rng.yaml || return
    [ "$(grep -acE '(counter|stash|mask) +equal ' "$now")" = 27 ] && [ "$(grep -acE 'unsafe +DIFFERS' "$now")" = 9 ] ||
        fail "every way to draw again" "others differ than the 9 that are unsafe"
}

# Reads and writes out of bounds, races in shared memory, barriers, in the one process that uses the device. Errors that
# NVIDIA's libraries get and overcome while they look around are no errors here, and their kernels, by parts of their
# mangled names, are theirs.
part_sanitizer() {
    local tool others='cudnn|cublas|cutlass|cask|xmma|nvjet|gemm|gemv|convol|fprop|dgrad|wgrad|winograd|fft'
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -1)
    [ -n "$tool" ] || { leave_out "compute-sanitizer" "it is not on this machine"; return; }
    for way in memcheck:images memcheck:tokens racecheck:images racecheck:tokens synccheck:images synccheck:tokens; do
        try 90 0 8 "compute-sanitizer $way" env "LD_LIBRARY_PATH=$PWD/lib:$LD_LIBRARY_PATH" "$tool" --tool "${way%:*}" \
            --target-processes application-only --report-api-errors no --error-exitcode 9 \
            --kernel-name-exclude "regex=$others" program/rematch-cuda child-run variant quiet 1 "" "" \
            "experiments/bench/gpu/${way#*:}.yaml" batch=4 steps=1 policy=every backend.graph=false "results=$results" 3>/dev/null
    done
}

part_bench() {
    local more=() asked limit
    timeout -k 5 60 "$PYTHON" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null ||
        { leave_out "ratios to PyTorch" "it is not here, or sees no device" && more=(--no-peer); }
    limit=$(($(left) - 15))
    [ $limit -gt 20 ] || { leave_out "bench" "no time was left; ./gpu.sh bench runs it alone"; return; }
    read -ra asked <<<"${GPU_BENCH:-}"
    try $((limit + 10)) '0|1' 200 "bench" "$PYTHON" -B experiments/bench/gpu.py --limit $limit --out "$GPU_OUT/bench-gpu.md" \
        "${more[@]}" "${asked[@]}" # 1: all of it ran, and a figure misses its target, as its table says
}

[ -d lib ] || tar -xzf lib.tar.gz || exit 3
missing=$(for program in program/rematch-cuda program/suite; do LD_LIBRARY_PATH=$PWD/lib:$LD_LIBRARY_PATH ldd $program; done |
    awk '/not found/ {print $1}' | sort -u | tr '\n' ' ')
if [ -n "$missing" ]; then
    say "missing shared libraries: $missing; looked in $LD_LIBRARY_PATH"
    exit 77
fi
say "$(date -u '+%Y-%m-%d %H:%M UTC'), $(uname -sr), $(nproc) cores, libraries in $LD_LIBRARY_PATH"
# It keeps the driver awake between short programs, too.
nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw --format=csv -lms 1000 >>"$GPU_OUT/clocks.csv" 2>&1 &
watch=$!
[ $# -gt 0 ] || set -- device steps tests experiments controls equality randomness sanitizer
for part in "$@"; do
    before=${#failed[@]}
    say "== $part"
    if declare -F "part_$part" >/dev/null; then "part_$part"; else fail "$part" "there is no such part"; fi
    [ "$before" = ${#failed[@]} ] || tar -C "$results" -czf "$GPU_OUT/results-$part-$(date -u +%H%M%S).tar.gz" .
    find "$results" -mindepth 1 -delete
done
say "== ${#failed[@]} failed, ${#left_out[@]} left out, ${#skipped[@]} tests skipped themselves; $SECONDS s of $GPU_LIMIT"
for one in "${failed[@]/#/failed: }" "${left_out[@]/#/left out: }" "${skipped[@]/#/skipped: }"; do say "$one"; done
[ ${#failed[@]} = 0 ] && [ ${#left_out[@]} = 0 ]
