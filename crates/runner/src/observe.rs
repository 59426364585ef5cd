//! Starts one contender, asks it every probe several times, and loads it for a moment, without any contract.
//!
//! Owns: how often it is started and asked, so that a value that changes from answer to answer, with time or with a start is seen to change.
//! Must not know: what follows from the answers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deadheat_host::process::{Observe, StartError};
use deadheat_load::{
    Address, Answer, BodyRule, Expectation, NoAnswer, Prepared, Requests, StatusRule, with_causes,
};
use deadheat_record::{Experiment, Limits, Plan};

use crate::authority::Authority;
use crate::events::{Event, Observer};
use crate::launcher::{Launcher, ReadyContender, Until, fresh_logs, stop_all};
use crate::loaded::{LoadedContender, Sent, SliceStart};
use crate::parity::{Contract, decode};
use crate::race::{Place, RaceError};
use deadheat_host::command::values;

/// How often each probe is asked in the first start before the load, after it, and in the second start. The load lies between, so that values
/// that change once a second change too.
const BEFORE_LOAD: usize = 3;
const AFTER_LOAD: usize = 1;
const SECOND_START: usize = 2;
/// The load before the rate counts, and while it counts.
const WARMUP: Duration = Duration::from_millis(500);
const MEASURED: Duration = Duration::from_secs(1);
/// The time between two starts, so that a start in the same second is not mistaken for one that always has the same time.
const BETWEEN: Duration = Duration::from_millis(1100);
/// The number of positions in the order of requests.
const ORDER: usize = 8192;

/// What a contender did.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Observed {
    /// For each probe, the answers of each start, with decoded bodies; or why one is missing.
    pub probes: Vec<Result<Vec<Vec<Answer>>, String>>,
    /// The load: answers per second, or why there is no number.
    pub load: Option<Result<f64, String>>,
    /// How long it took from its first start to its first answer.
    pub ready: Duration,
    /// Whether the user interrupted.
    pub interrupted: bool,
}

/// Starts the plan's first contender twice and asks it every probe several times. In the first start, it also loads it for a moment with the
/// connections of the plan's first scenario.
///
/// # Errors
/// When the contender does not start, does not answer the first probe in time, or ends; when a probe cannot be written as a request, or a
/// folder cannot be made.
pub fn observe(
    plan: &Plan,
    logs: PathBuf,
    place: Place<'_>,
    stopped: &dyn Fn() -> bool,
    observer: &mut dyn Observer,
) -> Result<Observed, RaceError> {
    let failed = |path: &PathBuf, source| RaceError::Folder { path: path.clone(), source };
    fresh_logs(&logs, plan).map_err(|source| failed(&logs, source))?;
    std::fs::create_dir_all(&plan.work).map_err(|source| failed(&plan.work, source))?;
    let contract = Contract::new(&plan.probes, place.files, Duration::from_nanos(plan.method.timeout_ns))?;
    let authority = Authority::of(plan)?;
    let contract = match &authority {
        Some(authority) => contract.over(authority.settings()),
        None => contract,
    };
    let mut values = values(plan);
    values.extend(authority.iter().flat_map(Authority::values));
    let Place { host, generator, clock, .. } = place;
    let request = contract.first_request()?;
    let launcher =
        Launcher { plan, host, generator, clock, logs, contract: &contract, request, values, stopped };
    let mut observation = Observation {
        launcher: &launcher,
        observed: Observed { probes: vec![Ok(Vec::new()); plan.probes.len()], ..Observed::default() },
    };
    match observation.both_starts(observer) {
        Ok(()) => Ok(observation.observed),
        Err(RaceError::Start(StartError::Interrupted)) => {
            Ok(Observed { interrupted: true, ..observation.observed })
        }
        Err(error) => Err(error),
    }
}

struct Observation<'a> {
    launcher: &'a Launcher<'a>,
    observed: Observed,
}

