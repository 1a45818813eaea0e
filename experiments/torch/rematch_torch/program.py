"""An fx graph as a Python function that drops every value after its last use. It takes its inputs in a list, which it
empties, so that they can die, too."""
import operator

import torch.fx as fx


class Text:
    """Python text of arguments; what is no node, list, tuple or dictionary gets a name in `space`."""

    def __init__(self):
        self.space, self.names = {}, {}

    def constant(self, value):
        name = f"c{len(self.space)}"
        self.space[name] = value
        return name

    def of(self, a):
        if isinstance(a, fx.Node):
            return self.names[a]
        if isinstance(a, (list, tuple)):
            inner = ", ".join(self.of(x) for x in a)
            return f"[{inner}]" if isinstance(a, list) else f"({inner},)" if a else "()"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{k!r}: {self.of(v)}" for k, v in a.items()) + "}"
        return repr(a) if a is None or isinstance(a, (bool, int)) else self.constant(a)

    def call(self, node):
        """Some operators have an argument called self, so that keywords are given as a dictionary."""
        args = [self.of(a) for a in node.args] + [f"**{self.of(dict(node.kwargs))}"] * bool(node.kwargs)
        return f"{self.names[node]} = {self.constant(node.target)}({', '.join(args)})"


def last_uses(nodes):
    """{node: what dies with it}"""
    last = {}
    for n in nodes:
        for a in [n] + n.all_input_nodes:
            last[a] = n
    dead = {}
    for a, n in last.items():
        dead.setdefault(n, []).append(a)
    return dead


def program(module):
    text, lines, nodes = Text(), [], list(module.graph.nodes)
    text.names = {n: f"v{i}" for i, n in enumerate(nodes)}
    inputs = [n for n in nodes if n.op == "placeholder"]
    dead = last_uses(nodes)
    lines.append(f"{text.of(tuple(inputs))} = inputs" if inputs else "")
    lines.append("inputs.clear()")
    lines += [f"del {text.names[n]}" for n in inputs if not n.users]
    for n in nodes:
        if n.op == "get_attr":
            lines.append(f"{text.names[n]} = {text.constant(operator.attrgetter(n.target)(module))}")
        elif n.op == "output":
            lines.append(f"return {text.of(n.args[0])}")
        elif n.op == "call_function":
            lines.append(text.call(n))
        if n.op == "call_function" and dead.get(n):
            lines.append(f"del {', '.join(text.names[a] for a in dead[n])}")
    source = "def run(inputs):\n" + "".join(f"    {line}\n" for line in lines)
    exec(compile(source, "<planned step>", "exec"), text.space)
    run = text.space["run"]
    run._boxed_call = True
    return run
