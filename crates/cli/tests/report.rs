//! `deadheat report`: every format that it writes, and where the output goes.
#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::time::Duration;

use deadheat_testkit::{Kit, Signal, TestServer, server_line, turn};
use serde_json::Value;

use crate::common::assert_measured;

const RECORD: &str = include_str!("../../record/tests/fixtures/example.json");

fn kit() -> Kit {
    let kit = Kit::new(env!("CARGO_BIN_EXE_deadheat"));
    kit.file("race.json", RECORD);
    kit
}

#[test]
fn a_race_is_written_in_every_form() {
    let kit = kit();
    let all = "--html r.html --markdown r.md --json r.json --csv tables --svg figures --bencher b.json --benchmark-action bench";
    let outcome = kit.deadheat(["report", "race.json"]).args(all.split_whitespace()).run();
    assert_eq!(outcome.assert_status(0).stdout, "");
    assert!(kit.read("r.html").contains("<script type=\"application/json\" id=\"document\">{\"schema\":"));
    assert!(kit.read("r.md").starts_with("## deadheat: The same endpoint everywhere"));
    assert_eq!(kit.read("r.json"), RECORD);
    for file in ["results", "comparisons", "epochs"] {
        assert!(kit.read(format!("tables/{file}.csv")).lines().count() > 1, "{file}");
    }
    let figures = ["ratios", "epochs"].map(|kind| format!("{kind}-closed-64-throughput"));
    let others = ["latency", "time", "cpu", "cold-start"].map(|kind| format!("{kind}-closed-64"));
    for file in figures.iter().chain(&others) {
        assert!(kit.read(format!("figures/{file}.svg")).starts_with("<svg "), "{file}");
    }
    let bencher: Value = serde_json::from_str(&kit.read("b.json")).unwrap();
    assert!(bencher["closed-64/bun"]["throughput"]["lower_value"].as_f64().unwrap() > 10_000.0);
    for (file, slug) in [("bigger", "throughput"), ("smaller", "cpu")] {
        let entries: Value = serde_json::from_str(&kit.read(format!("bench/{file}-is-better.json"))).unwrap();
        assert_eq!(entries[0]["name"], format!("closed-64/node: {slug}"));
    }
}

#[test]
fn without_an_option_it_is_shown_and_one_thing_goes_to_standard_output() {
    let kit = kit();
    kit.deadheat(["report", "race.json"]).run().assert_status(0).assert_stdout_has("bun is 1.51x as fast");
    let page = kit.deadheat(["report", "race.json", "--html", "-"]).run();
    page.assert_status(0);
    assert!(page.stdout.starts_with("<!doctype html>") && page.stdout.ends_with("</html>\n"));
    let two = kit.deadheat(["report", "race.json", "--html", "-", "--markdown", "-"]).run();
    two.assert_status(2).assert_stderr_has("--html and --markdown");
}

/// A full disk is told. A reader that has read enough is not.
#[test]
fn output_that_is_not_taken_is_told_unless_nobody_wants_it() {
    let kit = kit();
    let shell = |line: &str| {
        let mut shell = std::process::Command::new("bash");
        shell.args(["-o", "pipefail", "-c", line, env!("CARGO_BIN_EXE_deadheat")]);
        kit.command(shell).run()
    };
    for to in ["", " --json -", " --markdown -"] {
        shell(&format!("\"$0\" report race.json{to} > /dev/full"))
            .assert_status(2)
            .assert_stderr_has("standard output is incomplete: No space left on device");
        let enough = shell(&format!("\"$0\" report race.json{to} | true"));
        assert_eq!(enough.assert_status(0).stderr, "", "{to}");
    }
}

#[test]
fn a_hit_rate_that_was_asked_for_is_shown_everywhere() {
    let kit = kit();
    let outcome = kit.deadheat(["report", "race.json", "--hit-rate", "80%"]).run();
    outcome
        .assert_status(0)
        .assert_stdout_has("a model of users behind an edge cache: 80 % hits, which take 10.0 ms");
    let json: Value = serde_json::from_str(
        &kit.deadheat(["report", "race.json", "--hit-rate", "0.8", "--json", "-"]).run().stdout,
    )
    .unwrap();
    assert_eq!(json["scenarios"][0]["edge_cache"]["hit_rate"], 0.8);
    assert!(json["reproduce"].as_str().unwrap().contains("--hit-rate 0.8"), "{}", json["reproduce"]);
    // The slider starts at the hit rate in the document.
    let page = kit.deadheat(["report", "race.json", "--hit-rate", "0.8", "--html", "-"]).run();
    page.assert_stdout_has("\"hit_rate\":0.8");
    let without = kit.deadheat(["report", "race.json"]).run();
    assert!(!without.stdout.contains("edge cache"), "{without}");
    let wrong = kit.deadheat(["report", "race.json", "--hit-rate", "92"]).run();
    wrong.assert_status(2).assert_stderr_has("write 0.92 or 92%");
}

