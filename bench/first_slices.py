#!/usr/bin/env python3
"""How fast contenders are in the first slices of an epoch, against the rest of it.

  bench/first_slices.py RECORD ...    journals of races, packed or not; a table for each, as Markdown

Of each epoch, a contender's slice is divided by the median of its slices from the eleventh on; shown is the mean over epochs of the
first two, and how much slices vary from the eleventh on (standard deviation over mean, mean over epochs).
"""
import gzip
import json
import statistics
import sys
from pathlib import Path

SETTLED = 10


def lines(path: Path):
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else path.open()
    with opened as file:
        yield from map(json.loads, file)


def rates(epoch: dict) -> dict[int, list[float]]:
    """Each contender's slices in their order, requests/s."""
    found: dict[int, list[float]] = {}
    for one in (one for round_ in epoch["rounds"] for one in round_["slices"]):
        found.setdefault(one["contender"], []).append(one["rate_per_s"])
    return found


def table(path: Path) -> str:
    names, found = [], {}
    for line in lines(path):
        if line["line"] == "header":
            names = [one["name"] for one in line["plan"]["contenders"]]
        elif line["line"] == "epoch":
            for contender, own in rates(line).items():
                found.setdefault((line["scenario"], names[contender]), []).append(own)
    out = [f"{path}", "", "| scenario | contender | epochs | first slice | second | slices vary by |", "|---|---|--:|--:|--:|--:|"]
    for (scenario, name), epochs in sorted(found.items()):
        epochs = [own for own in epochs if len(own) >= 2 * SETTLED]
        if not epochs:
            continue
        share = [statistics.mean(own[at] / statistics.median(own[SETTLED:]) for own in epochs) for at in (0, 1)]
        varies = statistics.mean(statistics.stdev(own[SETTLED:]) / statistics.mean(own[SETTLED:]) for own in epochs)
        out.append(f"| {scenario} | {name} | {len(epochs)} | {share[0]:.0%} | {share[1]:.0%} | {varies:.0%} |".replace("%", " %"))
    return "\n".join(out)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print("\n\n".join(table(Path(one)) for one in sys.argv[1:]))
