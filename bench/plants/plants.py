#!/usr/bin/env python3
"""Plants of every kind: races in which something known slows one server down, and whether deadheat gives the right answer.

  bench/plants/plants.py run [--number N] [--out FILE] [--records FOLDER] [--runtimes NAME,..] [--minutes M] [--at-once] [KIND ...]
                                  hold races, the kinds by turns, until each kind has N of each runtime (10)
  bench/plants/plants.py table [--out FILE]     how many answers were right, as Markdown
  bench/plants/plants.py kinds                  the kinds and the answers that are right, as Markdown
  bench/plants/plants.py page [--out FILE]      writes both tables into docs/src/plants.md
  bench/plants/plants.py weigh [KIND ...]       what a request costs the servers, with and without the plant: CPU time and time

The kinds and their right answers are in kinds.py, written before any race. A race writes two lines to FILE, one before and one after it,
so none can be left out; a race that was killed is the first line without the second, and the next campaign goes on after it. A file
never has races of two definitions of a kind. Each record is kept in FOLDER, packed, so that `deadheat report` shows it. Nothing else may
run meanwhile. A race is begun only while a hypervisor takes less than 5 % of ten seconds, except with --at-once. Needs `make setup` and
`cargo build --release`, or DEADHEAT=PROGRAM.
"""
import argparse
import hashlib
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import races  # noqa: E402
import verdicts  # noqa: E402
from kinds import BY_NAME, KINDS, OFF, ON, Kind, compared, findings, growth, result, time_ns  # noqa: E402

KEPT, RECORDS = races.ROOT / "docs/plants.jsonl", races.ROOT / "docs/plants"
PAGE = races.ROOT / "docs/src/plants.md"
NUMBER = 10
GO = HERE / "bin/plants-go"
PROGRAMS = {"node": (races.PROGRAMS["node"], HERE / "server.mjs"), "go": (GO,)}


def build() -> None:
    """The server in Go, as set-up builds it. With the flags of the studies, SQLite is compiled only once."""
    command = ["go", "build", "-buildvcs=false", "-trimpath", "-tags", "sqlite_fts5", "-o", GO, "."]
    subprocess.run(command, cwd=HERE / "go", env={**os.environ, "CGO_ENABLED": "1"}, check=True)


def environment(work: dict[str, object], folder: Path) -> dict[str, str]:
    """What the server finds in its environment."""
    return {key: str(value).replace("{folder}", str(folder)) for key, value in work.items()}


def command(runtime: str, work: dict[str, object], folder: Path) -> str:
    """The server with that work, as a line of the shell."""
    words = ["env", *(f"{key}={value}" for key, value in environment(work, folder).items()), *map(str, PROGRAMS[runtime])]
    return "exec " + " ".join(shlex.quote(word) for word in words)


def hold(kind: Kind, runtime: str, folder: Path, packed: Path) -> dict:
    """One race; its document, or `failed` with the program's own words if it gave none."""
    servers = {OFF: command(runtime, kind.off, folder), ON: command(runtime, kind.on, folder)}
    if kind.scenario:
        blocks = [f"[[contender]]\nname = {json.dumps(name)}\ncommand = {json.dumps(line)}\n" for name, line in servers.items()]
        probe = f'[[probe]]\npath = "/"\n\n[[scenario]]\nname = "{kind.name}"\n{kind.scenario}\n'
        (folder / "study.toml").write_text("\n".join([f'name = "{kind.name}"\n', *blocks, probe]))
        words = [str(folder), *kind.options]
    else:
        names = [word for name in servers for word in ("-n", name)]
        words = ["--url", "http://127.0.0.1:{port}/", *names, *kind.options, *servers.values()]
    begun = time.monotonic()
    try:
        return races.run(words, folder, packed)
    except SystemExit as without:
        return {"failed": str(without)[-2_000:], "took_s": time.monotonic() - begun}


