#!/usr/bin/env python3
"""The table of plants is complete, answers are told apart, no race is left out, and the servers answer alike with a plant and without it.

Takes a few seconds; no test depends on how fast anything is. Needs `make setup`. `cargo test --test program plants::` runs this too.
"""
import json
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import kinds
import plants
import servers

ALL = {"query", "lock", "garbage", "syscall", "working-set", "start", "tail", "leak", "warming", "slowing", "bimodal"}


def document(**pair: object) -> dict:
    """What the driver reads of a race's document."""
    whole = {"baseline": "off", "contender": "on", "metric": "throughput", "verdict": "slower", "negligible": False, "ratio": 0.915, "low": 0.9,
             "high": 0.93, "epochs": 4, "sd_log_ratio": 0.01, "epoch_ratios": [0.915] * 4}
    results = [{"contender": name, "cold_start_ns": start, "latency_ns": {"p50": 1, "p99": 11_000_000}}
               for name, start in (("off", 20_000_000), ("on", 71_000_000))]
    usage = [{"memory": [{"pss_bytes": 50_000_000}, {"pss_bytes": 50_000_000 + grown}]} for grown in (100_000, 4_096_000)]
    parts = [{"contender": index, "completions": 1_000, "usage": usage[index]} for index in (0, 1)]
    return {"scenarios": [{"comparisons": [{**whole, **pair}], "results": results, "findings": []}], "findings": [], "status": 0, "seed": 1,
            "took_s": 40.0, "record": {"plan": {"contenders": [{"name": "off"}, {"name": "on"}]}, "epochs": [{"contenders": parts}]}}


def found(code: str, *contenders: str) -> dict:
    """A document with that finding about these contenders."""
    some = document()
    some["scenarios"][0]["findings"] = [{"code": code, "severity": "warn", "contender": one, "message": ""} for one in contenders]
    return some


class Table(unittest.TestCase):
    def test_every_kind_has_a_plant_and_an_answer(self) -> None:
        self.assertEqual({kind.name for kind in kinds.KINDS}, ALL)
        self.assertEqual(len(kinds.KINDS), len(ALL))
        for kind in kinds.KINDS:
            self.assertNotEqual(kind.off, kind.on, kind.name)
            self.assertTrue(kind.what and kind.answers, kind.name)
            self.assertTrue(kind.options or kind.scenario, kind.name)
            self.assertTrue(all(answer.words() for answer in kind.answers), kind.name)

    def test_one_more_of_n_pieces_bounds_the_ratio(self) -> None:
        low, high = kinds.one_more(10)
        self.assertAlmostEqual(low, 10 / 11)
        self.assertAlmostEqual(high, 12 / 13)


    def test_the_book_shows_the_table_and_the_results(self) -> None:
        shown = plants.PAGE.read_text()
        self.assertEqual(plants.page(shown, plants.races.read(plants.KEPT)), shown, "write it with bench/plants/plants.py page")


