"""Tables of EXPERIMENTS.md from the runs that are in results/: `run_tables.py NAME`, after the runs that it names.

TABLES has a recipe for each: columns and rows of runs, or a function that returns the head and the rows of cells. Cells are the
figures of result files and, in a few tables, of plans. What others published stands here, with its source.
"""
import sys

from chain import publish
from run_columns import (ACCURACY, ARENA, BESIDE_PREDICTION, HIGH_WATER, LIVE, LIVE_ALONE, OF_BOUND, OF_STORED, PEAK, PLANNED,
                         PREDICTED, RATIO, RECOMPUTING, SAMPLED, STATIC, STEP, STEPS_EQUAL, alike, best_case, both, equal,
                         first_difference, label, last_loss, live, of_runs, of_stored, one, planned, quoted, size, slowdown,
                         swept, variant)
from runs import commands, expect_equal, find, origin, pair, plan, point, points

LEAST, FORTY = "{name: optimal, budget: least}", '{name: optimal, budget: "40%"}'


def batchnorm_once():
    sweep = points("batchnorm-once", differs=True)
    stored = sweep[0]["stored"]
    rows = [["store_all", live(stored), 1, f"test loss {last_loss(stored)}", "", ""]]
    for once, every in zip(*([run for run in sweep if run["point"]["commit"] == commit] for commit in ("once", "every"))):
        rows.append([label(once["point"]["policy"]), live(once), slowdown(once), equal(once), first_difference(every),
                     last_loss(every)])
    return (["", "live peak", "planned slowdown", "`commit: once`", "`commit: every`: first difference, at step 0",
             "its test loss"], rows)


def rng_replay():
    sweep = points("rng-replay", differs=True)
    rows = [["store_all", live(sweep[0]["stored"]), "", 1, "", ""]]
    for counter, stash, mask, unsafe in zip(*([run for run in sweep if run["point"]["rng"] == mode]
                                             for mode in ("counter", "stash", "mask", "unsafe"))):
        rows.append([label(counter["point"]["policy"]), alike(live, counter, stash), live(mask), slowdown(counter),
                     equal(counter, stash, mask), first_difference(unsafe)])
    return (["", "live peak: counter, stash", "mask", "planned slowdown", "counter, stash, mask",
             "unsafe: first difference, at step 0"], rows)


def slices_equal():
    rows = []
    for experiment, title in ("slices-tweets", "BERT tiny"), ("slices-cifar10", "CIFAR-10"):
        sweep = points(experiment)
        rows.append([f"{title}: store_all", *(live(run["stored"]) for run in sweep[:2]), 1,
                     f"loss {sweep[0]['losses'][-1]:.5f}"])
        for separate, fused in zip(sweep[::2], sweep[1::2]):
            rows.append([label(fused["point"]["policy"]), live(separate), live(fused), alike(slowdown, separate, fused),
                         equal(separate, fused)])
    return ["", "live peak, `update: separate`", "live peak, `update: fused`", "planned slowdown", "after 100 steps"], rows


def resnet_cifar10():
    accuracy = pair("resnet-cifar10")["eval"]["accuracy"]
    return (["test accuracy after epoch", *range(1, len(accuracy) + 1)],
            [["store_all and every block, %", *(f"{100 * value:.2f}" for value in accuracy)]])


def big_cnn_losses():
    losses = ", ".join(f"{loss:.8f}" for loss in pair("big-cnn-recompute")["losses"])
    return (["losses of steps 1, 2, 3", "stored", "recomputed"],
            [["notebook", "2.3025851, 2.2924523, 2.2754436", "2.3025851, 2.292471, 2.2751424"],  # TF's recompute_grad notebook
             ["ours", losses, "the same, in every bit"]])


