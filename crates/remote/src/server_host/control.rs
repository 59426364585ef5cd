//! The controlling side of a server host: it sends a folder, starts a command, and passes on what comes back.
//!
//! Owns: the channel, whether the host is still there, and the ssh programs that run for the command. Must not know: what the command
//! does, where its output and its record go.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::message::{Entry, RunOrder, ServerOrder, ServerReply, SshInput, SshOutput, Stream};
use super::pieces;
use crate::channel::{Patience, Start, lock, seconds};
use crate::error::RemoteError;
use crate::frame::encode;
use crate::input::{Input, Waited};
use crate::link::{HostCommand, Link, LinkEnd, Reach as _, end};
use crate::writer::{Beat, Writer};

/// How often to look for an interruption and for a silent host.
const GLANCE: Duration = Duration::from_millis(50);
/// How many pieces of files may be on their way without an answer.
const ON_THE_WAY: usize = 16;
/// The agent removes its folder when the channel closes, and has this long for it.
const CLOSING: Duration = Duration::from_secs(5);
/// How many ssh programs may run for the command at the same time.
const MOST_SSH: usize = 64;

/// Why a server host cannot be used, or cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerHostError {
    /// The channel cannot be opened.
    #[error(transparent)]
    Channel(#[from] RemoteError),
    /// The host was there and is not any more.
    #[error("the server host {host} was lost: {reason}")]
    Lost {
        /// The host.
        host: String,
        /// What the program that leads to it said, or for how long nothing was heard.
        reason: String,
    },
    /// The host could not do what it was told.
    #[error("server host {host}: {reason}")]
    Failed {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The record cannot be kept on this machine, with the reason and what to do about it.
    #[error("on this machine, {0}")]
    NotKept(String),
    /// The user interrupted it.
    #[error("interrupted; nothing was measured yet")]
    Interrupted,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its exit status; none after a signal.
    pub status: Option<i32>,
    /// The same in words.
    pub how: String,
    /// Why something is left in the work folder, if it is.
    pub left: Option<String>,
}

/// What becomes of what a command says.
pub trait Feedback {
    /// It wrote these bytes.
    fn written(&mut self, stream: Stream, bytes: &[u8]);
    /// Its record has grown by these bytes.
    ///
    /// # Errors
    /// They cannot be kept. The command is then ended.
    fn record(&mut self, bytes: &[u8]) -> Result<(), String>;
    /// The end of one of its log files, at this path below the folder of logs. The path comes from the other machine.
    fn log(&mut self, path: &str, bytes: &[u8]);
    /// It asks for an ssh with these arguments. Returns the program to start; none if it may not have it.
    fn ssh(&mut self, arguments: &[String]) -> Option<Command>;
    /// Nothing was heard for this long; called once for each silence.
    fn silent(&mut self, silence: Duration);
}

/// What arrives from the agent.
enum Event {
    Reply(ServerReply),
    Ended(String),
}

/// A machine on which a command is to run. Dropping it ends the command and everything that belongs to it there.
pub struct ServerHost<'a> {
    name: String,
    writer: Option<Writer>,
    end: Arc<dyn LinkEnd>,
    events: Receiver<Event>,
    heard: Arc<Mutex<Instant>>,
    patience: Patience,
    interrupted: &'a dyn Fn() -> bool,
    on_the_way: usize,
}

