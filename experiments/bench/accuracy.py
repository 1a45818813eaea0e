#!/usr/bin/python3
"""Test accuracies of resnet-cifar10 by seed, here and in PyTorch: `experiments/bench/accuracy.py [--seeds N...]`.

PyTorch has the same network, images, normalisation, distribution of initial values, batch, rates and optimizer, but random
numbers of its own. Ours stores everything: recomputation changes no bit, which the experiment itself shows. REMATCH_DATA
names the folder of the data. One accuracy, of 1,017 images, has a standard error of 1.6 points, the seed's left out.
"""
import argparse
import glob
import json
import os
import statistics
import sys
import tempfile

import measure
import report

SPEC = "experiments/resnet-cifar10.yaml"
BATCH, EPOCHS, RATE, IMAGES = 64, 10, 0.1, 1017
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def ours(seed):
    with tempfile.TemporaryDirectory(prefix="rematch-bench-") as folder:
        measure.run(folder, SPEC, "policy=store_all", f"seed={seed}")
        found, = glob.glob(os.path.join(folder, "**", "*.h5"), recursive=True)
        return json.loads(measure.output([measure.PROGRAM, "show", found, "--json"]))["eval"]["accuracy"]


def torch_images(names):
    import numpy
    import torch
    rows = numpy.concatenate([numpy.fromfile(os.path.join(os.environ["REMATCH_DATA"], "cifar10", name), numpy.uint8)
                              .reshape(-1, 3073)[:IMAGES] for name in names])
    x = torch.tensor(rows[:, 1:].reshape(-1, 3, 32, 32), dtype=torch.float32) / 255
    mean, deviation = (torch.tensor(values)[:, None, None] for values in (MEAN, DEVIATION))
    return (x - mean) / deviation, torch.tensor(rows[:, 0], dtype=torch.long)


def torch_network():
    from torch import nn
    from torch_peer import Residual, normalised
    layers, channels = [normalised(3, 16, 3)], 16
    for width in 16, 32, 64:
        for _ in range(3):
            stride = 2 if width > channels else 1
            shortcut = normalised(channels, width, 1, stride, relu=False) if stride > 1 else nn.Identity()
            layers.append(Residual(nn.Sequential(normalised(channels, width, 3, stride),
                                                 normalised(width, width, 3, relu=False)), shortcut))
            channels = width
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    for module in network.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return network


def torch_run(seed):
    """The accuracy after each epoch."""
    import torch
    torch.manual_seed(seed)
    (x, labels), (test_x, test_labels) = torch_images([f"data_batch_{i}.bin" for i in range(1, 6)]), \
        torch_images(["test_batch.bin"])
    network, steps, accuracy = torch_network(), len(x) // BATCH, []
    optimizer = torch.optim.SGD(network.parameters(), RATE, momentum=0.9, weight_decay=1e-4)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / (steps * EPOCHS))
    for _ in range(EPOCHS):
        network.train()
        for rows in torch.randperm(len(x))[:steps * BATCH].reshape(steps, BATCH):
            loss = torch.nn.functional.cross_entropy(network(x[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
        network.eval()
        with torch.no_grad():
            accuracy.append((network(test_x).argmax(1) == test_labels).double().mean().item())
    return accuracy


def peer(seed):
    python = measure.PEERS_PYTHON if measure.NEWEST else measure.DEBIAN_PYTHON
    line, = measure.script_peer(python, "accuracy.py", "--torch", seed)
    return line["accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4])
    parser.add_argument("--torch", type=int, help=argparse.SUPPRESS)  # one run of PyTorch, by its own interpreter
    options = parser.parse_args()
    if options.torch is not None:
        print(json.dumps({"accuracy": torch_run(options.torch)}))
        return
    table = report.Table("network", "seed", *(f"after epoch {i + 1}, %" for i in range(EPOCHS)))
    means = report.Table("network", "mean of the last, %", "least", "most")
    for name, run in ("ours", ours), ("PyTorch", peer):
        last = []
        for seed in options.seeds:
            accuracy = run(seed)
            print(f"{name}, seed {seed}: {100 * accuracy[-1]:.2f} %", file=sys.stderr, flush=True)
            table.row(name, seed, *(f"{100 * value:.2f}" for value in accuracy))
            last.append(100 * accuracy[-1])
        means.row(name, f"{statistics.mean(last):.2f}", f"{min(last):.2f}", f"{max(last):.2f}")
    print(f"{table}\n\n{means}")


if __name__ == "__main__":
    main()
