//! Races over links that deadheat makes, and what becomes of them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::time::Duration;

use deadheat_testkit::{SHORT_RACE, server_line, skip_loudly, turn, wait_until};
use rustix::thread::{CapabilitySet, capabilities};
use serde_json::Value;

use crate::common::kit;

/// Skips the rest of the test where links cannot be made.
macro_rules! root_or_skip {
    () => {
        let needed = CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN;
        if !capabilities(None).is_ok_and(|own| own.effective.contains(needed)) {
            skip_loudly!("links need root, with CAP_NET_ADMIN and CAP_SYS_ADMIN");
        }
    };
}

/// A study of two servers, one slower than the other, with these scenarios.
fn study(host: &str, scenarios: &str) -> String {
    let line = |more: &[&str]| Value::from(server_line(&[&["--json", "--host", host], more].concat()));
    format!(
        "[[contender]]\nname = \"a\"\ncommand = {}\n[[contender]]\nname = \"b\"\ncommand = {}\n\
         [[probe]]\npath = \"/x\"\n{scenarios}",
        line(&[]),
        line(&["--spin-us", "2000"]),
    )
}

/// The same study with answers so large that, without a link, each contender sends hundreds of megabits per second.
fn with_large_answers(study: &str) -> String {
    study.replace("--json", &format!("--body {}", "x".repeat(20_000)))
}

/// Checks that no contender sent more than a link of 50 Mbit/s carries, by far.
fn assert_over_the_link(json: &Value, scenario: &str) {
    let epochs =
        json["record"]["epochs"].as_array().unwrap().iter().filter(|epoch| epoch["scenario"] == scenario);
    for part in epochs.flat_map(|epoch| epoch["contenders"].as_array().unwrap()) {
        let of = |key: &str| part[key].as_u64().unwrap() as f64;
        let bits_per_s = of("bytes_read") * 8.0 / (of("loaded_ns") / 1e9);
        assert!(bits_per_s < 100e6, "requests do not go over the link: {bits_per_s} bits/s, {part}");
    }
}

/// The network namespaces of this machine's processes.
fn namespaces() -> BTreeSet<std::path::PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|one| std::fs::read_link(one.path().join("ns/net")).ok()).collect()
}

#[test]
fn contenders_are_raced_over_a_link_and_beside_it() {
    root_or_skip!();
    let (kit, _turn) = (kit(), turn());
    let scenarios = "[[scenario]]\nname = \"slow\"\nconnections = 4\nlink = { rate = \"50mbit\" }\n\
                     [[scenario]]\nname = \"near\"\nconnections = 4\n";
    kit.file("study.toml", with_large_answers(&study("{host}", scenarios)));
    let outcome =
        kit.deadheat(["race", ".", "--record", "r.jsonl"]).args(SHORT_RACE).json_to("race.json").run();
    let json = outcome.json();
    crate::common::assert_valid(&json, include_str!("../../record/schema/record-1.schema.json"));
    let links = json["record"]["links"].as_array().unwrap();
    assert_eq!((links.len(), &links[0]["scenario"]), (1, &Value::from("slow")), "{links:?}");
    assert!(links[0]["rate_bits_per_s"][0].as_u64().unwrap() < 52_000_000, "{links:?}");
    assert_eq!(json["record"]["plan"]["scenarios"][0]["link"]["rate_bits_per_s"], 50_000_000);
    assert_over_the_link(&json, "slow");
    for scenario in json["scenarios"].as_array().unwrap() {
        assert!(!scenario["comparisons"].as_array().unwrap().is_empty(), "{scenario}");
    }
    outcome.assert_stdout_has("slow: closed load, 8 connections; link: 50 Mbit/s");
    outcome.assert_stdout_has("near: closed load, 8 connections;");
}

