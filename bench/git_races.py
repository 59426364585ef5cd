#!/usr/bin/env python3
"""Races of two commits by `deadheat race --git`: of the same code, and with one function that costs about 5 % more.

  bench/git_races.py run [--number N] [--out FILE] [CASE ...]     holds races, the cases by turns, until each has N (10)
  bench/git_races.py page [--out FILE]                            writes the results into docs/src/how-to-race-two-versions.md

A case is `same` or `slower` and a runtime, such as `same-node`. Each race has a repository, a cache and a build of its own. The two commits of `same` differ
in a comment. In `slower`, the base does 19 equal pieces of work for each request, and the head one more, in a function of its own: if the rest of a
request costs nothing the ratio is 19 / 20, and less far from 1 otherwise. Right is: no claim, and `slower` with that function named first. A race
writes a line to FILE before and after it, so none can be left out. Nothing else may run meanwhile. Needs `cargo build --release`.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import races

KEPT, PAGE = races.ROOT / "docs/git-races.jsonl", races.ROOT / "docs/src/how-to-race-two-versions.md"
MARKS = ("<!-- git races: results -->", "<!-- git races: end -->")
PIECES, STEPS = 19, 20_000

NODE = """\
import http from "node:http";
// %(comment)s
function piece(from) { let x = from; for (let i = 0; i < %(steps)d; i++) x = (x * 31 + i) | 0; return x; }
function plantedSlow(from) { let x = from; for (let i = 0; i < %(steps)d; i++) x = (x * 31 + i) | 0; return x; }
http.createServer((_, answer) => {
  let x = 1;
  for (let i = 0; i < %(pieces)d; i++) x = piece(x);
  if (%(planted)s) x = plantedSlow(x);
  answer.end(`hello ${x}`.slice(0, 5));
}).listen(Number(process.env.PORT), "127.0.0.1");
"""
GO = """\
package main

import (
	"net/http"
	"os"
)

// %(comment)s
//
//go:noinline
func piece(x uint32) uint32 {
	for i := uint32(0); i < %(steps)d; i++ {
		x = x*31 + i
	}
	return x
}

//go:noinline
func plantedSlow(x uint32) uint32 {
	for i := uint32(0); i < %(steps)d; i++ {
		x = x*31 + i
	}
	return x
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		x := uint32(1)
		for i := 0; i < %(pieces)d; i++ {
			x = piece(x)
		}
		if %(planted)s {
			x = plantedSlow(x)
		}
		if x != 0 {
			w.Write([]byte("hello"))
		} else {
			w.Write([]byte("HELLO"))
		}
	})
	http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil)
}
"""
# For each runtime: the file, its text, the build, the command, and the names of the planted function in a report.
RUNTIMES = {
    "node": ("server.mjs", NODE, "true", "exec node server.mjs", ("plantedSlow",)),
    "go": ("main.go", GO, "go build -o server main.go", "exec ./server", ("main.plantedSlow",)),
}
CASES = [f"{kind}-{runtime}" for kind in ("same", "slower") for runtime in RUNTIMES]


def git(folder: Path, *words: str) -> None:
    """One command of git in a repository of a race."""
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True)


def repository(folder: Path, case: str) -> None:
    """A repository with two commits, tagged `base` and `head`."""
    kind, runtime = case.split("-")
    file, text, *_ = RUNTIMES[runtime]
    folder.mkdir()
    git(folder, "init", "--quiet")
    for tag, planted in (("base", False), ("head", kind == "slower")):
        values = {"comment": f"This is the {tag}.", "steps": STEPS, "pieces": PIECES, "planted": "true" if planted else "false"}
        (folder / file).write_text(text % values)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", tag)
        git(folder, "tag", tag)


def hold(case: str, folder: Path) -> dict:
    """One race, and what is kept of it."""
    kind, runtime = case.split("-")
    repository(folder / "repository", case)
    *_, build, command, names = RUNTIMES[runtime]
    words = [races.DEADHEAT, "race", "--git", "base..head", "--build", build, "--url", "http://127.0.0.1:{port}/", "--control=no",
             "--json", folder / "race.json", "--record", folder / "race.jsonl", command]
    begun = time.monotonic()
    done = subprocess.run(words, cwd=folder / "repository", capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")})
    took_s = round(time.monotonic() - begun, 1)
    if not (folder / "race.json").exists():
        return {"right": False, "verdict": None, "failed": done.stderr[-2_000:], "took_s": took_s}
    scenario = json.loads((folder / "race.json").read_text())["scenarios"][0]
    pair = scenario["comparisons"][0]
    gains = scenario.get("gains") or []
    functions = [one["function"] for one in gains[0]["functions"]] if gains else []
    claims = pair["verdict"] in ("faster", "slower") and not pair["negligible"]
    named = functions[:1] and functions[0] in names
    right = pair["verdict"] == "slower" and bool(named) if kind == "slower" else not claims
    keys = ("verdict", "negligible", "ratio", "low", "high", "epochs")
    return {"right": right, **{key: pair[key] for key in keys}, "functions": functions, "status": done.returncode, "took_s": took_s,
            "findings": [one["code"] for one in scenario["findings"]]}


def held(lines: list[dict], case: str) -> list[dict]:
    """The races of a case that came to their end."""
    return [line for line in lines if line["case"] == case and "right" in line]


def run(cases: list[str], number: int, out: Path) -> None:
    """The cases by turns, what has fewest races first."""
    while (case := min(cases, key=lambda case: len(held(races.read(out), case)))) and len(held(races.read(out), case)) < number:
        races.keep(out, {"case": case, "at": time.strftime("%Y-%m-%d %H:%M:%S")})
        with tempfile.TemporaryDirectory() as folder:
            line = {"case": case, **hold(case, Path(folder))}
        races.keep(out, line)
        print(f"{case}: {'right' if line['right'] else 'WRONG'}, {line['verdict']} {line.get('ratio')}, {line['took_s']:.0f} s, {line.get('functions')}", flush=True)


def table(lines: list[dict]) -> str:
    """How many answers of each case were right."""
    rows = ["| two commits | runtime | races | right | ratios | median s |", "|---|---|--:|--:|---|--:|"]
    said = {"same": "the same code: no claim", "slower": "one of 20 equal functions is new: `slower`, and it is named first"}
    for case in CASES:
        kind, runtime = case.split("-")
        of, begun = held(lines, case), sum(line["case"] == case and "right" not in line for line in lines)
        if of:
            ratios = sorted(line["ratio"] for line in of if line.get("ratio"))
            spread = f"{ratios[0]:.3f} to {ratios[-1]:.3f}" if ratios else ""
            times = sorted(line["took_s"] for line in of)
            rows.append(f"| {said[kind]} | {runtime} | {begun} | {sum(line['right'] for line in of)} | {spread} | {times[len(times) // 2]:.0f} |")
    return "\n".join(rows) if len(rows) > 2 else "No race has been held yet."


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("what", choices=("run", "page"))
    asked.add_argument("cases", nargs="*", metavar="CASE")
    asked.add_argument("--number", type=int, default=10)
    asked.add_argument("--out", type=Path, default=KEPT)
    asked = asked.parse_args()
    if wrong := set(asked.cases) - set(CASES):
        sys.exit(f"no case {', '.join(wrong)}: choose from {', '.join(CASES)}")
    if asked.what == "run":
        run(asked.cases or CASES, asked.number, asked.out)
    else:
        PAGE.write_text(races.between(MARKS, table(races.read(asked.out)), PAGE.read_text()))


if __name__ == "__main__":
    main()
