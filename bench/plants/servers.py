"""Starts one server of a plant by itself, asks it, and stops it.

Owns: what the tests and `plants.py weigh` see of a server without deadheat. Must not know: kinds and answers.
"""
import contextlib
import http.client
import itertools
import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

READY_S = 30
ATTEMPTS = 3
# In random order. Neither the kernel, to who asks for any port (ip(7)), nor deadheat chooses from this range. Of two servers that start at
# the same time with one port, one would answer for both.
PORTS = itertools.cycle(random.sample(range(30_000, 32_768), 2_768))


class NotUp(RuntimeError):
    """A server that ended, or gave no answer in time."""


class Server:
    """A server that answers, and one connection to it."""

    def __init__(self, process: subprocess.Popen, port: int, started: float):
        self.process = process
        while True:
            self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_S)
            try:
                self.first = self.ask()
                break
            except (OSError, http.client.HTTPException):
                self.connection.close()
                if process.poll() is not None or time.monotonic() - started > READY_S:
                    process.kill()
                    raise NotUp(f"{process.args}: no answer, exit status {process.wait()}: {process.stderr.read().decode()}") from None
                time.sleep(0.005)
        # From the start to the first answer.
        self.start_s = time.monotonic() - started

    def ask(self) -> tuple[int, str, bytes]:
        """Status, content type and body of one answer."""
        self.connection.request("GET", "/")
        answer = self.connection.getresponse()
        return answer.status, answer.headers["content-type"], answer.read()

    def cpu_s(self) -> float:
        """The CPU time of the process, in ticks of usually 10 ms (proc_pid_stat(5))."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def anonymous_bytes(self) -> int:
        """Memory of the process that no file is behind (proc_pid_status(5))."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:"))


@contextlib.contextmanager
def up(words: tuple[object, ...], env: dict[str, str]) -> Iterator[Server]:
    """The server, up; stopped afterwards."""
    server = started(words, env)
    try:
        yield server
    finally:
        server.connection.close()
        stop(server.process)


def started(words: tuple[object, ...], env: dict[str, str]) -> Server:
    """The server, once it answers. It is started again if it ends before that: a port that was free may be taken by then."""
    for attempt in range(ATTEMPTS):
        port = free_port()
        now = time.monotonic()
        process = subprocess.Popen([str(word) for word in words], env={**os.environ, **env, "PORT": str(port)}, stderr=subprocess.PIPE)
        try:
            return Server(process, port, now)
        except BaseException as wrong:
            stop(process)
            if not isinstance(wrong, NotUp) or attempt + 1 == ATTEMPTS:
                raise


def free_port() -> int:
    """A port on which nothing listens, and that nobody in this process got before."""
    while True:
        with socket.socket() as free, contextlib.suppress(OSError):
            port = next(PORTS)
            free.bind(("127.0.0.1", port))
            return port


def stop(process: subprocess.Popen) -> None:
    """Ends it, and waits for its end."""
    process.kill()
    process.wait()
    process.stderr.close()


def weigh(words: tuple[object, ...], env: dict[str, str], requests: int = 1_000) -> tuple[float, float]:
    """CPU time and time of a request in microseconds, on one connection, after half as many that do not count."""
    with up(words, env) as server:
        for _ in range(requests // 2):
            server.ask()
        cpu_s, begun = server.cpu_s(), time.monotonic()
        for _ in range(requests):
            server.ask()
        return (server.cpu_s() - cpu_s) / requests * 1e6, (time.monotonic() - begun) / requests * 1e6
