"""python bench.py [--size bench|test] [--out FILE.md] [--steps N]: planned training beside plain PyTorch, its checkpoint and
its budget, on six networks: bits, peak, and slowdown of the step and of the model's time."""
import argparse
import datetime
import importlib
import io
import os
import platform
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "examples"))

import torch
import torch._dynamo
import torch._functorch.config as functorch
from functorch.compile import min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import boxed_nop
from torch.utils.checkpoint import checkpoint

import rematch_torch
from rematch_torch.joint import tensors_of
from rematch_torch.plan import ask, program

NETWORKS = "resnet", "gpt", "unet", "llama", "bert", "gpt:gpt2"  # and another size than --size
OURS = "100%", "80%", "70%", "60%", "50%", "least"
THEIRS = 0.9, 0.7, 0.5, 0.3, 0.1, 0.0
SEGMENTS = 1, 2, 3, 4  # blocks that torch.utils.checkpoint recomputes together, of networks that are a list of blocks
FOLDER = tempfile.TemporaryDirectory()
PROFILE = rematch_torch.Profile(path=os.path.join(FOLDER.name, "profile.json"))  # not times of a run on a busy machine


def model_time(*modules):
    """The sum of the operators' least times, each measured on its own."""
    nodes = [n for m in modules for n in m.graph.nodes if n.op == "call_function" and tensors_of(n)]
    return sum(PROFILE.of(n)[0] for n in nodes if isinstance(n.target, torch._ops.OpOverload) and not n.target._schema.is_mutable)


def their_backend(found):
    """PyTorch's partition by its budget, whose model time is taken with the same profile."""
    def partition(joint, inputs, **more):
        joint.graph.eliminate_dead_code()
        whole = model_time(joint)
        forward, backward = min_cut_rematerialization_partition(joint, inputs, **more)
        found.append(model_time(forward, backward) / whole)
        return forward, backward
    return lambda module, inputs: aot_autograd(fw_compiler=boxed_nop, bw_compiler=boxed_nop, partition_fn=partition,
                                               keep_inference_input_mutations=True)(module, inputs)


def checkpointed(network, size, blocks):
    """A model whose blocks are recomputed, so many together, and a batch."""
    model, batch = importlib.import_module(network).make(size, lambda f, *a: checkpoint(f, *a, use_reentrant=False))
    if blocks > 1:
        layers = list(model.layers)
        model.layers = torch.nn.ModuleList(torch.nn.Sequential(*layers[i:i + blocks]) for i in range(0, len(layers), blocks))
    return model, batch


def segments_of(model):
    return SEGMENTS if hasattr(model, "layers") else SEGMENTS[:1]


def step(run, batch, model, number):
    torch.manual_seed(number)
    for p in model.parameters():
        p.grad = None
    loss = run(*batch)
    loss.backward()
    return loss


def values_of(run, batch, model, steps):
    """Every loss, gradient, parameter and buffer of some steps of SGD."""
    optimizer, values = torch.optim.SGD(model.parameters(), 0.01), []
    for k in range(steps):
        values += [step(run, batch, model, k).detach().clone()] + [p.grad.clone() for p in model.parameters()]
        optimizer.step()
        values += [t.clone() for t in list(model.parameters()) + list(model.buffers())]
    return values


def peak_of(run, batch, model):
    for p in model.parameters():
        p.grad = None
    with rematch_torch.Counter() as counter:
        run(*batch).backward()
    return counter.peak


class Way:
    """One way of training: its bits, peak and slowdowns."""

    def __init__(self, network, size, name, setting, steps, plain=None):
        torch._dynamo.reset()
        functorch.activation_memory_budget = setting if name == "PyTorch's budget" else 1.0
        made = checkpointed(network, size, setting) if name == "checkpoint by" else importlib.import_module(network).make(size)
        self.model, self.batch = made
        self.name, self.setting, self.found, self.region, self.error = name, setting, [], None, None
        self.run = self.model
        if name == "PyTorch's budget":
            self.run = torch.compile(self.model, backend=their_backend(self.found), dynamic=False)
        if name == "ours":
            self.run = rematch_torch.compile(self.model, setting, profile=PROFILE)
        try:
            self.values = values_of(self.run, self.batch, self.model, steps)
        except torch._dynamo.exc.BackendCompilerFailed as error:
            self.error = str(error).strip().splitlines()[1].split("; ")[0].replace("RematchError: ", "")
            return
        self.wrong = sum(not torch.equal(a, b) for a, b in zip((plain or self).values, self.values))
        self.count, self.peak = len(self.values), peak_of(self.run, self.batch, self.model)
        self.values = self.values if plain is None else None
        self.region = self.run.rematch.regions[0] if name == "ours" else None
        self.model_slowdown = self.region.plan["slowdown"] if self.region else self.found[0] if self.found else None
        self.slowdown = paired(self, plain) if plain else 1.0