def big_cnn_depth():
    rows = []
    for blocks in 7, 9, 20:
        outputs, bits, sqrt = (plan("big-cnn-sqrt", f"model=models/big-cnn-{blocks}.yaml", *keys)
                               for keys in (("policy=store_all", "relu_save=output"), ("policy=store_all",), ()))
        rows.append([blocks, *(live(one) for one in (outputs, bits, sqrt)), slowdown(sqrt)])
    return ["blocks a partition", "store_all, outputs", "store_all, bits", "sqrt, bits: live peak", "planned slowdown"], rows


def vgg16_relus():
    runs = [[plan("vgg16-pareto", "policy=store_all", f"relu_save={save}", f"relu_after_pool={after}")
             for after in ("false", "true")] for save in ("output", "bits")]
    rows = [[name, *(f"{live(one)} ({of_stored(one | {'stored': runs[0][0]})})" for one in row)]
            for name, row in zip(("outputs kept", "sign bits"), runs)]
    return ["store_all", "relus as written", "after their pools"], rows


def cnn_pareto():
    networks = {"ResNet-50": "resnet50", "MobileNet": "mobilenet", "DenseNet-121": "densenet", "U-Net": "unet"}
    sweeps = {name: {label(run["point"]["policy"]): run for run in points(f"{file}-pareto")} for name, file in networks.items()}
    rows = [["baseline: live peak", *(live(sweep["chen"]["stored"]) for sweep in sweeps.values())]]
    for name, *policies in (("`optimal`, least", "optimal, least"),
                            ("`optimal`, 40 % (U-Net: 45 %)", "optimal, 40 %", "optimal, 45 %"),
                            ("`optimal`, 66 %", "optimal, 66 %"), ("`dtr`, least", "dtr, least"),
                            ("`dtr`, 40 % (U-Net: 50 %)", "dtr, 40 %", "dtr, 50 %"), ("`dtr`, 66 %", "dtr, 66 %"),
                            ("every block", "every group"), ("norms alone", "selective: norm"), ("chen", "chen"),
                            ("store_all", "store_all")):
        runs = [next((sweep[policy] for policy in policies if policy in sweep), None) for sweep in sweeps.values()]
        rows.append([name, *(f"{of_stored(run)} (x{slowdown(run)})" if run else "" for run in runs)])
    heads = [f"{name}, batch {sweep['chen']['batch']}" for name, sweep in sweeps.items()]
    return ["live peak, of the baseline (planned slowdown)", *heads], rows


def dtr_transformer():
    # Kirisame et al., 2021, the authors' data: transformer, batch 10, length 512, Titan V; GB, ms a step, our budget of the row.
    theirs = (9.87, 284.7, None), (8, 317.5, "81%"), (6, 326.3, "61%"), (4, 338.6, "41%"), (2, 454.4, "20%")
    rows = []
    for peak, step, budget in theirs:
        run = point("dtr-transformer", policy__budget=f'"{budget}"') if budget else points("dtr-transformer")[0]["stored"]
        optimal = plan("dtr-transformer", *run["given"], "policy.name=optimal", f"policy.budget={budget}") if budget else run
        rows.append([f"{peak} GB", f"{100 * peak / 9.87:.0f} %", f"{step} ms", f"x{step / 284.7:.3f}" if budget else "",
                     live(run), of_stored(run), slowdown(run), best_case(run, run["stored"]), slowdown(optimal)])
    return (["DTR, Titan V: peak", "of 9.87 GB", "step, measured", "slower, measured", "ours: live peak", "of store_all",
             "`dtr`, planned by flops", "`dtr`, best-case step", "`optimal`, planned by flops"], rows)


