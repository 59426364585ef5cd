//! One start of a contender or service, from its command to the end of its last process.
//!
//! Owns: passing ports and sockets on, replacing placeholders, readiness, freezing, usage, the end.
//! Must not know: the schedule, parity, the record.

pub mod container;
#[cfg(test)]
pub(crate) mod held_shell;
pub mod instructions;
pub mod keeper;
pub mod ports;
pub mod profile;
pub mod run;
pub(crate) mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use deadheat_load::Address;
use deadheat_record::{Ending, Limits, Listen, Stacks, command_placeholders};
use rustix::process::{Pid, Signal};

use crate::affinity;
use crate::cgroup::Cgroup;
use crate::clock::Clock;
use crate::command::{in_words, printable};
use crate::process::instructions::Instructions;
use crate::process::keeper::{KEEPER_COMMAND, KeeperOrder, Message, RUN_VARIABLE, now_ns};
use crate::process::ports::Obstacle;
use crate::process::profile::{ProfileError, Profiler};
use crate::process::run::{LeftBehind, RunId};

/// How long a contender may take to end after TERM.
const GRACE: Duration = Duration::from_secs(2);
/// A process that listens on another port after this time probably has a fixed one. If it listens nowhere yet, deadheat looks again when its age has doubled.
const LISTENS_BY: Duration = Duration::from_secs(3);
/// How long a tree may take to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(2);
/// The shortest and longest pause between two readiness checks.
const PAUSES: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(5));
/// How many of the log's last lines an error shows.
const TAIL_LINES: usize = 12;
/// The source of CPU time without a control group: [`tree::clock_ns`].
const CLOCK: &str = "clock";

/// Why a contender did not start, with the last lines of its log.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StartError {
    /// The command could not be run at all.
    #[error("{name} could not be started: {reason}")]
    Spawn {
        /// Name of the contender or service.
        name: String,
        /// The system's error message.
        reason: String,
    },
    /// The fixed port cannot be reached.
    #[error(
        "{name} cannot start: a connection to 127.0.0.1:{port} does not arrive there. A rule of this machine's firewall may lead it elsewhere (see `iptables -t nat -S` or `nft list ruleset`): remove that rule, or let {name} listen on $PORT"
    )]
    PortRedirected {
        /// Name of the contender or service.
        name: String,
        /// The port.
        port: u16,
    },
    /// The fixed port is in use.
    #[error(
        "{name} cannot start: port {port} is taken{holder}; end that process, or let {name} listen on $PORT"
    )]
    PortTaken {
        /// Name of the contender or service.
        name: String,
        /// The port.
        port: u16,
        /// ` by PID (command)`, or empty if unknown.
        holder: String,
    },
    /// It ended before it answered.
    #[error("{name} ended with {status} before it answered{tail}")]
    Exited {
        /// Name of the contender or service.
        name: String,
        /// Its exit status in words.
        status: String,
        /// Its last lines, ready to print.
        tail: String,
    },
    /// It did not answer in time.
    #[error("{name} did not answer within {patience_s} s: {last}{tail}")]
    NotReady {
        /// Name of the contender or service.
        name: String,
        /// How long deadheat waited, in seconds.
        patience_s: f64,
        /// The result of the last attempt.
        last: String,
        /// Its last lines, ready to print.
        tail: String,
    },
    /// It answered in time, but never as the contract demands.
    #[error("{name} gave no right answer within {patience_s} s: {wrong}{tail}")]
    NotRight {
        /// Name of the contender or service.
        name: String,
        /// How long deadheat waited, in seconds.
        patience_s: f64,
        /// What was wrong with its last answer.
        wrong: String,
        /// Its last lines, ready to print.
        tail: String,
    },
    /// The user stopped the race during the start.
    #[error("interrupted")]
    Interrupted,
}