def paired(way, plain, pairs=4):
    """The least time of a step by that of plain PyTorch's, of alternating steps."""
    seconds = {way: [], plain: []}
    for one in (plain, way) * pairs:
        began = time.perf_counter()
        step(one.run, one.batch, one.model, 0)
        seconds[one].append(time.perf_counter() - began)
    return min(seconds[way]) / min(seconds[plain])


def row(way):
    name = way.name if way.setting is None else f"{way.name} {way.setting}"
    if way.error:
        return f"| {name} | {way.error} | | | | | |"
    bits = "equal" if not way.wrong else f"**{way.wrong} of {way.count} differ**"
    region = way.region
    predicted = f"{region.predicted / 2**20:.1f} | {100 * (way.peak / region.predicted - 1):+.2f} %" if region else " | "
    model = f"{way.model_slowdown:.3f}" if way.model_slowdown else ""
    return f"| {name} | {bits} | {way.peak / 2**20:.1f} | {predicted} | {model} | {way.slowdown:.3f} |"


def recorder_cost(network, size, folder, steps=4):
    """The least time of the steps that are recorded, plain and with AdamW, the recorder's, and the bytes that it hashes; the
    first step warms up."""
    model, batch = importlib.import_module(network).make(size)
    optimizer, taken = torch.optim.AdamW(model.parameters(), 1e-3), []
    with rematch_torch.Recorder(os.path.join(folder, "cost.h5"), model, optimizer) as recorder:
        for number in range(steps):
            moments = [time.perf_counter()]
            loss = step(model, batch, model, number)
            optimizer.step()
            moments.append(time.perf_counter())
            recorder.step(loss)
            moments.append(time.perf_counter())
            taken.append((moments[1] - moments[0], moments[2] - moments[1]))
    trained, recorded = (min(column) for column in zip(*taken[1:]))
    tensors = [t for p in model.parameters() for t in [p, p.grad] + recorder.state_of(p)] + list(model.buffers())
    return trained, recorded, sum(t.nbytes for t in tensors)


def costs(network, size, ways):
    """A line of what planning and recording take."""
    regions = [way.region for way in ways if way.region]
    longest = max(regions, key=lambda region: region.seconds["plan"])
    with tempfile.TemporaryDirectory() as folder:
        trained, recorded, hashed = recorder_cost(network, size, folder)
    return (f"{len(longest.plan['ops'])} operators, recomputations included: planned in at most {longest.seconds['plan']:.1f} s, "
            f"rebuilt in {max(region.seconds['rebuild'] for region in regions):.1f} s. The recorder takes "
            f"{100 * recorded / trained:.1f} % of a step with AdamW: {1000 * recorded:.0f} ms for {hashed / 2**20:.0f} MiB of "
            f"parameters, gradients and optimizer state, beside {trained:.2f} s.")


def plan_within(path, peak):
    """The slowdown of the plan of a graph file within a peak, and the lower bound of every schedule; Nones where there is none."""
    static = ask(path, None, "store_all")["static_bytes"]
    try:
        plan = ask(path, static + peak)
    except rematch_torch.RematchError:
        return None, None
    return plan["slowdown"], plan["budget_bounds"]["best_slowdown"]


def beside_checkpoint(network, size, steps, static, theirs, plain):
    """Ours in the bytes of each way of checkpointing, trained as well: the ratio of what both take longer. Of ways with one
    peak, the fastest."""
    for way in {round(w.peak): w for w in sorted(theirs, key=lambda w: -w.slowdown)}.values():
        ours = Way(network, size, "ours", static + way.peak, steps, plain)
        numbers = f"{ours.peak / 2**20:.1f} | {ours.slowdown:.3f} | {(ours.slowdown - 1) / (way.slowdown - 1):.2f}" if not ours.error \
            else "no schedule | |"
        ours.run = ours.model = None
        yield (f"| {way.setting} | {'equal' if not way.wrong else 'wrong'} | {way.peak / 2**20:.1f} | {way.slowdown:.3f} | "
               f"{numbers} |")


