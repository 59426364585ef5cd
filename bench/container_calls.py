#!/usr/bin/env python3
"""What a system call costs in a container, and how many of them a request takes.

  bench/container_calls.py [--turns N]      two tables, as Markdown

A program that does nothing but call getppid(2) runs as a process, in a container, and in a container without the engine's filter of system
calls (seccomp), by turns. Shown is the fastest of 200 times 20,000 calls, the median over the turns.

Then strace counts the system calls of each server of bench/servers under a load with 64 connections. strace slows them down, and calls that
only wait are more frequent then (futex, nanosleep, polls): they are counted apart. Nothing else may run meanwhile. Needs root, podman, a C
compiler, strace, `make setup` and `cargo build --release`.
"""
import argparse
import json
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import races
import verdicts

SOURCE = r"""
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    double best = 1e9;
    for (int batch = 0; batch < 200; batch++) {
        struct timespec begun, ended;
        clock_gettime(CLOCK_MONOTONIC, &begun);
        for (int call = 0; call < 20000; call++) syscall(SYS_getppid);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        double ns = (ended.tv_sec - begun.tv_sec) * 1e9 + (ended.tv_nsec - begun.tv_nsec);
        if (ns / 20000 < best) best = ns / 20000;
    }
    printf("%f\n", best);
    return 0;
}
"""
UNFILTERED = "--security-opt=seccomp=unconfined"
WAITS = ("futex", "nanosleep", "restart_syscall", "epoll_wait", "epoll_pwait", "epoll_pwait2", "sched_yield")


def ns_per_call(turns: int, folder: Path) -> dict[str, float]:
    """Nanoseconds of one call in each place."""
    program = folder / "calls"
    subprocess.run(["cc", "-O2", "-x", "c", "-", "-o", program], input=SOURCE, text=True, check=True)
    inside = ["podman", "run", "--rm", "--network=host", f"--cpuset-cpus={verdicts.SERVER_CPU}", *verdicts.seen_inside(folder)]
    image = verdicts.image()
    places = {
        "a process": ["taskset", "-c", verdicts.SERVER_CPU, program],
        "a container": [*inside, image, program],
        "a container without the filter": [*inside, UNFILTERED, image, program],
    }
    times: dict[str, list[float]] = {place: [] for place in places}
    for _ in range(turns):
        for place, command in places.items():
            times[place].append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    return {place: statistics.median(all_of_it) for place, all_of_it in times.items()}


def calls_per_request(server: races.Server, folder: Path) -> tuple[float, float]:
    """System calls of one request: those that work, and those that wait."""
    pid, counted, load = (folder / name for name in ("pid", "calls.txt", "load.json"))
    with races.serving(f"echo $$ > {pid}; {server.with_env()}", verdicts.SERVER_CPU) as url:
        counting = ["strace", "-f", "-c", "-U", "calls,name", "-o", counted, "-p", pid.read_text().strip()]
        with subprocess.Popen(counting) as counter:
            try:
                time.sleep(1)
                words = ["load", url, "-c", "64", "-d", "3s", "--cpus", verdicts.LOAD_CPU, "--json", load]
                # Under strace, deadheat may call the load invalid: 3.
                subprocess.run([races.DEADHEAT, *words], capture_output=True)
            finally:
                counter.send_signal(signal.SIGINT)
    requests = json.loads(load.read_text())["completions"]
    calls = {}
    for line in counted.read_text().splitlines():
        words = line.split()
        if len(words) == 2 and words[0].isdigit() and words[1] != "total":
            calls[words[1]] = int(words[0])
    waits = sum(count for name, count in calls.items() if name in WAITS)
    return (sum(calls.values()) - waits) / requests, waits / requests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("| where | one system call |\n|---|--:|")
        for place, ns in ns_per_call(turns, folder).items():
            print(f"| {place} | {ns:.0f} ns |", flush=True)
        print("\n| server | system calls for each request | waiting ones, under strace |\n|---|--:|--:|")
        for server in races.servers(folder).values():
            works, waits = calls_per_request(server, folder)
            print(f"| {server.name} | {works:.1f} | {waits:.1f} |", flush=True)


if __name__ == "__main__":
    main()
