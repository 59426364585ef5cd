//! Runs one epoch: fresh starts, parity, warm-up, rounds of mirrored slices, usage, and stopping all.
//!
//! Owns: that order. Must not know: the race around it, and the record's file.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use deadheat_analysis::series::rate_per_s;
use deadheat_load::{Prepared, Requests, Tally, with_causes};
use deadheat_record::{
    ContenderEpoch, Difference, Epoch, HistogramError, LoadHostsEpoch, Plan, Replay, Round, ScenarioPlan,
    Slice,
};

use crate::events::{Event, Observer};
use crate::launcher::{Launcher, ReadyContender, ResetError, Until, stop_all};
use crate::load_hosts::LoadHostsReadings;
use crate::loaded::{LoadError, LoadTotals, LoadedContender, Sent, SliceStart};
use crate::parity::{Parity, ProbeTarget};
use crate::readings::{ContenderReadings, slice_record};
use crate::schedule;
use deadheat_host::monitor::{Disturbance, Monitor, Snapshot};
use deadheat_host::process::{Observe, Process, StartError};

/// A round is left out as a whole above these readings of the machine: steal on all of our cores, and the share of the servers' or the
/// generator's cores that other programs used. Each side has its own limit, because a tenth of its time matters equally whatever the
/// other side has. With one core each, this is up to twice as strict as a tenth of both together.
const MOST_STEAL: f64 = 0.05;
const MOST_FOREIGN: f64 = 0.10;
/// For a percentile at a given rate, other programs may take no larger share than lies beyond it, but always this much: kernel and services
/// of a quiet machine take half of it.
const ALWAYS_FOREIGN: f64 = 0.01;
/// A core may stand still for this part of the share that lies beyond a percentile. Requests that wait for it to go on form a queue, so it
/// delays several times as many as fall into it.
const STALLED_PART: f64 = 0.25;
/// A contender with a larger share of wrong answers drops out of the race.
const MOST_WRONG: f64 = 0.001;
/// Least length of a random order of requests: large enough that no slice repeats another slice's requests. It is the same for every contender.
const POSITIONS: usize = 1 << 16;
/// A random order has this many positions for each request, so that hardly a request is missing, but no more than this many: to draw them takes time in
/// every epoch.
const POSITIONS_EACH: usize = 8;
const MOST_POSITIONS: usize = 1 << 22;
/// A contender without warm-up is measured in windows of this length.
const WINDOW: Duration = Duration::from_millis(250);
/// A warm-up with too little load or too few requests continues, up to this many times its length in total.
const WARMUP_STRETCH: u32 = 3;
/// How long a warming contender is loaded at most before the load is judged and may end.
const WARM_SLICE: Duration = Duration::from_millis(100);

/// The length of a random order of so many different requests.
fn positions(requests: usize) -> usize {
    POSITIONS.max(POSITIONS_EACH * requests).min(MOST_POSITIONS)
}

/// Why an epoch failed.
#[derive(Debug)]
pub(crate) enum EpochError {
    /// A contender dropped out: its name and the reason, ready to print.
    Out(String, String),
    /// Contenders gave wrong answers.
    Parity(Vec<Difference>),
    /// The user interrupted the race.
    Interrupted,
    /// The engine or the system failed.
    Failed(String),
}

/// What an epoch needs.
pub(crate) struct EpochRun<'a> {
    /// Starts the contenders.
    pub launcher: &'a Launcher<'a>,
    /// The scenario.
    pub scenario: &'a ScenarioPlan,
    /// The remaining contenders, as indices into the plan.
    pub racing: Vec<usize>,
    /// The warm-up length of every contender.
    pub warmup: Duration,
    /// The seed of every random order in the epoch.
    pub seed: u64,
    /// The number of the epoch, from 1.
    pub number: usize,
    /// Peaks that the previous epoch found, by contender. A search starts there.
    pub peaks: BTreeMap<usize, f64>,
    /// What the kernel observes of the contenders. It observes something only in the pilot and in diagnostic passes.
    pub observe: Observe,
    /// Reads the machine.
    pub watch: &'a Monitor,
    /// The services. Their CPU time counts as ours.
    pub services: &'a [Box<dyn Process>],
}

/// Loads one contender. Gets its place among those of the epoch, the contender, and the position in the order of requests to begin with.
/// Returns the start of each slice, in nanoseconds since the epoch began, and its tally.
pub(crate) type LoadSlice<'l> =
    &'l mut dyn FnMut(usize, &mut LoadedContender, u64) -> Result<Vec<(u64, Tally)>, EpochError>;

/// A slice of a round.
pub(crate) struct PlayedSlice {
    /// Its contender's place among those of the epoch.
    pub place: usize,
    /// What the generator counted.
    pub tally: Tally,
    /// The slice as the record keeps it.
    pub slice: Slice,
}

