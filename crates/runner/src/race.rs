//! Runs a race from its first start to its last verdict: parity, pilot, epochs, the record, and the decision when to stop.
//!
//! Owns: that order, and the record while it grows. Must not know: how anything is shown.

mod steady;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deadheat_analysis::judge::{AskError, Judge};
use deadheat_load::Tally;
use deadheat_record::{
    Difference, End, Epoch, Experiment, Finding, Handicap, Journal, LaterCeiling, Line, LinkBandwidth, Pilot,
    PilotContender, Plan, Record, ScenarioLink, ScenarioPlan, WriteError,
};
use deadheat_stats::{Next, Progress, WarmupLimits, pilot_cut, warmup_length_s};

use crate::ask::LoadGenerator;
use crate::authority::{Authority, AuthorityError};
use crate::ceiling;
use crate::epoch::{EpochError, EpochRun, ReadyContenders, contenders_of, lost};
use crate::events::{Event, Observer};
use crate::handicap;
use crate::launcher::{Gates, Launcher, fresh_logs, stop_all};
use crate::loaded::{LoadTotals, LoadedContender};
use crate::parity::{Contract, ContractError, ProbeFiles, QuestionError};
use crate::schedule::derive_seed;
use deadheat_host::clock::Clock;
use deadheat_host::command;
use deadheat_host::monitor::awake::Awake;
use deadheat_host::monitor::{Monitor, processors_sleep};
use deadheat_host::process::instructions::PerRequest;
use deadheat_host::process::{Observe, Process, StartError};
use deadheat_host::{Host, LimitsError};

/// Number of windows in a pilot. MSER-5 groups them into 16 batches of five, enough to find a cut.
const PILOT_WINDOWS: u32 = 80;
/// An epoch in which every round is left out gives nothing to compare, and another one runs. A scenario stops at this many times its
/// maximum number of epochs.
const MOST_UNUSABLE: usize = 2;
/// A scenario stops after this many such epochs in a row from the start of a session, or after fewer if its first look takes fewer.
const MOST_FRUITLESS: usize = 6;
/// How often a race that waits for its next epoch looks whether the user interrupts it.
const GLANCE: Duration = Duration::from_millis(200);
/// Maximum number of attempts at a scenario when contenders drop out of its epochs.
const MOST_RESTARTS: usize = 100;

/// Why a race failed.
#[derive(Debug, thiserror::Error)]
pub enum RaceError {
    /// The contract cannot be used.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// A request cannot be written.
    #[error("the first probe: {0}")]
    Request(#[from] QuestionError),
    /// The record cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The measurements cannot be judged.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// A service did not start.
    #[error("service: {0}")]
    Service(StartError),
    /// A contender did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The certificate for contenders that speak TLS could not be created.
    #[error(transparent)]
    Certificate(#[from] AuthorityError),
    /// The folder for logs or work could not be made.
    #[error("{path}: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The limits of a scenario cannot be applied to the contenders.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The generator could not be pinned.
    #[error("the load generator cannot run on processors {cpus:?}: {source}; choose others with --load-cpus")]
    Pin {
        /// The processors.
        cpus: Vec<usize>,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The engine or the system failed.
    #[error("{0}")]
    Failed(String),
}

/// How a race ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// Every scenario ended as planned.
    Done,
    /// The user interrupted the race; the record can be resumed.
    Interrupted,
    /// The time of this attempt is used up; the record can be resumed.
    Paused,
    /// A scenario had fewer than two contenders left.
    TooFew,
}

/// A race.
pub struct Race<'a> {
    /// Everything done so far; empty for a new race.
    pub record: Record,
    /// The open journal, which already holds the record's lines.
    pub journal: Journal,
    /// The folder for contenders' log files.
    pub logs: PathBuf,
    /// Whether the user interrupted the race.
    pub stopped: &'a dyn Fn() -> bool,
    /// Receives the events of the race.
    pub observer: &'a mut dyn Observer,
    /// The machine, load generator and clock.
    pub place: Place<'a>,
    /// The longest time of this attempt. The race pauses at a look if the epochs up to the next look would end after it. A pause is not an
    /// end: it takes no extra look and spends no alpha. None: no limit.
    pub pause_after: Option<Duration>,
}

/// The machine, the load generator, the clock and the files of a race, or the fakes that tests pass instead.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The machine that contenders run on.
    pub host: &'a dyn Host,
    /// Sends probes and load to contenders.
    pub generator: &'a dyn LoadGenerator,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// What the files of the plan's probes contain.
    pub files: &'a ProbeFiles,
}

