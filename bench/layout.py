#!/usr/bin/env python3
"""How much identical code differs by where its parts lie in memory.

  bench/layout.py run [RUNTIME ...] [--epochs N] [--out FILE]     one race of each runtime: go, rust, node, bun
  bench/layout.py page [--out FILE]                               writes the results into docs/src/how-to-race-two-versions.md

A race has eight contenders with the same source. Three of them start the same file. The other five differ in layout alone: Go and Rust are linked with another
order of their functions, and Node and Bun get another length of their path and of their environment. What the three differ by is noise of the
machine, which the five have too. Nothing else may run meanwhile. Needs `cargo build --release`.
"""
import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import races

KEPT, PAGE = races.ROOT / "docs/layout.jsonl", races.ROOT / "docs/src/how-to-race-two-versions.md"
MARKS = ("<!-- layout: results -->", "<!-- layout: end -->")
SAME, OTHERS = 3, 5
# The work of a request: a list of 40 items as JSON.
JS = """\
import http from "node:http";
const items = Array.from({ length: 40 }, (_, id) => id);
http.createServer((_, answer) => {
  answer.setHeader("content-type", "application/json");
  answer.end(JSON.stringify(items.map((id) => ({ id, name: `item ${id}`, tags: ["a", "b", String(id % 7)] }))));
}).listen(Number(process.env.PORT), "127.0.0.1");
"""
GO = """\
package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
)

type item struct {
	ID   int      `json:"id"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		items := make([]item, 40)
		for i := range items {
			items[i] = item{i, "item " + strconv.Itoa(i), []string{"a", "b", strconv.Itoa(i % 7)}}
		}
		w.Header().Set("content-type", "application/json")
		json.NewEncoder(w).Encode(items)
	})
	http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil)
}
"""
RUST = """\
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

fn body() -> String {
    let mut items = BTreeMap::new();
    for id in 0..40_u32 {
        items.insert(format!("item {id}"), (id, vec!["a".to_string(), "b".to_string(), (id % 7).to_string()]));
    }
    let mut all: Vec<_> = items.into_iter().map(|(name, (id, tags))| (id, name, tags)).collect();
    all.sort();
    let item = |(id, name, tags): (u32, String, Vec<String>)| format!("{{\\"id\\":{id},\\"name\\":{name:?},\\"tags\\":{tags:?}}}");
    format!("[{}]", all.into_iter().map(item).collect::<Vec<_>>().join(","))
}

fn main() {
    let listener = TcpListener::bind(("127.0.0.1", std::env::var("PORT").unwrap().parse().unwrap())).unwrap();
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut stream = stream;
            while let Some(Ok(line)) = lines.next() {
                if line.is_empty() {
                    let body = body();
                    let head = format!("HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: {}\\r\\n\\r\\n", body.len());
                    if stream.write_all((head + &body).as_bytes()).is_err() {
                        return;
                    }
                }
            }
        });
    }
}
"""


def go(folder: Path, seed: int) -> str:
    """The command of a server with the layout of this seed."""
    (folder / "main.go").write_text(GO)
    subprocess.run(["go", "build", f"-ldflags=-randlayout={seed}", "-o", folder / f"go-{seed}", "main.go"], cwd=folder, check=True)
    return f"exec {folder}/go-{seed}"


def rust(folder: Path, seed: int) -> str:
    """As `go`: the linker shuffles the sections, of which each function has its own."""
    (folder / "main.rs").write_text(RUST)
    subprocess.run(["rustc", "-O", "-C", f"link-arg=-Wl,--shuffle-sections=*={seed}", "-o", folder / f"rust-{seed}", "main.rs"], cwd=folder, check=True)
    return f"exec {folder}/rust-{seed}"


def script(program: str):
    """As `go`, for a runtime that reads the program: its path and its environment have other lengths."""
    def made(folder: Path, seed: int) -> str:
        place = folder / ("x" * (1 + 37 * seed))
        place.mkdir(exist_ok=True)
        (place / "server.mjs").write_text(JS)
        return f"exec env PADDING={'x' * (813 * seed)} {races.PROGRAMS[program]} {place}/server.mjs"
    return made


