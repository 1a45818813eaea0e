"""A table beside the published one of the same name: which row stands beside which, and how far its numbers are apart."""
import csv
import difflib
import os
import re
import sys

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "MB": 1e6, "GB": 1e9, "us": 1e-6, "ms": 1e-3, "s": 1, "%": 1}
NUMBER = re.compile(r"(?<![\w.+-])(x?)(\d+(?:,\d{3})*(?:\.\d+)?)(?: (B|KiB|MiB|GiB|MB|GB|us|ms|s|%)(?!\w))?(?![\w.-])")
SIGNED = re.compile(r"[+-]\d[\d.]* %")  # is a deviation itself
KIND = {unit: "bytes" if unit.endswith("B") else "seconds" if unit.endswith("s") else unit for unit in UNITS}


def deviation(own, published):
    """How far each number of a cell is above the published one, in percent; "differs" or "" where the words around them, or their
    kinds, are not the same."""
    def words(cell):
        return NUMBER.sub(lambda found: f"{found[1]}#{KIND.get(found[3], '')}", SIGNED.sub("±", cell))

    def numbers(cell):
        return [float(found[2].replace(",", "")) * UNITS.get(found[3], 1) for found in NUMBER.finditer(cell)]
    if words(own) != words(published):
        return "" if own == published else "differs"
    return ", ".join(f"{100 * (a / b - 1):+.1f} %" if b else "" for a, b in zip(numbers(own), numbers(published)))


def beside(path, cells, comments):
    """Rows for people: each of cells, whose first are the heads, above the published one of the same first cell."""
    if not os.path.exists(path):
        sys.exit(f"{path}: nothing is published under this name")
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(file)
    for where, texts in (("here", comments), ("published", [line[2:].rstrip() for line in lines if line.startswith("# ")])):
        print(f"{where}:", "\n    ".join(["", *texts]).lstrip("\n"), sep="\n")
    theirs = list(csv.reader(line for line in lines if not line.startswith("#")))
    if len(theirs[0]) != len(cells[0]):
        sys.exit(f"{path}: has {len(theirs[0])} columns; expected {len(cells[0])}")
    rows = [[cells[0][0], "", *cells[0][1:]]]
    if theirs[0] != cells[0]:
        rows.append([theirs[0][0], "published", *theirs[0][1:]])
    pairs = difflib.SequenceMatcher(None, [row[0] for row in cells[1:]], [row[0] for row in theirs[1:]], autojunk=False)
    for _, a, a_end, b, b_end in pairs.get_opcodes():
        both = list(zip(cells[1 + a:1 + a_end], theirs[1 + b:1 + b_end])) if a_end - a == b_end - b else []
        for own, published in both:
            rows += [[own[0], "here", *own[1:]], ["" if own[0] == published[0] else published[0], "published", *published[1:]],
                     ["", "deviation", *map(deviation, own[1:], published[1:])]]
        if not both:
            rows += [[row[0], "here", *row[1:]] for row in cells[1 + a:1 + a_end]]
            rows += [[row[0], "published", *row[1:]] for row in theirs[1 + b:1 + b_end]]
    return rows