/// A round that was played.
pub(crate) struct PlayedRound {
    /// Its slices, in the order in which they ran.
    pub slices: Vec<PlayedSlice>,
    /// What other programs and the hypervisor did to the machines.
    pub seen: Disturbance,
    /// Why it is left out, if a load host was silent.
    pub silent: Option<String>,
}

/// What was measured in an epoch.
struct Measured {
    contenders: Vec<ContenderEpoch>,
    rounds: Vec<Round>,
    load_hosts: Option<LoadHostsEpoch>,
}

/// The contenders of an epoch, all up and frozen, with their answers.
pub(crate) struct ReadyContenders {
    /// In plan order.
    pub runners: Vec<ReadyContender>,
    /// Their answers.
    pub parity: Parity,
}

impl EpochRun<'_> {
    fn plan(&self) -> &Plan {
        self.launcher.plan
    }

    /// Starts all contenders in random order and sends every probe to all of them.
    ///
    /// # Errors
    /// When a contender does not start, or any answer is wrong.
    pub(crate) fn start_all(
        &self,
        log: &str,
        when: &str,
        observer: &mut dyn Observer,
    ) -> Result<ReadyContenders, EpochError> {
        self.reset_services()?;
        let mut runners = Vec::new();
        for contender in schedule::shuffled(&self.racing, self.seed) {
            let name = &self.plan().contenders[contender].name;
            match self.start(contender, name, log, observer) {
                Ok(runner) => runners.push(runner),
                Err(error) => {
                    stop_all(runners);
                    return Err(out(name, error));
                }
            }
        }
        runners.sort_by_key(|runner| runner.contender);
        observer.event(&Event::Doing("comparing answers"));
        let checked = self.compare(&runners, when);
        match checked {
            Ok(parity) if parity.differences.is_empty() => Ok(ReadyContenders { runners, parity }),
            Ok(parity) => {
                stop_all(runners);
                Err(EpochError::Parity(parity.differences))
            }
            Err(broken) => {
                stop_all(runners);
                Err(broken)
            }
        }
    }

    /// Builds a contender if each epoch has a build of its own. Returns the seed of the build.
    pub(crate) fn build(
        &self,
        contender: usize,
        observer: &mut dyn Observer,
    ) -> Result<Option<u32>, StartError> {
        let one = &self.plan().contenders[contender];
        if one.rebuild.is_some() {
            observer.event(&Event::Doing(&format!("building {}", one.name)));
        }
        self.launcher.rebuild(contender, self.seed)
    }

    /// Builds a contender, if each epoch has a build of its own, and starts it.
    fn start(
        &self,
        contender: usize,
        name: &str,
        log: &str,
        observer: &mut dyn Observer,
    ) -> Result<ReadyContender, StartError> {
        let build_seed = self.build(contender, observer)?;
        observer.event(&Event::Doing(&format!("starting {name}")));
        let limits = &self.scenario.limits;
        let ready = self.launcher.start(contender, limits, Until::Parity, log, self.observe, observer)?;
        Ok(ReadyContender { build_seed, ..ready })
    }

    /// Brings the data of all services back to the same state.
    ///
    /// # Errors
    /// When a service's command fails, or the user interrupts.
    pub(crate) fn reset_services(&self) -> Result<(), EpochError> {
        self.launcher.reset_services().map_err(|error| match error {
            ResetError::Interrupted => EpochError::Interrupted,
            failed @ ResetError::Failed { .. } => EpochError::Failed(failed.to_string()),
        })
    }

    fn compare(&self, runners: &[ReadyContender], when: &str) -> Result<Parity, EpochError> {
        let failed = |error: std::io::Error| EpochError::Failed(error.to_string());
        runners.iter().try_for_each(|runner| runner.process.thaw()).map_err(failed)?;
        let asked: Vec<ProbeTarget<'_>> = runners
            .iter()
            .map(|runner| ProbeTarget { name: runner.process.name(), address: runner.process.address() })
            .collect();
        let checked = self.launcher.parity(&asked, when);
        let parity =
            checked.map_err(|error| EpochError::Failed(error.to_string()))?.ok_or(EpochError::Interrupted)?;
        runners.iter().try_for_each(|runner| runner.process.freeze()).map_err(failed)?;
        // If a contender died from a probe, the report shows the last lines of its log and not a list of refused connections.
        match runners.iter().find_map(|runner| Some((runner, runner.process.exited()?))) {
            Some((runner, status)) => Err(died(runner, &status, "while its answers were compared")),
            None => Ok(parity),
        }
    }

    /// The requests of the scenario for one contender: prepared bytes with the expected answers, in the same order for all contenders.
    pub(crate) fn requests(&self, contender: usize, parity: &Parity) -> Result<Sent, EpochError> {
        self.requests_with(contender, parity, |prepared| prepared)
    }

    /// The same, with a change to each request before it gets its place in the order.
    pub(crate) fn requests_with(
        &self,
        contender: usize,
        parity: &Parity,
        change: impl Fn(Prepared) -> Prepared,
    ) -> Result<Sent, EpochError> {
        let name = &self.plan().contenders[contender].name;
        let (mut all, mut weights) = (Vec::new(), Vec::new());
        for share in &self.scenario.requests {
            let prepared = self.launcher.contract.prepared(name, &share.probe, parity);
            let prepared = prepared.map_err(|error| EpochError::Failed(error.to_string()))?;
            let within = self.launcher.contract.weights(&share.probe);
            let sum: f64 = within.iter().sum();
            weights.extend(within.iter().map(|weight| f64::from(share.weight) * weight / sum));
            all.extend(prepared.into_iter().map(&change));
        }
        let seed = self.plan().method.seed;
        let traffic = &self.scenario.traffic;
        let alone = match &self.scenario.requests[..] {
            [share] => Some(self.launcher.contract.recording(&share.probe)),
            _ => None,
        };
        let positions = positions(all.len());
        let requests = match (traffic.zipf, traffic.replay, alone) {
            (Some(exponent), ..) => Requests::zipf(all, exponent, positions, seed),
            (None, Some(Replay::Random), _) | (None, _, None) => {
                Requests::weighted(all.into_iter().zip(weights).collect(), positions, seed)
            }
            (None, _, Some(Some(recording))) => Requests::ordered(all, recording.order.clone()),
            (None, _, Some(None)) => Requests::in_turn(all),
        };
        let requests = requests.map_err(|error| EpochError::Failed(error.to_string()))?;
        let recording = alone.flatten().filter(|_| traffic.speed().is_some());
        let times = recording.and_then(|recording| recording.times.clone());
        Ok(Sent { requests: Arc::new(requests), times })
    }

    /// Opens the connections of every contender.
    ///
    /// # Errors
    /// When the connections of a contender cannot be opened. All contenders are stopped then.
    pub(crate) fn open_all(
        &self,
        ready: ReadyContenders,
    ) -> Result<(Vec<LoadedContender>, Parity), EpochError> {
        let ReadyContenders { runners, parity } = ready;
        let mut loaded = Vec::new();
        let mut waiting = runners.into_iter();
        while let Some(runner) = waiting.next() {
            let opened = match self.requests(runner.contender, &parity) {
                Ok(sent) => {
                    let tls = self.launcher.contract.tls().cloned();
                    LoadedContender::open(
                        self.launcher.generator,
                        runner,
                        self.scenario,
                        self.plan(),
                        sent,
                        tls,
                        self.seed,
                    )
                    .map_err(|failure| (lost(&failure.0, &failure.1), failure.0))
                }
                Err(broken) => Err((broken, runner)),
            };
            match opened {
                Ok(one) => loaded.push(one),
                Err((broken, runner)) => {
                    stop_all(contenders_of(loaded).chain([runner]).chain(waiting).collect());
                    return Err(broken);
                }
            }
        }
        Ok((loaded, parity))
    }

    /// Runs the whole epoch.
    ///
    /// # Errors
    /// When the epoch fails. None of it counts then.
    pub(crate) fn run(&self, observer: &mut dyn Observer) -> Result<Epoch, EpochError> {
        let clock = self.launcher.clock;
        let (started, started_unix_ms) = (clock.now(), clock.unix_ms());
        let when = format!("epoch {}", self.number);
        let ready = self.start_all(&format!("epoch-{}", self.number), &when, observer)?;
        let (mut loaded, parity) = self.open_all(ready)?;
        let measured = self.measure(&mut loaded, &parity, started, observer);
        observer.event(&Event::Doing("stopping all contenders"));
        stop_all(contenders_of(loaded).collect());
        let Measured { contenders, rounds, load_hosts } = measured?;
        Ok(Epoch { load_hosts, ..self.record(started_unix_ms, started, contenders, rounds) })
    }

    /// The record of this epoch, which ends now.
    pub(crate) fn record(
        &self,
        started_unix_ms: u64,
        started: Duration,
        contenders: Vec<ContenderEpoch>,
        rounds: Vec<Round>,
    ) -> Epoch {
        Epoch {
            scenario: self.scenario.name.clone(),
            number: self.number,
            started_unix_ms,
            took_ns: (self.launcher.clock.now() - started).as_nanos() as u64,
            contenders,
            rounds,
            load_hosts: None,
            findings: Vec::new(),
        }
    }

    fn measure(
        &self,
        loaded: &mut [LoadedContender],
        parity: &Parity,
        started: Duration,
        observer: &mut dyn Observer,
    ) -> Result<Measured, EpochError> {
        let mut warmups = self.warm_up(loaded, parity, observer)?;
        self.wake(loaded, parity, &mut warmups, observer)?;
        let (rounds, measured) = match self.scenario.shape.objective() {
            Some(objective) => self.search(loaded, &warmups, &objective, started, observer)?,
            None => self.rounds(loaded, started, observer)?,
        };
        let failed = |error: HistogramError| EpochError::Failed(error.to_string());
        let of_hosts: Vec<&LoadHostsReadings> = measured.iter().map(|one| &one.load_hosts).collect();
        let load_hosts = LoadHostsReadings::epoch(&of_hosts).map_err(failed)?;
        let mut contenders = Vec::new();
        for (one, (warmup, measured)) in loaded.iter().zip(warmups.into_iter().zip(measured)) {
            self.check_answers(one, &measured.sum, parity)?;
            let part = measured.into_record(one, &warmup, self.scenario.shape.is_closed());
            contenders.push(part.map_err(failed)?);
        }
        Ok(Measured { contenders, rounds, load_hosts })
    }

    /// Loads each contender in turn, in random order, for the length of its warm-up. Returns what each answered.
    ///
    /// # Errors
    /// When a contender fails under load or gives wrong answers.
    pub(crate) fn warm_up(
        &self,
        loaded: &mut [LoadedContender],
        parity: &Parity,
        observer: &mut dyn Observer,
    ) -> Result<Vec<LoadTotals>, EpochError> {
        let count = loaded.len();
        let mut sums: Vec<LoadTotals> = loaded.iter().map(|_| LoadTotals::default()).collect();
        if self.scenario.traffic.cold {
            return Ok(sums);
        }
        // The contender that warms up first stays frozen the longest before the rounds, so the order is random.
        for (index, place) in self.places(count, 7).into_iter().enumerate() {
            let one = &mut loaded[place];
            let name = one.runner.process.name().to_owned();
            observer.event(&Event::Doing(&format!("warming up {name} ({} of {count})", index + 1)));
            let mut sum = self.warm(one, self.warm_slice())?;
            // A rate limiter or a full queue can cause wrong answers at full speed, so the contender warms up again at the scenario's
            // rate.
            if self.is_wrong(&sum) && one.keep_to_rate() {
                // Long enough for a request at a low rate.
                sum = self.warm(one, WARM_SLICE)?;
            }
            self.check_answers(one, &sum, parity)?;
            sums[place] = sum;
        }
        Ok(sums)
    }

    fn warm(&self, one: &mut LoadedContender, slice: Duration) -> Result<LoadTotals, EpochError> {
        let start = self.launcher.clock.now();
        let enough = |sum: &LoadTotals, _: &Tally| {
            // The time in which orders and results travel warms nobody up.
            let loaded = Duration::from_nanos(sum.elapsed_ns);
            let elapsed = self.launcher.clock.now() - start;
            (self.launcher.stopped)()
                || (loaded >= self.warmup && self.served(sum) >= self.plan().method.warmup_requests)
                || elapsed >= self.warmup * WARMUP_STRETCH
        };
        let sum = one.stretch(slice, 0, enough);
        let sum = sum.map_err(|error| lost(&one.runner, &error))?;
        self.still_there(one, "during its warm-up")?;
        Ok(sum)
    }

    /// How long a warming contender is loaded before the load is judged and may end.
    fn warm_slice(&self) -> Duration {
        self.warmup.clamp(Duration::from_millis(10), WARM_SLICE)
    }

    /// A random order of `count` contenders' places, different for each `purpose`.
    fn places(&self, count: usize, purpose: u32) -> Vec<usize> {
        schedule::shuffled(&(0..count).collect::<Vec<_>>(), self.seed.rotate_left(purpose))
    }

    /// Loads each contender again briefly after all are warm, in random order. A frozen contender loses state (caches, pages of its
    /// program, due timers), and its rivals must not gain from that. The answers count towards the warm-ups.
    ///
    /// # Errors
    /// As [`Self::warm_up`].
    fn wake(
        &self,
        loaded: &mut [LoadedContender],
        parity: &Parity,
        warmups: &mut [LoadTotals],
        observer: &mut dyn Observer,
    ) -> Result<(), EpochError> {
        let long = Duration::from_nanos(self.plan().method.wake_ns).min(self.warmup);
        if self.scenario.traffic.cold || loaded.len() < 2 || long.is_zero() {
            return Ok(());
        }
        observer.event(&Event::Doing("waking all contenders"));
        for place in self.places(loaded.len(), 31) {
            let (one, warmup) = (&mut loaded[place], &mut warmups[place]);
            let clock = self.launcher.clock;
            let (start, before_ns) = (clock.now(), warmup.elapsed_ns);
            let enough = |sum: &LoadTotals, _: &Tally| {
                (self.launcher.stopped)()
                    || Duration::from_nanos(sum.elapsed_ns - before_ns) >= long
                    || clock.now() - start >= long * WARMUP_STRETCH
            };
            let so_far = mem::take(warmup);
            let both = one.go_on(so_far, self.warm_slice(), 0, enough);
            *warmup = both.map_err(|error| lost(&one.runner, &error))?;
            self.still_there(one, "before its first round")?;
            // The wake-up alone gives too few answers to judge.
            self.check_answers(one, warmup, parity)?;
        }
        Ok(())
    }

    /// Checks that a contender still runs and that the user did not interrupt.
    pub(crate) fn still_there(&self, one: &LoadedContender, when: &str) -> Result<(), EpochError> {
        match one.runner.process.exited() {
            _ if (self.launcher.stopped)() => Err(EpochError::Interrupted),
            Some(status) => Err(died(&one.runner, &status, when)),
            None => Ok(()),
        }
    }

    /// How many answers are wrong. In a search, those with another status are not: a server that refuses what is too much fails a trial.
    fn wrong(&self, sum: &LoadTotals) -> u64 {
        match self.scenario.shape.objective() {
            Some(_) => sum.outcomes.mismatch,
            None => sum.outcomes.wrong(),
        }
    }

    /// Whether the share of wrong answers is above the limit.
    fn is_wrong(&self, sum: &LoadTotals) -> bool {
        self.wrong(sum) as f64 > sum.outcomes.total() as f64 * MOST_WRONG
    }

    /// How many requests were served. In a search, a refusal may come faster than any answer, and is none.
    pub(crate) fn served(&self, sum: &LoadTotals) -> u64 {
        match self.scenario.shape.objective() {
            Some(_) => sum.outcomes.ok,
            None => sum.completions,
        }
    }

    /// Checks that answers under load equal the earlier ones: all by status, length and digest, and some in full.
    pub(crate) fn check_answers(
        &self,
        one: &LoadedContender,
        sum: &LoadTotals,
        parity: &Parity,
    ) -> Result<(), EpochError> {
        let name = one.runner.process.name();
        let probes = || self.scenario.requests.iter().map(|share| share.probe.as_str());
        let keys = self.launcher.contract.keys(probes());
        let mut found = self.launcher.contract.check_samples(name, &keys, &sum.samples, parity);
        let (wrong, total) = (self.wrong(sum), sum.outcomes.total());
        if self.is_wrong(sum) {
            let (status, body) = (wrong - sum.outcomes.mismatch, sum.outcomes.mismatch);
            found.push(Difference {
                contender: name.into(),
                probe: probes().collect::<Vec<_>>().join(", "),
                path: if status > 0 { "status" } else { "answers" }.into(),
                expected: "status and body as before the load".into(),
                got: format!(
                    "{wrong} of {total} answers differ ({status} by status, {body} by length or digest)"
                ),
                against: "its own answer before the load".into(),
                when: "under load".into(),
            });
        }
        if total > 0 && sum.completions == 0 {
            let reason =
                format!("{name} answered none of {total} requests under load{}", one.runner.process.tail());
            return Err(EpochError::Out(name.into(), reason));
        }
        if found.is_empty() { Ok(()) } else { Err(EpochError::Parity(found)) }
    }

    fn rounds(
        &self,
        loaded: &mut [LoadedContender],
        epoch_start: Duration,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<Round>, Vec<ContenderReadings>), EpochError> {
        let count = self.plan().slices(self.scenario).rounds;
        let places: Vec<usize> = (0..loaded.len()).collect();
        let mut measured = self.begin(loaded, epoch_start);
        let mut rounds = Vec::new();
        let orders = schedule::rounds(&places, count, self.seed.rotate_left(17));
        for (index, order) in orders.iter().enumerate() {
            let PlayedRound { slices: played, seen, silent } =
                self.round((loaded, &mut measured), (index, order), epoch_start, &mut |_, one, position| {
                    self.load(one, self.slice_start(index, position), epoch_start)
                })?;
            let quantile = self.plan().highest_quantile(self.scenario);
            let dropped = silent
                .or_else(|| dropped(&seen, quantile))
                .or_else(|| stalled(played.iter().map(|one| &one.slice), quantile?));
            let mut slices = Vec::new();
            for one in played {
                measured[one.place].sum.add_if(one.tally, dropped.is_none());
                slices.push(one.slice);
            }
            let round = Round { slices, external: seen.reading, dropped };
            let rate =
                |one: &LoadedContender| rate_per_s(&round, one.runner.contender).filter(|rate| *rate > 0.0);
            let rates: Vec<(usize, Option<f64>)> =
                loaded.iter().map(|one| (one.runner.contender, rate(one))).collect();
            rounds.push(round);
            let round = index as u32 + 1;
            observer.event(&Event::Round { round, rounds: count, epoch: self.number, rates: &rates });
        }
        self.end(loaded, &mut measured, epoch_start);
        Ok((rounds, measured))
    }

    /// Reads what every contender has used before the first round.
    pub(crate) fn begin(&self, loaded: &[LoadedContender], epoch_start: Duration) -> Vec<ContenderReadings> {
        let begin = |one| ContenderReadings::begin(one, self.watch, self.since(epoch_start));
        loaded.iter().map(begin).collect()
    }

    /// Reads what every contender has used after the last round.
    pub(crate) fn end(
        &self,
        loaded: &[LoadedContender],
        measured: &mut [ContenderReadings],
        epoch_start: Duration,
    ) {
        let at = self.since(epoch_start);
        measured.iter_mut().zip(loaded).for_each(|(one, loaded)| one.end(loaded, at));
    }

    /// Plays round `index`, counted from 0. It lets `load` load each contender of `order` in turn, and reads what the machine does during that.
    ///
    /// # Errors
    /// When a contender drops out, or the user interrupts.
    pub(crate) fn round(
        &self,
        (loaded, measured): (&mut [LoadedContender], &mut [ContenderReadings]),
        (index, order): (usize, &[usize]),
        epoch_start: Duration,
        load: LoadSlice<'_>,
    ) -> Result<PlayedRound, EpochError> {
        if index > 0 {
            let at = self.since(epoch_start);
            measured.iter_mut().zip(&*loaded).for_each(|(one, loaded)| one.between_rounds(loaded, at));
        }
        // All contenders of a round get the same part of the request order.
        let position = schedule::derive_seed(self.seed, index, 0) >> 44;
        // A frozen contender uses no CPU time before or after its slice.
        let mut used_ns: Vec<u64> = loaded.iter().map(|one| one.runner.process.cpu_ns().0).collect();
        let before = self.moment(&used_ns);
        // What happened before this round does not count.
        self.launcher.generator.disturbance();
        self.launcher.generator.take_load_hosts();
        let elsewhere = self.plan().load_from.is_some();
        let (mut played, mut silent) = (Vec::new(), None);
        for &place in order {
            let one = &mut loaded[place];
            let (host, stalled) = (self.watch.host(), self.watch.stalled());
            let services_ns = self.services_ns();
            let network = elsewhere.then(|| self.watch.network());
            let thawed = self.launcher.clock.now();
            let slices = load(place, one, position)?;
            let awake = self.launcher.clock.now() - thawed;
            if let Some((work, network)) = self.launcher.generator.take_load_hosts().zip(network) {
                silent = silent.or_else(|| work.silent());
                measured[place].see_load_hosts(work, self.watch.network().since(&network), awake);
            }
            let used_before_ns = mem::replace(&mut used_ns[place], one.runner.process.cpu_ns().0);
            let during_ns = used_ns[place].saturating_sub(used_before_ns);
            let cpu_ns = (slices.len() == 1).then_some(during_ns);
            let here = self.watch.stalled_share(stalled);
            let stalled_share =
                here.into_iter().chain(self.launcher.generator.stalled_share()).reduce(f64::max);
            measured[place].see_host(self.watch.host().since(&host));
            measured[place].see_services(services_ns.zip(self.services_ns()));
            self.still_there(one, "in the middle of the race")?;
            played.extend(slices.into_iter().map(|(start_ns, tally)| {
                let slice = slice_record(one.runner.contender, start_ns, &tally, cpu_ns, stalled_share);
                PlayedSlice { place, tally, slice }
            }));
        }
        if let Some(last) = order.last() {
            measured[*last].load_hosts.end_round();
        }
        let here = self.watch.between(&before, &self.moment(&used_ns));
        let seen = here.or_worse(self.launcher.generator.disturbance());
        Ok(PlayedRound { slices: played, seen, silent })
    }

    /// Where the slices of round `index` begin, counted from 0. Recorded timing goes on where the round before ended, also across epochs, so
    /// that a race replays the whole log.
    fn slice_start(&self, index: usize, position: u64) -> SliceStart {
        let slices = self.plan().slices(self.scenario);
        match self.scenario.traffic.speed() {
            Some(speed) => {
                let rounds = self.number.saturating_sub(1) as u64 * u64::from(slices.rounds) + index as u64;
                SliceStart::Time((rounds as f64 * slices.slice_ns as f64 * speed).round() as u64)
            }
            None => SliceStart::Position(position),
        }
    }

    /// Runs a contender's slice of a round, from a place in the requests. Returns its start, relative to the start of the epoch, and
    /// its tally. A closed load without warm-up runs in consecutive windows without a pause, to show how the contender's rate grows. (An
    /// open load keeps to its rate, and needs its whole slice at once.)
    fn load(
        &self,
        one: &mut LoadedContender,
        start: SliceStart,
        epoch_start: Duration,
    ) -> Result<Vec<(u64, Tally)>, EpochError> {
        let length_ns = self.plan().slices(self.scenario).slice_ns;
        let now_ns = || (self.launcher.clock.now() - epoch_start).as_nanos() as u64;
        let start_ns = now_ns();
        if !self.scenario.traffic.cold || !self.scenario.shape.is_closed() {
            let tally = one.slice(Duration::from_nanos(length_ns), start);
            return Ok(vec![(start_ns, tally.map_err(|error| lost(&one.runner, &error))?)]);
        }
        let position = match start {
            SliceStart::Position(position) => position,
            SliceStart::Time(_) => 0,
        };
        let window_ns = (WINDOW.as_nanos() as u64).min(length_ns);
        let (mut windows, mut begun_ns) = (Vec::new(), start_ns);
        let enough = |_: &LoadTotals, last: &Tally| {
            windows.push((begun_ns, last.clone()));
            begun_ns = now_ns();
            (self.launcher.stopped)() || begun_ns + window_ns / 2 > start_ns + length_ns
        };
        let loaded = one.stretch(Duration::from_nanos(window_ns), position, enough);
        loaded.map_err(|error| lost(&one.runner, &error))?;
        Ok(windows)
    }

    /// The time since the epoch began.
    pub(crate) fn since(&self, epoch_start: Duration) -> Duration {
        self.launcher.clock.now() - epoch_start
    }

    /// The state of the machine while only `one` has used CPU time.
    pub(crate) fn moment_of(&self, one: &LoadedContender) -> Snapshot {
        self.moment(&[one.runner.process.cpu_ns().0])
    }

    /// The state of the machine, when contenders have used this CPU time.
    fn moment(&self, contenders_ns: &[u64]) -> Snapshot {
        let (carriers_ns, theirs_ns) = self.launcher.generator.carriers_cpu_ns();
        let used = contenders_ns.iter().sum::<u64>() + self.services_ns().unwrap_or(0) + theirs_ns;
        self.watch.moment_with(used, carriers_ns)
    }

    /// CPU time that the services have used so far; none without services.
    pub(crate) fn services_ns(&self) -> Option<u64> {
        self.services.iter().map(|one| one.cpu_ns().0).reduce(|sum, ns| sum + ns)
    }
}

