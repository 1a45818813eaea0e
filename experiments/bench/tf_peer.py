#!/usr/bin/python3
"""Trains convolutional networks of the benchmark in TensorFlow on the CPU: one network, one policy.

    tf_peer.py vgg16 --batch 64 --policy recompute

Policies: none; recompute (tf.recompute_grad around each block; the head is stored). Images, in channels-last order, and
labels are random, plain SGD at 0.01, fp32, as in experiments/bench/torch_peer.py; a step is one tf.function, with --jit
compiled by XLA.

Prints a line of JSON: seconds of each step (the first one builds the graph) and of the fastest after the warm-up steps,
the process's high-water mark and its memory before it makes the network in MiB, the losses. Needs tensorflow or
tensorflow-cpu.
"""
import argparse
import json
import math
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf


def parameter(*shape):
    """Weights of the variance that keeps a linear layer's, and a bias of zeros."""
    return tf.Variable(tf.random.normal(shape, stddev=(1 / math.prod(shape[:-1])) ** 0.5)), tf.Variable(tf.zeros(shape[-1]))


def blocks(channels, kernel, pool, widths):
    """Blocks of convolutions with relu, each a list of parameters, and how to run one. A pool of 1x1 follows every
    convolution, a larger one ends a block."""
    made = []
    for block in widths:
        made.append([])
        for width in block:
            made[-1].append(parameter(kernel, kernel, channels, width))
            channels = width

    def run(layers):
        def forward(x):
            for weight, bias in layers:
                x = tf.nn.relu(tf.nn.conv2d(x, weight, 1, "SAME") + bias)
                x = tf.nn.max_pool2d(x, 1, 1, "VALID") if pool == 1 else x
            return x if pool == 1 else tf.nn.max_pool2d(x, pool, pool, "VALID")
        return forward

    return made, run


# network -> channels and side of an image, kernel, pool, widths of each block's convolutions, of the head's layers
NETWORKS = {"vgg16": (3, 224, 3, 2, ((64,) * 2, (128,) * 2, (256,) * 3, (512,) * 3, (512,) * 3), (4096, 4096, 1000)),
            "sample-cnn": (1, 256, 5, 1, ((10, 40, 20),) * 5, (32, 10))}
POLICIES = {"none": lambda forward: forward, "recompute": tf.recompute_grad}


def training(options):
    """A function that does a step and returns its loss."""
    channels, side, kernel, pool, widths, units = NETWORKS[options.network]
    layers, run = blocks(channels, kernel, pool, widths)
    passes = [POLICIES[options.policy](run(block)) for block in layers]
    inputs = widths[-1][-1] * (side if pool == 1 else side // pool ** len(widths)) ** 2
    head = [parameter(a, b) for a, b in zip((inputs, *units), units)]
    variables = [variable for block in (*layers, head) for pair in block for variable in pair]
    x = tf.random.normal([options.batch, side, side, channels])
    labels = tf.random.uniform([options.batch], maxval=2, dtype=tf.int64)

    def forward(y):
        for one in passes:
            y = one(y)
        y = tf.reshape(y, [options.batch, -1])
        for i, (weight, bias) in enumerate(head):
            y = tf.matmul(y if i == 0 else tf.nn.relu(y), weight) + bias
        return y

    @tf.function(jit_compile=options.jit)
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, forward(x)))
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(0.01 * gradient)
        return loss

    return step


def memory_mib(key):
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith(key + ":"))
    return round(int(line.split()[1]) / 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=sorted(NETWORKS))
    parser.add_argument("--policy", choices=sorted(POLICIES), default="none")
    parser.add_argument("--jit", action="store_true", help="compile a step by XLA")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--warm", type=int, default=1, help="first steps that do not count")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=123)
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.random.set_seed(options.seed)
    before, seconds, losses = memory_mib("VmRSS"), [], []
    step = training(options)
    for _ in range(options.steps):
        start = time.monotonic()
        losses.append(float(step()))
        seconds.append(round(time.monotonic() - start, 6))
    print(json.dumps({"tensorflow": tf.__version__, "network": options.network, "policy": options.policy,
                      "batch": options.batch, "threads": options.threads,
                      "step_seconds": min(seconds[options.warm:] or seconds), "seconds": seconds,
                      "high_water_mib": memory_mib("VmHWM"), "before_mib": before, "losses": losses}))


if __name__ == "__main__":
    main()
