//! The studies that ship, with their real runtimes: all contenders meet their contract, and a race that is killed leaves
//! no process behind. If this machine lacks what a study needs, its test is skipped with a message.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deadheat_testkit::{Kit, Signal, descendants, is_alive, leftover_cgroups, skip_loudly, turn, wait_until};

fn study(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(name).canonicalize().unwrap()
}

/// A contender whose needs no set-up installs. If they are missing, only this contender is skipped.
const OPTIONAL: &str = "php-litespeed";

fn contenders(study: &Path) -> Vec<toml::Value> {
    let file: toml::Table = std::fs::read_to_string(study.join("study.toml")).unwrap().parse().unwrap();
    file["contender"].as_array().unwrap().clone()
}

fn name_of(contender: &toml::Value) -> &str {
    contender["name"].as_str().unwrap()
}

/// The first of a contender's needs that this machine lacks.
fn lacking(study: &Path, contender: &toml::Value) -> Option<String> {
    let missing = |need: &&toml::Value| {
        let there = match (need.get("file"), need.get("program")) {
            (Some(file), _) => study.join(file.as_str().unwrap()).exists(),
            (None, program) => {
                let name = program.unwrap().as_str().unwrap();
                let path = std::env::var_os("PATH").unwrap_or_default();
                std::env::split_paths(&path).any(|folder| folder.join(name).exists())
            }
        };
        !there
    };
    contender.get("needs")?.as_array().unwrap().iter().find(missing).map(ToString::to_string)
}

/// What this machine lacks to run the study, or `None`.
fn lacks(study: &Path) -> Option<String> {
    let all = contenders(study);
    all.iter().filter(|one| name_of(one) != OPTIONAL).find_map(|one| lacking(study, one))
}

/// Checks that all contenders of a study meet the contract, with the same build and start as for a user.
fn meets_its_contract(name: &str) {
    let study = study(name);
    if let Some(need) = lacks(&study) {
        skip_loudly!("{name} needs {need}: run `make setup`");
    }
    let all = contenders(&study);
    let skipped: Vec<&str> = all.iter().filter(|one| lacking(&study, one).is_some()).map(name_of).collect();
    let count = all.len() - skipped.len();
    let kit = Kit::new(env!("CARGO_BIN_EXE_deadheat"));
    let _turn = turn();
    let outcome = kit.deadheat(["check", study.to_str().unwrap(), "--ready-timeout", "150s"]).run();
    outcome.assert_status(0).assert_stdout_has(&format!("{count} of {count} contenders meet the contract"));
    let notes = &outcome.stderr;
    let told: Vec<&str> =
        notes.lines().filter_map(|line| Some(line.strip_prefix("skipped: ")?.split_once(':')?.0)).collect();
    assert_eq!(told, skipped, "{notes}");
    kit.assert_nothing_left();
}

#[test]
fn trending() {
    meets_its_contract("trending");
}

#[test]
fn metadata() {
    meets_its_contract("metadata");
}

#[test]
fn hello() {
    meets_its_contract("hello");
}

#[test]
fn compiled() {
    meets_its_contract("compiled");
}

#[test]
fn node_frameworks() {
    meets_its_contract("node-frameworks");
}

/// An audit also measures with the load generator that the article used.
#[test]
fn every_study_has_its_articles_generator() {
    for (name, expected) in [
        ("trending", "httpx"),
        ("hello", "wrk"),
        ("compiled", "wrk"),
        ("metadata", "go net/http"),
        ("ssr", "oha"),
        ("node-frameworks", "autocannon"),
    ] {
        let study = study(name);
        let file: toml::Table = std::fs::read_to_string(study.join("study.toml")).unwrap().parse().unwrap();
        let all = file.get("generator").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let published = |one: &&toml::Value| one.get("published").is_none_or(|is| is.as_bool().unwrap());
        let names: Vec<&str> =
            all.iter().filter(published).map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, [expected], "{name}");
    }
}

