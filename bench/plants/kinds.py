"""The table of plants: what slows a server down, how it is raced, and the answer that is right.

Owns: the answers, which are written here before any race, and how a race's document is held against them. Must not know: how races are
held and kept. If an answer changes after its first race, the results need a new file: the driver adds to no other.

The contender `on` has a plant, the contender `off` is the same server without it. Where a plant adds one to n equal pieces of work, the
true ratio of the rates follows from counting: a request costs the n pieces and the rest, and the rest costs between nothing and REST pieces.
"""
from dataclasses import dataclass
from typing import Protocol

OFF, ON = "off", "on"
# `plants.py weigh` shows what a request costs without any piece: less than that.
REST = 2


class Answer(Protocol):
    """Something that a race has to say."""

    def words(self) -> str:
        """It, for a table."""

    def wrong(self, document: dict) -> str | None:
        """What the race says instead; none if it says it."""


@dataclass(frozen=True)
class Worse:
    """The verdict in that metric is `slower` (for memory and times: more), and its interval has a part within the true ratio's bounds."""

    metric: str
    low: float | None = None
    high: float | None = None

    def words(self) -> str:
        within = f", its interval meets {self.low:.3f} to {self.high:.3f}" if self.low and self.high else ""
        return f"`slower` in {self.metric}{within}"

    def wrong(self, document: dict) -> str | None:
        pair = compared(document, self.metric)
        if pair is None or pair["verdict"] != "slower":
            return f"{self.metric} is {pair['verdict'] if pair else 'not compared'}"
        if self.low and self.high and (pair["high"] < self.low or pair["low"] > self.high):
            return f"the ratio of {self.metric} is {pair['low']:.3f} to {pair['high']:.3f}"
        return None


@dataclass(frozen=True)
class NoClaim:
    """In that metric, the verdict is neither `faster` nor `slower`, or the difference is negligible: the plant does not touch it."""

    metric: str

    def words(self) -> str:
        return f"no claim in {self.metric}, or a negligible one"

    def wrong(self, document: dict) -> str | None:
        pair = compared(document, self.metric)
        if pair is None or pair["verdict"] == "invalid":
            return f"{self.metric} is {pair['verdict'] if pair else 'not compared'}"
        if pair["verdict"] in ("faster", "slower") and not pair["negligible"]:
            return f"{self.metric} is {pair['verdict']}"
        return None


@dataclass(frozen=True)
class Time:
    """A time of the contender `on`, or by how much it is longer than that of `off`, lies within bounds, in milliseconds."""

    metric: str
    low_ms: float
    high_ms: float
    added: bool = False

    def words(self) -> str:
        what = "is longer by" if self.added else "is"
        return f"{self.metric} {what} {self.low_ms:g} to {self.high_ms:g} ms"

    def wrong(self, document: dict) -> str | None:
        times = [time_ns(document, contender, self.metric) for contender in (ON, OFF)]
        if times[0] is None or times[1] is None:
            return f"{self.metric} is unknown"
        seen_ms = (times[0] - (times[1] if self.added else 0)) / 1e6
        return None if self.low_ms <= seen_ms <= self.high_ms else f"{self.metric} {'is longer by' if self.added else 'is'} {seen_ms:.1f} ms"


@dataclass(frozen=True)
class Growth:
    """While it is measured, the memory of the contender `on` grows by so many bytes for each of its requests, and that of `off` does not."""

    bytes_per_request: int
    # Heaps grow and shrink too: a share of what leaks.
    tolerance: float = 0.3

    def words(self) -> str:
        share = f"{100 * self.tolerance:.0f} %"
        return f"memory grows by {self.bytes_per_request} bytes a request (within {share}), that of `off` by less than {share} of it"

    def wrong(self, document: dict) -> str | None:
        grown = [growth(document, contender) for contender in (ON, OFF)]
        if grown[0] is None or grown[1] is None:
            return "the growth of memory is unknown"
        on, off = (each / self.bytes_per_request for each in grown)
        if abs(on - 1) > self.tolerance or abs(off) > self.tolerance:
            return f"memory grows by {grown[0]:.0f} bytes a request, that of off by {grown[1]:.0f}"
        return None


@dataclass(frozen=True)
class Found:
    """The race has that finding about the contender `on`, and not about `off`."""

    code: str

    def words(self) -> str:
        return f"finding `{self.code}` about `on` alone"

    def wrong(self, document: dict) -> str | None:
        about = {one.get("contender") for one in findings(document) if one["code"] == self.code}
        if about == {ON}:
            return None
        return f"no {self.code}" if not about else f"{self.code} about {', '.join(sorted(str(one) for one in about))}"


@dataclass(frozen=True)
class Kind:
    """A kind of plant."""

    name: str
    # What it is, for a table.
    what: str
    # The environments of the two contenders: see server.mjs. `{folder}` is a folder of the race's own.
    off: dict[str, object]
    on: dict[str, object]
    # Options of `deadheat race`, or the keys of a scenario of a study.
    options: tuple[str, ...]
    answers: tuple[Answer, ...]
    scenario: str = ""

    def wrong(self, document: dict) -> list[str]:
        """Everything in which a race's answer is not the right one."""
        return [wrong for answer in self.answers if (wrong := answer.wrong(document))]


