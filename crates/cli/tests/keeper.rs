//! The keeper by itself: what it tells of the contender that it starts.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use deadheat_record::{Ending, Limits};
use deadheat_runner::keeper::{KEEPER_COMMAND, Message, Order};
use deadheat_testkit::{Kit, wait_until};
use rustix::time::{ClockId, clock_gettime};

const BINARY: &str = env!("CARGO_BIN_EXE_deadheat");

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn order(kit: &Kit, command: &str) -> Order {
    Order {
        command: command.into(),
        folder: kit.path().into(),
        env: vec![],
        log: kit.path().join("log"),
        cpus: vec![],
        group: format!("deadheat-{}-1-{}", std::process::id(), kit.path().file_name().unwrap().display()),
        room: None,
        limits: Limits::default(),
        ending: Ending::default(),
        grace_ms: 2_000,
    }
}

/// A start is timed from when the contender's own command begins, however long its keeper has been there.
#[test]
fn what_begins_is_the_contender_and_not_its_keeper() {
    let kit = Kit::new(BINARY);
    let (key, mark) = kit.mark();
    let mut keeper = Command::new(BINARY);
    keeper.arg(KEEPER_COMMAND).env(key, mark).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut keeper = keeper.spawn().unwrap();
    let mut stdin = keeper.stdin.take().unwrap();
    let mut lines = BufReader::new(keeper.stdout.take().unwrap()).lines();
    std::thread::sleep(Duration::from_millis(50));
    let order = order(&kit, "readlink /proc/self/fd/0 > input.txt; exec sleep 60");
    let asked_ns = now_ns();
    writeln!(stdin, "{}", serde_json::to_string(&order).unwrap()).unwrap();
    let mut next = || serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let staged = next();
    let Message::Staged { pid } = staged else { panic!("{staged:?}") };
    std::thread::sleep(Duration::from_millis(50));
    assert!(!kit.path().join("input.txt").exists(), "nobody has let it begin");
    let let_ns = now_ns();
    writeln!(stdin, "begin").unwrap();
    let started = next();
    let told_ns = now_ns();
    let Message::Started { at_ns, pid: same, .. } = started else { panic!("{started:?}") };
    assert!(asked_ns < let_ns && let_ns < at_ns && at_ns < told_ns, "{asked_ns} {let_ns} {at_ns} {told_ns}");
    assert_eq!(pid, same);
    let input = kit.path().join("input.txt");
    let reads = || std::fs::read_to_string(&input).is_ok_and(|text| text == "/dev/null\n");
    assert!(wait_until(Duration::from_secs(10), reads), "{:?}", std::fs::read_to_string(&input));
    drop(stdin);
    assert!(keeper.wait().unwrap().success());
    kit.assert_nothing_left();
}

/// Whoever would let it begin is gone before: it never does, and nothing is left of it.
#[test]
fn what_nobody_lets_begin_does_not() {
    let kit = Kit::new(BINARY);
    let (key, mark) = kit.mark();
    let mut keeper = Command::new(BINARY);
    keeper.arg(KEEPER_COMMAND).env(key, mark).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut keeper = keeper.spawn().unwrap();
    let mut stdin = keeper.stdin.take().unwrap();
    // Nothing ends it before its time.
    let ending = Ending { command: Some("touch ended.txt".into()), ..Ending::default() };
    let order = Order { ending, ..order(&kit, "echo begun > begun.txt; exec sleep 60") };
    writeln!(stdin, "{}", serde_json::to_string(&order).unwrap()).unwrap();
    drop(stdin);
    assert!(keeper.wait().unwrap().success());
    assert!(!kit.path().join("begun.txt").exists());
    assert!(!kit.path().join("ended.txt").exists(), "what never began is not asked to end");
    kit.assert_nothing_left();
}
