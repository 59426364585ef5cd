#!/usr/bin/env python3
"""Races whose answer is known, again and again, and what deadheat said of each.

  bench/verdicts.py run [--out FILE] [--minutes N] [--as-nobody] [--number N] [--servers NAME,..] [KIND ...]
                                                                hold races, the kinds by turns, until each has its number, or N;
                                                                as an ordinary user with --as-nobody; only with these servers
  bench/verdicts.py table [--out FILE]                          the tables of what was kept, as Markdown

Kinds, and how many races each gets:
  aa         60   the same server twice: neither faster nor slower may be said
  planted-3  40   one side works 3 % more for each request, at its own work: slower must be said
  planted-5  40   the same with 5 %
  planted-1  20   the same with 1 %: never equivalent within 0.5 %, never the wrong direction
  planted-1-narrow   6   1 % again, asked whether they are equivalent within 0.5 %
  foreign    20   the same server twice while something else spins on the servers' core or the generator's: no claim
  tail       10   2 % of the requests take 20 % longer, at a common rate: its p99 must be found slower
  tail-aa    20   p99 at a common rate, the same server twice: no claim
  tail-aa-slow   6   the same with a p99 of 10 ms, which is less noisy
  wrk-aa     10   wrk, five runs of 20 s of the one and then five of the other, the same server twice
  wrk-3      10   the same with 3 % more work
  trio       10   three contenders: the same server twice, and one that works 5 % more
  seven       3   seven contenders: four alike, three that work 10, 20 and 30 % more
  idle       10   one side makes and collects garbage whenever it is idle, the other only before it is loaded: frozen, that must tell nothing
  hosts-aa         20   as aa, with servers and load on hosts of their own, by ssh
  hosts-planted-5  10   as planted-5, there
  hosts-or-one     10   two unlike servers, there and on this machine alone: is each ratio in the other race's interval, and how many
                        standard errors is the one from the other
  container-aa         20   as aa, each server in a container on the host's network
  container-planted-5  10   as planted-5, there
  container-cost       10   a server as a process and in such a container, asked whether they are equivalent within 1 %

Without a KIND: all but those of hosts and containers.

Kinds of hosts need two, h1 for the servers and h2 for the load, that ssh reaches. Network namespaces of this machine do:
  cargo run --release --locked -p deadheat-testkit --example hosts -- 2 bench/verdicts.py run ... hosts-aa hosts-planted-5
Kinds of containers need root and podman.

The servers are Bun, Node and Go with one handler (bench/servers), by turns. Every race that ended is a line of FILE, so that
a campaign can go on another day. Nothing else may run meanwhile. A race is begun only while the machine is fit: while the hypervisor
gave away more than 5 % of ten seconds, which `deadheat doctor` calls unfit, the campaign waits. What happens during a race counts.
Needs `make setup` and `cargo build --release`.
"""
import argparse
import contextlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import races
import verdict_tables

NUMBERS = {"aa": 60, "planted-3": 40, "planted-5": 40, "planted-1": 20, "planted-1-narrow": 6, "foreign": 20, "tail": 10, "tail-aa": 20,
           "tail-aa-slow": 6, "wrk-aa": 10, "wrk-3": 10, "trio": 10, "seven": 3, "idle": 10, "hosts-aa": 20, "hosts-planted-5": 10,
           "hosts-or-one": 10, "container-aa": 20, "container-planted-5": 10, "container-cost": 10}
# What is held if no kind is named: those that need nothing else.
USUAL = [kind for kind in NUMBERS if not kind.startswith(("hosts", "container"))]
KEPT = races.ROOT / "docs/verdicts.jsonl"
# About 4 to 9 % of a request: near what is planted, since Node's first items cost more than its later ones, and Go's less. In so many
# epochs it is known to a tenth of itself.
CALIBRATION_ITEMS, CALIBRATION_EPOCHS = {"bun": 45, "node": 20, "go": 35}, 16
BOOT = Path("/proc/sys/kernel/random/boot_id")
RATE_PER_S = 2_000
TAIL = {"TAIL": 50}
TAIL_MS = (10, 12)
WRK_RUNS, WRK_S = 5, 20
# Stolen time with which `deadheat doctor` calls a machine unfit, and for how long it is watched before a race.
UNFIT_STEAL, WATCHED_S = 0.05, 10
SERVER_CPU, LOAD_CPU = "0", "1"
# The address is h1's, where h2 reaches it. Each host would take all processors of the machine, which is the same for both.
HOSTS = ("--server-host", "ssh://root@h1", "--load-host", "ssh://root@h2", "--server-address", "10.30.0.1",
         "--server-cpus", SERVER_CPU, "--load-cpus", LOAD_CPU)
