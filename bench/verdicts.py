#!/usr/bin/env python3
"""Races whose answer is known, again and again, and what deadheat said of each.

  bench/verdicts.py aa     [TRIES]   the same command twice: neither faster nor slower may be said
  bench/verdicts.py slower [TRIES]   one side spins for about a tenth of its time: slower must be said

The servers change from race to race: the kit's test server with a fixed amount of work per request, node, bun. Nothing
else may run meanwhile. Needs `make setup` and `cargo build --release`. Prints one line per race and a summary; exit status
1 when a verdict was wrong.
"""
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEADHEAT = ROOT / "target/release/deadheat"
SERVER = ROOT / "target/release/deadheat-test-server"
BUN = ROOT / "studies/trending/node_modules/.bin/bun"
NODE = ROOT / "studies/trending/node_modules/.bin/node"

HANDLER = """
import { createServer } from 'node:http';
const spin = Number(process.env.SPIN_US ?? 0);
const items = Array.from({ length: 200 }, (_, id) => ({ id, title: 'title ' + id, score: id * 7 }));
createServer((request, response) => {
  const body = JSON.stringify({ count: items.length, items });
  if (spin > 0) {
    const end = performance.now() + spin / 1000;
    while (performance.now() < end) {}
  }
  response.setHeader('content-type', 'application/json');
  response.end(body);
}).listen(Number(process.env.PORT), '127.0.0.1').keepAliveTimeout = 600_000;
"""


def race(first: str, second: str, folder: Path) -> dict:
    out = folder / "race.json"
    begun = time.monotonic()
    done = subprocess.run(
        [DEADHEAT, "race", "--url", "http://127.0.0.1:{port}/", "-n", "one", "-n", "two", "--json", out, first, second],
        cwd=folder, capture_output=True, text=True)
    took = time.monotonic() - begun
    if not out.exists():
        sys.exit(done.stderr)
    scenario = json.loads(out.read_text())["scenarios"][0]
    out.unlink()
    pair = scenario["comparisons"][0]
    codes = sorted({finding["code"] for finding in scenario["findings"]})
    return {"took": took, "status": done.returncode, "codes": codes, **pair}


def commands(kind: str, number: int, folder: Path) -> tuple[str, str, str]:
    """Alternates the kinds of server, so that a verdict is not one runtime's."""
    script = folder / "server.mjs"
    script.write_text(HANDLER)
    servers = [
        ("test server", f"exec {SERVER} --json --work 40000", f"exec {SERVER} --json --work 44400"),
        ("node", f"exec {NODE} server.mjs", f"exec env SPIN_US=@SPIN@ {NODE} server.mjs"),
        ("bun", f"exec {BUN} server.mjs", f"exec env SPIN_US=@SPIN@ {BUN} server.mjs"),
    ]
    name, plain, slowed = servers[number % len(servers)]
    if kind == "aa":
        return name, plain, plain
    return name, plain, slowed


def calibrated(command: str, plain: str, folder: Path) -> str:
    """Fills in a spin of a tenth of what a request costs, as a race of the plain server with itself shows it."""
    if "@SPIN@" not in command:
        return command
    if command not in calibrated.known:
        out = folder / "calibrate.json"
        subprocess.run(
            [DEADHEAT, "race", "--url", "http://127.0.0.1:{port}/", "--epochs", "3", "--json", out, plain, plain],
            cwd=folder, capture_output=True, text=True)
        results = json.loads(out.read_text())["scenarios"][0]["results"]
        cost = 1e6 / (sum(result["throughput_rps"] for result in results) / len(results))
        calibrated.known[command] = f"{0.085 * cost:.2f}"
    return command.replace("@SPIN@", calibrated.known[command])


calibrated.known = {}


def main() -> None:
    kind = sys.argv[1]
    tries = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    right = {"aa": {"equivalent", "inconclusive"}, "slower": {"slower"}}[kind]
    verdicts, times, wrong = [], [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(tries):
            server, first, second = commands(kind, number, folder)
            result = race(first, calibrated(second, first, folder), folder)
            verdicts.append(result["verdict"])
            times.append(result["took"])
            wrong += result["verdict"] not in right
            shown = {key: "-" if result[key] is None else f"{result[key]:.4f}"
                     for key in ("ratio", "low", "high", "sd_log_ratio")}
            print(f"{kind} {number + 1:2} {server:12} {result['verdict']:12} {shown['ratio']} "
                  f"({shown['low']} to {shown['high']}) {result['epochs']} epochs, sd {shown['sd_log_ratio']}, "
                  f"{result['took']:.0f} s {' '.join(result['codes'])}", flush=True)
    summary = ", ".join(f"{verdicts.count(word)} {word}" for word in sorted(set(verdicts)))
    print(f"{kind}: {summary}; median {sorted(times)[len(times) // 2]:.0f} s, longest {max(times):.0f} s; "
          f"{wrong} of {tries} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
