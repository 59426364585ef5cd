#!/usr/bin/env python3
"""Whether a ratio depends on who races: the same pairs raced as root, as an ordinary user, and with what only root may do left out.

  bench/everybody.py run [--out FILE] [--races N] [--ways WAY,..] [--loads LOAD,..]   hold races by turns, until each cell has N
  bench/everybody.py table [--out FILE]                                               the tables of what was kept, as Markdown

Ways to race:
  root      control groups, real-time threads that see stalls, cores kept awake
  asleep    the same with --cpu-latency any: idle cores sleep
  user      an ordinary user (nobody): signals instead of control groups, no real-time threads, cores kept awake
  signals   root without control groups: their file systems are hidden
  no-rt     root without CAP_SYS_NICE: no real-time threads

Pairs: fastify/express (bench/servers/frameworks, Node of the system), bun/node and limit/go (studies/trending, one request).
Loads: c64 and c4, closed with so many connections, and the same in longer races (c64-long, c4-long); r2000 and r2000-1s, 2,000 requests per second in slices of 100 ms and of 1 s, where CPU
time per request is compared.

Each race has three epochs (c4 and the longer races six); a cell's ratio is the geometric mean of its races, and two ways are compared race by race, by turns. Every race is a
line of FILE. Nothing else may run meanwhile. Needs root, `make setup` and `cargo build --release`.
"""
import argparse
import math
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import races

KEPT = races.ROOT / "docs/everybody.jsonl"
FRAMEWORKS = races.SERVERS / "frameworks"
HIDDEN = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh")
NO_RT = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
WAYS = {"root": ((), ()), "asleep": ((), ("--cpu-latency", "any")), "user": (races.NOBODY, ()), "signals": (HIDDEN, ()), "no-rt": (NO_RT, ())}
LOADS = {
    "c64": ("-c", "64", "--metric", "throughput,cpu", "--measure", "900ms"),
    "c4": ("-c", "4", "--metric", "throughput,cpu", "--measure", "600ms"),
    "c64-long": ("-c", "64", "--metric", "throughput,cpu", "--measure", "1500ms"),
    "c4-long": ("-c", "4", "--metric", "throughput,cpu", "--measure", "1500ms"),
    "r2000": ("-c", "64", "--rate", "2000", "--metric", "cpu,p50", "--slice", "100ms", "--measure", "900ms"),
    "r2000-1s": ("-c", "64", "--rate", "2000", "--metric", "cpu,p50", "--slice", "1s", "--measure", "2s"),
}
METRICS = {**dict.fromkeys(("c64", "c4", "c64-long", "c4-long"), ("throughput", "cpu")), "r2000": ("cpu", "p50"), "r2000-1s": ("cpu", "p50")}
# With four connections, a start of one server differs more from the next: more starts.
EPOCHS = {"c4": "6", "c64-long": "6", "c4-long": "6"}
# After 400 ms, Node is still up to 20 % faster at the end of an epoch than at its beginning.
WARMUP = {"c64-long": "1500ms", "c4-long": "1500ms"}
TRENDING = "/api/trending?region=GB&limit=24"


def groups(folder: Path) -> dict[str, str]:
    """Studies by name, with `{folder}` for the folder that they are raced in."""
    return {"frameworks": study("/", frameworks()), "trending": study(TRENDING, trending(folder), VOLATILE)}


def frameworks() -> dict[str, str]:
    """The commands of Express and Fastify, which it installs by their lock file, once."""
    if not (FRAMEWORKS / "node_modules").exists():
        subprocess.run(["npm", "ci", "--silent"], cwd=FRAMEWORKS, check=True)
    return {name: f"env NODE_ENV=production node {FRAMEWORKS}/{name}.mjs" for name in ("express", "fastify")}


def trending(folder: Path) -> dict[str, str]:
    """The commands of contenders of studies/trending, whose data it writes into the folder."""
    subprocess.run(["python3", races.STUDY / "dataset.py", folder / "trending.sqlite"], check=True, stdout=subprocess.DEVNULL)
    return {
        "bun": f"{races.PROGRAMS['bun']} {races.STUDY}/bun/server.mjs",
        "node": f"{races.PROGRAMS['node']} {races.STUDY}/node/sqlite.mjs",
        "go": f"{races.STUDY}/go/bin/trending-go",
        "limit": f"{races.ROOT}/target/release/trending-limit",
    }


# The token changes by the hour, and all contenders must agree on it.
VOLATILE = "volatile = [{ path = '$.token', pattern = '^GB', agree = true }]\n"


def study(path: str, contenders: dict[str, str], more: str = "") -> str:
    """A study of one request."""
    blocks = [f'[[contender]]\nname = "{name}"\ncommand = "exec {command}"\nenv = {{ TRENDING_DB = "{{folder}}/trending.sqlite" }}\n'
              for name, command in contenders.items()]
    probe = f'[[probe]]\nname = "one"\npath = "{path}"\nstatus = 200\n{more}'
    return "\n".join(['name = "everybody"\n', *blocks, probe, '[[scenario]]\nname = "steady"\nconnections = 64\n'])


