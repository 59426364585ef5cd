//! Tests the harness itself: limits hold, no process escapes, and messages describe failures. The binary under test is
//! a shell.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use deadheat_testkit::{
    Kit, Signal, Terminal, TestServer, cgroups_under, is_alive, leftover_cgroups, processes_with_env,
    server_line, skip_loudly, wait_for_lines, wait_until,
};

const LIMIT: Duration = Duration::from_secs(60);

fn shell() -> Kit {
    Kit::new("/bin/sh")
}

/// Runs `act`, which must panic, and returns the message.
fn failure(act: impl FnOnce()) -> String {
    let cause = catch_unwind(AssertUnwindSafe(act)).expect_err("a failure");
    match cause.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => (*other.downcast_ref::<&str>().expect("a message")).to_owned(),
    }
}

#[test]
fn an_outcome_holds_everything() {
    let kit = shell();
    kit.file("deep/in/study.toml", "name = 'x'\n");
    let script = "cat; echo \"$A-$PORT\"; cat deep/in/study.toml >&2; exit 3";
    let outcome = kit.deadheat(["-c", script]).env("A", "b").input("given ").run();
    outcome.assert_status(3).assert_stdout_has("given b-\n").assert_stderr_has("name = 'x'");
    assert_eq!(kit.read("deep/in/study.toml"), "name = 'x'\n");
    let killed = kit.deadheat(["-c", "kill -TERM $$"]).run();
    assert_eq!((killed.status(), killed.ended_by_signal()), (None, Some(15)));
    let message = failure(|| {
        outcome.assert_status(0);
    });
    assert!(message.contains("given b-") && message.contains("name = 'x'") && message.contains("expected"));
}

#[test]
fn json_comes_from_standard_output_or_the_file() {
    let kit = shell();
    assert_eq!(kit.deadheat(["-c", "echo '{\"a\": 1}'"]).run().json()["a"], 1);
    let script = "echo '{\"a\": 2}' > \"$2\"; echo no json";
    assert_eq!(kit.deadheat(["-c", script, "name"]).json_to("out.json").run().json()["a"], 2);
    assert_eq!(kit.deadheat(["-c", "echo 1; echo; echo '[2]'"]).run().json_lines()[1][0], 2);
    let message = failure(|| {
        kit.deadheat(["-c", "echo '{'"]).run().json();
    });
    assert!(message.contains("not JSON"), "{message}");
}

#[test]
fn a_run_that_takes_too_long_is_killed_with_all_that_it_started() {
    let kit = shell();
    let line = server_line(&["--ignore-term", "--children", "4", "--port", "0", "--port-file", "port"]);
    let script = format!("echo before; {line} & while [ ! -e port ]; do sleep 0.01; done; echo up; wait");
    let start = Instant::now();
    let message = failure(|| {
        kit.deadheat(["-c", &script]).limit(Duration::from_secs(3)).run();
    });
    assert!(start.elapsed() < LIMIT);
    assert!(message.contains("not over after") && message.contains("before"), "{message}");
    assert_eq!(kit.leftovers(), []);
}

#[test]
fn what_a_run_leaves_behind_is_named_and_swept_up() {
    let kit = shell();
    let line = server_line(&["--never-listen"]);
    kit.deadheat(["-c", &format!("{line} & exit 0")]).run().assert_status(0);
    // The shell's copy of itself, which becomes the server, has both words in its command line, and for a moment it has no environment.
    let is_server = |command: &str| command.contains("--never-listen") && !command.contains("exit 0");
    assert!(wait_until(LIMIT, || kit.leftovers().iter().any(|left| is_server(&left.command))));
    let message = failure(|| kit.assert_nothing_left());
    assert!(message.contains("--never-listen"), "{message}");
    let (key, value) = (kit.mark().0, kit.mark().1.to_owned());
    assert_eq!(processes_with_env(key, &value).len(), 1);
    drop(kit);
    assert_eq!(processes_with_env(key, &value), []);
}

#[test]
fn a_background_run_is_waited_for_by_the_lines_of_a_file_and_killed_alone() {
    let kit = shell();
    let file = kit.path().join("lines");
    let script = "sleep 30 & for i in 1 2 3; do echo $i >> lines; sleep 0.02; done; printf 4 >> lines; wait";
    let mut running = kit.deadheat(["-c", script]).spawn();
    running.wait_for_lines(&file, 3);
    // Until then, a short sleep of the loop may still run.
    running.wait_for("the beginning of a fourth line", || fs::read_to_string(&file).unwrap().ends_with('4'));
    assert!(running.is_running() && !wait_for_lines(&file, 4, Duration::from_millis(100)));
    let pid = running.pid();
    let outcome = running.kill_9();
    assert_eq!(outcome.ended_by_signal(), Some(9));
    assert!(!is_alive(pid));
    assert_eq!(kit.leftovers().len(), 1, "only the process itself is killed");
}

