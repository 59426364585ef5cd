//! Finds and ends processes through `/proc`. It recognises a process by a variable in its environment, and so also finds
//! processes that left their parent, group and session.

use std::fmt;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags};

pub use rustix::process::Signal;

use crate::wait::wait_until;

/// A living process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// Its command line, with the words joined by spaces.
    pub command: String,
}

impl fmt::Display for Process {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.pid, self.command)
    }
}

/// All living processes that were started with `key=value` in their environment, sorted by process id. Leaves out the calling
/// process, zombies, and processes whose environment this user may not read.
pub fn processes_with_env(key: &str, value: &str) -> Vec<Process> {
    processes_that(|pid| has_env(pid, key, value))
}

/// All other processes that `is_wanted` chooses, sorted by process id.
pub(crate) fn processes_that(is_wanted: impl Fn(u32) -> bool) -> Vec<Process> {
    let me = std::process::id();
    let chosen = all_pids().into_iter().filter(|&pid| pid != me && is_wanted(pid));
    chosen.map(|pid| Process { pid, command: command(pid) }).collect()
}

/// All living descendants of `pid`, sorted by process id. It follows the current parents, so it does not find orphans.
pub fn descendants(pid: u32) -> Vec<Process> {
    let parents: Vec<(u32, u32)> =
        all_pids().into_iter().filter_map(|pid| Some((pid, state(pid)?.parent))).collect();
    let mut found = vec![pid];
    let mut at = 0;
    while at < found.len() {
        let looked_at = found[at];
        found.extend(parents.iter().filter(|(_, parent)| *parent == looked_at).map(|(child, _)| *child));
        at += 1;
    }
    found.remove(0);
    found.sort_unstable();
    found.into_iter().filter(|&pid| is_alive(pid)).map(|pid| Process { pid, command: command(pid) }).collect()
}

/// Whether the process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| !matches!(state.letter, 'Z' | 'X'))
}

/// When the process started, in ticks since the machine started. With its id, this tells it apart from every other process. `None` when it is
/// gone or a zombie.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    state(pid).filter(|state| !matches!(state.letter, 'Z' | 'X')).map(|state| state.started)
}

/// Sends a signal to exactly this process; false when it is gone.
///
/// # Panics
/// When the signal may not be sent.
pub fn send_signal(pid: u32, signal: Signal) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    match rustix::process::kill_process(pid, signal) {
        Ok(()) => true,
        Err(rustix::io::Errno::SRCH) => false,
        Err(error) => panic!("cannot send {signal:?} to {pid:?}: {error}"),
    }
}

/// `kill -9` for exactly this process; false when it is gone.
pub fn kill_9(pid: u32) -> bool {
    send_signal(pid, Signal::KILL)
}

/// Kills every process that has `key=value` in its environment. It repeats the search for at most five seconds until it finds none,
/// because a process may be starting another. Returns the processes of the first search.
pub fn kill_all_with_env(key: &str, value: &str) -> Vec<Process> {
    let first = processes_with_env(key, value);
    if !first.is_empty() {
        wait_until(Duration::from_secs(5), || {
            let left = processes_with_env(key, value);
            left.iter().for_each(|process| kill_if(process.pid, |pid| has_env(pid, key, value)));
            left.is_empty()
        });
    }
    first
}

/// Opens the process and asks `is_wanted` again before killing it. So it never kills a different process that received the same id after
/// the search.
pub(crate) fn kill_if(pid: u32, is_wanted: impl Fn(u32) -> bool) {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    if let Ok(held) = rustix::process::pidfd_open(raw, PidfdFlags::empty())
        && is_wanted(pid)
    {
        // It may already have ended, which is fine.
        let _ = rustix::process::pidfd_send_signal(&held, Signal::KILL);
    }
}

fn all_pids() -> Vec<u32> {
    let mut pids: Vec<u32> = std::fs::read_dir("/proc")
        .expect("/proc can be listed")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids
}

fn has_env(pid: u32, key: &str, value: &str) -> bool {
    let wanted = format!("{key}={value}");
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|bytes| bytes.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes()))
}

fn command(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = bytes.split(|&byte| byte == 0).map(String::from_utf8_lossy).collect();
    words.join(" ").trim_end().to_owned()
}

struct State {
    letter: char,
    parent: u32,
    started: u64,
}

/// The fields after the name in `/proc/PID/stat`. The name is in parentheses and may itself contain parentheses.
fn state(pid: u32) -> Option<State> {
    let text = String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let (letter, parent) = (fields.next()?.chars().next()?, fields.next()?.parse().ok()?);
    // Field 22 of the file (proc(5)); `fields` has gone past field 4.
    Some(State { letter, parent, started: fields.nth(17)?.parse().ok()? })
}
