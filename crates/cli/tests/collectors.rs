//! Pauses of garbage collectors. deadheat measures them in a separate start with logging on, and measures nothing else in that start. The
//! tests use a stand-in that writes log lines like those of Go's runtime, and the real runtimes.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use deadheat_testkit::{Kit, Outcome, SHORT_RACE, quote, server_line, skip_loudly, turn};
use serde_json::Value;

use crate::common::{assert_measured, kit};

fn contender(name: &str, command: &str, more: &str) -> String {
    format!("[[contender]]\nname = \"{name}\"\ncommand = {}\n{more}\n", Value::from(command))
}

/// A server that logs a collection every 20 ms if `GODEBUG` turns that log on.
fn collecting() -> String {
    let line = "gc 7 @0.1s 0%: 0.25+1.5+0.75 ms clock, 1+0/1/1+1 ms cpu, 4->4->1 MB, 4 MB goal, 2 P";
    let log = format!("(while sleep 0.02; do echo '{line}' >&2; done) &");
    format!("case \"$GODEBUG\" in *gctrace=1*) {log} ;; esac; exec {}", server_line(&["--json"]))
}

fn race(kit: &Kit, collectors: &str) -> Outcome {
    let run = kit.deadheat(["race", ".", "--record", "r.jsonl", "--collectors", collectors]).args(SHORT_RACE);
    // Some twenty starts, of runtimes that take seconds on a busy machine.
    run.args(["--json", "r.json", "--ready-timeout", "150s"]).limit(Duration::from_secs(900)).run()
}

fn document(kit: &Kit, outcome: &Outcome) -> Value {
    let document = serde_json::from_str(&kit.read("r.json")).unwrap();
    assert_measured(outcome, &document);
    document
}

/// Codes of findings about collectors, each with its contender.
fn complaints(document: &Value) -> Vec<(String, String)> {
    let all = document["scenarios"][0]["findings"].as_array().unwrap().iter();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let all = all.map(|one| (text(one, "code"), text(one, "contender")));
    all.filter(|(code, _)| ["collector-silent", "collector-unseen"].contains(&code.as_str())).collect()
}

#[test]
fn pauses_are_counted_with_logging_on_and_epochs_know_nothing_of_it() {
    let (kit, _turn) = (kit(), turn());
    let dying = format!("case \"$GODEBUG\" in *gctrace*) exit 7 ;; esac; exec {}", server_line(&["--json"]));
    let study = [
        contender("collecting", &collecting(), "collector = \"go\"\nenv = { GODEBUG = \"madvdontneed=1\" }"),
        contender("silent", &server_line(&["--json"]), "collector = \"go\""),
        contender("dying", &dying, "collector = \"go\""),
        contender("without", &server_line(&["--json"]), ""),
        "[[probe]]\npath = \"/\"\n".to_owned(),
    ];
    kit.file("study.toml", study.concat());
    let outcome = race(&kit, "2s");
    let document = document(&kit, &outcome);
    let all = document["scenarios"][0]["collectors"].as_array();
    let seen = match all.map(Vec::as_slice) {
        Some([one]) => one,
        other => panic!("{other:?}\n{outcome}"),
    };
    assert_eq!((seen["contender"].as_str(), seen["kind"].as_str()), (Some("collecting"), Some("go")));
    let count = seen["pauses"].as_u64().unwrap();
    assert!(count >= 4 && count.is_multiple_of(2), "two of each line: {seen}");
    assert_eq!(seen["longest_ns"], 750_000);
    let pass = &document["record"]["collectors"][0];
    assert_eq!(pass["pauses"]["total_ns"].as_u64(), Some(count / 2 * 1_000_000), "{pass}");
    assert_eq!(&pass["pauses"]["each_ns"].as_array().unwrap()[..2], [250_000, 750_000]);
    assert!(
        pass["requests"].as_u64().unwrap() > 0 && pass["load_ns"].as_u64().unwrap() >= 1_800_000_000,
        "{pass}"
    );
    let who = |code: &str, name: &str| (code.to_owned(), name.to_owned());
    assert_eq!(complaints(&document), [who("collector-silent", "silent"), who("collector-unseen", "dying")]);
    assert_eq!(
        document["scenarios"][0]["results"].as_array().unwrap().len(),
        4,
        "all contenders stay in the race"
    );
    let log = Path::new(pass["log"].as_str().unwrap()).to_owned();
    let logs: Vec<PathBuf> = std::fs::read_dir(kit.path().join(log.parent().unwrap()))
        .unwrap()
        .map(|one| one.unwrap().path())
        .collect();
    assert!(logs.len() > 8, "{logs:?}");
    for path in logs {
        let logged = std::fs::read_to_string(&path).unwrap().contains("ms clock");
        assert_eq!(logged, path.ends_with(log.file_name().unwrap()), "{}", path.display());
    }
    assert!(outcome.stdout.contains("from a separate diagnostic pass"), "{outcome}");
    kit.assert_nothing_left();
}