/// What to start, and how.
#[derive(Debug, Clone)]
pub struct ProcessSpec<'a> {
    /// Its name in messages and in the log's file name.
    pub name: &'a str,
    /// The shell command with placeholders.
    pub command: &'a str,
    /// The working folder.
    pub folder: &'a Path,
    /// Variables added to the environment, with placeholders.
    pub env: &'a BTreeMap<String, String>,
    /// Where it will listen.
    pub listen: &'a Listen,
    /// Cores that it may run on; empty for all.
    pub cpus: &'a [usize],
    /// The limits of its tree.
    pub limits: &'a Limits,
    /// How to end it, with placeholders.
    pub ending: &'a Ending,
    /// Its log file.
    pub log: PathBuf,
    /// Values of the placeholders that do not depend on the start: `dataset`, `work`, `study`, `NAME.port`.
    pub values: &'a BTreeMap<String, String>,
    /// The folder for unix sockets.
    pub sockets: &'a Path,
    /// What the kernel observes of it from its start.
    pub observe: Observe,
}

/// What the kernel observes of a process tree from its start. Each adds a small cost to every switch between its threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Observe {
    /// Nothing.
    #[default]
    Nothing,
    /// The number of instructions.
    Instructions,
    /// Its stacks, while [`Process::begin_profile`] and [`Process::end_profile`] say so, and its system calls.
    Stacks,
}

/// Why a started process is not ready yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotYet {
    /// It does not answer, for this reason.
    Silent(String),
    /// It answers, and this is wrong with the answer.
    Wrong(String),
}