/// The name of the work folder of what is sent from this folder of this machine: always the same, so that a race can be continued at the
/// same paths, and two races from one folder do not meet.
pub fn folder_name(machine: &str, folder: &Path) -> String {
    let mut digest = Sha256::new();
    digest.update(machine);
    digest.update([0]);
    digest.update(folder.as_os_str().as_encoded_bytes());
    digest.finalize()[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exchanges greetings with the agent. Returns the ways to it and from it.
fn greet(link: Link, version: &str, patience: Patience) -> Result<(File, Input), RemoteError> {
    let Link { name, output, input, program, end } = link;
    let mut output = File::from(output);
    let mut start = Start { name: &name, end: &*end, input: Input::new(input) };
    if let Err(error) = start.greet(&mut output, program.as_ref(), version, patience) {
        drop(output);
        end.close(Duration::ZERO);
        return Err(error);
    }
    Ok((output, start.input))
}

impl<'a> ServerHost<'a> {
    /// Reaches the host and starts the agent there. `version` is that of this program; the agent must have the same.
    ///
    /// # Errors
    /// The host cannot be reached, or the user interrupts.
    pub fn connect(
        host: HostCommand,
        version: &str,
        patience: Patience,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Result<Self, ServerHostError> {
        let link = host.reach()?;
        let (name, end) = (link.name.clone(), Arc::clone(&link.end));
        let failed = |error: std::io::Error| RemoteError::no_thread(&name, &error);
        // Another thread waits for the network, so that this one can be interrupted.
        let (sender, greeted) = channel();
        let version = version.to_owned();
        let greeting = move || drop(sender.send(greet(link, &version, patience)));
        std::thread::Builder::new().name("greeting".into()).spawn(greeting).map_err(failed)?;
        let (output, mut input) = loop {
            match greeted.recv_timeout(GLANCE) {
                Ok(greeted) => break greeted?,
                Err(RecvTimeoutError::Timeout) if !interrupted() => {}
                Err(RecvTimeoutError::Timeout) => {
                    end.close(Duration::ZERO);
                    return Err(ServerHostError::Interrupted);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let (host, reason) = (name.clone(), "a defect of deadheat".into());
                    return Err(RemoteError::Failed { host, reason, own: true }.into());
                }
            }
        };
        let mut number = 0;
        let frame = Box::new(move || {
            number += 1;
            // A ping is a few bytes, which can always be encoded.
            encode(&ServerOrder::Ping(number)).unwrap_or_default()
        });
        let heard = Arc::new(Mutex::new(Instant::now()));
        let moving = Arc::clone(&heard);
        let took = Box::new(move || *lock(&moving) = Instant::now());
        let writer =
            Writer::start(output, Some(Beat { every: patience.beat, frame, took })).map_err(failed)?;
        let (sender, events) = channel();
        let (hearing, reading) = (Arc::clone(&heard), Arc::clone(&end));
        let read = move || {
            let reason = loop {
                match input.message::<ServerReply>() {
                    Ok(Some(ServerReply::Pong(_))) => {}
                    Ok(Some(reply)) => {
                        if sender.send(Event::Reply(reply)).is_err() {
                            return;
                        }
                    }
                    Ok(None) => match input.wait(Duration::from_secs(1)) {
                        Ok(Waited::Bytes) => *lock(&hearing) = input.arrived(),
                        Ok(Waited::Nothing) => {}
                        Ok(Waited::End) | Err(_) => break reading.reason(""),
                    },
                    Err(error) => break error.to_string(),
                }
            };
            let _ = sender.send(Event::Ended(reason));
        };
        std::thread::Builder::new().name("read-channel".into()).spawn(read).map_err(failed)?;
        Ok(Self { name, writer: Some(writer), end, events, heard, patience, interrupted, on_the_way: 0 })
    }

    /// Makes the work folder of this name. Returns its path on the host.
    ///
    /// # Errors
    /// It cannot be made, for example because another command uses it.
    pub fn begin(&mut self, name: &str) -> Result<String, ServerHostError> {
        self.send(&ServerOrder::Begin { name: name.to_owned() })?;
        match self.reply()? {
            ServerReply::Begun { path } => Ok(path),
            _ => Err(self.unexpected()),
        }
    }

    /// Puts a piece of a folder into the work folder.
    ///
    /// # Errors
    /// It cannot be stored, or the host is lost.
    pub fn put(&mut self, entry: Entry) -> Result<(), ServerHostError> {
        if matches!(entry, Entry::Bytes(_)) {
            while self.on_the_way >= ON_THE_WAY {
                self.await_stored()?;
            }
            self.on_the_way += 1;
        }
        self.send(&ServerOrder::Put(entry))
    }

    /// Runs a command of this program on the host, until it ends. If the user interrupts it, it may end in an orderly way.
    ///
    /// # Errors
    /// It cannot be started, or the host is lost.
    pub fn run(&mut self, order: RunOrder, feedback: &mut dyn Feedback) -> Result<End, ServerHostError> {
        while self.on_the_way > 0 {
            self.await_stored()?;
        }
        self.send(&ServerOrder::Run(order))?;
        if self.reply()? != ServerReply::Started {
            return Err(self.unexpected());
        }
        let mut programs = HashMap::new();
        let (mut told, mut was_silent) = (false, false);
        loop {
            if !told && (self.interrupted)() {
                told = true;
                self.send(&ServerOrder::Interrupt)?;
            }
            let silence = lock(&self.heard).elapsed();
            if silence > self.patience.notice && !was_silent {
                feedback.silent(silence);
            }
            was_silent = silence > self.patience.notice;
            let Some(reply) = self.next()? else { continue };
            match reply {
                ServerReply::Written { stream, bytes } => feedback.written(stream, &bytes),
                ServerReply::Record(bytes) => feedback.record(&bytes).map_err(ServerHostError::NotKept)?,
                ServerReply::Log { path, bytes } => feedback.log(&path, &bytes),
                ServerReply::Ssh { number, input } => self.ssh(number, input, &mut programs, feedback),
                ServerReply::Ended { status, how, left } => return Ok(End { status, how, left }),
                ServerReply::Failed(reason) => return Err(self.failed(reason)),
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// Deals with a request for an ssh.
    fn ssh(
        &self,
        number: u32,
        input: SshInput,
        programs: &mut HashMap<u32, SshProgram>,
        feedback: &mut dyn Feedback,
    ) {
        match input {
            SshInput::Start(arguments) => {
                let allowed = feedback.ssh(&arguments).filter(|_| programs.len() < MOST_SSH);
                let started = match (allowed, &self.writer) {
                    (Some(command), Some(writer)) => {
                        SshProgram::start(command, number, writer).map_err(|error| error.to_string())
                    }
                    _ => Err("the controlling side does not start this".to_owned()),
                };
                match started {
                    Ok(program) => drop(programs.insert(number, program)),
                    Err(reason) => {
                        let reason = format!("ssh: {reason}\n").into_bytes();
                        for output in [SshOutput::Errors(reason), SshOutput::Ended(255)] {
                            // If the host is lost, the caller notices.
                            let _ = self.send(&ServerOrder::Ssh { number, output });
                        }
                    }
                }
            }
            SshInput::Bytes(bytes) => {
                if let Some(to) = programs.get(&number).and_then(|program| program.input.as_ref()) {
                    let _ = to.send(bytes);
                }
            }
            SshInput::End => {
                if let Some(program) = programs.get_mut(&number) {
                    program.input = None;
                }
            }
            SshInput::Gone => drop(programs.remove(&number)),
        }
    }

    fn await_stored(&mut self) -> Result<(), ServerHostError> {
        match self.reply()? {
            ServerReply::Stored => {
                self.on_the_way -= 1;
                Ok(())
            }
            _ => Err(self.unexpected()),
        }
    }

    /// The next reply, before the command has started. Nothing is lost by an interruption then.
    fn reply(&mut self) -> Result<ServerReply, ServerHostError> {
        loop {
            if (self.interrupted)() {
                return Err(ServerHostError::Interrupted);
            }
            match self.next()? {
                Some(ServerReply::Failed(reason)) => return Err(self.failed(reason)),
                Some(reply) => return Ok(reply),
                None => {}
            }
        }
    }

    /// What has arrived, if anything has.
    fn next(&mut self) -> Result<Option<ServerReply>, ServerHostError> {
        let lost = |reason: String| ServerHostError::Lost { host: self.name.clone(), reason };
        match self.events.recv_timeout(GLANCE) {
            Ok(Event::Reply(reply)) => Ok(Some(reply)),
            Ok(Event::Ended(reason)) => Err(lost(reason)),
            Err(RecvTimeoutError::Disconnected) => Err(lost("its channel closed".into())),
            Err(RecvTimeoutError::Timeout) => {
                if lock(&self.heard).elapsed() > self.patience.deadline {
                    let seconds = seconds(self.patience.deadline);
                    // The program that leads there may wait for the network for long.
                    self.end.cut();
                    return Err(lost(format!("nothing was heard from it for {seconds}")));
                }
                Ok(None)
            }
        }
    }

    fn send(&self, order: &ServerOrder) -> Result<(), ServerHostError> {
        let frame = encode(order).map_err(|error| self.failed(error.to_string()))?;
        if let Some(writer) = &self.writer {
            writer.send(frame);
        }
        Ok(())
    }

    fn failed(&self, reason: String) -> ServerHostError {
        ServerHostError::Failed { host: self.name.clone(), reason }
    }

    fn unexpected(&self) -> ServerHostError {
        self.failed("a reply came out of order".into())
    }
}

impl Drop for ServerHost<'_> {
    fn drop(&mut self) {
        // The end of its input ends the agent, and with it the child.
        self.writer.take();
        self.end.close(CLOSING);
    }
}

/// An ssh that runs for a command on the host. Dropping it ends it.
struct SshProgram {
    child: Arc<Mutex<Child>>,
    /// Where bytes for its standard input go. None once that has ended.
    input: Option<Sender<Vec<u8>>>,
}

impl SshProgram {
    fn start(mut command: Command, number: u32, writer: &Writer) -> std::io::Result<Self> {
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (input, bytes) = channel::<Vec<u8>>();
        if let Some(mut stdin) = child.stdin.take() {
            std::thread::spawn(move || {
                while let Ok(bytes) = bytes.recv() {
                    if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
                        return;
                    }
                }
            });
        }
        let outputs = (child.stdout.take(), child.stderr.take());
        let child = Arc::new(Mutex::new(child));
        let (writer, waiting) = (writer.clone(), Arc::clone(&child));
        std::thread::spawn(move || {
            let errors = outputs.1.map(|errors| {
                let writer = writer.clone();
                std::thread::spawn(move || {
                    pieces(errors, |piece| tell(number, SshOutput::Errors(piece), &writer));
                })
            });
            if let Some(output) = outputs.0 {
                pieces(output, |piece| tell(number, SshOutput::Output(piece), &writer));
            }
            let _ = errors.map(std::thread::JoinHandle::join);
            let status = loop {
                match lock(&waiting).try_wait() {
                    Ok(Some(status)) => break status.code().and_then(|code| u8::try_from(code).ok()),
                    Ok(None) => {}
                    Err(_) => break None,
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            tell(number, SshOutput::Ended(status.unwrap_or(255)), &writer);
        });
        Ok(Self { child, input: Some(input) })
    }
}

impl Drop for SshProgram {
    fn drop(&mut self) {
        // With the end of its input it ends by itself, and so does the agent that it leads to.
        self.input = None;
        end(&self.child, Duration::from_millis(500));
    }
}

fn tell(number: u32, output: SshOutput, writer: &Writer) {
    // A piece of output is far smaller than the largest frame.
    writer.send(encode(&ServerOrder::Ssh { number, output }).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_need_not_wait_for_a_silent_host() {
        let mut command = Command::new("sleep");
        command.arg("600");
        let host = HostCommand { name: "h".into(), command, program: None };
        let interrupted = || true;
        let connected = ServerHost::connect(host, "0.1.0", Patience::default(), &interrupted);
        assert!(matches!(connected, Err(ServerHostError::Interrupted)));
    }

    /// The end of a link that knows no reason.
    #[derive(Debug)]
    struct NoEnd;

    impl LinkEnd for NoEnd {
        fn reason(&self, _: &str) -> String {
            String::new()
        }

        fn said(&self, _: &str) -> String {
            String::new()
        }

        fn remedy(&self) -> &'static str {
            ""
        }

        fn cut(&self) {}

        fn close(&self, _: Duration) {}
    }

    /// A disk without room.
    struct Full;

    impl Feedback for Full {
        fn written(&mut self, _: Stream, _: &[u8]) {}

        fn record(&mut self, _: &[u8]) -> Result<(), String> {
            Err("the record could not be written".into())
        }

        fn log(&mut self, _: &str, _: &[u8]) {}

        fn ssh(&mut self, _: &[String]) -> Option<Command> {
            None
        }

        fn silent(&mut self, _: Duration) {}
    }

    #[test]
    fn a_record_that_cannot_be_kept_is_not_the_hosts_fault() {
        let (sender, events) = channel();
        for reply in [ServerReply::Started, ServerReply::Record(b"{}\n".to_vec())] {
            sender.send(Event::Reply(reply)).unwrap();
        }
        let interrupted = || false;
        let mut host = ServerHost {
            name: "h".into(),
            writer: None,
            end: Arc::new(NoEnd),
            events,
            heard: Arc::new(Mutex::new(Instant::now())),
            patience: Patience::default(),
            interrupted: &interrupted,
            on_the_way: 0,
        };
        let order = RunOrder {
            folder: String::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            terminal: None,
            relay: false,
            record_bytes: 0,
        };
        let problem = host.run(order, &mut Full).unwrap_err().to_string();
        assert_eq!(problem, "on this machine, the record could not be written");
    }

    #[test]
    fn work_folders_are_named_after_machine_and_folder() {
        let name = folder_name("laptop", Path::new("/home/me/study"));
        assert_eq!(name, folder_name("laptop", Path::new("/home/me/study")));
        assert!(name.len() == 8 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        assert_ne!(name, folder_name("desktop", Path::new("/home/me/study")));
        assert_ne!(name, folder_name("laptop", Path::new("/home/me/studys")));
        assert_ne!(folder_name("a", Path::new("b/c")), folder_name("ab", Path::new("/c")));
    }
}
