#!/usr/bin/python3
"""Draws the README's picture, results/readme-memory.svg: `make readme-picture`.

Live memory over the ops of one training step of VGG16, of the plan that stores everything beside that of five recomputed
segments, from `rematch plan --json --ops`. The plans depend on the processor (EXPERIMENTS.md, at its end), so the file
names the machine's instruction set and both plans' hashes.
"""
import json
import os
import subprocess
import sys

PROGRAM = os.environ.get("REMATCH_BIN", "build/rematch")
OUT = "results/readme-memory.svg"
SPEC = "vgg16-recompute"
PANELS = (("Store everything", "policy=store_all"),
          ("Recompute, in five segments", "policy={name: segments, segments: 5}"))
KINDS = (("forward", 106), ("recompute", 126), ("backward", 118))  # and their places' widths in the legend
GIB = 1024 ** 3

WIDTH, HEIGHT = 1000, 480
TOP, BOTTOM, LEFT, GAP = 136, 396, 70, 44  # of the panels
PANEL = (WIDTH - LEFT - GAP - 26) / 2
CEILING = 4  # GiB, the height of a panel

STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 15px; fill: #1f2328 }
.title { font-size: 18px; font-weight: 600 }
.note { fill: #59636e }
.end { text-anchor: end }
.middle { text-anchor: middle }
.paper { fill: #ffffff; stroke: #d1d9e0 }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.axis { stroke: #59636e; stroke-width: 1.2 }
.peak { stroke: #1f2328; stroke-width: 1.4; stroke-dasharray: 5 4 }
.forward { fill: #4c8fd6 }
.recompute { fill: #e8912d }
.backward { fill: #7f8b99 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.note { fill: #9da7b3 }
.paper { fill: #0d1117; stroke: #3d444d }
.grid { stroke: #2b323b }
.axis { stroke: #9da7b3 }
.peak { stroke: #e6edf3 }
.forward { fill: #4493f8 }
.recompute { fill: #f0a04b }
.backward { fill: #6e7b8a }
}
"""


def plan(*arguments):
    done = subprocess.run([PROGRAM, "plan", SPEC, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def kind(op):
    """An op's text is `F conv1_1`, `F conv1_1 recompute` or `B conv1_1 params`."""
    return "backward" if op.startswith("B ") else "recompute" if op.endswith(" recompute") else "forward"


def y(gib):
    return BOTTOM - (BOTTOM - TOP) * gib / CEILING


def text(x, baseline, said, style=""):
    said = said.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{baseline:.1f}" class="{style}">{said}</text>'


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def runs(ops):
    """Neighbouring ops of one kind: (kind, first, last + 1)."""
    first = 0
    for end in range(1, len(ops) + 1):
        if end == len(ops) or kind(ops[end]["op"]) != kind(ops[first]["op"]):
            yield kind(ops[first]["op"]), first, end
            first = end


def area(ops, first, end, left, step):
    """The outline of a step function over the ops first to end - 1."""
    path = f"M{left + first * step:.1f} {BOTTOM}"
    for number in range(first, end):
        path += f"V{y(ops[number]['live_bytes'] / GIB):.1f}H{left + (number + 1) * step:.1f}"
    return path + f"V{BOTTOM}Z"


def panel(left, title, figures, stored, step):
    ops, peak = figures["ops"], figures["live_peak_bytes"] / GIB
    share = f" ({100 * peak / stored:.0f} %)" if peak < stored else ""
    drawn = [line(left, y(tick), left + PANEL, y(tick), "grid") for tick in range(1, CEILING + 1)]
    drawn += [f'<path d="{area(ops, first, end, left, step)}" class="{name}"/>' for name, first, end in runs(ops)]
    drawn += [line(left, BOTTOM, left + PANEL, BOTTOM, "axis"), line(left, y(peak), left + PANEL, y(peak), "peak")]
    drawn += [text(left + tick * step, BOTTOM + 19, str(tick), "note middle") for tick in range(0, len(ops) + 1, 10)]
    drawn += [text(left, TOP - 46, title, "title"),
              text(left, TOP - 23, f"peak {peak:.2f} GiB{share}, {figures['slowdown']:.2f} times the flops")]
    return drawn


def legend():
    drawn, x = [], LEFT
    for name, width in KINDS:
        drawn += [f'<rect x="{x}" y="26" width="16" height="16" rx="3" class="{name}"/>', text(x + 23, 39, name)]
        x += width
    return drawn + [line(x, 34, x + 30, 34, "peak"), text(x + 38, 39, "peak")]


def picture():
    plans = [json.loads(plan(policy, "--json", "--ops")) for _, policy in PANELS]
    machine = plan("policy=store_all").split("backend ", 1)[1].split("\n", 1)[0]
    step = PANEL / max(len(figures["ops"]) for figures in plans)
    peaks = [figures["live_peak_bytes"] / GIB for figures in plans]
    described = (f"Two charts of live memory in GiB over the ops of one training step of VGG16, batch {plans[0]['batch']}. "
                 f"Storing everything, memory rises in the forward pass to a peak of {peaks[0]:.2f} GiB and falls in the "
                 f"backward pass. Recomputing in five segments, the forward pass keeps little, each segment but the last "
                 f"runs forward again before its backward, and the peak is {peaks[1]:.2f} GiB, for "
                 f"{plans[1]['slowdown']:.2f} times the flops.")
    source = "; ".join(f"rematch plan {SPEC} '{policy}' --json --ops, plan {figures['hash']}"
                       for (_, policy), figures in zip(PANELS, plans))
    drawn = [f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8" class="paper"/>', *legend()]
    for number, ((title, _), figures) in enumerate(zip(PANELS, plans)):
        drawn += panel(LEFT + number * (PANEL + GAP), title, figures, peaks[0], step)
    drawn += [text(LEFT - 9, y(tick) + 5, str(tick), "note end") for tick in range(CEILING + 1)]
    drawn += [f'<text transform="translate(27 {(TOP + BOTTOM) / 2:.1f}) rotate(-90)" class="middle">live memory, GiB</text>',
              text((LEFT + WIDTH - 26) / 2, BOTTOM + 44, "ops of one training step, in order", "middle"),
              text(LEFT, HEIGHT - 16, f"VGG16, batch {plans[0]['batch']}, by plan. Parameters, their gradients and the "
                   f"batch add {plans[0]['static_bytes'] / GIB:.2f} GiB to both.", "note")]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title desc">',
        '<title id="title">Live memory during one training step of VGG16</title>', f'<desc id="desc">{described}</desc>',
        f"<metadata>Drawn by make readme-picture (experiments/bench/picture.py) from {source}; backend {machine}</metadata>",
        f"<style>{STYLE}</style>", *drawn, "</svg>", ""])


if __name__ == "__main__":
    with open(OUT, "w", encoding="utf-8") as file:
        file.write(picture())
    print(f"wrote {OUT}")
