"""A joint graph as a traced step, the file that `rematch plan --graph` reads."""
import json
import re

import torch

from .errors import source_of
from .joint import DROPOUT, bytes_of, tensor_of

OUTSIDE, RETURN, END = "outside", "outside_backward", "end"


def module_of(node):
    """The path of the module that an operator belongs to, such as layers.0.qkv."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    path = re.sub(r"_modules\['(\w+)'\]", r"\1", path)  # as torch 2.6 writes it
    return re.sub(r"L\['\w+'\]|_modules\.", "", path).strip(".")


def label_of(node):
    """layers.0.qkv/addmm_3@model.py:62"""
    module, source = module_of(node), source_of(node)
    return f"{module + '/' if module else ''}{node.name}{'@' + source if source else ''}"


def cloned_bytes(joint):
    """Autograd copies a gradient whose strides are not those of a new tensor, one after the other, at the end."""
    strided = [tensor_of(n) for n in joint.backward_outputs if isinstance(n, torch.fx.Node)]
    return max((t.numel() * t.element_size() for t in strided if not t.is_contiguous()), default=0)


class GraphFile:
    """node_of[operator's name]: the fx node; what the file contains is in `root`."""

    def __init__(self, joint, profile, name):
        self.joint, self.profile, self.tensors, self.operators, self.node_of = joint, profile, {}, [], {}
        held = joint.source_bases(joint.forward_outputs) + joint.source_bases([n.args[1] for n in joint.moving])
        self.held = [b for b in dict.fromkeys(held) if b not in joint.backward_nodes]
        self.find_once()
        for n in joint.primals:
            self.tensor(n)
        for op in joint.forward:
            self.add_forward(op)
        self.add_outside()
        for op in joint.backward:
            self.add_backward(op)
        self.add_end()
        self.root = {"rematch": 1, "name": name, "batch": 1, "placed": False, "gradients": "written",
                     "tensors": list(self.tensors.values()), "operators": self.operators}

    def find_once(self):
        """Operators that run once, with the reason; and outputs that are held by who called, which are not dropped."""
        joint = self.joint
        self.once = {op: joint.once(op) for op in joint.forward if joint.once(op)}
        self.kept = set()
        operators = set(joint.forward)
        for value in self.held:
            read = any(value in joint.reads(op) for op in operators) or value in joint.source_bases(joint.forward_outputs)
            if read:
                self.once.setdefault(joint.operator_of(value), "its result is an output of the model")
            elif not read and joint.operator_of(value) not in self.once:
                self.kept.add(value)

    def tensor(self, value, **more):
        if value not in self.tensors:
            constant = {"constant": True} if value.op != "call_function" and not self.joint.is_tangent(value) else {}
            kept = {"kept": True} if value in self.kept else {}
            self.tensors[value] = {"name": value.name, "bytes": bytes_of(value), **constant, **kept, **more}
        return value.name

    def add(self, name, **keys):
        self.operators.append({"name": name, **keys})

    def described(self, op):
        """Its keys without what it reads."""
        self.node_of[label_of(op)] = op
        time, scratch = self.profile.of(op)
        scratch += self.joint.unseen_bytes(op)
        writes = [self.tensor(v) for v in self.joint.values(op)]
        return {"time": time, "writes": writes, **({"scratch": scratch} if scratch else {})}

    def add_forward(self, op):
        joint = self.joint
        if op.target is DROPOUT:  # its mask is kept, and a recomputation multiplies by it
            self.kept |= {v for v in joint.values(op) if v.args[1] == 1}
        keys = self.described(op)
        if op in self.once:
            keys["random"] = True
        self.add(label_of(op), reads=[self.tensor(b) for b in joint.reads(op)], **keys)

    def differentiable(self):
        """What the caller makes the loss of."""
        outputs = self.joint.source_bases(self.joint.forward_outputs)
        return [b for b in outputs if tensor_of(b).dtype.is_floating_point and b not in self.joint.backward_nodes]

    def add_outside(self):
        joint = self.joint
        self.tensors[OUTSIDE] = {"name": OUTSIDE, "bytes": 0}
        self.add(OUTSIDE, time=0, reads=[self.tensor(b) for b in self.differentiable()], writes=[OUTSIDE])
        self.add(RETURN, phase="backward", time=0, reads=[OUTSIDE], writes=[self.tensor(t) for t in joint.tangents])

    def add_backward(self, op):
        joint = self.joint
        keys = self.described(op)
        if op in joint.in_place:
            keys["in_place"] = True
        self.add(label_of(op), phase="backward", reads=[self.tensor(b) for b in joint.reads(op)], **keys)

    def add_end(self):
        """What lives until autograd has the gradients, besides those that no operator reads: they live anyway."""
        joint = self.joint
        read = {b for op in joint.backward for b in joint.reads(op)}
        ends = [b for b in joint.source_bases(joint.backward_outputs) if b in read]
        reads = dict.fromkeys(self.tensor(b) for b in self.held + joint.tangents + ends)
        scratch = cloned_bytes(joint)
        self.tensors[END] = {"name": END, "bytes": 0}
        self.add(END, phase="backward", time=0, reads=list(reads), writes=[END], **({"scratch": scratch} if scratch else {}))

    def write(self, path):
        """One tensor or operator a line, so that errors of the program name one."""
        with open(path, "w") as f:
            f.write(json.dumps(self.root).replace("}, {", "},\n{").replace("[{", "[\n{") + "\n")
