"""The joint graph of a training step, as AOTAutograd traces it, seen as operators that read and write storages."""
import operator

import torch
from torch.utils import _pytree as pytree

from .errors import refuse

aten = torch.ops.aten

# Elementwise operators of gradients that may write into an operand that dies: the same bits, one tensor less. The number
# of operands that can be it: a sum is the same either way round.
IN_PLACE = {aten.add.Tensor: (aten.add_.Tensor, 2), aten.mul.Tensor: (aten.mul_.Tensor, 2),
            aten.mul.Scalar: (aten.mul_.Scalar, 1), aten.div.Tensor: (aten.div_.Tensor, 1),
            aten.neg.default: (aten.neg_.default, 1)}
BATCH_NORM = aten._native_batch_norm_legit_functional.default
DROPOUT = aten.native_dropout.default


def tensors_of(node):
    return [t for t in pytree.tree_leaves(node.meta.get("val")) if isinstance(t, torch.Tensor)]


def tensor_of(node):
    """The tensor that a node is; None: it is a tuple, or no tensor."""
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) else None


def storage(tensor):
    return tensor.untyped_storage()._cdata


def bytes_of(node):
    return tensor_of(node).untyped_storage().nbytes()


def schema_of(node):
    return getattr(node.target, "_schema", None)


