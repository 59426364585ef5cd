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
        group: format!("deadheat-{}-1-keeper-test", std::process::id()),
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
    let first = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let told_ns = now_ns();
    let Message::Started { at_ns, .. } = first else { panic!("{first:?}") };
    assert!(asked_ns < at_ns && at_ns < told_ns, "{asked_ns} {at_ns} {told_ns}");
    let input = kit.path().join("input.txt");
    let reads = || std::fs::read_to_string(&input).is_ok_and(|text| text == "/dev/null\n");
    assert!(wait_until(Duration::from_secs(10), reads), "{:?}", std::fs::read_to_string(&input));
    drop(stdin);
    assert!(keeper.wait().unwrap().success());
    kit.assert_nothing_left();
}