impl Race<'_> {
    /// Races every scenario that has not ended, and writes each step to the journal.
    ///
    /// # Errors
    /// When something fails that no contender caused. The journal keeps everything measured until then.
    pub fn go(&mut self) -> Result<Finish, RaceError> {
        let finish = self.run();
        if finish.is_err()
            && let Some(finding) = self.place.generator.lost()
        {
            self.note(None, finding)?;
        }
        finish
    }

    fn run(&mut self) -> Result<Finish, RaceError> {
        let pause_at = self.pause_after.map(|time| self.place.clock.now().saturating_add(time));
        let plan = self.record.plan.clone();
        if plan.scenarios.iter().all(|one| self.record.end_of(&one.name).is_some()) {
            return self.finish();
        }
        let failed = |path: &Path, source| RaceError::Folder { path: path.into(), source };
        let made = match self.record.resumed_unix_ms.is_empty() {
            true => fresh_logs(&self.logs, &plan),
            false => make_folder(&self.logs),
        };
        made.map_err(|source| failed(&self.logs, source))?;
        make_folder(&plan.work).map_err(|source| failed(&plan.work, source))?;
        let Place { host, generator, clock, files } = self.place;
        host.pin(plan.load_cpus_here())
            .map_err(|source| RaceError::Pin { cpus: plan.load_cpus_here().to_vec(), source })?;
        for finding in generator.watch(&plan).map_err(RaceError::Failed)? {
            self.note(None, finding)?;
        }
        let awake = self.keep_awake(&plan)?;
        // Services and contenders stop before this group is dropped.
        let _group = host.hold_to_limits(&plan)?;
        let contract = Contract::new(&plan.probes, files, Duration::from_nanos(plan.method.timeout_ns))?;
        let judge = Judge::new(&plan.method).map_err(AskError::from)?;
        let mut launcher = Launcher {
            plan: &plan,
            host,
            generator,
            clock,
            logs: self.logs.clone(),
            contract: &contract,
            request: contract.first_request()?,
            values: command::values(&plan),
            stopped: self.stopped,
        };
        let services = match launcher.start_services() {
            Err(StartError::Interrupted) => return Ok(Finish::Interrupted),
            other => other.map_err(RaceError::Service)?,
        };
        let authority = Authority::of(&plan)?;
        let over_tls = authority.as_ref().map(|authority| (contract.over(authority.settings()), authority));
        if over_tls.is_some() {
            launcher.without_certificate();
        }
        let secured = over_tls
            .as_ref()
            .map(|(contract, authority)| launcher.over_tls(contract, authority))
            .transpose()?;
        let gates = Gates { plain: &launcher, secured: secured.as_ref() };
        match self.scenarios(&gates, &judge, &services, awake.as_ref(), pause_at)? {
            Finish::Done | Finish::TooFew => self.finish(),
            before_the_end => Ok(before_the_end),
        }
    }

    /// Keeps idle processors from sleeping, or records a finding that they sleep.
    fn keep_awake(&mut self, plan: &Plan) -> Result<Option<Arc<Awake>>, RaceError> {
        // Idle threads would use up a quota that contenders need.
        let cores = plan.pinning.server_cpus.len() + plan.load_cpus_here().len();
        let quota = self.record.machine.details.cpu_quota.filter(|quota| *quota < cores as f64);
        let (why, remedy) = match plan.method.cpu_latency_us {
            Some(0) if quota.is_some() => (
                "the CPU quota leaves no time to keep them awake".to_owned(),
                "race without a quota, or on fewer cores",
            ),
            None => ("nothing keeps them awake".to_owned(), "race with --cpu-latency 0"),
            Some(latency_us) => match self.place.host.keep_awake(latency_us, &plan.pinning.server_cpus) {
                Ok(awake) => return Ok(Some(Arc::new(awake))),
                Err(error) => (error.to_string(), "race as root, or with --cpu-latency 0"),
            },
        };
        self.note(None, processors_sleep(&why, remedy))?;
        Ok(None)
    }

    /// Returns the result of the race after every scenario has ended.
    fn finish(&mut self) -> Result<Finish, RaceError> {
        if self.record.ended.iter().any(|(_, end)| *end == End::Stopped) {
            return Ok(Finish::TooFew);
        }
        self.write(Line::Done)?;
        Ok(Finish::Done)
    }

    fn scenarios(
        &mut self,
        gates: &Gates<'_>,
        judge: &Judge,
        services: &[Box<dyn Process>],
        awake: Option<&Arc<Awake>>,
        pause_at: Option<Duration>,
    ) -> Result<Finish, RaceError> {
        let mut is_first = true;
        for (index, scenario) in gates.plain.plan.scenarios.iter().enumerate() {
            if self.record.end_of(&scenario.name).is_some() {
                continue;
            }
            // Each attempt makes progress, however short it is.
            let is_late = pause_at.is_some_and(|at| self.place.clock.now() >= at);
            if !std::mem::take(&mut is_first) && is_late {
                return Ok(Finish::Paused);
            }
            let launcher = gates.of(scenario);
            let watch = self.watch_of(launcher.plan, scenario)?.besides(awake.cloned());
            let watch = &watch;
            let run = ScenarioRun { launcher, judge, services, watch, scenario, index, pause_at };
            if let finish @ (Finish::Interrupted | Finish::Paused) = self.scenario(&run)? {
                return Ok(finish);
            }
        }
        Ok(Finish::Done)
    }

    /// Creates the monitor of the machine for a scenario. It also watches stalls if the scenario reports a percentile, because one stall
    /// can move a percentile.
    fn watch_of(&mut self, plan: &Plan, scenario: &ScenarioPlan) -> Result<Monitor, RaceError> {
        let pinning = &plan.pinning;
        // Services run on all server cores, whatever the limits of contenders are.
        let held = Some(&scenario.limits.cpuset).filter(|cpus| !cpus.is_empty() && plan.services.is_empty());
        let cpus = [held.unwrap_or(&pinning.server_cpus).as_slice(), plan.load_cpus_here()].concat();
        let mut watch = self.place.host.monitor(&cpus, plan.load_cpus_here());
        // Without pinning, the cores that servers and generator use are unknown.
        let elsewhere = plan.load_from.is_some();
        let known = !pinning.server_cpus.is_empty() && (elsewhere || !pinning.load_cpus.is_empty());
        let unseen =
            if known && plan.highest_quantile(scenario).is_some() { watch.see_stalls() } else { None };
        for finding in watch.blind().into_iter().chain(unseen) {
            self.note(None, finding)?;
        }
        Ok(watch)
    }

    /// Runs one scenario from its pilot to its verdict, or until fewer than two contenders are left.
    fn scenario(&mut self, run: &ScenarioRun<'_>) -> Result<Finish, RaceError> {
        // A ceiling is valid for one session only. A resumed scenario measures it again.
        let mut stale = self.record.warmup_ns(&run.scenario.name).is_some();
        self.make_link(run)?;
        for _ in 0..MOST_RESTARTS {
            if self.rivals(&run.scenario.name) < 2 {
                self.end(run, End::Stopped)?;
                return Ok(Finish::TooFew);
            }
            self.observer.event(&Event::Racing { record: &self.record, scenario: &run.scenario.name });
            let is_load = run.scenario.shape.is_load();
            let end = if is_load { self.until_the_end(run, &mut stale) } else { self.values(run) };
            for finding in self.place.host.take_left_behind() {
                self.note(None, finding)?;
            }
            let broken = match end {
                Ok(end) => {
                    self.end(run, end)?;
                    return Ok(Finish::Done);
                }
                Err(ScenarioError::Error(error)) => return Err(error),
                Err(ScenarioError::Paused) => return Ok(Finish::Paused),
                Err(ScenarioError::EpochError(broken)) => broken,
            };
            // No contender is to blame for a request that no load host sends.
            if matches!(broken, EpochError::Parity(_) | EpochError::Out(..))
                && let Some(lost) = self.place.generator.lost()
            {
                return Err(RaceError::Failed(lost.message));
            }
            match broken {
                EpochError::Interrupted => return Ok(Finish::Interrupted),
                EpochError::Failed(reason) => return Err(RaceError::Failed(reason)),
                EpochError::Parity(differences) => self.put_out_by_parity(run, differences)?,
                EpochError::Out(name, reason) => self.put_out(run, &name, &reason)?,
            }
        }
        Err(RaceError::Failed(
            "one contender after another was excluded from the race; read their logs and try their commands by hand".into(),
        ))
    }

    /// Makes the scenario's link, and records what was measured of it. Without a link, requests go the usual way again.
    fn make_link(&mut self, run: &ScenarioRun<'_>) -> Result<(), RaceError> {
        let (link, generator) = (run.scenario.link.as_ref(), self.place.generator);
        if link.is_some() {
            self.observer.event(&Event::Doing("measuring the link"));
        }
        let reading = generator.set_link(link).and_then(|()| generator.measure_link());
        let failed = |reason| RaceError::Failed(format!("scenario {}: {reason}", run.scenario.name));
        let Some(reading) = reading.map_err(failed)? else { return Ok(()) };
        let (scenario, unix_ms) = (run.scenario.name.clone(), self.place.clock.unix_ms());
        self.write(Line::Link(ScenarioLink { scenario, unix_ms, reading }))
    }

    /// How many contenders race in a scenario. The control is no rival: it is the baseline once more.
    fn rivals(&self, scenario: &str) -> usize {
        let contenders = &self.record.plan.contenders;
        self.record.racing(scenario).iter().filter(|index| !contenders[**index].control).count()
    }

    fn end(&mut self, run: &ScenarioRun<'_>, end: End) -> Result<(), RaceError> {
        self.write(Line::Scenario { scenario: run.scenario.name.clone(), end })?;
        self.observer.event(&Event::Scenario { record: &self.record, scenario: &run.scenario.name });
        Ok(())
    }

    fn until_the_end(&mut self, run: &ScenarioRun<'_>, stale: &mut bool) -> Result<End, ScenarioError> {
        if self.record.warmup_ns(&run.scenario.name).is_none() {
            self.pilot(run)?;
        }
        let mut has_run = false;
        loop {
            // This check comes first, so that it also happens when the race was interrupted between an epoch and its check.
            self.check_warmup(run)?;
            if let Some(end) = self.is_over(run)? {
                self.watch_collectors(run)?;
                self.profile_contenders(run, end)?;
                return Ok(end);
            }
            if has_run && self.is_time_to_pause(run)? {
                return Err(ScenarioError::Paused);
            }
            if std::mem::take(stale) {
                self.ceiling_anew(run)?;
            }
            self.epoch(run)?;
            has_run = true;
        }
    }

    /// Loads every contender in turn, and derives the warm-up length from how long their rates take to settle.
    fn pilot(&mut self, run: &ScenarioRun<'_>) -> Result<(), ScenarioError> {
        let method = run.launcher.plan.method.clone();
        let mut epoch_run =
            run.epoch_run(self.record.racing(&run.scenario.name), Duration::ZERO, 0, method.seed);
        epoch_run.observe = Observe::Instructions;
        let ready = epoch_run.start_all("pilot", "before the race", self.observer)?;
        self.give_way_to(&ready, run)?;
        self.note_encodings(&ready, run)?;
        let ceiling_rps = self.ceiling(&epoch_run, &ready)?;
        let link = self.bandwidth(&epoch_run)?;
        let (mut loaded, _) = epoch_run.open_all(ready)?;
        // A configured warm-up needs no windows. It runs once, for the values that need a warm contender.
        let (window, windows) = match method.pilot_ns {
            0 => (Duration::from_nanos(method.warmup_ns.0), 1),
            pilot_ns => (Duration::from_nanos(pilot_ns) / PILOT_WINDOWS, PILOT_WINDOWS),
        };
        let contenders = self.pilots(&epoch_run, &mut loaded, window, windows);
        stop_all(contenders_of(loaded).collect());
        let contenders = contenders?;
        if method.pilot_ns == 0 {
            let (scenario, warmup_ns) = (run.scenario.name.clone(), method.warmup_ns.0);
            let pilot = Pilot {
                scenario,
                window_ns: 0,
                contenders,
                warmup_ns,
                ceiling_rps,
                link,
                later_ceilings: vec![],
            };
            return Ok(self.write(Line::Pilot(pilot))?);
        }
        let cuts: Vec<f64> =
            contenders.iter().filter_map(|one| one.cut_ns).map(|ns| ns as f64 / 1e9).collect();
        let (shortest, longest) = method.warmup_ns;
        let limits = WarmupLimits { shortest_s: shortest as f64 / 1e9, longest_s: longest as f64 / 1e9 };
        let cold = run.scenario.traffic.cold;
        let warmup_ns = if cold { 0 } else { (warmup_length_s(&cuts, limits) * 1e9) as u64 };
        let scenario = run.scenario.name.clone();
        self.observer.event(&Event::Pilot { scenario: &scenario, warmup: Duration::from_nanos(warmup_ns) });
        let window_ns = window.as_nanos() as u64;
        let pilot =
            Pilot { scenario, window_ns, contenders, warmup_ns, ceiling_rps, link, later_ceilings: vec![] };
        Ok(self.write(Line::Pilot(pilot))?)
    }

    fn pilots(
        &mut self,
        epoch_run: &EpochRun<'_>,
        loaded: &mut [LoadedContender],
        window: Duration,
        windows: u32,
    ) -> Result<Vec<PilotContender>, EpochError> {
        let (count, mut contenders) = (loaded.len(), Vec::new());
        for (index, one) in loaded.iter_mut().enumerate() {
            let name = one.runner.process.name().to_owned();
            self.observer.event(&Event::Doing(&format!("pilot: {name} ({} of {count})", index + 1)));
            let (mut rates, stopped) = (Vec::new(), self.stopped);
            let mut counted = PerRequest::of(one.runner.process.instructions());
            let enough = |sum: &LoadTotals, last: &Tally| {
                rates.push(last.rate_per_s().unwrap_or(0.0));
                // Counting starts after the first half, when the contender is warmer.
                if rates.len() * 2 == windows as usize {
                    counted.mark(sum.completions);
                }
                stopped() || rates.len() >= windows as usize
            };
            let sum = one.stretch(window, 0, enough).map_err(|error| lost(&one.runner, &error))?;
            let instructions = counted.until(sum.completions);
            epoch_run.still_there(one, "in the pilot")?;
            let cut_ns = pilot_cut(&rates).map(|windows| windows as u64 * window.as_nanos() as u64);
            let handicap = self.handicap(epoch_run, one)?;
            let window_rates_per_s = if windows > 1 { rates } else { Vec::new() };
            contenders.push(PilotContender {
                contender: name,
                window_rates_per_s,
                cut_ns,
                handicap,
                instructions_per_request: instructions.map(|(each, _)| each),
                instructions_source: instructions.map(|(_, source)| source.into()),
            });
        }
        Ok(contenders)
    }

    /// Measures the handicap of a closed load. An open load has none: its rate does not depend on how long the generator works on each
    /// request.
    fn handicap(
        &self,
        epoch_run: &EpochRun<'_>,
        one: &mut LoadedContender,
    ) -> Result<Option<Handicap>, EpochError> {
        if !epoch_run.scenario.shape.is_closed() {
            return Ok(None);
        }
        let slice = Duration::from_nanos(self.record.plan.slices(epoch_run.scenario).slice_ns);
        let measured = handicap::measure(one, slice, epoch_run.seed, self.stopped);
        let measured = measured.map_err(|error| lost(&one.runner, &error))?;
        epoch_run.still_there(one, "in the pilot")?;
        Ok(measured)
    }

    /// Measures the ceiling again for a session that resumes a scenario.
    fn ceiling_anew(&mut self, run: &ScenarioRun<'_>) -> Result<(), ScenarioError> {
        let (racing, seed) = (self.record.racing(&run.scenario.name), run.launcher.plan.method.seed);
        let epoch_run = run.epoch_run(racing, Duration::ZERO, 0, seed);
        let ready = epoch_run.start_all("ceiling", "before going on", self.observer)?;
        self.give_way_to(&ready, run)?;
        let measured =
            self.ceiling(&epoch_run, &ready).and_then(|rps| Ok((rps, self.bandwidth(&epoch_run)?)));
        stop_all(ready.runners);
        let (ceiling_rps, link) = measured?;
        if (self.stopped)() {
            return Err(EpochError::Interrupted.into());
        }
        let ceiling = LaterCeiling { unix_ms: self.place.clock.unix_ms(), ceiling_rps, link };
        Ok(self.write(Line::Ceiling { scenario: run.scenario.name.clone(), ceiling })?)
    }

    /// Stops keeping cores awake if that would take CPU time from contenders or services, and records a finding.
    pub(crate) fn give_way_to(
        &mut self,
        ready: &ReadyContenders,
        run: &ScenarioRun<'_>,
    ) -> Result<(), RaceError> {
        let contenders = ready.runners.iter().map(|runner| &runner.process);
        let processes: Vec<_> = contenders.chain(run.services).flat_map(|one| one.processes()).collect();
        run.watch.give_way_to(&processes).map_or(Ok(()), |finding| self.note(None, finding))
    }

    /// Records a finding if contenders encode the answers to the scenario's requests differently.
    pub(crate) fn note_encodings(
        &mut self,
        ready: &ReadyContenders,
        run: &ScenarioRun<'_>,
    ) -> Result<(), RaceError> {
        let probes = run.scenario.requests.iter().map(|share| share.probe.as_str());
        let found = ready.parity.different_encodings(&run.launcher.contract.keys(probes));
        found.map_or(Ok(()), |finding| self.note(Some(&run.scenario.name), finding))
    }

    /// Measures the generator's ceiling while all contenders are frozen. It is the generator's, and not that of the scenario's link.
    fn ceiling(
        &mut self,
        epoch_run: &EpochRun<'_>,
        ready: &ReadyContenders,
    ) -> Result<Option<f64>, RaceError> {
        self.observer.event(&Event::Doing("measuring the generator's ceiling"));
        let (link, generator) = (epoch_run.scenario.link.as_ref(), self.place.generator);
        if link.is_some() {
            generator.set_link(None).map_err(RaceError::Failed)?;
        }
        let measured = ceiling::measure(epoch_run, &ready.parity);
        if link.is_some() {
            generator.set_link(link).map_err(RaceError::Failed)?;
        }
        match measured {
            Ok(rate) => Ok(Some(rate)),
            Err(_) if (self.stopped)() => Ok(None),
            Err(reason) => {
                let finding = Finding::warn(
                    "ceiling-unknown",
                    format!("the generator's ceiling could not be measured: {reason}"),
                    "free what it lacks (open files, memory), and race again",
                );
                self.note(Some(&epoch_run.scenario.name), finding)?;
                Ok(None)
            }
        }
    }

    /// Measures the bandwidth between the load hosts and this machine while all contenders are frozen. None if the load comes from this machine.
    fn bandwidth(&mut self, epoch_run: &EpochRun<'_>) -> Result<Option<LinkBandwidth>, RaceError> {
        if self.record.plan.load_from.is_none() {
            return Ok(None);
        }
        self.observer.event(&Event::Doing("measuring the bandwidth of the network"));
        match ceiling::bandwidth(epoch_run) {
            Ok(link) => Ok(link),
            Err(_) if (self.stopped)() => Ok(None),
            Err(reason) => {
                let finding = Finding::warn(
                    "link-unknown",
                    format!(
                        "the bandwidth between load hosts and contenders could not be measured: {reason}"
                    ),
                    "repair what the message names, and race again",
                );
                self.note(Some(&epoch_run.scenario.name), finding)?;
                Ok(None)
            }
        }
    }

    /// Waits until the next epoch is due, in a race whose epochs are spread over hours.
    fn wait_until_due(&mut self, run: &ScenarioRun<'_>) -> Result<(), ScenarioError> {
        let left = |race: &Self| race.until_due(&run.scenario.name, 1);
        if left(self).is_zero() {
            return Ok(());
        }
        if run.pause_at.is_some_and(|pause_at| self.place.clock.now().saturating_add(left(self)) > pause_at) {
            return Err(ScenarioError::Paused);
        }
        run.watch.rest(true);
        while !left(self).is_zero() && !(self.stopped)() {
            let minutes = left(self).as_secs() / 60 + 1;
            self.observer.event(&Event::Doing(&format!("the next epoch is in {minutes} min")));
            self.place.clock.sleep(left(self).min(GLANCE));
        }
        run.watch.rest(false);
        if left(self).is_zero() { Ok(()) } else { Err(EpochError::Interrupted.into()) }
    }

    /// The time until the last of this many epochs may begin, because the race spreads its epochs over hours.
    fn until_due(&self, scenario: &str, epochs: u64) -> Duration {
        let due = due_unix_ms(&self.record, scenario, epochs).unwrap_or(0);
        Duration::from_millis(due.saturating_sub(self.place.clock.unix_ms()))
    }

    pub(crate) fn epoch(&mut self, run: &ScenarioRun<'_>) -> Result<(), ScenarioError> {
        let name = &run.scenario.name;
        self.wait_until_due(run)?;
        let number = self.record.epochs_of(name).count() + 1;
        let begun = self.record.anew.iter().filter(|(one, ..)| one == name).count();
        let warmup = Duration::from_nanos(self.record.warmup_ns(name).unwrap_or(0));
        let seed = derive_seed(run.launcher.plan.method.seed.wrapping_add(begun as u64), run.index, number);
        let mut epoch_run = run.epoch_run(self.record.racing(name), warmup, number, seed);
        epoch_run.peaks = self.record.epochs_of(name).last().map(peaks).unwrap_or_default();
        let epoch = match &run.scenario.shape {
            Experiment::Starts { .. } => epoch_run.start_each(self.observer)?,
            Experiment::Measure { measure } => epoch_run.measure_each(measure, self.observer)?,
            _ => epoch_run.run(self.observer)?,
        };
        self.write(Line::Epoch(Box::new(epoch)))?;
        self.observer.event(&Event::Epoch { record: &self.record, scenario: name });
        Ok(())
    }

    pub(crate) fn is_over(&self, run: &ScenarioRun<'_>) -> Result<Option<End>, ScenarioError> {
        let (method, name) = (&run.launcher.plan.method, &run.scenario.name);
        let judged = run.judge.ask(&self.record, name, Progress::Running).map_err(RaceError::from)?;
        if let Some(judgement) = judged.decision() {
            // A race that continues after a look stops only at another look. At any other epoch its last interval would not be one that
            // a verdict rests on.
            let counted = judgement.pairs.first().map(|pair| pair.epochs);
            let at_a_look = judgement.look == counted;
            match judgement.next {
                Next::Decided if at_a_look && !self.is_unsettled(run, counted.unwrap_or(0)) => {
                    return Ok(Some(End::Decided));
                }
                Next::Exhausted => return Ok(Some(End::Maximum)),
                Next::Decided | Next::GoOn { .. } => {}
            }
        }
        let epochs = self.record.epochs_of(name).count();
        if epochs > 0 && judged.contests.is_empty() {
            return Ok(Some(End::Unavailable));
        }
        let looks = run.launcher.plan.method_of(run.scenario).looks;
        if judged.decision().is_none() && run.scenario.shape.is_load() && self.is_fruitless(name, &looks) {
            return Ok(Some(End::Unavailable));
        }
        if epochs >= looks.last().copied().unwrap_or(0) * MOST_UNUSABLE {
            return Ok(Some(End::Maximum));
        }
        let over = method
            .budget_ns
            .is_some_and(|budget| spent_ns(&self.record, name) + self.longest_ns(name) > budget);
        // At least one epoch runs: otherwise the pilot would give no result.
        Ok((epochs > 0 && over).then_some(End::Budget))
    }

    /// Whether the race pauses here: at a look, if the epochs up to the next look would take too long; elsewhere, if one more epoch would.
    /// At a look, intervals are those that verdicts rest on.
    pub(crate) fn is_time_to_pause(&self, run: &ScenarioRun<'_>) -> Result<bool, ScenarioError> {
        let Some(pause_at) = run.pause_at else { return Ok(false) };
        let name = &run.scenario.name;
        let judged = run.judge.ask(&self.record, name, Progress::Running).map_err(RaceError::from)?;
        let counted = judged.counted(&self.record, name);
        let is_look = judged.decision().is_some_and(|judgement| judgement.look == Some(counted));
        let looks = run.launcher.plan.method_of(run.scenario).looks;
        let next = looks.into_iter().find(|look| *look > counted).filter(|_| is_look);
        let epochs = next.map_or(1, |look| look - counted) as u64;
        let needed = Duration::from_nanos(self.longest_ns(name).saturating_mul(epochs));
        let needed = needed.max(self.until_due(name, epochs));
        Ok(self.place.clock.now().saturating_add(needed) > pause_at)
    }

    /// Whether this session has as many epochs as the first look takes, or six if that is fewer. If none of them can be compared, the
    /// disturbance persists, and the scenario stops instead of using up its time.
    fn is_fruitless(&self, scenario: &str, looks: &[usize]) -> bool {
        let begun = self.record.resumed_unix_ms.last().copied().unwrap_or(self.record.started_unix_ms);
        let held = self.record.epochs_of(scenario).filter(|epoch| epoch.started_unix_ms >= begun);
        looks.first().is_some_and(|first| held.count() >= MOST_FRUITLESS.min(*first))
    }

    fn longest_ns(&self, scenario: &str) -> u64 {
        self.record.epochs_of(scenario).map(|epoch| epoch.took_ns).max().unwrap_or(0)
    }

    fn put_out_by_parity(
        &mut self,
        run: &ScenarioRun<'_>,
        differences: Vec<Difference>,
    ) -> Result<(), RaceError> {
        self.observer.event(&Event::Parity(&differences));
        let mut out: Vec<String> = Vec::new();
        for difference in &differences {
            if !out.contains(&difference.contender) {
                out.push(difference.contender.clone());
            }
        }
        self.write(Line::Parity { differences, out, scenario: Some(run.scenario.name.clone()) })
    }

    fn put_out(&mut self, run: &ScenarioRun<'_>, name: &str, reason: &str) -> Result<(), RaceError> {
        self.observer.event(&Event::Out { contender: name, reason });
        // The first line says what happened. The last lines of the log were already shown and stay in the log.
        let what = reason.lines().next().unwrap_or_default();
        let what = what.strip_prefix(name).map_or(what, str::trim_start);
        let remedy = "read its log, try its command by hand, or leave it out with --only";
        let finding = Finding::warn("contender-out", what, remedy).about(name);
        self.write(Line::Finding { scenario: None, finding })?;
        let scenario = Some(run.scenario.name.clone());
        self.write(Line::Parity { differences: Vec::new(), out: vec![name.into()], scenario })
    }

    /// Writes a finding, unless the record already has an identical one.
    pub(crate) fn note(&mut self, scenario: Option<&str>, finding: Finding) -> Result<(), RaceError> {
        let known = |one: &(Option<String>, Finding)| one.0.as_deref() == scenario && one.1 == finding;
        if self.record.findings.iter().any(known) {
            return Ok(());
        }
        self.observer.event(&Event::Finding(&finding));
        self.write(Line::Finding { scenario: scenario.map(str::to_owned), finding })
    }

    pub(crate) fn write(&mut self, line: Line) -> Result<(), RaceError> {
        self.journal.append(&line)?;
        self.record.apply(line);
        Ok(())
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}

