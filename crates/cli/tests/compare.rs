//! Two records compared from the command line, and the exit statuses of `--fail-if`.
#![allow(clippy::unwrap_used)]

use deadheat_testkit::{Kit, Outcome, SHORT_RACE, TestServer, server_line, turn};
use serde_json::{Value, json};

use crate::common::{assert_measured, is_disturbed, kit, undisturb, undisturbed};

/// Records a short race between an unchanged contender and a service that computes for `spin_us` in each request. These tests are not
/// about busy machines, so the record loses its disturbances.
fn record(kit: &Kit, file: &str, spin_us: &str) {
    let race = kit
        .race()
        .contender("limit", &server_line(&["--json", "--spin-us", "100"]))
        .contender("api", &server_line(&["--json", "--spin-us", spin_us]))
        .args(SHORT_RACE);
    let outcome = race.args(["--metric", "throughput,cpu", "--record", file]).run();
    assert_measured(&outcome, &outcome.json());
    undisturb(kit, file);
}

fn assert_valid(document: &Value) {
    crate::common::assert_valid(document, include_str!("../../record/schema/compare-1.schema.json"));
}

/// The change in the CPU time that `api` needs for each request. Unlike throughput, it does not depend on other programs.
fn of_api(document: &Value) -> &Value {
    let changes = document["scenarios"][0]["changes"].as_array().unwrap();
    changes.iter().find(|one| one["contender"] == "api" && one["metric"] == "cpu").unwrap()
}

/// A record is the only copy of what was measured.
#[test]
fn no_output_replaces_a_record_or_another_output() {
    let kit = kit();
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/ssr/kept/warmed.jsonl.gz");
    let bytes = std::fs::read(kept).unwrap();
    let record = kit.path().join("kept.jsonl");
    std::fs::write(&record, &bytes).unwrap();
    let report = |words: &[&str]| kit.deadheat(["report", "kept.jsonl"]).args(words).run();
    for (words, wrong) in [
        (&["--markdown", "./kept.jsonl"][..], "--markdown ./kept.jsonl would replace the record"),
        (&["--json", "a", "--html", "a"], "--json a would replace what --html writes"),
    ] {
        let outcome = report(words);
        assert_eq!(outcome.status(), Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(wrong), "{outcome:?}");
    }
    let both = kit.deadheat(["compare", "kept.jsonl", "kept.jsonl", "--json", "kept.jsonl"]).run();
    assert!(both.stderr.contains("would replace the record"), "{both:?}");
    assert_eq!(std::fs::read(&record).unwrap(), bytes);
    assert!(!kit.path().join("a").exists());
    assert_eq!(
        report(&["--json", "/dev/null", "--html", "/dev/null"]).status(),
        Some(0),
        "devices keep nothing"
    );
}

/// A service that needs 1.9 ms more for each request is slower by far more than 3 % on any machine.
#[test]
fn a_pull_request_that_made_the_service_slower_fails() {
    let (kit, _turn) = (kit(), turn());
    for (file, spin_us) in [("main.jsonl", "100"), ("branch.jsonl", "2000")] {
        record(&kit, file, spin_us);
    }
    let compare = |arguments: &[&str]| {
        kit.deadheat(["compare", "main.jsonl", "branch.jsonl", "--contender", "api"]).args(arguments).run()
    };
    let failed = compare(&["--fail-if", "cpu slower by 3%", "--json", "out.json", "--markdown", "out.md"]);
    failed
        .assert_status(1)
        .assert_stdout_has("fail if 'cpu slower by 3%': holds: api")
        .assert_stdout_has("measured-apart");
    let document: Value = serde_json::from_str(&kit.read("out.json")).unwrap();
    assert_valid(&document);
    assert_eq!(of_api(&document)["verdict"], "slower");
    assert!(of_api(&document)["low"].as_f64().unwrap() > 1.03);
    assert_eq!(document["conditions"][0]["holds"], true);
    assert!(kit.read("out.md").contains("| `api` | throughput |"), "{}", kit.read("out.md"));
    compare(&[]).assert_status(0);
    compare(&["--fail-if", "cpu faster", "--fail-if", "cpu slower by 9000%"]).assert_status(0);
    compare(&["--fail-if", "cpu faster", "--fail-if", "cpu maybe slower by 3%"]).assert_status(1);
    let divided = compare(&["--reference", "limit", "--fail-if", "cpu slower by 3%", "--markdown"]);
    divided.assert_status(1).assert_stderr_has("each epoch divided by limit");
    assert!(divided.stdout.starts_with("### deadheat: `branch.jsonl` against `main.jsonl`\n"), "{divided}");
    let turned = kit
        .deadheat([
            "compare",
            "branch.jsonl",
            "main.jsonl",
            "--reference",
            "limit",
            "--fail-if",
            "cpu slower",
        ])
        .args(["--json", "-"])
        .run();
    turned.assert_status(0);
    let document: Value = serde_json::from_str(&turned.stdout).unwrap();
    assert_valid(&document);
    assert_eq!((&document["reference"], &of_api(&document)["verdict"]), (&"limit".into(), &"faster".into()));
    let same = kit.deadheat(["compare", "main.jsonl", "main.jsonl", "--fail-if", "slower"]).run();
    same.assert_status(3).assert_stdout_has("same-record");
}

