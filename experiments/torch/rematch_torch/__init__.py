"""Checkpointing of PyTorch models within a budget of bytes, in equal bits; and records that `rematch compare` judges."""
from .backend import backend, compile
from .errors import RematchError
from .memory import Counter
from .recorder import Recorder

__all__ = ["Counter", "Recorder", "RematchError", "backend", "compile"]
