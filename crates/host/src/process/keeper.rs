//! The keeper: a small process between deadheat and each contender. It ends the contender's whole tree when deadheat ends, in whatever
//! way deadheat ends.
//!
//! It adopts every orphan of the contender (child subreaper). It notices deadheat's end by the end of its standard input, ends the tree
//! (thaw, TERM, then KILL until nothing is left) and removes the control group. The shell that runs the contender has a parent-death
//! signal, so that it also ends with its keeper. What that shell started does not: a later command names it as left over.
//! Must not know: what the contender is measured for.

use std::ffi::OsString;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use deadheat_record::{CgroupKind, Ending, Limits};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, set_child_subreaper, set_parent_process_death_signal, wait,
};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::affinity;
use crate::cgroup::{Cgroup, Hierarchy, SYSTEM};
use crate::command::GIT_VARIABLES;
use crate::process::container::{
    self, Engine, GROUPS_VARIABLE, ID_FILE_VARIABLE, MANAGER_VARIABLE, Place, container_of,
};
use crate::process::{profile, tree};

/// The hidden subcommand that runs this program as a keeper.
pub const KEEPER_COMMAND: &str = "__keeper";
/// The hidden subcommand that prepares a process and then becomes the contender.
pub const STAGE_COMMAND: &str = "__stage";
/// The environment variable that marks every process of a run: `PID:START_TICKS` of deadheat.
pub const RUN_VARIABLE: &str = "DEADHEAT_RUN";
/// The prefix of control group names.
pub const CGROUP_PREFIX: &str = "deadheat-";

/// How long a killed tree may take to disappear.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// What a keeper runs, as one line of JSON on its standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeeperOrder {
    /// The shell command.
    pub command: String,
    /// The working folder.
    pub folder: PathBuf,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// The file for its standard output and error.
    pub log: PathBuf,
    /// Cores that it may run on; empty for all.
    pub cpus: Vec<usize>,
    /// The name of its control group.
    pub group: String,
    /// The folder in which groups of version 2 are made. Default: this program's own group.
    pub room: Option<PathBuf>,
    /// The limits of the group.
    pub limits: Limits,
    /// How to ask it to end; an unknown signal means TERM.
    pub ending: Ending,
    /// How long it may then take to end, in milliseconds.
    pub grace_ms: u64,
    /// If the command runs a container, which then has the name of the group: the file for the container's ID. Otherwise none.
    #[serde(default)]
    pub id_file: Option<PathBuf>,
    /// Whether to remove the maps of compiled code that its runtimes write for profilers, after its end.
    #[serde(default)]
    pub remove_maps: bool,
}

/// What a keeper reports on its standard output, one line of JSON for each message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Message {
    /// The process that will become the contender exists, and waits for a line on the keeper's standard input. deadheat can set up its
    /// counters before the contender begins.
    Staged {
        /// Its process number.
        pid: i32,
    },
    /// The contender runs.
    Started {
        /// Its first process.
        pid: i32,
        /// When the shell with the command began, in the time of [`now_ns`]: the start of the contender, without deadheat's own work.
        at_ns: u64,
        /// Its control group, if one could be made.
        group: Option<Cgroup>,
    },
    /// The contender could not be started.
    Failed {
        /// The system's error message.
        reason: String,
    },
    /// Its first process ended.
    Exited {
        /// The kernel's wait status: see [`ExitStatus`].
        raw: i32,
    },
    /// The contender's tree has ended.
    Gone {
        /// Processes that could not be ended; normally empty.
        left: Vec<i32>,
    },
}

/// Runs the keeper from start to end. Returns its exit status.
pub fn keep() -> u8 {
    match keep_one() {
        Ok(()) => 0,
        Err(error) => {
            say(&Message::Failed { reason: error.to_string() });
            1
        }
    }
}

fn keep_one() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let mut order: KeeperOrder = serde_json::from_str(&line)?;
    set_child_subreaper(Some(getpid()))?;
    let signals = signals()?;
    let mut hierarchy = Hierarchy::detect();
    if let Some(room) = &order.room {
        hierarchy = hierarchy.based(room);
    }
    if order.id_file.is_some() {
        hierarchy = hierarchy.of_containers();
    }
    let group = hierarchy.make_limited(&order.group, &order.limits).map_err(io::Error::other)?;
    let (child, begun_ns) = match begin(&order, group.as_ref(), &hierarchy) {
        Ok(begun) => begun,
        Err(error) => {
            remove_group(&order, &hierarchy, group.as_ref());
            return Err(error);
        }
    };
    let pid = Pid::from_child(&child).as_raw_nonzero().get();
    if let Some(at_ns) = begun_ns {
        say(&Message::Started { pid, at_ns, group: group.clone() });
        wait_for_the_end(&child, signals)?;
    } else {
        // A contender that never began need not be asked to end.
        order.ending = Ending::default();
    }
    let ended = end_tree(group.as_ref(), &order);
    if order.id_file.is_some() && ended.killed {
        container::remove_killed(&order.command, &order.group);
    } else if ended.too_early {
        container::remove_late(&order.command, &order.group);
    }
    let left = ended.left;
    remove_group(&order, &hierarchy, group.as_ref());
    say(&Message::Gone { left: left.iter().map(|pid| pid.as_raw_nonzero().get()).collect() });
    Ok(())
}

