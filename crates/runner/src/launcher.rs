//! Starts contenders and services. All contenders of an epoch are alive at once, and all but one are frozen.
//!
//! Owns: starting in random order, readiness, freezing and thawing, usage, and stopping all. Must not know: slices.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deadheat_load::{Address, Answer, NoAnswer};
use deadheat_record::{Ending, Limits, Listen, Plan, ScenarioPlan};

use crate::ask::{LoadGenerator, Question};
use crate::authority::Authority;
use crate::ceiling::NULL_COMMAND;
use crate::events::{Event, Observer};
use crate::parity::{Contract, Parity, ProbeTarget, QuestionError};
use crate::schedule::derive_seed;
use deadheat_host::Host;
use deadheat_host::clock::Clock;
use deadheat_host::command::{Ran, SEED, ShellCommand, in_words, values_of};
use deadheat_host::process::{Observe, Process, ProcessSpec, StartError, wait_ready};

const NULL_SERVER_LOG: &str = "null-server.log";
/// Statuses with which a proxy reports that the server behind it is not up yet.
const NOT_YET: [u16; 3] = [502, 503, 504];
/// A command that says whether a service is ready is killed after this long, and run again.
const READY_PATIENCE: Duration = Duration::from_secs(5);
/// A contender that answers wrongly has this long to answer correctly. After that, parity lists everything that is wrong.
const WRONG_PATIENCE: Duration = Duration::from_secs(5);

/// If a request had less time than this, its timeout means nothing.
const SHORT_TRY: Duration = Duration::from_millis(100);

/// What a start waits for. Both wait for a correct answer to the first probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The start fails without a correct answer.
    Right,
    /// A parity check follows: the start also succeeds if only wrong answers arrive for a while.
    Parity,
}

/// Everything that a start needs, except the contender itself.
#[derive(Clone)]
pub(crate) struct Launcher<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The machine on which contenders run.
    pub host: &'a dyn Host,
    /// Sends the probes.
    pub generator: &'a dyn LoadGenerator,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// The folder for log files.
    pub logs: PathBuf,
    /// The contract. Its first probe decides readiness.
    pub contract: &'a Contract,
    /// The request of the first probe.
    pub request: Question,
    /// Values of placeholders: dataset, work, study, services' ports.
    pub values: BTreeMap<String, String>,
    /// Whether the user interrupted the race.
    pub stopped: &'a dyn Fn() -> bool,
}

/// The launchers for the scenarios of a race.
pub(crate) struct Gates<'a> {
    /// For plain HTTP.
    pub plain: &'a Launcher<'a>,
    /// For TLS, if any scenario uses it.
    pub secured: Option<&'a Launcher<'a>>,
}

impl<'a> Gates<'a> {
    /// The launcher for one scenario.
    pub(crate) fn of(&self, scenario: &ScenarioPlan) -> &'a Launcher<'a> {
        self.secured.filter(|_| scenario.traffic.tls).unwrap_or(self.plain)
    }
}

/// A contender that is up and frozen.
pub(crate) struct ReadyContender {
    /// Index into the plan's contenders.
    pub contender: usize,
    /// Its processes.
    pub process: Box<dyn Process>,
    /// Time from the start of its command to its first answer that meets the contract. If no such answer arrived before the parity check,
    /// time to the last wrong answer.
    pub cold_start: Duration,
    /// The seed of its build, if it was built for this start.
    pub build_seed: Option<u32>,
}

/// The null server, up and frozen.
pub(crate) struct NullStart {
    /// Its process.
    pub process: Box<dyn Process>,
    /// Its answer.
    pub answer: Answer,
}

