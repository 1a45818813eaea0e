"""Records a training loop as a result file of Rematch, so that `rematch compare` can judge it against another."""
import inspect
import json
import math
import os
import platform
import resource
import time
import uuid

import h5py
import numpy as np
import torch
import xxhash

from .backend import everything, plans_run_since

PIECE = 64 * 1024
ZERO = (0, 0)


def pair(data):
    value = xxhash.xxh3_128_intdigest(data)
    return value & (2**64 - 1), value >> 64


def digest(tensor):
    """As the program's: the XXH3-128 of the XXH3-128s of the pieces, so that float32 zeros are recognised there."""
    plain = tensor.detach().contiguous().cpu()
    plain = plain.reshape(-1).view(torch.uint8) if plain.numel() else torch.empty(0, dtype=torch.uint8)
    data = memoryview(plain.numpy())
    pieces = (xxhash.xxh3_128_digest(data[i:i + PIECE]) for i in range(0, len(data), PIECE))
    return pair(b"".join(pieces))


def joined(digests):
    return pair(np.array(digests, "<u8").tobytes()) if digests else ZERO


def norm_of(tensors):
    """In float64, by PIECE elements at a time, which stay in the caches; vector_norm with that dtype is slower."""
    pieces = (piece.double() for t in tensors for piece in t.detach().reshape(-1).split(PIECE))
    return math.sqrt(sum(float(torch.dot(p, p)) for p in pieces))


