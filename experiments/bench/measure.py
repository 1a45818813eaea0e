"""Runs our program and the peers as processes and reads what they measured."""
import ctypes
import glob
import json
import os
import re
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARIES = "/usr/lib/x86_64-linux-gnu"  # where Debian keeps a folder for each BLAS
PROGRAM = os.environ.get("REMATCH_BIN", os.path.join(ROOT, "build", "rematch"))
TRACE = os.path.join(os.path.dirname(os.path.realpath(PROGRAM)), "trace.so")  # of experiments/bench/gpu/trace.c
PEERS_PYTHON = os.path.join(ROOT, "build", "bench-venv", "bin", "python3")  # of make bench
TCMALLOC = os.path.join(LIBRARIES, "libtcmalloc_minimal.so.4")
DEBIAN_PYTHON = "/usr/bin/python3"
NEWEST = os.path.exists(os.path.join(ROOT, "build", "bench-venv", "made"))
PEAK = os.path.join(os.path.dirname(os.path.realpath(PROGRAM)), "peak")  # of experiments/bench/peak.c


class Failed(Exception):
    """A process that failed, with the end of its messages; said: what it had printed."""

    def __init__(self, message, said=""):
        super().__init__(message)
        self.said = text(said) or ""


def output(command, allowed=(0,), timeout=None, **environment):
    try:
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{' '.join(command)}\nhad not ended after {timeout:.0f} s", error.stdout) from error
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    if done.returncode not in allowed:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise Failed(f"{' '.join(command)}\nended with {done.returncode}:\n{said}", done.stdout)
    return done.stdout


