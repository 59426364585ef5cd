#!/usr/bin/env python3
"""How long a slice should be, and for how long an epoch should measure.

  bench/slices.py [--out FILE] [PASSES]     four real contenders of studies/trending, each raced against itself
  bench/slices.py --table FILE              the table of what was kept

For each contender and each slice length one race of six epochs, by turns; each epoch measures three seconds of every
contender. The standard deviation of the epochs' log ratios, s_d, says how noisy a race with such slices is; from the first
rounds alone it says how noisy one would be that measures for less long. Nothing else may run meanwhile.
"""
import argparse
import statistics
import tempfile
from pathlib import Path

import races

CONTENDERS = ["bun", "node26", "go", "php"]
SLICES_MS = [20, 50, 100, 250]
MEASURED_S = [0.5, 1, 2, 3]
EPOCHS = 6


def measure(out: Path, passes: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(passes):
            for slice_ms in SLICES_MS:
                for contender in CONTENDERS:
                    study = races.twins(contender, 2, folder)
                    document = races.run(
                        [str(study), "--scenario", "steady", "--epochs", str(EPOCHS), "--warmup", "1s", "--measure",
                         f"{MEASURED_S[-1]}s", "--slice", f"{slice_ms}ms"], folder)
                    logs = {second: races.epoch_ratios(document, round(second * 1000 / slice_ms))
                            for second in MEASURED_S}
                    dropped = [one for epoch in document["record"]["epochs"] for one in epoch["rounds"] if one.get("dropped")]
                    line = {"contender": contender, "slice_ms": slice_ms, "logs": logs, "dropped": len(dropped),
                            "rates": [one["throughput_rps"] for one in document["scenarios"][0]["results"]],
                            "codes": races.codes(document), "took_s": document["took_s"]}
                    races.keep(out, line)
                    shown = "  ".join(f"{second:g} s: {100 * statistics.stdev(each):.2f} %"
                                      for second, each in logs.items() if len(each) > 2)
                    print(f"{contender:8} {slice_ms:4} ms  {shown}  {' '.join(line['codes'])}", flush=True)


def table(out: Path) -> None:
    lines = races.read(out)
    print("| slice | " + " | ".join(f"s_d % at {second:g} s" for second in MEASURED_S) + " | races |")
    print("|---|" + "---|" * (len(MEASURED_S) + 1))
    for slice_ms in SLICES_MS:
        rows = [line for line in lines if line["slice_ms"] == slice_ms]
        cells = []
        for second in MEASURED_S:
            # The root of the mean variance over contenders: each race's deviations are from its own mean.
            spreads = [statistics.variance(each) for row in rows if len(each := row["logs"][str(second)]) > 2]
            cells.append(f"{100 * statistics.fmean(spreads) ** 0.5:.2f}" if spreads else "-")
        print(f"| {slice_ms} ms | " + " | ".join(cells) + f" | {len(rows)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("passes", nargs="?", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("slices.jsonl"), help="where a line for each race is added")
    parser.add_argument("--table", type=Path, metavar="FILE", help="only print the table of what was kept")
    asked = parser.parse_args()
    if not asked.table:
        measure(asked.out, asked.passes)
    table(asked.table or asked.out)


if __name__ == "__main__":
    main()
