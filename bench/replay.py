#!/usr/bin/env python3
"""Recorded traffic with its original timing: is each request sent when the log says, and is memory flat?

  bench/replay.py                              all parts; three minutes, in which nothing else may run
  bench/replay.py --seconds 2 --lines 20000    shorter, to see that it works

Makes its own logs. The first part replays 50,000 requests/s from a log of a million lines: against the null server, which answers in
microseconds, and against a server that waits for 1 ms before each answer, as one with a database does. The second part compares the arrivals
that a server logs (bench/log_server.py) with the times of a log of 5,000 requests/s. Needs `cargo build --release`.
"""
import argparse
import json
import math
import random
import subprocess
import tempfile
import time
from pathlib import Path

from load import BIN, Server, log_server, logged, null, reached, resident
from races import free_port

PATHS = 1_000
START_US = 1_795_629_535_000_000


def make_log(path: str, rate: int, lines: int) -> list[int]:
    """A log of independent requests at this rate. Returns their times in microseconds after the first one."""
    chance, at_us, times = random.Random(7), 0.0, []
    with open(path, "w") as out:
        for number in range(lines):
            time_us = START_US + int(at_us)
            times.append(time_us - START_US)
            ts = f"{time_us // 1_000_000}.{time_us % 1_000_000:06}"
            out.write(f'{{"method":"GET","path":"/item/{number * 7919 % PATHS}","status":200,"ts":{ts}}}\n')
            at_us += chance.expovariate(rate / 1e6)
    return times


def replay(url: str, log: str, out: str, seconds: float, connections: int = 64) -> list[str]:
    """The command that replays a log in its timing."""
    options = ["--requests-file", log, "--log-format", "json", "--order", "timing", "-d", f"{seconds}s"]
    return [str(part) for part in (BIN / "deadheat", "load", url, "--cpus", 1, "-c", connections, *options, "--json", out)]


def slow() -> tuple[Server, str]:
    """A server that waits for 1 ms before each answer."""
    port = free_port()
    return Server(BIN / "deadheat-test-server", "--port", port, "--delay-ms", 1), f"http://127.0.0.1:{port}/"


def lag_and_memory(rate: int, lines: int, seconds: float, started: tuple[Server, str], connections: int, expect: list[str]) -> None:
    server, url = started
    with server, tempfile.NamedTemporaryFile(suffix=".log") as log, tempfile.NamedTemporaryFile() as out:
        begun = time.monotonic()
        make_log(log.name, rate, lines)
        print(f"  {lines:,} lines made in {time.monotonic() - begun:.1f} s")
        load = subprocess.Popen(replay(url, log.name, out.name, seconds, connections) + expect, stdout=subprocess.DEVNULL)
        sizes = []
        while load.poll() is None:
            time.sleep(0.5)
            try:
                sizes.append(resident(load.pid))
            except (OSError, TypeError):
                break
        load.wait()
        record = json.loads(Path(out.name).read_text())
    lag, median = record["send_lag_ns"]["p99"], record["latency_ns"]["p50"]
    print(f"  {record['requests']:,} requests, {record['requests'] / record['duration_s']:,.0f}/s, {record['outcomes']['ok']:,} ok")
    print(f"  send lag p99 {lag / 1e3:.1f} us, latency p50 {median / 1e3:.1f} us")
    share = record["requests"] / record["duration_s"] / rate
    print(f"  share of the rate: {share:.3f}{reached(share, '>= 0.99')}")
    print(f"  send lag p99 / latency p50: {lag / median:.3f}{reached(lag / median, '<= 0.10')}")
    half = sizes[len(sizes) // 2:]
    if half:
        print(f"  resident: {half[0]:.1f} MB halfway, {half[-1]:.1f} MB at the end{reached(half[-1] - half[0], '<= 0.5')}")
    print(f"  findings: {', '.join(one['code'] for one in record['findings']) or 'none'}")


def deviation(rate: int, lines: int, seconds: float) -> None:
    port = free_port()
    with tempfile.NamedTemporaryFile(suffix=".log") as served, tempfile.NamedTemporaryFile(suffix=".log") as log:
        times = make_log(log.name, rate, lines)
        with tempfile.NamedTemporaryFile() as out:
            with log_server(port, served.name):
                url = f"http://127.0.0.1:{port}/"
                command = replay(url, log.name, out.name, seconds) + ["--expect", "any"]
                subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
            record = json.loads(Path(out.name).read_text())
        came = [came / 1e3 for came, _ in logged(served.name)]
    if len(came) != record["requests"]:
        raise SystemExit(f"{record['requests']} requests sent, {len(came)} logged")
    # The log begins again when it ends, one mean gap after its last line.
    period_us = times[-1] + times[-1] / (len(times) - 1)
    due = [times[at % lines] + at // lines * period_us for at in range(len(came))]
    late = sorted(seen - wanted for seen, wanted in zip(came, due))
    off = [one - late[0] for one in late]
    p99 = off[math.ceil(0.99 * len(off)) - 1] / 1e3
    print(f"  {len(came):,} arrivals; after the log's time, at the most prompt one's offset: p50 {off[len(off) // 2] / 1e3:.3f} ms")
    print(f"  p99 of the deviation: {p99:.3f} ms{reached(p99, '<= 1')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30, help="length of each load")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the longer log")
    options = parser.parse_args()
    print("50,000 requests/s from a log, against the null server")
    lag_and_memory(50_000, options.lines, options.seconds, null(13), 64, [])
    print("50,000 requests/s from a log, against a server that waits for 1 ms")
    lag_and_memory(50_000, options.lines, options.seconds, slow(), 256, ["--expect", "any"])
    print("arrivals at 5,000 requests/s")
    deviation(5_000, max(2, options.lines // 10), options.seconds)


if __name__ == "__main__":
    main()
