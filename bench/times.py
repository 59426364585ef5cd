#!/usr/bin/env python3
"""Where the time of a race goes: a Markdown table of the loads in records.

    bench/times.py RECORD...     records as deadheat writes them, or packed by gzip; default: those kept beside the studies

For each scenario under load: seconds of an epoch in the mean, and of it those of starts, warm-ups and slices. The rest is what stands
between: parity, waking, freezing, readings, and ending. The pilot comes once before the first epoch.
"""
import sys
from pathlib import Path

from first_slices import lines

STUDIES = Path(__file__).resolve().parent.parent / "studies"


def epochs_of(path):
    epochs, study = {}, None
    for line in lines(path):
        if line["line"] == "header":
            study = line["plan"]["study"]
        elif line["line"] == "anew":
            epochs.pop(line["scenario"], None)
        elif line["line"] == "epoch":
            epochs.setdefault(line["scenario"], []).append(line)
    return study, epochs


def row(study, scenario, epochs):
    def mean(seconds_of):
        return sum(map(seconds_of, epochs)) / len(epochs) / 1e9

    took = mean(lambda epoch: epoch["took_ns"])
    starts = mean(lambda epoch: sum(part["cold_start_ns"] for part in epoch["contenders"]))
    warm_up = mean(lambda epoch: sum(part["warmup_ns"] for part in epoch["contenders"]))
    slices = mean(lambda epoch: sum(one["elapsed_ns"] for a_round in epoch["rounds"] for one in a_round["slices"]))
    contenders = len(epochs[-1]["contenders"])
    share = 100 * warm_up / took
    rest = took - starts - warm_up - slices
    cells = [study, f"`{scenario}`", contenders, len(epochs)]
    return cells + [f"{seconds:.1f}" for seconds in (took, starts, warm_up, slices, rest)] + [f"{share:.0f} %"]


def main():
    paths = list(map(Path, sys.argv[1:])) or sorted(STUDIES.glob("*/kept/*.jsonl.gz"))
    print("| study | scenario | contenders | epochs | an epoch, s | starts | warm-ups | slices | rest | warm-ups, share |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for path in paths:
        study, scenarios = epochs_of(path)
        for scenario, epochs in scenarios.items():
            if any(epoch["rounds"][0]["slices"] for epoch in epochs):
                print("| " + " | ".join(map(str, row(study, scenario, epochs))) + " |")


if __name__ == "__main__":
    main()
