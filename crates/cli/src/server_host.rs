//! A race, a check or an examination of another machine: this side sends it there and has its results.
//!
//! Owns: which folder is sent, which command runs there, and what becomes of its record and output. Must not know: how bytes travel, how
//! a race is run.

mod folder;

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use deadheat_record::{Journal, Plan, ServerHost as Origin};
use deadheat_remote::server_host::message::{Entry, RunOrder, Stream};
use deadheat_remote::server_host::{End, Feedback, RECORD, ServerHost, ServerHostError, folder_name};
use deadheat_remote::{HostCommand, Patience, Program, SshTarget};
use deadheat_runner::Finish;
use deadheat_study::choices::UsageError;
use deadheat_study::file as study;
use deadheat_study::plan::record_path;
use deadheat_study::prepare::PrepareError;
use jiff::Zoned;

use crate::commands::{
    Failure, concluded, is_over, journal_of, keep_for_data, make_ignored, numbered_beside, record_exists,
    writable,
};
use crate::console::{Console, lines_plain};
use crate::elsewhere::{self, named_once, tell_reached};
use crate::flags::{
    CheckFlags, Controlled, DoctorFlags, Input, Output, RaceFlags, RaceHostFlags, ServerHostFlags, forwarded,
};
use crate::interrupt::{INTERRUPTED, Interrupt, unless};
use crate::live::{logs_beside, write_json_so_far};
use folder::{Folder, send_file};

/// Variables that say how to write for the user's terminal.
const OF_THE_TERMINAL: [&str; 9] = [
    "TERM",
    "COLORTERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "FORCE_COLOR",
];

/// Exit statuses of a race that was sent here, for the controlling side alone.
const TOO_FEW: u8 = 10;
const PAUSED: u8 = 11;

/// The exit status that tells the controlling side how a race ended.
pub(crate) fn status_of(finish: &Finish) -> u8 {
    match finish {
        Finish::Done => 0,
        Finish::TooFew => TOO_FEW,
        Finish::Paused => PAUSED,
        Finish::Interrupted => INTERRUPTED,
    }
}

/// How the race on a server host ended; none if it failed and has said why.
fn finish_of(status: Option<i32>) -> Option<Finish> {
    let all = [Finish::Done, Finish::TooFew, Finish::Paused, Finish::Interrupted];
    all.into_iter().find(|finish| Some(i32::from(status_of(finish))) == status)
}

/// The server host of a race: the typed one, or that of the record that is continued.
///
/// # Errors
/// The record cannot be read, or names no machine.
pub(crate) fn of_race(flags: &RaceFlags) -> Result<Option<SshTarget>, Failure> {
    if flags.controlled.is_some() {
        return Ok(None);
    }
    let Some(path) = &flags.resume else { return Ok(flags.hosts.server.server_host.clone()) };
    // Also with options that cannot be combined.
    flags.input()?;
    let record = deadheat_record::read(path)?;
    let Some(origin) = record.plan.server_host.as_ref().filter(|_| !is_over(&record)) else {
        return Ok(None);
    };
    let target = origin.host.parse();
    Ok(Some(target.map_err(|error| {
        UsageError::new(format!("{}: {}: {error}", path.display(), origin.host), "correct the record")
    })?))
}

