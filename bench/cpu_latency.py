#!/usr/bin/env python3
"""What sleeping processors cost: one server loaded with them asleep and awake, by turns.

  bench/cpu_latency.py [--turns N]      the table, as Markdown

Three states: asleep, nothing is asked of the kernel; device, `/dev/cpu_dma_latency` is held open with 0 in it; idle thread, a program at idle
priority runs on the server's core, as in races in a virtual machine. In each turn, each state is loaded for six seconds, 64 connections at saturation and 2,000 requests per second, the order by turns. Shown are medians over the
turns; stolen time is that of all processors (proc_stat(5)). Nothing else may run meanwhile. Needs root, `make setup` and
`cargo build --release`.
"""
import argparse
import contextlib
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import races

DEVICE = "/dev/cpu_dma_latency"
LOADS = {"64 connections": ("-c", "64"), "2,000 requests/s": ("-c", "64", "--rate", "2000")}
SECONDS = 6


@contextlib.contextmanager
def asleep() -> Iterator[None]:
    """Processors sleep as they like meanwhile."""
    yield


@contextlib.contextmanager
def device() -> Iterator[None]:
    """The kernel is asked that none sleeps meanwhile."""
    held = os.open(DEVICE, os.O_WRONLY)
    try:
        os.write(held, struct.pack("i", 0))
        yield
    finally:
        os.close(held)


@contextlib.contextmanager
def idle_thread() -> Iterator[None]:
    """A program at idle priority keeps the server's core awake meanwhile."""
    command = ["chrt", "--idle", "0", "taskset", "-c", "0", sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


STATES = {"asleep": asleep, "device": device, "idle thread": idle_thread}


def loaded(url: str, options: tuple[str, ...]) -> dict[str, float]:
    """What one load saw."""
    before = races.stolen()
    command = [races.DEADHEAT, "load", url, "--cpus", "1", "-d", f"{SECONDS}s", "--json", "-", *options]
    result = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    stolen, whole = (now - then for now, then in zip(races.stolen(), before))
    return {"rate": result["throughput_rps"], "p50": result["latency_ns"]["p50"] / 1e3, "p99": result["latency_ns"]["p99"] / 1e3,
            "stolen": stolen / whole}


def measured(url: str, turns: int) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Every load of every turn."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for turn in range(turns):
        for load, options in LOADS.items():
            for state in list(STATES) if turn % 2 == 0 else list(STATES)[::-1]:
                with STATES[state]():
                    found.setdefault((load, state), []).append(loaded(url, options))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=8)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as folder:
        with races.serving(races.servers(Path(folder))["bun"].with_env(), "0") as url:
            time.sleep(1)
            found = measured(url, turns)
    print("| load | processors | requests/s | p50, us | p99, us | p99 from, to | stolen |\n|---|---|--:|--:|--:|--:|--:|")
    for (load, state), all_of_it in found.items():
        middle = {key: statistics.median(one[key] for one in all_of_it) for key in all_of_it[0]}
        tails = [one["p99"] for one in all_of_it]
        print(f"| {load} | {state} | {middle['rate']:,.0f} | {middle['p50']:,.0f} | {middle['p99']:,.0f} | "
              f"{min(tails):,.0f}, {max(tails):,.0f} | {100 * middle['stolen']:.1f} % |")


if __name__ == "__main__":
    main()