def told(kind: Kind, document: dict) -> dict:
    """What is kept of a race: whether its answer is right, and everything that it said."""
    took_s = round(document["took_s"], 1)
    if "failed" in document:
        return {"right": False, "wrong": ["no result"], "failed": document["failed"], "took_s": took_s}
    wrong = kind.wrong(document)
    keys = ("metric", "verdict", "negligible", "ratio", "low", "high", "epochs", "sd_log_ratio", "epoch_ratios")
    pairs = [found for scenario in document["scenarios"] for one in scenario["comparisons"] if (found := compared(document, one["metric"]))]
    said = [{key: one[key] for key in ("code", "severity", "contender", "message") if key in one} for one in findings(document)]
    seen = {name: values(document, name) for name in (OFF, ON)}
    return {"right": not wrong, "wrong": wrong, "verdicts": [{key: pair[key] for key in keys} for pair in pairs], "findings": said,
            "values": seen, "took_s": took_s, "status": document["status"], "seed": document["seed"]}


def values(document: dict, contender: str) -> dict:
    """What was measured of a contender."""
    found = result(document, contender)
    return {"throughput_rps": found.get("throughput_rps"), "cpu_us_per_request": found.get("cpu_us_per_request"),
            "rss_bytes": found.get("rss_bytes"), "growth_bytes_per_request": growth(document, contender),
            **{f"{metric}_ns": time_ns(document, contender, metric) for metric in ("p50", "p99", "cold_start")}}


def begun(lines: list[dict], kind: str, runtime: str) -> int:
    """Races of a kind and runtime that were begun."""
    return sum("right" not in line and (line["kind"], line["runtime"]) == (kind, runtime) for line in lines)


def ended(lines: list[dict], kind: str, runtime: str) -> list[dict]:
    """Those that came to their end, in time order."""
    return [line for line in lines if "right" in line and (line["kind"], line["runtime"]) == (kind, runtime)]


def definition(kind: Kind) -> dict:
    """The plant, the race and the answer as they are now, for the file: results of another definition are not to be counted together."""
    return {"off": kind.off, "on": kind.on, "options": [*kind.options, kind.scenario], "right": [answer.words() for answer in kind.answers]}


def check_definitions(lines: list[dict], out: Path) -> None:
    """Refuses to add to races of another definition."""
    for line in lines:
        if "right" not in line and line.get("definition") != definition(BY_NAME[line["kind"]]):
            raise SystemExit(f"{out}: race {line['number']} of {line['kind']} in {line['runtime']} had another plant or answer; name a new file with --out")


def following(lines: list[dict], kinds: list[Kind], runtimes: list[str], number: int) -> tuple[Kind, str] | None:
    """What is raced next: what has fewest races, in the table's order; none if all have their number."""
    counts = {(kind.name, runtime): len(ended(lines, kind.name, runtime)) for kind in kinds for runtime in runtimes}
    name, runtime = min(counts, key=counts.__getitem__)
    return (BY_NAME[name], runtime) if counts[name, runtime] < number else None


