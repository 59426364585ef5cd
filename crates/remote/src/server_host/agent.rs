//! The agent of a server host: it stores what it is sent in a folder, and runs one command there.
//!
//! Owns: that folder and the command, and that both end with the channel. Must not know: what the command does.
//!
//! The thread that calls [`serve`] reads orders and watches the deadline. Others read what the command writes, wait for its end and
//! follow its record.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deadheat_host::command;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use super::message::{Entry, RunOrder, ServerOrder, ServerReply, Stream, Terminal};
use super::relay::Relays;
use super::under_agent::UNDER_AGENT;
use super::work_folder::{FILES, RECORD, WorkFolder};
use super::{PIECE, pieces};
use crate::agent::{AgentEnd, greeting, obey};
use crate::channel::lock;
use crate::frame::encode;
use crate::input::Input;
use crate::ssh::SSH_VARIABLE;
use crate::writer::Writer;

/// The hidden command that becomes the agent of a server host.
pub const SERVER_AGENT_COMMAND: &str = "server-agent";

/// How often to look whether the command has ended and whether its record has grown.
const GLANCE: Duration = Duration::from_millis(100);
/// How long a command has for its orderly end after the channel has ended, and then for each stronger way.
const ORDERLY: Duration = Duration::from_secs(3);
const FORCED: Duration = Duration::from_secs(2);
/// A process that the command left behind may hold its outputs open. They are read for at most this long after the command's end.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How much of the end of a log file is sent back, in bytes, and of how many files.
const KEPT_LOG: u64 = 256 * 1024;
const MOST_LOGS: usize = 500;

/// Carries out orders until the channel ends. Work folders are made in `parent`. `version` is that of this program.
pub fn serve(
    input: impl Into<OwnedFd>,
    output: impl Into<OwnedFd>,
    version: &str,
    parent: &Path,
) -> AgentEnd {
    let mut input = Input::new(input);
    let Ok(writer) = Writer::start(output, None) else {
        return AgentEnd::Failed("no thread could be started".into());
    };
    let deadline = match greeting(&mut input, &writer, version) {
        Ok(deadline) => deadline,
        Err(end) => return end,
    };
    let mut agent =
        Agent { parent: parent.to_owned(), writer, folder: Arc::default(), running: None, broken: false };
    let end = obey(&mut input, deadline, |order, _| {
        agent.carry_out(order);
        Ok(())
    });
    if let Some(running) = agent.running.take() {
        running.end();
    }
    // The process ends now, so that a folder that still exists must go here.
    drop(lock(&agent.folder).take());
    end
}

struct Agent {
    parent: PathBuf,
    writer: Writer,
    /// The work folder. None before the first order and after the end of the command.
    folder: Arc<Mutex<Option<WorkFolder>>>,
    running: Option<Running>,
    /// An order failed. What was sent after it is not looked at.
    broken: bool,
}

impl Agent {
    fn carry_out(&mut self, order: ServerOrder) {
        let done = match order {
            ServerOrder::Ping(number) => return say(&self.writer, &ServerReply::Pong(number)),
            ServerOrder::Interrupt => {
                return self.running.iter().for_each(|one| one.signal(Signal::INT));
            }
            ServerOrder::Ssh { number, output } => {
                let relays = self.running.as_ref().and_then(|one| one.relays.as_ref());
                return relays.into_iter().for_each(|relays| relays.pass(number, &output));
            }
            _ if self.broken => return,
            ServerOrder::Begin { name } => self.begin(&name),
            ServerOrder::Put(entry) => self.put(&entry),
            ServerOrder::Run(order) => self.run(&order),
        };
        let reply = match done {
            Ok(None) => return,
            Ok(Some(reply)) => reply,
            Err(reason) => {
                self.broken = true;
                ServerReply::Failed(reason)
            }
        };
        say(&self.writer, &reply);
    }

    fn begin(&mut self, name: &str) -> Result<Option<ServerReply>, String> {
        let mut folder = lock(&self.folder);
        if folder.is_some() || self.running.is_some() {
            return Err("there is a work folder already".into());
        }
        let made = WorkFolder::make(&self.parent, name)?;
        let Some(path) = made.path().to_str().map(str::to_owned) else {
            return Err(format!("the path {} is not UTF-8", made.path().display()));
        };
        *folder = Some(made);
        Ok(Some(ServerReply::Begun { path }))
    }

