#!/usr/bin/env python3
"""How often `--why` names a planted slow function first.

    bench/why.py PROGRAM [RUNS] [KIND...]     kinds: node node-parses go go-parses native; default: all that are installed, 10 runs of each

Each run races two servers that differ in one function, with fresh processes and a short race, and reads the first function of the report. Prints
a line for each kind. Exit status: 1 if a kind names the planted function first in fewer than 9 of 10 runs.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NODE = """\
import http from "node:http";
function plantedSlow(n) { let x = 1; for (let i = 0; i < n; i++) x = (x * 31 + i) | 0; return x; }
function render(items) { return JSON.stringify(items.map((id) => ({ id, name: `item ${id}` }))); }
const items = Array.from({ length: 40 }, (_, id) => id);
http.createServer((_, answer) => {
  if (WORK > 0 && plantedSlow(WORK) === 0.5) items.push(0);
  answer.setHeader("content-type", "application/json");
  answer.end(render(items));
}).listen(Number(process.env.PORT), "127.0.0.1");
"""

GO = """\
package main

import ("encoding/json"; "net/http"; "os")

type item struct { ID int `json:"id"`; Name string `json:"name"` }

func plantedSlow(n int) uint32 { x := uint32(1); for i := 0; i < n; i++ { x = x*31 + uint32(i) }; return x }

var sink uint32

func main() {
	items := make([]item, 40)
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		if WORK > 0 { sink = plantedSlow(WORK) }
		w.Header().Set("content-type", "application/json")
		json.NewEncoder(w).Encode(items)
	})
	http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil)
}
"""

NATIVE = """\
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
volatile unsigned sink;
static unsigned planted_slow(unsigned n) { unsigned x = sink; for (unsigned i = 0; i < n; i++) x = x * 31 + (i ^ x >> 3); return x; }
static void render(char *body) { for (int i = 0, at = 0; i < 40; i++) at += sprintf(body + at, "{\\"id\\":%d,\\"name\\":\\"item %d\\"},", i, i); }
static void *serve(void *arg) {
    int fd = (int)(long)arg; char in[4096], body[4096], out[8192]; long got;
    while ((got = read(fd, in, sizeof in)) > 0) {
        if (WORK > 0) sink = planted_slow(WORK);
        render(body);
        int n = sprintf(out, "HTTP/1.1 200 OK\\r\\ncontent-type: text/plain\\r\\ncontent-length: %zu\\r\\n\\r\\n%s", strlen(body), body);
        if (write(fd, out, n) != n) break;
    }
    close(fd);
    return 0;
}
int main(void) {
    int all = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(getenv("PORT"))), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(all, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(all, (void *)&at, sizeof at) || listen(all, 512)) return 1;
    for (;;) {
        pthread_t thread; long fd = accept(all, 0, 0);
        if (fd >= 0 && !pthread_create(&thread, 0, serve, (void *)fd)) pthread_detach(thread);
    }
}
"""

# The planted function spends its time in functions of the runtime and the standard library.
NODE_PARSES = NODE.replace("for (let i = 0; i < n; i++) x = (x * 31 + i) | 0;", "for (let i = 0; i < n; i++) x += JSON.parse(text).length;") + (
    "const text = render(items);\n"
)
GO_PARSES = GO.replace(
    "x := uint32(1); for i := 0; i < n; i++ { x = x*31 + uint32(i) }; return x",
    "x := uint32(1); for i := 0; i < n; i++ { var items []item; json.Unmarshal(text, &items); x += uint32(len(items)) }; return x",
).replace("items := make([]item, 40)", "items := make([]item, 40); text, _ = json.Marshal(items)") + "\nvar text []byte\n"


def node(folder, name, work, source=NODE):
    (folder / f"{name}.mjs").write_text(source.replace("WORK", str(work)))
    return f"exec node {name}.mjs"


def node_parses(folder, name, work):
    return node(folder, name, work, NODE_PARSES)


def go(folder, name, work, source=GO):
    (folder / f"{name}.go").write_text(source.replace("WORK", str(work)))
    subprocess.run(["go", "build", "-o", name, f"{name}.go"], cwd=folder, check=True)
    return f"exec ./{name}"


def go_parses(folder, name, work):
    return go(folder, name, work, GO_PARSES)


def native(folder, name, work):
    (folder / f"{name}.c").write_text(NATIVE.replace("WORK", str(work)))
    subprocess.run(["gcc", "-O2", "-g", "-pthread", "-o", name, f"{name}.c"], cwd=folder, check=True)
    return f"exec ./{name}"


# What builds a server, what it needs, how much work the planted function does, and the name of the function in a report.
KINDS = {
    "node": (node, "node", 40_000, ["plantedSlow"]),
    "node-parses": (node_parses, "node", 4, ["plantedSlow"]),
    "go": (go, "go", 40_000, ["main.plantedSlow"]),
    "go-parses": (go_parses, "go", 2, ["main.plantedSlow"]),
    "native": (native, "gcc", 20_000, ["planted_slow"]),
}


def first_function(program, folder, commands):
    options = ["--epochs", "3", "--warmup", "500ms", "--measure", "300ms", "--why", "-n", "old", "-n", "new", "-c", "16"]
    race = [program, "race", *options, "--json", "race.json", "--record", "race.jsonl", *commands]
    (folder / "race.jsonl").unlink(missing_ok=True)
    done = subprocess.run(race, cwd=folder, capture_output=True, text=True)
    gains = json.loads((folder / "race.json").read_text())["scenarios"][0].get("gains")
    if not gains:
        sys.exit(f"no profile:\n{done.stdout}\n{done.stderr}")
    functions = gains[0]["functions"]
    return functions[0]["function"] if functions else "none"


def main():
    program, *rest = sys.argv[1:] or sys.exit(__doc__)
    program = str(Path(program).resolve())
    runs = int(rest.pop(0)) if rest and rest[0].isdigit() else 10
    few = False
    for kind in rest or KINDS:
        build, needs, work, expected = KINDS[kind]
        if shutil.which(needs) is None:
            print(f"{kind}: skipped, {needs} is not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            commands = [build(folder, "old", 0), build(folder, "new", work)]
            firsts = [first_function(program, folder, commands) for _ in range(runs)]
        right = sum(first in expected for first in firsts)
        others = sorted({first for first in firsts if first not in expected})
        print(f"{kind}: {right} of {runs}" + (f"; otherwise {', '.join(others)}" if others else ""), flush=True)
        few |= right < 0.9 * runs
    sys.exit(1 if few else 0)


if __name__ == "__main__":
    main()
