"""Checkpointing of PyTorch models within a budget of bytes, in equal bits; and records that `rematch compare` judges."""
from .errors import RematchError
from .recorder import Recorder

__all__ = ["Recorder", "RematchError"]
