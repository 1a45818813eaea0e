"""Checkpointing of PyTorch models within a budget of bytes, in equal bits; and records that `rematch compare` judges."""
from .backend import backend, compile
from .errors import RematchError
from .export import export
from .memory import Counter
from .profile import Profile
from .recorder import Recorder

__all__ = ["Counter", "Profile", "Recorder", "RematchError", "backend", "compile", "export"]