impl Launcher<'_> {
    /// The same launcher for contenders that speak TLS, with the same `contract` over TLS.
    ///
    /// # Errors
    /// When the first probe cannot be written as an HTTP request.
    pub(crate) fn over_tls<'b>(
        &'b self,
        contract: &'b Contract,
        authority: &Authority,
    ) -> Result<Launcher<'b>, QuestionError> {
        let mut values = self.values.clone();
        values.extend(authority.values());
        Ok(Launcher { contract, request: contract.first_request()?, values, ..self.clone() })
    }

    /// Sets empty values for `{cert}` and `{key}` in the commands of contenders that speak plain HTTP, in a race where others have a
    /// certificate.
    pub(crate) fn without_certificate(&mut self) {
        self.values.extend(["cert", "key"].map(|name| (name.to_owned(), String::new())));
    }

    /// Starts the null server on the contenders' cores. It listens on a Unix socket if all contenders do, and speaks TLS if they do.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(crate) fn start_null(&self, body_bytes: usize, threads: usize) -> Result<NullStart, StartError> {
        self.go_on()?;
        let sockets = self.plan.contenders.iter().all(|one| one.listen == Listen::Socket);
        // This names the running program even if its file was replaced in between.
        let certificate = self.certificate();
        let host = self.values.get_key_value("host").map(|(name, value)| (name.clone(), value.clone()));
        let values = certificate.clone().into_iter().chain(host).collect();
        let files = if certificate.is_empty() { "" } else { r#" "$CERT" "$KEY""# };
        let command =
            format!("exec /proc/{}/exe {NULL_COMMAND} {body_bytes} {threads}{files}", std::process::id());
        let start = ProcessSpec {
            name: "the null server",
            command: &command,
            folder: Path::new("/"),
            env: &BTreeMap::new(),
            listen: if sockets { &Listen::Socket } else { &Listen::FreePort },
            cpus: &self.plan.pinning.server_cpus,
            limits: &Limits::default(),
            ending: &Ending::default(),
            log: self.logs.join(NULL_SERVER_LOG),
            values: &values,
            sockets: &self.plan.work,
            observe: Observe::Nothing,
        };
        let process = self.host.start(&start)?;
        let address = process.address().clone();
        let patience = Duration::from_nanos(self.plan.method.ready_ns);
        let ask = |left| self.ask(&address, left).map_err(|error| error.reason);
        let (answer, _) = self.wait_ready(&*process, patience, &mut |_| {}, ask, |_| None)?;
        Ok(NullStart { process, answer })
    }

    /// Starts one contender within limits, waits until it answers correctly, and freezes it. `when` names its log file; `observe` says
    /// what the kernel observes of it. The observer gets a word if the contender listens on another port.
    ///
    /// # Errors
    /// When it cannot start, does not answer, answers wrongly, or the user interrupts.
    pub(crate) fn start(
        &self,
        contender: usize,
        limits: &Limits,
        until: Until,
        when: &str,
        observe: Observe,
        observer: &mut dyn Observer,
    ) -> Result<ReadyContender, StartError> {
        self.go_on()?;
        let one = &self.plan.contenders[contender];
        let values = values_of(one, &self.values);
        let start = ProcessSpec {
            name: &one.name,
            command: &one.command,
            folder: &one.folder,
            env: &one.env,
            listen: &one.listen,
            cpus: &self.plan.pinning.server_cpus,
            limits,
            ending: &Ending::default(),
            log: self.log(contender, when),
            values: &values,
            sockets: &self.plan.work,
            observe,
        };
        let process = self.host.start(&start)?;
        let patience = Duration::from_nanos(self.plan.method.ready_ns);
        let address = process.address().clone();
        let mut last = String::new();
        let ask = |left| {
            self.ask(&address, left).map_err(|error| {
                // The deadline cuts the last attempt short, so the previous attempt says what is wrong.
                if last.is_empty() || !error.timed_out || left >= SHORT_TRY {
                    last = error.reason;
                }
                last.clone()
            })
        };
        let wrong = self.wrong(until, patience);
        let mut notice = |reason: &str| observer.event(&Event::Waiting { contender: &one.name, reason });
        let (_, cold_start) = self.wait_ready(&*process, patience, &mut notice, ask, wrong)?;
        process
            .freeze()
            .map_err(|error| StartError::Spawn { name: one.name.clone(), reason: error.to_string() })?;
        Ok(ReadyContender { contender, process, cold_start, build_seed: None })
    }

    /// Waits as [`wait_ready`] does, and no longer once a machine that the load comes from is lost.
    fn wait_ready(
        &self,
        process: &dyn Process,
        patience: Duration,
        notice: &mut dyn FnMut(&str),
        ask: impl FnMut(Duration) -> Result<Answer, String>,
        wrong: impl FnMut(&Answer) -> Option<String>,
    ) -> Result<(Answer, Duration), StartError> {
        let stopped = || (self.stopped)() || self.generator.lost().is_some();
        let waited = wait_ready(process, self.clock, patience, &stopped, notice, ask, wrong);
        match (waited, self.generator.lost()) {
            (Err(StartError::Interrupted), Some(lost)) if !(self.stopped)() => {
                Err(StartError::Spawn { name: process.name().into(), reason: lost.message })
            }
            (waited, _) => waited,
        }
    }

    /// Returns a function that says what is wrong with an answer, as long as the start still waits for a correct one.
    fn wrong(&self, until: Until, patience: Duration) -> impl FnMut(&Answer) -> Option<String> {
        let (mut since, enough) = (None, WRONG_PATIENCE.min(patience / 2));
        move |answer| {
            let wrong = self.contract.wrong_at_first(answer)?;
            let now = self.clock.now();
            let for_long = now - *since.get_or_insert(now) >= enough;
            let over = until == Until::Parity && for_long && !NOT_YET.contains(&answer.status);
            (!over).then_some(wrong)
        }
    }

    /// The paths of the certificate and its key, if there are any.
    fn certificate(&self) -> BTreeMap<String, String> {
        let given = |name: &str| self.values.get_key_value(name).filter(|(_, path)| !path.is_empty());
        let both = ["cert", "key"].into_iter().filter_map(given);
        both.map(|(name, path)| (name.clone(), path.clone())).collect()
    }

    fn go_on(&self) -> Result<(), StartError> {
        if (self.stopped)() { Err(StartError::Interrupted) } else { Ok(()) }
    }

    /// Sends every probe of the contract to the contenders: see [`Contract::check`].
    ///
    /// # Errors
    /// When a probe cannot be written as an HTTP request.
    pub(crate) fn parity(
        &self,
        contenders: &[ProbeTarget<'_>],
        when: &str,
    ) -> Result<Option<Parity>, QuestionError> {
        self.contract.check(contenders, when, &|asked, patience| self.ask_all(asked, patience))
    }

    /// Sends each request to its address, all at once. Returns none if the user interrupts.
    pub(crate) fn ask_all(
        &self,
        asked: &[(&Address, &Question)],
        patience: Duration,
    ) -> Option<Vec<Result<Answer, NoAnswer>>> {
        self.generator.ask(asked, patience, self.stopped)
    }

    /// Sends the first probe. A contender that never answers does not delay an interruption.
    fn ask(&self, address: &Address, patience: Duration) -> Result<Answer, NoAnswer> {
        let answers = self.ask_all(&[(address, &self.request)], patience);
        let answer = answers.and_then(|mut all| all.pop());
        answer.unwrap_or_else(|| Err(NoAnswer::plain("no answer yet")))
    }

    /// The log file of a contender's start or of one of its commands. `when` may be any text.
    pub(crate) fn log(&self, contender: usize, when: &str) -> PathBuf {
        self.logs.join(format!("{}{}.log", log_prefix(self.plan, contender), plain(when, 80)))
    }

    /// Starts the plan's services in order and waits until each is ready. Adds their ports and sockets to the values of placeholders.
    ///
    /// # Errors
    /// When a service cannot start or does not become ready.
    pub(crate) fn start_services(&mut self) -> Result<Vec<Box<dyn Process>>, StartError> {
        let mut up = Vec::new();
        for (index, service) in self.plan.services.iter().enumerate() {
            self.go_on()?;
            let start = ProcessSpec {
                name: &service.name,
                command: &service.command,
                folder: &service.folder,
                env: &service.env,
                listen: &service.listen,
                cpus: &self.plan.pinning.server_cpus,
                limits: &Limits::default(),
                ending: &service.ending,
                log: self.logs.join(service_log(index)),
                values: &self.values,
                sockets: &self.plan.work,
                observe: Observe::Nothing,
            };
            let process = self.host.start(&start)?;
            let address = process.address().clone();
            let (key, value) = match &address {
                Address::Tcp(address) => ("port", address.port().to_string()),
                Address::Unix(path) => ("socket", path.to_string_lossy().into_owned()),
            };
            let ready = service.ready.as_ref().map(|command| {
                let mut values = self.values.clone();
                values.insert(key.into(), value.clone());
                let nowhere = "/dev/null".into();
                ShellCommand::beside_services(command, &service.folder, &service.env, &values, nowhere)
            });
            let patience = Duration::from_nanos(self.plan.method.ready_ns);
            let ask = |left| {
                address.accepts(Duration::from_millis(500)).map_err(|error| error.to_string())?;
                ready.as_ref().map_or(Ok(()), |command| is_ready(command, left, self.stopped))
            };
            wait_ready(&*process, self.clock, patience, self.stopped, &mut |_| {}, ask, |()| None)?;
            self.values.insert(format!("{}.{key}", service.name), value);
            up.push(process);
        }
        Ok(up)
    }

    /// Builds a contender again, if its build has a seed, and returns the seed: 1 to 2^31 - 1, derived from `epoch`.
    ///
    /// # Errors
    /// When the build fails or takes too long, or the user interrupts.
    pub(crate) fn rebuild(&self, contender: usize, epoch: u64) -> Result<Option<u32>, StartError> {
        let one = &self.plan.contenders[contender];
        let Some(rebuild) = &one.rebuild else { return Ok(None) };
        self.go_on()?;
        let seed = (derive_seed(epoch, contender, 0) % u64::from(i32::MAX as u32)) as u32 + 1;
        let mut values = values_of(one, &self.values);
        values.insert(SEED.into(), seed.to_string());
        let log = self.log(contender, "build");
        let command = ShellCommand::new(&rebuild.command, &one.folder, &one.env, &values, log);
        let limit = Duration::from_nanos(rebuild.limit_ns);
        // The calling thread has only the cores of the load, and nothing is measured now.
        let cpus = [&self.plan.pinning.server_cpus[..], self.plan.load_cpus_here()].concat();
        let problem = match self.host.run(&one.name, &command, &cpus, limit, self.stopped)? {
            Ran::Ended(status) if status.success() => return Ok(Some(seed)),
            Ran::Ended(status) => format!("ended with {}", in_words(status)),
            Ran::TooLong(limit) => format!("ran for over {} s (--build-timeout)", limit.as_secs_f64()),
            Ran::Interrupted => return Err(StartError::Interrupted),
        };
        let reason = format!("its build with seed {seed} {problem}{}", command.tail());
        Err(StartError::Spawn { name: one.name.clone(), reason })
    }

    /// Runs the `reset` command of each service, so that all epochs begin with the same data.
    ///
    /// # Errors
    /// When a command fails, takes longer than a contender may take to become ready, or the user interrupts.
    pub(crate) fn reset_services(&self) -> Result<(), ResetError> {
        for (index, service) in self.plan.services.iter().enumerate() {
            let Some(reset) = &service.reset else { continue };
            if (self.stopped)() {
                return Err(ResetError::Interrupted);
            }
            let mut values = self.values.clone();
            for key in ["port", "socket"] {
                let own = self.values.get(&format!("{}.{key}", service.name));
                values.extend(own.map(|value| (key.to_owned(), value.clone())));
            }
            let log = self.logs.join(reset_log(index));
            let command = ShellCommand::beside_services(reset, &service.folder, &service.env, &values, log);
            let patience = Duration::from_nanos(self.plan.method.ready_ns);
            let problem = match command.run_until(patience, self.stopped) {
                Ok(Some(status)) if status.success() => continue,
                Ok(Some(status)) => {
                    format!("its `reset` command ended with {}{}", in_words(status), command.tail())
                }
                Ok(None) if (self.stopped)() => return Err(ResetError::Interrupted),
                Ok(None) => format!(
                    "its `reset` command did not end within {} s (--ready-timeout){}",
                    patience.as_secs(),
                    command.tail()
                ),
                Err(error) => format!("its `reset` command cannot run: {error}"),
            };
            return Err(ResetError::Failed { service: service.name.clone(), problem });
        }
        Ok(())
    }
}

