//! `deadheat doctor` on this machine: its output, its exit status, and that it leaves nothing behind.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use deadheat_testkit::{Outcome, Running, Signal, server_line, turn};
use serde_json::Value;

use crate::common::kit;

/// Options for very short races. Cores may sleep, as in [`deadheat_testkit::SHORT_RACE`].
const SHORT: [&str; 10] =
    ["--epochs", "3", "--cpu-latency", "any", "--warmup", "50ms", "--measure", "100ms", "--slice", "10ms"];

/// Asserts that the record fits the schema and that the exit status matches it. The record may call the machine fit or unfit.
fn checked(json: Value, outcome: &Outcome) -> Value {
    let schema: Value =
        serde_json::from_str(include_str!("../../record/schema/doctor-1.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}\n{outcome}");
    assert_eq!(json["schema"], "deadheat.doctor/1");
    let findings = json["findings"].as_array().unwrap();
    let unfit = findings.iter().any(|finding| finding["severity"] == "invalid");
    assert_eq!(json["fit"], Value::from(!unfit), "{outcome}");
    assert!(findings.iter().all(|finding| !finding["remedy"].as_str().unwrap().is_empty()));
    outcome.assert_status(if unfit { 3 } else { 0 });
    json
}

#[test]
fn quick_says_what_the_machine_is_and_what_the_generator_reaches() {
    let (kit, _turn) = (kit(), turn());
    let outcome = kit.deadheat(["doctor", "--quick"]).json_to("out.json").run();
    let json = checked(outcome.json(), &outcome);
    assert_eq!(
        (&json["mode"], &json["floor"], &json["sentence"]),
        (&"quick".into(), &Value::Null, &Value::Null)
    );
    let machine = &json["machine"];
    assert!(machine["cpus"].as_u64().unwrap() > 0 && machine["memory_bytes"].as_u64().unwrap() > 0);
    assert!(!machine["allowed_cpus"].as_array().unwrap().is_empty());
    assert!(machine["open_files_most"].as_u64().unwrap() > 0);
    assert!(machine["io_uring"].is_boolean(), "{machine}");
    assert!(json["ceiling"]["throughput_rps"].as_f64().unwrap() > 0.0);
    // 0 is possible: other programs may leave the generator only the time that it needs to poll for answers.
    assert!(json["ceiling"]["cpu_us_per_request"].as_f64().unwrap() >= 0.0);
    assert!(json["noise"]["seconds"].as_f64().unwrap() >= 1.0);
    outcome.assert_stderr_has("ceiling").assert_stdout_has("processor");
    outcome.assert_stdout_has("for measuring").assert_stdout_has("requests/s to a server that does nothing");
    assert!(!outcome.stdout.contains('\u{1b}') && !outcome.stderr.contains('\u{1b}'), "{outcome}");
    kit.assert_nothing_left();
}

#[test]
fn a_server_against_itself_gives_the_noise_floor() {
    let (kit, _turn) = (kit(), turn());
    // Without a command, deadheat races its built-in server. The test of the proof covers that.
    let running = kit.deadheat(["doctor", &server_line(&["--json"])]).args(SHORT).json_to("out.json").spawn();
    let folder_of = format!("-doctor-{}", running.pid());
    let outcome = running.wait();
    let left = std::fs::read_dir("/tmp").unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<String> = left.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.ends_with(&folder_of)), "{left:?}");
    let json = checked(outcome.json(), &outcome);
    let floor = &json["floor"];
    assert_eq!(floor["built_in"], false, "{outcome}");
    outcome.assert_stderr_has(" of at most 3 epochs");
    // On a very noisy machine, deadheat drops too many rounds and reports that the result is not known.
    let resolution = json["resolution"].as_array().unwrap();
    if floor["sd_log_ratio"].is_null() || floor["verdict"] == "invalid" {
        assert_eq!((resolution.len(), &json["fit"]), (0, &false.into()), "{outcome}");
        outcome.assert_stdout_has("is not known");
        return;
    }
    let used = floor["epochs"].as_u64().unwrap();
    assert!(resolution.len() == 5 && (2..=3).contains(&used), "{outcome}");
    let ratio = floor["ratio"].as_f64().unwrap();
    assert!((0.3..3.0).contains(&ratio), "{ratio}");
    let epochs: Vec<u64> = resolution.iter().filter_map(|one| one["epochs"].as_u64()).collect();
    assert!(epochs.windows(2).all(|pair| pair[0] >= pair[1]), "{epochs:?}");
    outcome.assert_stdout_has("on this machine, now,");
    kit.assert_nothing_left();
}

