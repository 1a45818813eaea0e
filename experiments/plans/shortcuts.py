#!/usr/bin/python3
"""shortcuts: networks whose shortcuts are long or nested, within shares of the memory that storing everything needs

Convolutions of 32 channels on 16 images of 32 x 32: 20 of them under one shortcut; ten shortcuts, each but the first within another
one; 16 residual blocks under one shortcut. "Found" are slowdowns that were reached once by random changes of dtr's schedules, as a
judge of `optimal`; the exit code is 1 where `optimal` is slower than those or than `dtr`, or needs more memory at the least.
"""
import json
import sys
import tempfile

from chain import ask, publish

BUDGETS = (85, 70, 60, 50, 40, 30)
SECONDS = 600  # for one plan


def conv(activation="relu"):
    return {"conv": {"channels": 32, "kernel": 3, "padding": 1, "activation": activation}}


def residual(*layers):
    return {"residual": {"layers": list(layers)}}


def nested(depth):
    return residual(conv(), *([nested(depth - 1)] if depth > 1 else []), conv())


NETWORKS = [  # name, layers between the first and the last convolution, their activation, slowdowns found by budget
    ("20 convolutions under one shortcut (26 nodes)", [residual(*[conv()] * 20)], "relu", (1.049, 1.112, 1.144, 1.191, 1.223, 1.909)),
    ("shortcuts, nested to a depth of 10 (35)", [nested(10)], "relu", (1.0002, 1.018, 1.112, 1.207)),
    ("16 residual blocks under one shortcut (55)",
     [residual(*[residual(conv("none"), conv("none"))] * 16, conv("none"))], "none", (1.050, 1.099, 1.138)),
]


def spec_of(layers, activation):
    return {"rematch": 1, "name": "shortcuts", "batch": 16, "steps": 1, "relu_save": "output", "backend": "ref", "policy": "store_all",
            "data": {"name": "synthetic", "shape": [32, 32, 3], "classes": 10}, "optimizer": {"name": "sgd", "lr": 0.01},
            "model": {"layers": [conv(activation), *layers, conv(activation), "global_avg_pool", {"linear": {"units": 10}}]}}


def slowdown_text(slowdown):
    return f"{slowdown:.4f}" if slowdown else "-"


def main():
    missed, rows = [], []
    for name, layers, activation, found in NETWORKS:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump(spec_of(layers, activation), file)  # JSON is YAML
            file.flush()

            def plan(policy, budget):
                return ask(file.name, f"policy={{name: {policy}, budget: {budget}}}", "--alone", seconds=SECONDS)

            everything = ask(file.name)["live_peak_bytes"]
            times = {"found": list(found) + [None] * (len(BUDGETS) - len(found))}
            least = {}
            for policy in ("optimal", "dtr"):
                answers = [plan(policy, f"{budget}%") for budget in BUDGETS]
                times[policy] = [answer and answer["slowdown"] for answer in answers]
                least[policy] = plan(policy, "least")["arena_bytes"] / everything
            rows += [[name, row, *map(slowdown_text, slowdowns), f"{100 * least[row]:.1f} %" if row in least else "-"]
                     for row, slowdowns in times.items()]
            for i, budget in enumerate(BUDGETS):
                ours, best = times["optimal"][i], min(filter(None, (times["found"][i], times["dtr"][i])), default=None)
                if best and not (ours and ours < best + 0.0005):
                    missed.append(f"{name} at {budget} %")
            if least["optimal"] > least["dtr"]:
                missed.append(f"the least memory of {name}")
    publish("shortcuts", ["network", "", *(f"{budget} %" for budget in BUDGETS), "least"], rows)
    print("optimal is behind: " + ", ".join(missed) if missed else "optimal is nowhere behind")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
