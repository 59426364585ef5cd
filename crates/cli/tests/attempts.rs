//! `race --continue`: attempts at one race, as a CI job makes them.

use deadheat_testkit::{Invocation, Kit, SHORT_RACE, server_line, turn};
use serde_json::Value;

use crate::common::kit;

/// An attempt of two contenders that are equally fast.
fn attempt(kit: &Kit) -> Invocation<'_> {
    let server = server_line(&["--json"]);
    kit.deadheat(["race", "-n", "a", "-n", "b", &server, &server])
        .args(["--epochs", "3..9", "--continue", "r/race.jsonl"])
        .args(&SHORT_RACE[2..])
}

fn lines(kit: &Kit, file: &str) -> Vec<Value> {
    kit.read(file).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn count(kit: &Kit, file: &str, kind: &str) -> usize {
    lines(kit, file).iter().filter(|line| line["line"] == kind).count()
}

/// Changes the header of a record.
fn change(kit: &Kit, file: &str, change: impl FnOnce(&mut Value)) {
    let mut all = lines(kit, file);
    change(&mut all[0]);
    let text: String = all.iter().map(|line| format!("{line}\n")).collect();
    kit.file(file, text);
}

#[test]
fn an_attempt_pauses_and_the_next_one_continues_its_record() {
    let (kit, _turn) = (kit(), turn());
    std::fs::create_dir(kit.path().join("r")).unwrap();
    let first = attempt(&kit).args(["--pause-after", "1ms"]).run();
    first
        .assert_stderr_has("paused before the next look; continue with: deadheat race --resume r/race.jsonl");
    assert!([Some(0), Some(3)].contains(&first.status()), "{first}");
    assert_eq!(count(&kit, "r/race.jsonl", "epoch"), 1, "each attempt makes progress");
    let header = &lines(&kit, "r/race.jsonl")[0];
    assert!(header["plan"]["method"]["budget_ns"].is_null(), "the end of a budget would spend all of alpha");
    let second = attempt(&kit).args(["--pause-after", "1ms"]).run();
    assert_eq!(count(&kit, "r/race.jsonl", "epoch"), 2, "{second}");
    assert_eq!(count(&kit, "r/race.jsonl", "resumed"), 1);
    kit.assert_nothing_left();
}

/// A full disk, for example, can end an attempt before its record begins. The next attempt then uses the same file.
#[test]
fn an_attempt_begins_in_a_file_that_holds_nothing() {
    let (kit, _turn) = (kit(), turn());
    for nothing in ["", "{\"line\":\"header\",\"schema\":\"deadheat.record/1\",\"versi"] {
        kit.file("r/race.jsonl", nothing);
        attempt(&kit).args(["--pause-after", "1ms"]).run().assert_stderr_has("paused before the next look");
        assert_eq!(count(&kit, "r/race.jsonl", "epoch"), 1);
        kit.file("new.jsonl", nothing);
        let server = server_line(&["--json"]);
        let race = kit.deadheat(["race", &server, &server, "--record", "new.jsonl"]).args(SHORT_RACE);
        race.args(["--pause-after", "1ms"]).run().assert_stderr_has("--resume new.jsonl");
    }
    for text in ["of the user", "{\"line\":\"header\",\"schema\":\"another\"}"] {
        kit.file("r/race.jsonl", text);
        attempt(&kit).run().assert_status(2);
        assert_eq!(kit.read("r/race.jsonl"), text);
    }
}

/// On another machine, the race cannot be continued. A new one has the alpha that is left: here all of it, because no look was taken.
#[test]
fn on_another_machine_a_new_race_has_the_alpha_that_is_left() {
    let (kit, _turn) = (kit(), turn());
    std::fs::create_dir(kit.path().join("r")).unwrap();
    attempt(&kit).args(["--pause-after", "1ms", "--alpha", "0.02"]).run();
    change(&kit, "r/race.jsonl", |header| header["machine"]["cpu_model"] = "Other CPU".into());
    let second = attempt(&kit).args(["--pause-after", "1ms"]).run();
    second
        .assert_stderr_has("another machine")
        .assert_stderr_has("a new race begins with the alpha that is left, 0.0200");
    assert_eq!(count(&kit, "r/race-1.jsonl", "epoch"), 1, "the old record is kept");
    let header = &lines(&kit, "r/race.jsonl")[0];
    assert_eq!(header["plan"]["method"]["alpha"], 0.02, "and not the usual 0.025");
    kit.assert_nothing_left();
}

/// Load hosts may be back at the next attempt: until then, the record stays where it is, also if a new race has to begin.
#[test]
fn a_load_host_that_cannot_be_reached_leaves_the_record_alone() {
    let (kit, _turn) = (kit(), turn());
    std::fs::create_dir(kit.path().join("r")).unwrap();
    attempt(&kit).args(["--pause-after", "1ms"]).run();
    for machine in ["here", "elsewhere"] {
        change(&kit, "r/race.jsonl", |header| {
            let from = serde_json::json!({"hosts": ["ssh://a"], "server_address": "127.0.0.1"});
            header["plan"]["load_from"] = from;
            if machine == "elsewhere" {
                header["machine"]["cpu_model"] = "Other CPU".into();
            }
        });
        let before = kit.read("r/race.jsonl");
        let second = attempt(&kit).args(["--load-host", "ssh://a", "--server-address", "127.0.0.1"]);
        let second = second.env("DEADHEAT_SSH", kit.path().join("no-ssh")).run();
        second.assert_status(2).assert_stderr_has("reaching a by ssh").assert_stderr_has("no-ssh");
        assert_eq!(kit.read("r/race.jsonl"), before, "{machine}: {second}");
        assert!(!kit.path().join("r/race-1.jsonl").exists(), "{machine}: {second}");
    }
    kit.assert_nothing_left();
}

#[test]
fn a_race_that_is_over_is_shown_again_and_never_raced_again() {
    let (kit, _turn) = (kit(), turn());
    std::fs::create_dir(kit.path().join("r")).unwrap();
    attempt(&kit).args(["--pause-after", "1ms"]).run();
    let ended = r#"{"line":"scenario","scenario":"steady","end":"budget"}"#;
    let before = format!("{}{ended}\n{}\n", kit.read("r/race.jsonl"), r#"{"line":"done"}"#);
    for machine in ["here", "elsewhere"] {
        kit.file("r/race.jsonl", &before);
        crate::common::undisturb(&kit, "r/race.jsonl");
        if machine == "elsewhere" {
            change(&kit, "r/race.jsonl", |header| header["machine"]["cpu_model"] = "Other CPU".into());
        }
        let outcome = attempt(&kit).args(["--pause-after", "10m", "--fail-if", "slower by 3%"]).run();
        assert_eq!(count(&kit, "r/race.jsonl", "epoch"), 1, "{machine}: {outcome}");
        assert!(!kit.path().join("r/race-1.jsonl").exists(), "{machine}: {outcome}");
    }
    kit.assert_nothing_left();
}

/// A new race would race the scenario again that has its result.
#[test]
fn a_race_with_one_of_two_results_is_not_begun_again_on_another_machine() {
    let (kit, _turn) = (kit(), turn());
    std::fs::create_dir(kit.path().join("r")).unwrap();
    let server = Value::from(server_line(&["--json"]));
    let contender = |name: &str| format!("[[contender]]\nname = \"{name}\"\ncommand = {server}\n");
    let scenario = |name: &str| format!("[[scenario]]\nname = \"{name}\"\nconnections = 4\n");
    let contenders = contender("a") + &contender("b");
    let scenarios = scenario("first") + &scenario("second");
    kit.file("mine/study.toml", format!("{contenders}[[probe]]\npath = \"/x\"\n{scenarios}"));
    let attempt = || {
        let race = kit.deadheat(["race", "mine", "--epochs", "3..9", "--continue", "r/race.jsonl"]);
        race.args(&SHORT_RACE[2..10]).args(["--pause-after", "1ms"]).run()
    };
    let first = attempt();
    first.assert_stderr_has("paused before the next look");
    let ended = r#"{"line":"scenario","scenario":"first","end":"budget"}"#;
    kit.file("r/race.jsonl", format!("{}{ended}\n", kit.read("r/race.jsonl")));
    change(&kit, "r/race.jsonl", |header| header["machine"]["cpu_model"] = "Other CPU".into());
    let before = kit.read("r/race.jsonl");
    let second = attempt();
    second
        .assert_status(3)
        .assert_stderr_has("another machine")
        .assert_stderr_has("can only be finished on a machine like the first one");
    assert_eq!(kit.read("r/race.jsonl"), before, "{second}");
    assert!(!kit.path().join("r/race-1.jsonl").exists(), "{second}");
    kit.assert_nothing_left();
}

#[test]
fn the_record_of_another_race_is_refused() {
    let (kit, _turn) = (kit(), turn());
    std::fs::create_dir(kit.path().join("r")).unwrap();
    attempt(&kit).args(["--pause-after", "1ms"]).run();
    let before = kit.read("r/race.jsonl");
    let other = attempt(&kit).args(["--margin", "1%"]).run();
    other
        .assert_status(2)
        .assert_stderr_has("r/race.jsonl: this is the record of another race, with margin 0.03; here: 0.01");
    assert_eq!(kit.read("r/race.jsonl"), before);
    // A new build or command under the same name is another program, and values of variables may be secret.
    let rebuild = serde_json::json!({"command": "make", "limit_ns": 1});
    for (key, value, said) in [
        ("command", "other".into(), "with command of a other; here: "),
        ("rebuild", rebuild, "with build of a make; here: none"),
        ("env", serde_json::json!({"LEVEL": "hidden"}), "with other values in the env of a: LEVEL\n"),
    ] {
        change(&kit, "r/race.jsonl", |header| header["plan"]["contenders"][0][key] = value);
        let changed = kit.read("r/race.jsonl");
        let other = attempt(&kit).run();
        other.assert_status(2).assert_stderr_has(said);
        assert!(!other.stderr.contains("hidden"), "{other}");
        assert_eq!(kit.read("r/race.jsonl"), changed);
        kit.file("r/race.jsonl", &before);
    }
    kit.file("r/race.jsonl", "no record\n");
    attempt(&kit).run().assert_status(2).assert_stderr_has("r/race.jsonl");
    kit.deadheat(["race", "--resume", "x", "--continue", "y"]).run().assert_status(2);
}
