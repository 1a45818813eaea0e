"""torch.compile(model, backend=rematch_torch.backend(budget="6GB")): plans a model's training step and runs the plan."""
import os
import tempfile
import time

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import counters
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .errors import check_torch, refuse
from .graph_file import GraphFile, label_of
from .joint import Joint
from .memory import Counter
from .plan import ask
from .profile import Profile
from .program import program
from .rebuild import rebuild, recomputations

everything = []  # every planned region of this process, for the recorder


def plans_run_since(runs):
    """The regions that ran since `runs` was taken, {region: its runs}."""
    return [p for p in everything if p.runs > runs.get(p, 0)]


class Region:
    """A compiled part of a model: its plan, and what was counted of it."""

    def __init__(self, file, plan, seconds):
        self.file, self.plan, self.seconds = file, plan, seconds
        self.runs, self.counter, self.counted = 0, None, None
        self.recomputations = recomputations(plan["ops"])
        self.predicted, self.static = plan["live_peak_bytes"], plan["static_bytes"]

    def counting(self):
        """The first step is counted, both passes."""
        if self.counted is None and not torch.autograd._profiler_enabled():
            self.counter = self.counter or Counter()
            return self.counter
        return None

    def run(self, run, inputs, backward):
        self.runs += not backward
        counter = self.counting()
        if counter is None:
            return run(inputs)
        with counter:
            out = run(inputs)
        if backward:
            self.counted = counter.peak
        return out


def check_inputs(inputs):
    for t in inputs:
        if isinstance(t, torch.Tensor) and is_traceable_wrapper_subclass(t):
            refuse(f"an input or parameter is a {type(t).__name__}, a tensor subclass that wraps others",
                   "give it plain tensors")


def runner(region, backward):
    def compiler(module, _):
        run = program(module)

        def counted(inputs):
            return region[0].run(run, inputs, backward)
        counted._boxed_call = True
        return counted if region else run
    return compiler


class Backend:
    """What torch.compile calls with each part of a model that it could trace."""

    __name__ = "rematch_torch"

    def __init__(self, budget, policy="optimal", strict=False, profile="measure", file=None):
        self.budget, self.policy, self.strict, self.file = budget, policy, strict, file
        self.profile = profile if isinstance(profile, Profile) else Profile(profile)
        self.regions, self.breaks = [], []

    def __call__(self, module, inputs):
        check_torch()
        self.note_break(module)
        check_inputs(inputs)
        region = []

        def partition(joint, joint_inputs, *, num_fwd_outputs, **_):
            planned, forward, backward = self.make(joint, num_fwd_outputs)
            region.append(planned)
            return forward, backward
        return aot_autograd(fw_compiler=runner(region, False), bw_compiler=runner(region, True), partition_fn=partition,
                            inference_compiler=runner([], False), keep_inference_input_mutations=True)(module, inputs)

    def note_break(self, module):
        reason = getattr(module, "compile_subgraph_reason", None)
        if reason is None or not reason.graph_break:
            return
        frame = reason.user_stack[-1] if reason.user_stack else None
        where = f"{os.path.basename(frame.filename)}:{frame.lineno}" if frame else "?"
        self.breaks.append(f"{where}: {reason.reason.strip().splitlines()[0]}")
        if self.strict:
            refuse(f"{self.breaks[-1]}: the graph breaks here, so that the step has several parts",
                   "mend it (torch._dynamo.explain says more), or leave strict out to plan each part alone")

    def make(self, module, forward_outputs):
        times = [time.perf_counter()]
        file = GraphFile(Joint(module, forward_outputs), self.profile, f"region{len(self.regions) + 1}")
        self.profile.save()
        times.append(time.perf_counter())
        with tempfile.TemporaryDirectory() as folder:
            path = self.file or os.path.join(folder, "net.json")
            file.write(path)
            plan = ask(path, self.budget, self.policy)
        times.append(time.perf_counter())
        forward, backward = rebuild(file, plan["ops"])
        times.append(time.perf_counter())
        seconds = dict(zip(("profile", "plan", "rebuild"), (b - a for a, b in zip(times, times[1:]))))
        planned = Region(file, plan, seconds)
        self.regions.append(planned)
        everything.append(planned)
        return planned, forward, backward

    def report(self):
        """What was planned and counted, as text."""
        lines = [report_line(i + 1, r) for i, r in enumerate(self.regions)]
        if not self.regions:
            lines.append("nothing was planned: no training step ran, or torch.compile could trace no part of it")
        lines += [f"graph break at {b}: the parts were planned alone" for b in self.breaks]
        lines += sorted({f"not traced: {reason.strip().splitlines()[0]}" for reason in counters["unimplemented"]})
        return "\n".join(lines)

    def explain(self):
        """What set each peak, by source line, as text."""
        return "\n".join(line for r in self.regions for line in explanation(r))


def mib(number):
    return "not counted" if number is None else f"{number / 2**20:.1f} MiB"


def report_line(number, region):
    plan, spent = region.plan, ", ".join(f"{k} {v:.2f} s" for k, v in region.seconds.items())
    return (f"part {number}: peak {mib(region.predicted)} predicted, {mib(region.counted)} counted, besides "
            f"{mib(region.static)} of parameters and batch; storing everything {mib(plan['store_all_live_peak_bytes'])}; "
            f"slowdown {plan['slowdown']:.3f}, no schedule below {plan['bounds']['best_slowdown']:.3f}; "
            f"{region.recomputations} recomputations; {spent}")


def explanation(region):
    """The operator at the peak and the largest tensors, whose names end with the source line."""
    peak, label = region.plan["peak"], {n.name: label_of(n) for n in region.file.joint.nodes if n.op == "call_function"}
    yield f"peak of {mib(region.predicted)} at {peak['op']}; live there:"
    for tensor in sorted(peak["tensors"], key=lambda t: -t["bytes"])[:10]:
        name = label.get(tensor["name"], tensor["name"])
        yield f"  {mib(tensor['bytes']):>12}  {tensor['category']:<20}  {name}"


def backend(budget="least", **more):
    """budget: bytes for everything that is live in a step ("6GB"), a share of what storing everything takes beyond
    parameters and batch ("60%"), or "least". more: policy, strict, profile ("measure" or "flops"), file (a path that
    keeps the graph file)."""
    check_torch()
    return Backend(budget, **more)


def compile(model, budget="least", **more):
    """torch.compile with such a backend and fixed shapes, the whole model in one graph if strict; `rematch` of what it
    returns is the backend, with report() and explain()."""
    made = backend(budget, **more)
    compiled = torch.compile(model, backend=made, dynamic=False, fullgraph=made.strict)
    compiled.rematch = made
    return compiled
