//! Races of two git revisions: what is raced, and that nothing of it remains, however the race ends.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use deadheat_testkit::{Invocation, Kit, SHORT_RACE, server_line, turn, wait_until};
use serde_json::Value;

use crate::common::kit;

/// A repository in the kit's folder with a service on branch `main`: `run` starts the server with the options in `options`.
struct Service {
    kit: Kit,
}

/// Starts the test server with the options of the revision. `build` copies them.
const COMMAND: &str = "exec sh ./run";

impl Service {
    fn new() -> Self {
        let service = Self { kit: kit() };
        service.write("run", &format!("exec {} $(cat built)\n", server_line(&[])));
        service.write("options", "--delay-ms 0.3");
        service.write("build", "cp options built\n");
        service.write(".gitignore", "built\n");
        service.git(&["init", "--quiet", "--initial-branch=main"]);
        service.commit("the first");
        service
    }

    fn folder(&self) -> PathBuf {
        self.kit.path().join("service")
    }

    fn write(&self, name: &str, text: &str) {
        self.kit.file(Path::new("service").join(name), text);
    }

    fn git(&self, words: &[&str]) -> String {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let output = Command::new("git").arg("-C").arg(self.folder()).args(who).args(words).output().unwrap();
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", message]);
    }

    fn race(&self, range: &str, more: &[&str]) -> Invocation<'_> {
        let race = ["race", "--git", range, "--build", "sh ./build", COMMAND, "--record", "../r.jsonl"];
        let kit = &self.kit;
        kit.deadheat(race)
            .args(SHORT_RACE)
            .args(more)
            .directory(self.folder())
            .env("XDG_CACHE_HOME", kit.path().join("cache"))
    }

    /// What is in the cache of this repository, without what is kept on purpose: the lock, builds, and objects of uncommitted changes.
    fn left(&self) -> Vec<PathBuf> {
        let Ok(mut roots) = fs::read_dir(self.kit.path().join("cache/deadheat/git")) else {
            return Vec::new();
        };
        let Some(root) = roots.next() else { return Vec::new() };
        let root = root.unwrap().path();
        let all = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| !["lock", "builds", "objects"].iter().any(|name| path.ends_with(name))).collect()
    }

    fn document(&self) -> Value {
        serde_json::from_str(&self.kit.read("race.json")).unwrap()
    }
}

/// How long a contender's start took until its first answer, in milliseconds. Other programs can only make it longer.
fn cold_start_ms(document: &Value, contender: &str) -> f64 {
    let results = document["scenarios"][0]["results"].as_array().unwrap();
    let result = results.iter().find(|one| one["contender"] == contender).unwrap();
    result["cold_start_ns"].as_f64().unwrap() / 1e6
}

fn names(document: &Value) -> Vec<&str> {
    document["contenders"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn the_working_tree_races_against_main_with_a_control() {
    let (service, _turn) = (Service::new(), turn());
    service.write("options", "--delay-ms 60");
    let before = service.git(&["status", "--porcelain"]);
    let race = service.race("main", &["--control", "--json", "../race.json", "--fail-if", "slower by 50%"]);
    let outcome = race.run();
    let document = service.document();
    let main = format!("main@{}", &service.git(&["rev-parse", "main"])[..7]);
    assert_eq!(names(&document), [&main, "working-tree", "control"], "{outcome}");
    assert!(cold_start_ms(&document, "working-tree") >= 60.0, "{outcome}");
    let commands: Vec<&Value> =
        document["contenders"].as_array().unwrap().iter().map(|one| &one["command"]).collect();
    assert_eq!(commands[0], commands[2], "the control is the baseline once more");
    let reproduce = document["reproduce"].as_str().unwrap();
    let commit = service.git(&["rev-parse", "main"]);
    assert!(
        reproduce.contains(&format!("--git {commit}")) && reproduce.contains("--build 'sh ./build'"),
        "{reproduce}"
    );
    assert!(reproduce.contains("--control") && !reproduce.contains("--baseline"), "{reproduce}");
    assert_eq!(service.git(&["status", "--porcelain"]), before);
    assert_eq!(service.left(), Vec::<PathBuf>::new());
    service.kit.assert_nothing_left();
}

#[test]
fn a_revision_that_does_not_build_is_a_finding() {
    let (service, _turn) = (Service::new(), turn());
    service.write("build", "echo no compiler here; exit 3\n");
    service.commit("broken");
    let outcome = service.race("HEAD~1..HEAD", &["--json", "../race.json"]).run();
    outcome
        .assert_status(2)
        .assert_stderr_has("ended with exit status 3")
        .assert_stderr_has("no compiler here");
    let document = service.document();
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.iter().any(|one| one["code"] == "build-failed"), "{findings:?}");
    assert_eq!(service.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_build_that_hangs_is_ended() {
    let (service, _turn) = (Service::new(), turn());
    service.write("build", "sleep 4322 & sleep 4322\n");
    service.commit("hangs");
    let outcome = service.race("HEAD~1..HEAD", &["--build-timeout", "500ms"]).run();
    outcome.assert_status(2).assert_stderr_has("ran for over 0.5 s").assert_stderr_has("--build-timeout");
    service.kit.assert_nothing_left();
    assert_eq!(service.left(), Vec::<PathBuf>::new());
}

#[test]
fn after_kill_9_during_a_build_the_next_command_removes_what_is_left() {
    let (service, _turn) = (Service::new(), turn());
    service.write("build", "touch ../work/builds; sleep 4323 & sleep 4323\n");
    service.commit("slow to build");
    let mut running = service.race("HEAD~1..HEAD", &[]).spawn();
    running
        .wait_for("the second build", || service.left().iter().any(|path| path.join("work/builds").exists()));
    running.kill_9();
    service.kit.assert_nothing_left();
    let left = service.left();
    assert!(!left.is_empty());
    service.git(&["checkout", "--quiet", "HEAD~1"]);
    service.write("options", "--delay-ms 0.4");
    let next = service.race("HEAD", &["--build-timeout", "60s"]).run();
    for path in left {
        next.assert_stderr_has(&path.display().to_string());
        assert!(!path.exists());
    }
    assert_eq!(service.left(), Vec::<PathBuf>::new());
}

#[test]
fn an_interrupted_race_of_uncommitted_changes_goes_on() {
    let (service, _turn) = (Service::new(), turn());
    let hold = service.kit.hold();
    // The pilot and the first epoch start each contender once.
    service.write("run", &hold.at_start(5, &format!("{} $(cat built)", server_line(&[]))));
    service.commit("held");
    service.write("options", "--delay-ms 0.4");
    let mut running = service.race("HEAD", &["--ready-timeout", "150s"]).spawn();
    hold.wait(&mut running);
    running.kill_9();
    hold.let_go();
    service.kit.assert_nothing_left();
    // The working tree may change in between: what was raced is kept.
    service.write("options", "--delay-ms 20000");
    assert!(wait_until(Duration::from_secs(5), || !service.left().is_empty()));
    let resume = ["race", "--resume", "../r.jsonl", "--json", "../race.json"];
    let cache = service.kit.path().join("cache");
    let resumed = service.kit.deadheat(resume).directory(service.folder()).env("XDG_CACHE_HOME", cache).run();
    let document = service.document();
    assert_eq!(document["complete"], true, "{resumed}");
    assert!(names(&document).contains(&"working-tree"));
    let start = cold_start_ms(&document, "working-tree");
    assert!(start < 20_000.0, "what was raced is not what changed in between: {start}");
    assert_eq!(service.left(), Vec::<PathBuf>::new());
}
