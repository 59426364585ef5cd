//! Network namespaces with names: making and removing them, running programs in them, and ending all that runs in them.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::cgroups::leftover_cgroups;
use crate::processes::{Process, kill_if, processes_that};
use crate::wait::wait_until;

/// Where `ip netns` keeps its names: one file for each namespace.
pub(crate) const NAMES: &str = "/run/netns";

/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// The path of a program. Looks for it also where programs for root are, which need not be in `PATH`.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let listed = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&listed).chain(more).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Runs a command to its end, with `input` as its standard input.
///
/// # Panics
/// With what the command wrote, unless it succeeds.
fn succeed(command: &mut Command, input: &str) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // A command that fails early reads nothing; its exit status tells of that.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("the end of a child");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}\n--- its input\n{input}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Gives `ip` commands, one for each line, in the machine's own network.
///
/// # Panics
/// When one of them fails.
pub(crate) fn ip(commands: &str) {
    succeed(Command::new(program("ip").expect("ip")).args(["-batch", "-"]), commands);
}

/// The name of a network namespace that exists or is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    name: String,
}

impl Network {
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The file that stands for the namespace.
    pub(crate) fn path(&self) -> PathBuf {
        Path::new(NAMES).join(&self.name)
    }

    /// Gives `ip` commands, one for each line, in this network.
    ///
    /// # Panics
    /// When one of them fails.
    pub(crate) fn ip(&self, commands: &str) {
        let mut ip = Command::new(program("ip").expect("ip"));
        succeed(ip.args(["-netns", &self.name, "-batch", "-"]), commands);
    }

    /// Gives one `tc` command in this network.
    ///
    /// # Panics
    /// When it fails.
    pub(crate) fn tc(&self, command: &str) {
        let mut tc = Command::new(program("tc").expect("tc"));
        succeed(tc.args(["-netns", &self.name]).args(command.split(' ')), "");
    }

    /// A program to be run in this network. It gets the process id of the child that is spawned. Unlike `ip netns exec`, this leaves the
    /// mounts alone, so that the program sees the control groups.
    pub(crate) fn command(&self, path: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program("nsenter").expect("nsenter"));
        command.arg(format!("--net={}", self.path().display())).arg("--").arg(path);
        command
    }

    /// Calls `act` on a thread in this network. Sockets that it opens stay in this network.
    ///
    /// # Panics
    /// When `act` does, or when the namespace cannot be entered.
    pub(crate) fn run<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let enter = || {
            let file = fs::File::open(self.path()).expect("the namespace's file");
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("root may enter a network namespace");
            act()
        };
        match thread::scope(|scope| scope.spawn(enter).join()) {
            Ok(value) => value,
            Err(cause) => std::panic::resume_unwind(cause),
        }
    }

    /// The living processes in this network, sorted by process id; none when there is no such namespace. Threads that entered it
    /// by themselves do not count.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let Some(is_in) = membership(&[self]) else { return Vec::new() };
        processes_that(is_in)
    }
}

/// A function that says whether a process is in one of these networks. `None` when none of them exists.
fn membership(networks: &[&Network]) -> Option<impl Fn(u32) -> bool + use<>> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let wanted: Vec<_> = networks.iter().filter_map(|network| identity(&network.path())).collect();
    // A zombie has no namespaces any more, so that it is in none of them.
    (!wanted.is_empty()).then_some(move |pid| {
        identity(Path::new(&format!("/proc/{pid}/ns/net"))).is_some_and(|own| wanted.contains(&own))
    })
}

/// Kills (`kill -9`) the processes in these networks that `is_wanted` chooses, and those that they start meanwhile. It thaws the control groups of
/// deadheat that they were in, because a frozen process of version 1 does not die, and removes those groups if they are empty then.
///
/// # Errors
/// The processes that are left after some seconds.
pub(crate) fn kill_all(networks: &[&Network], is_wanted: impl Fn(u32) -> bool) -> Result<(), Vec<Process>> {
    let Some(is_in) = membership(networks) else { return Ok(()) };
    let is_wanted = |pid| is_in(pid) && is_wanted(pid);
    let mut groups = Vec::new();
    let mut left = Vec::new();
    wait_until(PATIENCE, || {
        left = processes_that(is_wanted);
        if !left.is_empty() {
            groups.extend(groups_of(&left));
            left.iter().for_each(|process| kill_if(process.pid, is_wanted));
            for group in &groups {
                // Each version has one of these files, and the group may be gone.
                let _ = fs::write(group.join("freezer.state"), "THAWED");
                let _ = fs::write(group.join("cgroup.freeze"), "0");
            }
        }
        left.is_empty()
    });
    // A group counts a process until its parent has been told of its end.
    wait_until(Duration::from_millis(200), || {
        groups.retain(|group| fs::remove_dir(group).is_err() && group.exists());
        groups.is_empty()
    });
    if left.is_empty() { Ok(()) } else { Err(left) }
}

/// The control groups of deadheat that contain one of these processes.
fn groups_of(processes: &[Process]) -> Vec<PathBuf> {
    let members = |group: &Path| fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let wanted: Vec<String> = processes.iter().map(|process| process.pid.to_string()).collect();
    let mut groups = leftover_cgroups("deadheat-");
    groups.retain(|group| members(group).lines().any(|pid| wanted.iter().any(|one| one == pid)));
    groups
}

/// Removes the names of these namespaces. The kernel removes a namespace itself, with its interfaces, once no process and no socket is in it.
///
/// # Errors
/// The names that are still there.
pub(crate) fn remove(networks: &[&Network]) -> Result<(), Vec<String>> {
    let is_there = |network: &&&Network| network.path().exists();
    let commands: String =
        networks.iter().filter(is_there).map(|network| format!("netns delete {}\n", network.name)).collect();
    if !commands.is_empty()
        && let Some(ip) = program("ip")
    {
        // Another program may remove the same leftovers. What counts is what is there afterwards.
        let mut ip = Command::new(ip);
        ip.args(["-force", "-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Ok(mut child) = ip.spawn() {
            let _ = child.stdin.take().expect("a pipe").write_all(commands.as_bytes());
            let _ = child.wait();
        }
    }
    let left: Vec<String> = networks.iter().filter(is_there).map(|network| network.name.clone()).collect();
    if left.is_empty() { Ok(()) } else { Err(left) }
}