/// A contender or service that is running: a tree of processes.
pub trait Process {
    /// Its name in messages.
    fn name(&self) -> &str;
    /// Where it listens.
    fn address(&self) -> &Address;
    /// Its log file.
    fn log(&self) -> &Path;
    /// How its first process ended, once it has.
    fn ended(&self) -> Option<ExitStatus>;
    /// How long ago its first process began.
    fn age(&self) -> Duration;
    /// All its living processes.
    fn processes(&self) -> Vec<Pid>;
    /// Stops every thread of the tree.
    ///
    /// # Errors
    /// When the group does not freeze within twenty seconds, or the tree does not stop within two.
    fn freeze(&self) -> io::Result<()>;
    /// Lets the tree run again.
    ///
    /// # Errors
    /// When the group cannot be written to.
    fn thaw(&self) -> io::Result<()>;
    /// CPU time that the tree has used so far, in nanoseconds, and where it was read. It never decreases.
    fn cpu_ns(&self) -> (u64, &'static str);
    /// That CPU time split into user mode and kernel, in nanoseconds, from the same source; none if the source does not split it. Without
    /// a group, a later reading may be lower by a few clock ticks.
    fn cpu_split(&self) -> Option<(u64, u64)>;
    /// The counter of the tree's instructions; none if it was not requested or instructions cannot be counted.
    fn instructions(&self) -> Option<Arc<Instructions>>;
    /// Voluntary and involuntary context switches of each living thread of the tree.
    fn switches(&self) -> BTreeMap<i32, (u64, u64)>;
    /// Page faults of the tree so far, with and without reading from disk; none if they cannot be read.
    fn page_faults(&self) -> Option<u64>;
    /// System calls of the tree so far; none if it was not started to be profiled or they cannot be counted.
    fn system_calls(&self) -> Option<u64>;
    /// Starts to sample the tree's stacks.
    ///
    /// # Errors
    /// When it was not started to be profiled, was profiled before, or the kernel does not permit it.
    fn begin_profile(&self) -> Result<(), ProfileError>;
    /// Ends sampling, and names the functions of the stacks. The tree should be frozen. `dumps` is the folder into which the tree's runtimes
    /// write dumps of the code that they compile.
    ///
    /// # Errors
    /// When it is not being profiled.
    fn end_profile(&self, dumps: &Path) -> Result<Stacks, ProfileError>;
    /// Proportional set size of the tree, in bytes.
    fn pss_bytes(&self) -> Option<u64>;
    /// Asks the tree to end, without waiting.
    fn ask_to_stop(&mut self);
    /// Ends the tree and returns when all its processes are gone.
    fn stop(self: Box<Self>);

    /// How its first process ended, in words, once it has.
    fn exited(&self) -> Option<String> {
        self.ended().map(in_words)
    }

    /// The log's last lines, indented, with a heading that names the log.
    fn tail(&self) -> String {
        tail(self.log())
    }
}

/// Polls the process until `wrong` finds no fault in its answer. Also returns the time from the start of its first process to the
/// arrival of that answer. This excludes deadheat's work before the start (making groups, starting the process) and the check of the
/// answer. Calls `notice` once if the process seems to have a fixed port: it listens on another one for now.
///
/// # Errors
/// When the process exits first, when `patience` runs out, or when `stopped` returns true.
pub fn wait_ready<T>(
    process: &dyn Process,
    clock: &dyn Clock,
    patience: Duration,
    stopped: &dyn Fn() -> bool,
    notice: &mut dyn FnMut(&str),
    mut ask: impl FnMut(Duration) -> Result<T, String>,
    mut wrong: impl FnMut(&T) -> Option<String>,
) -> Result<(T, Duration), StartError> {
    let mut next_look = Some(LISTENS_BY);
    loop {
        let left = patience.saturating_sub(process.age());
        let asked = ask(left.max(Duration::from_millis(1)));
        let took = process.age();
        let last = match asked.map(|answer| (wrong(&answer), answer)) {
            Ok((None, answer)) => return Ok((answer, took)),
            Ok((Some(wrong), _)) => NotYet::Wrong(wrong),
            Err(reason) => NotYet::Silent(reason),
        };
        if let Some(status) = process.exited() {
            return Err(StartError::Exited { name: process.name().into(), status, tail: process.tail() });
        }
        if stopped() {
            return Err(StartError::Interrupted);
        }
        if process.age() >= patience {
            return Err(not_yet(process, patience, last));
        }
        if next_look.is_some_and(|at| process.age() >= at) {
            let elsewhere = elsewhere(process, &process.processes());
            elsewhere.iter().for_each(|text| notice(text));
            next_look = elsewhere.is_none().then(|| process.age() * 2);
        }
        clock.sleep(pause(process.age()));
    }
}

fn not_yet(process: &dyn Process, patience: Duration, last: NotYet) -> StartError {
    let (name, patience_s, tail) = (process.name().to_owned(), patience.as_secs_f64(), process.tail());
    match last {
        NotYet::Silent(last) => {
            let last = format!("{last}; {}", instead(process));
            StartError::NotReady { name, patience_s, last, tail }
        }
        NotYet::Wrong(wrong) => StartError::NotRight { name, patience_s, wrong, tail },
    }
}

/// What a process does that does not answer: where else it listens, and what each of its processes does.
fn instead(process: &dyn Process) -> String {
    let processes = process.processes();
    let all = elsewhere(process, &processes).into_iter().chain([what_they_do(&processes)]);
    all.collect::<Vec<_>>().join("; ")
}

/// On which other ports these processes of a tree listen; none if they listen where they should, or nowhere.
fn elsewhere(process: &dyn Process, processes: &[Pid]) -> Option<String> {
    let ports = ports::listened_to(processes);
    match process.address() {
        Address::Tcp(address) if !ports.is_empty() && !ports.contains(&address.port()) => {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            Some(format!("it listens on port {}, not on {} (PORT)", ports.join(" and "), address.port()))
        }
        _ => None,
    }
}

/// What each of these processes does: `node (4321) sleeps in do_epoll_wait`. The kernel names its functions to root only.
fn what_they_do(processes: &[Pid]) -> String {
    let one = |pid: &Pid| {
        let pid = pid.as_raw_nonzero().get();
        let (name, stat) = tree::named_stat(Path::new(tree::PROC), pid)?;
        let does = match stat.state {
            'R' => "runs",
            'D' => "waits for the kernel",
            'T' | 't' => "is stopped",
            'Z' | 'X' => "has ended",
            _ => "sleeps",
        };
        let place = fs::read_to_string(format!("{}/{pid}/wchan", tree::PROC)).ok();
        let place = place.filter(|place| !matches!(place.as_str(), "" | "0"));
        let place = place.map_or_else(String::new, |place| format!(" in {place}"));
        Some(printable(&format!("{name} ({pid}) {does}{place}")))
    };
    let all: Vec<String> = processes.iter().take(5).filter_map(one).collect();
    if all.is_empty() { "it has no process".into() } else { all.join(", ") }
}

/// A tree of processes on this machine, with a keeper that ends it when deadheat dies.
#[derive(Debug)]
pub struct LocalProcess {
    name: String,
    address: Address,
    log: PathBuf,
    keeper: Child,
    stdin: Option<ChildStdin>,
    group: Option<Cgroup>,
    /// If it runs a container: the file for the container's ID.
    id_file: Option<PathBuf>,
    /// Whether the container is Docker's, and so does not descend from the command.
    is_dockers: bool,
    /// The container's own group, once it is there.
    inner: OnceLock<Cgroup>,
    /// Without a group, the process from which those of the container descend, once it is there.
    watcher: OnceLock<Pid>,
    /// The processors to which a container is held that does not choose its own.
    cpus: Vec<usize>,
    /// Processes of Docker's that lead the container's port to it, once it is there.
    proxies: OnceLock<Vec<Pid>>,
    /// Counter for its whole tree, if requested and available.
    instructions: Option<Arc<Instructions>>,
    /// Samples the stacks of its whole tree, if requested, or why it cannot.
    profiler: Result<Profiler, ProfileError>,
    /// Reads the keeper's messages until the keeper ends.
    listener: Option<JoinHandle<()>>,
    exited: Arc<Mutex<Option<ExitStatus>>>,
    /// When its first process began, on the keeper's clock.
    begun_ns: u64,
    /// The highest reading of its CPU time, used if there is no group to count it.
    most_cpu_ns: AtomicU64,
}

impl LocalProcess {
    /// Starts it; returns as soon as its first process runs.
    ///
    /// # Errors
    /// When a fixed port is already in use or the process cannot be created.
    pub fn start(start: &ProcessSpec<'_>, run: &RunId) -> Result<Self, StartError> {
        let spawn_error = |reason: String| StartError::Spawn { name: start.name.into(), reason };
        let (address, listen_values) = listen_at(start, run)?;
        let mut values = start.values.clone();
        values.extend(listen_values.iter().cloned());
        let mut env = environment(start.env, &values);
        env.push((RUN_VARIABLE.into(), run.to_string()));
        let (group, command) = (run.next_group(), fill(start.command, &values));
        let cpus = if start.limits.cpuset.is_empty() { start.cpus } else { &start.limits.cpuset }.to_vec();
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        let contained = container::with_options(&command, &group, &run.to_string(), &names);
        let order = KeeperOrder {
            id_file: contained.is_some().then(|| start.sockets.join(format!("{group}.id"))),
            command: contained.unwrap_or(command),
            folder: start.folder.into(),
            env,
            log: start.log.clone(),
            cpus,
            group,
            room: run.groups_in(),
            limits: start.limits.clone(),
            ending: Ending {
                command: start.ending.command.as_ref().map(|command| fill(command, &values)),
                ..start.ending.clone()
            },
            grace_ms: start.ending.grace_ns.map_or(GRACE.as_millis() as u64, |ns| ns / 1_000_000),
            remove_maps: start.observe == Observe::Stacks,
        };
        Self::keep(start, &order, address, run.left_behind()).map_err(|error| spawn_error(error.to_string()))
    }