class Answers(unittest.TestCase):
    def test_a_verdict_and_its_interval(self) -> None:
        right = kinds.Worse("throughput", 0.909, 0.923)
        self.assertIsNone(right.wrong(document()))
        for verdict in ("faster", "equivalent", "inconclusive", "invalid"):
            self.assertIn(verdict, right.wrong(document(verdict=verdict)))
        self.assertIn("0.850 to 0.900", right.wrong(document(low=0.85, high=0.9)))
        self.assertIn("0.930 to 0.950", right.wrong(document(low=0.93, high=0.95)))
        self.assertIsNone(kinds.Worse("throughput").wrong(document(low=0.1, high=0.2)))
        self.assertIn("not compared", kinds.Worse("p99").wrong(document()))

    def test_no_claim(self) -> None:
        right = kinds.NoClaim("throughput")
        self.assertIsNone(right.wrong(document(verdict="equivalent")))
        self.assertIsNone(right.wrong(document(negligible=True)))
        self.assertIn("slower", right.wrong(document()))
        self.assertIn("invalid", right.wrong(document(verdict="invalid")))

    def test_times(self) -> None:
        self.assertIsNone(kinds.Time("p99", 10, 13).wrong(document()))
        self.assertIn("11.0 ms", kinds.Time("p99", 12, 13).wrong(document()))
        self.assertIsNone(kinds.Time("cold_start", 45, 60, added=True).wrong(document()))
        self.assertIn("51.0 ms", kinds.Time("cold_start", 52, 60, added=True).wrong(document()))
        self.assertIn("unknown", kinds.Time("p90", 1, 2).wrong(document()))

    def test_growth_of_memory(self) -> None:
        self.assertIsNone(kinds.Growth(4_096).wrong(document()))
        self.assertIn("4096 bytes", kinds.Growth(8_192).wrong(document()))
        grows_too = document()
        grows_too["record"]["epochs"][0]["contenders"][0]["usage"]["memory"][1]["pss_bytes"] += 2_000_000
        self.assertIn("that of off", kinds.Growth(4_096).wrong(grows_too))

    def test_findings_are_about_the_planted_contender_alone(self) -> None:
        right = kinds.Found("no-steady-state")
        self.assertIsNone(right.wrong(found("no-steady-state", "on")))
        self.assertEqual(right.wrong(document()), "no no-steady-state")
        self.assertIn("off, on", right.wrong(found("no-steady-state", "on", "off")))
        self.assertIn("off", right.wrong(found("no-steady-state", "off")))
        self.assertEqual(right.wrong(found("steal", "on")), "no no-steady-state")

    def test_a_race_without_result_is_wrong(self) -> None:
        line = plants.told(kinds.BY_NAME["query"], {"failed": "no port", "took_s": 1.0})
        self.assertEqual((line["right"], line["wrong"], line["failed"]), (False, ["no result"], "no port"))
        empty = {**document(), "scenarios": []}
        self.assertFalse(plants.told(kinds.BY_NAME["query"], empty)["right"])