#[test]
fn a_page_is_read_like_the_record_that_it_holds() {
    let kit = kit();
    kit.file("hostile.json", RECORD.replace("\"bun\"", "\"</script><script id=x>\""));
    for record in ["race.json", "hostile.json"] {
        kit.deadheat(["report", record, "--html", "page.html"]).run().assert_status(0);
        let json =
            |file: &str| kit.deadheat(["report", file, "--json", "-"]).run().assert_status(0).stdout.clone();
        assert_eq!(json("page.html"), json(record), "{record}");
    }
    let kept = kit.deadheat(["compare", "page.html", "hostile.json", "--json", "-"]).run();
    assert!(matches!(kept.status(), Some(0 | 3)), "{kept}");
    kit.file("page.html", "<!doctype html>\n<p>Nothing was raced.</p>\n");
    kit.deadheat(["report", "page.html"]).run().assert_status(2).assert_stderr_has("not a deadheat record");
}

#[test]
fn the_summary_of_a_workflow_is_appended_to_and_other_files_are_replaced() {
    let kit = kit();
    let summary = kit.file("summary.md", "before\n");
    let run = |file: &str| {
        let call = kit.deadheat(["report", "race.json", "--markdown", file]);
        call.env("GITHUB_STEP_SUMMARY", &summary).run().assert_status(0).stdout.clone()
    };
    run(summary.to_str().unwrap());
    assert!(kit.read("summary.md").starts_with("before\n## deadheat"));
    assert!(run("-").starts_with("## deadheat"), "standard output is standard output");
    kit.file("other.md", "before\n");
    run("other.md");
    assert!(kit.read("other.md").starts_with("## deadheat"));
}

#[test]
fn a_load_is_shown_again() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&["--json"]));
    let load = kit.deadheat(["load", "-n200", "-c2", "-t1", "--json", "load.json", &server.url("/x")]).run();
    assert!(matches!(load.status(), Some(0 | 3)), "{load}");
    let again = kit.deadheat(["report", "load.json"]).run();
    assert_eq!(again.assert_status(0).stdout, load.stdout);
    let json = kit.deadheat(["report", "load.json", "--json", "-"]).run();
    assert_eq!(json.stdout, kit.read("load.json"));
    let page = kit.deadheat(["report", "load.json", "--html", "x.html"]).run();
    page.assert_status(2).assert_stderr_has("--html").assert_stderr_has("of a load");
}

/// A study with the same name as the record's, with the claims of an article.
const STUDY: &str = r#"name = "trending"
[[contender]]
name = "node"
command = "exit 1"
[[contender]]
name = "bun"
command = "exit 1"
[[probe]]
path = "/"
"#;

#[test]
fn an_audit_of_the_same_study_is_shown_beside_the_race() {
    let kit = kit();
    let claim = |metric: &str, value: f64| {
        format!(
            "[[claim]]\nsource = \"article\"\ncontender = \"bun\"\nbaseline = \"node\"\nmetric = \"{metric}\"\nvalue = {value}\n"
        )
    };
    let claims = [claim("throughput_ratio", 1.51), claim("latency_p50_ratio", 7.5), claim("joy_ratio", 2.0)];
    kit.file("study.toml", format!("{STUDY}{}", claims.concat()));
    let line = ["audit", ".", "--record", "race.json", "--no-generators", "--json", "audit.json"];
    kit.deadheat(line).run().assert_status(1);
    let report =
        |arguments: &str| kit.deadheat(["report", "race.json"]).args(arguments.split_whitespace()).run();
    report("--audit audit.json --html r.html --markdown r.md").assert_status(0);
    let page = kit.read("r.html");
    let (_, data) = page.split_once("id=\"document\">").unwrap();
    let embedded: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let audit: Value = serde_json::from_str(&kit.read("audit.json")).unwrap();
    assert_eq!((&embedded["audit"], &embedded["schema"]), (&audit, &"deadheat.record/1".into()));
    let said = audit["here"].as_array().unwrap().iter().map(|one| one["verdict"].as_str().unwrap());
    assert_eq!(said.collect::<Vec<_>>(), ["reproduced", "contradicted", "not-testable"]);
    let text = kit.read("r.md");
    assert!(
        text.contains("\n### Published claims\n") && text.contains("its figures are from `race.json`"),
        "{text}"
    );
    assert!(text.contains("| `throughput_ratio` |") && text.contains("| reproduced |"), "{text}");
    assert!(text.contains("- `joy_ratio` "), "{text}");
    report("--audit audit.json")
        .assert_status(0)
        .assert_stdout_has("bun is 1.51x")
        .assert_stdout_has("reproduced");
    report("--html r.html --markdown r.md").assert_status(0);
    assert!(
        !kit.read("r.html").contains("deadheat.audit/1") && !kit.read("r.md").contains("Published claims")
    );
}