    fn keep(
        start: &ProcessSpec<'_>,
        order: &KeeperOrder,
        address: Address,
        left: &LeftBehind,
    ) -> io::Result<Self> {
        let (name, observe) = (start.name, start.observe);
        let mut keeper = Command::new("/proc/self/exe")
            .arg(KEEPER_COMMAND)
            .env(
                RUN_VARIABLE,
                order.env.iter().find(|(key, _)| key == RUN_VARIABLE).map_or("", |(_, value)| value),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Protects the keeper from the terminal's signals.
            .process_group(0)
            .spawn()?;
        let mut stdin = keeper.stdin.take().ok_or_else(|| io::Error::other("no pipe to the keeper"))?;
        let stdout = keeper.stdout.take().ok_or_else(|| io::Error::other("no pipe from the keeper"))?;
        stdin.write_all(format!("{}\n", serde_json::to_string(order)?).as_bytes())?;
        let exited = Arc::new(Mutex::new(None));
        let (first, started) = mpsc::channel();
        let (sink, left, who) = (Arc::clone(&exited), left.clone(), name.to_owned());
        let listener = std::thread::Builder::new().name("keeper".into());
        let listener = listener.spawn(move || {
            if let Some(pids) = listen_to(stdout, &sink, &first) {
                left.note(&who, &pids);
            }
        })?;
        let mut running = Self {
            name: name.into(),
            address,
            log: order.log.clone(),
            keeper,
            stdin: Some(stdin),
            group: None,
            id_file: order.id_file.clone(),
            is_dockers: container::is_dockers(&order.command),
            inner: OnceLock::new(),
            watcher: OnceLock::new(),
            cpus: if container::chooses_processors(&order.command) { Vec::new() } else { order.cpus.clone() },
            proxies: OnceLock::new(),
            instructions: None,
            profiler: Err(ProfileError::NotStarted),
            listener: Some(listener),
            exited,
            begun_ns: now_ns(),
            most_cpu_ns: AtomicU64::new(0),
        };
        running.let_begin(&started, observe)?;
        Ok(running)
    }

    /// Sets up what is observed before the first process becomes the contender, lets it begin, and waits for the time at which it did.
    fn let_begin(&mut self, told: &mpsc::Receiver<Message>, observe: Observe) -> io::Result<()> {
        loop {
            match told.recv() {
                Ok(Message::Staged { pid }) => {
                    self.observe(pid, observe);
                    self.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(b"begin\n"))?;
                }
                Ok(Message::Started { group, at_ns, .. }) => {
                    (self.group, self.begun_ns) = (group, at_ns);
                    return Ok(());
                }
                Ok(Message::Failed { reason }) => return Err(io::Error::other(reason)),
                Ok(_) | Err(_) => return Err(io::Error::other("its keeper ended at once")),
            }
        }
    }

