#!/usr/bin/python3
"""Measures how far gradients are from the exact ones, of BERTs and of networks on images: `make numerics`.

A run of one step records its initial parameters and running state, its batch and its gradients (record.state). This
script computes the same network again, in PyTorch and float64. A BERT is written down below, dropout included: it
draws the masks by Philox4x32-10 as results/README.md documents. Any other network is built from the result file: the
nodes of its plan, in order, with the settings of its resolved spec. A tensor's error is the L2 norm of the difference
divided by that of the exact gradient, or of the exact running state after the step. Where the exact gradient is 0 (a
key's bias shifts all scores of a row equally), that part is divided by the norm of the whole tensor. That of
batch_norm's gain is nearly 0 where each channel is normalised again before channels mix, as after a depthwise
convolution; gain and bias are divided by the norm of both. So are running means and variances: a mean is nearly 0
where what is normalised is a sum of channels that are. Batches are small because a relu's input within rounding of 0
may pass in one precision alone: one such element of a million puts 1e-3 of the gradients before it in doubt, in
PyTorch's float32 as well, which is judged beside ours; networks of full size have a multiple of its error as limit. In the zeros around a tile of unet-segmentation they are
exactly 0, but for the rounding of Winograd's algorithm, which it is therefore compared without. A network of images
has five seeds, and the one with the middle error counts.

Exit code 1: an error exceeds its limit.
"""
import collections
import glob
import math
import os
import sys
import tempfile

import h5py
import numpy as np
import torch
import yaml
from torch.nn import functional

import measure
from report import Table, provenance, write

HEAD = """# Gradients beside float64

Written by `make numerics` (experiments/bench/float64.py says how they are compared): one training step, dropout
included, and the running state after it.
"""
CONVOLUTIONAL = 1e-4  # of networks with batch normalisation
FULL = "x2"
# An experiment, what is set for it, the largest relative error allowed (FULL: twice that of PyTorch's float32), and a
# BERT's heads (0: of another network).
Run = collections.namedtuple("Run", "spec overrides limit heads", defaults=(0,))
RUNS = [Run("experiments/bert-tweets.yaml", ("batch=32", "epochs="), 1e-5, 2),
        Run("experiments/bert-recompute.yaml", ("batch=32",), 5e-5, 12),
        Run("experiments/resnet50-pareto.yaml", ("model.file=models/resnet-cifar.yaml", "model.parameters={more: 1}",
                                                 "data.shape=[16, 16, 3]", "data.classes=10", "batch=4"),
            CONVOLUTIONAL),
        Run("experiments/unet-pareto.yaml", ("model.file=bench/small-unet.yaml", "data.shape=[16, 16, 3]", "batch=8"),
            CONVOLUTIONAL),
        Run("experiments/unet-pareto.yaml", ("model.file=bench/faint-images.yaml", "data.shape=[16, 16, 3]", "batch=8"),
            CONVOLUTIONAL),
        Run("experiments/mobilenet-pareto.yaml", ("data.shape=[64, 64, 3]", "batch=2"), CONVOLUTIONAL),
        Run("experiments/densenet-pareto.yaml", ("data.shape=[32, 32, 3]", "batch=8"), CONVOLUTIONAL),
        Run("experiments/efficientnet.yaml", ("data.shape=[64, 64, 3]", "batch=2"), CONVOLUTIONAL),
        Run("experiments/unet-segmentation.yaml", ("data.shape=[20, 20, 1]", "conv.algorithm=direct"),
            CONVOLUTIONAL),
        Run("experiments/sd-unet.yaml",
            ("model.parameters={channels: 32, wide: 64, qkv: 96, wide_qkv: 192, inner: 64, wide_inner: 128, groups: 8}",
             "data.shape=[16, 16, 4]"), 1e-5),
        Run("experiments/perceiver.yaml", ("data.shape=[16, 16, 3]", "data.classes=10"), 1e-5),
        Run("experiments/unet-plus-plus.yaml",
            ("model.parameters={channels: 8, wide1: 16, wide2: 32, wide3: 64, wide4: 128}", "data.shape=[32, 32, 1]",
             "conv.algorithm=direct"), CONVOLUTIONAL),
        Run("experiments/vit.yaml", ("model.parameters={blocks: 2}", "data.shape=[64, 64, 3]", "data.classes=10",
                                      "batch=4"), 1e-5),
        Run("experiments/vgg16-recompute.yaml", ("data={name: synthetic, shape: [224, 224, 3], classes: 1000}", "batch=2"),
            FULL),
        Run("experiments/sample-cnn-page.yaml", ("data={name: synthetic, shape: [64, 64, 1], classes: 10}", "batch=4"), FULL),
        Run("experiments/resnet50-pareto.yaml", ("batch=2",), FULL),
        Run("experiments/unet-pareto.yaml", ("batch=2",), FULL)]