/// The contenders alone. Their connections are closed.
pub(crate) fn contenders_of(loaded: Vec<LoadedContender>) -> impl Iterator<Item = ReadyContender> {
    loaded.into_iter().map(|one| one.runner)
}

/// Why a round is left out for all contenders. Only external readings count. `quantile` is the highest percentile that the round is about, if
/// requests come at a given rate.
pub(crate) fn dropped(seen: &Disturbance, quantile: Option<f64>) -> Option<String> {
    let reading = &seen.reading;
    if reading.steal_share > MOST_STEAL {
        return Some(format!("steal {:.1} %", reading.steal_share * 100.0));
    }
    let most = quantile.map_or(MOST_FOREIGN, |at| MOST_FOREIGN.min((1.0 - at).max(ALWAYS_FOREIGN)));
    let foreign = reading.foreign_share.filter(|share| *share - seen.foreign_off > most)?;
    Some(format!("others used {:.1} % of {}", foreign * 100.0, seen.foreign_of))
}

/// Why a round is left out if the scenario reports a percentile: in one of its slices, a core stalled for so long that the stall itself could
/// be the percentile.
fn stalled<'s>(slices: impl Iterator<Item = &'s Slice>, quantile: f64) -> Option<String> {
    let worst = slices.filter_map(|slice| slice.stalled_share).reduce(f64::max)?;
    stood_still(worst, STALLED_PART * (1.0 - quantile))
}

