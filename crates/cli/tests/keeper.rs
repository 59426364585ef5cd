//! The keeper alone: what it reports about the contender that it starts.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use deadheat_host::process::keeper::{KEEPER_COMMAND, KeeperOrder, Message};
use deadheat_record::{Ending, Limits};
use deadheat_testkit::{Kit, wait_until};
use rustix::time::{ClockId, clock_gettime};

const BINARY: &str = env!("CARGO_BIN_EXE_deadheat");

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn order(kit: &Kit, command: &str) -> KeeperOrder {
    KeeperOrder {
        id_file: None,
        command: command.into(),
        folder: kit.path().into(),
        env: vec![],
        log: kit.path().join("log"),
        cpus: vec![],
        group: format!("deadheat-{}-1-{}", std::process::id(), kit.path().file_name().unwrap().display()),
        room: None,
        limits: Limits::default(),
        ending: Ending::default(),
        remove_maps: false,
        grace_ms: 2_000,
    }
}

/// A running keeper, with the pipes to and from it.
struct Keeper {
    process: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Keeper {
    fn of(kit: &Kit) -> Self {
        let (key, mark) = kit.mark();
        let mut keeper = Command::new(BINARY);
        keeper.arg(KEEPER_COMMAND).env(key, mark).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = keeper.spawn().unwrap();
        let stdin = process.stdin.take().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, stdin, lines }
    }

    fn told(&mut self, order: &KeeperOrder) {
        writeln!(self.stdin, "{}", serde_json::to_string(order).unwrap()).unwrap();
    }

    fn says(&mut self) -> Message {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Closes the keeper's input, as happens when deadheat dies.
    fn left_alone(self) {
        let Self { mut process, stdin, .. } = self;
        drop(stdin);
        assert!(process.wait().unwrap().success());
    }
}

/// A start counts from the moment when the contender's own command begins, however long its keeper has been running.
#[test]
fn what_begins_is_the_contender_and_not_its_keeper() {
    let kit = Kit::new(BINARY);
    let mut keeper = Keeper::of(&kit);
    std::thread::sleep(Duration::from_millis(50));
    let asked_ns = now_ns();
    keeper.told(&order(&kit, "readlink /proc/self/fd/0 > input.txt; exec sleep 60"));
    let staged = keeper.says();
    let Message::Staged { pid } = staged else { panic!("{staged:?}") };
    std::thread::sleep(Duration::from_millis(50));
    assert!(!kit.path().join("input.txt").exists(), "it began without permission");
    let let_ns = now_ns();
    writeln!(keeper.stdin, "begin").unwrap();
    let started = keeper.says();
    let told_ns = now_ns();
    let Message::Started { at_ns, pid: same, .. } = started else { panic!("{started:?}") };
    assert!(asked_ns < let_ns && let_ns < at_ns && at_ns < told_ns, "{asked_ns} {let_ns} {at_ns} {told_ns}");
    assert_eq!(pid, same);
    let input = kit.path().join("input.txt");
    let reads = || std::fs::read_to_string(&input).is_ok_and(|text| text == "/dev/null\n");
    assert!(wait_until(Duration::from_secs(10), reads), "{:?}", std::fs::read_to_string(&input));
    keeper.left_alone();
    kit.assert_nothing_left();
}

/// If deadheat dies before it lets the contender begin, the contender never runs and nothing is left of it.
#[test]
fn what_nobody_lets_begin_does_not() {
    let kit = Kit::new(BINARY);
    let mut keeper = Keeper::of(&kit);
    // This command creates a file if the keeper runs it to end the contender.
    let ending = Ending { command: Some("touch ended.txt".into()), ..Ending::default() };
    keeper.told(&KeeperOrder { ending, ..order(&kit, "echo begun > begun.txt; exec sleep 60") });
    keeper.left_alone();
    assert!(!kit.path().join("begun.txt").exists());
    assert!(!kit.path().join("ended.txt").exists(), "what never began is not asked to end");
    kit.assert_nothing_left();
}

/// Whatever the contender started has the whole grace to end by itself, and the keeper waits no longer than that takes.
#[test]
fn an_orphan_is_waited_for_until_it_has_ended() {
    let kit = Kit::new(BINARY);
    let mut keeper = Keeper::of(&kit);
    let orphan = "trap \"sleep 0.3; touch ended.txt; exit\" TERM; touch up.txt; while :; do sleep 0.05; done";
    let grace = Duration::from_secs(100);
    let order = order(&kit, &format!("setsid sh -c '{orphan}' & sleep 60"));
    keeper.told(&KeeperOrder { grace_ms: grace.as_millis() as u64, ..order });
    keeper.says();
    writeln!(keeper.stdin, "begin").unwrap();
    assert!(wait_until(Duration::from_secs(30), || kit.path().join("up.txt").exists()));
    let left = std::time::Instant::now();
    keeper.left_alone();
    assert!(kit.path().join("ended.txt").exists(), "it was killed in its grace");
    assert!(left.elapsed() < grace, "the keeper waited although the orphan had ended");
    kit.assert_nothing_left();
}
