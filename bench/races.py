"""Holds races for the other files of this folder, and reads what came of them.

Owns: the servers whose relation is known, one race by `deadheat race`, the file with a line for each race, and the marks in a page between
which results stand. Must not know: which races are held, and what is concluded from them.
"""
import contextlib
import fcntl
import gzip
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Another build can be named by DEADHEAT.
DEADHEAT = Path(os.environ.get("DEADHEAT", ROOT / "target/release/deadheat"))
STUDY = ROOT / "studies/trending"
SERVERS = ROOT / "bench/servers"
PROGRAMS = {"bun": STUDY / "node_modules/.bin/bun", "node": STUDY / "node_modules/.bin/node"}


# A command that starts `deadheat race` as an ordinary user.
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=/tmp")
# A command that starts every race, such as NOBODY.
before: tuple[str, ...] = ()


@dataclass
class Server:
    """A server of a known amount of work for each request; more items to write (`MORE`) make it slower."""

    name: str
    command: str

    def with_env(self, **env: object) -> str:
        """The command as a line of the shell."""
        words = " ".join(f"{key}={value}" for key, value in env.items())
        return f"exec env {words} {self.command}" if words else f"exec {self.command}"


def servers(folder: Path) -> dict[str, Server]:
    """Bun, Node and Go with the same handler."""
    binary = folder / "go-server"
    if not binary.exists():
        subprocess.run(["go", "build", "-o", binary, "."], cwd=SERVERS / "go", check=True)
    script = SERVERS / "server.mjs"
    commands = {name: f"{program} {script}" for name, program in PROGRAMS.items()}
    return {name: Server(name, command) for name, command in {**commands, "go": str(binary)}.items()}


def race(commands: list[str], folder: Path, *options: str) -> dict:
    """Races them on `/`; the document with the seconds that it took from the command to the answer."""
    names = [word for number in range(1, len(commands) + 1) for word in ("-n", f"c{number}")]
    return run(["--url", "http://127.0.0.1:{port}/", *names, *options, *commands], folder)


def run(words: list[str], folder: Path, packed: Path | None = None) -> dict:
    """`deadheat race` with these words; the document, with `took_s` and `status`.

    Its record is kept in the folder that KEEP_RECORDS names, if any, and at `packed`, packed by gzip and without the paths of this machine.
    """
    out = folder / "race.json"
    out.unlink(missing_ok=True)
    begun = time.monotonic()
    done = subprocess.run([*before, DEADHEAT, "race", "--json", out, "--record", folder / "race.jsonl", *words], cwd=folder,
                          capture_output=True, text=True)
    took_s = time.monotonic() - begun
    record = folder / "race.jsonl"
    if record.exists() and (kept := os.environ.get("KEEP_RECORDS")):
        shutil.copy(record, Path(kept) / f"{time.strftime('%Y%m%d-%H%M%S')}.jsonl")
    if record.exists() and packed:
        packed.parent.mkdir(parents=True, exist_ok=True)
        text = record.read_text().replace(f"{ROOT}/", "").replace(f"{folder}/", "")
        packed.write_bytes(gzip.compress(text.encode(), mtime=0))
    record.unlink(missing_ok=True)
    if not out.exists():
        raise SystemExit(f"{done.stdout}{done.stderr}")
    return {**json.loads(out.read_text()), "took_s": took_s, "status": done.returncode}


def twins(contender: str, copies: int, folder: Path) -> Path:
    """The trending study with that contender, and no other, so many times: a folder of links with a study of its own."""
    text = (STUDY / "study.toml").read_text()
    head, *blocks = re.split(r"^(?=\[\[)", text, flags=re.MULTILINE)
    own = [block for block in blocks if block.startswith("[[contender]]") and f'name = "{contender}"\n' in block]
    others = [block for block in blocks if not block.startswith(("[[contender]]", "[[claim]]"))]
    same = [own[0].replace(f'name = "{contender}"', f'name = "c{number}"') for number in range(1, copies + 1)]
    # A [dataset] table stands in the head or in a block of its own: either way it is kept.
    place = folder / f"twins-{contender}-{copies}"
    place.mkdir(exist_ok=True)
    for entry in STUDY.iterdir():
        link = place / entry.name
        if entry.name not in ("study.toml", "work") and not link.is_symlink():
            link.symlink_to(entry)
    (place / "study.toml").write_text(head + "".join(same) + "".join(others))
    return place