    fn observe(&mut self, pid: i32, observe: Observe) {
        let Some(first) = Pid::from_raw(pid) else { return };
        if self.is_dockers {
            self.profiler = Err(ProfileError::Elsewhere);
            return;
        }
        match observe {
            Observe::Nothing => {}
            Observe::Instructions => self.instructions = Instructions::of(first).map(Arc::new),
            Observe::Stacks => self.profiler = Profiler::open(first),
        }
    }

    /// The group whose processes and readings count: a container's own, without those of its engine.
    fn counted(&self) -> Option<&Cgroup> {
        let group = self.group.as_ref()?;
        let Some(id_file) = &self.id_file else { return Some(group) };
        if self.inner.get().is_none()
            && let Some(inner) = group.of_container(id_file)
        {
            self.settle(&inner.processes());
            let _ = self.inner.set(inner);
        }
        Some(self.inner.get().unwrap_or(group))
    }

    /// Without a group: the process from which all that counts descends. As with [`Self::counted`], the engine's processes do not.
    fn ancestor(&self) -> Pid {
        let keeper = Pid::from_child(&self.keeper);
        if self.id_file.is_some()
            && self.watcher.get().is_none()
            && let Some(watcher) = tree::watcher_of_container(keeper)
        {
            self.settle(&tree::descendants(watcher));
            let _ = self.watcher.set(watcher);
        }
        self.watcher.get().copied().unwrap_or(keeper)
    }

    /// Once the container is there: holds its processes to their processors, since some runtimes give them all, and finds those that lead its port to it.
    fn settle(&self, processes: &[Pid]) {
        affinity::pin_processes(processes, &self.cpus);
        if self.is_dockers
            && let Address::Tcp(address) = self.address
        {
            let proxies = tree::proxies_of_port(address.port());
            affinity::pin_processes(&proxies, &self.cpus);
            let _ = self.proxies.set(proxies);
        }
    }

    /// That container's processes cannot be frozen or read by the group of the command.
    fn is_lost(&self) -> bool {
        self.is_dockers && self.inner.get().is_none()
    }

    fn stop_by_signal(&self) -> io::Result<()> {
        let start = Instant::now();
        loop {
            let all = self.processes();
            if tree::all_stopped(&all) {
                return Ok(());
            }
            if start.elapsed() > STOP_PATIENCE {
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{} does not stop", self.name)));
            }
            tree::signal(&all, Signal::STOP);
        }
    }