def compared(document: dict, metric: str) -> dict | None:
    """What the race says of `on`, compared with `off`, in a metric."""
    found = document["scenarios"][0]["comparisons"] if document["scenarios"] else []
    return next((one for one in found if (one["baseline"], one["contender"], one["metric"]) == (OFF, ON, metric)), None)


def findings(document: dict) -> list[dict]:
    """Everything that the race complains of."""
    return document["findings"] + [one for scenario in document["scenarios"] for one in scenario["findings"]]


def result(document: dict, contender: str) -> dict:
    """What was measured of a contender; empty if nothing was."""
    found = document["scenarios"][0]["results"] if document["scenarios"] else []
    return next((one for one in found if one["contender"] == contender), {})


def time_ns(document: dict, contender: str, metric: str) -> float | None:
    """A contender's time in a metric, in nanoseconds."""
    found = result(document, contender)
    return found.get("cold_start_ns") if metric == "cold_start" else found.get("latency_ns", {}).get(metric)


def growth(document: dict, contender: str) -> float | None:
    """By how many bytes a contender's memory grows for each request between the first and the last round of an epoch, on average."""
    names = [one["name"] for one in document["record"]["plan"]["contenders"]]
    parts = [part for epoch in document["record"]["epochs"] for part in epoch["contenders"] if names[part["contender"]] == contender]
    parts = [part for part in parts if len(part["usage"].get("memory", [])) > 1]
    requests = sum(part["completions"] for part in parts)
    grown = sum(part["usage"]["memory"][-1]["pss_bytes"] - part["usage"]["memory"][0]["pss_bytes"] for part in parts)
    return grown / requests if requests else None


def one_more(of: float, piece: float = 1) -> tuple[float, float]:
    """Bounds of the true ratio of rates when a request has `piece` more than `of` equal pieces of work."""
    return of / (of + piece), (of + REST) / (of + REST + piece)


# So much work that the rest of a request is a tenth of it at most: about 0.4 ms.
SPIN = 200_000
CLOSED = ("-c", "16", "--epochs", "4..8")
# A given number of epochs: no verdict ends the race before the finding is possible.
FIXED = ("-c", "16", "--epochs")
TAIL_MS, START_MS = 10, 50
LEAK_BYTES = 4_096

KINDS = (
    Kind("query", "one more than ten equal database queries", {"QUERIES": 10}, {"QUERIES": 11}, CLOSED,
         (Worse("throughput", *one_more(10)),)),
    Kind("lock", "a lock that is held for 2.2 ms and not 2", {"HOLD_MS": 2}, {"HOLD_MS": 2.2}, CLOSED,
         (Worse("throughput", *one_more(10)),)),
    Kind("garbage", "500 small objects in each request, made new and not written again", {"RECORDS": 500}, {"RECORDS": 500, "FRESH": 1}, CLOSED,
         (Worse("throughput"),)),
    Kind("syscall", "one more than ten equal system calls", {"SYSCALLS": 10}, {"SYSCALLS": 11}, CLOSED,
         (Worse("throughput", *one_more(10)),)),
    Kind("working-set", "50 reads in each request, from 64 MB of memory and not from 16 KB", {"STEPS": 50, "RING_KB": 16},
         {"STEPS": 50, "RING_KB": 65_536}, CLOSED, (Worse("throughput"),)),
    Kind("start", "a start that takes 50 ms longer", {}, {"START_MS": START_MS}, (),
         (Worse("cold_start"), Time("cold_start", START_MS - 5, START_MS + 10, added=True)), scenario="starts = 20"),
    # The p99 lies in the tail and not at its edge: a little more than 1 % of the requests wait.
    Kind("tail", "10 ms more in one of 80 requests", {}, {"TAIL": 80, "TAIL_MS": TAIL_MS},
         ("--rate", "2000", "--metric", "p50,p99", "--epochs", "4..8"),
         (Worse("p99"), Time("p99", TAIL_MS, TAIL_MS + 3), NoClaim("p50"))),
    Kind("leak", "4 KB that are never released, in each request", {}, {"LEAK_BYTES": LEAK_BYTES},
         ("--rate", "1000", "--metric", "memory", "--epochs", "3", "--warmup", "1s", "--measure", "15s"),
         (Worse("memory"), Growth(LEAK_BYTES))),
    Kind("warming", "a warm-up that never ends: the k-th request works 1 / (1 + k/20,000) as much as the first", {"SPIN": SPIN},
         {"SPIN": SPIN, "WARMING": 20_000}, (*FIXED, "4"), (Found("no-steady-state"),)),
    Kind("slowing", "a server that gets slower: the k-th request works 1 + k/20,000 times as much as the first", {"SPIN": SPIN},
         {"SPIN": SPIN, "SLOWING": 20_000}, (*FIXED, "6", "--warmup", "1s"), (Found("no-steady-state"),)),
    Kind("bimodal", "50 % more work in every other start on average", {"SPIN": SPIN}, {"SPIN": SPIN, "SLOW": 1.5, "STARTS": "{folder}/starts"},
         (*FIXED, "10", "--warmup", "1s", "--measure", "1s"), (Found("bimodal-starts"),)),
)
BY_NAME = {kind.name: kind for kind in KINDS}

