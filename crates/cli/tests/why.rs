//! `--why`: the profile of a real race names the function that one of the two servers has more than the other.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use deadheat_testkit::{Kit, SHORT_RACE, quote, skip_loudly, turn};
use serde_json::Value;

use crate::common::kit;

const NODE: &str = r#"
import http from "node:http";
const work = Number(process.argv[2]);
function planted(n) { let x = 1; for (let i = 0; i < n; i += 1) x = (x * 31 + i) | 0; return x; }
http.createServer((request, answer) => {
  answer.end(work > 0 && planted(work) === 0.5 ? "never" : "the same");
}).listen(Number(process.env.PORT), "127.0.0.1");
"#;

/// Its planted function spends nearly all of its time in functions of V8.
const NODE_PARSES: &str = r#"
import http from "node:http";
const times = Number(process.argv[2]);
const text = JSON.stringify(Array.from({ length: 500 }, (_, id) => ({ id, name: `item ${id}` })));
function planted() { let seen = 0; for (let i = 0; i < times; i += 1) seen += JSON.parse(text).length; return seen; }
http.createServer((request, answer) => {
  answer.end(times > 0 && planted() === 0.5 ? "never" : "the same");
}).listen(Number(process.env.PORT), "127.0.0.1");
"#;

const NATIVE: &str = r#"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static volatile unsigned seen;
static unsigned work;
__attribute__((noinline)) static unsigned planted(unsigned n) {
    unsigned x = seen;
    for (unsigned i = 0; i < n; i++) x = x * 31 + (i ^ x >> 3);
    return x;
}
static void *serve(void *of) {
    static const char answer[] = "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nthe same";
    char in[4096];
    int one = (int)(long)of;
    while (read(one, in, sizeof in) > 0) {
        if (work > 0) seen = planted(work);
        if (write(one, answer, strlen(answer)) < 0) break;
    }
    close(one);
    return 0;
}
int main(int count, char **words) {
    int all = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(getenv("PORT"))), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    work = count > 1 ? atoi(words[1]) : 0;
    setsockopt(all, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(all, (void *)&at, sizeof at) || listen(all, 512)) return 1;
    for (;;) {
        pthread_t thread;
        long one = accept(all, 0, 0);
        if (one >= 0 && !pthread_create(&thread, 0, serve, (void *)one)) pthread_detach(thread);
    }
}
"#;

/// Races a server without work against the same server with work in its function `planted`. The rate is given and low, so that there is a profile
/// whatever else the machine does. None if the kernel does not permit it to be taken.
fn profiled(kit: &Kit, server: &str, work: u32) -> Option<Value> {
    let commands = ["0".to_owned(), work.to_string()].map(|work| format!("exec {server} {work}"));
    let race = kit.deadheat(["race", "-n", "old", "-n", "new", "--why", "-r", "200", "--metric", "cpu"]);
    let outcome = race
        .args(SHORT_RACE)
        .args(["--record", "r.jsonl", "--json", "r.json", "--ready-timeout", "150s"])
        .args(commands)
        .run();
    let document: Value = serde_json::from_str(&kit.read("r.json")).unwrap();
    let scenario = &document["scenarios"][0];
    let refused = |one: &Value| one["code"] == "profile-not-permitted";
    if scenario["findings"].as_array().unwrap().iter().any(refused) {
        return None;
    }
    kit.assert_nothing_left();
    let files = std::fs::read_dir(kit.path()).unwrap().flatten().map(|entry| entry.file_name());
    let files = files.map(|name| name.to_string_lossy().into_owned());
    let logs: Vec<String> = files.filter(|name| name.ends_with("-v8.log")).collect();
    assert!(logs.is_empty(), "logs of V8 are left in the current folder: {logs:?}");
    assert!(outcome.stdout.contains("from a separate diagnostic pass"), "{outcome}");
    assert!(outcome.stdout.contains("planted"), "{outcome}");
    let profiles: Vec<&Value> =
        scenario["profiles"].as_array().unwrap().iter().map(|one| &one["contender"]).collect();
    assert_eq!(profiles, ["old", "new"], "{outcome}");
    Some(scenario["gains"][0].clone())
}

#[track_caller]
fn assert_planted(gains: &Value) {
    assert_eq!((&gains["baseline"], &gains["contender"]), (&"old".into(), &"new".into()));
    assert_eq!(gains["functions"][0]["function"], "planted", "{gains}");
}

/// Node.js of the studies, or that of the machine.
fn node() -> Option<PathBuf> {
    let of_studies =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/trending/node_modules/.bin/node");
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut all =
        std::iter::once(of_studies).chain(std::env::split_paths(&folders).map(|one| one.join("node")));
    all.find(|path| path.exists())
}

#[test]
fn a_planted_function_of_node_is_named_with_its_place() {
    let (kit, _turn) = (kit(), turn());
    let Some(node) = node() else { skip_loudly!("Node.js is not here: run `make setup`") };
    kit.file("server.mjs", NODE);
    let Some(gains) = profiled(&kit, &format!("{} server.mjs", quote(node.to_str().unwrap())), 400_000)
    else {
        skip_loudly!("the kernel does not let deadheat sample stacks");
    };
    assert_planted(&gains);
    assert_eq!(
        (&gains["functions"][0]["file"], &gains["functions"][0]["line"]),
        (&"server.mjs".into(), &4.into())
    );
}

#[test]
fn a_function_that_spends_its_time_in_the_runtime_is_named_and_not_the_runtime() {
    let (kit, _turn) = (kit(), turn());
    let Some(node) = node() else { skip_loudly!("Node.js is not here: run `make setup`") };
    kit.file("server.mjs", NODE_PARSES);
    let Some(gains) = profiled(&kit, &format!("{} server.mjs", quote(node.to_str().unwrap())), 10) else {
        skip_loudly!("the kernel does not let deadheat sample stacks");
    };
    assert_planted(&gains);
    let planted = &gains["functions"][0];
    let [gained, own] = ["gained_ns", "own_gained_ns"].map(|name| planted[name].as_f64().unwrap());
    assert!(own < gained / 2.0, "{gains}");
    assert!(planted["called"]["function"].as_str().unwrap().contains("JsonParse"), "{gains}");
    assert!(planted["called"]["gained_ns"].as_f64().unwrap() > gained / 2.0, "{gains}");
}

#[test]
fn a_planted_function_of_a_native_server_is_named() {
    let (kit, _turn) = (kit(), turn());
    let source = kit.file("server.c", NATIVE);
    let mut build = Command::new("cc");
    build.args(["-O1", "-g", "-pthread", "-o"]).arg(kit.path().join("server")).arg(source);
    if !build.status().is_ok_and(|status| status.success()) {
        skip_loudly!("there is no C compiler `cc`");
    }
    let Some(gains) = profiled(&kit, "./server", 400_000) else {
        skip_loudly!("the kernel does not let deadheat sample stacks");
    };
    assert_planted(&gains);
}
