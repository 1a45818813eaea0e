#!/usr/bin/python3
"""Turns a trace of DTR's authors into a graph file: traced_graph.py TRACE.json[.gz] NAME BATCH > NAME.json

A trace has `storages`, [{bytes, kind: constant | value}], and `ops` in the order in which they ran, [{name, time_ns, backward, reads,
writes}], reads and writes being numbers of storages; aliases are resolved. Only names change: storage 7 is tensor t7. PyTorch's
operators in place are those whose names end with an underscore.
"""
import gzip
import json
import sys


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        return json.load(file)


def graph_of(trace, name, batch):
    """The graph file as an object."""
    tensors = [{"name": f"t{i}", "bytes": s["bytes"], "constant": s["kind"] == "constant"} for i, s in enumerate(trace["storages"])]
    operators = [{"name": op["name"], "phase": "backward" if op["backward"] else "forward", "time": op["time_ns"],
                  "reads": [f"t{i}" for i in op["reads"]], "writes": [f"t{i}" for i in op["writes"]],
                  "in_place": op["name"].endswith("_") and not op["name"].startswith("_")} for op in trace["ops"]]
    return {"rematch": 1, "name": name, "batch": batch, "placed": True, "tensors": tensors, "operators": operators}


def live_peak(trace):
    """The most bytes of values that live at once when the operators run as traced: from the writer to the last reader."""
    bytes_, last, live, peak = [s["bytes"] for s in trace["storages"]], {}, 0, 0
    for i, op in enumerate(trace["ops"]):
        last.update(dict.fromkeys(op["reads"], i))
    for i, op in enumerate(trace["ops"]):
        gradients = [s for s in op["writes"] if s not in last and op["backward"]]  # of parameters: static
        live += sum(bytes_[s] for s in op["writes"] if s not in gradients)
        peak = max(peak, live)
        values = {s for s in op["reads"] if trace["storages"][s]["kind"] == "value"} | set(op["writes"]) - set(gradients)
        live -= sum(bytes_[s] for s in values if last.get(s, i) == i)
    return peak


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    graph = json.dumps(graph_of(read(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
    print(graph.replace("}, {", "},\n{"))  # a line a tensor and an operator, for messages
