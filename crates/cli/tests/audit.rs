//! Audits from the study file to the exit status, including claims about scenarios without load (starts and measures).
#![allow(clippy::unwrap_used)]

use deadheat_testkit::{SHORT_RACE, server_line, turn};
use serde_json::Value;

use crate::common::{assert_measured, kit};

fn contender(name: &str, command: &str, more: &str) -> String {
    format!("[[contender]]\nname = \"{name}\"\ncommand = {}\n{more}\n", Value::from(command))
}

fn claim(contender: &str, row: &str, metric: &str, figure: &str) -> String {
    let who = if contender.is_empty() { String::new() } else { format!("contender = \"{contender}\"\n") };
    format!(
        "[[claim]]\nsource = \"article\"\n{who}row = \"{row}\"\nmetric = \"{metric}\"\nvalue = {figure}\n"
    )
}

const PROBE: &str = "[[probe]]\npath = \"/\"\n";

/// Claims from an article. One row contradicts itself.
fn claims() -> String {
    [
        claim("", "500", "connections", "500"),
        claim("a", "500", "throughput_rps", "207.76"),
        claim("a", "500", "latency_mean_s", "1.1007"),
        claim("b", "500", "throughput_rps", "253.31"),
        claim("b", "500", "latency_mean_s", "1.9409"),
    ]
    .concat()
}

#[test]
fn a_self_test_runs_nothing_and_ends_with_1_where_figures_contradict_each_other() {
    let kit = kit();
    let dead = |name| contender(name, "touch started; exit 1", "");
    kit.file("study.toml", [dead("a"), dead("b"), PROBE.into(), claims()].concat());
    let line = ["audit", ".", "--self-test", "--json", "audit.json", "--markdown", "audit.md"];
    let outcome = kit.deadheat(line).run();
    outcome.assert_status(1).assert_stdout_has("207.76/s x 1.1007 s = 229 requests in flight, of 500");
    outcome.assert_stdout_has("2 checks against each other: 1 contradictory, 1 sound");
    assert!(!kit.path().join("started").exists() && !kit.path().join("work").exists());
    let read = |name: &str| std::fs::read_to_string(kit.path().join(name)).unwrap();
    assert!(
        read("audit.md").starts_with("# Audit: ") && read("audit.md").contains("**contradicts** `500`, `a`")
    );
    let audit: Value = serde_json::from_str(&read("audit.json")).unwrap();
    let schema: Value =
        serde_json::from_str(include_str!("../../record/schema/audit-1.schema.json")).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&audit));
    assert_eq!(
        (&audit["schema"], audit["checks"].as_array().unwrap().len()),
        (&"deadheat.audit/1".into(), 2)
    );
    let alone = kit.deadheat(["audit", ".", "--self-test", "--json", "-"]).run();
    assert_eq!(alone.json()["checks"], audit["checks"]);
}

#[test]
fn sound_figures_end_with_0_and_a_study_without_figures_is_refused() {
    let kit = kit();
    let two = [contender("a", "exit 1", ""), contender("b", "exit 1", ""), PROBE.into()].concat();
    kit.file("study.toml", &two);
    let outcome = kit.deadheat(["audit", "."]).run();
    outcome.assert_status(2).assert_stderr_has("lists no published figures").assert_stderr_has("[[claim]]");
    let sound = claims().replace("207.76", "454.25");
    kit.file("study.toml", format!("{two}{sound}"));
    kit.deadheat(["audit", ".", "--self-test"]).run().assert_status(0).assert_stdout_has("2 sound");
}

