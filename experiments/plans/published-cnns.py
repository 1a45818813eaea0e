#!/usr/bin/python3
"""published-cnns: ResNet-50, GoogLeNet, DenseNet-121, MobileNets and U-Nets in the memory that others publish

MONeT: Shah et al., 2021, README: peak and time beside PyTorch's, which takes 15.06 GB for ResNet-50, 14.93 GB for GoogLeNet,
14.32 GB for its U-Net and 14.46 GB for MobileNet-V2. DenseNet-121: Kirisame et al. (DTR), 2021, the authors' data: a step
beside 343.7 ms without a budget. MobileNet, U-Net and ResNet-50 at batch 193: Jain et al. (Checkmate), 2020, the authors'
artifact: the largest batch in 16 GB with at most one extra forward. Ours: the slowdown, by flops, of `optimal` and of `dtr`
within the same bytes, parameters, their gradients and the batch included.
"""
import sys

from chain import plan_spec, publish

MINUTES = 10  # for one plan
UNET = ("data.shape=[416, 608, 3]", "data.classes=2")
LIMIT = "Checkmate, at most +33.3 %"


def monet(*rows):
    return [(gigabytes, f"MONeT {percent:+.2f} %") for gigabytes, percent in rows]


NETWORKS = [  # name, model, its images, batch, published: gigabytes and time, and whether the least bytes are of interest
    ("ResNet-50", "resnet50", (), 184,
     monet((10.01, 3.22), (9.01, 4.68), (8.01, 5.56), (6.99, 7.28), (6, 9.31), (4.99, 11.95)), True),
    ("GoogLeNet", "googlenet", (), 320,
     monet((9.98, 7.13), (8.99, 7.87), (8.01, 8.44), (7.02, 9.71), (6.01, 12.14), (4.99, 15.77)), True),
    ("MONeT's U-Net", "unet-halved", UNET, 11,
     monet((10.01, -4.1), (9.01, -2.07), (8.02, -0.09), (7, 1.39), (6.01, 4.95), (5.01, 11.51)), True),
    ("MobileNet-V2", "mobilenet-v2", (), 272,
     monet((10.02, 2.4), (9.01, 3.1), (8.02, 4.77), (7.01, 5.53), (6.01, 7.55), (5.01, 8.72)), True),
    ("ResNet-50", "resnet50", (), 193, [(16, LIMIT)], False),
    ("DenseNet-121", "densenet121", (), 84, [(10, "DTR +15.9 %"), (8, "DTR +22.3 %"), (6, "DTR +29.3 %"), (4, "DTR +51.4 %")], True),
    ("MobileNet", "mobilenet", (), 1105, [(16, LIMIT)], True),
    ("U-Net", "unet", UNET, 32, [(16, "")], True),
    ("U-Net", "unet", UNET, 57, [(16, LIMIT)], True),
]


def time_of(answer):
    return f"{100 * (answer['slowdown'] - 1):+.1f} %" if answer else "none"


def bytes_of(answer):
    return f"{answer['peak_bytes'] / 1e9:.2f} GB"


def main():
    rows = []
    for name, model, images, batch, published, least in NETWORKS:
        def plan(policy):
            return plan_spec("published-cnns", f"model.file=../models/{model}.yaml", f"batch={batch}", *images,
                             f"policy={policy}", "--alone", seconds=60 * MINUTES)

        chen = plan("chen")
        head = [f"{name}, {batch}", bytes_of(plan("store_all")), f"{bytes_of(chen)}, {time_of(chen)}"]
        for budget, time in published:
            ours = [time_of(plan(f"{{name: {policy}, budget: {budget:g}GB}}")) for policy in ("optimal", "dtr")]
            rows.append([*head, f"{budget:.2f} GB" if budget % 1 else f"{budget:g} GB", time, *ours])
            head = ["", "", ""]
        if least:
            ours = [plan(f"{{name: {policy}, budget: least}}") for policy in ("optimal", "dtr")]
            rows.append([*head, "least", "", *(f"{bytes_of(answer)}, {time_of(answer)}" for answer in ours)])
    publish("published-cnns", ["network, batch", "stored", "`chen`", "memory", "published (MONeT, DTR: measured, GPU)",
                               "`optimal`, planned by flops", "`dtr`, planned by flops"], rows)
    return 0


sys.exit(main())