DROPOUT = 2  # place of the domain among those of framework/numerics/random.h
RATE, EPSILON = 0.1, 1e-12
U32 = np.uint64(0xffffffff)


def finalised(seed, domain):
    """SplitMix64's finaliser of the seed and the domain."""
    key, most = (seed + (domain + 1) * 0x9E3779B97F4A7C15), 2 ** 64 - 1
    key = ((key & most) ^ (key & most) >> 30) * 0xBF58476D1CE4E5B9 & most
    key = (key ^ key >> 27) * 0x94D049BB133111EB & most
    return key ^ key >> 31


def philox(key, counter):
    """Philox4x32-10 (Salmon et al., 2011) of arrays of counters."""
    a, b, c, d = (np.asarray(word, dtype=np.uint64) for word in counter)
    low, high = key & 0xffffffff, key >> 32
    for _ in range(10):
        p, q = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, c = (q >> np.uint64(32)) ^ b ^ np.uint64(low), (p >> np.uint64(32)) ^ d ^ np.uint64(high)
        b, d = q & U32, p & U32
        low, high = (low + 0x9E3779B9) & 0xffffffff, (high + 0xBB67AE85) & 0xffffffff
    return a, b, c, d


def dropped(x, key, node, rate):
    """A node's dropout of a value whose first dimension is the batch; draws in the order of its elements."""
    batch, elements = x.shape[0], math.prod(x.shape[1:])
    quad, sample = np.arange((elements + 3) // 4), np.arange(batch)[:, None]
    words = np.stack(np.broadcast_arrays(*philox(key, (quad[None], sample, np.full((1, 1), node), [[0]]))), -1)
    keep = words.reshape(batch, -1)[:, :elements] >= int(rate * 2 ** 32)
    return x * torch.from_numpy(keep.reshape(x.shape)) / (1 - rate)


class Network:
    """BERT with a classifier on its first token, its nodes numbered as the model file's."""

    def __init__(self, parameters, heads, seed):
        self.parameters, self.heads, self.key, self.node = parameters, heads, finalised(seed, DROPOUT), 0

    def next(self):
        self.node += 1
        return self.node - 1

    def dropout(self, x):
        return dropped(x, self.key, self.next(), RATE)

    def linear(self, name, x):
        self.next()
        return functional.linear(x, self.parameters[name + ".weight"], self.parameters[name + ".bias"])

    def norm(self, name, x):
        self.next()
        weight, bias = self.parameters[name + ".weight"], self.parameters[name + ".bias"]
        return functional.layer_norm(x, x.shape[-1:], weight, bias, EPSILON)

    def attention(self, qkv, mask):
        batch, length, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
        q, k, v = qkv.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(mask[:, None, None, :] == 0, -math.inf)
        return (self.dropout(scores.softmax(-1)) @ v).transpose(1, 2).reshape(batch, length, width)

    def plus(self, x, y):
        self.next()
        return x + y

    def gelu(self, x):
        self.next()
        return functional.gelu(x)

    def embedding(self, ids, segments):
        self.next()
        p = self.parameters
        return p["embedding.word"][ids] + p["embedding.position"][:ids.shape[1]] + p["embedding.segment"][segments]

    def __call__(self, batch, labels):
        ids, segments, mask = batch[:, 0].long(), batch[:, 1].long(), batch[:, 2]
        x = self.dropout(self.norm("embedding_norm", self.embedding(ids, segments)))
        for i in range(sum(name.endswith("].qkv.weight") for name in self.parameters)):
            at = f"block[{i}]."
            y = self.linear(at + "projection", self.attention(self.linear(at + "qkv", x), mask))
            x = self.norm(at + "attention_norm", self.plus(x, self.dropout(y)))
            y = self.linear(at + "down", self.gelu(self.linear(at + "up", x)))
            x = self.norm(at + "norm", self.plus(x, self.dropout(y)))
        self.next()
        y = self.dropout(torch.tanh(self.linear("pooler", x[:, 0])))
        return functional.cross_entropy(self.linear("classifier", y), labels)


def settings(layers, prefix="", numbers=None):
    """The settings of every layer of a resolved model, by the name of its node: its own, or a number of its kind."""
    found, numbers = {}, collections.Counter() if numbers is None else numbers
    for (kind, own), in (layer.items() for layer in layers):
        if kind == "repeat":
            for i in range(own["times"]):
                found.update(settings(own["layers"], f"{prefix}{own['name']}[{i}]."))
            continue
        for inner in "layers", "shortcut", "join":
            found.update(settings(own.get(inner, ()), prefix, numbers))
        if kind in FORMS:
            continue
        name = None if kind in NAMED_GROUPS else own.get("name")
        kind = "cross_entropy" if kind == "auxiliary" else kind
        if name is None:
            numbers[kind] += 1
        found[prefix + (name or f"{kind}{numbers[kind]}")] = own
    return found


def window(own):
    return own["kernel"], own["stride"] or own["kernel"], own["padding"]


def attended(q, k, v):
    return ((q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])).softmax(-1) @ v).transpose(1, 2).flatten(2)