/// `compiled` also compares the time to start and the size of the artefacts.
#[test]
fn compiled_has_a_cold_start_and_the_size_of_every_artefact() {
    let study = study("compiled");
    let file: toml::Table = std::fs::read_to_string(study.join("study.toml")).unwrap().parse().unwrap();
    let starts = file["scenario"].as_array().unwrap().iter().find_map(|one| one.get("starts"));
    assert_eq!(starts.and_then(toml::Value::as_integer), Some(20));
    for one in contenders(&study) {
        let artefact = one["artefact"].as_str().unwrap();
        // An artefact is either a script in the study's folder, or built into `bin`.
        assert!(artefact.starts_with("bin/") || study.join(artefact).is_file(), "{artefact}");
    }
}

/// The measure `serialize` of `trending` follows the article: it serialises a million answers in every runtime.
#[test]
fn every_runtime_serialises_a_million_times() {
    let study = study("trending");
    for file in [
        "shared/serialize.mjs",
        "php/serialize.php",
        "go/serialize.go",
        "limit/src/bin/trending-serialize.rs",
    ] {
        let text = std::fs::read_to_string(study.join(file)).unwrap();
        let times =
            text.lines().find(|line| line.starts_with("const") && line.to_lowercase().contains("times"));
        assert!(times.unwrap().trim_end_matches(';').ends_with("= 1_000_000"), "{file}: {times:?}");
    }
}

/// deadheat checks a claim without a scenario against any closed load in the record. Therefore each claim in a shipped study names its
/// scenario, or says why there is none.
#[test]
fn every_claim_names_its_scenario_or_says_why_there_is_none() {
    for name in ["trending", "metadata", "hello", "compiled", "ssr", "node-frameworks"] {
        let file: toml::Table =
            std::fs::read_to_string(study(name).join("study.toml")).unwrap().parse().unwrap();
        let of_contenders =
            file["claim"].as_array().unwrap().iter().filter(|one| one.get("contender").is_some());
        let lost: Vec<&toml::Value> =
            of_contenders.filter(|one| one.get("scenario").is_none() && one.get("note").is_none()).collect();
        assert!(lost.is_empty(), "{name}: {lost:#?}");
    }
}

/// Kills a race of two contenders once its journal has the pilot, and checks that none of its processes is left.
fn dies_with_the_race(name: &str, only: &str, scenario: &str, alive: &[&str]) {
    let study = study(name);
    if let Some(need) = lacks(&study) {
        skip_loudly!("{name} needs {need}: run `make setup`");
    }
    let kit = Kit::new(env!("CARGO_BIN_EXE_deadheat"));
    let _turn = turn();
    let arguments = ["race", study.to_str().unwrap(), "--only", only, "--scenario", scenario];
    let short = [
        "--epochs",
        "200",
        "--warmup",
        "200ms",
        "--measure",
        "400ms",
        "--slice",
        "20ms",
        "--record",
        "r.jsonl",
        "--ready-timeout",
        "120s",
    ];
    let mut running = kit.deadheat(arguments).args(short).spawn();
    let record = kit.path().join("r.jsonl");
    let pid = running.pid();
    running.wait_for(&format!("a pilot in the record, and {alive:?} alive"), || {
        let piloted = std::fs::read_to_string(&record).is_ok_and(|text| text.contains("{\"line\":\"pilot\""));
        piloted && {
            let started = descendants(pid);
            alive.iter().all(|program| started.iter().any(|one| one.command.contains(program)))
        }
    });
    // By their ids: other tests race the same studies, and a program that writes its title over its environment has no mark.
    let started = descendants(pid);
    running.kill_9();
    let gone = wait_until(Duration::from_secs(30), || kit.leftovers().is_empty());
    assert!(gone, "left: {:?}", kit.leftovers());
    let left = || started.iter().filter(|one| is_alive(one.pid)).collect::<Vec<_>>();
    assert!(wait_until(Duration::from_secs(5), || left().is_empty()), "left: {:?}", left());
    let no_group = || leftover_cgroups(&format!("deadheat-{pid}-")).is_empty();
    assert!(wait_until(Duration::from_secs(5), no_group), "{:?}", leftover_cgroups("deadheat-"));
}