# An image with nothing in it: the servers and their libraries are the machine's, so process and container run the same bytes.
IMAGE, SEEN_INSIDE = "localhost/deadheat-bench", ("/usr", "/lib", "/lib64", races.ROOT)


class Campaign:
    """Holds races and keeps a line of each."""

    def __init__(self, folder: Path, out: Path, choice: list[str]):
        self.folder, self.out, self.choice = folder, out, choice
        self.servers = races.servers(folder)
        self.kept = races.read(out)

    def number(self, kind: str) -> int:
        """Races of the kind that were kept."""
        return sum(line["kind"] == kind for line in self.kept)

    def keep(self, line: dict) -> dict:
        """Adds it to the file."""
        line = {"at": time.strftime("%Y-%m-%d %H:%M"), "boot": BOOT.read_text().strip(), **line}
        self.kept.append(line)
        races.keep(self.out, line)
        return line

    def items(self, server: races.Server, share: float) -> float:
        """How many more items cost that share of a request: from a race against some, one for each server and start of the machine.

        Another processor, or the same one on a host that is otherwise busy, needs another number.
        """
        more = CALIBRATION_ITEMS[server.name]
        here = {"kind": "calibration", "server": server.name, "boot": BOOT.read_text().strip(), "more": more}
        known = [line["items"] for line in self.kept if here.items() <= line.items()]
        if not known:
            commands = [server.with_env(), server.with_env(MORE=more)]
            wait_until_fit()
            document = races.race(commands, self.folder, "--epochs", str(CALIBRATION_EPOCHS))
            found = races.pair(document)
            ratio = found["ratio"]
            if ratio is None or found["verdict"] == "invalid":
                raise SystemExit(f"calibration of {server.name}: {found['verdict']}, {', '.join(races.codes(document))}")
            known = [more / (1 / ratio - 1)]
            self.keep({**here, "items": known[0], "ratio": ratio, "epochs": found["epochs"]})
        return round(share * known[-1], 3)

    def hold(self, kind: str) -> dict:
        """The next race of the kind."""
        number = self.number(kind)
        server = self.next_server(kind)
        held = {"aa": self.alike, "foreign": self.foreign, "tail": self.tail, "tail-aa": self.tail, "tail-aa-slow": self.tail,
                "trio": self.trio, "seven": self.seven, "idle": self.idle, "wrk-aa": self.wrk, "wrk-3": self.wrk,
                "hosts-aa": self.alike, "hosts-or-one": self.hosts_or_one, "container-aa": self.alike,
                "container-cost": self.container_cost}.get(kind, self.planted)
        if kind in ("trio", "seven", "wrk-3") or "planted" in kind:
            # A calibration takes minutes and has a watch of its own: it comes before the race's.
            self.items(server, 0)
        # The watches before the races of this line.
        self.watches = [wait_until_fit()]
        found = held(kind, number, server)
        stolen, waited_s = zip(*self.watches)
        before = {"stolen_before": round(max(stolen), 4), "waited_s": round(sum(waited_s))}
        return self.keep({"kind": kind, "server": server.name, **found, **before})

    def next_server(self, kind: str) -> races.Server:
        """The one that fewest races of the kind were held with."""
        # The handler in Go makes no garbage at idle.
        choice = [server for server in self.servers.values() if server.name in self.choice and (kind != "idle" or server.name != "go")]
        return min(choice, key=lambda one: sum((line["kind"], line["server"]) == (kind, one.name) for line in self.kept))

    def alike(self, kind: str, _number: int, server: races.Server) -> dict:
        return told(races.race([self.placed(kind, server)] * 2, self.folder, *place_options(kind)))

    def planted(self, kind: str, _number: int, server: races.Server) -> dict:
        more = self.items(server, float(re.search(r"planted-(\d+)", kind)[1]) / 100)
        margin = ("--margin", "0.5%") if kind.endswith("narrow") else ()
        commands = [self.placed(kind, server), self.placed(kind, server, MORE=more)]
        return told(races.race(commands, self.folder, *margin, *place_options(kind)))

    def hosts_or_one(self, kind: str, number: int, server: races.Server) -> dict:
        # The next server of those asked for is the other contender. Which race comes first changes by turns.
        names = [name for name in self.servers if name in self.choice]
        other = self.servers[names[(names.index(server.name) + 1) % len(names)]]
        held = {}
        for place in sorted(("hosts", "one"), reverse=number % 2 == 1):
            if held:
                self.watches.append(wait_until_fit())
            options = place_options(kind) if place == "hosts" else ()
            held[place] = told(races.race([one.with_env() for one in (server, other)], self.folder, *options))
        there, here = held["hosts"], held["one"]
        return {"other": other.name, "one": here, **there}

    def container_cost(self, _kind: str, _number: int, server: races.Server) -> dict:
        document = races.race([server.with_env(), self.contained(server)], self.folder, "--margin", "1%")
        cpu_us = [one["cpu_us_per_request"] for one in document["scenarios"][0]["results"]]
        return {**told(document), "cpu_us_per_request": cpu_us}

    def placed(self, kind: str, server: races.Server, **env: object) -> str:
        """The server's command where races of the kind run it."""
        return self.contained(server, **env) if kind.startswith("container") else server.with_env(**env)

    def contained(self, server: races.Server, **env: object) -> str:
        """The server's command in a container on the host's network."""
        words = [*seen_inside(self.folder), *(f"--env={key}={value}" for key, value in env.items())]
        return f"podman run --network=host {' '.join(words)} {image()} {server.command}"

    def foreign(self, _kind: str, number: int, server: races.Server) -> dict:
        # The servers go by threes, the cores by twos: all six combinations come.
        cpu = (SERVER_CPU, LOAD_CPU)[number % 2]
        with spinning(cpu):
            return {**told(races.race([server.with_env()] * 2, self.folder)), "cpu": cpu}

    def tail(self, kind: str, _number: int, server: races.Server) -> dict:
        usual, slower = ({**TAIL, "TAIL_MS": wait} for wait in TAIL_MS)
        envs = {"tail": [usual, slower], "tail-aa": [{}, {}], "tail-aa-slow": [usual, usual]}[kind]
        commands = [server.with_env(**env) for env in envs]
        return told(races.race(commands, self.folder, "--rate", str(RATE_PER_S), "--metric", "p99"), "p99")

    def seven(self, _kind: str, _number: int, server: races.Server) -> dict:
        more = [0] * 4 + [self.items(server, share) for share in (0.1, 0.2, 0.3)]
        return standing(races.race([server.with_env(MORE=items) for items in more], self.folder))

    def trio(self, _kind: str, _number: int, server: races.Server) -> dict:
        commands = [server.with_env(), server.with_env(), server.with_env(MORE=self.items(server, 0.05))]
        return standing(races.race(commands, self.folder))

    def idle(self, _kind: str, _number: int, server: races.Server) -> dict:
        # Both have the timer, and the heap of a server that has made garbage: they cost something, too.
        return told(races.race([server.with_env(IDLE=what) for what in ("before", "garbage")], self.folder))

    def wrk(self, kind: str, _number: int, server: races.Server) -> dict:
        more = self.items(server, 0.03) if kind == "wrk-3" else 0
        commands = [server.with_env(), server.with_env(MORE=more)]
        return races.wrk_pair(commands, WRK_RUNS, WRK_S, SERVER_CPU, LOAD_CPU)