/// Removes the group that [`keep_one`] made, with what engines made in it.
fn remove_group(order: &KeeperOrder, hierarchy: &Hierarchy, group: Option<&Cgroup>) {
    let Some(group) = group else { return };
    if let Some(id_file) = &order.id_file {
        let _ = std::fs::remove_file(id_file);
        hierarchy.remove_of_containers(&order.group);
    }
    let _ = group.remove();
}

/// What deadheat tells an engine, so that the container gets into the right group.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Told {
    /// Variables of the command, with options for the engine.
    pub(super) variables: Vec<(&'static str, String)>,
    /// Whether the engine's own processes need a group beside the container's.
    pub(super) apart: bool,
}

/// What the keeper tells a container engine about control groups. Nothing if the command runs no container, or has no group.
pub(super) fn told(
    order: &KeeperOrder,
    hierarchy: &Hierarchy,
    group: Option<&Cgroup>,
    place: impl FnOnce(Engine, CgroupKind) -> Place,
) -> Told {
    let (Some(id_file), Some((engine, _)), Some(group)) =
        (&order.id_file, container_of(&order.command), group)
    else {
        return Told::default();
    };
    let mut variables = Vec::new();
    let mut options = Vec::new();
    let mut apart = false;
    let at = place(engine, group.kind());
    match (at, engine, group.kind()) {
        (Place::System, ..) => {
            options.push(format!("--cgroup-parent={SYSTEM}"));
            variables.push((ID_FILE_VARIABLE, id_file.display().to_string()));
        }
        // Podman divides the group in two.
        (Place::Below, Engine::Podman, CgroupKind::V2) => options.push("--cgroups=split".to_owned()),
        (Place::Below, ..) => {
            let place = hierarchy.place_of(group, &order.group);
            options.extend(place.map(|place| format!("--cgroup-parent=/{}", place.display())));
            apart = group.kind() == CgroupKind::V2;
        }
    }
    if engine == Engine::Podman && group.kind() == CgroupKind::V1 {
        // With systemd's groups, podman would refuse a path.
        variables.push((MANAGER_VARIABLE, "--cgroup-manager=cgroupfs".to_owned()));
    }
    // What podman starts has the processors of the command. What Docker's daemon starts has the daemon's.
    let cpus = if engine == Engine::Docker && order.cpus.is_empty() {
        affinity::allowed()
    } else {
        order.cpus.clone()
    };
    let in_group = at == Place::Below;
    if !(container::chooses_processors(&order.command) || (in_group && !group.has_cpuset())) {
        options.extend(container::option_for_processors(&cpus));
    }
    variables.push((GROUPS_VARIABLE, options.join(" ")));
    Told { variables, apart }
}

fn say(message: &Message) {
    let Ok(mut text) = serde_json::to_string(message) else { return };
    text.push('\n');
    // deadheat may have ended and closed the pipe; the keeper carries on regardless.
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Two sockets that become readable: one on a signal to end (TERM, INT, HUP), one when a child ended.
struct Signals {
    end: UnixStream,
    child: UnixStream,
}

fn signals() -> io::Result<Signals> {
    let readable_at = |signals: &[Signal]| -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        for signal in signals {
            signal_hook::low_level::pipe::register(signal.as_raw(), theirs.try_clone()?)?;
        }
        Ok(ours)
    };
    Ok(Signals {
        end: readable_at(&[Signal::TERM, Signal::INT, Signal::HUP])?,
        child: readable_at(&[Signal::CHILD])?,
    })
}

/// Starts the contender through the stage, and lets it begin on deadheat's line. Also returns the moment at which it began; none if
/// deadheat ended before: then the stage ends too.
fn begin(
    order: &KeeperOrder,
    group: Option<&Cgroup>,
    hierarchy: &Hierarchy,
) -> io::Result<(Child, Option<u64>)> {
    // An engine that does not answer now will not start a container either.
    let told = told(order, hierarchy, group, |engine, groups| {
        container::place(engine, groups, &order.env).unwrap_or(Place::Below)
    });
    let group = match group {
        Some(group) if told.apart => Some(group.for_engine()?),
        group => group.cloned(),
    };
    let spawned_ns = now_ns();
    let (child, mut stage) = spawn(order, group, told.variables)?;
    say(&Message::Staged { pid: Pid::from_child(&child).as_raw_nonzero().get() });
    if io::stdin().lock().read_line(&mut String::new()).unwrap_or(0) == 0 {
        return Ok((child, None));
    }
    // A stage that has already failed does not read this.
    let _ = stage.write_all(b"\n");
    Ok((child, Some(begun_ns(stage).unwrap_or(spawned_ns))))
}