#[test]
fn published_generators_are_measured_against_the_null_server() {
    let (kit, _turn) = (kit(), turn());
    let generator = |name: &str, command: &str, more: &str| {
        format!(
            "[[generator]]\nname = \"{name}\"\nduration = 0.2\ncommand = {}\n{more}\n",
            Value::from(command)
        )
    };
    // The server answers at {url} while the generator runs. The generator here is `deadheat load`.
    let load = format!(
        "'{}' load -c {{connections}} -n 50 --warmup 10ms {{url}} >&2",
        env!("CARGO_BIN_EXE_deadheat")
    );
    // Status 2: there was no server. On a busy machine, a load may be invalid.
    let slow =
        format!("{load}; [ $? -ne 2 ] && test {{connections}} = 500 && echo '{{\"throughput_rps\": 100}}'");
    let study = [
        contender("a", "exit 1", ""),
        contender("b", "exit 1", ""),
        PROBE.into(),
        claims().replace("207.76", "454.25"),
        generator("slow", &slow, ""),
        generator("text", "echo 'Requests/sec: 90000.5'", "reads = \"wrk\"\n"),
        generator("beside", "echo '{\"throughput_rps\": 1}'", "published = false\n"),
        generator("absent", "true", "needs = [{ file = \"none\", remedy = \"make it\" }]\n"),
        generator("mute", "echo hello", ""),
        generator("ends", "[ ! -e ran ] && touch ran && echo '{\"throughput_rps\": 1}'", ""),
    ];
    kit.file("study.toml", study.concat());
    let outcome = kit.deadheat(["audit", ".", "--no-race", "--json", "audit.json"]).run();
    outcome.assert_status(1);
    outcome.assert_stdout_has("cannot have driven 2 of 2 published throughputs");
    let audit: Value =
        serde_json::from_str(&std::fs::read_to_string(kit.path().join("audit.json")).unwrap()).unwrap();
    let of = |place: usize, key: &str| audit["generators"][place][key].clone();
    assert_eq!((of(0, "runs_rps"), of(0, "beyond")), (vec![100.0; 5].into(), vec![1, 3].into()));
    assert_eq!(
        (of(1, "throughput_rps").as_f64().unwrap().round(), of(1, "beyond")),
        (90_001.0, Value::Array(vec![]))
    );
    assert_eq!(of(2, "beyond"), Value::Array(vec![]));
    assert!(of(3, "skipped").as_str().unwrap().contains("make it"), "{}", of(3, "skipped"));
    assert!(of(4, "skipped").as_str().unwrap().contains("printed no throughput"), "{}", of(4, "skipped"));
    // What the first runs reached does not count if a later one fails.
    let failed = ["throughput_rps", "runs_rps", "beyond"].map(|key| of(5, key));
    assert_eq!(failed, [Value::Null, Value::Array(vec![]), Value::Array(vec![])]);
    assert!(of(5, "skipped").is_string(), "{}", of(5, "skipped"));
    kit.assert_nothing_left();
}