/// The peaks that an epoch found, by contender.
fn peaks(epoch: &Epoch) -> BTreeMap<usize, f64> {
    epoch.contenders.iter().filter_map(|part| Some((part.contender, part.peak?.found()?))).collect()
}

/// Everything that one scenario of a race needs.
pub(crate) struct ScenarioRun<'a> {
    pub(crate) launcher: &'a Launcher<'a>,
    pub(crate) judge: &'a Judge,
    pub(crate) services: &'a [Box<dyn Process>],
    pub(crate) watch: &'a Monitor,
    pub(crate) scenario: &'a ScenarioPlan,
    pub(crate) index: usize,
    /// When the race pauses, by its clock.
    pub(crate) pause_at: Option<Duration>,
}

impl ScenarioRun<'_> {
    pub(crate) fn epoch_run(
        &self,
        racing: Vec<usize>,
        warmup: Duration,
        number: usize,
        seed: u64,
    ) -> EpochRun<'_> {
        EpochRun {
            launcher: self.launcher,
            scenario: self.scenario,
            racing,
            warmup,
            seed,
            number,
            peaks: BTreeMap::new(),
            observe: Observe::Nothing,
            watch: self.watch,
            services: self.services,
        }
    }
}

/// Why a scenario failed.
pub(crate) enum ScenarioError {
    /// It did not fail: the time of the attempt is used up.
    Paused,
    EpochError(EpochError),
    Error(RaceError),
}

