//! How to recognize the processes of this run of deadheat, and the leftovers of earlier runs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deadheat_record::Finding;
use rustix::process::{Pid, Signal};

use crate::cgroup::{Hierarchy, processes_below, processes_of_engines, remove_tree};
use crate::process::container;
use crate::process::keeper::{CGROUP_PREFIX, RUN_VARIABLE};
use crate::process::tree;

/// How long the processes of a group that was left frozen get to die of their pending signals.
const THAW_PATIENCE: Duration = Duration::from_millis(200);

/// How long the processes in abandoned groups get to end by themselves.
const EMPTY_PATIENCE: Duration = Duration::from_secs(2);
/// The same for the processes of engines: the watcher of a container clears up after it, which takes seconds on a busy machine.
const ENGINE_PATIENCE: Duration = Duration::from_secs(10);

/// One run of deadheat: its process number and start time, so that a reused process number is not mistaken for it.
#[derive(Debug)]
pub struct RunId {
    pid: i32,
    start_ticks: u64,
    number: AtomicU64,
    immortal: LeftBehind,
    room: Mutex<Option<PathBuf>>,
}

/// Findings about processes that could not be ended.
#[derive(Debug, Clone, Default)]
pub struct LeftBehind(Arc<Mutex<Vec<Finding>>>);

impl LeftBehind {
    /// Notes that processes of a contender or service are still alive.
    pub fn note(&self, name: &str, pids: &[i32]) {
        let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
        let pids = pids.join(" ");
        let finding = Finding::warn(
            "not-ended",
            format!(
                "deadheat could not end process {pids}, which {name} started and which still uses the machine"
            ),
            format!(
                "end it: kill -9 {pids}; if that does nothing, it waits for a device (`ps` shows state D)"
            ),
        );
        if let Ok(mut all) = self.0.lock() {
            all.push(finding.about(name));
        }
    }
}

impl RunId {
    /// The calling process.
    pub fn current() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self {
            pid,
            start_ticks: tree::start_ticks(pid).unwrap_or(0),
            number: AtomicU64::new(0),
            immortal: LeftBehind::default(),
            room: Mutex::default(),
        }
    }

    /// From now on, makes control groups of version 2 in this folder instead of this process's own group.
    pub fn make_groups_in(&self, folder: Option<&Path>) {
        if let Ok(mut room) = self.room.lock() {
            *room = folder.map(Path::to_path_buf);
        }
    }

    /// Where control groups of version 2 are made; none means this process's own group.
    pub fn groups_in(&self) -> Option<PathBuf> {
        self.room.lock().ok().and_then(|room| room.clone())
    }

    /// Where processes that could not be ended are noted.
    pub fn left_behind(&self) -> &LeftBehind {
        &self.immortal
    }

    /// The processes that could not be ended, as far as they were noted since the last call.
    pub fn take_left_behind(&self) -> Vec<Finding> {
        self.immortal.0.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default()
    }

    /// A number that this run has not used yet.
    pub fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    /// A name for a unix socket that no current run has used, because runs of the same study share a folder. It is short, because a
    /// socket's path is limited to about a hundred bytes.
    pub fn next_socket(&self) -> String {
        format!("{}-{}.sock", self.pid, self.next_number())
    }

    /// A name for a control group that this run has not used yet.
    pub fn next_group(&self) -> String {
        format!("{CGROUP_PREFIX}{}-{}-{}", self.pid, self.start_ticks, self.next_number())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.pid, self.start_ticks)
    }
}

/// Whether the run written as `PID:START_TICKS` (or `PID-START_TICKS-...`) is still alive.
pub fn lives(run: &str) -> bool {
    let mut words = run.split([':', '-']);
    let pid = words.next().and_then(|word| word.parse::<i32>().ok());
    let ticks = words.next().and_then(|word| word.parse::<u64>().ok());
    pid.is_some_and(|pid| tree::start_ticks(pid).is_some_and(|now| Some(now) == ticks))
}

