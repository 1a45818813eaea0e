#!/usr/bin/python3
"""published-cnns: ResNet-50, DenseNet-121, MobileNet and U-Net in the memory that others publish

ResNet-50: Shah et al. (MONeT), 2021, README: peak and time beside PyTorch's, of 15.06 GB. DenseNet-121: Kirisame et al. (DTR),
2021, the authors' data: a step beside 343.7 ms without a budget. MobileNet, U-Net and ResNet-50 at batch 193: Jain et al.
(Checkmate), 2020, the authors' artifact: the largest batch in 16 GB with at most one extra forward. Ours: the slowdown, by flops,
of `optimal` and of `dtr` within the same bytes, parameters, their gradients and the batch included.
"""
import sys

from chain import plan_spec

MINUTES = 10  # for one plan
UNET = ("data.shape=[416, 608, 3]", "data.classes=2")
LIMIT = "+33.3 % at most"
NETWORKS = [  # model, its images, batch, published: gigabytes and time
    ("resnet50", (), 184, [(10.01, "+3.2 %"), (6.00, "+9.3 %"), (4.99, "+12 %")]),
    ("resnet50", (), 193, [(16, LIMIT)]),
    ("densenet121", (), 84, [(10, "+15.9 %"), (4, "+51.4 %")]),
    ("mobilenet", (), 1105, [(16, LIMIT)]),
    ("unet", UNET, 32, [(16, "")]),
    ("unet", UNET, 57, [(16, LIMIT)]),
]


def cell(answer):
    """The time of a plan and its bytes."""
    return f"{100 * (answer['slowdown'] - 1):+.1f} % in {answer['peak_bytes'] / 1e9:.2f} GB" if answer else "none"


def main():
    for model, images, batch, published in NETWORKS:
        def plan(policy):
            return plan_spec("published-cnns", f"model.file=../models/{model}.yaml", f"batch={batch}", *images,
                             f"policy={policy}", "--alone", seconds=60 * MINUTES)

        print(f"{model}, batch {batch}: stored {cell(plan('store_all'))}, chen {cell(plan('chen'))}", flush=True)
        for budget, time in [("least", ""), *published]:
            bytes_ = budget if budget == "least" else f"{budget:g}GB"
            ours = [cell(plan(f"{{name: {policy}, budget: {bytes_}}}")) for policy in ("optimal", "dtr")]
            print(f"  {bytes_:8} published {time:16} optimal {ours[0]:22} dtr {ours[1]}", flush=True)
    return 0


sys.exit(main())