def switches():
    """What decides which kernels torch chooses."""
    return {"threads": torch.get_num_threads(), "deterministic": torch.are_deterministic_algorithms_enabled(),
            "matmul_precision": torch.get_float32_matmul_precision(), "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "tf32": torch.backends.cuda.matmul.allow_tf32, "mkldnn": torch.backends.mkldnn.is_available()}


def source_text(model):
    """The source of the model's class, so that a reader sees what was trained; '' where Python does not have it."""
    model = getattr(model, "_orig_mod", model)
    try:
        return inspect.getsource(type(model))
    except (OSError, TypeError):
        return ""


class Recorder:
    """with Recorder("a.h5", model, optimizer) as r: ... r.step(loss) after each optimizer.step(), before the gradients
    are cleared. recomputes: how many operators a step computes again, by the word of who records (0: it stores
    everything); a model that rematch_torch planned says it itself."""

    def __init__(self, path, model, optimizer, policy=None, recomputes=None, experiment="torch", lr=None):
        self.path, self.model, self.optimizer = path, getattr(model, "_orig_mod", model), optimizer
        self.policy, self.recomputes, self.experiment, self.lr = policy, recomputes, experiment, lr
        self.parameters = dict(self.model.named_parameters())
        self.buffers = dict(self.model.named_buffers())
        self.rows, self.digests, self.cost_ns = [], [], 0

    def __enter__(self):
        self.created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.runs = {p: p.runs for p in everything}
        self.seed, self.last = torch.initial_seed(), time.perf_counter_ns()
        return self

    def state_of(self, parameter):
        state = self.optimizer.state.get(parameter, {})
        return [v for _, v in sorted(state.items()) if isinstance(v, torch.Tensor)]

    def step(self, loss, peak=0):
        """peak: bytes that were live at most, where the caller counted them."""
        began = time.perf_counter_ns()
        grads = [p.grad for p in self.parameters.values()]
        states = [self.state_of(p) for p in self.parameters.values()]
        flat = [g for g in grads if g is not None] + list(self.parameters.values()) + list(self.buffers.values())
        found = map(digest, flat + [v for s in states for v in s])
        of_grads = [next(found) if g is not None else ZERO for g in grads]
        of_parameters = [next(found) for _ in self.parameters]
        of_buffers = [next(found) for _ in self.buffers]
        of_states = [joined([next(found) for _ in s]) for s in states]
        self.digests.append({"gradient": of_grads, "parameter": of_parameters, "state": of_states, "running": of_buffers})
        rate = self.lr() if self.lr else float(self.optimizer.param_groups[0]["lr"])
        norm = norm_of([g for g in grads if g is not None])
        self.rows.append({"loss": np.float32(loss.item()), "total_ns": began - self.last, "gradients_zero": norm == 0,
                          "lr": rate, "grad_norm": norm, "live_peak": peak})
        self.cost_ns += time.perf_counter_ns() - began
        self.last = time.perf_counter_ns()

    def claim(self):
        """(policy, recomputations) as the recording program states them."""
        plans = plans_run_since(self.runs)
        if self.recomputes is None:
            self.recomputes = sum(p.recomputations for p in plans)
        if self.policy is None:
            self.policy = "optimal" if plans else "recompute" if self.recomputes else "store_all"
        return self.policy, self.recomputes

    def __exit__(self, kind, error, trace):
        status = f"failed: {error}" if kind else "completed"
        new = f"{self.path}.new"
        with h5py.File(new, "w", libver="v110") as f:
            self.write_root(f, status)
            self.write_plan(f)
            self.write_steps(f)
            self.write_spec(f)
            self.write_digests(f)
        os.replace(new, self.path)
        return False

    def write_root(self, f, status):
        names = {"schema": "rematch-run", "schema_version": "5.1", "run_id": uuid.uuid4().hex[:16], "status": status,
                 "experiment": self.experiment, "title": self.experiment, "created": self.created,
                 "software": "torch", "software_version": torch.__version__, "invocation": uuid.uuid4().hex[:16],
                 "variant": "variant" if self.claim()[1] else "baseline"}
        write_attributes(f, names)
        host = {"machine": platform.machine(), "kernel": platform.release(), "cores": os.cpu_count() or 0,
                "isa": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads()}
        write_attributes(f.create_group("provenance/host"), host)
        write_attributes(f.create_group("provenance/libs"), {"kernels": f"torch {torch.__version__}"})
        write_attributes(f.create_group("provenance/torch"),
                         dict(switches(), seed=str(self.seed), model=type(self.model).__name__))
        for name, text in (("build", torch.__config__.show()), ("optimizer", repr(self.optimizer)),
                           ("source", source_text(self.model))):
            write_texts(f, f"provenance/torch/{name}", text)
        write_attributes(f.create_group("summary"), {"not_finite": "", "high_water_bytes": high_water()})

    def write_plan(self, f):
        policy, recomputes = self.claim()
        peak = max([r["live_peak"] for r in self.rows], default=0)
        plan = f.create_group("plan")
        write_attributes(plan, {"policy": policy, "hash": "", "claimed_by": f"torch {torch.__version__}",
                                "peak_bytes": peak, "live_peak_bytes": peak, "recomputations": recomputes})
        plan.attrs["time"] = 0.0  # a plan's time is not known
        for table, tensors in (("parameters", self.parameters), ("running_states", self.buffers)):
            write_texts(plan, f"{table}/name", list(tensors))
            plan.create_dataset(f"{table}/elements", data=np.array([t.numel() for t in tensors.values()], "<u8"))

    def write_spec(self, f):
        """What both sides of a comparison should have in common, by the keys of the program's own specs."""
        elements = sum(t.numel() for t in self.parameters.values())
        lines = [f"name: {json.dumps(self.experiment)}", f"steps: {len(self.rows)}", f"seed: {self.seed}",
                 f"model: {json.dumps(f'{type(self.model).__name__}, {elements} elements')}",
                 f"optimizer: {json.dumps(type(self.optimizer).__name__)}",
                 f"policy: {json.dumps(self.claim()[0])}"]
        write_texts(f, "spec/resolved", "\n".join(lines) + "\n")
        write_texts(f, "spec/overrides", [])

    def write_steps(self, f):
        group, n = f.create_group("steps"), len(self.rows)
        columns = {"step": ("<u4", range(n)), "committed": ("u1", [1] * n), "metric": ("<f4", [0] * n)}
        for name, kind in (("loss", "<f4"), ("total_ns", "<u8"), ("gradients_zero", "u1"), ("lr", "<f8"),
                           ("grad_norm", "<f8"), ("live_peak", "<u8")):
            columns[name] = kind, [row[name] for row in self.rows]
        for name, (kind, values) in columns.items():
            group.create_dataset(name, data=np.array(list(values), kind))
        group.create_dataset("loss_bits", data=np.array(columns["loss"][1], "<f4").view("<u4"))
        for name, of in (("grad", "gradient"), ("param", "parameter"), ("state", "state"), ("running", "running")):
            rows = [joined(d[of]) if any(x != ZERO for x in d[of]) else ZERO for d in self.digests]
            group.create_dataset(f"{name}_digest", data=np.array(rows, "<u8").reshape(n, 2))
        for name, kind in (("step", "<u4"), ("committed", "u1"), ("loss", "<f4"), ("accuracy", "<f4")):
            f.create_dataset(f"eval/{name}", shape=(0,), maxshape=(None,), chunks=(64,), dtype=kind)

    def write_digests(self, f):
        group, n = f.create_group("digests"), len(self.rows)
        group.create_dataset("step", data=np.arange(n, dtype="<u4"))
        write_texts(group, "tensor", list(self.parameters))
        write_texts(group, "running_tensor", list(self.buffers))
        for of in ("gradient", "parameter", "state", "running"):
            rows = [d[of] for d in self.digests]
            if n and all(any(x != ZERO for x in row) for row in rows):
                group.create_dataset(of, data=np.array(rows, "<u8"))


def high_water():
    """Of the process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def write_attributes(group, values):
    for name, value in values.items():
        group.attrs[name] = np.uint64(value) if isinstance(value, (int, bool)) else str(value)


def write_texts(group, name, values):
    """One text, or a list of them."""
    values = values if isinstance(values, str) else np.array(values, object)
    group.create_dataset(name, data=values, dtype=h5py.string_dtype())
