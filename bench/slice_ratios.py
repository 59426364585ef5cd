#!/usr/bin/env python3
"""Whether the ratio of unlike servers depends on how long a slice is, and on whether contenders are frozen at all.

  bench/slice_ratios.py run [--out FILE] [--pairs A/B,..] [--slices 20ms,..,alone] [--number N] [--minutes M] [--at-once]
                                                a sitting: the cells by turns, until each has N lines in FILE or M minutes are over
  bench/slice_ratios.py table [--out FILE]      a table of each pair, as Markdown

Cells are pairs by slice lengths. A line is a race of three epochs with that length, or, for `alone`, three pairs of loads of servers that are
started for it, run alone and are never frozen. All of them warm up for 3 s and measure 10 s of each contender in each epoch (4 s in
slices of 20 ms, because an epoch has at most 200), with 64 connections, server and generator on one core each. A line has the time of day, so the table shows the ratio by hour: hold several
sittings at several hours, until the error is small enough.

Pairs: node/bun, go/node, deno/bun (one request of studies/trending), express/fastify (bench/servers/frameworks), go-garbage/node-garbage
(bench/plants, 500 new objects in each request). A/B is the rate of A divided by that of B.
Nothing else may run meanwhile. A line is begun only while a hypervisor takes less than 5 % of ten seconds, except with --at-once. Needs root for
control groups, `make setup` and `cargo build --release`, or DEADHEAT=PROGRAM.
"""
import argparse
import json
import math
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import everybody
import races
import verdicts

KEPT = races.ROOT / "docs/slice-ratios.jsonl"
PAIRS = ("node/bun", "go/node", "deno/bun", "express/fastify", "go-garbage/node-garbage")
ALONE = "alone"
SLICES = ("20ms", "50ms", "100ms", "250ms", "500ms", "1s", "2s", "5s", "10s", ALONE)
EPOCHS, WARM_UP_S, MEASURED_S, CONNECTIONS = 3, 3, 10, 64
# An epoch has no more slices than that: with slices of 20 ms, it measures for 4 s.
MOST_SLICES = 200
NUMBER = 4


@dataclass
class Group:
    """Contenders of one request."""

    path: str
    # What may change from answer to answer, as a study says it.
    volatile: str
    commands: dict[str, str]


def groups(folder: Path, pairs: list[str]) -> dict[str, Group]:
    """The group of each pair. Prepares what the pairs need."""
    plants, garbage = races.ROOT / "bench/plants", "env RECORDS=500 FRESH=1"
    frameworks = everybody.frameworks() if "express/fastify" in pairs else {}
    collectors = {"node-garbage": f"{garbage} {races.PROGRAMS['node']} {plants}/server.mjs", "go-garbage": f"{garbage} {plants}/bin/plants-go"}
    deno = f"{races.PROGRAMS['node'].parent}/deno run --quiet --no-config --no-lock --no-remote --no-npm --allow-net --allow-read --allow-env"
    trending = {**everybody.trending(folder), "deno": f"env DENO_DIR={folder}/deno {deno} {races.STUDY}/deno/server.mjs"}
    all_of_them = (Group(everybody.TRENDING, everybody.VOLATILE, trending), Group("/", "", frameworks), Group("/", "", collectors))
    return {pair: next(group for group in all_of_them if pair.split("/")[0] in group.commands) for pair in pairs}


def raced(pair: str, slice_length: str, group: Group, folder: Path) -> dict:
    """A race of the pair in slices of that length: the logarithms of its epochs' ratios, trimmed as deadheat does and from the totals."""
    name, baseline = pair.split("/")
    slice_ms = int(slice_length.removesuffix("ms")) if slice_length.endswith("ms") else 1_000 * int(slice_length.removesuffix("s"))
    study = everybody.study(group.path, {one: group.commands[one] for one in (baseline, name)}, group.volatile)
    (folder / "study.toml").write_text(study.replace("{folder}", str(folder)))
    measured_ms = min(1_000 * MEASURED_S, MOST_SLICES * slice_ms)
    document = races.run([str(folder), "--slice", slice_length, "--measure", f"{measured_ms}ms", "--warmup", f"{WARM_UP_S}s", "--epochs", str(EPOCHS),
                          "-c", str(CONNECTIONS), "--server-cpus", verdicts.SERVER_CPU, "--load-cpus", verdicts.LOAD_CPU], folder)
    rounds = [one for epoch in document["record"]["epochs"] for one in epoch["rounds"]]
    empty = sum(any(not each["rate_per_s"] for each in one["slices"]) for one in rounds)
    return {"logs": races.epoch_ratios(document, fewest=1), "total_logs": totals(document), "rounds": len(rounds),
            "dropped": sum(bool(one.get("dropped")) for one in rounds), "empty": empty, "codes": races.codes(document),
            "took_s": round(document["took_s"], 1)}


def totals(document: dict) -> list[float]:
    """The logarithm of each epoch's ratio of sums: every slice counts that no disturbance takes out."""
    found = []
    for epoch in document["record"]["epochs"]:
        sums = [0.0, 0.0]
        for one in epoch["rounds"]:
            for each in one["slices"] if not one.get("dropped") else ():
                sums[each["contender"]] += each["rate_per_s"] or 0
        if min(sums) > 0:
            found.append(math.log(sums[1] / sums[0]))
    return found