/// Races on another machine and shows the result.
pub(crate) fn race(
    flags: &RaceFlags,
    target: &SshTarget,
    arguments: &[OsString],
    console: &mut Console,
) -> Result<u8, Failure> {
    keep_for_data([("--json", flags.json.as_ref()), ("--html", flags.html.as_ref())], console)?;
    cannot_be_combined(flags)?;
    let interrupt = Interrupt::listen()?;
    let mut order = RaceOrder::of(flags, target)?;
    let json = match &flags.json {
        Some(Output::File(path)) => writable(path, "--json")?,
        _ => None,
    };
    if let Some(Output::File(path)) = &flags.html {
        writable(path, "--html")?;
    }
    let folder = Folder::read(&order.origin.sent, order.origin.sent_ignored)?;
    let program = Program::running(env!("CARGO_PKG_VERSION"))?;
    let address = server_address(&flags.hosts, target, console)?;
    reach_load_hosts(target, &order.load_hosts, &program, &interrupt, console)?;
    let stopped = || interrupt.asked();
    let mut host = connect(target, &program, &stopped)?;
    let place = send(&mut host, target, &folder, &order.origin.control, console)?;
    let mut journal = None;
    let mut record_bytes = 0;
    if order.resumes {
        // From here on, no other process writes it.
        let opened = journal_of(&order.record, &deadheat_record::read(&order.record)?)?;
        opened.path().clone_into(&mut order.record);
        journal = Some(opened);
        record_bytes = fs::metadata(&order.record)?.len();
        host.put(Entry::Record).map_err(failure)?;
        send_file(&order.record, &mut |entry| host.put(entry).map_err(failure))?;
    }
    let mut words: Vec<String> = vec!["race".into()];
    let controlled = Controlled { server_host: order.origin.clone(), record: order.record.clone() };
    let controlled = serde_json::to_string(&controlled).map_err(std::io::Error::from)?;
    words.push(format!("--controlled={controlled}"));
    words.push(format!("--{}={place}/{RECORD}", if order.resumes { "resume" } else { "record" }));
    words.extend(utf8(forwarded(arguments))?);
    words.extend(address_word(address));
    words.push("--".into());
    words.extend(order.targets);
    let mut kept = Kept {
        console,
        path: order.record,
        is_chosen: flags.record.is_some(),
        journal,
        begun: Vec::new(),
        json,
        trouble: None,
        load_hosts: allowed(&order.load_hosts, &program, address.or(order.server_address)),
        host: target.to_string(),
    };
    let run = run_order(words, folder.name(), !order.load_hosts.is_empty(), record_bytes, kept.console);
    let ended = host.run(run, &mut kept);
    // Before anything is shown: the host is left as it was.
    drop(host);
    let Kept { path, journal, trouble, .. } = kept;
    let is_there = journal.is_some();
    drop(journal);
    let again = || {
        format!(
            "all finished epochs are in the record; continue with: deadheat race --resume {}",
            path.display()
        )
    };
    let end = match ended {
        Ok(end) => end,
        Err(error @ ServerHostError::Lost { .. }) if is_there => {
            return Err(Failure::HostLost(UsageError::new(error.to_string(), again())));
        }
        Err(error @ ServerHostError::NotKept(_)) if is_there => {
            return Err(UsageError::new(error.to_string(), again()).into());
        }
        Err(error) => return Err(failure(error)),
    };
    tell_left(&end, console);
    match finish_of(end.status).filter(|_| is_there) {
        Some(finish) => {
            let record = deadheat_record::read(&path)?;
            concluded(flags, &record, &finish, trouble, &path, console)
        }
        None => failed_there(&end, target, is_there.then(again)),
    }
}

/// The exit status of a command on the host that has said what is wrong, or the failure if it has not.
fn failed_there(end: &End, target: &SshTarget, again: Option<String>) -> Result<u8, Failure> {
    match end.status.and_then(|status| u8::try_from(status).ok()) {
        Some(status @ (2 | 3 | INTERRUPTED)) => Ok(status),
        _ => {
            let problem = format!("the race on the server host {target} ended unexpectedly: {}", end.how);
            let remedy = again.unwrap_or_else(|| "look at that machine, and try again".into());
            Err(Failure::HostLost(UsageError::new(problem, remedy)))
        }
    }
}

/// Checks a study on another machine.
pub(crate) fn check(
    flags: &CheckFlags,
    target: &SshTarget,
    arguments: &[OsString],
    console: &Console,
) -> Result<u8, Failure> {
    study::load(&flags.study)?;
    let hosts = &flags.hosts;
    let (sent, study) = of_study(&flags.study, &hosts.server)?;
    let mut words = vec!["check".to_owned()];
    words.extend(utf8(forwarded(arguments))?);
    let address = server_address(hosts, target, console)?;
    words.extend(address_word(address));
    words.extend(["--".into(), word_of(&study)]);
    let sent = Some((&*sent, hosts.server.send_ignored));
    run_there(words, target, sent, (hosts.load_hosts(), address), console)
}

