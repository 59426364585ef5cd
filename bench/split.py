#!/usr/bin/env python3
"""How the time of an epoch is best split between starting and warming up, and measuring.

  bench/split.py RECORD ...    journals of races of two under a closed load, packed or not; a table of all of them, as Markdown

KEEP_RECORDS=FOLDER bench/verdicts.py keeps such journals. From the first rounds of each epoch follows how its log ratio would scatter
had it measured for less long: s_d^2 = a^2 + b / T. What `a` holds no longer measurement takes away, the start itself among it. With two
contenders an epoch takes O + 2 T, O for starts, parity and warm-up; a race needs as many epochs as the variance is large, so that the time
for the same certainty goes with s_d^2 (O + 2 T). It is shown against that of three seconds; what is longer is extrapolated.
"""
import math
import statistics
import sys
from pathlib import Path

from first_slices import lines
from races import epoch_ratios

SECONDS = [0.5, 1, 1.5, 2, 3]
COMPARED = [1, 2, 6]


def read(path: Path) -> tuple[str, float, list[dict]]:
    """The first contender's command, the length of a slice in seconds, and the epochs of races of two under a closed load."""
    header, *rest = lines(path)
    plan, epochs = header["plan"], [line for line in rest if line["line"] == "epoch"]
    closed = len(plan["contenders"]) == 2 and plan["scenarios"][0]["shape"]["kind"] == "closed"
    return plan["contenders"][0]["command"], plan["method"]["slice_ns"] / 1e9, epochs if closed else []


def table(paths: list[Path]) -> str:
    races: dict[str, list[tuple[float, list[dict]]]] = {}
    for path in paths:
        command, slice_s, epochs = read(path)
        if len(epochs) > 2:
            races.setdefault(server(command), []).append((slice_s, epochs))
    head = ["server", "races", "epochs", *(f"s_d % at {second:g} s" for second in SECONDS), "O, s", "a, %",
            *(f"time at {second:g} s" for second in COMPARED)]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    rows += [row(name, held) for name, held in sorted(races.items())]
    return "\n".join(rows)


def server(command: str) -> str:
    """The program, whatever folder it is in."""
    words = [word for word in command.split() if "/" in word and not word.endswith(".mjs")]
    return Path(words[0]).name if words else command


def row(name: str, held: list[tuple[float, list[dict]]]) -> str:
    variances = [spread(held, second) for second in SECONDS]
    epochs = [epoch for _, each in held for epoch in each]
    overhead = statistics.median(epoch["took_ns"] - sum(one["loaded_ns"] for one in epoch["contenders"]) for epoch in epochs) / 1e9
    fixed = max(statistics.linear_regression([1 / second for second in SECONDS], variances).intercept, 0.0)
    # Through the longest measurement, which is the best known.
    slope = max(variances[-1] - fixed, 0.0) * SECONDS[-1]
    seen = dict(zip(SECONDS, variances))
    cost = lambda second: seen.get(second, fixed + slope / second) * (overhead + 2 * second)
    times = [f"{cost(second) / cost(SECONDS[-1]):.2f}" for second in COMPARED]
    cells = [name, len(held), len(epochs), *(f"{100 * math.sqrt(one):.2f}" for one in variances), f"{overhead:.1f}",
             f"{100 * math.sqrt(fixed):.2f}", *times]
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def spread(held: list[tuple[float, list[dict]]], second: float) -> float:
    """The variance of epochs' log ratios within races, had each epoch measured for so long."""
    squares, degrees = 0.0, 0
    for slice_s, epochs in held:
        logs = epoch_ratios({"record": {"epochs": epochs}}, round(second / slice_s))
        if len(logs) > 2:
            squares, degrees = squares + statistics.variance(logs) * (len(logs) - 1), degrees + len(logs) - 1
    return squares / degrees if degrees else math.nan


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(table([Path(one) for one in sys.argv[1:]]))
