//! One run of a binary: its input, its time limit and its outcome.
//!
//! Output goes to files and not to pipes. A descendant that outlives the run could keep a pipe open and block the test.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use crate::kit::{Kit, MARK};
use crate::processes::{Signal, kill_all_with_env, send_signal};
use crate::terminal::Terminal;
use crate::wait::{wait_for_lines, wait_until};

/// Inherited environment variables that would change what a run prints or where a server listens.
const FOREIGN: [&str; 7] =
    ["PORT", "SOCKET", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLUMNS"];

/// A run that has not started. It gets a new process group. Defaults: a limit of ten minutes, and no input.
#[derive(Debug)]
#[must_use = "nothing runs before `run` or `spawn`"]
pub struct Invocation<'k> {
    kit: &'k Kit,
    command: Command,
    input: Option<Vec<u8>>,
    terminal: Option<OwnedFd>,
    json: Option<PathBuf>,
    limit: Duration,
}

impl<'k> Invocation<'k> {
    pub(crate) fn new(kit: &'k Kit, mut command: Command) -> Self {
        command.current_dir(kit.path()).process_group(0);
        FOREIGN.iter().for_each(|name| {
            command.env_remove(name);
        });
        let (key, value) = kit.mark();
        command.env(key, value);
        Self { kit, command, input: None, terminal: None, json: None, limit: Duration::from_secs(600) }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    pub fn args<I, A>(mut self, arguments: I) -> Self
    where
        I: IntoIterator<Item = A>,
        A: AsRef<OsStr>,
    {
        self.command.args(arguments);
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Removes a variable from the environment.
    pub fn without_env(mut self, key: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(key);
        self
    }

    /// The working directory. Default: the kit's folder.
    pub fn directory(mut self, path: impl AsRef<Path>) -> Self {
        self.command.current_dir(path);
        self
    }

    /// The bytes that the run reads on standard input.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Sends the output to this terminal, which keeps all of it. The [`Outcome`] then has no output.
    pub fn on(mut self, terminal: &Terminal) -> Self {
        self.terminal = Some(terminal.end());
        self
    }

    /// Adds `--json FILE`, with a file in the kit's folder, and makes [`Outcome::json`] read that file.
    pub fn json_to(mut self, name: impl AsRef<Path>) -> Self {
        let path = self.kit.path().join(name);
        self.command.arg("--json").arg(&path);
        self.json = Some(path);
        self
    }

    /// How long the run may take, from start to end.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts it and waits for its end.
    ///
    /// # Panics
    /// When the run cannot be started or exceeds its time limit. After the limit, this kills the run and all its processes, and
    /// the message contains all output.
    pub fn run(self) -> Outcome {
        self.spawn().wait()
    }

    /// Starts it and returns at once. Dropping the result kills it.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn spawn(mut self) -> Running {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let capture = |kind: &str| self.kit.captures().join(format!("{number}.{kind}"));
        let (stdout, stderr) = (capture("out"), capture("err"));
        let create = |path: &Path| File::create(path).expect("a file for the output");
        let input = self.input.map_or_else(Stdio::null, |bytes| {
            let path = capture("in");
            std::fs::write(&path, bytes).expect("a file for the input");
            File::open(path).expect("the input just written").into()
        });
        self.command.stdin(input).stdout(create(&stdout)).stderr(create(&stderr));
        if let Some(terminal) = self.terminal {
            let errors = terminal.try_clone().expect("a file descriptor");
            self.command.stdout(terminal).stderr(errors);
        }
        let words = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        let words: Vec<OsString> = words.map(OsStr::to_owned).collect();
        let started = Instant::now();
        let child = self.command.spawn().unwrap_or_else(|error| panic!("{words:?}: {error}"));
        let mark = self.kit.mark().1.to_owned();
        Running {
            child,
            words,
            stdout,
            stderr,
            json: self.json,
            mark,
            started,
            limit: self.limit,
            over: false,
        }
    }
}

/// A run that has started.
#[derive(Debug)]
pub struct Running {
    child: Child,
    words: Vec<OsString>,
    stdout: PathBuf,
    stderr: PathBuf,
    json: Option<PathBuf>,
    mark: String,
    started: Instant,
    limit: Duration,
    over: bool,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to standard output so far.
    pub fn stdout(&self) -> String {
        text(&self.stdout)
    }

    /// What it has written to standard error so far.
    pub fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// The file that holds what it has written to standard error so far.
    pub fn stderr_path(&self) -> PathBuf {
        self.stderr.clone()
    }

    /// Whether it is still running.
    ///
    /// # Panics
    /// When the system does not report the state.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the state of a child").is_none()
    }

    /// Waits until a file has at least `lines` complete lines.
    ///
    /// # Panics
    /// With all output, when the run ends or reaches its time limit before that.
    pub fn wait_for_lines(&mut self, path: &Path, lines: usize) {
        let what = format!("{} to have {lines} lines", path.display());
        self.wait_for(&what, || wait_for_lines(path, lines, Duration::ZERO));
    }