RUNTIMES = {"go": go, "rust": rust, "node": script("node"), "bun": script("bun")}


def spread(of: list[list[float]]) -> tuple[float, float]:
    """The standard deviation of the contenders' means, and that which the spread of their epochs explains: `of[contender][epoch]`, logarithms."""
    means = [statistics.mean(one) for one in of]
    explained = statistics.mean(statistics.variance(one) / len(one) for one in of)
    return statistics.stdev(means), math.sqrt(explained)


def hold(runtime: str, epochs: int, folder: Path) -> dict:
    """One race, and what is kept of it: for each epoch and contender the logarithm of its rate over the mean of all."""
    make = RUNTIMES[runtime]
    commands = [make(folder, 1)] * SAME + [make(folder, seed) for seed in range(2, 2 + OTHERS)]
    warmup = "1s" if runtime in ("node", "bun") else "300ms"
    names = [word for number in range(1, len(commands) + 1) for word in ("-n", f"c{number}")]
    words = ["--url", "http://127.0.0.1:{port}/", "-c", "16", "--epochs", str(epochs), "--warmup", warmup, "--measure", "1s", "--margin", "1%"]
    document = races.run([*words, *names, *commands], folder)
    table = []
    for epoch in document["record"]["epochs"]:
        logs: dict[int, list[float]] = {}
        for one in epoch["rounds"]:
            if not one.get("dropped"):
                for slice in one["slices"]:
                    logs.setdefault(slice["contender"], []).append(math.log(slice["rate_per_s"]))
        if len(logs) == len(commands):
            own = [statistics.mean(logs[contender]) for contender in range(len(commands))]
            table.append([round(one - statistics.mean(own), 5) for one in own])
    return {"status": document["status"], "took_s": round(document["took_s"], 1), "findings": races.codes(document), "epochs": table}


def run(runtimes: list[str], epochs: int, out: Path) -> None:
    """A race of each."""
    for runtime in runtimes:
        at = time.strftime("%Y-%m-%d %H:%M:%S")
        with tempfile.TemporaryDirectory() as folder:
            line = {"runtime": runtime, "at": at, **hold(runtime, epochs, Path(folder))}
        races.keep(out, line)
        print(table([line]), flush=True)


def percent(value: float) -> str:
    """A share, in percent."""
    return f"{100 * value:.1f} %"


def table(lines: list[dict]) -> str:
    """What the layouts differ by."""
    rows = ["| runtime | epochs | the same file: widest ratio | other layouts: widest ratio | standard deviation: same file | other layouts | from noise alone |",
            "|---|--:|--:|--:|--:|--:|--:|"]
    for line in lines:
        of = list(map(list, zip(*line["epochs"])))
        same, others = of[:SAME], of[SAME:]
        widest = [math.exp(max(map(statistics.mean, some)) - min(map(statistics.mean, some))) for some in (same, others)]
        (same_sd, _), (others_sd, noise) = spread(same), spread(others)
        rows.append(f"| {line['runtime']} | {len(line['epochs'])} | {widest[0]:.3f} | {widest[1]:.3f} | {percent(same_sd)} | {percent(others_sd)} | {percent(noise)} |")
    return "\n".join(rows) if lines else "No race has been held yet."


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("what", choices=("run", "page"))
    asked.add_argument("runtimes", nargs="*", metavar="RUNTIME")
    asked.add_argument("--epochs", type=int, default=14)
    asked.add_argument("--out", type=Path, default=KEPT)
    asked = asked.parse_args()
    if wrong := set(asked.runtimes) - set(RUNTIMES):
        sys.exit(f"no runtime {', '.join(wrong)}: choose from {', '.join(RUNTIMES)}")
    if asked.what == "run":
        run(asked.runtimes or list(RUNTIMES), asked.epochs, asked.out)
    else:
        PAGE.write_text(races.between(MARKS, table(races.read(asked.out)), PAGE.read_text()))


if __name__ == "__main__":
    main()
