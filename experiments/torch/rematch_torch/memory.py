"""Counts the bytes that a part of a training step allocates, beyond what was live before it."""
import gc
import os

import torch

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # else it prints a line whenever counting begins


class Counter:
    """with Counter() as c: ...; c.peak. Several parts one after another add up: a second `with c:` goes on from what the
    first one left live. On a CPU every allocation of torch counts, a kernel's scratch included; on a GPU what torch's
    allocator reports. What was garbage before is collected first, so that it does not die in between."""

    def __init__(self, collect=True):
        self.collect, self.live, self.peak = collect, 0, 0

    def __enter__(self):
        if self.collect:
            gc.collect()
        self.cuda = torch.cuda.is_available()
        if self.cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            self.before = torch.cuda.memory_allocated()
        else:
            self.profile = torch.autograd.profiler.profile(use_kineto=True, profile_memory=True)
            self.profile.__enter__()
        return self

    def __exit__(self, *error):
        if self.cuda:
            torch.cuda.synchronize()
            self.peak = max(self.peak, self.live + torch.cuda.max_memory_allocated() - self.before)
            self.live += torch.cuda.memory_allocated() - self.before
            return False
        self.profile.__exit__(*error)
        events = [e for e in self.profile.kineto_results.events() if e.name() == "[memory]"]
        for event in sorted(events, key=lambda e: e.start_ns()):
            self.live += event.nbytes()
            self.peak = max(self.peak, self.live)
        self.profile = None
        return False