def beside(path, theirs):
    """Ours at each peak of PyTorch's budget: the ratio of what both take longer than a step that stores everything."""
    for way in sorted({round(w.peak): w for w in theirs}.values(), key=lambda w: -w.peak):
        slowdown, bound = plan_within(path, way.peak)
        ratio = f"{(slowdown - 1) / (way.model_slowdown - 1):.2f}" if slowdown and way.model_slowdown > 1.0005 else ""
        ours = f"{slowdown:.3f} | {bound:.3f}" if slowdown else "no schedule |"
        bits = "equal" if not way.wrong else "wrong"
        yield f"| {way.peak / 2**20:.1f} | {way.setting} | {bits} | {way.model_slowdown:.3f} | {ours} | {ratio} |"


def measure(name, size, steps, out):
    network, size = name.partition(":")[0], name.partition(":")[2] or size
    print(f"\n## {name}\n\n{provenance()}\n\n| way | bits | peak MiB | predicted MiB | counted : predicted | model slowdown "
          "| slowdown |\n|---|---|---|---|---|---|---|", file=out, flush=True)
    plain = Way(network, size, "plain", None, steps)
    print(row(plain), file=out, flush=True)
    ways = []
    for name, settings in (("checkpoint by", segments_of(plain.model)), ("PyTorch's budget", THEIRS), ("ours", OURS)):
        for setting in settings:
            ways.append(Way(network, size, name, setting, steps, plain))
            print(row(ways[-1]), file=out, flush=True)
            ways[-1].run = ways[-1].model = None
    torch._dynamo.reset()
    print(f"\n{costs(network, size, ways)}", file=out, flush=True)
    print("\nAt the peaks of PyTorch's budget:\n\n| peak MiB | its budget | its bits | its model slowdown | ours | "
          "lower bound | ours less 1 : its less 1 |\n|---|---|---|---|---|---|---|", file=out, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.json")
        rematch_torch.export(*importlib.import_module(network).make(size), path, profile=PROFILE)
        for line in beside(path, [w for w in ways if w.name == "PyTorch's budget"]):
            print(line, file=out, flush=True)
        least = ask(path, "least")
        print(f"\nThe least live peak that was found is {least['live_peak_bytes'] / 2**20:.1f} MiB; no schedule has one below "
              f"{least['bounds']['memory_floor_bytes'] / 2**20:.1f}.", file=out, flush=True)
        static = ask(path, None, "store_all")["static_bytes"]
    print("\nIn the bytes of torch.utils.checkpoint, slowdowns of both measured:\n\n| blocks together | its bits | peak MiB | "
          "slowdown | ours: peak MiB | slowdown | ours less 1 : its less 1 |\n|---|---|---|---|---|---|---|", file=out, flush=True)
    for line in beside_checkpoint(network, size, steps, static, [w for w in ways if w.name == "checkpoint by"], plain):
        print(line, file=out, flush=True)


def provenance():
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor())
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    version = subprocess.run([program(), "--version"], capture_output=True, text=True).stdout.strip()
    return (f"{datetime.date.today()}; {cpu}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}, "
            f"threads: {torch.get_num_threads()}; load {load}; torch {torch.__version__}, Python {platform.python_version()}; "
            f"{version}; commit {commit}")


INTRODUCTION = """# Planned training beside PyTorch

Networks of examples/ are trained on a CPU in {steps} steps of SGD by plain PyTorch, by torch.utils.checkpoint around every so
many blocks, by PyTorch's activation_memory_budget on AOTAutograd's graph (run operator by operator), and by rematch_torch.

- *Bits*: losses, gradients, parameters and buffers of every step, compared with plain PyTorch.
- *Peak*: bytes that torch's allocator has live at most in a step, beyond what was live before it, scratch of kernels included.
- *Model slowdown*: the sum of the operators' least times, each measured on its own, divided by that of the step without
  recomputation. It is the same measure for PyTorch's partition and for ours.
- *Slowdown*: the least time of a step divided by that of plain PyTorch, of four alternating steps each. The Python that runs
  operators one by one is in it.
- *Lower bound*: no schedule of the graph within that peak has a smaller model slowdown.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="bench")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--out")
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    given = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    text = io.StringIO() if given.out else sys.stdout
    print(INTRODUCTION.format(steps=given.steps), end="", file=text)
    for network in given.networks:
        measure(network, given.size, given.steps, text)
        if given.out:
            with open(given.out, "w") as f:
                f.write(text.getvalue())


if __name__ == "__main__":
    main()