def microbatches():
    networks = {"U-Net, 16": ("unet-slices", {}), "BERT, 64 x 128": ("bert-microbatch", {"batch": "64"}),
                "BERT, 16 x 512": ("bert-microbatch", {"batch": "16"})}
    rows = []
    for policy, slices in (("store_all", 1), (FORTY, 1), (LEAST, 1), ("microbatch", 4), ("microbatch", 8), ("microbatch", 16),
                           (LEAST, 8), (LEAST, 16)):
        rows.append([f"{label(policy)}, slices: {slices}"])
        for experiment, keys in networks.values():
            whole = point(experiment, policy="store_all", slices="1", **keys)
            run = find(experiment, policy=policy, slices=str(slices), **keys)
            rows[-1] += [live(run), slowdown(run), best_case(run, whole if run is not whole else None)] if run else [""] * 3
    return ["", *(f"{name}: {what}" for name in networks for what in ("live peak", "planned", "best-case step"))], rows


def nin_segments():
    # The forum thread's two epochs, reentrant and other; of no segments one time.
    theirs = {"0": "109.1 s", "1": "110.1 s, 109.1 s", "2": "114.9 s, 116.2 s", "5": "117.2 s, 116.8 s", "10": "118.8 s, 119.4 s"}
    rows = []
    for segments, thread in theirs.items():
        runs = [point("nin-segments", policy__segments=segments, drop_dead=drop_dead) for drop_dead in ("false", "true")]
        rows.append([segments, *(alike(cell, *runs) for cell in (live, of_stored, PEAK[1])),
                     *(", ".join(map(cell, runs)) for cell in (slowdown, lambda run: best_case(run, None))), thread])
    return (["segments", *(f"{head}: reentrant, other" for head in ("live peak", "of store_all", "peak", "planned slowdown")),
             "best-case step: reentrant, other", "thread, 2 epochs: reentrant, other"], rows)


def resnet_depth_small():
    policies = {"store_all": "store_all", "sqrt": "sqrt", "chen": "chen", "`dtr`, least": "{name: dtr, budget: least}",
                "`optimal`, least": LEAST}
    rows = []
    for layers, more in (50, "5"), (101, "22"), (152, "39"):
        runs = [point("resnet-depth-small", policy=policy, model__parameters__more3=more) for policy in policies.values()]
        for what, cell in LIVE_ALONE, HIGH_WATER, PLANNED:
            first = what == LIVE_ALONE[0]
            rows.append([layers if first else "", size(runs[0]["static_bytes"]) if first else "", what, *map(cell, runs)])
    return ["layers", "fixed", "", *policies], rows


def selective_attention():
    core, block, light = (point("selective-attention", policy=policy, model__parameters__attention_save=save) for policy, save in (
        ("{name: selective, kinds: [attention]}", "probabilities"),
        ("{name: every, unit: group, keep_saved: false}", "probabilities"), ("store_all", "nothing")))
    light = expect_equal(light | {"stored": core["stored"]})  # its own baseline keeps no probabilities either
    rows = (("store_all", core["stored"]), ("selective: attention", core), ("every block", block),
            ("store_all, `attention: {save: nothing}`", light))
    return of_runs("", [LIVE_ALONE, OF_STORED, PLANNED, STEP], [lambda: rows])


