//! Races over TLS, with the certificate that deadheat makes for each race: from the command line or a study to the record and the exit
//! status. Also the messages when only one side speaks TLS.

use deadheat_testkit::{Kit, Outcome, SHORT_RACE, server_line, turn};
use serde_json::{Value, json};

fn kit() -> Kit {
    Kit::new(env!("CARGO_BIN_EXE_deadheat"))
}

/// The command of a server that uses the certificate from deadheat.
fn secured(more: &[&str]) -> String {
    server_line(&[&["--json", "--tls-cert", "{cert}", "--tls-key", "{key}"], more].concat())
}

/// Checks that the race was measured: status 3 if a finding makes the result invalid, as on a busy machine, and otherwise 0.
fn assert_measured(outcome: &Outcome) {
    let findings = outcome.json()["scenarios"].as_array().unwrap().clone();
    let mut findings = findings.iter().flat_map(|one| one["findings"].as_array().unwrap());
    let expected = if findings.any(|one| one["severity"] == "invalid") { 3 } else { 0 };
    outcome.assert_status(expected);
}

fn assert_valid(document: &Value) {
    let schema: Value =
        serde_json::from_str(include_str!("../../record/schema/record-1.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// The results of each contender in each epoch of a scenario.
fn parts<'d>(document: &'d Value, scenario: &str) -> impl Iterator<Item = &'d Value> {
    let epochs = document["record"]["epochs"].as_array().unwrap();
    let of_scenario = epochs.iter().filter(move |epoch| epoch["scenario"] == scenario);
    of_scenario.flat_map(|epoch| epoch["contenders"].as_array().unwrap())
}

/// Checks that every request of a scenario got a correct answer. Returns the number of answers, and how many of them ended a connection.
fn answered(document: &Value, scenario: &str) -> (u64, u64) {
    parts(document, scenario).fold((0, 0), |(answers, closed), part| {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let (ok, done) = (number(&part["outcomes"]["ok"]), number(&part["completions"]));
        assert_eq!(ok, done, "{part}");
        assert!(done > 0, "{part}");
        (answers + done, closed + number(&part["closed_by_server"]))
    })
}

#[test]
fn two_commands_race_over_tls() {
    let (kit, _turn) = (kit(), turn());
    let race = kit.race().url("https://127.0.0.1:{port}/x").contender("plain", &secured(&[]));
    // Also beside other programs, the slow one answers less.
    let race = race.contender("slowed", &secured(&["--spin-us", "5000"])).args(&SHORT_RACE[..6]);
    let outcome = race.args(["--measure", "200ms", "--slice", "20ms", "-c", "8"]).run();
    assert_measured(&outcome);
    outcome.assert_stdout_has("8 connections, over TLS");
    let document = outcome.json();
    assert_valid(&document);
    let plan = &document["record"]["plan"];
    assert_eq!(plan["scenarios"][0]["traffic"], json!({ "tls": true }));
    let (answers, closed) = answered(&document, "steady");
    assert!(answers > 100 && closed == 0, "{answers} {closed}");
    let pilot = &document["record"]["pilots"][0];
    assert!(pilot["ceiling_rps"].as_f64().unwrap() > 0.0, "the null server speaks TLS, too: {pilot}");
    assert!(pilot["contenders"][0]["handicap"].is_object(), "{pilot}");
    let done = |place: usize| {
        parts(&document, "steady")
            .filter(|part| part["contender"] == place)
            .filter_map(|part| part["completions"].as_u64())
            .sum::<u64>()
    };
    assert!(done(1) < done(0), "slices are as long for both: {} {}", done(0), done(1));
    let again = document["reproduce"].as_str().unwrap_or_default();
    assert!(again.contains("https://127.0.0.1:{port}/x"), "{again}");
    let work = plan["work"].as_str().unwrap();
    assert!(
        !std::fs::exists(work).unwrap(),
        "certificate and key end with the race, and the folder with them"
    );
    kit.assert_nothing_left();
}

/// CERT and KEY are empty in plain HTTP scenarios. A contender with `tls = false` takes part only in those.
#[test]
fn a_study_races_in_plain_over_tls_and_with_a_connection_for_each_request() {
    let (kit, _turn) = (kit(), turn());
    let server =
        format!("exec {} ${{CERT:+--tls-cert \"$CERT\" --tls-key \"$KEY\"}}", server_line(&["--json"]));
    let contender = |name: &str, more: &str| {
        format!("[[contender]]\nname = \"{name}\"\ncommand = {}\n{more}\n", Value::from(server.as_str()))
    };
    let close = "[[probe]]\nname = \"close\"\npath = \"/x\"\nrequest_headers = { connection = \"close\" }\n";
    let scenario =
        |name: &str, more: &str| format!("[[scenario]]\nname = \"{name}\"\nconnections = 8\n{more}\n");
    let study = [
        contender("a", ""),
        contender("b", ""),
        contender("c", "tls = false"),
        "[[probe]]\nname = \"stay\"\npath = \"/x\"\n".to_owned(),
        close.to_owned(),
        scenario("plain", "requests = [\"stay\"]"),
        scenario("secured", "requests = [\"stay\"]\ntls = true"),
        scenario("anew", "requests = [\"close\"]\ntls = true"),
        "[[scenario]]\nname = \"starts\"\nstarts = 20\ntls = true\n".to_owned(),
    ];
    kit.file("study.toml", study.concat());
    let checked = kit.deadheat(["check", "."]).run();
    checked.assert_status(0).assert_stdout_has("3 of 3 contenders meet the contract");
    let outcome = kit.deadheat(["race", "."]).args(SHORT_RACE[..10].iter()).json_to("race.json").run();
    assert_measured(&outcome);
    outcome.assert_stdout_has("over TLS, a new connection for each request");
    let document = outcome.json();
    assert_valid(&document);
    let scenarios = document["scenarios"].as_array().unwrap();
    let results = |index: usize| {
        let all = scenarios[index]["results"].as_array().unwrap();
        all.iter().map(|one| one["contender"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!([results(0), results(1)], [vec!["a", "b", "c"], vec!["a", "b"]]);
    let (_, closed) = answered(&document, "plain");
    assert_eq!(closed, 0);
    let (_, closed) = answered(&document, "secured");
    assert_eq!(closed, 0);
    let (answers, closed) = answered(&document, "anew");
    assert_eq!(answers, closed, "every answer ends its connection");
    let findings = |index: usize| scenarios[index]["findings"].to_string();
    assert!(!findings(2).contains("no-keep-alive"), "that was asked for: {}", findings(2));
    let starts: Vec<u64> =
        parts(&document, "starts").filter_map(|part| part["cold_start_ns"].as_u64()).collect();
    assert!(starts.len() >= 40 && starts.iter().all(|start_ns| *start_ns > 0), "{starts:?}");
    kit.assert_nothing_left();
}

/// The output of a race in which both contenders run `command` and cannot answer requests with this URL scheme.
fn said(kit: &Kit, scheme: &str, command: &str) -> String {
    let race = kit.race().url(&format!("{scheme}://127.0.0.1:{{port}}/"));
    let race = race.contender("a", command).contender("b", command);
    let outcome = race.args(SHORT_RACE).args(["--ready-timeout", "12s"]).run();
    outcome.assert_status(2);
    kit.assert_nothing_left();
    outcome.stderr.clone() + &outcome.stdout
}

#[test]
fn tls_on_one_side_only_is_told_with_what_to_do() {
    let (kit, _turn) = (kit(), turn());
    let told = said(&kit, "https", &server_line(&[]));
    assert!(
        told.contains("the server does not expect TLS on this port") && told.contains("CERT and KEY"),
        "{told}"
    );
    let told = said(&kit, "http", &server_line(&["--tls"]));
    assert!(
        told.contains("the server expects TLS on this port") && told.contains("https:// in --url"),
        "{told}"
    );
    let told = said(&kit, "https", &server_line(&["--tls"]));
    assert!(told.contains("unknown issuer") && told.contains("the race's certificate"), "{told}");
}

#[test]
fn a_certificate_is_only_made_for_https() {
    let kit = kit();
    let outcome = kit.race().contender("a", &secured(&[])).contender("b", &secured(&[])).run();
    outcome
        .assert_status(2)
        .assert_stderr_has("uses {cert}, but the URL is not https")
        .assert_stderr_has("https://127.0.0.1:{port}/");
}
