#!/usr/bin/env python3
"""The load generator against its peers and against the truth, paired in one run on the same cores.

  bench/load.py throughput [PAIRS]   against wrk and against the raw loops, answers of 13 and of 6,000 bytes
  bench/load.py open       [PAIRS]   20,000/s and 50,000/s against oha: latency, achieved rate, send lag
  bench/load.py memory     [SECONDS] resident memory after 10 s and after SECONDS (120)
  bench/load.py stall                percentiles of a server that stalls, against the formula (method, section 5)
  bench/load.py mixture              2 % of answers slow, closed loop, against the server's own log
  bench/load.py tls        [PAIRS]   throughput over TLS against wrk and oha
  bench/load.py arrivals   [RUNS]    arrivals as the server sees them: Kolmogorov-Smirnov, coefficient of variation
  bench/load.py before OLD [PAIRS]   this build against the deadheat program at OLD: throughput, latency and TLS, both backends

Servers run on CPU 0, generators on CPU 1 by their affinity, and nothing else may run meanwhile. In a pair the order changes from pair to pair;
what is printed is the median of the pairs' ratios with the smallest and the largest. Needs `make setup` and
`cargo build --release --workspace`; wrk comes with the set-up, oha with `cargo install oha --locked`. A peer that is missing
is said so, and its lines are left out; exit status 1 then, or when something is not what it has to be.
"""
import contextlib
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from races import free_port

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "target/release"
SECONDS = 2
failed = False
# Runs of deadheat that it called invalid itself: they stay in the medians, and are told at the end.
invalid: dict[str, int] = {}


def fail(text: str) -> None:
    global failed
    failed = True
    print(f"  {text}")


def measured(command: list[str], cpu: int = 1) -> tuple[str, float]:
    """Standard output, and CPU seconds of the whole process."""
    before = os.times()
    done = subprocess.run(["taskset", "-c", str(cpu), *map(str, command)], capture_output=True, text=True)
    after = os.times()
    if done.returncode not in (0, 3):
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    invalid[Path(command[0]).name] = invalid.get(Path(command[0]).name, 0) + (done.returncode == 3)
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout, spent


class Server:
    """A server on CPU 0, for as long as the block lasts."""

    def __init__(self, *command: object):
        self.command = ["taskset", "-c", "0", *map(str, command)]

    def __enter__(self) -> "Server":
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.6)
        if self.process.poll() is not None:
            raise SystemExit(f"{self.command} ended at once")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


def null(body: int) -> tuple[Server, str]:
    port = free_port()
    return Server(BIN / "deadheat", "null", "--port", port, "--bytes", body, "--cpus", 0), f"http://127.0.0.1:{port}/"


def deadheat(url: str, *more: object, seconds: float = SECONDS, program: Path = BIN / "deadheat") -> dict:
    """One load, by a program that finds in its affinity which core it has."""
    out, cpu = measured([program, "load", url, "-d", f"{seconds}s", "--json", "-", *map(str, more)])
    record = json.loads(out)
    record["cpu_us"] = cpu * 1e6 / max(record["completions"], 1)
    return record


def wrk(url: str, seconds: float = SECONDS) -> dict:
    out, cpu = measured(["wrk", "-t1", "-c64", f"-d{math.ceil(seconds)}", "--latency", url])
    count = int(re.search(r"(\d+) requests in", out)[1])
    return {"rate": float(re.search(r"Requests/sec: +([\d.]+)", out)[1]), "cpu_us": cpu * 1e6 / count, "text": out}


def raw(url: str, backend: str) -> float:
    command = ["--backend", backend, "--connections", 64, "--duration", f"{SECONDS}s", "--cpu", 1, url]
    out, _ = measured([BIN / "raw-loop", *command])
    line = json.loads(out)
    return line.get("rate") or line["rate_per_s"]


def oha(url: str, *more: object, seconds: float = SECONDS) -> dict:
    out, _ = measured(["oha", "-z", f"{seconds}s", "-c", 64, "--no-tui", "--output-format", "json", *map(str, more), url])
    return json.loads(out)


def there(peer: str) -> bool:
    if shutil.which(peer) or (Path.home() / ".cargo/bin" / peer).exists():
        os.environ["PATH"] += f":{Path.home() / '.cargo/bin'}"
        return True
    fail(f"MISSING {peer}: its lines are left out")
    return False


