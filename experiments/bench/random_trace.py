"""Steps of random operators as graph files: shapes that no model has, for what engines.py and programme.py check."""
import random

UNIT = 256  # bytes


class Trace:
    """A forward of count operators, or of 8 to 60, that mostly read the last few values, and its backward, one operator each."""

    def __init__(self, seed, count=None):
        self.random = random.Random(seed)
        self.tensors, self.operators, self.gradients = {"x": {"constant": True, "bytes": UNIT}}, [], {}
        drawn = self.random.randint(8, 60)
        forwards = [self.forward(i) for i in range(count or drawn)]
        for operator in reversed(forwards):
            self.backward(operator, operator is forwards[-1])

    def tensor(self, name, sizes, **keys):
        self.tensors[name] = {"bytes": UNIT * self.random.choice(sizes), **keys}
        return name

    def chance(self, share):
        return self.random.random() < share

    def add(self, name, reads, writes, scratch, **keys):
        self.operators.append({"name": name, "time": self.random.randint(1, 30), "reads": list(dict.fromkeys(reads)),
                               "writes": writes, "scratch": UNIT * self.random.choice(scratch), **keys})
        return self.operators[-1]

    def forward(self, i):
        reads = [f"a{i - 1}" if i else "x"]
        for _ in range(self.random.choice((0, 0, 1, 1, 2)) if i > 1 else 0):
            reads.append(f"a{max(0, i - 1 - int(self.random.expovariate(0.25)))}")
        writes = [self.tensor(f"a{i}", (1, 2, 4, 8, 8, 16))]
        writes += [self.tensor(f"saved{i}", (1, 2, 8, 16))] if self.chance(0.3) else []
        writes += [self.tensor(f"mask{i}", (1, 2), kept=True)] if self.chance(0.1) else []
        same = reads[0] != "x" and self.tensors[reads[0]]["bytes"] == self.tensors[writes[0]]["bytes"]
        return self.add(f"f{i}", reads, writes, (0, 0, 0, 0, 4, 12), in_place=same and self.chance(0.25), random=self.chance(0.05))

    def backward(self, operator, last):
        """Reads the output's gradients, what else was written, and maybe inputs and output; writes the inputs' gradients."""
        output, what = operator["writes"][0], self.random.choice(("", "", "input", "input", "output", "both"))
        reads = list(self.gradients.get(output, []))
        reads += operator["reads"] if what in ("input", "both") else []
        reads += [output] if last or what in ("output", "both") else []
        writes = []
        for read in operator["reads"]:
            if read != "x":
                writes.append(f"d{operator['name']}_{read}")
                self.tensors[writes[-1]] = {"bytes": self.tensors[read]["bytes"]}
                self.gradients.setdefault(read, []).append(writes[-1])
        writes = writes or [self.tensor(f"d{operator['name']}", (1,))]
        sizes = {self.tensors[g]["bytes"] for g in self.gradients.get(output, [])}
        self.add("b" + operator["name"], reads + operator["writes"][1:], writes, (0, 0, 0, 6), phase="backward",
                 in_place=self.tensors[writes[0]]["bytes"] in sizes and self.chance(0.3))

    def graph(self, name):
        return {"rematch": 1, "name": name, "tensors": [{"name": n, **keys} for n, keys in self.tensors.items()],
                "operators": self.operators}