def image() -> str:
    """The name of an image with nothing in it."""
    if subprocess.run(["podman", "image", "exists", IMAGE]).returncode:
        # An archive without a file; an image must have one layer at least.
        with tempfile.TemporaryFile() as empty:
            empty.write(bytes(10_240))
            empty.seek(0)
            subprocess.run(["podman", "import", "-", IMAGE], stdin=empty, check=True, capture_output=True)
    return IMAGE


def seen_inside(folder: Path) -> list[str]:
    """Options with which a container sees what servers need of this machine, and the folder."""
    return [f"--volume={path}:{path}:ro" for path in (*SEEN_INSIDE, folder)]


def place_options(kind: str) -> tuple[str, ...]:
    """Options of a race that say where its servers and its load are."""
    return HOSTS if kind.startswith("hosts") else ()


@contextlib.contextmanager
def spinning(cpu: str) -> Iterator[None]:
    """Keeps the processor busy meanwhile."""
    with subprocess.Popen(["taskset", "-c", cpu, sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def wait_until_fit() -> tuple[float, float]:
    """Watches the machine until little is stolen; the share that was stolen last, and the seconds that were waited for it."""
    begun = time.monotonic()
    while True:
        before = races.stolen()
        # From whoever sleeps nothing can be stolen.
        with spinning(SERVER_CPU), spinning(LOAD_CPU):
            time.sleep(WATCHED_S)
        taken, all_of_it = (now - then for now, then in zip(races.stolen(), before))
        if taken <= UNFIT_STEAL * all_of_it:
            return taken / all_of_it, time.monotonic() - begun - WATCHED_S
        print(f"waiting: {taken / all_of_it:.1%} of the time is stolen", flush=True)


def told(document: dict, metric: str = "throughput") -> dict:
    """What is kept of a race of two."""
    pair = races.pair(document, metric)
    keys = ("verdict", "negligible", "ratio", "low", "high", "epochs", "sd_log_ratio", "epoch_ratios")
    return {**{key: pair[key] for key in keys}, "codes": races.codes(document), "invalid": races.invalid(document),
            "took_s": round(document["took_s"], 1), "epoch_s": races.epoch_s(document), "status": document["status"], "seed": document["seed"]}


def standing(document: dict) -> dict:
    """What is kept of a race of many."""
    scenario = document["scenarios"][0]
    return {"letters": {one["contender"]: one["letters"] for one in scenario["results"]},
            "verdicts": {f"{one['baseline']} {one['contender']}": one["verdict"] for one in scenario["comparisons"]},
            "epoch_s": races.epoch_s(document), "epochs": scenario["epochs"], "codes": races.codes(document),
            "took_s": round(document["took_s"], 1), "status": document["status"]}


def shown(line: dict) -> str:
    """A race as a line for whoever waits."""
    numbers = [f"{line[key]:.4f}" for key in ("ratio", "low", "high") if line.get(key) is not None]
    words = [line["kind"], line["server"], line.get("verdict", ""), *numbers, f"{line['took_s']:.0f} s", *line.get("codes", [])]
    return " ".join(words)


def run(kinds: list[str], choice: list[str], out: Path, minutes: float, number: int | None) -> None:
    """The kinds by turns, in proportion to their numbers, until each has its number or the time is up."""
    until = time.monotonic() + 60 * minutes
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    with tempfile.TemporaryDirectory() as name, races.alone(out):
        Path(name).chmod(0o777)
        campaign = Campaign(Path(name), out, choice)
        numbers = {kind: number or NUMBERS[kind] for kind in kinds}
        while time.monotonic() < until:
            left = [kind for kind in kinds if campaign.number(kind) < numbers[kind]]
            if not left:
                break
            print(shown(campaign.hold(min(left, key=lambda kind: campaign.number(kind) / numbers[kind]))), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--out", type=Path, default=KEPT)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--as-nobody", action="store_true")
    parser.add_argument("--number", type=int)
    parser.add_argument("--servers", default="bun,node,go")
    asked = parser.parse_intermixed_args()
    if unknown := set(asked.kinds) - set(NUMBERS):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(NUMBERS)}")
    if asked.as_nobody and asked.out == KEPT:
        parser.error("--as-nobody needs an --out of its own: races of root and of an ordinary user are told apart by their file")
    choice = asked.servers.split(",")
    if unknown := set(choice) - {"bun", "node", "go"}:
        parser.error(f"no such server: {', '.join(sorted(unknown))}")
    if "hosts-or-one" in asked.kinds and len(set(choice)) < 2:
        parser.error("hosts-or-one races two unlike servers: name two at least with --servers")
    if asked.what == "run":
        races.before = races.NOBODY if asked.as_nobody else ()
        run(asked.kinds or USUAL, choice, asked.out, asked.minutes, asked.number)
    else:
        print(verdict_tables.tables(races.read(asked.out)))


if __name__ == "__main__":
    main()