/// Reports the processes and control groups of runs that have ended, and removes empty groups.
pub fn leftovers(hierarchy: &Hierarchy) -> Vec<Finding> {
    let abandoned = |folder: &std::path::PathBuf| {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        !lives(name.trim_start_matches(CGROUP_PREFIX))
    };
    let groups: Vec<_> = hierarchy.folders_named(CGROUP_PREFIX).into_iter().filter(abandoned).collect();
    // A frozen process cannot die: thaw it, so that a process that should have died with its keeper does.
    groups.iter().for_each(|folder| Hierarchy::thaw_abandoned(folder));
    if !groups.is_empty() {
        std::thread::sleep(THAW_PATIENCE);
    }
    let mut findings = Vec::new();
    let of_ended_runs = || {
        let all = tree::with_environment(RUN_VARIABLE).into_iter();
        all.filter(|(_, run)| !run.is_empty() && !lives(run)).collect::<Vec<_>>()
    };
    // An engine's containers live in such groups; without groups, its processes know the run.
    if !groups.is_empty() || !of_ended_runs().is_empty() {
        findings.extend(container::left_behind());
    }
    if !groups.is_empty() {
        findings.extend(end_unknown_containers(&groups));
    }
    let end = Instant::now() + EMPTY_PATIENCE;
    for folder in groups {
        let in_use = |error: std::io::Error| {
            matches!(error.kind(), std::io::ErrorKind::ResourceBusy | std::io::ErrorKind::DirectoryNotEmpty)
        };
        while remove_tree(&folder).is_err_and(in_use) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        if !folder.exists() {
            continue;
        }
        let named = |pid: &Pid| {
            let pid = pid.as_raw_nonzero().get();
            format!("{pid} (`{}`)", tree::command_line(pid).unwrap_or_default())
        };
        let inside = processes_below(&folder);
        let first: Vec<String> = inside.iter().take(5).map(named).collect();
        let folder = folder.display();
        let (holds, first_of_all) = if inside.is_empty() {
            (String::new(), String::new())
        } else {
            (format!("; it holds {} processes: {}", inside.len(), first.join(", ")), "end them, then ".into())
        };
        findings.push(Finding::warn(
            "leftover-cgroup",
            format!("control group {folder} is left over from an earlier run of deadheat and could not be removed{holds}"),
            format!("{first_of_all}remove it with rmdir, the groups in it first, as the user of that run: {folder}"),
        ));
    }
    let left = |(pid, _): (i32, String)| {
        let command = tree::command_line(pid).unwrap_or_default();
        let message = format!(
            "process {pid} (`{command}`) is left over from an earlier run of deadheat and still uses the machine"
        );
        Finding::warn("leftover-process", message, format!("end it: kill -9 {pid}"))
    };
    findings.extend(of_ended_runs().into_iter().map(left));
    findings
}

/// Ends what is left of containers in these groups: an engine that was killed while it started a container no longer knows it. Engines first have time to
/// remove what they know.
fn end_unknown_containers(groups: &[PathBuf]) -> Option<Finding> {
    let left = || -> Vec<Pid> { groups.iter().flat_map(|folder| processes_of_engines(folder)).collect() };
    let end = Instant::now() + ENGINE_PATIENCE;
    while !left().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    let unknown = left();
    tree::signal(&unknown, Signal::KILL);
    let message = "processes of a container that its engine no longer knows were left over from an earlier run of deadheat; they were ended";
    (!unknown.is_empty()).then(|| Finding::warn("leftover-container", message, "nothing has to be done"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_run_lives_and_others_do_not() {
        let run = RunId::current();
        assert!(lives(&run.to_string()));
        assert!(lives(run.next_group().trim_start_matches(CGROUP_PREFIX)));
        assert_ne!(run.next_group(), run.next_group());
        assert!(!lives("999999999:1"));
        assert!(!lives(&format!("{}:1", std::process::id())), "same number, another start");
        assert!(!lives("nonsense"));
    }

    #[test]
    fn runs_of_one_moment_share_no_socket() {
        let run = |pid| RunId { pid, ..RunId::current() };
        let (one, two) = (run(11), run(12));
        let names = [one.next_socket(), one.next_socket(), two.next_socket(), two.next_socket()];
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{names:?}");
    }

    #[test]
    fn a_leftover_process_is_named() {
        let mut child =
            std::process::Command::new("sleep").arg("31").env(RUN_VARIABLE, "999999999:5").spawn().unwrap();
        let nowhere = Hierarchy::parse("", "", std::path::Path::new("/nowhere"));
        // A new process shows its arguments only a moment later.
        let named = (0..10_000)
            .any(|_| leftovers(&nowhere).iter().any(|finding| finding.message.contains("sleep 31")));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(named);
    }
}