#[test]
fn waiting_for_what_cannot_come_fails_at_once_with_the_output() {
    let kit = shell();
    let start = Instant::now();
    let message = failure(|| {
        let mut running = kit.deadheat(["-c", "echo gave up >&2; exit 4"]).spawn();
        running.wait_for_lines(Path::new("/nonexistent"), 1);
    });
    assert!(message.contains("has ended") && message.contains("gave up"), "{message}");
    assert!(start.elapsed() < LIMIT);
}

#[test]
fn signals_reach_the_run_and_dropping_ends_it() {
    let kit = shell();
    // Not INT: background commands of a script ignore it, and a shell cannot change that.
    let script = "trap 'echo caught; kill $!; exit 130' TERM; sleep 60 & echo up; wait";
    let mut running = kit.deadheat(["-c", script]).limit(LIMIT).spawn();
    assert!(wait_until(LIMIT, || running.stdout().contains("up")));
    assert!(running.signal(Signal::TERM));
    running.wait().assert_status(130).assert_stdout_has("caught");
    let pid = {
        let running = kit.deadheat(["-c", "exec sleep 30"]).spawn();
        running.pid()
    };
    assert!(!is_alive(pid));
}

#[test]
fn a_race_is_typed_as_the_product_says() {
    let kit = Kit::new("/bin/echo");
    let run = kit
        .race()
        .url("http://127.0.0.1:{port}/x")
        .contender("a", "one --port {port}")
        .contender("b", "two")
        .args(["--epochs", "6..6"]);
    let outcome = run.run();
    let record = kit.path().join("race.json");
    let expected = format!(
        "race --url http://127.0.0.1:{{port}}/x --epochs 6..6 -n a -n b --json {} one --port {{port}} two\n",
        record.display()
    );
    assert_eq!(outcome.stdout, expected);
}

#[test]
fn control_groups_are_found_by_name_at_any_depth() {
    let root = tempfile::tempdir().unwrap();
    for folder in ["cpu/deadheat-1/a", "memory/user/deadheat-1", "memory/other", "unified/xdeadheat-1"] {
        std::fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    std::fs::write(root.path().join("cpu/deadheat-1-file"), "").unwrap();
    std::os::unix::fs::symlink("cpu", root.path().join("cpu-again")).unwrap();
    let expected = ["cpu/deadheat-1", "memory/user/deadheat-1"].map(|folder| root.path().join(folder));
    assert_eq!(cgroups_under(root.path(), "deadheat-1"), expected);
    assert_eq!(leftover_cgroups("no-group-has-this-name"), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_dropped_server_takes_its_descendants_along() {
    let server = TestServer::start(&["--children", "4"]);
    let file = std::fs::read(format!("/proc/{}/environ", server.pid())).unwrap();
    let text = String::from_utf8_lossy(&file).into_owned();
    let mark = text.split('\0').find_map(|entry| entry.strip_prefix("DEADHEAT_TESTKIT_MARK=")).unwrap();
    assert_eq!(processes_with_env("DEADHEAT_TESTKIT_MARK", mark).len(), 5);
    drop(server);
    assert_eq!(processes_with_env("DEADHEAT_TESTKIT_MARK", mark), []);
}

fn needs_the_moon(reached: &std::cell::Cell<bool>) {
    if !Path::new("/moon").exists() {
        skip_loudly!("there is no {}", "moon");
    }
    reached.set(true);
}

#[test]
fn skipping_returns_or_fails() {
    let reached = std::cell::Cell::new(false);
    if std::env::var("DEADHEAT_NO_SKIP").is_ok_and(|value| value == "1") {
        let message = failure(|| needs_the_moon(&reached));
        assert!(message.contains("there is no moon"), "{message}");
    } else {
        needs_the_moon(&reached);
    }
    assert!(!reached.get());
}

#[test]
fn a_terminal_has_a_size_and_keeps_all_that_is_written_to_it() {
    let (kit, terminal) = (shell(), Terminal::new(81, 25));
    let script = "test -t 1 && test -t 2 && stty size <&1; echo more >&2; yes | head -c 100000";
    let outcome = kit.deadheat(["-c", script]).on(&terminal).run();
    outcome.assert_status(0);
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""));
    let text = String::from_utf8(terminal.written()).expect("plain text");
    assert!(text.starts_with("25 81\r\nmore\r\ny\r\n"), "{:?}", &text[..text.len().min(80)]);
    assert_eq!(text.matches("y\r\n").count(), 50_000);
}

#[test]
fn whoever_outlives_a_run_does_not_hold_up_its_terminal() {
    let (kit, terminal) = (shell(), Terminal::new(80, 24));
    kit.deadheat(["-c", "sleep 60 & echo done"]).on(&terminal).run().assert_status(0);
    let begun = Instant::now();
    assert_eq!(terminal.written(), b"done\r\n");
    assert!(begun.elapsed() < LIMIT);
}