/// One race has scenarios of both kinds. The test also passes on a machine that is too noisy for a verdict.
#[test]
fn starts_and_measures_are_raced_and_audited() {
    let (kit, _turn) = (kit(), turn());
    let measures = |value: f64| {
        let command = format!("echo warm; echo '{{\"value\": {value}, \"unit\": \"s\"}}'");
        format!("measures = {{ serialize = {} }}\nartefact = \"study.toml\"\n", Value::from(command))
    };
    let slow = format!("sleep 0.3; exec {}", server_line(&["--json"]));
    let study = [
        contender("a", &server_line(&["--json"]), &measures(0.5)),
        contender("b", &slow, &measures(1.0)),
        PROBE.into(),
        "[[scenario]]\nname = \"starts\"\nstarts = 20\n[[scenario]]\nname = \"own\"\nmeasure = \"serialize\"\n".into(),
        "[[claim]]\nsource = \"article\"\ncontender = \"b\"\nbaseline = \"a\"\nmetric = \"serialize_ratio\"\nvalue = 2.0\n".into(),
        claim("a", "", "cold_start_ms", "10"),
    ];
    kit.file("study.toml", study.concat().replace("row = \"\"\n", ""));
    let outcome =
        kit.deadheat(["race", ".", "--record", "r.jsonl", "--json", "r.json"]).args(SHORT_RACE).run();
    let status = outcome.status();
    let race: Value = serde_json::from_str(&kit.read("r.json")).unwrap();
    assert_measured(&outcome, &race);
    let schema: Value =
        serde_json::from_str(include_str!("../../record/schema/record-1.schema.json")).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&race));
    let (starts, own) = (&race["scenarios"][0], &race["scenarios"][1]);
    let epochs = race["record"]["epochs"].as_array().unwrap();
    let took = |contender: usize| {
        let of = epochs.iter().filter(|epoch| epoch["scenario"] == "starts");
        of.map(|epoch| epoch["contenders"][contender]["cold_start_ns"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert!(took(0).len() >= 20 && took(1).iter().all(|ns| *ns > 300_000_000), "{:?}", took(1));
    assert!(took(0).iter().min() < took(1).iter().min());
    assert_eq!(starts["comparisons"][0]["metric"], "cold_start");
    let size = std::fs::metadata(kit.path().join("study.toml")).unwrap().len();
    assert_eq!(starts["results"][0]["artefact_bytes"], size);
    let measured = |contender: usize| {
        let of = epochs.iter().filter(|epoch| epoch["scenario"] == "own");
        of.map(|epoch| epoch["contenders"][contender]["measured"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert!(measured(0).iter().all(|value| *value == 5e8) && measured(1).iter().all(|value| *value == 1e9));
    assert_eq!(own["comparisons"][0]["metric"], "measure");
    let outcome =
        kit.deadheat(["audit", ".", "--record", "r.jsonl", "--no-generators", "--json", "a.json"]).run();
    assert_eq!(outcome.status(), status, "an audit of a race ends as the race did");
    let audit: Value =
        serde_json::from_str(&std::fs::read_to_string(kit.path().join("a.json")).unwrap()).unwrap();
    assert_eq!(audit["here"].as_array().unwrap().len(), 2);
    assert_eq!(audit["here"][0]["scenario"], "own");
    kit.assert_nothing_left();
}

#[test]
fn the_record_of_another_study_is_refused() {
    let kit = kit();
    kit.file(
        "study.toml",
        [contender("a", "exit 1", ""), contender("b", "exit 1", ""), PROBE.into(), claims()].concat(),
    );
    let record = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/fixtures/example.json");
    let outcome = kit.deadheat(["audit", ".", "--record", record, "--no-generators"]).run();
    outcome.assert_status(2).assert_stderr_has("is of the study");
}

/// A failed race does not interrupt the audit: all its other parts are still there.
#[test]
fn a_race_that_fails_or_ends_early_leaves_the_rest_of_its_audit() {
    let (kit, _turn) = (kit(), turn());
    let good = contender("a", &server_line(&["--json"]), "");
    let generator =
        "[[generator]]\nname = \"g\"\nduration = 0.2\ncommand = \"echo '{\\\"throughput_rps\\\": 900}'\"\n";
    let sound = claims().replace("207.76", "454.25");
    let audited = |other: &str, claims: &str, more: &[&str]| {
        let study = [good.as_str(), contender("b", other, "").as_str(), PROBE, claims, generator].concat();
        kit.file("study.toml", study);
        let all = ["audit", ".", "--json", "audit.json"];
        let of_race = [&SHORT_RACE[..], &["--ready-timeout", "60s"]].concat();
        let short = if more.contains(&"--no-race") { Vec::new() } else { of_race };
        let outcome = kit.deadheat(all.iter().chain(more)).args(short).run();
        let written = std::fs::read_to_string(kit.path().join("audit.json")).unwrap();
        (outcome, serde_json::from_str::<Value>(&written).unwrap())
    };
    let (_, alone) = audited("exit 3", &sound, &["--no-race"]);
    // One contender is left after the parity check: the audit ends with the race's status and still runs the generator.
    let (outcome, audit) = audited(&server_line(&["--body", "other"]), &sound, &[]);
    outcome.assert_status(1).assert_stdout_has("generator g: reaches 900/s");
    assert_eq!(audit["generators"][0]["runs_rps"], Value::from(vec![900.0; 5]));
    assert!(!audit["findings"].to_string().contains("race-failed"), "{}", audit["findings"]);
    assert_eq!(
        audit["generators"][0]["cpus"], alone["generators"][0]["cpus"],
        "the same cores as without a race"
    );
    // A dead contender leaves nothing to race: the audit still compares the claims with each other and runs the generator.
    let (outcome, audit) = audited("exit 3", &claims(), &[]);
    outcome.assert_status(2).assert_stdout_has("229 requests in flight");
    assert_eq!(audit["generators"][0]["runs_rps"], Value::from(vec![900.0; 5]));
    // A race that cannot start is a finding, and the audit prints its error last.
    let (outcome, audit) = audited("exit 3", &claims(), &["--scenario", "none"]);
    assert_eq!(audit["findings"][0]["code"], "race-failed");
    assert_eq!(audit["generators"], Value::Array(vec![]));
    outcome.assert_status(2).assert_stderr_has("--scenario: there is no scenario `none`");
    outcome.assert_stdout_has("229 requests in flight");
    kit.assert_nothing_left();
}

/// An invalid record contradicts no claim, but it confirms none either.
#[test]
fn an_invalid_record_ends_with_3() {
    let kit = kit();
    let dead = |name| contender(name, "exit 1", "");
    let study = |claims: &str| {
        let study = ["name = \"trending\"\n", dead("a").as_str(), dead("b").as_str(), PROBE, claims].concat();
        kit.file("study.toml", study);
    };
    let example = include_str!("../../record/tests/fixtures/example.json");
    let mut record: Value = serde_json::from_str(example).unwrap();
    kit.file("sound.json", example);
    for epoch in record["record"]["epochs"].as_array_mut().unwrap() {
        for round in epoch["rounds"].as_array_mut().unwrap() {
            round["external"]["steal_share"] = 0.09.into();
        }
    }
    kit.file("invalid.json", record.to_string());
    let status = |file: &str| {
        kit.deadheat(["audit", ".", "--no-generators", "--record", file]).run().status().unwrap()
    };
    study(&claims().replace("207.76", "454.25"));
    assert_eq!((status("sound.json"), status("invalid.json")), (0, 3));
    study(&claims());
    assert_eq!((status("sound.json"), status("invalid.json")), (1, 3));
}

/// The contradictions that an audit must find in the shipped studies from their claims alone.
#[test]
fn the_shipped_studies_contradict_themselves_where_their_articles_did() {
    let kit = kit();
    let studies = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let (unsound, sound) = (1, 0);
    for (study, status, found) in [
        ("trending", sound, &["8 checks against each other: 8 sound"][..]),
        ("node-frameworks", sound, &["32 published figures, 0 checks"]),
        ("ssr", unsound, &["500 connections  node       Little's law   229 in flight"]),
        ("compiled", unsound, &["bun           Little's law    240 in flight", "155 failed"]),
        (
            "hello",
            unsound,
            &["node           Little's law  341 in flight", "go             Little's law  318 in flight"],
        ),
        (
            "metadata",
            unsound,
            &["30,000 requests at 58,000/s last 0.517 s, less than", "spread of runs", "0.79 %", "0.85 %"],
        ),
    ] {
        let folder = studies.join(study);
        if !folder.join("study.toml").exists() {
            eprintln!("SKIPPED: studies/{study} is not here");
            continue;
        }
        let outcome = kit.deadheat(["audit", &folder.display().to_string(), "--self-test"]).run();
        outcome.assert_status(status);
        for text in found {
            outcome.assert_stdout_has(text);
        }
    }
}