OUTPUTS = "baseline, outputs kept"
PARETO = [LIVE_ALONE, OF_STORED, HIGH_WATER, PLANNED, OF_BOUND, PREDICTED, BESIDE_PREDICTION, RATIO]
# Rows of a source are those of TensorFlow's page (pidajay/tf2_gradient_checkpointing), less the 298 and 299 MiB that its process
# used before.
TABLES = {
    "batchnorm-once": batchnorm_once,
    "bert-recompute": ("", [LIVE_ALONE, OF_STORED, PEAK, PLANNED, STEP], [swept("bert-recompute")]),
    "big-cnn": ("7 blocks", [LIVE, PEAK, PLANNED, STEP], [both("big-cnn-recompute", "by partition")]),
    "big-cnn-depth": big_cnn_depth,
    "big-cnn-losses": big_cnn_losses,
    "cifar10-spell": ("", [LIVE, PLANNED, STEP, ACCURACY, STEPS_EQUAL], [
        both("cifar10-spell", "second block recomputed"),
        variant("cifar10-spell-dropout", "both blocks and the classifier, dropout inside")]),
    "cnn-pareto": cnn_pareto,
    "dtr-transformer": dtr_transformer,
    "efficientnet": ("batch 8", [LIVE, PLANNED, STEP], [swept("efficientnet")]),
    "microbatches": microbatches,
    "nin-segments": nin_segments,
    "resnet-cifar10": resnet_cifar10,
    "resnet-depth-small": resnet_depth_small,
    "resnet50-0.6": ("", [LIVE, PEAK, PLANNED, PREDICTED, STEP, RECOMPUTING], [
        both("resnet50-0.6", "optimal, 57.6 %")]),
    "rng-replay": rng_replay,
    "sample-cnn": ("", [LIVE, PEAK, SAMPLED, PLANNED, STEP], [
        quoted("source, stored", "", "", "2.90 GiB, 131 MiB", "", "38.1 s"),
        quoted("source, recomputed", "", "", "69, 192 MiB", "", "135.5 s (x3.55)"),
        both("sample-cnn-page", "its network, its schedule", stored="its network: store_all"),
        both("sample-cnn-recompute", "five blocks: the partition as a whole", stored="five blocks: store_all"),
        variant("sample-cnn-blocks", "five blocks: block by block, relu bits")]),
    "sd-unet": ("batch 1", [LIVE, PLANNED, STEP], [swept("sd-unet")]),
    "selective-attention": selective_attention,
    "slices-equal": slices_equal,
    "unet-segmentation": ("one tile", [LIVE, PLANNED, STEP], [swept("unet-segmentation", OUTPUTS)]),
    "vgg16-1gb": ("", [STATIC, ARENA, HIGH_WATER, PLANNED, STEP], [
        one("vgg16-1gb", "store_all, slices: 1", slices="1", stored=True),
        one("vgg16-1gb", "store_all, slices: 8", policy="{name: optimal, budget: 1000MiB}", stored=True),
        one("vgg16-1gb", "optimal, 1507 MiB", policy="{name: optimal, budget: 1507MiB}"),
        one("vgg16-1gb", "optimal, 1000 MiB", policy="{name: optimal, budget: 1000MiB}"),
        quoted("TensorFlow's page (after a line, not a peak)", "", "", "1.6 GB", "", "264 s")]),
    "vgg16-cifar10": ("", [LIVE, PEAK, PLANNED, STEP], [both("vgg16-cifar10", "five segments, all recomputed")]),
    "vgg16-pareto": ("policy", PARETO, [swept("vgg16-pareto", OUTPUTS)]),
    "vgg16-pareto-outputs": ("policy", PARETO, [swept("vgg16-pareto-outputs", OUTPUTS)]),
    "vgg16-recompute": ("", [LIVE, PEAK, SAMPLED, PLANNED, STEP], [
        quoted("source, stored", "", "", "4.29, 1.27 GiB", "", "39.6 s"),
        quoted("source, recomputed", "", "", "0.75, 1.27 GiB", "", "264.1 s (x6.67)"),
        planned("vgg16-recompute", "the source's schedule, planned", "policy={name: revolve, slots: 1, unit: stage}",
                isa="avx512"),
        both("vgg16-recompute", "segments: 5", isa="avx512"),
        variant("vgg16-blocks", "manual by block, relu bits"),
        both("vgg16-recompute", "AVX2 only: segments: 5", "AVX2 only: store_all", isa="avx2")]),
    "vgg16-relus": vgg16_relus,
    "vit": ("batch 16", [LIVE, PLANNED, STEP], [swept("vit")])}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in TABLES:
        sys.exit(f"run_tables.py: expected one of {', '.join(TABLES)}")
    name, recipe = sys.argv[1], TABLES[sys.argv[1]]
    head, rows = recipe() if callable(recipe) else of_runs(*recipe)
    publish(name, head, rows, [*commands], origin())


if __name__ == "__main__":
    main()