/// Also checks that the killed race does not leave the study's data unusable for the next run.
#[test]
fn ssr_and_a_killed_race_leaves_no_mariadbd_behind() {
    dies_with_the_race("ssr", "node,limit", "connections-50", &["mariadbd"]);
    meets_its_contract("ssr");
}

#[test]
fn a_killed_race_leaves_no_php_fpm_and_no_nginx_behind() {
    dies_with_the_race("trending", "php,limit", "steady", &["php-fpm", "nginx"]);
}

/// The shell of `php` may be ended after it starts a server and before it records the server's id. It must not leave that server
/// running, or wait for it.
#[test]
fn a_php_that_is_ended_while_it_starts_ends() {
    let kit = Kit::new("/bin/bash");
    let source = |name: &str| std::fs::read_to_string(study("php").join(name)).unwrap();
    // Makes the gap long enough for the signal to arrive in it.
    let slow =
        source("serve.sh").replacen("children+=($!)", "touch \"$run/begun\"; sleep 0.3; children+=($!)", 1);
    let script = kit.file("studies/serve.sh", slow);
    kit.file("studies/contender.sh", source("contender.sh"));
    for program in ["php-fpm", "nginx"] {
        let stub = "#!/bin/sh\nwhile kill -0 $PPID 2>/dev/null; do sleep 0.05; done\n";
        let path = kit.file(format!("php/bin/{program}"), stub);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    kit.file("data", "");
    let call =
        kit.deadheat([script.to_str().unwrap(), "php", "DATA"]).env("PORT", "4004").env("DATA", "data");
    let mut running = call.env("DEADHEAT_WORK", "work").spawn();
    let folder = kit.path().join("work").join(format!("php-4004-{}", running.pid()));
    running.wait_for("its server", || folder.join("begun").exists());
    assert!(running.signal(Signal::TERM));
    running.wait();
    assert!(!folder.exists(), "one that ends removes its own");
    kit.assert_nothing_left();
}

/// When a race is killed, the shell of `php` dies before it can remove its folder. The next start removes that folder, and keeps the
/// folders of shells that still run.
#[test]
fn what_a_killed_php_left_goes_with_the_next_start() {
    let (kit, script) = (Kit::new("/bin/bash"), study("php").join("serve.sh"));
    // Replaces both servers with a script that does nothing and ends after its parent process.
    for program in ["php-fpm", "nginx"] {
        let stub = "#!/bin/sh\nwhile kill -0 $PPID 2>/dev/null; do sleep 0.05; done\n";
        let path = kit.file(format!("php/bin/{program}"), stub);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    kit.file("data", "");
    let folders = || {
        let entries = std::fs::read_dir(kit.path().join("work")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let started = |port: &str| {
        let call =
            kit.deadheat([script.to_str().unwrap(), "php", "DATA"]).env("PORT", port).env("DATA", "data");
        let mut running = call.env("DEADHEAT_WORK", "work").spawn();
        let folder = format!("php-{port}-{}", running.pid());
        let path = kit.path().join("work").join(&folder);
        running.wait_for("its folder", || path.join("fpm.conf").exists());
        (running, folder)
    };
    let (first, left) = started("4001");
    let (second, other) = started("4002");
    first.kill_9();
    assert_eq!(folders(), [left, other.clone()], "a killed program removes nothing");
    let (mut third, own) = started("4003");
    assert_eq!(folders(), [other.clone(), own]);
    assert!(third.signal(Signal::TERM));
    third.wait();
    assert_eq!(folders(), [other], "one that ends removes its own");
    drop(second);
    kit.assert_nothing_left();
}
