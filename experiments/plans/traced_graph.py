#!/usr/bin/python3
"""Turns a traced training step into a graph file: traced_graph.py TRACE.json[.gz] NAME BATCH > NAME.json

A trace has `storages`, [{bytes, kind: constant | value}], and `ops` in the order in which they ran, [{name, time_ns, backward, reads,
writes}], reads and writes being numbers of storages; aliases are resolved.

What is exact: every operator's time, every value's bytes, what is read when. A forward operator is a node. Its output is what forward
operators read of it; what only backward operators read are its saved tensors; what nobody reads is scratch. Backward operators belong to
the node whose values and constants they read, else to the node whose gradient they read: together they are its backward.

What is an approximation, none of which makes a plan look smaller or faster:
- A node's backward runs as one op: what it reads and writes coexists, and its temporaries' peak is scratch.
- A backward that reads one input holds all; a value of another node that it reads becomes an input.
- Several outputs that forward operators read are one value; so are their gradients.
- A slice of a gradient is a copy of its own. A gradient of a parameter is static instead of live from its backward on.
- A view's time belongs to the next operator, a dead operator's to the first forward of the next node.
"""
import gzip
import json
import sys


class Step:
    """Operators grouped by nodes. A node is known by the number of its forward operator."""

    def __init__(self, trace):
        self.bytes = [s["bytes"] for s in trace["storages"]]
        self.ops = trace["ops"]
        self.constant = {i for i, s in enumerate(trace["storages"]) if s["kind"] == "constant"}
        self.writer, self.readers = {}, {}
        for i, op in enumerate(self.ops):
            for s in op["writes"]:
                if s in self.writer or s in self.constant:
                    sys.exit(f"operator {i} ({op['name']}): storage {s} is written twice; expected once")
                self.writer[s] = i
            for s in op["reads"]:
                if s not in self.constant and self.writer.get(s, i) >= i and s not in op["writes"]:
                    sys.exit(f"operator {i} ({op['name']}): storage {s} is read before it is written; expected the order of a step")
                if op["writes"]:
                    self.readers.setdefault(s, []).append(i)
        self.find_live()
        self.find_nodes()
        self.assign()

    def forward(self, storage):
        """The node that writes it; None: a constant or a gradient."""
        i = self.writer.get(storage)
        return i if i is not None and not self.ops[i]["backward"] else None

    def find_live(self):
        last = max(i for i, op in enumerate(self.ops) if not op["backward"] and op["writes"])
        needed, self.live = set(self.ops[last]["writes"]), set()
        for i in reversed(range(len(self.ops))):
            op = self.ops[i]
            if op["writes"] and (op["backward"] or needed & set(op["writes"])):
                self.live.add(i)
                needed |= set(op["reads"])

    def find_nodes(self):
        self.nodes = {}
        views = dead = 0
        self.views = self.dead = 0
        for i, op in enumerate(self.ops):
            if op["backward"]:
                continue
            if i not in self.live:
                self.views, self.dead = self.views + (not op["writes"]), self.dead + bool(op["writes"])
                views, dead = (views, dead + op["time_ns"]) if op["writes"] else (views + op["time_ns"], dead)
                continue
            reads = {s: [r for r in self.readers.get(s, []) if r in self.live and r != i] for s in op["writes"]}
            y = [s for s in op["writes"] if any(not self.ops[r]["backward"] for r in reads[s])]
            if not y:
                y = [max(op["writes"], key=lambda s: (len(reads[s]) > 0, self.bytes[s]))]
            self.nodes[i] = {"y": y, "saved": [s for s in op["writes"] if reads[s] and s not in y],
                             "unread": [s for s in op["writes"] if not reads[s] and s not in y],
                             "inputs": list(dict.fromkeys(self.forward(s) for s in op["reads"] if self.forward(s) is not None)),
                             "values": set(op["reads"]) | set(op["writes"]), "time": op["time_ns"] + views, "once": dead, "group": []}
            views = dead = 0
        self.loss = max(self.nodes)
        self.nodes[self.loss]["once"] += dead + views

    def size(self, node):
        return sum(self.bytes[s] for s in self.nodes[node]["y"])

    def belongs(self, node, op):
        """Whether everything that op reads of the forward is read or written by the node, too."""
        own = [s for s in op["reads"] if self.forward(s) is not None or (s in self.constant and s in self.weights)]
        return own and set(own) <= self.nodes[node]["values"]

    def owner(self, op, of, group):
        """The node of a backward operator: of: gradient -> the node whose output it is the gradient of."""
        gradients = [s for s in op["reads"] if s in group]
        done = min((group[s] for s in gradients), default=self.loss)
        due = min((of.get(s) or group[s] for s in gradients), default=self.loss)
        order = sorted(self.nodes, reverse=True)
        for node in [n for n in order if n <= due] + [n for n in reversed(order) if due < n <= done]:
            if self.belongs(node, op):
                return node
        values = [self.forward(s) for s in op["reads"] if self.forward(s) is not None]
        if len(gradients) > 1 and not values:
            return done  # adds gradients up
        return max([due] + values)

    def label(self, node, op, of, taken):
        """Which inputs' gradients the operator writes."""
        inputs = sorted((n for n in self.nodes[node]["inputs"]), reverse=True)
        gradients = [s for s in op["reads"] if s in self.group]
        sums = {of.get(s) for s in gradients} if len(gradients) > 1 else set()
        for s in op["writes"]:
            if s not in self.readers:
                continue  # a parameter's
            same = [n for n in inputs if self.size(n) == self.bytes[s]]
            if len(sums) == 1 and None not in sums and self.bytes[s] == self.bytes[gradients[0]]:
                of[s] = min(sums)  # a sum of gradients of the same value
            elif same:
                of[s] = next((n for n in same if (node, n) not in taken), same[0])
            elif len(inputs) == 1:
                of[s] = inputs[0]
            if s in of:
                taken.add((node, of[s]))

    def assign(self):
        self.weights = {s for n in self.nodes for s in self.ops[n]["reads"] if s in self.constant}
        self.of, self.group, taken, views = {}, {}, set(), 0
        for i, op in enumerate(self.ops):
            if not op["backward"]:
                continue
            if not op["writes"]:
                views += op["time_ns"]
                continue
            node = self.owner(op, self.of, self.group)
            own = self.nodes[node]
            own["group"].append((i, op["time_ns"] + views))
            views = 0
            for s in op["reads"]:
                if self.forward(s) is not None and self.forward(s) < node and self.forward(s) not in own["inputs"]:
                    own["inputs"].append(self.forward(s))
            self.label(node, op, self.of, taken)
            self.group.update(dict.fromkeys(op["writes"], node))
        own["group"].append((own["group"][-1][0], views))

    def scratch(self, node):
        """The peak of what the group writes and alone reads, but for its inputs' gradients."""
        live = peak = 0
        order = [i for i, _ in self.nodes[node]["group"]]
        ends = {}
        for i in order:
            for s in self.ops[i]["writes"]:
                readers = self.readers.get(s, [])
                if readers and set(readers) <= set(order) and self.of.get(s) not in self.nodes[node]["inputs"]:
                    ends.setdefault(max(readers), []).append(s)
                    live += self.bytes[s]
            peak = max(peak, live)
            live -= sum(self.bytes[s] for s in ends.get(i, []))
        return peak

    def unplaced(self):
        """Bytes of gradients that no input's gradient stands for, by node: live from their group to their last reader's."""
        held = dict.fromkeys(self.nodes, 0)
        for s, node in self.group.items():
            last = min((self.group[self.ops[r]["writes"][0]] for r in self.readers.get(s, []) if self.ops[r]["backward"]), default=node)
            if last < node and self.of.get(s) not in self.nodes[node]["inputs"]:
                for n in self.nodes:
                    held[n] += self.bytes[s] if last <= n <= node else 0
        return held

    def gradients(self):
        """Bytes of each node's gradient: the largest tensor that was one, or its output's."""
        sizes = {}
        for s, node in self.of.items():
            sizes[node] = max(sizes.get(node, 0), self.bytes[s])
        return {n: sizes.get(n, self.size(n)) for n in self.nodes}

    def list(self):
        names = {n: f"{self.ops[n]['name']}.{n}" for n in self.nodes}
        gradient, held, back, nodes = self.gradients(), self.unplaced(), {}, []
        for n, node in self.nodes.items():
            op, group = self.ops[n], [i for i, _ in node["group"]]
            back[n] = bool(group) or any(back[x] for x in node["inputs"])
            reads = {s for i in group for s in self.ops[i]["reads"] if self.forward(s) is not None}
            words = (["x"] if any(self.forward(s) != n for s in reads) else []) + (["y"] if reads & set(node["y"]) else [])
            words += ["saved"] if reads & set(node["saved"]) else []
            inputs = sorted(node["inputs"], key=lambda x: self.size(x) != self.size(n))
            grown = [x for x in inputs if back[x]]
            written = any(self.of.get(s) in inputs for i in group for s in self.ops[i]["writes"])
            one = {"name": names[n], "inputs": [names[x] for x in inputs] or ["batch"], "forward": node["time"], "once": node["once"],
                   "backward": sum(time for _, time in node["group"]), "output": self.size(n),
                   "saved": sum(self.bytes[s] for s in node["saved"]), "gradient": gradient[n] if back[n] else 0,
                   "forward_scratch": sum(self.bytes[s] for s in node["unread"]),
                   "backward_scratch": self.scratch(n) + held[n] if back[n] else 0, "reads": words or ["nothing"],
                   "parameters": sum(self.bytes[s] for i in group for s in self.ops[i]["writes"] if s not in self.readers)}
            if not back[n]:
                one["forward_only"] = True
            if op["name"].endswith("_") and not op["name"].startswith("_"):
                one["in_place"] = True
            if grown and not written and all(gradient[x] == gradient[n] for x in grown):
                one["passes_gradient"] = True
            nodes.append(one)
        return nodes


def graph_of(trace, name, batch):
    """The graph file as an object."""
    step = Step(trace)
    nodes = step.list()
    constants = sum(step.bytes[s] for s in step.constant)
    forward = sum(not op["backward"] for op in step.ops)
    title = (f"{forward} forward operators as {len(nodes)} nodes ({step.views} views, {step.dead} dead), "
             f"{len(step.ops) - forward} backward ones with them; bounds of memory where a backward is one op")
    return {"rematch": 1, "name": name, "title": title, "batch": batch, "placed": True,
            "static": max(0, constants - sum(node["parameters"] for node in nodes)), "nodes": nodes}


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        return json.load(file)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    json.dump(graph_of(read(sys.argv[1]), sys.argv[2], int(sys.argv[3])), sys.stdout, indent=0)