#[test]
fn a_race_that_is_killed_in_the_pass_goes_on_with_what_is_left_of_it() {
    let (kit, _turn) = (kit(), turn());
    let watched = |name: &str, command: &str| contender(name, command, "collector = \"go\"");
    // In its logging pass, the second contender does not start until the file `go` exists.
    let held = "case \"$GODEBUG\" in *gctrace=1*) while [ ! -e go ]; do sleep 0.02; done ;; esac; ";
    let study = [watched("a", &collecting()), watched("b", &(held.to_owned() + &collecting()))].concat();
    kit.file("study.toml", study + "[[probe]]\npath = \"/\"\n");
    let record = kit.path().join("r.jsonl");
    let starting = |kind: &str| {
        let text = std::fs::read_to_string(&record).unwrap_or_default();
        let start = format!("{{\"line\":\"{kind}\"");
        text.lines().filter(|line| line.starts_with(&start)).map(str::to_owned).collect::<Vec<_>>()
    };
    let run = kit.deadheat(["race", ".", "--record", "r.jsonl", "--collectors", "1s"]).args(SHORT_RACE);
    let mut running = run.args(["--ready-timeout", "150s"]).spawn();
    running.wait_for("the first of two passes", || !starting("collector").is_empty());
    running.kill_9();
    kit.file("go", "");
    let (first, epochs) = (starting("collector"), starting("epoch"));
    assert_eq!((first.len(), starting("scenario").len()), (1, 0));
    let resumed = kit.deadheat(["race", "--resume", "r.jsonl", "--json", "r.json"]);
    let resumed = resumed.run();
    let document = document(&kit, &resumed);
    let later = starting("epoch");
    assert_eq!(later[..epochs.len()], epochs, "what was measured is kept");
    // If other programs disturbed every epoch, nothing was decided, and the resumed race measures again.
    let decided = epochs.iter().any(|epoch| !all_dropped(epoch));
    assert!(later.len() == epochs.len() || !decided, "what is decided is not measured again");
    let passes = starting("collector");
    assert_eq!((passes.len(), &passes[0]), (2, &first[0]));
    let names: Vec<&Value> =
        document["record"]["collectors"].as_array().unwrap().iter().map(|one| &one["contender"]).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(document["complete"], true);
    kit.assert_nothing_left();
}

/// Whether other programs disturbed every round of an epoch.
fn all_dropped(epoch: &str) -> bool {
    let epoch: Value = serde_json::from_str(epoch).unwrap();
    epoch["rounds"].as_array().unwrap().iter().all(|round| round["dropped"].is_string())
}

#[test]
fn collectors_that_nobody_has_cannot_be_watched() {
    let kit = kit();
    let server = server_line(&["--json"]);
    kit.file(
        "study.toml",
        [contender("a", &server, ""), contender("b", &server, "")].concat() + "[[probe]]\npath = \"/\"\n",
    );
    let outcome = kit.deadheat(["race", ".", "--collectors", "1s"]).run();
    outcome.assert_status(2).assert_stderr_has("--collectors: ").assert_stderr_has("`javascriptcore`");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The same server on every runtime that this machine has: name, command, collector.
fn runtimes(kit: &Kit) -> Vec<(&'static str, String, &'static str)> {
    let server = quote(root().join("bench/servers/server.mjs").to_str().unwrap());
    let of_studies = |name: &str| {
        Some(root().join("studies/trending/node_modules/.bin").join(name)).filter(|path| path.exists())
    };
    let mut all = Vec::new();
    for (name, arguments, kind) in [
        ("node", "", "v8"),
        (
            "deno",
            " run --quiet --no-config --no-lock --no-remote --no-npm --no-prompt --allow-net --allow-env",
            "v8",
        ),
        ("bun", "", "javascriptcore"),
    ] {
        if let Some(path) = of_studies(name) {
            all.push((name, format!("exec {}{arguments} {server}", quote(path.to_str().unwrap())), kind));
        }
    }
    let binary = kit.path().join("go-server");
    let mut build = Command::new("go");
    build
        .args(["build", "-buildvcs=false", "-trimpath", "-o"])
        .arg(&binary)
        .arg(".")
        .current_dir(root().join("bench/servers/go"));
    if build.status().is_ok_and(|status| status.success()) {
        all.push(("go", format!("exec {}", quote(binary.to_str().unwrap())), "go"));
    }
    all
}

#[test]
fn every_runtimes_own_log_is_read() {
    let (kit, _turn) = (kit(), turn());
    let runtimes = runtimes(&kit);
    if runtimes.len() < 4 {
        skip_loudly!("only {} of 4 runtimes are here: run `make setup`, and install Go", runtimes.len());
    }
    let text: Vec<String> = runtimes
        .iter()
        .map(|(name, command, kind)| contender(name, command, &format!("collector = \"{kind}\"")))
        .collect();
    kit.file("study.toml", text.concat() + "[[probe]]\npath = \"/\"\n");
    let outcome = race(&kit, "3s");
    let document = document(&kit, &outcome);
    assert_eq!(complaints(&document), [], "{outcome}");
    let all = document["record"]["collectors"].as_array().unwrap();
    assert_eq!(all.len(), runtimes.len(), "{outcome}");
    for pass in all {
        let number = |key: &str| pass["pauses"][key].as_u64().unwrap();
        let (count, total, longest) = (number("count"), number("total_ns"), number("longest_ns"));
        assert!(count > 0 && total >= longest && longest > 0, "{pass}");
        assert!(longest < 1_000_000_000, "each pause is shorter than a second: {pass}");
    }
    kit.assert_nothing_left();
}