def run(kinds: list[Kind], runtimes: list[str], asked: argparse.Namespace) -> None:
    """The kinds by turns until each has its number or the time is up."""
    until = time.monotonic() + 60 * asked.minutes
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    build()
    version = subprocess.run([races.DEADHEAT, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    program = hashlib.sha256(races.DEADHEAT.read_bytes()).hexdigest()[:16]
    with races.alone(asked.out):
        check_definitions(races.read(asked.out), asked.out)
        while time.monotonic() < until and (chosen := following(races.read(asked.out), kinds, runtimes, asked.number)):
            kind, runtime = chosen
            stolen, waited_s = (None, 0) if asked.at_once else verdicts.wait_until_fit()
            number = begun(races.read(asked.out), kind.name, runtime) + 1
            race = {"kind": kind.name, "runtime": runtime, "number": number}
            races.keep(asked.out, {**race, "at": time.strftime("%Y-%m-%d %H:%M:%S"), "boot": verdicts.BOOT.read_text().strip(), "deadheat": version,
                                   "program": program, "stolen_before": stolen, "waited_s": round(waited_s), "definition": definition(kind)})
            with tempfile.TemporaryDirectory() as name:
                document = hold(kind, runtime, Path(name), asked.records / f"{kind.name}-{runtime}-{number}.jsonl.gz")
            line = {**race, **told(kind, document)}
            races.keep(asked.out, line)
            print(f"{kind.name} {runtime} {number}: {'right' if line['right'] else '; '.join(line['wrong'])}, {line['took_s']:.0f} s", flush=True)


def table(lines: list[dict]) -> str:
    """The result first, then each kind, then every wrong answer."""
    held = [line for line in lines if "right" in line]
    if not held:
        return "No race has been held yet."
    rows = ["| kind | " + " | ".join(f"{runtime}: right" for runtime in PROGRAMS) + " | given up | median s |", "|---|" + "--:|" * (len(PROGRAMS) + 2)]
    for kind in KINDS:
        of_kind = {runtime: ended(lines, kind.name, runtime) for runtime in PROGRAMS}
        if not any(of_kind.values()):
            continue
        given_up = sum(begun(lines, kind.name, runtime) for runtime in PROGRAMS) - sum(map(len, of_kind.values()))
        median = statistics.median(line["took_s"] for each in of_kind.values() for line in each)
        rows.append(f"| {kind.name} | {' | '.join(share(each) for each in of_kind.values())} | {given_up} | {median:.0f} |")
    all_right = sum(line["right"] for line in held)
    rows.append(f"| all | {' | '.join(share([line for line in held if line['runtime'] == runtime]) for runtime in PROGRAMS)} | | |")
    parts = [f"**{all_right} of {len(held)} races gave the right answer: {100 * all_right / len(held):.0f} %.**", "\n".join(rows)]
    wrong = [f"| {line['kind']} | {line['runtime']} | {line['number']} | {'; '.join(line['wrong'])} |" for line in held if not line["right"]]
    if wrong:
        parts.append("\n".join(["| wrong: kind | runtime | race | what it says |", "|---|---|--:|---|", *wrong]))
    return "\n\n".join(parts)


def share(lines: list[dict]) -> str:
    return f"{sum(line['right'] for line in lines)} of {len(lines)}" if lines else "-"


def of_kinds() -> str:
    """The kinds and the right answers."""
    rows = ["| kind | what `on` has and `off` has not | options of the race | right |", "|---|---|---|---|"]
    for kind in KINDS:
        options = " ".join(kind.options) or f"a study with `{kind.scenario}`"
        options = f"`{options}`" if kind.options else options
        rows.append(f"| `{kind.name}` | {kind.what} | {options} | {'; '.join(answer.words() for answer in kind.answers)} |")
    return "\n".join(rows)


def page(text: str, lines: list[dict]) -> str:
    """The book's page with both tables as they are now."""
    for name, now in (("results", table(lines)), ("kinds", of_kinds())):
        text = races.between((f"<!-- plants: {name} -->", "<!-- plants: end -->"), now, text)
    return text


def weigh(kinds: list[Kind]) -> str:
    """What a request costs each server, from a thousand requests on one connection and the clock ticks of its process."""
    import servers

    build()
    rows = ["| kind | runtime | contender | CPU time, us a request | time, us a request |", "|---|---|---|--:|--:|"]
    with tempfile.TemporaryDirectory() as name:
        for kind in kinds:
            for runtime in PROGRAMS:
                for contender, work in ((OFF, kind.off), (ON, kind.on)):
                    cpu_us, took_us = servers.weigh(PROGRAMS[runtime], environment(work, Path(name)))
                    rows.append(f"| {kind.name} | {runtime} | {contender} | {cpu_us:.0f} | {took_us:.0f} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "kinds", "page", "weigh"))
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--number", type=int, default=NUMBER)
    parser.add_argument("--out", type=Path, default=KEPT)
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--runtimes", default=",".join(PROGRAMS))
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--at-once", action="store_true")
    asked = parser.parse_intermixed_args()
    runtimes = asked.runtimes.split(",")
    if unknown := set(asked.kinds) - set(BY_NAME):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(BY_NAME)}")
    if unknown := set(runtimes) - set(PROGRAMS):
        parser.error(f"no such runtime: {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")
    kinds = [BY_NAME[name] for name in asked.kinds] or list(KINDS)
    if asked.what == "run":
        try:
            run(kinds, runtimes, asked)
        except KeyboardInterrupt:
            sys.exit(130)
    elif asked.what == "table":
        print(table(races.read(asked.out)))
    elif asked.what == "kinds":
        print(of_kinds())
    elif asked.what == "page":
        PAGE.write_text(page(PAGE.read_text(), races.read(asked.out)))
    else:
        print(weigh(kinds))


if __name__ == "__main__":
    main()