    /// Waits until `condition` holds; `what` names it in the message of a failure.
    ///
    /// # Panics
    /// With all output, when the run ends or reaches its time limit before that.
    pub fn wait_for(&mut self, what: &str, mut condition: impl FnMut() -> bool) {
        let left = self.limit.saturating_sub(self.started.elapsed());
        let mut running = true;
        let mut held = false;
        wait_until(left, || {
            running = self.is_running();
            held = condition();
            held || !running
        });
        if !held {
            let why = if running { "its time is over" } else { "it has ended" };
            let report = self.end();
            panic!("waited for {what}, but {why}:\n{report}");
        }
    }

    /// Sends a signal to the run and not to its descendants. Returns false when the run has ended.
    pub fn signal(&mut self, signal: Signal) -> bool {
        self.is_running() && send_signal(self.pid(), signal)
    }

    /// Sends `kill -9` to exactly this process, which simulates a crash. Its descendants get no signal.
    ///
    /// # Panics
    /// When it has already ended.
    pub fn kill_9(mut self) -> Outcome {
        if !self.signal(Signal::KILL) {
            let report = self.end();
            panic!("there is nothing to kill, it has ended:\n{report}");
        }
        self.wait()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When the run exceeds its time limit. This then kills the run and all its processes, and the message contains all
    /// output.
    pub fn wait(mut self) -> Outcome {
        let left = self.limit.saturating_sub(self.started.elapsed());
        if !ends_within(&self.child, left) {
            let report = self.end();
            panic!("not over after {:?} and killed:\n{report}", self.limit);
        }
        self.outcome()
    }

    /// Kills the run and every process of its kit, and returns the outcome.
    fn end(&mut self) -> Outcome {
        // This fails if the run has already ended, which is fine.
        let _ = self.child.kill();
        kill_all_with_env(MARK, &self.mark);
        self.outcome()
    }

    fn outcome(&mut self) -> Outcome {
        let exit = self.child.wait().expect("the end of a child");
        self.over = true;
        Outcome {
            words: self.words.clone(),
            exit,
            elapsed: self.started.elapsed(),
            stdout: text(&self.stdout),
            stderr: text(&self.stderr),
            json: self.json.clone(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Sleeps until the process ends, for at most `limit`; false if it is still running then.
fn ends_within(child: &Child, limit: Duration) -> bool {
    let process = match pidfd_open(Pid::from_child(child), PidfdFlags::empty()) {
        Ok(process) => process,
        // Someone asked for its state after its end.
        Err(Errno::SRCH) => return true,
        Err(error) => panic!("a handle of a child: {error}"),
    };
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a limit that the system knows");
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)) {
            Ok(ended) => return ended > 0,
            Err(Errno::INTR) => {}
            Err(error) => panic!("waiting for a child: {error}"),
        }
    }
}

/// The outcome of a run. `Display` shows all of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    words: Vec<OsString>,
    exit: ExitStatus,
    json: Option<PathBuf>,
    /// The time from the start until the end was noticed.
    pub elapsed: Duration,
    /// Standard output, with invalid UTF-8 replaced.
    pub stdout: String,
    /// Standard error, with invalid UTF-8 replaced.
    pub stderr: String,
}

impl Outcome {
    /// The exit status, or `None` when a signal ended the run.
    pub fn status(&self) -> Option<i32> {
        self.exit.code()
    }

    /// The number of the signal that ended it, if one did.
    pub fn ended_by_signal(&self) -> Option<i32> {
        self.exit.signal()
    }

    /// Fails, with all output, unless the exit status is this one.
    ///
    /// # Panics
    /// When the check fails.
    #[track_caller]
    pub fn assert_status(&self, expected: i32) -> &Self {
        assert!(self.status() == Some(expected), "expected exit status {expected}\n{self}");
        self
    }

    /// Fails, with all output, unless standard output holds this text.
    ///
    /// # Panics
    /// When the check fails.
    #[track_caller]
    pub fn assert_stdout_has(&self, text: &str) -> &Self {
        assert!(self.stdout.contains(text), "expected {text:?} in standard output\n{self}");
        self
    }

    /// Fails, with all output, unless standard error holds this text.
    ///
    /// # Panics
    /// When the check fails.
    #[track_caller]
    pub fn assert_stderr_has(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "expected {text:?} in standard error\n{self}");
        self
    }

    /// The JSON that the run wrote: the file of [`Invocation::json_to`] if it was set, or all of standard output.
    ///
    /// # Panics
    /// With all output, when there is none or it is not JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        let text = match &self.json {
            None => self.stdout.clone(),
            Some(path) => std::fs::read_to_string(path)
                .unwrap_or_else(|error| panic!("{}: {error}\n{self}", path.display())),
        };
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("not JSON: {error}\n{text}\n{self}"))
    }

    /// Standard output as one JSON value for each line that is not empty.
    ///
    /// # Panics
    /// With all output, when a line is not JSON.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let lines = self.stdout.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON: {error}\n{line}\n{self}"))
            })
            .collect()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        // What went wrong comes first: many a log shows only the first line of a failure.
        let tells = |line: &&str| line.contains("error") || line.contains("out of the race");
        let error = self.stderr.lines().find(tells).unwrap_or_default();
        writeln!(out, "{} after {:.3} s: {error}", self.exit, self.elapsed.as_secs_f64())?;
        writeln!(out, "command: {words:?}")?;
        writeln!(out, "--- standard output\n{}", self.stdout.trim_end())?;
        write!(out, "--- standard error\n{}\n---", self.stderr.trim_end())
    }
}

fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}