/// Returns a reason if a core stalled for more than this share of a slice.
pub(crate) fn stood_still(stalled_share: f64, most: f64) -> Option<String> {
    let why = || format!("a core stood still for {:.2} % of a slice", stalled_share * 100.0);
    (stalled_share > most).then(why)
}

/// What a failed start means: the contender drops out, unless the user interrupted.
pub(crate) fn out(name: &str, error: StartError) -> EpochError {
    match error {
        StartError::Interrupted => EpochError::Interrupted,
        other => EpochError::Out(name.into(), other.to_string()),
    }
}

fn died(runner: &ReadyContender, status: &str, when: &str) -> EpochError {
    let name = runner.process.name();
    EpochError::Out(name.into(), format!("{name} ended with {status} {when}{}", runner.process.tail()))
}

/// What a failed stretch of load means: the contender drops out, unless the generator itself failed.
pub(crate) fn lost(runner: &ReadyContender, error: &LoadError) -> EpochError {
    if let Some(status) = runner.process.exited() {
        return died(runner, &status, "under load");
    }
    blamed(runner.process.name(), error, &runner.process.tail())
}

fn blamed(name: &str, error: &LoadError, tail: &str) -> EpochError {
    match error.is_our_own() {
        true => EpochError::Failed(with_causes(error)),
        false => EpochError::Out(name.into(), format!("{}{tail}", with_causes(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadheat_record::ExternalReading;

    #[test]
    fn a_random_order_has_room_for_all_requests() {
        assert_eq!([1, 100_000, 1 << 20].map(positions), [1 << 16, 800_000, 1 << 22]);
    }

    #[test]
    fn rounds_are_left_out_on_external_signals_only() {
        let seen = |steal_share, foreign_share, foreign_off| Disturbance {
            reading: ExternalReading { steal_share, foreign_share },
            foreign_off,
            foreign_of: "the servers' cores".into(),
        };
        let reading = |steal_share, foreign_share| seen(steal_share, foreign_share, 0.0);
        let plainly = |seen: &Disturbance| dropped(seen, None);
        assert_eq!(plainly(&reading(0.05, Some(0.10))), None);
        assert_eq!(plainly(&reading(0.051, None)).unwrap(), "steal 5.1 %");
        assert_eq!(plainly(&reading(0.0, Some(0.2))).unwrap(), "others used 20.0 % of the servers' cores");
        assert_eq!(plainly(&seen(0.0, Some(0.2), 0.15)), None, "the clock is too coarse to tell");
        // What other programs take may not be the percentile.
        for (quantile, most) in [(0.5, 0.10), (0.95, 0.05), (0.99, 0.01), (0.999, 0.01)] {
            let of = |share| dropped(&reading(0.0, Some(share)), Some(quantile));
            assert_eq!((of(most - 0.001), of(most + 0.001).is_some()), (None, true), "{quantile}");
        }
    }

    #[test]
    fn a_percentile_bears_no_longer_stall_than_what_lies_beyond_it() {
        let of = |shares: [Option<f64>; 2]| {
            shares.map(|share| slice_record(0, 0, &Tally::default(), None, share)).to_vec()
        };
        let longest = stalled(of([Some(0.0026), Some(0.024)]).iter(), 0.99);
        assert_eq!(longest.unwrap(), "a core stood still for 2.40 % of a slice");
        assert!(stalled(of([Some(0.0026), None]).iter(), 0.99).is_some());
        assert_eq!(stalled(of([Some(0.0024), None]).iter(), 0.99), None);
        assert_eq!(stalled(of([Some(0.1), None]).iter(), 0.5), None);
        assert_eq!(stalled(of([None, None]).iter(), 0.99), None, "nobody looked");
    }

    /// Simulates `/proc/stat` of two processors with growing steal by the hypervisor. Two seconds pass each time.
    #[test]
    fn slow_steal_is_read_and_fast_steal_leaves_rounds_out() {
        let proc = tempfile::tempdir().unwrap();
        let imitate = |idle: u64, steal: u64| {
            let text = format!("cpu0 0 0 0 {idle} 0 0 0 {steal} 0 0\ncpu1 0 0 0 {idle} 0 0 0 0 0 0\n");
            std::fs::write(proc.path().join("stat"), text).unwrap();
        };
        let nowhere = deadheat_host::cgroup::Hierarchy::parse("", "", std::path::Path::new("/nowhere"));
        let watch = Monitor::under(proc.path(), &[0, 1], &[1], &nowhere);
        imitate(1_000, 0);
        let start = watch.moment(0);
        imitate(1_194, 12);
        let slow = watch.moment(0);
        let seen = watch.between(&start, &slow);
        assert!((seen.reading.steal_share - 0.03).abs() < 1e-12, "{seen:?}");
        assert_eq!(dropped(&seen, None), None);
        imitate(1_382, 36);
        let seen = watch.between(&slow, &watch.moment(0));
        assert_eq!(dropped(&seen, None).unwrap(), "steal 6.0 %");
    }

    #[test]
    fn the_generators_own_failures_are_no_contenders_fault() {
        use deadheat_load::{OpenError, SessionError};
        let io = |code| std::io::Error::from_raw_os_error(code);
        let name = || "bun".to_owned();
        let address = || deadheat_load::Address::Unix("/s".into());
        let connect =
            |code| OpenError::Connect { address: address(), opened: 1, wanted: 8, source: io(code) };
        let refused = LoadError::Open { contender: name(), source: connect(111) };
        let out = blamed("bun", &refused, "\n  its last lines");
        assert!(
            matches!(&out, EpochError::Out(who, why) if who == "bun" && why.contains("refused") && why.ends_with("last lines")),
            "{out:?}"
        );
        // 24: too many open files.
        for source in [OpenError::Pin { cpu: 9, source: io(22) }, OpenError::Worker(io(11)), connect(24)] {
            let ours = LoadError::Open { contender: name(), source };
            assert!(matches!(blamed("bun", &ours, ""), EpochError::Failed(_)), "{ours}");
        }
        let ours = LoadError::Slice { contender: name(), source: SessionError::WorkerLost };
        assert!(matches!(blamed("bun", &ours, ""), EpochError::Failed(_)));
    }
}