#[test]
fn the_proof_plants_what_it_says_and_counts_what_came_of_it() {
    let (kit, _turn) = (kit(), turn());
    let proof = kit.deadheat(["doctor", "--full", "--races", "1"]).args(SHORT).json_to("out.json");
    // On a busy machine, each of its three races leaves out epochs until its time is over.
    let outcome = proof.limit(Duration::from_secs(400)).run();
    let json = checked(outcome.json(), &outcome);
    let proof = &json["proof"];
    let rows = proof["rows"].as_array().unwrap();
    assert_eq!(json["floor"]["built_in"], true, "{outcome}");
    assert_eq!((rows.len(), proof["results"].as_array().unwrap().len()), (3, 3));
    let found = json["findings"].as_array().unwrap();
    let disturbed = found.iter().any(|one| one["code"] == "foreign-cpu" && one["severity"] == "invalid");
    for (row, asked) in rows.iter().zip([1.0, 1.03, 1.05]) {
        assert_eq!((&row["asked_ratio"], &row["races"]), (&asked.into(), &1.into()));
        let counts = ["faster", "slower", "equivalent", "inconclusive", "invalid"]
            .map(|key| row[key].as_u64().unwrap());
        assert_eq!(counts.iter().sum::<u64>(), 1);
        // Other programs can make it cost far more than was asked for.
        let truth = row["true_ratio"].as_f64().unwrap();
        assert!((0.5..2.0).contains(&truth) || disturbed, "{truth}\n{outcome}");
    }
    let plant = &rows[2]["plant"];
    let (baseline, contender) =
        (plant["baseline_steps"].as_f64().unwrap(), plant["contender_steps"].as_f64().unwrap());
    let more =
        (contender - baseline) * plant["step_ns"].as_f64().unwrap() / plant["cost_ns"].as_f64().unwrap();
    assert!((more - 0.05).abs() < 0.001, "{more}");
    outcome
        .assert_stderr_has("; Ctrl-C keeps the finished races")
        .assert_stderr_has("1/3 A/A")
        .assert_stderr_has("3/3 5 %");
    outcome.assert_stdout_has("known result; margin 3 %").assert_stdout_has("requested; measured");
    kit.assert_nothing_left();
}

/// Waits until the run prints `said`, for example `1/20 ` after the first of twenty races.
fn after(running: &mut Running, said: &str) {
    // The test reads the error output from its file while the program runs.
    let so_far = running.stderr_path();
    running.wait_for(said, || std::fs::read_to_string(&so_far).is_ok_and(|text| text.contains(said)));
}

#[test]
fn the_end_that_a_person_asks_for_keeps_what_was_found() {
    let (kit, _turn) = (kit(), turn());
    // With a server on the command line, deadheat need not calibrate its built-in servers, which takes time.
    let proof = kit.deadheat(["doctor", "--full", &server_line(&["--json"])]).args(SHORT);
    let mut running = proof.json_to("out.json").spawn();
    after(&mut running, "1/20 ");
    assert!(running.signal(Signal::INT));
    let outcome = running.wait();
    outcome.assert_status(130).assert_stdout_has("interrupted").assert_stdout_has("known result; margin");
    let json = outcome.json();
    assert_eq!(json["interrupted"], true);
    assert!(!json["proof"]["results"].as_array().unwrap().is_empty());
    kit.assert_nothing_left();
}

/// `SIGKILL` gives deadheat no time to write, but the file already contains the finished races.
#[test]
fn a_proof_that_is_killed_has_kept_its_races() {
    let (kit, _turn) = (kit(), turn());
    let proof = kit.deadheat(["doctor", "--full", &server_line(&["--json"])]).args(SHORT);
    let mut running = proof.json_to("out.json").spawn();
    let kept = kit.path().join("out.json");
    running.wait_for("what is kept after the first race", || kept.exists());
    let json = running.kill_9().json();
    assert_eq!((&json["schema"], &json["interrupted"]), (&"deadheat.doctor/1".into(), &true.into()));
    assert!(!json["proof"]["results"].as_array().unwrap().is_empty());
}

#[test]
fn wrong_usage_is_told_before_anything_is_measured() {
    let kit = kit();
    for wrong in [
        "--quick --full",
        "--races 3",
        "--quick x",
        "--server-cpus 9999",
        "--json no/such/folder/x",
        "--full --races 0",
    ] {
        kit.deadheat(["doctor"]).args(wrong.split(' ')).run().assert_status(2);
    }
    let outcome = kit.deadheat(["doctor", "x", "--url", "http://example.org/"]).run();
    outcome.assert_status(2).assert_stderr_has("not this machine's loopback");
}

#[test]
fn a_command_that_is_no_server_is_told() {
    let (kit, _turn) = (kit(), turn());
    let outcome = kit.deadheat(["doctor", "echo gone; exit 7"]).args(SHORT).run();
    outcome.assert_status(2).assert_stderr_has("gone").assert_stderr_has("by hand");
    outcome.assert_stdout_has("ceiling");
    kit.assert_nothing_left();
}