PAIRS = {"frameworks": [("fastify", "express")], "trending": [("bun", "node"), ("limit", "go")]}


def hold(group: str, load: str, way: str, text: str, folder: Path) -> dict:
    """One race, as a line to keep."""
    races.before, options = WAYS[way]
    # A fresh folder that the ordinary user may write to as well: SQLite does, beside the data.
    place = Path(tempfile.mkdtemp(dir=folder))
    (place / "study.toml").write_text(text.replace("{folder}", str(place)))
    shutil.copy(folder / "trending.sqlite", place)
    for entry in (place, *place.iterdir()):
        entry.chmod(0o777)
    words = [str(place), "--epochs", EPOCHS.get(load, "3"), "--warmup", WARMUP.get(load, "400ms"), *LOADS[load], *options]
    document = races.run(words, place)
    shutil.rmtree(place)
    scenario = document["scenarios"][0]
    line = {"at": time.strftime("%Y-%m-%d %H:%M"), "group": group, "load": load, "way": way, "codes": races.codes(document),
            "invalid": races.invalid(document), "took_s": round(document["took_s"], 1), "ratios": {}, "cpu_us": {}, "rate": {}}
    for one, other in PAIRS[group]:
        for metric in METRICS[load]:
            line["ratios"][f"{one}/{other} {metric}"] = ratio(scenario, one, other, metric)
    for result in scenario["results"]:
        line["cpu_us"][result["contender"]] = round(result.get("cpu_us_per_request") or 0, 2)
        line["rate"][result["contender"]] = round(result.get("throughput_rps") or 0)
    return line


def ratio(scenario: dict, one: str, other: str, metric: str) -> float | None:
    """Of `one` to `other`, whichever way round it was compared."""
    for found in scenario["comparisons"]:
        if found["metric"] == metric and {found["contender"], found["baseline"]} == {one, other} and found["ratio"]:
            return found["ratio"] if found["contender"] == one else 1 / found["ratio"]
    return None


def run(out: Path, count: int, ways: list[str], loads: list[str]) -> None:
    kept = races.read(out)
    with races.alone(out), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        contended = groups(folder)
        for turn in range(count):
            for load in loads:
                for group, text in contended.items():
                    for way in ways if turn % 2 == 0 else ways[::-1]:
                        cell = [line for line in kept if (line["group"], line["load"], line["way"]) == (group, load, way)]
                        if len(cell) > turn:
                            continue
                        line = hold(group, load, way, text, folder)
                        kept.append(line)
                        races.keep(out, line)
                        shown = " ".join(f"{key} {value:.3f}" for key, value in line["ratios"].items() if value)
                        print(group, load, way, shown, f"{line['took_s']:.0f} s", *line["codes"], flush=True)


def table(out: Path) -> None:
    kept = races.read(out)
    ways = [way for way in WAYS if any(line["way"] == way for line in kept)]
    others = [way for way in ways if way != "root"]
    print(f"| pair | load | metric | root | races | {' | '.join(others)} |\n|---|---|---|--:|--:|{'--:|' * len(others)}")
    for load in LOADS:
        for group, pairs in PAIRS.items():
            for one, other in pairs:
                for metric in METRICS[load]:
                    key = f"{one}/{other} {metric}"
                    roots, *_ = cells = [logs(kept, group, load, way, key) for way in ways]
                    if not roots:
                        continue
                    against = [difference([own - nearest(at, roots) for at, own in cell]) for cell in cells[1:]]
                    root = math.exp(statistics.mean(own for _, own in roots))
                    print(f"| {one}/{other} | {load} | {metric} | {root:.3f} | {len(roots)} | {' | '.join(against)} |")


def logs(kept: list[dict], group: str, load: str, way: str, key: str) -> list[tuple[int, float]]:
    """The logarithms of a cell's ratios, each with the place of its race among all that were held."""
    lines = [(at, line) for at, line in enumerate(kept) if (line["group"], line["load"], line["way"]) == (group, load, way)]
    return [(at, math.log(line["ratios"][key])) for at, line in lines if line["ratios"].get(key)]


def nearest(at: int, roots: list[tuple[int, float]]) -> float:
    """Of the races as root, the one that was held nearest to that place: the machine changes by the hour."""
    return min(roots, key=lambda root: abs(root[0] - at))[1]


def difference(logs: list[float]) -> str:
    """The mean with two standard errors, in per cent, and how many races it is of."""
    if len(logs) < 2:
        return ""
    error = 2 * statistics.stdev(logs) / math.sqrt(len(logs))
    return f"{100 * math.expm1(statistics.mean(logs)):+.1f} % ± {100 * error:.1f} ({len(logs)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=KEPT)
    parser.add_argument("--races", type=int, default=6)
    parser.add_argument("--ways", default="root,asleep,user")
    parser.add_argument("--loads", default=",".join(LOADS))
    options = parser.parse_args()
    if options.what == "table":
        table(options.out)
    else:
        if os.geteuid() != 0:
            raise SystemExit("needs root: it races as root and as nobody")
        run(options.out, options.races, options.ways.split(","), options.loads.split(","))


if __name__ == "__main__":
    main()