def reached(value: float, wanted: str) -> str:
    """Whether a figure is what it has to be: `>= 1.30`, `<= 20`, `< 0.1`; several with `and` between; `-` for no demand."""
    if wanted == "-":
        return ""
    compare = {">=": float.__ge__, "<=": float.__le__, "<": float.__lt__}
    met = all(compare[one.split()[0]](float(value), float(one.split()[1])) for one in wanted.split(" and "))
    if not met:
        global failed
        failed = True
    return f"  to reach {wanted}: {'met' if met else 'NOT MET'}"


def shown(name: str, ratios: list[float], wanted: str) -> None:
    middle = statistics.median(ratios)
    print(f"  {name:<46} {middle:6.3f}  ({min(ratios):.3f} to {max(ratios):.3f}, {len(ratios)} pairs)"
          f"{reached(middle, wanted)}", flush=True)


def pairs(count: int, one, other):
    for index in range(count):
        if index % 2:
            second = other()
            yield one(), second
        else:
            yield one(), other()


def throughput(count: int) -> None:
    if not there("wrk"):
        return
    for body, rate_wanted, cpu_wanted in [(13, ">= 1.30", "<= 0.72"), (6000, ">= 1.12", "<= 0.80")]:
        server, url = null(body)
        with server:
            found = list(pairs(count, lambda: deadheat(url), lambda: wrk(url)))
            shown(f"{body} bytes: throughput over wrk's", [a["throughput_rps"] / b["rate"] for a, b in found], rate_wanted)
            shown(f"{body} bytes: CPU per request over wrk's", [a["cpu_us"] / b["cpu_us"] for a, b in found], cpu_wanted)
            mine, theirs = (statistics.median(x) for x in zip(*[(a["throughput_rps"], b["rate"]) for a, b in found]))
            print(f"    medians: deadheat {mine:,.0f}/s, wrk {theirs:,.0f}/s")
            best = {name: statistics.median(raw(url, name) for _ in range(3)) for name in ("io_uring", "epoll")}
            better = max(best, key=best.get)
            found = list(pairs(count, lambda: deadheat(url)["throughput_rps"], lambda: raw(url, better)))
            shown(f"{body} bytes: throughput over the raw {better} loop's", [a / b for a, b in found], ">= 0.97")


def open_loop(count: int) -> None:
    if not there("oha"):
        return
    server, url = null(13)
    with server:
        for rate, wanted50, wanted99 in [(20_000, "<= 0.40", "<= 0.50"), (50_000, "-", "<= 0.30")]:
            mine = lambda: deadheat(url, "-r", rate, "--arrivals", "constant", "-c", 64, seconds=3)
            theirs = lambda: oha(url, "-q", rate, "--latency-correction", seconds=3)
            found = list(pairs(count, mine, theirs))
            for key, wanted in [("p50", wanted50), ("p99", wanted99)]:
                ratios = [a["latency_ns"][key] / 1e9 / b["latencyPercentiles"][key] for a, b in found]
                shown(f"{rate:,}/s: {key} over oha's", ratios, wanted)
                us = [(a["latency_ns"][key] / 1e3, b["latencyPercentiles"][key] * 1e6) for a, b in found]
                print("    medians: deadheat {:,.0f} us, oha {:,.0f} us".format(*map(statistics.median, zip(*us))))
            shown(f"{rate:,}/s: achieved share", [a["achieved_share"] for a, _ in found], ">= 0.999")
            shown(f"{rate:,}/s: send lag p99, us", [a["send_lag_ns"]["p99"] / 1e3 for a, _ in found], "<= 20")