def read(path: Path) -> list[dict]:
    """Every line that was kept; none if there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def keep(path: Path, line: dict) -> None:
    """Adds a line to the file, and waits until it is on the disk."""
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Nothing else holds races for this file meanwhile; ends the program if something does already."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"{path}: other races are being held, and two at once falsify each other") from None
        yield


def between(marks: tuple[str, str], now: str, text: str) -> str:
    """The text with this between its two marks."""
    head, rest = text.split(marks[0])
    return f"{head}{marks[0]}\n\n{now}\n\n{marks[1]}{rest.split(marks[1], 1)[1]}"


def pair(document: dict, metric: str = "throughput") -> dict:
    """The comparison of the first two contenders in that metric."""
    scenario = document["scenarios"][0]
    for found in scenario["comparisons"]:
        if found["metric"] == metric:
            return found
    findings = [finding["message"] for finding in (*document["findings"], *scenario["findings"])]
    raise SystemExit("\n".join(["the race compared nothing:", *findings]))


def codes(document: dict) -> list[str]:
    """Everything that was complained of."""
    findings = document["findings"] + document["scenarios"][0]["findings"]
    return sorted({finding["code"] for finding in findings})


def invalid(document: dict) -> list[str]:
    """What took figures away, in words."""
    findings = document["findings"] + document["scenarios"][0]["findings"]
    return [f"{one.get('contender', '')}: {one['message']}" for one in findings if one["severity"] == "invalid"]


def epoch_s(document: dict) -> float | None:
    """How long an epoch took, in the median; none when there was none."""
    took = [epoch["took_ns"] / 1e9 for epoch in document["record"]["epochs"]]
    return round(statistics.median(took), 3) if took else None


def epoch_ratios(document: dict, rounds: int | None = None, fewest: int = 4) -> list[float]:
    """The logarithm of each epoch's ratio, from its first `rounds` rounds, which are at least `fewest`: an account of its own of section 2 of
    the method. Rounds in which one side answered nothing are left out."""
    from math import log

    found = []
    for epoch in document["record"]["epochs"]:
        kept = [one["slices"] for one in epoch["rounds"][:rounds] if not one.get("dropped")]
        logs = []
        for slices in kept:
            rates = {slice["contender"]: slice["rate_per_s"] for slice in slices}
            if rates[0] and rates[1]:
                logs.append(log(rates[1] / rates[0]))
        if len(logs) >= fewest:
            fifth = len(logs) // 5
            inner = sorted(logs)[fifth:len(logs) - fifth]
            found.append(sum(inner) / len(inner))
    return found


def stolen() -> tuple[int, int]:
    """Time that the hypervisor gave to others since the machine started, and all time, in ticks of all processors (proc_stat(5))."""
    times = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return times[7], sum(times)


def wrk_pair(commands: list[str], runs: int, run_s: int, server_cpu: str, load_cpu: str) -> dict:
    """`wrk` as most comparisons are made: so many runs of the first server, then as many of the second."""
    begun = time.monotonic()
    rates = []
    for command in commands:
        with serving(command, server_cpu) as url:
            rates.append([wrk(url, run_s, load_cpu) for _ in range(runs)])
    return {"rates": rates, "took_s": time.monotonic() - begun}


@contextlib.contextmanager
def serving(command: str, cpu: str, path: str = "/") -> Iterator[str]:
    """A server on that processor, up, and the address of what it is asked for; stopped afterwards."""
    port = free_port()
    url = f"http://127.0.0.1:{port}{path}"
    with subprocess.Popen(["taskset", "-c", cpu, "sh", "-c", command], env={**os.environ, "PORT": str(port)}, stdout=subprocess.DEVNULL) as process:
        try:
            wait_for(url)
            yield url
        finally:
            process.terminate()


def free_port() -> int:
    """A port on which nothing listens now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wrk(url: str, run_s: int, cpu: str) -> float:
    """Requests per second of one run with 64 connections."""
    command = ["taskset", "-c", cpu, "wrk", "-t1", "-c64", f"-d{run_s}s", url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])


def wait_for(url: str) -> None:
    """Returns as soon as the server answers; gives up after ten seconds."""
    for _ in range(1_000):
        try:
            urllib.request.urlopen(url, timeout=1).read()
            return
        except OSError:
            time.sleep(0.01)
    raise SystemExit(f"nothing answers at {url}")