/// Examines another machine.
pub(crate) fn doctor(
    flags: &DoctorFlags,
    target: &SshTarget,
    arguments: &[OsString],
    console: &Console,
) -> Result<u8, Failure> {
    let mut words = vec!["doctor".to_owned()];
    match &flags.json {
        Some(Output::File(path)) => {
            let problem = format!(
                "--json {}: with --server-host, deadheat writes JSON to standard output only",
                path.display()
            );
            return Err(UsageError::new(problem, "write: --json - > FILE").into());
        }
        Some(Output::Standard) => words.push("--json=-".into()),
        None => {}
    }
    words.extend(utf8(forwarded(arguments))?);
    let hosts = &flags.hosts;
    let address = server_address(hosts, target, console)?;
    words.extend(address_word(address));
    let load = (hosts.load_hosts(), address);
    let Some(command) = &flags.command else {
        // There is nothing to send: the server is built in.
        return run_there(words, target, None, load, console);
    };
    words.extend(["--".into(), command.clone()]);
    let sent = hosts.server.send.clone().map_or_else(std::env::current_dir, Ok)?;
    run_there(words, target, Some((&sent, hosts.server.send_ignored)), load, console)
}

/// Runs a command without a record on another machine, in a copy of the folder `sent`, with or without what git ignores there. The load hosts
/// reach it at the address beside them.
fn run_there(
    words: Vec<String>,
    target: &SshTarget,
    sent: Option<(&Path, bool)>,
    (load_hosts, address): (&[SshTarget], Option<Ipv4Addr>),
    console: &Console,
) -> Result<u8, Failure> {
    let interrupt = Interrupt::listen()?;
    let folder = sent.map(|(sent, ignored)| Folder::read(sent, ignored)).transpose()?;
    let program = Program::running(env!("CARGO_PKG_VERSION"))?;
    reach_load_hosts(target, load_hosts, &program, &interrupt, console)?;
    let stopped = || interrupt.asked();
    let mut host = connect(target, &program, &stopped)?;
    match &folder {
        Some(folder) => drop(send(&mut host, target, folder, &machine(), console)?),
        None => drop(host.begin(&folder_name(&machine(), Path::new("doctor"))).map_err(failure)?),
    }
    let folder = folder.as_ref().map_or("", Folder::name);
    let run = run_order(words, folder, !load_hosts.is_empty(), 0, console);
    let load_hosts = allowed(load_hosts, &program, address);
    let mut shown = Shown { console, host: target.to_string(), load_hosts };
    let end = host.run(run, &mut shown).map_err(failure)?;
    drop(host);
    tell_left(&end, console);
    match end.status.and_then(|status| u8::try_from(status).ok()) {
        Some(status) => Ok(status),
        None => failed_there(&end, target, None),
    }
}

/// What is sent and run for a race.
struct RaceOrder {
    origin: Origin,
    /// The record on this machine.
    record: PathBuf,
    resumes: bool,
    load_hosts: Vec<SshTarget>,
    /// Where they reach the contenders, if the record that is continued says it.
    server_address: Option<Ipv4Addr>,
    /// The arguments without a name.
    targets: Vec<String>,
}

impl RaceOrder {
    fn of(flags: &RaceFlags, target: &SshTarget) -> Result<Self, Failure> {
        let server = &flags.hosts.server;
        let origin = |sent: PathBuf, study: Option<PathBuf>| Origin {
            host: format!("ssh://{target}"),
            control: machine(),
            sent,
            sent_ignored: server.send_ignored,
            study,
            build: flags.ad_hoc.build.clone(),
        };
        let (origin, name, targets) = match flags.input()? {
            Input::Study(path) => {
                let name = study::load(&path)?.name;
                let (sent, study) = of_study(&path, server)?;
                let word = word_of(&study);
                (origin(sent, Some(study)), name, vec![word])
            }
            Input::AdHoc(_) => {
                let sent = server.send.clone().map_or_else(std::env::current_dir, Ok)?;
                let sent = fs::canonicalize(&sent).unwrap_or(sent);
                (origin(sent, None), Plan::AD_HOC.to_owned(), flags.targets.clone())
            }
            Input::Resume(path) => return Self::of_record(path),
        };
        let record = match &flags.record {
            Some(path) if path.exists() && !deadheat_record::blank(path) => {
                return Err(record_exists(path).into());
            }
            Some(path) => path.clone(),
            None => {
                let path = record_path(&name, &Zoned::now());
                let others = numbered_beside(&path, 2);
                std::iter::once(path).chain(others).find(|one| !one.exists()).unwrap_or_default()
            }
        };
        let load_hosts = flags.hosts.load_hosts().to_vec();
        Ok(Self { origin, record, resumes: false, load_hosts, server_address: None, targets })
    }