/// Why the data of services could not be brought back to the same state.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResetError {
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// A command failed.
    #[error("service {service}: {problem}")]
    Failed {
        /// The service's name.
        service: String,
        /// What happened.
        problem: String,
    },
}

/// The beginning of a text as a part of a file name.
fn plain(text: &str, most: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    text.chars().map(plain).take(most).collect()
}

/// How the names of a contender's logs begin.
fn log_prefix(plan: &Plan, contender: usize) -> String {
    format!("{contender}-{}-", plain(&plan.contenders[contender].name, 40))
}

/// Creates the folder for logs, and removes logs of an earlier run, so that the last lines shown come from this run. Other files stay: the folder may be
/// the user's.
///
/// # Errors
/// When the folder cannot be created, or a log cannot be removed.
pub(crate) fn fresh_logs(folder: &Path, plan: &Plan) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let of_contenders = (0..plan.contenders.len()).map(|index| log_prefix(plan, index));
    let of_services = (0..plan.services.len()).flat_map(|index| [service_log(index), reset_log(index)]);
    let (of_contenders, of_services): (Vec<String>, Vec<String>) =
        (of_contenders.collect(), of_services.collect());
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let is_contenders = || of_contenders.iter().any(|prefix| name.starts_with(prefix.as_str()));
        let is_own = name == NULL_SERVER_LOG || of_services.iter().any(|one| one == name);
        if is_own || (name.ends_with(".log") && is_contenders()) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn service_log(index: usize) -> String {
    format!("service-{index}.log")
}