#[test]
fn the_summary_of_a_workflow_is_appended_to_and_other_files_are_replaced() {
    let kit = kit();
    kit.file("race.json", include_str!("../../record/tests/fixtures/example.json"));
    let summary = kit.file("summary.md", "before\n");
    let run = |file: &str| {
        let call = kit.deadheat(["compare", "race.json", "race.json", "--markdown", file]);
        let outcome = call.env("GITHUB_STEP_SUMMARY", &summary).run();
        assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}");
    };
    run(summary.to_str().unwrap());
    run(summary.to_str().unwrap());
    let text = kit.read("summary.md");
    assert!(text.starts_with("before\n### deadheat: "), "{text}");
    assert_eq!(text.matches("### deadheat: ").count(), 2, "{text}");
    kit.file("other.md", "before\n");
    run("other.md");
    assert!(kit.read("other.md").starts_with("### deadheat: "));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let kit = kit();
    kit.file("race.json", include_str!("../../record/tests/fixtures/example.json"));
    kit.file(
        "other.json",
        include_str!("../../record/tests/fixtures/example.json").replace("\"bun\"", "\"bun2\""),
    );
    let refused = |arguments: &[&str], said: &[&str]| {
        let outcome = kit.deadheat(["compare"]).args(arguments).run();
        outcome.assert_status(2);
        assert_eq!(outcome.stdout, "", "{outcome}");
        for text in said {
            outcome.assert_stderr_has(text);
        }
    };
    refused(&["race.json", "absent.json"], &["absent.json"]);
    refused(&["race.json", "race.json", "--contender", "x"], &["--contender x", "node, bun"]);
    refused(
        &["race.json", "other.json", "--reference", "bun2"],
        &["--reference bun2: not in race.json", "node, bun"],
    );
    refused(&["race.json", "race.json", "--fail-if", "slower by 3"], &["--fail-if", "word 3 is `3`"]);
    refused(&["race.json", "race.json", "--metric", "cpu", "--fail-if", "p99 slower"], &["--metric"]);
    refused(&["race.json", "race.json", "--json", "-", "--markdown", "-"], &["give one of them a file"]);
    let mapped =
        kit.deadheat(["compare", "race.json", "other.json", "--map", "bun=bun2", "--json", "-"]).run();
    let document: Value = serde_json::from_str(&mapped.stdout).unwrap();
    assert_eq!(document["scenarios"][0]["changes"].as_array().unwrap().len(), 10);
}

#[test]
fn two_loads_give_no_verdict() {
    let (kit, _turn) = (kit(), turn());
    let server = TestServer::start(&["--json"]);
    let url = format!("http://127.0.0.1:{}/x", server.port());
    for file in ["a.json", "b.json"] {
        kit.deadheat(["load", "-d", "300ms", "-c", "2", "--json", file, &url]).run();
    }
    let outcome = kit.deadheat(["compare", "a.json", "b.json", "--json", "-"]).run();
    assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}");
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_valid(&document);
    assert_eq!(document["kind"], "loads");
    outcome.assert_stderr_has("one-run-each").assert_stderr_has("deadheat race");
    let asked = kit.deadheat(["compare", "a.json", "b.json", "--fail-if", "slower"]).run();
    asked.assert_status(2).assert_stderr_has("one run each");
    kit.file("race.json", include_str!("../../record/tests/fixtures/example.json"));
    let mixed = kit.deadheat(["compare", "a.json", "race.json"]).run();
    mixed.assert_status(2).assert_stderr_has("compare two races, or two loads");
}