impl From<EpochError> for ScenarioError {
    fn from(broken: EpochError) -> Self {
        Self::EpochError(broken)
    }
}

impl From<RaceError> for ScenarioError {
    fn from(error: RaceError) -> Self {
        Self::Error(error)
    }
}

/// When the last of the next `epochs` of a scenario is due, in milliseconds since 1970, if the race spreads its epochs over a time; none before the first.
/// The steps are equal: with as many epochs as the rules allow, the last one begins at the end of that time.
pub fn due_unix_ms(record: &Record, scenario: &str, epochs: u64) -> Option<u64> {
    let over_ms = Some(record.plan.method.over_ns / 1_000_000).filter(|over_ms| *over_ms > 0)?;
    let most = *record.plan.method_of(record.plan.scenario(scenario)?).looks.last()? as u64;
    let last = record.epochs_of(scenario).last()?.started_unix_ms;
    Some(last.saturating_add((over_ms / (most - 1).max(1)).saturating_mul(epochs)))
}

/// What a scenario has spent of its time budget, in nanoseconds: its pilot and its epochs, those that do not count included. Epochs from before a longer
/// warm-up are free: with them, too little would be left for as many epochs as the first look needs.
pub fn spent_ns(record: &Record, scenario: &str) -> u64 {
    let plan = &record.plan;
    let slice_ns = plan.scenario(scenario).map_or(0, |one| plan.slices(one).slice_ns);
    let pilots = record.pilots.iter().filter(|pilot| pilot.scenario == scenario);
    let pilot: u64 = pilots
        .flat_map(|pilot| &pilot.contenders)
        .map(|one| plan.method.pilot_ns + one.handicap.map_or(0, |one| handicap::took_ns(&one, slice_ns)))
        .sum();
    pilot + record.epochs_of(scenario).map(|epoch| epoch.took_ns).sum::<u64>()
}

#[cfg(test)]
pub(crate) mod tests;
