#!/usr/bin/python3
"""Trains convolutional networks of the benchmark in JAX on the CPU: one network, one policy.

    jax_peer.py vgg16 --batch 64 --policy checkpoint

Policies: none; checkpoint (jax.checkpoint around each block; the head is stored). Images, in channels-last order, and
labels are random, plain SGD at 0.01, fp32, as in experiments/bench/torch_peer.py; a step is one jitted function, whose
parameters are updated in place (donated).

Prints a line of JSON: seconds of each step (the first one compiles) and of the fastest after the warm-up steps, the
process's high-water mark and its memory before it makes the network in MiB, the losses. Needs jax.
"""
import argparse
import json
import math
import os
import time

import jax
from jax import lax, numpy as jnp

# network -> channels and side of an image, kernel, pool, widths of each block's convolutions, of the head's layers
NETWORKS = {"vgg16": (3, 224, 3, 2, ((64,) * 2, (128,) * 2, (256,) * 3, (512,) * 3, (512,) * 3), (4096, 4096, 1000)),
            "sample-cnn": (1, 256, 5, 1, ((10, 40, 20),) * 5, (32, 10))}
POLICIES = {"none": lambda forward: forward, "checkpoint": jax.checkpoint}


def parameter(keys, *shape):
    """Weights of the variance that keeps a linear layer's, and a bias of zeros."""
    weights = jax.random.normal(next(keys), shape) * (1 / math.prod(shape[:-1])) ** 0.5
    return weights, jnp.zeros(shape[-1])


def parameters(keys, network):
    """Those of each block's convolutions, and of the head's layers."""
    channels, side, kernel, pool, widths, units = network
    blocks, inputs = [], widths[-1][-1] * (side if pool == 1 else side // pool ** len(widths)) ** 2
    for block in widths:
        blocks.append([])
        for width in block:
            blocks[-1].append(parameter(keys, kernel, kernel, channels, width))
            channels = width
    return blocks, [parameter(keys, a, b) for a, b in zip((inputs, *units), units)]


def max_pool(x, size):
    window = (1, size, size, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


def block(layers, x, pool):
    """Convolutions with relu. A pool of 1x1 follows every convolution, a larger one ends a block."""
    for weight, bias in layers:
        y = lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(y + bias)
        x = max_pool(x, 1) if pool == 1 else x
    return x if pool == 1 else max_pool(x, pool)


def training(network, policy):
    """A function that does a step: parameters and a batch to new parameters and the loss."""
    one = POLICIES[policy](lambda layers, x: block(layers, x, network[3]))

    def loss(values, x, labels):
        blocks, head = values
        for layers in blocks:
            x = one(layers, x)
        x = x.reshape(len(labels), -1)
        for i, (weight, bias) in enumerate(head):
            x = (x if i == 0 else jax.nn.relu(x)) @ weight + bias
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1))

    def step(values, x, labels):
        value, gradients = jax.value_and_grad(loss)(values, x, labels)
        return jax.tree.map(lambda v, g: v - 0.01 * g, values, gradients), value

    return jax.jit(step, donate_argnums=0)


def memory_mib(key):
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith(key + ":"))
    return round(int(line.split()[1]) / 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=sorted(NETWORKS))
    parser.add_argument("--policy", choices=sorted(POLICIES), default="none")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--warm", type=int, default=1, help="first steps that do not count")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=123)
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])  # XLA has a thread a processor
    before, seconds, losses = memory_mib("VmRSS"), [], []
    network, keys = NETWORKS[options.network], iter(jax.random.split(jax.random.key(options.seed), 64))
    channels, side = network[:2]
    values = parameters(keys, network)
    x = jax.random.normal(next(keys), (options.batch, side, side, channels))
    labels = jax.random.randint(next(keys), (options.batch,), 0, 2)
    step = training(network, options.policy)
    for _ in range(options.steps):
        start = time.monotonic()
        values, loss = step(values, x, labels)
        losses.append(float(loss))
        jax.block_until_ready(values)
        seconds.append(round(time.monotonic() - start, 6))
    print(json.dumps({"jax": jax.__version__, "network": options.network, "policy": options.policy,
                      "batch": options.batch, "threads": options.threads,
                      "step_seconds": min(seconds[options.warm:] or seconds), "seconds": seconds,
                      "high_water_mib": memory_mib("VmHWM"), "before_mib": before, "losses": losses}))


if __name__ == "__main__":
    main()
