"""Writes results as Markdown: tables and figures."""
import datetime
import os

import measure

HEAD = """# Benchmark on the CPU

Written by `make bench` (experiments/bench/bench.py says how it measures). Ratios are of the least times over all turns, with the
range of the ratios within a turn; of ours to ours, of best-case steps: each op at its least over the runs of a plan.
"""


class Table:
    """Rows of text under a head."""

    def __init__(self, *head):
        self.rows = [head, ["---"] * len(head)]

    def row(self, *cells):
        self.rows.append(cells)

    def __str__(self):
        return "\n".join("| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in row) + " |"
                         for row in self.rows)


def provenance(groups):
    """A table of when this is and of what measure.provenance() read."""
    table = Table("what", "")
    table.row("date (UTC)", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"))
    for group, values in groups.items():
        for key, value in values.items():
            if key not in ("tree_diff_xxh3", "dirty_sha1"):
                table.row(f"{group} {key}", value)
    return table


def gib(value):
    return f"{value / 1024 ** 3:.2f} GiB"


def mib(value):
    return f"{value / 1024 ** 2:.0f} MiB"


def seconds(value):
    return f"{value:.2f} s"


def spread(value, turns):
    return f"{value:.2f} (in a turn {min(turns):.2f} to {max(turns):.2f}, {len(turns)} turns)"


def save(path, sections, head=HEAD):
    """Writes the sections to path (below the project's folder) unless that is None; returns the text."""
    text = head + "".join(f"\n## {title}\n\n{table}\n" for title, table in sections)
    if path:
        with open(os.path.join(measure.ROOT, path), "w", encoding="utf-8") as file:
            file.write(text)
    return text


def write(path, sections, head=HEAD):
    """Saves the sections and prints them."""
    print(save(path, sections, head))
    if path:
        print(f"written to {path}")