    fn finish(&mut self) {
        self.ask_to_stop();
        let _ = self.keeper.wait();
        let _ = self.listener.take().map(JoinHandle::join);
        if let Ok(profiler) = &self.profiler {
            profiler.remove_maps();
        }
        if let Address::Unix(path) = &self.address {
            let _ = fs::remove_file(path);
        }
    }
}

impl Process for LocalProcess {
    fn age(&self) -> Duration {
        Duration::from_nanos(now_ns().saturating_sub(self.begun_ns))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn log(&self) -> &Path {
        &self.log
    }

    fn ended(&self) -> Option<ExitStatus> {
        self.exited.lock().ok().and_then(|status| *status)
    }

    fn processes(&self) -> Vec<Pid> {
        match self.counted() {
            Some(group) => group.processes(),
            None => tree::descendants(self.ancestor()),
        }
    }

    fn freeze(&self) -> io::Result<()> {
        // The engine's own processes are not frozen: one of them could hold a lock that the start of another container needs.
        let Some(group) = self.counted() else { return self.stop_by_signal() };
        if self.is_lost() {
            let name = &self.name;
            return Err(io::Error::other(format!(
                "the control group of {name}'s container is not there: deadheat can only race containers of a Docker daemon on this machine"
            )));
        }
        group.freeze()
    }

    fn thaw(&self) -> io::Result<()> {
        match self.counted() {
            Some(group) => group.thaw(),
            None => {
                tree::signal(&self.processes(), Signal::CONT);
                Ok(())
            }
        }
    }

    fn cpu_ns(&self) -> (u64, &'static str) {
        let grouped = self.counted().and_then(|group| Some((group.cpu_ns()?, group.cpu_source())));
        let grouped = grouped.map(|(ns, source)| {
            let proxies = self.proxies.get().into_iter().flatten();
            let theirs: u64 = proxies.filter_map(|pid| tree::clock_ns(pid.as_raw_nonzero().get())).sum();
            (ns + theirs, source)
        });
        grouped.unwrap_or_else(|| {
            let ancestor = self.ancestor();
            let now = match self.watcher.get() {
                Some(watcher) => tree::cpu_ns_of_container(*watcher),
                // What the engine used before its container was there does not count.
                None if self.id_file.is_some() => return (tree::cpu_ns(ancestor), CLOCK),
                None => tree::cpu_ns(ancestor),
            };
            (self.most_cpu_ns.fetch_max(now, Ordering::Relaxed).max(now), CLOCK)
        })
    }

    fn cpu_split(&self) -> Option<(u64, u64)> {
        match self.counted().filter(|group| group.cpu_ns().is_some()) {
            Some(group) => group.cpu_split().map(|(user, system)| {
                let proxies =
                    self.proxies.get().into_iter().flatten().filter_map(|pid| tree::own_split(*pid));
                proxies.fold((user, system), |sum, one| (sum.0 + one.0, sum.1 + one.1))
            }),
            None => match self.watcher.get() {
                Some(watcher) => tree::cpu_split_of_container(Path::new(tree::PROC), *watcher),
                None => tree::cpu_split(Path::new(tree::PROC), self.ancestor()),
            },
        }
    }

    fn instructions(&self) -> Option<Arc<Instructions>> {
        self.instructions.clone()
    }

    fn switches(&self) -> BTreeMap<i32, (u64, u64)> {
        tree::switches(Path::new(tree::PROC), &self.processes())
    }

    fn page_faults(&self) -> Option<u64> {
        if self.is_dockers {
            return None;
        }
        tree::page_faults(Path::new(tree::PROC), self.ancestor())
    }

    fn system_calls(&self) -> Option<u64> {
        self.profiler.as_ref().ok()?.system_calls()
    }

    fn begin_profile(&self) -> Result<(), ProfileError> {
        self.profiler.as_ref().map_err(Clone::clone)?.begin()
    }

    fn end_profile(&self, dumps: &Path) -> Result<Stacks, ProfileError> {
        self.profiler.as_ref().map_err(Clone::clone)?.end(dumps)
    }

    fn pss_bytes(&self) -> Option<u64> {
        tree::pss_bytes(&self.processes())
    }

    fn ask_to_stop(&mut self) {
        drop(self.stdin.take());
    }

    fn stop(mut self: Box<Self>) {
        self.finish();
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Reads the keeper's messages until it ends: forwards those of the start and notes an exit. Returns the processes that could not be
/// ended, if any.
fn listen_to(
    stdout: impl io::Read,
    exited: &Mutex<Option<ExitStatus>>,
    start: &mpsc::Sender<Message>,
) -> Option<Vec<i32>> {
    let mut immortal = None;
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Message>(&line) else { continue };
        match message {
            Message::Exited { raw } => {
                if let Ok(mut slot) = exited.lock() {
                    *slot = Some(ExitStatus::from_raw(raw));
                }
            }
            Message::Staged { .. } | Message::Started { .. } | Message::Failed { .. } => {
                let _ = start.send(message);
            }
            Message::Gone { left } => immortal = Some(left).filter(|left| !left.is_empty()),
        }
    }
    immortal
}

/// The pause before the next attempt to reach a process that began this long ago: 0.5 % of its age. All starts are then timed with
/// about the same relative precision, and a slow start is disturbed less often.
fn pause(age: Duration) -> Duration {
    (age / 200).clamp(PAUSES.0, PAUSES.1)
}

/// Chooses the port or socket, and the values that tell the contender about it.
fn listen_at(start: &ProcessSpec<'_>, run: &RunId) -> Result<(Address, Vec<(String, String)>), StartError> {
    let tcp = |port: u16| {
        let address = Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        (address, vec![("port".to_owned(), port.to_string())])
    };
    match start.listen {
        Listen::FreePort => ports::free().map(tcp).map_err(|error| StartError::Spawn {
            name: start.name.into(),
            reason: format!("no free port on the loopback: {error}"),
        }),
        Listen::Port(port) => match ports::obstacle(*port) {
            None => Ok(tcp(*port)),
            Some(Obstacle::Taken) => {
                let holder = ports::holder(*port)
                    .map_or_else(String::new, |(pid, command)| format!(" by {pid} ({command})"));
                Err(StartError::PortTaken { name: start.name.into(), port: *port, holder })
            }
            Some(Obstacle::Redirected) => {
                Err(StartError::PortRedirected { name: start.name.into(), port: *port })
            }
        },
        Listen::Socket => {
            let path = start.sockets.join(run.next_socket());
            let _ = fs::remove_file(&path);
            let value = path.to_string_lossy().into_owned();
            Ok((Address::Unix(path), vec![("socket".to_owned(), value)]))
        }
    }
}

/// Replaces `{name}` for the names in `values`; leaves everything else unchanged, such as the shell's `${name}`.
pub(crate) fn fill(text: &str, values: &BTreeMap<String, String>) -> String {
    let (mut filled, mut done) = (String::with_capacity(text.len()), 0);
    for (span, name) in command_placeholders(text) {
        let Some(value) = values.get(name) else { continue };
        filled.push_str(&text[done..span.start]);
        filled.push_str(value);
        done = span.end;
    }
    filled + &text[done..]
}

/// The variables that say where a server must listen: deadheat waits for it there.
const LISTEN: [&str; 2] = ["PORT", "SOCKET"];

/// The environment of a command: `values` as variables in capitals, and its own variables with placeholders replaced. Its own win over `values`, but not
/// over [`LISTEN`].
pub(crate) fn environment<'e>(
    own: impl IntoIterator<Item = (&'e String, &'e String)>,
    values: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let own = own.into_iter().map(|(name, value)| (name.clone(), fill(value, values)));
    let given =
        values.iter().map(|(name, value)| (name.to_uppercase().replace(['.', '-'], "_"), value.clone()));
    let (listen, others): (Vec<_>, Vec<_>) = given.partition(|(name, _)| LISTEN.contains(&name.as_str()));
    others.into_iter().chain(own).chain(listen).collect()
}

/// The last lines of a log, indented and without control characters, with a heading that names the log.
pub(crate) fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(16 * 1024)..]).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return format!("\n  it printed nothing ({})", log.display());
    }
    let last: Vec<String> =
        lines[lines.len().saturating_sub(TAIL_LINES)..].iter().map(|line| printable(line)).collect();
    format!("\n  its last lines ({}):\n    | {}", log.display(), last.join("\n    | "))
}

#[cfg(test)]
mod tests;