fn reset_log(index: usize) -> String {
    format!("service-{index}-reset.log")
}

/// Runs a command whose exit status says whether a service is ready.
fn is_ready(command: &ShellCommand, left: Duration, stopped: &dyn Fn() -> bool) -> Result<(), String> {
    match command.run_until(left.min(READY_PATIENCE), stopped) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => Err(format!("`{}` ended with {}", command.shown(), in_words(status))),
        Ok(None) => Err(format!("`{}` did not end in time", command.shown())),
        Err(error) => Err(format!("`{}`: {error}", command.shown())),
    }
}

/// Asks all contenders to stop at once, and returns when every process has ended.
pub(crate) fn stop_all(mut runners: Vec<ReadyContender>) {
    runners.iter_mut().for_each(|runner| runner.process.ask_to_stop());
    runners.into_iter().for_each(|runner| runner.process.stop());
}

#[cfg(test)]
mod tests {
    use deadheat_host::LocalHost;
    use deadheat_host::cgroup::Hierarchy;
    use deadheat_host::clock::SystemClock;
    use deadheat_host::process::run::RunId;

    use super::*;
    use crate::ask::LocalGenerator;
    use crate::fakes::Silence;

    /// A plan whose service `db` has this `reset` command, in `folder`.
    fn plan_with(reset: &str, folder: &Path) -> Plan {
        let document = include_str!("../../record/tests/fixtures/example.json");
        let mut plan = serde_json::from_str::<deadheat_analysis::Report>(document).unwrap().record.plan;
        plan.services = vec![deadheat_record::Service {
            name: "db".into(),
            command: "true".into(),
            folder: folder.into(),
            env: BTreeMap::from([("TABLE".to_owned(), "t{port}".to_owned())]),
            listen: deadheat_record::Listen::FreePort,
            ready: None,
            reset: Some(reset.into()),
            ending: Ending::default(),
        }];
        plan
    }