def usage(command):
    """Processor seconds and MiB of memory at the most of a command whose output is of no interest."""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise Failed(f"{' '.join(command)}\nended with {child.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


class Stolen:
    """The share of all processors' time that a virtual machine's host gave to others while this was entered: `steal` of
    /proc/stat (man 5 proc), 0 on a machine of one's own."""

    @staticmethod
    def read():
        with open("/proc/stat", encoding="ascii") as file:
            times = [int(word) for word in file.readline().split()[1:9]]  # user ... steal; what follows is in user
        return times[7], sum(times)

    def __enter__(self):
        self.before = self.read()
        return self

    def __exit__(self, *_):
        stolen, total = (after - before for after, before in zip(self.read(), self.before))
        self.share = stolen / max(total, 1)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def plan(*words, timeout=None):
    """What `rematch plan --json` says of a spec or of --graph and a graph file, and overrides."""
    return json.loads(output([PROGRAM, "plan", *words, "--json"], timeout=timeout))


def run(folder, spec, *overrides, timeout=None, **environment):
    """One training run by this project, without a baseline beside it; expectations are not ours to judge here."""
    output([PROGRAM, "run", spec, "--only", "variant", *overrides, f"results={folder}"], (0, 1), timeout, **environment)


def costs(path, spec, *words, timeout=None):
    """Times a run that stores everything, whose result file becomes path; returns path."""
    with tempfile.TemporaryDirectory(prefix="rematch-bench-") as folder:
        run(folder, spec, "policy=store_all", "steps=4", *words, timeout=timeout)
        os.replace(only_file(folder, spec), path)
    return path


def only_file(folder, spec):
    found = glob.glob(os.path.join(folder, "**", "*.h5"), recursive=True)
    if len(found) != 1:
        raise Failed(f"{spec}: {len(found)} result files where one was expected")
    return found[0]


def ours(spec, *overrides, warm=1, timeout=None, **environment):
    """A run's time is that of the fastest step after the first ones, which warm up."""
    with tempfile.TemporaryDirectory(prefix="rematch-bench-") as folder:
        run(folder, spec, *overrides, timeout=timeout, **environment)
        return read(json.loads(output([PROGRAM, "show", only_file(folder, spec), "--json"])), warm)


def covered(intervals):
    """How much of time intervals cover that may overlap."""
    total = reached = 0
    for start, end in sorted(intervals):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total


def traced(spec, *overrides, steps, timeout=None):
    """How long a device works within each of a run's recorded steps (all but the first), as CUPTI sees it, in seconds;
    and on how many kernels, copies and fills."""
    try:
        ctypes.CDLL(TRACE)
    except OSError as error:
        raise Failed(f"not measured: {error}") from error
    launches = {}
    with tempfile.TemporaryDirectory(prefix="rematch-bench-") as folder:
        with open(os.path.join(folder, "trace"), "w+", encoding="ascii") as file:
            run(folder, spec, *overrides, f"steps={steps}", timeout=timeout, CUDA_INJECTION64_PATH=TRACE,
                REMATCH_TRACE=file.name)
            for line in file:
                if not line[0].isdigit():
                    raise Failed(f"{spec}: {line.strip()}")
                launch, start, end = map(int, line.split())
                launches.setdefault(launch, []).append((start, end))
    if len(launches) != steps - 1:
        raise Failed(f"{spec}: CUPTI saw {len(launches)} recorded steps where {steps - 1} were expected")
    return [covered(one) * 1e-9 for one in launches.values()], max(len(one) for one in launches.values())


def provenance(file):
    return {group: file["/provenance/" + group] for group in ("git", "build", "libs", "host", "gpu")
            if "/provenance/" + group in file}


def planner(*arguments):
    """The provenance of plans that are made here, by one of them."""
    with tempfile.TemporaryDirectory(prefix="rematch-bench-") as folder:
        path = os.path.join(folder, "plan.h5")
        output([PROGRAM, "plan", *arguments, "--out", path])
        return provenance(json.loads(output([PROGRAM, "show", path, "--json"])))


def read(file, warm):
    steps, summary, plan_ = file["steps"], file["/summary"], file["/plan"]
    seconds = [ns * 1e-9 for ns in steps["total_ns"]]
    clocks = {key[len("clock_"):-len("_ns")]: summary[key] * 1e-9 for key in summary if key.startswith("clock_")}
    own = () if "device_used_bytes" in summary else ("data",)  # a device computes while the next batch is read
    for part in "optimizer", "digest", *own:
        clocks[part] = sum(steps[part + "_ns"]) * 1e-9
    fastest = min(seconds[warm:] or seconds)
    return {"step_seconds": fastest, "seconds": seconds, "all_seconds": sum(seconds),
            "best_case_seconds": summary.get("step_best_case_ns", fastest * 1e9) * 1e-9,
            "plan": plan_["hash"], "parts": [*file.get("summary", {}).get("op_least_ns", []),
                                             summary.get("rest_least_ns", fastest * 1e9)],
            "before_mib": summary["start_rss_bytes"] / 1024 ** 2,
            "high_water_mib": summary["high_water_bytes"] / 1024 ** 2, "clocks": clocks,
            "overhead": summary["overhead_bytes"], "losses": steps["loss"], "provenance": provenance(file),
            "peak_bytes": plan_["peak_bytes"], "live_peak_bytes": plan_["live_peak_bytes"],
            "static_bytes": plan_["static_bytes"], "slowdown": plan_["slowdown"],
            "predicted_seconds": plan_.get("predicted_step_ns", 0) * 1e-9,  # 0: costs were not measured
            **{key: summary[key] for key in summary if key.startswith("device_")}}


def peak(threads):
    """The most flops a second that this machine's arithmetic has for float32, just now."""
    return float(output([PEAK], OMP_NUM_THREADS=str(threads))) * 1e9


def torch_peer(python, *words, timeout=None, done=None, **environment):
    """What experiments/bench/torch_peer.py measured, one policy after the other; put in done as well, which has what there was of it
    where it failed."""
    return script_peer(python, "torch_peer.py", *words, timeout=timeout, done=done, **environment)


def script_peer(python, script, *words, timeout=None, done=None, **environment):
    """The same of any script in bench/ that prints lines of JSON."""
    done, said = [] if done is None else done, ""
    try:
        said = output([python, os.path.join(ROOT, "experiments", "bench", script), *(str(word) for word in words)], timeout=timeout,
                      **environment)
    except Failed as failure:
        said = failure.said
        raise
    finally:
        done.extend(json.loads(line) for line in said.splitlines() if line.startswith("{") and line.endswith("}"))
    return done


def peer(network, batch, steps, threads, who):
    """The same training by a peer: the newest, with tcmalloc and, in PyTorch's allocator, huge pages; or where `make
    bench` could not install them, Debian's PyTorch with OpenBLAS, where that is there, whichever BLAS the system has
    chosen."""
    environment = {"LD_PRELOAD": TCMALLOC, "THP_MEM_ALLOC_ENABLE": "1"} if NEWEST else {"LD_LIBRARY_PATH": ":".join(os.path.join(LIBRARIES, folder)
                                                                 for folder in ("openblas-pthread", "lapack"))}
    done, = script_peer(PEERS_PYTHON if NEWEST else DEBIAN_PYTHON, who.script, network, "--batch", batch, "--steps",
                        steps, "--threads", threads, *who.arguments, **environment)
    return done
