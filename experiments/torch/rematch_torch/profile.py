"""What an operator of a joint graph costs: its time and its scratch, measured once per operator and shapes, or its flops."""
import json
import os
import platform
import time

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.flop_counter import flop_registry

from .joint import tensors_of
from .memory import Counter

BYTES_PER_MICROSECOND = 5000


def describe(node):
    """Operator, shapes, strides and other arguments, as a key."""
    def of(value):
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype)[6:]}{list(value.shape)}{list(value.stride())}"
        return value

    def argument(a):
        return pytree.tree_map(of, a.meta["val"])
    args = pytree.tree_map_only(torch.fx.Node, argument, (node.args, dict(node.kwargs)))
    return f"{node.target}{args}"


def filled(fake):
    """A tensor of the same shape, strides and device: small random numbers, or zeros, which are valid indices."""
    extent = 1 + sum((n - 1) * s for n, s in zip(fake.shape, fake.stride())) if fake.numel() else 0
    if fake.dtype.is_floating_point:
        flat = (torch.randn(extent, device=fake.device) * 0.1).to(fake.dtype)
    else:
        flat = torch.zeros(extent, dtype=fake.dtype, device=fake.device)
    return flat.as_strided(fake.shape, fake.stride())


def flops(node):
    """Those of products and convolutions; of anything else one for each element that it writes."""
    count = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if count is None:
        return float(sum(t.numel() for t in tensors_of(node)))
    args, kwargs = pytree.tree_map_only(torch.fx.Node, lambda a: a.meta["val"], (node.args, dict(node.kwargs)))
    return float(count(*args, **kwargs, out_val=node.meta["val"]))


def guessed(node):
    """The microseconds of moving its bytes, of an operator that does not run on its own."""
    nodes = [node] + node.all_input_nodes
    return sum(t.numel() * t.element_size() for n in nodes for t in tensors_of(n)) / BYTES_PER_MICROSECOND


def clock():
    """One thread's own time is not disturbed by other processes."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


class Profile:
    """of(node): (time in microseconds, bytes of scratch). path: where measurements are kept for the next process; by
    default in the user's cache, by processor, threads and version of torch. how "flops": nothing is measured."""

    def __init__(self, how="measure", path=None):
        if how not in ("measure", "flops"):
            raise ValueError(f"profile {how!r}; expected measure or flops")
        self.how, self.known, self.fresh, self.seconds = how, {}, 0, 0.0
        folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        machine = f"{platform.machine()}-{torch.backends.cpu.get_cpu_capability()}-{torch.get_num_threads()}"
        name = f"profile-2-{torch.__version__}-{machine.replace(' ', '_')}.json"
        self.path = path or os.path.join(folder, "rematch_torch", name)
        if how == "measure" and os.path.exists(self.path):
            with open(self.path) as f:
                self.known = json.load(f)

    def of(self, node):
        if self.how == "flops":
            return flops(node), 0
        key = describe(node)
        if key not in self.known:
            began = time.perf_counter()
            with torch.no_grad(), _disable_current_modes(), unset_fake_temporarily(), torch.random.fork_rng():
                try:
                    self.known[key] = self.measure(node)
                except RuntimeError:  # what torch foretells of an operand is not always what its kernels take
                    self.known[key] = guessed(node), 0
            self.fresh += 1
            self.seconds += time.perf_counter() - began
        return self.known[key]

    @staticmethod
    def measure(node):
        def real(a):
            return pytree.tree_map_only(torch.Tensor, filled, a.meta["val"])
        args, kwargs = pytree.tree_map_only(torch.fx.Node, real, (node.args, dict(node.kwargs)))
        cuda = any(t.is_cuda for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor))
        with Counter(collect=False) as counted:
            out = node.target(*args, **kwargs)
        least, spent = float("inf"), 0.0
        for _ in range(20):
            out = None  # so that the result takes the place of the last one, as within a pool
            began = clock()
            out = node.target(*args, **kwargs)
            if cuda:
                torch.cuda.synchronize()
            took = clock() - began
            least, spent = min(least, took), spent + took
            if spent > 0.05:
                break
        del out
        return round(1e6 * least, 3), counted.peak - counted.live

    def save(self):
        if not self.fresh:
            return
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        new = f"{self.path}.{os.getpid()}"
        with open(new, "w") as f:
            json.dump(self.known, f, indent=0)
        os.replace(new, self.path)
        self.fresh = 0
