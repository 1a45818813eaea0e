#!/usr/bin/python3
"""Measures a step by how OpenMP's threads wait for each other: `experiments/bench/waiting.py [--out FILE]`.

A waiting thread can spin, which occupies a processor, or sleep, which costs a wake-up. Each setting of the environment
(the program chooses passive; a spin count of 300000 is libgomp's own default) is measured on an idle machine and beside
processes that only count and occupy every processor. Figures are medians of the steps after the first.
"""
import argparse
import signal
import statistics
import subprocess
import sys

import measure
import report

NETWORKS = {"mlp-sequential": ("steps=100",), "bert-tweets": ("steps=12", "epochs=", "eval="),
            "sample-cnn-recompute": ("batch=1", "steps=6"), "vgg16-recompute": ("batch=8", "steps=3")}
SETTINGS = [{"OMP_WAIT_POLICY": "passive"}, *({"GOMP_SPINCOUNT": str(count)} for count in (1000, 10000, 300000)),
            {"OMP_WAIT_POLICY": "active"}]
HEAD = """# How threads wait

Written by `experiments/bench/waiting.py`, which says what is measured.
"""


class Load:
    """Processes that want a processor each."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.processes = [subprocess.Popen(["timeout", "600", "sh", "-c", "while :; do :; done"])
                          for _ in range(self.count)]

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
            process.wait()


def step(network, overrides, environment, timeout):
    try:
        run = measure.ours(network, *overrides, timeout=timeout, **environment)
    except measure.Failed as failure:
        return "-" if "had not ended" in str(failure) else f"failed: {failure}"
    return f"{1000 * statistics.median(run['seconds'][1:]):.2f} ({1000 * run['best_case_seconds']:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="*", choices=sorted(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--loads", nargs="*", type=int, default=[0, 16], help="processes beside (default 0 16)")
    parser.add_argument("--settings", nargs="*", type=int, default=range(len(SETTINGS)), help="by number, from 0")
    parser.add_argument("--limit", type=float, default=60, help="seconds of a run (default 60); '-' where it had not ended")
    parser.add_argument("--out", help="file of the result, in the project's folder")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the processes beside too
    table = report.Table("network", "processes beside", *(
        f"{key}={value}" for i in options.settings for key, value in SETTINGS[i].items()))
    for network in options.networks:
        for load in options.loads:
            with Load(load):
                table.row(" ".join((network, *NETWORKS[network])), load, *(
                    step(network, NETWORKS[network], SETTINGS[i], options.limit) for i in options.settings))
            print(table.rows[-1], flush=True)
    report.write(options.out, [("Milliseconds a step: median (best case)", table),
                               ("Provenance", report.provenance(measure.planner("mlp-sequential")))], HEAD)


if __name__ == "__main__":
    main()