def resident(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


def memory(seconds: int) -> None:
    server, url = null(13)
    with server, tempfile.NamedTemporaryFile() as out:
        command = [BIN / "deadheat", "load", url, "--cpus", "1", "-d", f"{seconds + 2}s", "--json", out.name]
        load = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(10)
        early = resident(load.pid)
        time.sleep(seconds - 10)
        late = resident(load.pid)
        load.wait()
    print(f"  resident after 10 s {early:.1f} MB, after {seconds} s {late:.1f} MB{reached(late, '<= 12')}")
    print(f"  grown by {late - early:.2f} MB{reached(late - early, '<= 0.1')}")


def logged(log: str) -> list[tuple[float, float]]:
    """The server's own log: arrival and time until the answer, in nanoseconds, in order of arrival."""
    return sorted(tuple(map(float, line.split())) for line in Path(log).read_text().splitlines())


PERCENTILES = [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99_9", 0.999)]


def log_server(port: int, log: str, *more: object) -> Server:
    return Server("python3", ROOT / "bench/log_server.py", port, log, *more)


def stall() -> None:
    port, period, pause, rate = free_port(), 1.0, 0.1, 2_000
    url = f"http://127.0.0.1:{port}/"
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        with log_server(port, log.name, "--stall", pause * 1e3, period * 1e3):
            latency = deadheat(url, "-r", rate, "--arrivals", "constant", "-c", 64, seconds=60)["latency_ns"]
        served = sorted(took for _, took in logged(log.name)[2:])
        with log_server(port, log.name, "--stall", pause * 1e3, period * 1e3):
            peer = oha(url, "-q", rate, "--latency-correction", seconds=60)["latencyPercentiles"] if there("oha") else {}
        with log_server(port, log.name):
            # The share of its time that the server needs for this rate, from what it does at most when it never stalls.
            share = rate / deadheat(url, seconds=4)["throughput_rps"]
    print(f"  the server's share of its time at {rate}/s: {share:.3f}")
    for key, q in PERCENTILES:
        # Section 5: l0 + max(0, S - (1 - rho) P (1 - q)), with the server's share of its core while it answers.
        truth = max(0.0, pause - (1 - share) * period * (1 - q)) * 1e3
        own = served[math.ceil(q * len(served)) - 1] / 1e6
        mine = (latency[key] or float("nan")) / 1e6
        line = f"  {key:<6} {mine:8.2f} ms  formula {truth:7.2f}, off by {mine - truth:+.2f}  "
        line += f"server's log {own:7.2f}, off by {mine - own:+.2f}{reached(abs(mine - own), '<= 1')}"
        print(line + (f"   oha {peer[key.replace('_', '.')] * 1e3:.2f}" if peer else ""), flush=True)


def mixture() -> None:
    if not there("wrk"):
        return
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        server = lambda: log_server(port, log.name, "--delay", 2, "--slow", 200, 0.02)
        with server():
            record = deadheat(url, "-c", 64, seconds=20)
        # The first two answers are those that bodies were checked with.
        served = sorted(took for _, took in logged(log.name)[2:])
        with server():
            text = wrk(url, 20)["text"]
        peer = statistics.fmean(took for _, took in logged(log.name))
    truth = {"mean": statistics.fmean(served)}
    for key, q in PERCENTILES:
        truth[key] = served[math.ceil(q * len(served)) - 1]
    for key, value in truth.items():
        mine = record["latency_ns"][key]
        print(f"  {key:<6} {mine / 1e6:8.2f} ms  server's log {value / 1e6:8.2f}  ratio {mine / value:.3f}"
              f"{reached(mine / value, '>= 0.97 and <= 1.03')}")
    print(f"  wrk: {re.search(r'Latency +(.*)', text)[0]}; server's log, mean {peer / 1e6:.2f} ms")


@contextlib.contextmanager
def nginx() -> Iterator[str]:
    """The URL of an nginx that answers 13 bytes over TLS, for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        key = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        subprocess.run([*key, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                        f"{folder}/key.pem", "-out", f"{folder}/cert.pem"], check=True, capture_output=True)
        Path(f"{folder}/nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
            "events { worker_connections 1024; }\n"
            "http { access_log off; keepalive_requests 100000000; server {\n"
            f"listen 127.0.0.1:{port} ssl; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;\n"
            "location / { default_type text/plain; return 200 'Hello, world!'; } } }\n")
        os.environ["PATH"] += ":/usr/sbin"
        with Server("nginx", "-c", f"{folder}/nginx.conf", "-p", folder):
            yield f"https://localhost:{port}/"


def tls(count: int) -> None:
    if not shutil.which("nginx") and not Path("/usr/sbin/nginx").exists():
        return fail("MISSING nginx")
    with nginx() as url:
        if there("wrk"):
            found = list(pairs(count, lambda: deadheat(url, "--insecure"), lambda: wrk(url)))
            shown("TLS, 13 bytes: throughput over wrk's", [a["throughput_rps"] / b["rate"] for a, b in found], ">= 1.0")
            shown("TLS, 13 bytes: CPU per request over wrk's", [a["cpu_us"] / b["cpu_us"] for a, b in found], "-")
        if there("oha"):
            found = list(pairs(count, lambda: deadheat(url, "--insecure"), lambda: oha(url, "--insecure")))
            ratios = [a["throughput_rps"] / b["summary"]["requestsPerSec"] for a, b in found]
            shown("TLS, 13 bytes: throughput over oha's", ratios, ">= 1.0")


def before(old: Path, count: int) -> None:
    """This build against an older one, in pairs."""
    def both(url: str, *more: object) -> list[tuple[dict, dict]]:
        return list(pairs(count, lambda: deadheat(url, *more), lambda: deadheat(url, *more, program=old)))

    def throughput_of(name: str, found: list[tuple[dict, dict]]) -> None:
        shown(f"{name}: throughput", [new["throughput_rps"] / was["throughput_rps"] for new, was in found], ">= 0.99")

    for backend in ("io_uring", "epoll"):
        for body in (13, 6000):
            server, url = null(body)
            with server:
                throughput_of(f"{backend}, {body} bytes", both(url, "--backend", backend))
        server, url = null(13)
        with server:
            found = both(url, "--backend", backend, "-r", 20_000, "--arrivals", "constant", "-c", 64)
        for key in ("p50", "p99"):
            shown(f"{backend}, 20,000/s: {key}", [new["latency_ns"][key] / was["latency_ns"][key] for new, was in found], "<= 1.02")
        with nginx() as url:
            throughput_of(f"{backend}, TLS", both(url, "--backend", backend, "--insecure"))


# What a sender that only looks at the clock would do on the same core: notes when it saw that each request was due.
LOOKS_AT_THE_CLOCK = """
import time
gap, count = 200_000, 20_000
start = time.time_ns()
for index in range(count):
    due = start + index * gap
    while (now := time.time_ns()) < due: pass
    print(now)
"""


def variation(times: list[float]) -> float:
    """Coefficient of variation of the gaps between these moments."""
    gaps = [b - a for a, b in zip(times, times[1:])]
    return statistics.stdev(gaps) / statistics.fmean(gaps)


def arrived(rate: int, kind: str, seconds: float) -> tuple[list[float], dict]:
    """When the server's kernel saw each request, in nanoseconds, and the load's own record."""
    port = free_port()
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        # Between two requests that are due at once, waking a server that sleeps would be what takes longest.
        watch = ["--watch"] if kind == "poisson" else []
        with log_server(port, log.name, *watch):
            url = f"http://127.0.0.1:{port}/"
            record = deadheat(url, "-r", rate, "--arrivals", kind, "-c", 64, seconds=seconds)
        # The first two came before the load.
        came = [came for came, _ in logged(log.name)][2:]
    if len(came) != record["requests"]:
        fail(f"{record['requests']} requests sent, {len(came)} logged")
    return came, record


def arrivals(count: int) -> None:
    for rate in (1_000, 5_000):
        came, record = arrived(rate, "poisson", 20_000 / rate)
        gaps = sorted((b - a) / 1e9 for a, b in zip(came, came[1:]))
        n = len(gaps)
        law = [1 - math.exp(-gap * rate) for gap in gaps]
        distance = max(max(abs((i + 1) / n - share), abs(i / n - share)) for i, share in enumerate(law))
        print(f"  Poisson {rate:,}/s: distance {distance:.4f} of {n} gaps (5 %){reached(distance, f'< {1.358 / math.sqrt(n):.4f}')}; "
              f"two sends are at least {gaps[n // 1000] * 1e6:.1f} us apart; "
              f"send lag p99 {record['send_lag_ns']['p99'] / 1e3:.1f} us", flush=True)
    mine, clock = [], []
    for _ in range(count):
        mine.append(variation(arrived(5_000, "constant", 4)[0]))
        clock.append(variation([float(line) for line in measured(["python3", "-c", LOOKS_AT_THE_CLOCK])[0].split()]))
    print(f"  constant 5,000/s: coefficient of variation {statistics.median(mine):.3f} ({min(mine):.3f} to {max(mine):.3f}, "
          f"{count} runs)  to reach < 0.1; a loop that only looks at the clock, in turn with it: "
          f"{statistics.median(clock):.3f} ({min(clock):.3f} to {max(clock):.3f})")


def main() -> None:
    what, number, last = (sys.argv[1:] + [""] * 3)[:3]
    runs = {
        "throughput": lambda: throughput(int(number or 9)),
        "open": lambda: open_loop(int(number or 9)),
        "memory": lambda: memory(int(number or 120)),
        "stall": stall,
        "mixture": mixture,
        "tls": lambda: tls(int(number or 9)),
        "arrivals": lambda: arrivals(int(number or 9)),
        "before": lambda: before(Path(number).resolve(strict=True), int(last or 9)),
    }
    if what not in runs:
        raise SystemExit(__doc__)
    print(f"{what}: {date.today()}, {platform.machine()}, Linux {platform.release()}, {os.cpu_count()} CPUs", flush=True)
    runs[what]()
    if invalid.get("deadheat"):
        print(f"  {invalid['deadheat']} runs of deadheat were invalid by its own word; they are in the figures")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