    fn of_record(path: PathBuf) -> Result<Self, Failure> {
        let plan = deadheat_record::read(&path)?.plan;
        let refused = |problem: String| {
            UsageError::new(format!("{}: {problem}", path.display()), "race again without --resume")
        };
        let origin = plan.server_host.ok_or_else(|| refused("it names no server host".into()))?;
        if !origin.sent.is_dir() {
            let (folder, control) = (origin.sent.display(), &origin.control);
            let problem = format!("the race was sent from the folder {folder} of the machine {control}");
            return Err(UsageError::new(
                format!("{}: {problem}, and here is no such folder", path.display()),
                "continue it on that machine, or race again without --resume",
            )
            .into());
        }
        let server_address = plan.load_from.as_ref().map(|from| from.server_address);
        let hosts = plan.load_from.map(|from| from.hosts).unwrap_or_default();
        let hosts =
            hosts.iter().map(|host| host.parse().map_err(|error| refused(format!("{host}: {error}"))));
        let load_hosts = hosts.collect::<Result<_, _>>()?;
        Ok(Self { origin, record: path, resumes: true, load_hosts, server_address, targets: Vec::new() })
    }
}

/// Refuses options that need this machine's files or repository.
fn cannot_be_combined(flags: &RaceFlags) -> Result<(), UsageError> {
    if flags.git.is_some() {
        return Err(UsageError::new(
            "--git cannot be combined with --server-host: revisions are made from the repository on this machine",
            "run it on the server host itself, in a clone",
        ));
    }
    if flags.attempt.is_some() {
        return Err(UsageError::new(
            "--continue cannot be combined with --server-host",
            "begin with --record FILE, and continue with --resume FILE",
        ));
    }
    Ok(())
}

/// The folder to send for a study, and the path of the study in it.
fn of_study(path: &Path, flags: &ServerHostFlags) -> Result<(PathBuf, PathBuf), UsageError> {
    let unreadable = |path: &Path, error: std::io::Error| {
        UsageError::new(format!("cannot send {}: {error}", path.display()), "make it readable")
    };
    let study = fs::canonicalize(path).map_err(|error| unreadable(path, error))?;
    let folder = match &flags.send {
        Some(folder) => fs::canonicalize(folder).map_err(|error| unreadable(folder, error))?,
        None if study.is_dir() => study.clone(),
        None => study.parent().unwrap_or(Path::new("/")).to_owned(),
    };
    match study.strip_prefix(&folder) {
        Ok(inside) => Ok((folder.clone(), inside.to_owned())),
        Err(_) => Err(UsageError::new(
            format!("--send {}: the study {} is not in this folder", folder.display(), study.display()),
            "name a folder that contains it",
        )),
    }
}

/// A path in the folder that was sent, as an argument of a command in that folder.
fn word_of(path: &Path) -> String {
    let path = path.to_string_lossy().into_owned();
    if path.is_empty() { ".".into() } else { path }
}

/// The name of this machine.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The option that names the address of the contenders on the other machine.
fn address_word(address: Option<Ipv4Addr>) -> Option<String> {
    address.map(|address| format!("--server-address={address}"))
}

