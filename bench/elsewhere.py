#!/usr/bin/env python3
"""Whether a ratio is the one that a client on another machine would see: the same servers loaded over other paths, by other generators.

  bench/elsewhere.py [--turns N]      the table, as Markdown

Paths:
  loopback     server and generator in one network namespace, as deadheat races them
  veth         each in a network namespace of its own, joined by a veth pair: what is sent is still received on the sender's core
  veth, RPS    the same with receive packet steering: each side does the work of receiving on its own core, as two machines do
Generators: deadheat (never sleeps), wrk (sleeps when nothing has come), wrk awake (the same program, whose epoll_wait only looks).

Servers run on CPU 0, generators on CPU 1, with 64 connections and with 4. A turn loads every server over every path by every generator for
two seconds; the order of the servers alternates. Shown are means of the turns' ratios with two standard errors. Nothing else may run
meanwhile. Needs root, gcc, `make setup` and `cargo build --release`.
"""
import argparse
import contextlib
import json
import math
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import everybody
import races

SERVER_NS, LOAD_NS = "deadheat-bench-server", "deadheat-bench-load"
SERVER_IP, LOAD_IP = "10.117.0.1", "10.117.0.2"
PORTS = {"express": 18201, "fastify": 18202, "node": 18203, "bun": 18204, "go": 18205}
RATIOS = [("fastify", "express"), ("bun", "node"), ("go", "node")]
PATHS, GENERATORS, CONNECTIONS = ("loopback", "veth", "veth, RPS"), ("deadheat", "wrk", "wrk awake"), (64, 4)
SECONDS = 2
AWAKE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/epoll.h>
#include <time.h>
static long ms(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout) {
  static int (*real)(int, struct epoll_event *, int, int);
  if (!real) real = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
  for (long until = ms() + timeout;;) {
    int found = real(fd, events, most, 0);
    if (found || (timeout >= 0 && ms() >= until)) return found;
  }
}
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def inside(namespace: str, *words: object) -> list[str]:
    return ["ip", "netns", "exec", namespace, *map(str, words)]


@contextlib.contextmanager
def namespaces() -> Iterator[None]:
    """Two network namespaces, joined; removed afterwards with all that is in them."""
    try:
        for name in (SERVER_NS, LOAD_NS):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "dh-s", "netns", SERVER_NS, "type", "veth", "peer", "name", "dh-l", "netns", LOAD_NS)
        for name, link, address in ((SERVER_NS, "dh-s", SERVER_IP), (LOAD_NS, "dh-l", LOAD_IP)):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", link)
            ip("-n", name, "link", "set", link, "up")
        yield
    finally:
        for name in (SERVER_NS, LOAD_NS):
            subprocess.run(["ip", "netns", "del", name], check=False)


def steer(on: bool) -> None:
    """Whether each side receives on its own core."""
    for name, link, mask in ((SERVER_NS, "dh-s", "1"), (LOAD_NS, "dh-l", "2")):
        file = f"/sys/class/net/{link}/queues/rx-0/rps_cpus"
        subprocess.run(inside(name, "sh", "-c", f"echo {mask if on else 0} > {file}"), check=True)


@contextlib.contextmanager
def servers(folder: Path) -> Iterator[None]:
    """All servers on CPU 0, up and warm."""
    commands = {**everybody.frameworks(), **{name: server.command for name, server in races.servers(folder).items()}}
    processes = []
    try:
        for name, port in PORTS.items():
            env = {**os.environ, "PORT": str(port), "HOST": "0.0.0.0", "NODE_ENV": "production"}
            command = inside(SERVER_NS, "taskset", "-c", "0", *commands[name].split())
            processes.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL))
        time.sleep(2)
        for name in PORTS:
            for _ in range(2):
                rate("deadheat", "loopback", name, 64, folder)
        yield
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def rate(generator: str, path: str, server: str, connections: int, folder: Path) -> float:
    """Requests per second of one load."""
    local = path == "loopback"
    url = f"http://{'127.0.0.1' if local else SERVER_IP}:{PORTS[server]}/"
    namespace = SERVER_NS if local else LOAD_NS
    if generator == "deadheat":
        command = [races.DEADHEAT, "load", url, "--allow-target", SERVER_IP, "-c", connections, "-d", f"{SECONDS}s", "--json", "-"]
    else:
        command = ["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", url]
    env = {**os.environ, **({"LD_PRELOAD": str(folder / "awake.so")} if generator == "wrk awake" else {})}
    said = subprocess.run(inside(namespace, "taskset", "-c", "1", *command), env=env, capture_output=True, text=True)
    if generator == "deadheat":
        return json.loads(said.stdout)["throughput_rps"]
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said.stdout)[1])


def measured(turns: int, folder: Path) -> dict[tuple[str, str, int], list[dict[str, float]]]:
    """The servers' rates of every turn, by path, generator and connections."""
    found: dict[tuple[str, str, int], list[dict[str, float]]] = {}
    for turn in range(turns):
        for path in PATHS:
            steer(path == "veth, RPS")
            for generator in GENERATORS:
                for connections in CONNECTIONS:
                    order = list(PORTS) if turn % 2 == 0 else list(PORTS)[::-1]
                    rates = {server: rate(generator, path, server, connections, folder) for server in order}
                    found.setdefault((path, generator, connections), []).append(rates)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=4)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "awake.c").write_text(AWAKE)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", folder / "awake.so", folder / "awake.c", "-ldl"], check=True)
        with namespaces(), servers(folder):
            found = measured(turns, folder)
    columns = [f"{one}/{other}" for one, other in RATIOS]
    print(f"| connections | path | generator | {' | '.join(columns)} | requests/s of express, fastify |\n|--:|---|---|" + "--:|" * (len(columns) + 1))
    for (path, generator, connections), all_of_it in sorted(found.items(), key=lambda one: -one[0][2]):
        cells = [shown([math.log(rates[one] / rates[other]) for rates in all_of_it]) for one, other in RATIOS]
        rates = ", ".join(f"{statistics.median(one[server] for one in all_of_it):,.0f}" for server in ("express", "fastify"))
        print(f"| {connections} | {path} | {generator} | {' | '.join(cells)} | {rates} |")


def shown(logs: list[float]) -> str:
    error = 2 * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan
    return f"{math.exp(statistics.mean(logs)):.3f} ± {100 * error:.1f} %"


if __name__ == "__main__":
    main()