    fn put(&mut self, entry: &Entry) -> Result<Option<ServerReply>, String> {
        let mut folder = lock(&self.folder);
        let folder =
            folder.as_mut().filter(|_| self.running.is_none()).ok_or("there is no work folder yet")?;
        folder.put(entry)?;
        Ok(matches!(entry, Entry::Bytes(_)).then_some(ServerReply::Stored))
    }

    fn run(&mut self, order: &RunOrder) -> Result<Option<ServerReply>, String> {
        if self.running.is_some() {
            return Err("a command was started before".into());
        }
        let path = {
            let mut folder = lock(&self.folder);
            let folder = folder.as_mut().ok_or("there is no work folder yet")?;
            folder.close();
            folder.path().to_owned()
        };
        let running = Running::start(order, &path, &self.folder, &self.writer);
        let running = running.map_err(|error| format!("deadheat cannot be started: {error}"))?;
        self.running = Some(running);
        Ok(None)
    }
}

/// Sends a reply. If it is too large for a frame, the reason goes instead.
pub(super) fn say(writer: &Writer, reply: &ServerReply) {
    let frame = encode(reply).or_else(|error| encode(&ServerReply::Failed(error.to_string())));
    writer.send(frame.unwrap_or_default());
}

/// A command that runs.
struct Running {
    child: Arc<Mutex<Child>>,
    relays: Option<Relays>,
    /// The command ends itself when this pipe ends, which happens also when this process is killed.
    _lifeline: Option<ChildStdin>,
    following: std::thread::JoinHandle<()>,
}

