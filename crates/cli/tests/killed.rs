//! Unplanned ends of a race: `kill -9`, Ctrl-C, a torn record, processes left by an earlier run; and the races that deadheat refuses to
//! resume.
#![allow(clippy::unwrap_used)]

use std::process::{Child, Command};
use std::time::Duration;

use deadheat_testkit::{
    Hold, Kit, Outcome, Running, SHORT_RACE, Signal, leftover_cgroups, server_line, turn, wait_until,
};
use serde_json::Value;

use crate::common::{BINARY, assert_measured, kit};

fn lines(kit: &Kit, name: &str) -> Vec<String> {
    kit.read(name).lines().map(str::to_owned).collect()
}

fn epochs(lines: &[String]) -> Vec<&String> {
    lines.iter().filter(|line| line.starts_with("{\"line\":\"epoch\"")).collect()
}

/// Races two contenders until one epoch is in the record. Then the race waits: contender `b` does not start again until the test lets it.
fn raced_for_an_epoch(kit: &Kit, server: &str, args: &[&str]) -> (Running, Hold) {
    let hold = kit.hold();
    let race = kit.race().contender("a", server).contender("b", &hold.at_start(SECOND_EPOCH, server));
    let mut running = race.args(args).args(["--record", "r.jsonl", "--ready-timeout", "150s"]).spawn();
    hold.wait(&mut running);
    assert_eq!(epochs(&lines(kit, "r.jsonl")).len(), 1, "it is held in its second epoch");
    (running, hold)
}

/// The number of the start at which a contender waits: a contender starts once for the pilot and once for each epoch.
const SECOND_EPOCH: usize = 3;

/// A server with descendants.
fn parent(more: &[&str]) -> String {
    server_line(&[&["--json", "--children", "4"], more].concat())
}

fn document(kit: &Kit, name: &str) -> Value {
    serde_json::from_str(&kit.read(name)).unwrap()
}

