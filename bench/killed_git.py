#!/usr/bin/env python3
"""`kill -9` at every stage of a `deadheat race --git`: what is left, and does the next command find, name and remove it?

  bench/killed_git.py [MOMENTS]      default: 20 moments, evenly spread over the race

A race of two commits of a Node server, with a build that takes a second and a profile at the end, is held once as a whole, to learn how long it takes. Then it is
held again and killed at each moment, with fresh builds each time. Right is: within 5 seconds no process and no control group of it is left, and the
next race in the repository ends well, names every folder of the killed one, and leaves none. Prints a line for each moment. Exit status: 1 if one was
wrong. Needs `cargo build --release`.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import git_races
import races

GROUPS = Path("/sys/fs/cgroup")
OPTIONS = ["--epochs", "3", "--warmup", "20ms", "--measure", "60ms", "--slice", "10ms", "-c", "8", "--control=no", "--why"]
BUILD = "sleep 1; echo built > built"


def words(folder: Path, number: int) -> list:
    """The command of a race: `slower` by enough for a profile."""
    return [races.DEADHEAT, "race", "--git", "base..head", "--build", f"{BUILD}; : {number}", "--url", "http://127.0.0.1:{port}/", *OPTIONS,
            "--json", folder / f"{number}.json", "--record", folder / f"{number}.jsonl", "exec node server.mjs"]


def start(folder: Path, number: int) -> subprocess.Popen:
    """A race that writes what it says into a file."""
    with (folder / f"{number}.txt").open("w") as out:
        return subprocess.Popen(words(folder, number), cwd=folder / "repository", stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")})


def processes(folder: Path) -> list[str]:
    """The processes that have this folder as their cache, whoever started them."""
    mark, found = f"XDG_CACHE_HOME={folder}/cache".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(f"{process.name} {(process / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}")
        except OSError:
            pass
    return found


def groups(pid: int) -> list[str]:
    """The control groups of a race by its process id."""
    # A group may end while it is looked at.
    return [f"{at}/{name}" for at, names, _ in os.walk(GROUPS) for name in names if name.startswith(f"deadheat-{pid}-")]


def folders(folder: Path) -> list[Path]:
    """What is in the cache of the repository besides what is kept on purpose."""
    return [path for path in folder.glob("cache/deadheat/git/*/*") if path.name not in ("lock", "builds", "objects")]


def main() -> None:
    moments = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        git_races.repository(folder / "repository", "slower-node")
        begun = time.monotonic()
        whole = start(folder, 0)
        if whole.wait() not in (0, 1):
            sys.exit((folder / "0.txt").read_text())
        took = time.monotonic() - begun
        print(f"a whole race takes {took:.1f} s")
        for moment in range(1, moments + 1):
            after = took * moment / (moments + 1)
            race = start(folder, moment)
            time.sleep(after)
            race.send_signal(signal.SIGKILL)
            race.wait()
            killed, faults = time.monotonic(), []
            while (left := processes(folder) + groups(race.pid)) and time.monotonic() < killed + 5:
                time.sleep(0.05)
            gone = time.monotonic() - killed
            if left:
                faults.append(f"left after 5 s: {left}")
            trees = folders(folder)
            stage = (folder / f"{moment}.txt").read_text().strip().splitlines()[-1:] or ["nothing said"]
            lines = (folder / f"{moment}.jsonl").read_text().count('{"line":"epoch"') if (folder / f"{moment}.jsonl").exists() else 0
            next_race = start(folder, 1_000 + moment)
            status = next_race.wait()
            said = (folder / f"{1_000 + moment}.txt").read_text()
            if status not in (0, 1) or not json.loads((folder / f"{1_000 + moment}.json").read_text())["complete"]:
                faults.append(f"the next race ended with {status}: {said[-500:]}")
            faults += [f"not named: {tree}" for tree in trees if str(tree) not in said]
            faults += [f"not removed: {tree}" for tree in folders(folder)]
            faults += [f"left by the next race: {one}" for one in processes(folder) + groups(next_race.pid)]
            wrong += bool(faults)
            print(f"after {after:4.1f} s, {lines} epochs: {'WRONG' if faults else 'right'}; all gone after {gone:.2f} s, {len(trees)} folders left and named; "
                  f"it last said: {stage[0][:80]}", *faults, sep="\n  ", flush=True)
    print(f"{moments - wrong} of {moments} right")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
