"""From a plan to the two graphs that run it: every operator of the forward until the loss, then the rest. What is not
computed again is kept longer, so a wrong plan costs memory, never bits."""
import operator

import torch.fx as fx
from torch.utils import _pytree as pytree

from .graph_file import OUTSIDE
from .joint import DROPOUT, IN_PLACE, aten

try:  # torch 2.8 or newer describes outputs
    from torch._functorch._aot_autograd.descriptors import SavedForBackwardsAOTOutput
except ImportError:
    SavedForBackwardsAOTOutput = None


class Side:
    """One of the two graphs while it is built. now[n]: the newest version of a joint node; views are made again of each
    version."""

    def __init__(self, joint):
        self.joint, self.graph, self.now, self.views = joint, fx.Graph(), {}, {}

    def placeholder(self, node):
        new = self.graph.placeholder(node.name)
        new.meta = dict(node.meta)
        return new

    def value(self, node):
        if node in self.now:
            return self.now[node]
        base = self.joint.base[node]
        if base is not node:
            key = node, self.value(base)
            if key not in self.views:
                self.views[key] = self.call(node)
            return self.views[key]
        if node.op == "get_attr":
            self.now[node] = self.graph.get_attr(node.target)
            self.now[node].meta = dict(node.meta)
            return self.now[node]
        return self.missing(node)

    def missing(self, node):
        raise AssertionError(f"{node} is read before it is written")

    def call(self, node, target=None, args=None):
        args, kwargs = pytree.tree_map_only(fx.Node, self.value, (node.args if args is None else args, dict(node.kwargs)))
        new = self.graph.call_function(target or node.target, tuple(args), kwargs)
        new.meta = dict(node.meta)
        return new

    def run(self, op):
        target, args = op.target, op.args
        over = self.joint.in_place.get(op)
        if over is not None:
            target = IN_PLACE[target][0]
            args = args if args[0] is over else (args[1], args[0])
        self.bind(op, self.call(op, target, args))

    def bind(self, op, new):
        """Results are taken out of their tuple at once, so that each can die on its own."""
        self.now[op] = new
        for value in self.joint.values(op):
            if value is not op:
                self.now[value] = self.graph.call_function(operator.getitem, (new, value.args[1]))
                self.now[value].meta = dict(value.meta)

    def run_again(self, op):
        if op.target is not DROPOUT:
            self.run(op)
            return
        out = [v for v in self.joint.values(op) if v.args[1] == 0]
        mask = next(v for v in self.joint.values(op) if v.args[1] == 1)
        p = op.args[1]
        for value in out:  # as the kernel does it: the product with the mask, scaled in place
            product = self.graph.call_function(aten.mul.Tensor, (self.value(op.args[0]), self.value(mask)))
            scale = 0.0 if p == 1 else 1.0 / (1.0 - p)
            self.now[value] = self.graph.call_function(aten.mul_.Scalar, (product, scale))
            product.meta = self.now[value].meta = dict(value.meta)

    def finish(self, outputs, described):
        result = [self.value(o) if isinstance(o, fx.Node) and o.graph is not self.graph else o for o in outputs]
        output = self.graph.output(tuple(result))
        output.meta["desc"] = described
        output.meta["val"] = [r.meta.get("val") if isinstance(r, fx.Node) else r for r in result]
        for n in reversed(list(self.graph.nodes)):
            if n.op == "call_function" and not n.users and n.target is operator.getitem:
                self.graph.erase_node(n)
        self.graph.lint()
        return fx.GraphModule(self.joint.module, self.graph)


class Backward(Side):
    """What the forward computed arrives as a placeholder; `saved` lists them in order."""

    def __init__(self, joint):
        super().__init__(joint)
        self.saved = []
        for t in joint.tangents:
            self.now[t] = self.placeholder(t)
        self.first = next(iter(self.graph.nodes))

    def missing(self, node):
        self.saved.append(node)
        with self.graph.inserting_before(self.first):
            self.now[node] = self.placeholder(node)
        return self.now[node]


def sequence(file, ops):
    """(operator, runs again) until the loss, and after it."""
    names = [op["name"] for op in ops]
    at = names.index(OUTSIDE)
    steps = [(file.node_of[op["name"]], op["recompute"]) if op["name"] in file.node_of else None for op in ops]
    first, rest = steps[:at], steps[at:]
    assert not any(s and not s[1] and s[0] not in file.joint.backward_nodes for s in rest), "a first forward after the loss"
    return [s for s in first if s], [s for s in rest if s]


def with_unplanned(file, steps):
    """With the operators that no gradient depends on, and what moves inputs, where the model has them."""
    joint, done = file.joint, []
    left = set(joint.moving) | (set(joint.forward) - {op for op, _ in steps})
    extra = [n for n in joint.nodes if n in left]
    for op, again in steps:
        while extra and not again and joint.index[extra[0]] < joint.index[op]:
            done.append((extra.pop(0), False))
        done.append((op, again))
    return done + [(n, False) for n in extra]


def check_once(file, steps):
    seen = set()
    for op, again in steps:
        assert (op in seen) == again, f"the plan runs {op} {'again' if op in seen else 'first'} unexpectedly"
        assert not (again and op in file.once), f"the plan runs {op} again, but {file.once[op]}"
        seen.add(op)


def rebuild(file, ops):
    """The forward's and the backward's graph module."""
    joint = file.joint
    first, rest = sequence(file, ops)
    first = with_unplanned(file, first)
    check_once(file, first + rest)
    forward = Side(joint)
    for p in joint.primals:
        forward.now[p] = forward.placeholder(p)
    for op, again in first:
        if joint.moves(op):
            forward.call(op)
        else:
            (forward.run_again if again else forward.run)(op)
    backward = Backward(joint)
    for op, again in rest:
        (backward.run_again if again else backward.run)(op)
    back = backward.finish(joint.backward_outputs, joint.described[1])
    saved = list(given(forward, backward.saved))
    described = list(joint.described[0])
    if SavedForBackwardsAOTOutput is not None:
        described += [SavedForBackwardsAOTOutput(i) for i in range(len(saved))]
    return forward.finish(list(joint.forward_outputs) + saved, described), back


def given(forward, saved):
    """What the backward is given of the forward: of an input that the forward moves, a copy made before that."""
    joint, last = forward.joint, forward.now[forward.joint.primals[-1]]
    for node in saved:
        if node in joint.moved:
            with forward.graph.inserting_after(last):
                copy = forward.graph.call_function(aten.clone.default, (forward.now[node],))
            copy.meta = dict(node.meta)
            yield copy
        else:
            yield forward.value(node)


def recomputations(ops):
    return sum(op["recompute"] for op in ops)