#[test]
fn after_kill_9_nothing_is_left_and_the_race_goes_on() {
    let (kit, _turn) = (kit(), turn());
    let (running, hold) = raced_for_an_epoch(&kit, &parent(&["--ignore-term"]), &SHORT_RACE);
    let pid = running.pid();
    running.kill_9();
    hold.let_go();
    let gone = wait_until(Duration::from_secs(20), || kit.leftovers().is_empty());
    assert!(gone, "left: {:?}", kit.leftovers());
    let no_group = || leftover_cgroups(&format!("deadheat-{pid}-")).is_empty();
    assert!(wait_until(Duration::from_secs(5), no_group), "{:?}", leftover_cgroups("deadheat-"));

    let before = lines(&kit, "r.jsonl");
    // Simulates a crash in the middle of a line.
    let torn = format!("{}\n{{\"line\":\"epoch\",\"scen", before.join("\n"));
    kit.file("r.jsonl", torn);
    let resumed = kit.deadheat(["race", "--resume", "r.jsonl", "--json", "done.json"]).run();
    assert_measured(&resumed, &document(&kit, "done.json"));
    let after = lines(&kit, "r.jsonl");
    assert_eq!(after[..before.len()], before[..], "what was measured is kept as it was");
    // At least three: deadheat repeats an epoch in which other programs disturbed every round.
    assert!(epochs(&after).len() >= 3);
    let document = document(&kit, "done.json");
    assert_eq!(document["complete"], true);
    assert!(document["scenarios"][0]["epochs"].as_u64().unwrap() >= 3);
    let pilot = &document["record"]["pilots"][0];
    let later = pilot["later_ceilings"].as_array().unwrap();
    assert!(
        later.len() == 1 && later[0]["ceiling_rps"].is_number(),
        "a session has its own ceiling: {later:?}"
    );
    kit.assert_nothing_left();
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_says_how_to_go_on() {
    let (kit, _turn) = (kit(), turn());
    let (mut running, hold) = raced_for_an_epoch(&kit, &parent(&[]), &SHORT_RACE);
    assert!(running.signal(Signal::INT));
    let outcome = running.wait();
    hold.let_go();
    outcome.assert_status(130).assert_stderr_has("--resume r.jsonl");
    kit.assert_nothing_left();
    assert_eq!(epochs(&lines(&kit, "r.jsonl")).len(), 1);
    // `--resume` accepts the JSON document as well as the journal.
    kit.deadheat(["report", "r.jsonl", "--json", "half.json"]).run().assert_status(0);
    assert_eq!(document(&kit, "half.json")["complete"], false);
    let resumed = kit.deadheat(["race", "--resume", "half.json", "--json", "done.json"]).run();
    assert_measured(&resumed, &document(&kit, "done.json"));
    assert!(epochs(&lines(&kit, "half.jsonl")).len() >= 3);
}

/// `nohup` ignores the signal that a login sends when it ends.
#[test]
fn nohup_keeps_a_race_from_ending_with_its_login() {
    let (kit, _turn) = (kit(), turn());
    let (server, hold) = (server_line(&["--json"]), kit.hold());
    let mut nohup = Command::new("nohup");
    nohup.args([BINARY, "race", &server, &hold.at_start(SECOND_EPOCH, &server), "--record", "r.jsonl"]);
    let mut running = kit.command(nohup).args(SHORT_RACE).args(["--ready-timeout", "150s"]).spawn();
    hold.wait(&mut running);
    assert!(running.signal(Signal::HUP));
    hold.let_go();
    let outcome = running.wait();
    assert_ne!(outcome.status(), Some(130), "{outcome}");
    assert_eq!(epochs(&lines(&kit, "r.jsonl")).len(), 3, "{outcome}");
}

fn study_of(server: &str) -> String {
    let contender =
        |name: &str| format!("[[contender]]\nname = \"{name}\"\ncommand = {}\n", Value::from(server));
    format!("{}{}[[probe]]\npath = \"/\"\n", contender("a"), contender("b"))
}

/// A process that looks like a leftover of an earlier deadheat run. Dropping it ends the process, even when the test fails.
struct Leftover {
    process: Child,
    /// The command line, which no other process on this machine has.
    command: String,
}

impl Leftover {
    fn start() -> Self {
        let seconds = format!("4321.{}", std::process::id());
        let process = Command::new("sleep").arg(&seconds).env("DEADHEAT_RUN", "999999999:1").spawn().unwrap();
        Self { process, command: format!("sleep {seconds}") }
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_leftover_of_an_earlier_run_is_named() {
    let (kit, _turn) = (kit(), turn());
    let (server, leftover, hold) = (server_line(&["--json"]), Leftover::start(), kit.hold());
    // Contender `b` waits at its first start, so that neither race ends before the test reads its output.
    let held = hold.at_start(1, &server);
    let race = kit.race().contender("a", &server).contender("b", &held).args(SHORT_RACE);
    let mut running = race.args(["--record", "r.jsonl", "--ready-timeout", "150s"]).spawn();
    hold.wait(&mut running);
    running.signal(Signal::INT);
    let first = running.wait();
    let named = || kit.read("r.jsonl").matches(&leftover.command).count();
    assert_eq!(named(), 1, "{first}");
    kit.file("study.toml", study_of(&server));
    let checked = kit.deadheat(["check", "."]).run();
    let mut again = kit.deadheat(["race", "--resume", "r.jsonl"]).spawn();
    again.wait_for("the leftover to be named again", || named() == 2);
    again.signal(Signal::INT);
    let again = again.wait();
    first.assert_status(130);
    again.assert_status(130);
    for outcome in [first, checked, again] {
        outcome.assert_stderr_has(&leftover.command);
        outcome.assert_stderr_has(&format!("kill -9 {}", leftover.process.id()));
    }
}

#[test]
fn what_is_no_record_is_refused() {
    let (kit, _turn) = (kit(), turn());
    kit.file("r.jsonl", "{\"line\":\"done\"}\n");
    kit.deadheat(["race", "--resume", "r.jsonl"]).run().assert_status(2).assert_stderr_has("r.jsonl");
    kit.deadheat(["report", "nothing.jsonl"]).run().assert_status(2).assert_stderr_has("nothing.jsonl");
}

fn interrupt(mut running: Running) {
    assert!(running.signal(Signal::INT));
    running.wait().assert_status(130);
}

fn resume(kit: &Kit, record: &str) -> Outcome {
    kit.deadheat(["race", "--resume", record]).run()
}

#[test]
fn a_race_does_not_go_on_with_other_versions() {
    let (kit, _turn) = (kit(), turn());
    let (server, hold) = (server_line(&["--json"]), kit.hold());
    let command = |name: &str| match name {
        "b" => Value::from(hold.at_start(SECOND_EPOCH, &server)),
        _ => Value::from(server.as_str()),
    };
    let contender = |name: &str| {
        let command = command(name);
        format!("[[contender]]\nname = \"{name}\"\ncommand = {command}\nversion = \"cat {name}.txt\"\n")
    };
    kit.file("study.toml", format!("{}{}[[probe]]\npath = \"/\"\n", contender("a"), contender("b")));
    kit.file("a.txt", "1.0\n");
    kit.file("b.txt", "7.0\n");
    let race = kit.deadheat(["race", ".", "--record", "r.jsonl", "--ready-timeout", "150s"]).args(SHORT_RACE);
    let mut running = race.spawn();
    hold.wait(&mut running);
    interrupt(running);
    hold.let_go();
    kit.deadheat(["report", "r.jsonl", "--json", "half.json"]).run().assert_status(0);
    let before = kit.read("r.jsonl");

    kit.file("a.txt", "2.0\n");
    for record in ["r.jsonl", "half.json"] {
        let refused = resume(&kit, record);
        refused.assert_status(2).assert_stderr_has(record).assert_stderr_has("a (1.0 then, 2.0 now)");
        refused.assert_stderr_has("race again without --resume");
        assert!(!refused.stderr.contains("b ("), "b is what it was\n{refused}");
    }
    assert_eq!(kit.read("r.jsonl"), before, "the record stays as it is");
    assert!(!kit.path().join("half.jsonl").exists(), "a refused race has no new journal");

    std::fs::remove_file(kit.path().join("a.txt")).unwrap();
    let resumed = resume(&kit, "r.jsonl");
    kit.deadheat(["report", "r.jsonl", "--json", "done.json"]).run().assert_status(0);
    assert_measured(&resumed, &document(&kit, "done.json"));
    resumed.assert_stderr_has(
        "deadheat cannot check whether a still has version 1.0: `cat a.txt` ended with exit status 1",
    );
    kit.file("a.txt", "2.0\n");
    let again = resume(&kit, "r.jsonl");
    assert_eq!(again.status(), resumed.status(), "a race that is over is only shown again\n{again}");
    kit.assert_nothing_left();
}

#[test]
fn a_race_does_not_go_on_on_another_machine() {
    let (kit, _turn) = (kit(), turn());
    interrupt(raced_for_an_epoch(&kit, &parent(&[]), &SHORT_RACE).0);
    let mut all = lines(&kit, "r.jsonl");
    let mut header: Value = serde_json::from_str(&all[0]).unwrap();
    header["machine"]["cpu_model"] = "Other CPU".into();
    all[0] = header.to_string();
    // The last line is incomplete. Resuming would repair it; a refusal must leave the file unchanged.
    let moved = format!("{}\n{{\"line\":\"epoch\",\"scen", all.join("\n"));
    kit.file("r.jsonl", &moved);
    let refused = resume(&kit, "r.jsonl");
    refused.assert_status(2).assert_stderr_has("r.jsonl: the race started on another machine");
    refused.assert_stderr_has("processor Other CPU then, ").assert_stderr_has("race again without --resume");
    assert_eq!(kit.read("r.jsonl"), moved, "the record stays as it is");
    kit.assert_nothing_left();
}