/// The address at which the load hosts reach the contenders; none without load hosts, and if the record says it.
fn server_address(
    hosts: &RaceHostFlags,
    target: &SshTarget,
    console: &Console,
) -> Result<Option<Ipv4Addr>, UsageError> {
    named_once(hosts.load_hosts())?;
    if hosts.load_hosts().is_empty() || hosts.server_address.is_some() {
        return Ok(hosts.server_address);
    }
    let name = target.host();
    let found = (name, 0).to_socket_addrs().map(|mut all| {
        all.find_map(|one| match one {
            SocketAddr::V4(address) => Some(*address.ip()),
            SocketAddr::V6(_) => None,
        })
    });
    let reason = match found {
        Ok(Some(address)) if address.is_loopback() => {
            format!("its address here is {address}, of the loopback")
        }
        Ok(Some(address)) => {
            console.note(&lines_plain(&format!(
                "the load hosts reach the contenders at {address}, the address of {name}; --server-address names another one"
            )));
            return Ok(Some(address));
        }
        Ok(None) => "it has no IPv4 address".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(UsageError::new(
        format!(
            "--server-host {target}: it is not known at which address the load hosts reach it: {name}: {reason}"
        ),
        "add its address in their network, for example: --server-address 10.0.0.5",
    ))
}

/// Starts an agent on each load host once. This shows what is wrong there before anything is sent, and copies the program there before the race
/// begins. Says which machines are about to be reached.
fn reach_load_hosts(
    target: &SshTarget,
    hosts: &[SshTarget],
    program: &Program,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<(), Failure> {
    tell_reached(std::iter::once(target).chain(hosts), console);
    if !hosts.is_empty() {
        let stopped = || interrupt.asked();
        let reached = elsewhere::connect(hosts, program, &stopped)?.ok_or(PrepareError::Interrupted)?;
        // A slow host takes seconds to let go.
        unless(&stopped, move || drop(reached)).ok_or(PrepareError::Interrupted)?;
    }
    Ok(())
}

fn connect<'s>(
    target: &SshTarget,
    program: &Program,
    stopped: &'s dyn Fn() -> bool,
) -> Result<ServerHost<'s>, Failure> {
    let command = HostCommand {
        name: target.to_string(),
        command: target.server_command(program),
        program: Some(program.clone()),
    };
    ServerHost::connect(command, env!("CARGO_PKG_VERSION"), Patience::default(), stopped).map_err(failure)
}

/// Sends the folder from the machine `control`, which is this one. Returns the path of the work folder on the host.
fn send(
    host: &mut ServerHost<'_>,
    target: &SshTarget,
    folder: &Folder,
    control: &str,
    console: &Console,
) -> Result<String, Failure> {
    console.note(&lines_plain(&format!("sending to {target} {}", folder.summary())));
    let place = host.begin(&folder_name(control, folder.path())).map_err(failure)?;
    folder.send(&mut |entry| host.put(entry).map_err(failure))?;
    Ok(place)
}

fn run_order(
    arguments: Vec<String>,
    folder: &str,
    relay: bool,
    record_bytes: u64,
    console: &Console,
) -> RunOrder {
    let variable = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    RunOrder {
        folder: folder.to_owned(),
        arguments,
        environment: OF_THE_TERMINAL.into_iter().filter_map(variable).collect(),
        terminal: console.terminal(),
        relay,
        record_bytes,
    }
}

fn utf8(words: Vec<OsString>) -> Result<Vec<String>, UsageError> {
    let one = |word: OsString| {
        word.into_string().map_err(|word| {
            UsageError::new(format!("{}: this is not UTF-8", word.display()), "deadheat cannot send it")
        })
    };
    words.into_iter().map(one).collect()
}

/// Says what is left on the host, if anything is.
fn tell_left(end: &End, console: &Console) {
    if let Some(left) = &end.left {
        console.note(&lines_plain(&format!("note: on the server host, {left}\n  remove it there by hand")));
    }
}

fn failure(error: ServerHostError) -> Failure {
    let remedy: String = match &error {
        ServerHostError::Interrupted => return PrepareError::Interrupted.into(),
        ServerHostError::Channel(error) => error.remedy(),
        ServerHostError::Lost { .. } => "look at that machine and at the network to it, and try again".into(),
        ServerHostError::Failed { .. } => "repair that on the server host, and try again".into(),
        ServerHostError::NotKept(_) => "repair that on this machine, and try again".into(),
    };
    let error = UsageError::new(error.to_string(), remedy.as_str());
    match remedy.starts_with("look at that machine") {
        true => Failure::HostLost(error),
        false => error.into(),
    }
}

/// What a command on a server host may ask for: an ssh with exactly the arguments that lead to the agent of a load host. The agent that it gets
/// reaches only the address of the contenders.
struct Allowed {
    hosts: Vec<(Vec<String>, SshTarget, Program)>,
    address: Option<Ipv4Addr>,
}

fn allowed(hosts: &[SshTarget], program: &Program, address: Option<Ipv4Addr>) -> Allowed {
    let words = |host: &SshTarget| {
        host.command(program).get_args().map(|word| word.to_string_lossy().into_owned()).collect()
    };
    let hosts = hosts.iter().map(|host| (words(host), host.clone(), program.clone())).collect();
    Allowed { hosts, address }
}

