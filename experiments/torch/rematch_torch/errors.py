"""The errors that a user can mend, with the line of the user's model where there is one."""
import os
import re

import torch

TORCH = os.path.dirname(torch.__file__) + os.sep


class RematchError(RuntimeError):
    """What is wrong, where in the user's source, and what to do."""


def source_of(node):
    """'model.py:62' of the line of the user's model that an fx node comes from; '' where torch does not know."""
    lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    lines = [line for line in lines if not line[0].startswith(TORCH)]
    return f"{os.path.basename(lines[-1][0])}:{lines[-1][1]}" if lines else ""


def refuse(what, todo, node=None):
    where = source_of(node) if node is not None else ""
    raise RematchError(f"{where + ': ' if where else ''}{what}; {todo}")


def check_torch():
    version = tuple(int(n) for n in re.findall(r"\d+", torch.__version__)[:2])
    if version < (2, 6):
        refuse(f"torch {torch.__version__} is too old to be planned", "install 2.6 or newer; the Recorder alone works")