def alone(pair: str, group: Group, folder: Path) -> dict:
    """As many loads of each contender as a race has epochs, each of a fresh start that nothing freezes, in random order."""
    name, baseline = pair.split("/")
    begun, logs, codes = time.monotonic(), [], set()
    for _ in range(EPOCHS):
        rates = {}
        for one in random.sample((name, baseline), 2):
            command = f"exec env TRENDING_DB={folder}/trending.sqlite {group.commands[one]}"
            with races.serving(command, verdicts.SERVER_CPU, group.path) as url:
                words = ["load", url, "-c", CONNECTIONS, "-d", f"{MEASURED_S}s", "--warmup", f"{WARM_UP_S}s", "--cpus", verdicts.LOAD_CPU, "--json", "-"]
                done = subprocess.run([str(word) for word in (races.DEADHEAT, *words)], capture_output=True, text=True)
            if not done.stdout:
                raise SystemExit(done.stderr)
            said = json.loads(done.stdout)
            rates[one] = said["throughput_rps"]
            codes |= {finding["code"] for finding in said["findings"]}
        logs.append(math.log(rates[name] / rates[baseline]))
    return {"logs": logs, "total_logs": logs, "codes": sorted(codes), "took_s": round(time.monotonic() - begun, 1)}


def following(lines: list[dict], pairs: list[str], slices: list[str], number: int) -> tuple[str, str] | None:
    """A cell with fewest lines, by chance, so that no length always has the same place in the hour; none if all have their number."""
    counts = {(pair, length): sum((line["pair"], line["slice"]) == (pair, length) for line in lines) for pair in pairs for length in slices}
    fewest = min(counts.values())
    return random.choice([cell for cell, count in counts.items() if count == fewest]) if fewest < number else None


def sit(asked: argparse.Namespace) -> None:
    """Adds lines until each cell has its number or the time is up."""
    until = time.monotonic() + 60 * asked.minutes
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as name, races.alone(asked.out):
        folder = Path(name)
        of = groups(folder, asked.pairs)
        while time.monotonic() < until and (cell := following(races.read(asked.out), asked.pairs, asked.slices, asked.number)):
            pair, length = cell
            stolen = None if asked.at_once else verdicts.wait_until_fit()[0]
            at = time.strftime("%Y-%m-%d %H:%M")
            found = alone(pair, of[pair], folder) if length == ALONE else raced(pair, length, of[pair], folder)
            line = {"at": at, "boot": verdicts.BOOT.read_text().strip(), "pair": pair, "slice": length, **found, "stolen_before": stolen}
            races.keep(asked.out, line)
            print(f"{at} {pair} {length}: {ratio(found['logs'])}, totals {ratio(found['total_logs'])}, {found['took_s']:.0f} s "
                  f"{' '.join(found['codes'])}", flush=True)


def ratio(logs: list[float]) -> str:
    """The geometric mean of ratios, two standard errors in per cent, and how many there are."""
    if not logs:
        return "-"
    error = f"{200 * statistics.stdev(logs) / math.sqrt(len(logs)):.1f} %" if len(logs) > 1 else "?"
    return f"{math.exp(statistics.fmean(logs)):.3f} ± {error} ({len(logs)})"


def tables(lines: list[dict]) -> str:
    """One table for each pair, a row for each slice length, the hours in time order."""
    parts = []
    for pair in dict.fromkeys(line["pair"] for line in lines):
        of_pair = [line for line in lines if line["pair"] == pair]
        hours = sorted({line["at"][:13] for line in of_pair})
        rows = [f"| slice | ratio | from totals | {' | '.join(f'{hour}h' for hour in hours)} |", "|---|--:|--:|" + "--:|" * len(hours)]
        for length in sorted({line["slice"] for line in of_pair}, key=lambda one: SLICES.index(one) if one in SLICES else -1):
            cell = [line for line in of_pair if line["slice"] == length]
            by_hour = [[line for line in cell if line["at"].startswith(hour)] for hour in hours]
            rows.append(f"| {length} | {ratio(logs(cell))} | {ratio(logs(cell, 'total_logs'))} | {' | '.join(ratio(logs(each)) for each in by_hour)} |")
        parts.append(f"### {pair}\n\n" + "\n".join(rows))
    return "\n\n".join(parts)


def logs(lines: list[dict], key: str = "logs") -> list[float]:
    """Those of all lines together."""
    return [log for line in lines for log in line[key]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=KEPT)
    parser.add_argument("--pairs", type=lambda text: text.split(","), default=list(PAIRS))
    parser.add_argument("--slices", type=lambda text: text.split(","), default=list(SLICES))
    parser.add_argument("--number", type=int, default=NUMBER)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--at-once", action="store_true")
    asked = parser.parse_args()
    if unknown := set(asked.pairs) - set(PAIRS):
        parser.error(f"no such pair: {', '.join(sorted(unknown))}; there are {', '.join(PAIRS)}")
    if unknown := set(asked.slices) - set(SLICES):
        parser.error(f"no such slice: {', '.join(sorted(unknown))}; there are {', '.join(SLICES)}")
    if asked.what == "table":
        print(tables(races.read(asked.out)))
        return
    try:
        sit(asked)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
