"""What the tests share: one thread, and the networks of the examples."""
import copy
import importlib
import unittest

import torch
import torch._dynamo

torch.set_num_threads(1)
NETWORKS = "resnet", "gpt", "unet", "llama", "bert"


def network(name):
    return importlib.import_module(name).make("test")


def unequal(a, b):
    """How many tensors differ in a bit; lists of different lengths differ altogether."""
    return sum(not torch.equal(x, y) for x, y in zip(a, b)) + abs(len(a) - len(b))


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def twins(self, make):
        """The same model twice."""
        torch.manual_seed(0)
        model = make()
        return model, copy.deepcopy(model)