def draws(node):
    """Whether it reads the random number generator. Attention is called so even where it drops nothing."""
    if not isinstance(node.target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    names = [a.name for a in schema_of(node).arguments]
    if "dropout_p" not in names:
        return True
    place = names.index("dropout_p")
    given = node.args[place] if place < len(node.args) else node.kwargs.get("dropout_p", 0.0)
    return given != 0.0


class Joint:
    """base[n]: the node that wrote the storage of n, which is n itself unless n is a view."""

    def __init__(self, module, forward_outputs):
        self.module = module
        module.graph.eliminate_dead_code()
        output = next(n for n in module.graph.nodes if n.op == "output")
        flat = pytree.arg_tree_leaves(*output.args)
        described = pytree.arg_tree_leaves(output.meta["desc"]) if "desc" in output.meta else [None] * len(flat)
        self.described = described[:forward_outputs], described[forward_outputs:]
        self.forward_outputs, self.backward_outputs = flat[:forward_outputs], flat[forward_outputs:]
        self.nodes = [n for n in module.graph.nodes if n.op != "output"]
        self.index = {n: i for i, n in enumerate(self.nodes)}
        for n in self.nodes:
            if n.op == "get_attr" and "val" not in n.meta:  # torch 2.6 describes no constants
                n.meta["val"] = operator.attrgetter(n.target)(module)
        self.check()
        self.find_bases()
        self.sort_passes()
        self.find_moved()
        self.find_in_place()

    def check(self):
        for n in self.nodes:
            if isinstance(n.target, torch._ops.HigherOrderOperator):
                refuse(f"the higher-order operator {n.target} has a graph of its own, which is not planned",
                       "write it as plain operators, or keep it outside of what is compiled", n)
            schema = schema_of(n)
            if schema and schema.is_mutable and n.target is not aten.copy_.default:
                refuse(f"{n.target} changes a tensor in place within the joint graph", "write it out of place", n)
            sizes = [s for t in tensors_of(n) for s in t.shape]
            if n.op == "call_function" and any(isinstance(s, torch.SymInt) for s in sizes):
                refuse(f"sizes are not fixed: that of {n.name} is {tuple(tensors_of(n)[0].shape)}, as a second batch had another",
                       "pad batches to one size, drop the last one, or compile with dynamic=False", n)

    def find_bases(self):
        self.base, owner = {}, {}
        for n in self.nodes:
            own = tensor_of(n)
            self.base[n] = n
            if own is not None and not self.moves(n):
                self.base[n] = owner.setdefault(storage(own), n)
            elif own is None and n.op == "call_function":
                known = [owner.get(storage(t)) for t in tensors_of(n)]
                if known and all(known):  # a split: its parts are views
                    self.base[n] = known[0]

    @staticmethod
    def moves(n):
        """Whether it copies new values into an input, such as statistics."""
        return n.target is aten.copy_.default

    def is_tangent(self, n):
        return n.op == "placeholder" and "tangent" in str(n.target)

    def is_operator(self, n):
        return (n.op == "call_function" and n.target is not operator.getitem and self.base[n] is n
                and not self.moves(n) and bool(tensors_of(n)))

    def sort_passes(self):
        self.tangents = [n for n in self.nodes if self.is_tangent(n)]
        self.primals = [n for n in self.nodes if n.op == "placeholder" and not self.is_tangent(n)]
        needed, stack = set(), [n for n in self.forward_outputs if isinstance(n, torch.fx.Node)]
        stack += [n for n in self.nodes if self.moves(n)]
        while stack:
            n = stack.pop()
            if n not in needed:
                needed.add(n)
                stack += n.all_input_nodes
        backward = set(self.tangents)
        for n in self.nodes:
            late = str(n.meta.get("partitioner_tag", "is_backward")) != "is_forward"
            if n.op == "call_function" and n not in needed and (late or any(a in backward for a in n.all_input_nodes)):
                backward.add(n)
        self.backward_nodes = backward
        self.forward = [n for n in self.nodes if self.is_operator(n) and n not in backward]
        self.backward = [n for n in self.nodes if self.is_operator(n) and n in backward]
        self.moving = [n for n in self.nodes if self.moves(n)]

    def find_moved(self):
        """Inputs that change once the forward has run: a recomputation would read other values than the forward did."""
        self.moved = {self.base[n.args[0]] for n in self.moving}
        of = {id(n.meta.get("desc")): n for n in self.primals}
        for d in self.described[0]:
            moved = of.get(id(getattr(d, "mutated_input", None)))
            if moved is not None:
                self.moved.add(moved)

    def operator_of(self, value):
        """The operator that writes a base value."""
        return value.args[0] if value.op == "call_function" and value.target is operator.getitem else value

    def values(self, op):
        """The base values that an operator writes."""
        if tensor_of(op) is not None:
            return [op]
        return [u for u in op.users if u.target is operator.getitem and tensor_of(u) is not None and self.base[u] is u]

    def reads(self, op):
        """The base values that an operator reads, through views."""
        found = dict.fromkeys(self.base[a] for a in op.all_input_nodes)
        return [b for b in found if tensor_of(b) is not None]

    def unseen_bytes(self, op):
        """Of results that no node takes: they die with the operator."""
        if tensor_of(op) is not None:
            return 0
        taken = {storage(tensor_of(u)) for u in op.users if tensor_of(u) is not None}
        return sum(t.untyped_storage().nbytes() for t in tensors_of(op) if storage(t) not in taken)

    def once(self, op):
        """Why an operator of the forward never runs twice; '': it may. Batch norm's output does not depend on the
        statistics that it moves, and dropout is recomputed from its mask."""
        if draws(op) and op.target is not DROPOUT:
            return "it draws random numbers"
        if op.target is BATCH_NORM and op.args[5] is True:
            return ""
        return "it reads what the forward moves" if any(b in self.moved for b in self.reads(op)) else ""

    def source_bases(self, nodes):
        """The operators' values behind nodes, each once."""
        bases = dict.fromkeys(self.base[n] for n in nodes if isinstance(n, torch.fx.Node))
        return [b for b in bases if b.op == "call_function"]

    def find_in_place(self):
        """in_place[op] of the backward: the operand that it may overwrite, the last reader of a value of the backward."""
        self.in_place, last = {}, {}
        for op in self.backward:
            for b in self.reads(op):
                last[b] = op
        kept = set(self.source_bases(self.backward_outputs))
        for op in self.backward:
            _, operands = IN_PLACE.get(op.target, (None, 0))
            if op.kwargs or len(op.args) > 2:
                continue
            nodes = [a for a in op.args if isinstance(a, torch.fx.Node)]
            for a in op.args[:operands]:
                if isinstance(a, torch.fx.Node) and self.can_overwrite(op, a, nodes, last, kept):
                    self.in_place[op] = a
                    break

    def can_overwrite(self, op, a, operands, last, kept):
        b, mine, theirs = self.base[a], tensor_of(op), tensor_of(a)
        whole = theirs is not None and theirs.numel() * theirs.element_size() == bytes_of(b)
        alike = whole and (mine.shape, mine.dtype, mine.stride()) == (theirs.shape, theirs.dtype, theirs.stride())
        own = b.op == "call_function" and b in self.backward_nodes and b not in kept and last.get(b) is op
        return alike and own and sum(self.base[o] is b for o in operands) == 1