impl Observation<'_> {
    fn both_starts(&mut self, observer: &mut dyn Observer) -> Result<(), RaceError> {
        let name = self.launcher.plan.contenders.first().map(|one| one.name.as_str()).unwrap_or_default();
        observer.event(&Event::Doing(&format!("starting {name}")));
        let runner =
            self.launcher.start(0, &Limits::default(), Until::Parity, "first", Observe::Nothing, observer)?;
        self.observed.ready = runner.cold_start;
        let (runner, first) = self.first_start(runner, observer);
        stop_all(runner.into_iter().collect());
        first?;
        self.launcher.clock.sleep(BETWEEN);
        observer.event(&Event::Doing(&format!("starting {name} again")));
        let runner = self.launcher.start(
            0,
            &Limits::default(),
            Until::Parity,
            "second",
            Observe::Nothing,
            observer,
        )?;
        let second = runner.process.thaw().map_err(|error| RaceError::Failed(error.to_string()));
        let second = second.and_then(|()| self.ask_all(&runner, 1, SECOND_START));
        let ended = self.if_ended(&runner, "while it was asked");
        stop_all(vec![runner]);
        let left = self.launcher.host.take_left_behind();
        left.iter().for_each(|finding| observer.event(&Event::Finding(finding)));
        second.and(ended)
    }

    /// Asks, loads, and asks again. Returns the contender, so that it can be stopped; none if it stopped already.
    fn first_start(
        &mut self,
        runner: ReadyContender,
        observer: &mut dyn Observer,
    ) -> (Option<ReadyContender>, Result<(), RaceError>) {
        let thawed = runner.process.thaw().map_err(|error| RaceError::Failed(error.to_string()));
        observer.event(&Event::Doing("asking"));
        let before = thawed.and_then(|()| self.ask_all(&runner, 0, BEFORE_LOAD));
        if let Err(error) = before.and_then(|()| self.if_ended(&runner, "while it was asked")) {
            return (Some(runner), Err(error));
        }
        if self.observed.probes.iter().all(Result::is_err) {
            return (Some(runner), Ok(()));
        }
        observer.event(&Event::Doing("loading it for a moment"));
        let (runner, rate) = match self.load(runner) {
            Ok((runner, rate)) => (runner, rate),
            Err(error) => return (None, Err(error)),
        };
        self.observed.load = Some(rate);
        let after = self.if_ended(&runner, "under load").and_then(|()| {
            runner.process.thaw().map_err(|error| RaceError::Failed(error.to_string()))?;
            self.ask_all(&runner, 0, AFTER_LOAD)
        });
        (Some(runner), after)
    }

    /// Asks every probe that has always been answered `times` times, all probes in turn.
    fn ask_all(&mut self, runner: &ReadyContender, start: usize, times: usize) -> Result<(), RaceError> {
        let contract = self.launcher.contract;
        let timeout = Duration::from_nanos(self.launcher.plan.method.timeout_ns);
        let address: &Address = runner.process.address();
        for _ in 0..times {
            for (probe, seen) in self.launcher.plan.probes.iter().zip(&mut self.observed.probes) {
                let Ok(starts) = seen else { continue };
                let question = contract.question_of(probe)?;
                let Some(answers) = self.launcher.ask_all(&[(address, &question)], timeout) else {
                    return Err(StartError::Interrupted.into());
                };
                match answers.into_iter().next() {
                    Some(Ok(mut answer)) => {
                        decode(&mut answer);
                        starts.resize_with(start + 1, Vec::new);
                        starts[start].push(answer);
                    }
                    Some(Err(NoAnswer { reason, .. })) => *seen = Err(reason),
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Loads the contender with all probes that it answered. Returns it frozen, with its answers per second or why there is no number.
    fn load(&self, runner: ReadyContender) -> Result<(ReadyContender, Result<f64, String>), RaceError> {
        let plan = self.launcher.plan;
        let Some(scenario) = plan.scenarios.first() else {
            return Ok((runner, Err("the plan has no scenario".into())));
        };
        let connections = scenario.shape.connections();
        let scenario =
            deadheat_record::ScenarioPlan { shape: Experiment::Closed { connections }, ..scenario.clone() };
        let requests = match self.requests() {
            Ok(requests) => requests,
            Err(reason) => return Ok((runner, Err(reason))),
        };
        let tls = self.launcher.contract.tls().cloned();
        let generator = self.launcher.generator;
        let opened = LoadedContender::open(
            generator,
            runner,
            &scenario,
            plan,
            Sent { requests, times: None },
            tls,
            plan.method.seed,
        );
        let mut loaded = match opened {
            Ok(loaded) => loaded,
            Err(failure) => {
                let (runner, error) = *failure;
                return Ok((runner, Err(with_causes(&error))));
            }
        };
        let rate = loaded
            .slice(WARMUP, SliceStart::Position(0))
            .and_then(|_| loaded.slice(MEASURED, SliceStart::Position(0)));
        let rate = match rate {
            Ok(tally) => tally.rate_per_s().ok_or_else(|| "no answer came in time".to_owned()),
            Err(error) => Err(with_causes(&error)),
        };
        Ok((loaded.runner, rate))
    }

    fn requests(&self) -> Result<Arc<Requests>, String> {
        let plan = self.launcher.plan;
        let weights = plan.scenarios.first().map(|one| one.requests.as_slice()).unwrap_or_default();
        let mut weighted = Vec::new();
        for (probe, seen) in plan.probes.iter().zip(&self.observed.probes) {
            if seen.is_err() {
                continue;
            }
            let question = self.launcher.contract.question_of(probe).map_err(|error| error.to_string())?;
            let expect = Expectation { status: StatusRule::Any, body: BodyRule::Any };
            let weight =
                weights.iter().find(|share| share.probe == probe.name).map_or(1, |share| share.weight);
            let prepared = Prepared { bytes: question.bytes.to_vec(), head: question.head, expect };
            weighted.push((prepared, f64::from(weight)));
        }
        let requests = Requests::weighted(weighted, ORDER, plan.method.seed);
        requests.map(Arc::new).map_err(|error| error.to_string())
    }

    /// The error that the contender has ended, if it has.
    fn if_ended(&self, runner: &ReadyContender, when: &str) -> Result<(), RaceError> {
        let Some(status) = runner.process.exited() else { return Ok(()) };
        let (name, tail) = (runner.process.name(), runner.process.tail());
        Err(RaceError::Failed(format!("{name} ended with {status} {when}{tail}")))
    }
}

#[cfg(test)]
mod tests;