#[test]
fn requests_go_through_a_tunnel() {
    root_or_skip!();
    let (kit, _turn) = (kit(), turn());
    let scenario = "[[scenario]]\nname = \"private\"\nconnections = 4\nlink = { rate = \"50mbit\", tunnel = \"wireguard\" }\n";
    kit.file("study.toml", with_large_answers(&study("{host}", scenario)));
    let outcome =
        kit.deadheat(["race", ".", "--record", "r.jsonl"]).args(SHORT_RACE).json_to("race.json").run();
    if outcome.status() == Some(2) && outcome.stderr.contains("install the package") {
        skip_loudly!("{}", outcome.stderr);
    }
    let json = outcome.json();
    let link = &json["record"]["links"][0];
    assert!(
        link["tunnel"] == "the kernel" || link["tunnel"].as_str().unwrap().starts_with("wireguard-go"),
        "{link}"
    );
    assert_over_the_link(&json, "private");
    let results = json["scenarios"][0]["results"].as_array().unwrap();
    assert!(
        results.len() == 2 && results.iter().all(|one| one["outcomes"]["ok"].as_u64() > Some(0)),
        "{results:?}"
    );
    outcome.assert_stdout_has("private: closed load, 8 connections; link: 50 Mbit/s, WireGuard");
    kit.assert_nothing_left();
}

#[test]
fn a_contender_on_the_loopback_hears_where_it_is_asked() {
    root_or_skip!();
    let (kit, _turn) = (kit(), turn());
    kit.file(
        "study.toml",
        study("127.0.0.1", "[[scenario]]\nname = \"slow\"\nlink = { rate = \"50mbit\" }\n"),
    );
    let outcome = kit.deadheat(["check", ".", "--ready-timeout", "1s"]).run();
    assert_eq!(outcome.status(), Some(1), "{}", outcome.stderr);
    outcome.assert_stderr_has("let it listen on {host} (HOST) and not on the loopback");
}

#[test]
fn nothing_of_a_link_is_left_when_its_race_is_killed() {
    root_or_skip!();
    let (kit, _turn) = (kit(), turn());
    kit.file("study.toml", study("{host}", "[[scenario]]\nname = \"slow\"\nlink = { rate = \"50mbit\" }\n"));
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    let race = kit.deadheat(["race", ".", "--record", "r.jsonl"]).args(SHORT_RACE).spawn();
    let spaces = |pid: u32| {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        threads.filter_map(|one| std::fs::read_link(one.path().join("ns/net")).ok()).collect::<BTreeSet<_>>()
    };
    let pid = race.pid();
    let is_there = || spaces(pid).iter().any(|one| *one != own);
    assert!(wait_until(Duration::from_secs(60), is_there), "the race is among its contenders");
    let theirs: BTreeSet<_> = spaces(pid).into_iter().filter(|one| *one != own).collect();
    race.kill_9();
    let are_gone = || namespaces().is_disjoint(&theirs);
    assert!(wait_until(Duration::from_secs(20), are_gone), "processes are left in its networks");
    kit.assert_nothing_left();
}

#[test]
fn links_that_cannot_be_are_refused_before_anything_starts() {
    let kit = kit();
    kit.file("study.toml", study("{host}", "[[scenario]]\nname = \"slow\"\nlink = { rate = \"50mbit\" }\n"));
    let outcome = kit
        .deadheat(["race", ".", "--load-host", "ssh://user@nowhere.test", "--server-address", "192.0.2.1"])
        .run();
    assert_eq!(outcome.status(), Some(2), "{}", outcome.stderr);
    outcome.assert_stderr_has(
        "scenario slow has a `link`, and --load-host has the network between the machines",
    );
    kit.file(
        "study.toml",
        study("{host}", "[[scenario]]\nname = \"slow\"\nlink = { rate = \"50\", jitter = \"1ms\" }\n"),
    );
    let outcome = kit.deadheat(["race", "."]).run();
    assert_eq!(outcome.status(), Some(2), "{}", outcome.stderr);
    outcome
        .assert_stderr_has("`50` is not a rate of a link")
        .assert_stderr_has("`jitter` is longer than `delay`");
}
