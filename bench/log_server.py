#!/usr/bin/env python3
"""A server whose log can be believed: when each request reached this machine's kernel, and how long its answer took from then.

One line per request, in nanoseconds: arrival (the kernel's own time stamp of the segment, so that what the server does meanwhile
cannot distort it) and time from then until the answer was handed over. The log is written at the end (SIGTERM).
"""
import argparse
import heapq
import random
import select
import signal
import socket
import struct
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world!"
SO_TIMESTAMPNS = 35
running = True


def stop(*_: object) -> None:
    global running
    running = False


def arrived(ancillary: list) -> int:
    """The kernel's time stamp, in nanoseconds since 1970; the clock's for what came before the kernel began to stamp."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, nanos = struct.unpack("qq", data[:16])
            return seconds * 1_000_000_000 + nanos
    return time.time_ns()


class Server:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.listener = socket.create_server(("127.0.0.1", options.port), backlog=1024)
        self.listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.poll = select.epoll()
        self.poll.register(self.listener, select.EPOLLIN)
        self.chance = random.Random(1).random
        self.peers, self.due, self.lines = {}, [], []

    def run(self) -> None:
        stall, period = (int(ms * 1e6) for ms in self.options.stall)
        next_stall = time.time_ns() + period
        while running:
            for number, _ in self.poll.poll(0 if self.due or self.options.watch else 0.1):
                if number == self.listener.fileno():
                    self.accept()
                else:
                    self.read(number)
            while self.due and self.due[0][0] <= time.time_ns():
                self.answer(*heapq.heappop(self.due)[1:])
            if stall and time.time_ns() >= next_stall:
                time.sleep(stall / 1e9)
                next_stall += period

    def accept(self) -> None:
        peer, _ = self.listener.accept()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.peers[peer.fileno()] = peer
        self.poll.register(peer, select.EPOLLIN)

    def read(self, number: int) -> None:
        data, ancillary, _, _ = self.peers[number].recvmsg(4096, 64)
        if not data:
            return self.peers.pop(number).close()
        came = arrived(ancillary)
        slow, share = self.options.slow
        wait = slow if self.chance() < share else self.options.delay
        if wait:
            heapq.heappush(self.due, (came + int(wait * 1e6), number, came))
        else:
            self.answer(number, came)

    def answer(self, number: int, came: int) -> None:
        if number in self.peers:
            self.peers[number].send(ANSWER)
            self.lines.append((came, time.time_ns() - came))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("log")
    parser.add_argument("--delay", type=float, default=0, metavar="MS", help="every answer takes so long")
    parser.add_argument("--slow", type=float, nargs=2, default=(0, 0), metavar=("MS", "SHARE"), help="some take so long")
    parser.add_argument("--stall", type=float, nargs=2, default=(0, 0), metavar=("MS", "PERIOD"), help="do nothing for so long")
    parser.add_argument("--watch", action="store_true", help="never sleep, so that nobody pays for waking the server")
    server = Server(parser.parse_args())
    server.run()
    with open(server.options.log, "w") as out:
        out.writelines(f"{came} {took}\n" for came, took in server.lines)


signal.signal(signal.SIGTERM, stop)
main()