impl Running {
    /// Starts the command, and what follows it until its end.
    fn start(
        order: &RunOrder,
        folder: &Path,
        shared: &Arc<Mutex<Option<WorkFolder>>>,
        writer: &Writer,
    ) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(&program);
        command
            .arg(UNDER_AGENT)
            .arg(folder)
            .args(&order.arguments)
            .current_dir(folder.join(FILES).join(&order.folder));
        // The shell that started this agent was told where it is; the command is to look for itself.
        command.env_remove(SSH_VARIABLE).env_remove("PWD").env_remove("OLDPWD");
        command.envs(order.environment.iter().cloned());
        let relays = order.relay.then(|| Relays::listen(folder, &program, writer)).transpose()?;
        if let Some(relays) = &relays {
            command.env(SSH_VARIABLE, relays.program());
        }
        command.stdin(Stdio::piped()).process_group(0);
        let open = Arc::new(AtomicUsize::new(0));
        let reading = |from: File, stream| read_output(from, stream, writer, &open);
        let terminal = order.terminal.as_ref().map(open_terminal).transpose()?;
        let to_terminal = |wanted: fn(&Terminal) -> bool| {
            terminal.as_ref().filter(|_| order.terminal.as_ref().is_some_and(wanted))
        };
        let (output, errors) = (to_terminal(|one| one.output), to_terminal(|one| one.errors));
        for (is_output, to) in [(true, output), (false, errors)] {
            let to: Stdio = match to {
                Some((_, end)) => end.try_clone()?.into(),
                None => Stdio::piped(),
            };
            if is_output {
                command.stdout(to)
            } else {
                command.stderr(to)
            };
        }
        // Before it runs, since whatever it says comes after this.
        say(writer, &ServerReply::Started);
        let mut child = command.spawn()?;
        // Now only the child has the other end of the terminal.
        drop(command);
        let lifeline = child.stdin.take();
        if let Some(output) = child.stdout.take() {
            reading(File::from(OwnedFd::from(output)), Stream::Output)?;
        }
        if let Some(errors) = child.stderr.take() {
            reading(File::from(OwnedFd::from(errors)), Stream::Errors)?;
        }
        if let Some((own, end)) = terminal {
            drop(end);
            let errors = order.terminal.is_some_and(|one| one.errors);
            reading(File::from(own), if errors { Stream::Errors } else { Stream::Output })?;
        }
        let child = Arc::new(Mutex::new(child));
        let follower = Follower {
            child: Arc::clone(&child),
            record: folder.join(RECORD),
            sent: order.record_bytes,
            logs: folder.join(RECORD).with_extension("logs"),
            open,
            folder: Arc::clone(shared),
            writer: writer.clone(),
        };
        let following =
            std::thread::Builder::new().name("command".into()).spawn(move || follower.follow())?;
        Ok(Self { child, relays, _lifeline: lifeline, following })
    }

    /// Sends a signal to the command, if it still runs.
    fn signal(&self, signal: Signal) {
        let mut child = lock(&self.child);
        // A child that was not waited for keeps its number.
        if let (Ok(None), Some(pid)) = (child.try_wait(), Pid::from_raw(child.id().cast_signed())) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Ends the command: in an orderly way, then at once, then by force. Contenders end with it in any case.
    fn end(self) {
        for (signal, patience) in [(Signal::TERM, ORDERLY), (Signal::TERM, FORCED), (Signal::KILL, FORCED)] {
            self.signal(signal);
            let begun = Instant::now();
            while begun.elapsed() < patience {
                if self.following.is_finished() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// A terminal of this size: the end of this process, and that of the command.
fn open_terminal(terminal: &Terminal) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let own = openpt(flags)?;
    unlockpt(&own)?;
    let name = ptsname(&own, Vec::<u8>::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let end = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    let size = Winsize { ws_col: terminal.columns, ws_row: terminal.rows, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&end, size)?;
    // The user's own terminal turns line feeds into what it needs.
    let mut settings = tcgetattr(&end)?;
    settings.make_raw();
    tcsetattr(&end, OptionalActions::Now, &settings)?;
    Ok((own, end))
}

/// Starts a thread that passes on what the command writes. `open` counts these threads.
fn read_output(from: File, stream: Stream, writer: &Writer, open: &Arc<AtomicUsize>) -> io::Result<()> {
    let (writer, counted) = (writer.clone(), Arc::clone(open));
    open.fetch_add(1, Ordering::SeqCst);
    let body = move || {
        pieces(from, |bytes| say(&writer, &ServerReply::Written { stream, bytes }));
        counted.fetch_sub(1, Ordering::SeqCst);
    };
    std::thread::Builder::new().name("output".into()).spawn(body).map(drop)
}

/// Follows a command to its end.
struct Follower {
    child: Arc<Mutex<Child>>,
    record: PathBuf,
    /// How many bytes of the record the controlling side has.
    sent: u64,
    logs: PathBuf,
    open: Arc<AtomicUsize>,
    folder: Arc<Mutex<Option<WorkFolder>>>,
    writer: Writer,
}

impl Follower {
    fn follow(mut self) {
        let ended = loop {
            std::thread::sleep(GLANCE);
            let ended = lock(&self.child).try_wait();
            self.send_record();
            match ended {
                Ok(None) => {}
                Ok(Some(status)) => break Ok(status),
                Err(error) => break Err(error.to_string()),
            }
        };
        let begun = Instant::now();
        while self.open.load(Ordering::SeqCst) > 0 && begun.elapsed() < LAST_WORDS {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.send_logs();
        let left = lock(&self.folder).take().and_then(WorkFolder::remove);
        let (status, how) = match ended {
            Ok(status) => (status.code(), format!("its process ended with {}", command::in_words(status))),
            Err(reason) => (None, reason),
        };
        say(&self.writer, &ServerReply::Ended { status, how, left });
    }

    /// Sends what has been added to the record.
    fn send_record(&mut self) {
        // There is no file before the race begins.
        let Ok(mut file) = File::open(&self.record) else { return };
        if !file.metadata().is_ok_and(|facts| facts.len() > self.sent)
            || file.seek(SeekFrom::Start(self.sent)).is_err()
        {
            return;
        }
        let mut piece = vec![0; PIECE];
        while let Ok(count @ 1..) = file.read(&mut piece) {
            self.sent += count as u64;
            say(&self.writer, &ServerReply::Record(piece[..count].to_vec()));
        }
    }

    /// Sends the ends of all log files.
    fn send_logs(&self) {
        for path in files_in(&self.logs).into_iter().take(MOST_LOGS) {
            let name = path.strip_prefix(&self.logs).ok().and_then(Path::to_str);
            if let (Some(name), Ok(bytes)) = (name, end_of(&path)) {
                say(&self.writer, &ServerReply::Log { path: name.to_owned(), bytes });
            }
        }
    }
}

/// All files in a folder and in the folders in it.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_in(&entry.path())),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    files
}

/// The last bytes of a file.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(KEPT_LOG)))?;
    let mut bytes = Vec::new();
    file.take(KEPT_LOG).read_to_end(&mut bytes)?;
    Ok(bytes)
}