impl Allowed {
    /// The command for these arguments; none if they may not be asked for.
    fn command(&self, arguments: &[String]) -> Option<Command> {
        let (_, host, program) = self.hosts.iter().find(|(allowed, ..)| allowed == arguments)?;
        Some(host.command_for_only(program, self.address?.into()))
    }
}

/// What comes back from a race, and is kept on this machine.
struct Kept<'c> {
    console: &'c Console,
    path: PathBuf,
    is_chosen: bool,
    /// The record. None until its first line has come.
    journal: Option<Journal>,
    /// The beginning of a line of the record.
    begun: Vec<u8>,
    json: Option<PathBuf>,
    trouble: Option<String>,
    load_hosts: Allowed,
    host: String,
}

impl Kept<'_> {
    fn keep(&mut self, bytes: &[u8]) -> Result<(), deadheat_record::WriteError> {
        self.begun.extend_from_slice(bytes);
        let Some(last) = self.begun.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let rest = self.begun.split_off(last + 1);
        let lines = std::mem::replace(&mut self.begun, rest);
        if self.journal.is_none() {
            if let Some(folder) = self.path.parent().filter(|_| !self.is_chosen) {
                make_ignored(folder);
            }
            self.journal = Some(Journal::create(&self.path)?);
        }
        if let Some(journal) = &mut self.journal {
            journal.append_text(&lines)?;
        }
        self.refresh_json(&lines);
        Ok(())
    }

    /// Writes the `--json` file if these lines have an epoch or the end of a scenario.
    fn refresh_json(&mut self, lines: &[u8]) {
        let Some(json) = &self.json else { return };
        let ends = [&br#"{"line":"epoch""#[..], br#"{"line":"scenario""#];
        if !lines.split(|byte| *byte == b'\n').any(|line| ends.iter().any(|end| line.starts_with(end))) {
            return;
        }
        let written = deadheat_record::read(&self.path).map_err(|error| error.to_string());
        self.trouble = written.and_then(|record| write_json_so_far(json, &record)).err();
    }
}

impl Feedback for Kept<'_> {
    fn written(&mut self, stream: Stream, bytes: &[u8]) {
        self.console.pass(stream, bytes);
    }

    fn record(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.keep(bytes).map_err(|error| error.to_string())
    }

    fn log(&mut self, path: &str, bytes: &[u8]) {
        let folder = logs_beside(&self.path);
        // The path comes from the other machine: nothing may be written outside the folder of logs.
        let parts: Vec<Component<'_>> = Path::new(path).components().collect();
        if parts.is_empty() || !parts.iter().all(|part| matches!(part, Component::Normal(_))) {
            return;
        }
        // Without a record there is no race whose logs they could be.
        if self.journal.is_none() {
            return;
        }
        let file = folder.join(path);
        let made = fs::create_dir_all(file.parent().unwrap_or(&folder)).and_then(|()| {
            OpenOptions::new().create(true).write(true).truncate(true).open(&file)?.write_all(bytes)
        });
        // Logs help to understand a race; the race counts without them.
        drop(made);
    }

    fn ssh(&mut self, arguments: &[String]) -> Option<Command> {
        self.load_hosts.command(arguments)
    }

    fn silent(&mut self, silence: Duration) {
        tell_silent(self.console, &self.host, silence);
    }
}

/// A command without a record, whose output is shown.
struct Shown<'c> {
    console: &'c Console,
    host: String,
    load_hosts: Allowed,
}

impl Feedback for Shown<'_> {
    fn written(&mut self, stream: Stream, bytes: &[u8]) {
        self.console.pass(stream, bytes);
    }

    fn record(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn log(&mut self, _: &str, _: &[u8]) {}

    fn ssh(&mut self, arguments: &[String]) -> Option<Command> {
        self.load_hosts.command(arguments)
    }

    fn silent(&mut self, silence: Duration) {
        tell_silent(self.console, &self.host, silence);
    }
}

fn tell_silent(console: &Console, host: &str, silence: Duration) {
    let seconds = silence.as_secs_f64();
    console.note(&lines_plain(&format!("nothing has been heard from {host} for {seconds:.1} s")));
}