/// The race is complete, so deadheat only shows it again, and its status does not depend on the machine.
#[test]
fn conditions_decide_the_status_of_a_race() {
    let kit = kit();
    kit.file("race.json", include_str!("../../record/tests/fixtures/example.json"));
    let race = |conditions: &[&str]| {
        let conditions = conditions.iter().flat_map(|one| ["--fail-if", *one]);
        kit.deadheat(["race", "--resume", "race.json"]).args(conditions).run()
    };
    race(&["faster by 3%"])
        .assert_status(1)
        .assert_stdout_has("fail if 'faster by 3%': holds: bun in closed-64");
    race(&["slower", "throughput maybe faster by 3%"]).assert_status(1);
    race(&["slower", "faster by 90%", "inconclusive"])
        .assert_status(0)
        .assert_stdout_has("'slower': does not hold");
    race(&["cpu slower"]).assert_status(2).assert_stderr_has("race with --metric cpu");
}

/// With 500 requests in each epoch, only five are slower than p99. A race of p99 alone therefore has no verdict, and a condition on p99 is
/// unknown. Neither passes.
#[test]
fn what_could_not_be_compared_does_not_pass() {
    let kit = kit();
    let few = |file: &str, metrics: &[&str]| {
        let example = include_str!("../../record/tests/fixtures/example.json");
        let mut document: Value = serde_json::from_str(example).unwrap();
        let record = &mut document["record"];
        record["plan"]["scenarios"][0]["metrics"] = json!(metrics);
        for epoch in record["epochs"].as_array_mut().unwrap() {
            for part in epoch["contenders"].as_array_mut().unwrap() {
                part["completions"] = 500.into();
            }
        }
        kit.file(file, document.to_string());
    };
    few("both.json", &["throughput", "p99"]);
    let race = |file: &str, conditions: &[&str]| {
        let conditions = conditions.iter().flat_map(|one| ["--fail-if", *one]);
        kit.deadheat(["race", "--resume", file]).args(conditions).run()
    };
    race("both.json", &["p99 slower by 10%"]).assert_status(3).assert_stdout_has(
        "fail if 'p99 slower by 10%': unknown, because there is no valid comparison: bun in closed-64 (p99)",
    );
    race("both.json", &["slower by 10%"]).assert_status(3).assert_stdout_has(
        "fail if 'slower by 10%': unknown, because there is no valid comparison: bun in closed-64 (p99)",
    );
    race("both.json", &["throughput slower by 3%"]).assert_status(0);
    few("p99.json", &["p99"]);
    race("p99.json", &[]).assert_status(3).assert_stdout_has("metric-unavailable");
}

/// The example as a race of fresh starts, with the start times of `bun` multiplied by `times`.
fn starts(kit: &Kit, file: &str, times: f64) {
    let example = include_str!("../../record/tests/fixtures/example.json");
    let mut document: Value = serde_json::from_str(example).unwrap();
    let record = &mut document["record"];
    record["started_unix_ms"] = (1_764_000_000_000 + (times * 1e6) as u64).into();
    record["plan"]["scenarios"][0]["shape"] = json!({ "kind": "starts", "starts": 6 });
    record["plan"]["scenarios"][0]["metrics"] = json!(["cold_start"]);
    for epoch in record["epochs"].as_array_mut().unwrap() {
        let number = epoch["number"].as_u64().unwrap();
        epoch["rounds"].as_array_mut().unwrap().truncate(1);
        epoch["rounds"][0]["slices"] = json!([]);
        let bun = &mut epoch["contenders"][1]["cold_start_ns"];
        *bun = ((bun.as_f64().unwrap() * times * (1.0 + 0.003 * (number % 3) as f64)) as u64).into();
    }
    kit.file(file, document.to_string());
}

#[test]
fn fresh_starts_are_compared_and_asked_for() {
    let kit = kit();
    starts(&kit, "main.json", 1.0);
    starts(&kit, "branch.json", 1.3);
    let compare = |arguments: &[&str]| {
        kit.deadheat(["compare", "main.json", "branch.json", "--contender", "bun"]).args(arguments).run()
    };
    compare(&["--fail-if", "cold_start slower by 5%"])
        .assert_status(1)
        .assert_stdout_has("bun is slower: 1.30x the cold start it had")
        .assert_stdout_has("fail if 'cold_start slower by 5%': holds: bun in closed-64 (cold_start)");
    compare(&["--metric", "cold_start", "--fail-if", "faster"]).assert_status(0);
    compare(&["--metric", "p99"]).assert_status(2).assert_stderr_has("which has cold_start");
    compare(&["--fail-if", "p99 slower"])
        .assert_status(2)
        .assert_stderr_has("which has cold_start")
        .assert_stderr_has("choose one of these");
    let race =
        |condition: &str| kit.deadheat(["race", "--resume", "branch.json", "--fail-if", condition]).run();
    race("cold_start slower by 5%")
        .assert_status(1)
        .assert_stdout_has("holds: bun in closed-64 (cold_start)");
    race("cold_start faster").assert_status(0);
    race("p99 slower")
        .assert_status(2)
        .assert_stderr_has("does not compare p99; it compares cold_start")
        .assert_stderr_has("name one of these in the condition");
}