class Campaign(unittest.TestCase):
    def hold(self, out: Path, *documents: object) -> None:
        """A campaign of two races of one kind whose documents are given; an exception is raised."""
        asked = mock.Mock(out=out, records=out.parent, number=2, minutes=1, at_once=True)
        with mock.patch.object(plants, "hold", side_effect=documents), mock.patch.object(plants, "build"), \
                mock.patch.object(plants.subprocess, "run", return_value=mock.Mock(stdout="deadheat 0\n")), \
                mock.patch.object(plants.races, "DEADHEAT", Path(__file__)), mock.patch.object(plants.signal, "signal"), \
                mock.patch("builtins.print"):
            plants.run([kinds.BY_NAME["query"]], ["node"], asked)

    def test_goes_on_where_it_was_killed_and_leaves_nothing_out(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            out = Path(name) / "plants.jsonl"
            with self.assertRaises(KeyboardInterrupt):
                self.hold(out, document(), KeyboardInterrupt())
            self.hold(out, document(verdict="invalid"))
            lines = plants.races.read(out)
            self.assertEqual([(line["number"], line.get("right")) for line in lines],
                             [(1, None), (1, True), (2, None), (3, None), (3, False)])
            # Nothing is left to do.
            self.hold(out)
            self.assertEqual(plants.races.read(out), lines)
            told = plants.table(lines)
            self.assertTrue(told.startswith("**1 of 2 races gave the right answer: 50 %.**"), told)
            self.assertIn("| query | 1 of 2 | - | 1 | 40 |", told)
            self.assertIn("| query | node | 3 | throughput is invalid |", told)

    def test_races_of_another_definition_are_not_counted_together(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            out = Path(name) / "plants.jsonl"
            self.hold(out, document(), document())
            with mock.patch.dict(kinds.BY_NAME["query"].on, QUERIES=12), self.assertRaisesRegex(SystemExit, "race 1 of query in node had another"):
                self.hold(out, document())

    def test_kinds_and_runtimes_take_turns(self) -> None:
        lines: list[dict] = []
        for expected in (("query", "node"), ("query", "go"), ("lock", "node"), ("lock", "go"), None):
            chosen = plants.following(lines, [kinds.BY_NAME["query"], kinds.BY_NAME["lock"]], ["node", "go"], 1)
            self.assertEqual(chosen and (chosen[0].name, chosen[1]), expected)
            if chosen:
                lines.append({"kind": chosen[0].name, "runtime": chosen[1], "right": True})


class Servers(unittest.TestCase):
    """All servers, a few at a time."""

    @classmethod
    def setUpClass(cls) -> None:
        cases = [(kind.name, runtime, contender) for kind in kinds.KINDS for runtime in plants.PROGRAMS for contender in ("off", "on")]
        with ThreadPoolExecutor(4) as several:
            cls.seen = dict(zip(cases, several.map(lambda case: ask(*case), cases)))

    def test_plant_and_runtime_do_not_change_the_answer(self) -> None:
        for kind in kinds.KINDS:
            answers = {answer for case, seen in self.seen.items() if case[0] == kind.name for answer in seen["answers"]}
            self.assertEqual(len(answers), 1, kind.name)
            status, content_type, body = answers.pop()
            self.assertEqual((status, content_type), (200, "application/json"), kind.name)
            self.assertEqual(json.loads(body)["message"], "hello", kind.name)

    def test_work_is_done(self) -> None:
        results = {"query": [2_333_331], "garbage": [873_250], "syscall": [16_384]}
        for (kind, runtime, contender), seen in self.seen.items():
            self.assertEqual(json.loads(seen["answers"][0][2])["results"], results.get(kind, []), (kind, runtime, contender))

    def test_starts_are_counted(self) -> None:
        for runtime in plants.PROGRAMS:
            self.assertEqual(self.seen["bimodal", runtime, "on"]["starts"], 1, runtime)

    def test_memory_that_leaks_is_used(self) -> None:
        for runtime in plants.PROGRAMS:
            # 40 MB, far more than a heap changes by.
            with servers.up(plants.PROGRAMS[runtime], {"LEAK_BYTES": "40000"}) as server:
                before = server.anonymous_bytes()
                for _ in range(1_000):
                    server.ask()
                self.assertGreaterEqual(server.anonymous_bytes() - before, 36_000_000, runtime)

    def test_waits_take_their_time(self) -> None:
        # Longer waits than in races: on a busy machine, anything takes some milliseconds.
        for runtime in plants.PROGRAMS:
            with servers.up(plants.PROGRAMS[runtime], {"START_MS": "1000", "HOLD_MS": "100", "TAIL": "3", "TAIL_MS": "500"}) as server:
                self.assertGreaterEqual(server.start_s, 1.1, runtime)
                # The first answer was the first request's.
                for least_s in (0.1, 0.6):
                    begun = time.monotonic()
                    server.ask()
                    self.assertGreaterEqual(time.monotonic() - begun, least_s, runtime)


def work(kind: str, contender: str) -> dict:
    """The work of a kind's contender."""
    return kinds.BY_NAME[kind].off if contender == "off" else kinds.BY_NAME[kind].on


def ask(kind: str, runtime: str, contender: str) -> dict:
    """What one server answers, and how many starts it has counted."""
    with tempfile.TemporaryDirectory() as name:
        with servers.up(plants.PROGRAMS[runtime], plants.environment(work(kind, contender), Path(name))) as server:
            answers = [server.first, *(server.ask() for _ in range(3))]
        starts = Path(name, "starts")
        return {"answers": answers, "starts": len(starts.read_text()) if starts.exists() else 0}


if __name__ == "__main__":
    unittest.main()
