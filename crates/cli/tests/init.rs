//! `init` with real services: what it writes passes a check, and whatever goes wrong writes nothing.
#![allow(clippy::unwrap_used)]

use deadheat_testkit::{Kit, Outcome, free_port, server_line};

use crate::common::kit;

fn init(kit: &Kit, more: &[&str], server: &[&str]) -> Outcome {
    let command = format!("exec {}", server_line(server));
    let usual = ["init", command.as_str(), "--ready-timeout", "60s", "--timeout", "30s"];
    kit.deadheat(usual.iter().chain(more)).run()
}

/// The service counts on after its second start. So `check` gets values that `init` did not get.
#[test]
fn the_study_of_a_service_passes_a_check_and_is_replaced_only_by_force() {
    let kit = kit();
    let urls = ["--url", "http://127.0.0.1:{port}/a?b=c", "--url", "http://127.0.0.1:{port}/d"];
    let outcome = init(&kit, &urls, &["--counter-token"]);
    outcome.assert_status(0).assert_stdout_has("changes: $.token").assert_stdout_has("wrote ./study.toml");
    let text = std::fs::read_to_string(kit.path().join("study.toml")).unwrap();
    for part in ["path = \"/a?b=c\"", "path = \"$.token\"", "\"$.n\" = 1", "name = \"steady\""] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let check = ["check", ".", "--ready-timeout", "60s"];
    kit.deadheat(check).run().assert_status(0).assert_stdout_has("1 of 1 contenders meet the contract");
    init(&kit, &[], &[]).assert_status(2).assert_stderr_has("exists already");
    assert_eq!(std::fs::read_to_string(kit.path().join("study.toml")).unwrap(), text);
    let broken = text.replacen("\ncommand =", "\ncomand =", 1);
    std::fs::write(kit.path().join("study.toml"), &broken).unwrap();
    init(&kit, &["--force"], &[])
        .assert_status(2)
        .assert_stderr_has("as a study, so --force does not replace it");
    assert_eq!(std::fs::read_to_string(kit.path().join("study.toml")).unwrap(), broken);
    let with_build = text.replacen(
        "\ncommand =",
        "\nbuild = \"true && true\"\nenv = { LEVEL = \"high\", OTHER = \"{study}/x\" }\ncommand =",
        1,
    );
    std::fs::write(kit.path().join("study.toml"), with_build).unwrap();
    let outcome = init(&kit, &["--force"], &["--body", "hello"]);
    outcome.assert_status(0).assert_stderr_has("the build is that of the replaced file: true && true");
    let text = std::fs::read_to_string(kit.path().join("study.toml")).unwrap();
    outcome.assert_stderr_has("these variables of env are those of the replaced file: LEVEL");
    let kept = "\nenv = { LEVEL = \"high\" }\nbuild = \"true && true\"\n";
    assert!(text.contains("body = \"hello\"") && text.contains(kept), "{text}");
    kit.deadheat(check).run().assert_status(0);
    kit.assert_nothing_left();
}

/// Two versions with the same port cannot run at the same time, so `init` does not advise a race of them.
#[test]
fn a_service_with_a_fixed_port_hears_what_a_race_needs() {
    let kit = kit();
    let port = free_port();
    let outcome = init(&kit, &["--url", &format!("http://127.0.0.1:{port}/")], &[]);
    outcome.assert_status(0).assert_stdout_has(&format!("now it always listens on {port}"));
    assert!(!outcome.stdout.contains("--git"), "{outcome}");
}

#[test]
fn the_requests_come_from_files_too() {
    let kit = kit();
    kit.file(
        "api.yaml",
        "openapi: 3.0.0\npaths:\n  /items/{id}:\n    get:\n      parameters: [{ name: id, in: path, example: 7 }]\n  \
         /orders/{id}:\n    get:\n      parameters: [{ name: id, in: path }]\n",
    );
    let line =
        "127.0.0.1 - - [25/Nov/2026:17:58:01 +0000] \"GET /often HTTP/1.1\" 200 612 \"-\" \"curl/8\"\n";
    kit.file("access.log", line.repeat(3));
    let outcome = init(&kit, &["--from", "api.yaml", "--from", "access.log", "-o", "made.toml"], &["--json"]);
    outcome.assert_status(0).assert_stdout_has("GET /items/7: 200").assert_stdout_has("give it an `example`");
    let text = std::fs::read_to_string(kit.path().join("made.toml")).unwrap();
    assert!(
        text.contains("# 3 of the 3 requests in access.log") && text.contains("# - GET /orders/{id}"),
        "{text}"
    );
    kit.deadheat(["check", "made.toml", "--ready-timeout", "60s"]).run().assert_status(0);
    kit.file("broken.log", "a\nb\nc\nd\n");
    let outcome = init(&kit, &["--from", "broken.log", "--force"], &[]);
    outcome.assert_status(2).assert_stderr_has("4 of 4 lines are broken").assert_stderr_has("line 3");
}

#[test]
fn what_goes_wrong_is_told_and_nothing_is_written() {
    let kit = kit();
    let none = |outcome: &Outcome| {
        outcome.assert_status(2);
        assert!(!kit.path().join("study.toml").exists(), "{outcome}");
    };
    let outcome = kit.deadheat(["init", "echo oh no; exit 3"]).run();
    none(&outcome);
    outcome.assert_stderr_has("ended with").assert_stderr_has("oh no");
    let outcome = kit.deadheat(["init", "sleep 60", "--ready-timeout", "500ms"]).run();
    none(&outcome);
    outcome.assert_stderr_has("did not answer within 0.5 s").assert_stderr_has("PORT");
    let outcome = init(&kit, &[], &["--status", "500", "--body", "boom"]);
    none(&outcome);
    outcome.assert_stderr_has("it answered 500 (boom)");
    none(&kit.deadheat(["init", "true", "--url", "http://example.org:{port}/"]).run());
    kit.assert_nothing_left();
}