#[test]
fn what_is_no_audit_of_the_same_study_is_refused() {
    let kit = kit();
    kit.file(
        "study.toml",
        format!("{STUDY}[[claim]]\nsource = \"article\"\nmetric = \"connections\"\nvalue = 9\n"),
    );
    kit.deadheat(["audit", ".", "--self-test", "--json", "audit.json"]).run().assert_status(0);
    kit.file("other.json", kit.read("audit.json").replace("\"trending\"", "\"ssr\""));
    let refused = |arguments: &str, said: &[&str]| {
        let outcome = kit.deadheat(["report"]).args(arguments.split_whitespace()).run();
        outcome.assert_status(2);
        for text in said {
            outcome.assert_stderr_has(text);
        }
    };
    let named = [
        "--audit other.json: this audit is of the study ssr, but race.json is of trending",
        "deadheat audit STUDY",
    ];
    refused("race.json --html r.html --audit other.json", &named);
    refused("race.json --html r.html --audit race.json", &["race.json: not an audit", "deadheat.record/1"]);
    refused("race.json --html r.html --audit absent.json", &["absent.json"]);
    refused("race.json --csv tables --audit audit.json", &["none of these outputs shows an audit", "--html"]);
    assert!(!kit.path().join("r.html").exists() && !kit.path().join("tables").exists());
}

/// Splits a command into words as a shell does.
fn words(command: &str) -> Vec<String> {
    let output = Command::new("sh").args(["-c", &format!("printf '%s\\0' {command}")]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// The plan of a record, without the `work` folder, which differs between processes.
fn plan(record: &Value) -> Value {
    let mut plan = record["plan"].clone();
    plan.as_object_mut().unwrap().remove("work");
    plan
}

/// The plan of a command, from the first line of its journal. Interrupts the race after that line.
fn planned<'a>(kit: &Kit, command: impl IntoIterator<Item = &'a str>, journal: &str) -> Value {
    let mut running = kit.deadheat(command).args(["--record", journal]).spawn();
    running.wait_for_lines(&kit.path().join(journal), 1);
    // The first signal may come before the program handles signals. It is lost if the parent process ignores SIGINT.
    while running.signal(Signal::INT) {
        std::thread::sleep(Duration::from_millis(20));
    }
    running.wait();
    plan(&serde_json::from_str(kit.read(journal).lines().next().unwrap()).unwrap())
}

/// The plan of the command that a document gives for racing again.
fn planned_again(kit: &Kit, document: &Value, journal: &str) -> Value {
    let again = words(document["reproduce"].as_str().unwrap());
    assert_eq!(again[..2], ["deadheat", "race"]);
    planned(kit, again[1..].iter().map(String::as_str), journal)
}

#[test]
fn a_race_writes_its_page_and_the_command_that_plans_the_same_again() {
    let (kit, _turn) = (kit(), turn());
    let server = server_line(&["--json"]);
    let race = kit.race().contender("it's one", &server).contender("two", &server);
    let short = ["--epochs", "3", "--warmup", "100ms", "--measure", "200ms", "--slice", "20ms", "-c", "4"];
    let outcome = race
        .args(short)
        .args(["--metric", "throughput,cpu", "--record", "r.jsonl", "--html", "r.html"])
        .run();
    assert_measured(&outcome, &outcome.json());
    assert!(kit.read("r.html").contains("\"contender\":\"two\""));
    let first = outcome.json();
    assert_eq!(planned_again(&kit, &first, "s.jsonl"), plan(&first["record"]));
}

/// A study of three contenders with two load scenarios.
fn study() -> String {
    let command = Value::from(server_line(&["--json"]));
    let contenders = ["one", "two", "three"]
        .map(|name| format!("[[contender]]\nname = \"{name}\"\ncommand = {command}\n"));
    let scenarios =
        "[[scenario]]\nname = \"few\"\nconnections = 3\n[[scenario]]\nname = \"paced\"\nrate = 5000\n";
    format!("{}[[probe]]\npath = \"/\"\n{scenarios}", contenders.concat())
}

#[test]
fn what_is_typed_beside_a_study_is_planned_again() {
    let (kit, _turn) = (kit(), turn());
    kit.file("study.toml", study());
    let load = "-c 9 --metric p99,cpu -r 700 --slice 100ms --measure 1s --timeout 2s --ready-timeout 20s";
    let mut plans = Vec::new();
    for (number, typed) in
        ["", load, "--measure 2s --scenario few", "--slo p99<5ms --only two,three"].iter().enumerate()
    {
        let (journal, again) = (format!("{number}.jsonl"), format!("{number}-again.jsonl"));
        let first = planned(&kit, ["race", "."].into_iter().chain(typed.split_whitespace()), &journal);
        let document = kit.deadheat(["report", &journal, "--json", "-"]).run().json();
        assert_eq!(planned_again(&kit, &document, &again), first, "{typed}: {}", document["reproduce"]);
        plans.push(first);
    }
    // Each option changes the plan.
    assert_eq!(plans[0].get("typed"), None);
    assert_eq!(plans[1]["scenarios"][0]["shape"]["connections"], 9);
    assert_eq!(plans[1]["typed"]["metrics"], serde_json::json!(["p99", "cpu"]));
    assert_eq!(plans[2]["typed"], serde_json::json!({ "measured_ns": 2_000_000_000_u64 }));
    assert_eq!(plans[3]["scenarios"][1]["shape"]["kind"], "peak");
}