    fn reset(reset: &str, folder: &Path, stopped: bool) -> Result<(), ResetError> {
        let plan = plan_with(reset, folder);
        let contract = Contract::new(&[], &Default::default(), Duration::ZERO).unwrap();
        let launcher = Launcher {
            plan: &plan,
            host: &LocalHost { run: &RunId::current(), hierarchy: &Hierarchy::detect() },
            generator: &LocalGenerator,
            clock: &SystemClock::start(),
            contract: &contract,
            logs: folder.into(),
            request: Question { bytes: Vec::new().into(), head: false, tls: None },
            values: BTreeMap::from([("db.port".to_owned(), "7".to_owned())]),
            stopped: &|| stopped,
        };
        launcher.reset_services()
    }

    #[test]
    fn services_are_reset_with_their_own_values() {
        let folder = tempfile::tempdir().unwrap();
        let text = || std::fs::read_to_string(folder.path().join("reset")).unwrap_or_default();
        let command = "echo {port} $PORT $DB_PORT $TABLE >> reset";
        reset(command, folder.path(), false).unwrap();
        reset(command, folder.path(), false).unwrap();
        assert_eq!(text(), "7 7 7 t7\n7 7 7 t7\n");
        let interrupted = reset(command, folder.path(), true);
        assert!(matches!(interrupted, Err(ResetError::Interrupted)) && text().lines().count() == 2);
        let failed = reset("echo no such table; exit 3", folder.path(), false).unwrap_err().to_string();
        assert!(failed.starts_with("service db: its `reset` command ended with exit status 3"), "{failed}");
        assert!(failed.contains("no such table"), "{failed}");
    }