/// `--baseline` names the baseline, and the conditions apply to the other contender.
#[test]
fn a_race_fails_if_a_contender_is_worse_than_the_baseline() {
    let (kit, _turn) = (kit(), turn());
    let race_of = |spins: [&str; 2], more: &[&str]| {
        let [one, two] = spins.map(|spin| server_line(&["--json", "--spin-us", spin]));
        let race = kit.race().contender("one", &one).contender("two", &two);
        // Longer than other races of tests: beside other programs, a slice of 10 ms may hold a handful of requests.
        let race = race.args(["--epochs", "3", "--warmup", "20ms", "--measure", "160ms", "--slice", "20ms"]);
        race.args(["-c", "8", "--baseline", "two"]).args(more).run()
    };
    let race =
        |spins: [&str; 2], more: &[&str]| race_of(spins, &[more, &["--metric", "throughput,cpu"]].concat());
    // A disturbed race exits with 3. `again` removes the disturbances and then checks the CPU time of each request.
    let ended = |outcome: &Outcome, measured: i32| {
        let disturbed = is_disturbed(&outcome.json()["scenarios"][0]);
        outcome.assert_status(if disturbed { 3 } else { measured });
    };
    let again = |file: &str, conditions: &[&str]| {
        let pair = undisturbed(&kit, file)["scenarios"][0]["comparisons"][1].clone();
        assert_eq!(pair["metric"], "cpu");
        assert_eq!((&pair["baseline"], &pair["contender"]), (&"two".into(), &"one".into()));
        let conditions = conditions.iter().flat_map(|one| ["--fail-if", *one]);
        (pair["verdict"].clone(), kit.deadheat(["race", "--resume", file]).args(conditions).run())
    };
    let slower = race(["1600", "50"], &["--fail-if", "cpu slower by 3%", "--record", "slower.jsonl"]);
    ended(&slower, 1);
    let (verdict, told) = again("slower.jsonl", &["cpu slower by 3%"]);
    assert_eq!(verdict, "slower");
    told.assert_status(1).assert_stdout_has("fail if 'cpu slower by 3%': holds: one in ");
    let conditions = ["cpu slower by 3%", "cpu maybe slower by 3%"];
    let asked = conditions.iter().flat_map(|one| ["--fail-if", *one]);
    let faster =
        race(["50", "1600"], &[asked.collect::<Vec<_>>(), vec!["--record", "faster.jsonl"]].concat());
    ended(&faster, 0);
    let (verdict, told) = again("faster.jsonl", &conditions);
    assert_eq!(verdict, "faster");
    told.assert_status(0).assert_stdout_has("fail if 'cpu slower by 3%': does not hold");
    let asked: Vec<_> =
        faster.json()["conditions"].as_array().unwrap().iter().map(|one| one["condition"].clone()).collect();
    assert_eq!(asked, conditions, "those of the race, in the order given");
    let race = race_of;
    let before = race(["0", "0"], &["--fail-if", "p99 slower", "--record", "never.jsonl"]);
    before.assert_status(2).assert_stderr_has("race with --metric p99");
    let few = ["--rate", "4000", "--fail-if", "p99 slower", "--record", "never.jsonl"];
    race(["0", "0"], &few)
        .assert_status(2)
        .assert_stderr_has("p99 needs 100 requests beyond it in each epoch")
        .assert_stderr_has("--measure");
    let unnamed = ["--rate", "4000", "--fail-if", "slower", "--record", "never.jsonl"];
    race(["0", "0"], &unnamed)
        .assert_status(2)
        .assert_stderr_has("p99 needs 100 requests beyond it in each epoch")
        .assert_stderr_has("name a metric in the condition, as in 'p50 slower by 10%'");
    assert!(!kit.path().join("never.jsonl").exists(), "nothing begins that cannot answer");
}
