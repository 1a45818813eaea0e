"""python -m rematch_torch export MODULE:FUNCTION [-o net.json] [--flops]: FUNCTION() returns a model, its batch, and
perhaps a loss function of the model's output and the last of the batch."""
import argparse
import importlib
import os
import sys

from . import RematchError
from .export import export


def main():
    parser = argparse.ArgumentParser(prog="python -m rematch_torch", description=__doc__)
    parser.add_argument("command", choices=["export"])
    parser.add_argument("function", metavar="MODULE:FUNCTION")
    parser.add_argument("-o", "--out", default="net.json")
    parser.add_argument("--flops", action="store_true", help="flops in place of measured times")
    given = parser.parse_args()
    module, _, function = given.function.partition(":")
    sys.path.insert(0, os.getcwd())
    made = getattr(importlib.import_module(module), function or "make")()
    try:
        root = export(*made[:2], given.out, *made[2:], profile="flops" if given.flops else "measure")
    except Exception as error:
        reason = getattr(error, "inner_exception", error)
        if not isinstance(reason, RematchError):
            raise
        sys.exit(f"rematch_torch: {reason}")
    print(f"{given.out}: {len(root['operators'])} operators, {len(root['tensors'])} tensors; rematch plan --graph {given.out}")


if __name__ == "__main__":
    main()