/// Starts the stage, which enters the group and pins itself. Also returns the socket for the go signal, on which the stage reports the
/// time at which it began.
fn spawn(
    order: &KeeperOrder,
    group: Option<Cgroup>,
    of_engine: Vec<(&'static str, String)>,
) -> io::Result<(Child, UnixStream)> {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(&order.log)?;
    let stage = Stage { group, cpus: order.cpus.clone(), keeper: getpid().as_raw_nonzero().get() };
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new("/proc/self/exe");
    for name in GIT_VARIABLES {
        command.env_remove(name);
    }
    command
        .arg(STAGE_COMMAND)
        .arg(serde_json::to_string(&stage)?)
        .arg(&order.command)
        .current_dir(&order.folder)
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .envs(of_engine)
        .stdin(OwnedFd::from(theirs))
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    // Dropping the command closes our copy of the stage's end; the other copy closes when the stage becomes the contender or fails.
    Ok((command.spawn()?, ours))
}

/// The time that the stage reports before it becomes the contender; none if it failed first. Closes the sending side.
fn begun_ns(mut stage: UnixStream) -> Option<u64> {
    stage.shutdown(Shutdown::Write).ok()?;
    let mut told = String::new();
    stage.read_to_string(&mut told).ok()?;
    told.parse().ok()
}

/// The current time in nanoseconds, on a clock that all processes share and that cannot be set.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns when standard input ends or a signal arrives. Reports it if the contender exits before.
fn wait_for_the_end(child: &Child, mut signals: Signals) -> io::Result<()> {
    let pid = Pid::from_child(child);
    let stdin = io::stdin();
    loop {
        let mut fds = [
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(signals.end.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(signals.child.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let [input, end, ended] = fds.map(|fd| !fd.revents().is_empty());
        if ended {
            let _ = signals.child.read(&mut [0_u8; 64]);
            if let Some((_, status)) = reap().0.into_iter().find(|(one, _)| *one == pid) {
                say(&Message::Exited { raw: status.into_raw() });
            }
        }
        if end || (input && io::stdin().lock().read(&mut [0_u8; 64])? == 0) {
            return Ok(());
        }
    }
}

/// Reaps every child that has ended. Also says whether there are children that have not.
fn reap() -> (Vec<(Pid, ExitStatus)>, bool) {
    let mut ended = Vec::new();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended.push((pid, ExitStatus::from_raw(status.as_raw()))),
            Ok(None) => return (ended, true),
            Err(_) => return (ended, false),
        }
    }
}

/// Runs the command that asks for the end, in the contender's folder and environment; none if it cannot be run.
fn ask_to_end(order: &KeeperOrder) -> Option<Child> {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(&order.log).ok()?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(order.ending.command.as_ref()?).current_dir(&order.folder);
    shell.envs(order.env.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
    shell.stdout(log.try_clone().ok()?).stderr(log).spawn().ok()
}

fn signal_of(ending: &Ending) -> Signal {
    match ending.signal.as_deref() {
        Some("INT") => Signal::INT,
        Some("QUIT") => Signal::QUIT,
        Some("HUP") => Signal::HUP,
        Some("USR1") => Signal::USR1,
        Some("USR2") => Signal::USR2,
        _ => Signal::TERM,
    }
}

/// How a tree of processes ended.
struct Ended {
    /// The processes that could not be ended.
    left: Vec<Pid>,
    /// Whether any had to be killed.
    killed: bool,
    /// Whether an engine was ended before its container was there. Docker's daemon may make it nevertheless.
    too_early: bool,
}

/// Ends everything that is in the group, in the container's or descends from the keeper.
fn end_tree(group: Option<&Cgroup>, order: &KeeperOrder) -> Ended {
    let container = order.id_file.as_deref().and_then(|file| match group {
        Some(group) => group.of_container(file).map(Container::Group),
        None => tree::watcher_of_container(getpid()).map(Container::Watched),
    });
    let inner = if let Some(Container::Group(inner)) = &container { Some(inner) } else { None };
    let groups: Vec<&Cgroup> = group.into_iter().chain(inner).collect();
    let members = || {
        let mut all = tree::descendants(getpid());
        all.extend(groups.iter().flat_map(|group| group.processes_below()));
        // A process in several lists gets one signal: many programs take a second one as a request to end at once.
        all.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
        all.dedup();
        all
    };
    // deadheat knows more of the processes that write maps, and removes them too. If deadheat was killed, the keeper does.
    let writers = if order.remove_maps { members() } else { Vec::new() };
    let is_dockers = order.id_file.is_some() && container::is_dockers(&order.command);
    let too_early = container.is_none() && is_dockers && !members().is_empty();
    let (left, killed) = end_members(&groups, container.as_ref(), order, &members);
    writers.iter().for_each(|pid| profile::remove_map(pid.as_raw_nonzero().get()));
    Ended { left, killed, too_early }
}

/// The processes of a container, without those of its engine.
enum Container {
    /// All processes in this group.
    Group(Cgroup),
    /// All that descend from this process.
    Watched(Pid),
}

impl Container {
    fn processes(&self) -> Vec<Pid> {
        match self {
            Self::Group(group) => group.processes(),
            Self::Watched(by) => tree::descendants(*by),
        }
    }
}

fn end_members(
    groups: &[&Cgroup],
    container: Option<&Container>,
    order: &KeeperOrder,
    members: &dyn Fn() -> Vec<Pid>,
) -> (Vec<Pid>, bool) {
    groups.iter().for_each(|group| drop(group.thaw()));
    // A contender with its own stop command may not handle a signal well.
    let asked = ask_to_end(order).is_some();
    if !asked {
        // The engine notices by itself that its container ends, and removes what is left of it.
        let all = container.map_or_else(members, Container::processes);
        tree::signal(&all, signal_of(&order.ending));
    }
    // An engine passes signals on, with a process for each.
    tree::signal(&container.map_or_else(members, Container::processes), Signal::CONT);
    // The kernel gives the first process of a container no signal that it does not handle.
    let is_deaf = !asked
        && container.is_some_and(|container| {
            // An entry point that is a shell does not handle it, but the server that it runs may.
            let handles = |pid: &Pid| tree::handles(*pid, signal_of(&order.ending));
            !container.processes().iter().any(handles)
        });
    let grace_ms = if is_deaf { 0 } else { order.grace_ms };
    wait_until_empty(groups, Duration::from_millis(grace_ms));
    let mut killed = false;
    if let Some(container) = container {
        let running = container.processes();
        killed = !running.is_empty();
        tree::signal(&running, Signal::KILL);
        // An engine that is killed while it removes a container leaves the container's network behind.
        wait_until_empty(groups, KILL_PATIENCE);
    }
    let start = Instant::now();
    loop {
        reap();
        // Looks through all processes of the machine, once all seem to have ended.
        let left = members();
        if left.is_empty() || start.elapsed() > KILL_PATIENCE {
            return (left, killed);
        }
        killed = true;
        // Freeze first, so that no process can fork while the signals are sent.
        groups.iter().for_each(|group| drop(group.freeze()));
        tree::signal(&members(), Signal::KILL);
        for group in groups {
            group.kill();
            let _ = group.thaw();
        }
        wait_until_empty(groups, Duration::from_millis(50));
    }
}

/// Waits until nothing is in the groups or descends from the keeper. As it adopts orphans, it has a child as long as it has descendants.
fn wait_until_empty(groups: &[&Cgroup], patience: Duration) {
    let is_empty = || !reap().1 && groups.iter().all(|group| group.processes_below().is_empty());
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if is_empty() || start.elapsed() >= patience {
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// What the stage does before it becomes the contender.
#[derive(Debug, Serialize, Deserialize)]
struct Stage {
    group: Option<Cgroup>,
    cpus: Vec<usize>,
    keeper: i32,
}

/// Enters the group, pins itself, asks to die with the keeper, waits for the go signal on its standard input, and answers there with the
/// current time. Then becomes the contender, which has no standard input. Returns only on failure, with the error.
pub fn stage(arguments: &[OsString]) -> io::Error {
    match prepare(arguments).and_then(|command| wait_for_a_word().map(|()| command)) {
        Ok(command) => {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(command).stdin(Stdio::null());
            // If the keeper does not receive this time, it uses a slightly earlier one.
            let _ = rustix::io::write(io::stdin().as_fd(), now_ns().to_string().as_bytes());
            shell.exec()
        }
        Err(error) => error,
    }
}

fn wait_for_a_word() -> io::Result<()> {
    loop {
        match rustix::io::read(io::stdin().as_fd(), &mut [0_u8; 1]) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) => return Err(io::Error::other("deadheat ended before it could start the command")),
            other => return other.map(drop).map_err(io::Error::from),
        }
    }
}

fn prepare(arguments: &[OsString]) -> io::Result<&OsString> {
    let [text, command] = arguments else { return Err(io::Error::other("the stage takes two arguments")) };
    let stage: Stage = serde_json::from_str(&text.to_string_lossy())?;
    if let Some(group) = &stage.group {
        group.enter()?;
    }
    affinity::pin(&stage.cpus)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(stage.keeper) {
        return Err(io::Error::other("the keeper is gone"));
    }
    Ok(command)
}
