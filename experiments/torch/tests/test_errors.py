"""What cannot be planned is refused with one error, which names the line of the model and what to do."""
import os
import unittest
from unittest import mock

import torch
from torch import nn

import rematch_torch
from rematch_torch import errors

from . import models
from .support import Case

X = torch.randn(32, 32)


class Condition(models.Plain):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: torch.sin(self.layers[0](x)), lambda x: self.layers[0](x), (x,))


class Wrapped(torch.Tensor):
    """A tensor subclass that holds another tensor."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(tensors, _, size, stride):
        return Wrapped(tensors["inner"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args, kwargs=None):
        args, kwargs = torch.utils._pytree.tree_map_only(cls, lambda w: w.inner, (args, kwargs or {}))
        out = torch.utils._pytree.tree_map_only(torch.Tensor, cls, function(*args, **kwargs))
        return out


class Errors(Case):
    def refused(self, pattern, work):
        with self.assertRaisesRegex(Exception, pattern):
            work()

    def train(self, model, *batch, **settings):
        run = rematch_torch.compile(model, **{"budget": "least", **settings})
        run(*batch).square().mean().backward()

    def test_a_second_size(self):
        model = models.Plain()
        run = torch.compile(model, backend=rematch_torch.backend("least"), dynamic=True)
        self.refused(r"models.py:\d+: sizes are not fixed: .*pad batches to one size",
                     lambda: run(torch.randn(8, 32)).mean().backward())

    def test_a_higher_order_operator(self):
        self.refused(r"test_errors.py:\d+: the higher-order operator cond .* write it as plain operators",
                     lambda: self.train(Condition(), X))

    def test_a_tensor_subclass(self):
        model = models.Plain()
        self.refused("is a Wrapped, a tensor subclass .* give it plain tensors", lambda: self.train(model, Wrapped(X)))

    def test_a_budget_below_the_least(self):
        self.refused(r'budget 1% is below the least that was found: .*; raise it to "[0-9.]+%" or more, .*set by .*models.py:\d+',
                     lambda: self.train(models.Plain(), X, budget="1%"))

    def test_a_budget_that_is_none(self):
        for budget in ("much", "6 apples", 0, -1, 0.5, True):
            with self.subTest(budget=budget):
                torch._dynamo.reset()
                self.refused('budget .*; expected bytes such as "6GB"', lambda: self.train(models.Plain(), X, budget=budget))

    def test_no_program(self):
        with mock.patch.dict(os.environ, {"REMATCH_BIN": "/nowhere"}), mock.patch("shutil.which", lambda _: None), \
                mock.patch("os.access", lambda *_: False):
            self.refused("the program rematch is not found; .*set REMATCH_BIN", lambda: self.train(models.Plain(), X))

    def test_an_old_torch(self):
        with mock.patch.object(torch, "__version__", "2.5.1"):
            self.refused("torch 2.5.1 is too old .* install 2.6", lambda: rematch_torch.backend("least"))

    def test_a_graph_break_is_said(self):
        run = rematch_torch.compile(models.BreaksOnce(), "least")
        run(X).mean().backward()
        self.assertRegex(run.rematch.report(), r"part 2: .*\n(?s:.*)graph break at models.py:\d+")
        torch._dynamo.reset()
        run = rematch_torch.compile(models.Breaks(), "least")
        run(X).mean().backward()
        self.assertIn("not traced: ", run.rematch.report())

    def test_strict_refuses_a_graph_break(self):
        self.refused("graph_break", lambda: self.train(models.Breaks(), X, strict=True))
        torch._dynamo.reset()
        run = torch.compile(models.BreaksOnce(), backend=rematch_torch.backend("least", strict=True))
        self.refused(r"models.py:\d+: .*the graph breaks here", lambda: run(X).mean().backward())

    def test_no_gradients(self):
        self.refused("no gradients to compute; call train", lambda: rematch_torch.export(
            nn.Linear(32, 32).requires_grad_(False), X, os.devnull))

    def test_lines_are_the_user_s(self):
        class Node:
            meta = {"stack_trace": '  File "/a/b/net.py", line 7, in forward\n    x\n  File "/a/net.py", line 12, in f\n'
                    f'  File "{torch.__file__}", line 3, in g\n'}
        self.assertEqual(errors.source_of(Node), "net.py:12")


if __name__ == "__main__":
    unittest.main()
