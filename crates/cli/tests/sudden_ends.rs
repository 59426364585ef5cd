//! Races that end before anything was measured, and the file from which a killed race can be resumed.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use deadheat_testkit::{Kit, Running, SHORT_RACE, Signal, leftover_cgroups, server_line, turn, wait_until};
use serde_json::Value;

use crate::common::{assert_measured, kit};

fn assert_no_groups(pid: u32) {
    let groups = || leftover_cgroups(&format!("deadheat-{pid}-"));
    assert!(wait_until(Duration::from_secs(5), || groups().is_empty()), "{:?}", groups());
}

/// Starts a race whose second contender never answers and has descendants that ignore SIGTERM. Returns while the race waits for it.
fn waiting(kit: &Kit) -> Running {
    let mute = server_line(&["--never-answer", "--children", "4", "--ignore-term"]);
    let mut running = kit
        .race()
        .contender("good", &server_line(&["--json"]))
        .contender("mute", &mute)
        .args(["--ready-timeout", "150s", "-c", "4", "--record", "r.jsonl"])
        .spawn();
    let idle = || kit.leftovers().iter().filter(|process| process.command.contains("--idle")).count();
    running.wait_for("the descendants", || idle() >= 4);
    running
}

#[test]
fn a_race_that_runs_keeps_its_record_to_itself() {
    let kit = kit();
    let mut running = waiting(&kit);
    let before = kit.read("r.jsonl");
    let second = kit.deadheat(["race", "--resume", "r.jsonl"]).run();
    second.assert_status(2).assert_stderr_has("r.jsonl").assert_stderr_has("still running");
    assert_eq!(kit.read("r.jsonl"), before);
    running.signal(Signal::INT);
    running.wait();
    kit.assert_nothing_left();
}

#[test]
fn ctrl_c_is_heard_while_a_contender_does_not_answer() {
    let kit = kit();
    let mut running = waiting(&kit);
    let pid = running.pid();
    assert!(running.signal(Signal::INT));
    let gone = wait_until(Duration::from_secs(20), || !running.is_running());
    assert!(gone, "the readiness of a contender was waited for in spite of Ctrl-C");
    running.wait().assert_status(130).assert_stderr_has("--resume r.jsonl");
    kit.assert_nothing_left();
    assert_no_groups(pid);
}

#[test]
fn ctrl_c_is_heard_while_a_check_waits_for_a_service() {
    let kit = kit();
    let text = |command: &str| Value::from(command).to_string();
    let (server, deaf) = (server_line(&["--json"]), server_line(&["--never-listen"]));
    kit.file(
        "study.toml",
        format!(
            "[[service]]\nname = \"db\"\ncommand = {}\n\
             [[contender]]\nname = \"a\"\ncommand = {server}\nservices = [\"db\"]\n[[contender]]\nname = \"b\"\ncommand = {server}\n\
             [[probe]]\npath = \"/\"\n",
            text(&deaf),
            server = text(&server)
        ),
    );
    let mut running = kit.deadheat(["check", ".", "--ready-timeout", "150s"]).spawn();
    running
        .wait_for("the service", || kit.leftovers().iter().any(|one| one.command.contains("--never-listen")));
    assert!(running.signal(Signal::INT));
    let gone = wait_until(Duration::from_secs(20), || !running.is_running());
    assert!(gone, "a service was waited for in spite of Ctrl-C");
    running.wait().assert_status(130);
    kit.assert_nothing_left();
}

/// A record that exists can be resumed, so from its first moment an interruption says how.
#[test]
fn ctrl_c_is_heard_as_soon_as_there_is_a_record() {
    let kit = kit();
    let server = server_line(&["--never-listen"]);
    let race = kit.race().contender("a", &server).contender("b", &server);
    let mut running = race.args(["--record", "r.jsonl", "--ready-timeout", "150s"]).spawn();
    // Not `wait_for`, which pauses between two looks: the moment is short.
    while running.is_running() && !kit.path().join("r.jsonl").exists() {}
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
    assert!(caught & (1 << (Signal::INT.as_raw() - 1)) != 0, "{status}");
    assert!(running.signal(Signal::INT));
    running.wait().assert_status(130).assert_stderr_has("--resume r.jsonl");
    kit.assert_nothing_left();
}

#[test]
fn kill_9_during_a_start_leaves_nothing() {
    let kit = kit();
    let running = waiting(&kit);
    let pid = running.pid();
    running.kill_9();
    assert!(wait_until(Duration::from_secs(15), || kit.leftovers().is_empty()), "{:?}", kit.leftovers());
    assert_no_groups(pid);
}

/// The file of `--json` is complete at any time, and deadheat can resume from it after a crash.
#[test]
fn the_document_of_a_killed_race_is_whole_and_goes_on() {
    let (kit, _turn) = (kit(), turn());
    let (server, hold) = (server_line(&["--json"]), kit.hold());
    // Contender `b` waits in the third epoch: it starts once for the pilot and once for each epoch.
    let race = kit.race().contender("a", &server).contender("b", &hold.at_start(4, &server));
    // As users race: with the threads that keep cores awake.
    let race = race.args(&SHORT_RACE[..2]).args(&SHORT_RACE[4..]).args([
        "--record",
        "r.jsonl",
        "--ready-timeout",
        "150s",
    ]);
    let mut running = race.spawn();
    hold.wait(&mut running);
    let pid = running.pid();
    running.kill_9();
    hold.let_go();
    let document = |name: &str| serde_json::from_str::<Value>(&kit.read(name)).unwrap();
    let before = document("race.json");
    assert_eq!(before["complete"], false);
    let epochs = before["record"]["epochs"].as_array().unwrap().len();
    assert_eq!(epochs, 2, "the document is written after every epoch, not when all are over");
    let resumed = kit.deadheat(["race", "--resume", "race.json", "--json", "done.json"]).run();
    let after = document("done.json");
    assert_measured(&resumed, &after);
    assert_eq!(after["complete"], true);
    assert_eq!(after["seed"], before["seed"]);
    assert_eq!(after["record"]["epochs"][0], before["record"]["epochs"][0], "what was measured is kept");
    kit.assert_nothing_left();
    assert_no_groups(pid);

    let again = kit.deadheat(["race", "--resume", "done.json"]).run();
    assert_eq!(again.status(), resumed.status(), "a race that is over is only shown again\n{again}");
    assert_eq!(again.stdout, resumed.stdout);
}