    #[test]
    fn a_service_is_ready_when_its_command_says_so() {
        let asked = |shell: &str, patience_ms| {
            let command = ShellCommand::new(shell, Path::new("/"), [], &BTreeMap::new(), "/dev/null".into());
            is_ready(&command, Duration::from_millis(patience_ms), &|| false)
        };
        assert_eq!(asked("true", 5_000), Ok(()));
        assert!(asked("exit 3", 5_000).unwrap_err().contains("`exit 3` ended with exit status 3"));
        assert!(asked("sleep 60", 20).unwrap_err().contains("did not end in time"));
    }

    #[test]
    fn nothing_is_started_after_the_end_was_asked_for() {
        let document = include_str!("../../record/tests/fixtures/example.json");
        let document: deadheat_analysis::Report = serde_json::from_str(document).unwrap();
        let mut plan = document.record.plan;
        plan.services = vec![deadheat_record::Service {
            name: "db".into(),
            command: "true".into(),
            folder: "/".into(),
            env: BTreeMap::new(),
            listen: deadheat_record::Listen::FreePort,
            ready: None,
            reset: None,
            ending: Ending::default(),
        }];
        let contract = Contract::new(&plan.probes, &Default::default(), Duration::ZERO).unwrap();
        let mut launcher = Launcher {
            plan: &plan,
            host: &LocalHost { run: &RunId::current(), hierarchy: &Hierarchy::detect() },
            generator: &LocalGenerator,
            clock: &SystemClock::start(),
            contract: &contract,
            logs: "/nowhere".into(),
            request: Question { bytes: Vec::new().into(), head: false, tls: None },
            values: BTreeMap::new(),
            stopped: &|| true,
        };
        let started =
            launcher.start(0, &Limits::default(), Until::Right, "test", Observe::Nothing, &mut Silence);
        assert!(matches!(started, Err(StartError::Interrupted)));
        assert!(matches!(launcher.start_services(), Err(StartError::Interrupted)));
    }
}