def attention(qkv, own):
    """Of an image's tokens, none of which is padding."""
    q, k, v = qkv.unflatten(2, (3, own["heads"], -1)).permute(2, 0, 3, 1, 4)
    return attended(q, k, v)


def image_of(x, height):
    return x.transpose(1, 2).unflatten(2, (height or math.isqrt(x.shape[1]), -1))


def dropout(x, own):
    last = x.movedim(1, -1) if x.dim() == 4 else x
    left = dropped(last, own["key"], own["node"], float(own["rate"]))
    return left.movedim(-1, 1) if x.dim() == 4 else left


def cross_attention(x, kv, own):
    heads = own["kv_heads"] or own["heads"]
    q = x.unflatten(-1, (own["heads"], -1)).transpose(1, 2)
    k, v = kv.unflatten(2, (2, heads, -1)).repeat_interleave(own["heads"] // heads, 3).permute(2, 0, 3, 1, 4)
    return attended(q, k, v)


FORMS = "group", "residual", "concat", "multiply"
NAMED_GROUPS = "cross_attention", "auxiliary"  # whose name is that of a group of nodes
# layer -> its output by its inputs, parameters and running state by their names, and settings
LAYERS = {
    # PyYAML takes 1e-05 for a text, hence float().
    "conv": lambda x, p, own: functional.conv2d(*x, p["weight"], p.get("bias"), own["stride"], own["padding"],
                                                own["dilation"], own["groups"]),
    "batch_norm": lambda x, p, own: functional.batch_norm(*x, p["running_mean"], p["running_var"], p["weight"],
                                                          p["bias"], True, float(own["momentum"]), float(own["epsilon"])),
    "batch_norm_add": lambda x, p, own: LAYERS["batch_norm"](x[:1], p, own) + x[1],
    "relu": lambda x, p, own: functional.relu(*x),
    "relu6": lambda x, p, own: functional.relu6(*x),
    "max_pool": lambda x, p, own: functional.max_pool2d(*x, *window(own)),
    "avg_pool": lambda x, p, own: functional.avg_pool2d(*x, *window(own), count_include_pad=own["count_padding"]),
    "global_avg_pool": lambda x, p, own: x[0].mean((2, 3) if x[0].dim() == 4 else 1),
    "flatten": lambda x, p, own: (x[0].movedim(1, -1) if x[0].dim() == 4 else x[0]).flatten(1),
    "tokens": lambda x, p, own: x[0].flatten(2).transpose(1, 2),
    "pixels": lambda x, p, own: image_of(x[0], own["height"]),
    "class_token": lambda x, p, own: torch.cat([p["weight"].expand(len(x[0]), 1, -1), x[0]], 1),
    "positions": lambda x, p, own: x[0] + p["weight"],
    "latents": lambda x, p, own: p["weight"].expand(len(x[0]), -1, -1),
    "cross_attention": lambda x, p, own: cross_attention(*x, own),
    "select": lambda x, p, own: x[0][:, own["token"]],
    "attention": lambda x, p, own: attention(x[0], own),
    "layernorm": lambda x, p, own: functional.layer_norm(x[0], x[0].shape[-1:], p["weight"], p["bias"],
                                                         float(own["epsilon"])),
    "group_norm": lambda x, p, own: functional.group_norm(x[0], own["groups"] or x[0].shape[1], p["weight"], p["bias"],
                                                          float(own["epsilon"])),
    "gelu": lambda x, p, own: functional.gelu(x[0]),
    "dropout": lambda x, p, own: dropout(x[0], own),
    "conv_transpose": lambda x, p, own: functional.conv_transpose2d(x[0], p["weight"], p.get("bias"), own["stride"],
                                                                    own["padding"], own["output_padding"], 1, own["dilation"]),
    "pad": lambda x, p, own: functional.pad(x[0], (own["left"], own["right"], own["top"], own["bottom"])),
    "silu": lambda x, p, own: functional.silu(x[0]),
    "sigmoid": lambda x, p, own: torch.sigmoid(x[0]),
    "multiply": lambda x, p, own: x[0] * (x[1] if x[1].dim() == x[0].dim() else x[1][:, :, None, None]),
    "upsample": lambda x, p, own: functional.interpolate(*x, scale_factor=own["factor"]),
    "linear": lambda x, p, own: functional.linear(*x, p["weight"], p.get("bias")),
    "add": lambda x, p, own: x[0] + x[1],
    "concat": lambda x, p, own: torch.cat(x, 1),
}
ACTIVATIONS = {"none": lambda x: x, "relu": functional.relu, "relu6": functional.relu6}


def planned(plan, model, tensors, batch, labels, key):
    """The loss of the network that a plan's nodes are, whose masks are those of the key; puts the running state after the
    step in tensors."""
    texts = [[text.decode() for text in plan["nodes"][key][()]] for key in ("name", "layer")]
    named, values, loss = settings(model["layers"]), [batch.permute(0, 3, 1, 2)], 0
    for node, (name, layer, inputs) in enumerate(zip(*texts, plan["nodes/inputs"][()])):
        own = {**named.get(name, {}), "key": key, "node": node}
        x = [values[value] for value in inputs if value >= 0]
        if layer == "cross_entropy":
            logits = x[0].flatten(2) if x[0].dim() == 4 else x[0]  # a label a pixel, or one a sample
            own_labels = labels.view(logits.shape[:1] + logits.shape[2:])
            loss += float(own.get("weight", 1)) * functional.cross_entropy(logits, own_labels, ignore_index=-1)
            values.append(None)
            continue
        mine = {key[len(name) + 1:]: tensor for key, tensor in tensors.items() if key.startswith(name + ".")}
        values.append(ACTIVATIONS[own.get("activation", "none")](LAYERS[layer](x, mine, own)))
    return loss


def loss_of(file, tensors, heads, seed):
    """The loss of a run's only step, in the precision of the tensors, which then hold gradients and running state."""
    state = file["state"]
    batch, labels = torch.from_numpy(state["x"][0]), torch.from_numpy(state["labels"][0]).long()
    if heads:
        loss = Network(tensors, heads, seed)(batch, labels)
    else:
        model = yaml.safe_load(file["spec/resolved"][()])["model"]
        loss = planned(file["plan"], model, tensors, batch.to(next(iter(tensors.values())).dtype), labels,
                       finalised(seed, DROPOUT))
    loss.backward()
    return loss.item()


def judged(file, heads, seed):
    """The errors of a run's gradients and of its running state, each with its tensor's name, that of its loss, and
    those of PyTorch's gradients in float32."""
    def tensors(what, precision=torch.float64):
        return {name: torch.from_numpy(tensor[()]).to(precision) for name, tensor in file["state"][what].items()}

    def errors(gradients):
        return sorted(((float(difference / norm), part) for name, tensor in gradients.items()
                       for part, difference, norm in parts(name, tensor, exact)), reverse=True)

    def computed(precision):
        initial = tensors("initial", precision)
        for name in gradients:
            initial[name].requires_grad_(True)
        return initial, loss_of(file, initial, heads, seed)

    gradients, final = tensors("gradient"), tensors("final")
    exact, loss = computed(torch.float64)
    single, _ = computed(torch.float32)
    def moved(name):
        layer = name.rpartition(".")[0]
        return torch.cat([exact[f"{layer}.{key}"] for key in ("running_mean", "running_var")]).norm()

    running = [(float((final[name] - exact[name]).norm() / moved(name)), name)
               for name in exact if name not in gradients]
    return (errors(gradients), sorted(running, reverse=True), abs(float(file["steps/loss"][0]) / loss - 1),
            errors({name: single[name].grad.double() for name in gradients}))


def parts(name, ours, parameters):
    """A tensor as it is judged: name, difference's norm, norm to divide it by."""
    exact = parameters[name].grad
    whole = exact.norm()
    layer = name.rpartition(".")[0]
    if layer + ".running_mean" in parameters:
        whole = torch.cat([parameters[f"{layer}.{key}"].grad for key in ("weight", "bias")]).norm()
    if name.endswith("qkv.bias"):
        for part, a, b in zip("query key value".split(), ours.chunk(3), exact.chunk(3)):
            yield f"{name} ({part})", (a - b).norm(), whole if part == "key" else b.norm()
    else:
        yield name, (ours - exact).norm(), whole


def measured(run, seed):
    with tempfile.TemporaryDirectory(prefix="rematch-numerics-") as folder:
        measure.output([measure.PROGRAM, "run", run.spec, "--only", "variant", "sweep=", "policy=store_all", "steps=1",
                        f"seed={seed}", "eval=", "record.state=true", *run.overrides, f"results={folder}"], (0, 1))
        with h5py.File(glob.glob(os.path.join(folder, "**", "*.h5"), recursive=True)[0], "r") as file:
            return judged(file, run.heads, seed)


def compare(run, table):
    found = sorted((measured(run, seed) for seed in range(1, 2 if run.heads else 6)), key=lambda found: found[0][0])
    errors, running, loss, _ = found[len(found) // 2]
    peers = sorted(peer[0][0] for *_, peer in found)
    most, worst = errors[0]
    limit = 2 * peers[len(peers) // 2] if run.limit == FULL else run.limit
    good = max(most, *(error for error, _ in running[:1]), 0) <= limit
    table.row(os.path.splitext(os.path.basename(run.spec))[0], " ".join(run.overrides), len(errors), f"{limit:.0e}",
              f"{most:.2e}", worst, f"{peers[len(peers) // 2]:.2e}", f"{errors[len(errors) // 2][0]:.2e}",
              f"{loss:.1e}", "{:.2e}, {}".format(*running[0]) if running else "", "reached" if good else "**missed**")
    print(f"{run.spec}: {most:.2e}", file=sys.stderr)
    return good


def main():
    table = Table("experiment", "set", "tensors", "limit", "largest relative error", "of", "of PyTorch's float32",
                  "median", "of the loss", "largest of the running state", "")
    good = [compare(run, table) for run in RUNS]
    write("results/numerics.md", [("Relative L2 errors", table),
                                  ("Provenance", provenance(measure.planner(RUNS[0].spec)))], HEAD)
    return 0 if all(good) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except measure.Failed as failure:
        sys.exit(f"numerics: {failure}")
