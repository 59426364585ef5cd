//! Links to agents: each carries bytes there and back, and says why it ended.
//!
//! Owns: how a program is started that leads to a host, and why it ended. Must not know: what travels.

use std::fmt;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use deadheat_host::command::in_words;

use crate::channel::lock;
use crate::error::RemoteError;
use crate::ssh::{Program, SshTarget};

/// What to do about a host that ssh does not reach.
const SSH_WORKS: &str =
    "make sure that `ssh HOST true` works without asking anything; deadheat cannot type a password";
/// A child that has closed its output has this long to end, so that its exit status and its last words can be told.
const ENDING: Duration = Duration::from_secs(1);
/// How much of the standard error of whatever leads to the agent is kept, in bytes.
const KEPT_ERRORS: usize = 4 * 1024;

/// A host that can be reached. Each host is reached on another thread, all at the same time.
pub trait Reach: Send {
    /// The host's name, in case it cannot be reached.
    fn name(&self) -> String;

    /// Opens the way to the host's agent. It may wait until there is one.
    ///
    /// # Errors
    /// There is no way, with the reason.
    fn reach(self) -> Result<Link, RemoteError>;
}

/// An open way to an agent that was not greeted yet.
pub struct Link {
    /// The name by which the host is shown.
    pub name: String,
    /// Bytes to the agent. When this is dropped, the agent's input ends.
    pub output: OwnedFd,
    /// Bytes from the agent.
    pub input: OwnedFd,
    /// The program to send if the other side asks for it. With none, the agent is there already.
    pub program: Option<Program>,
    /// Says why the link ended.
    pub end: Arc<dyn LinkEnd>,
}

/// Says how a link fares, and closes it.
pub trait LinkEnd: fmt::Debug + Send + Sync {
    /// Why nothing comes any more. It may wait for a moment until that is known. `noise` is what came before the agent's first line.
    fn reason(&self, noise: &str) -> String;

    /// What was said beside the channel, on one line that begins with a semicolon; empty if that is nothing. `noise` as before.
    fn said(&self, noise: &str) -> String;

    /// What others say of a host that is silent, on one line that begins with a semicolon; empty if that is nothing.
    fn seen(&self) -> String {
        String::new()
    }

    /// What to do if the agent cannot be reached.
    fn remedy(&self) -> &'static str;

    /// Breaks the link.
    fn cut(&self);

    /// The link's output was closed: waits until whatever carries it has ended, and breaks it if that takes too long.
    fn close(&self, patience: Duration);
}

/// How to start the agent of a host.
#[derive(Debug)]
pub struct HostCommand {
    /// The name by which the host is shown.
    pub name: String,
    /// The command whose standard input and output are the channel.
    pub command: Command,
    /// The program to send if the command asks for it.
    pub program: Option<Program>,
}

impl HostCommand {
    /// By ssh.
    pub fn ssh(target: &SshTarget, program: &Program) -> Self {
        Self { name: target.to_string(), command: target.command(program), program: Some(program.clone()) }
    }
}

impl Reach for HostCommand {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn reach(self) -> Result<Link, RemoteError> {
        let Self { name, mut command, program } = self;
        // A group of its own: Ctrl-C at the terminal ends the load in an orderly way, and does not kill the channel.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| start_error(&name, &command, &error))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            let reason = "it has no pipes".into();
            return Err(RemoteError::Unreachable { host: name, reason, remedy: SSH_WORKS });
        };
        let (errors, reading) = keep_errors(stderr);
        let end = Arc::new(ChildEnd { child: Mutex::new(child), errors, reading });
        Ok(Link { name, output: stdin.into(), input: stdout.into(), program, end })
    }
}

fn start_error(name: &str, command: &Command, error: &std::io::Error) -> RemoteError {
    let program = command.get_program().to_string_lossy().into_owned();
    RemoteError::Start { host: name.to_owned(), program, reason: error.to_string() }
}

/// The child process that leads to an agent.
#[derive(Debug)]
struct ChildEnd {
    child: Mutex<Child>,
    errors: Arc<Mutex<Vec<u8>>>,
    /// Ends with what the child writes to standard error.
    reading: JoinHandle<()>,
}

impl LinkEnd for ChildEnd {
    /// What the child said, or else its exit status.
    fn reason(&self, noise: &str) -> String {
        let begun = Instant::now();
        let status = loop {
            match lock(&self.child).try_wait() {
                Ok(None) if begun.elapsed() < ENDING => {}
                Ok(status) => break status,
                Err(_) => break None,
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let how = status.map_or_else(
            || "its channel closed".to_owned(),
            |status| format!("its channel ended with {}", in_words(status)),
        );
        // What the child wrote last may still be on its way through the pipe. A process that the child left behind may hold the pipe open.
        while !self.reading.is_finished() && begun.elapsed() < ENDING {
            std::thread::sleep(Duration::from_millis(5));
        }
        format!("{how}{}", self.said(noise))
    }

    fn said(&self, noise: &str) -> String {
        said(&lock(&self.errors), noise)
    }

    fn remedy(&self) -> &'static str {
        SSH_WORKS
    }

    fn cut(&self) {
        let _ = lock(&self.child).kill();
    }

    fn close(&self, patience: Duration) {
        end(&self.child, patience);
    }
}

/// Waits for the end of a child, kills it if that takes too long, and reaps it.
pub(crate) fn end(child: &Mutex<Child>, patience: Duration) {
    let begun = Instant::now();
    let mut child = lock(child);
    while matches!(child.try_wait(), Ok(None)) {
        if begun.elapsed() > patience {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Keeps the end of what the child writes to standard error.
fn keep_errors(mut stderr: ChildStderr) -> (Arc<Mutex<Vec<u8>>>, JoinHandle<()>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeping = Arc::clone(&kept);
    let reading = std::thread::spawn(move || {
        let mut piece = [0; 1024];
        while let Ok(count @ 1..) = stderr.read(&mut piece) {
            keep(&mut lock(&keeping), &piece[..count]);
        }
    });
    (kept, reading)
}

/// Adds to what was said, and keeps only the end of it.
pub(crate) fn keep(kept: &mut Vec<u8>, more: &[u8]) {
    kept.extend_from_slice(more);
    let surplus = kept.len().saturating_sub(KEPT_ERRORS);
    kept.drain(..surplus);
}

/// The last lines of what was said, as one line; of `noise` if that is nothing.
pub(crate) fn said(errors: &[u8], noise: &str) -> String {
    let errors = String::from_utf8_lossy(errors);
    let text = if errors.trim().is_empty() { noise } else { &errors };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.len().saturating_sub(3);
    if lines.is_empty() { String::new() } else { format!("; it said: {}", lines[last..].join("; ")) }
}
