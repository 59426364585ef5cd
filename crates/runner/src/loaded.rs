//! Loads one contender: combines slices into pilots and warm-ups, and adds up their results.
//!
//! Owns: thaw, slice, freeze; the totals over slices. Must not know: the order of contenders, parity.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use deadheat_load::{
    Arrivals, Limit, LoadSession, OpenError, Pacer, Rate, RateError, RecordedTimes, Requests, Sample,
    SessionConfig, SliceOrder, Tally, TlsSettings,
};
use deadheat_record::{Experiment, Outcomes, Plan, ScenarioPlan};
use hdrhistogram::Histogram;

use crate::ask::LoadGenerator;
use crate::launcher::ReadyContender;
use crate::schedule::derive_seed;

/// One answer in this many is kept in full, up to a maximum per slice.
const SAMPLE_EVERY: u32 = 256;
const MAX_SAMPLES: u32 = 4;

/// Why a stretch of load failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// Connections could not be opened.
    #[error("{contender}: {source}")]
    Open {
        /// The contender's name.
        contender: String,
        /// The error of the engine.
        source: OpenError,
    },
    /// The scenario's rate is invalid.
    #[error("{contender}: {source}")]
    Rate {
        /// The contender's name.
        contender: String,
        /// The error of the engine.
        source: RateError,
    },
    /// A slice failed as a whole.
    #[error("{contender}: {source}")]
    Slice {
        /// The contender's name.
        contender: String,
        /// The error of the engine.
        source: deadheat_load::SessionError,
    },
    /// The process tree could not be frozen or thawed.
    #[error("{contender} could not be frozen or thawed: {source}")]
    Freeze {
        /// The contender's name.
        contender: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

impl LoadError {
    /// Whether the load generator or its machine failed, independent of the contender.
    pub(crate) fn is_our_own(&self) -> bool {
        match self {
            Self::Open { source, .. } => source.is_our_own(),
            Self::Slice { .. } => true,
            Self::Freeze { .. } => false,
            Self::Rate { .. } => true,
        }
    }
}

/// Totals over slices.
#[derive(Debug, Default)]
pub(crate) struct LoadTotals {
    /// All complete answers.
    pub completions: u64,
    /// Time under load: the sum of the slices' elapsed times.
    pub elapsed_ns: u64,
    /// The outcomes of requests.
    pub outcomes: Outcomes,
    /// Answers by status.
    pub status: BTreeMap<u16, u64>,
    /// Number of connections that were opened again.
    pub reconnects: u64,
    /// Number of answers after which the contender closed the connection.
    pub closed_by_server: u64,
    /// Bytes received.
    pub bytes_read: u64,
    /// Latency from the intended time, over the rounds that were kept.
    pub latency: Option<Histogram<u64>>,
    /// Send lag: time from intended to sent.
    pub send_lag: Option<Histogram<u64>>,
    /// The part of the send lag during which no connection was free.
    pub wait: Option<Histogram<u64>>,
    /// The part of the send lag that the generator itself caused.
    pub own_lag: Option<Histogram<u64>>,
    /// Requests in flight, integrated over time. Like the times, only over the rounds that were kept.
    pub in_flight_ns: u64,
    /// Answers that were kept in full.
    pub samples: Vec<Sample>,
}

impl LoadTotals {
    /// Adds a slice.
    pub(crate) fn add(&mut self, tally: Tally) {
        self.add_if(tally, true);
    }

    /// Adds a slice, and its latencies only if its round is `kept`: an external disturbance must not count as a contender's tail latency.
    pub(crate) fn add_if(&mut self, tally: Tally, kept: bool) {
        self.completions += tally.completions;
        self.elapsed_ns += tally.elapsed_ns;
        self.outcomes.add(&outcomes(&tally));
        for (status, count) in tally.status.iter() {
            *self.status.entry(status).or_default() += count;
        }
        self.reconnects += tally.reconnects;
        self.closed_by_server += tally.closed_by_server;
        self.bytes_read += tally.bytes_read;
        let times = [
            (&mut self.latency, &tally.latency),
            (&mut self.send_lag, &tally.send_lag),
            (&mut self.wait, &tally.wait),
            (&mut self.own_lag, &tally.own_lag),
        ];
        for (sum, times) in times {
            let sum = sum.get_or_insert_with(|| Histogram::new_from(times.histogram()));
            if kept {
                // The engine gives both the same bounds, so adding cannot fail.
                let _ = sum.add(times.histogram());
            }
        }
        self.in_flight_ns += if kept { tally.in_flight_ns } else { 0 };
        self.samples.extend(tally.samples);
    }
}

/// Converts the engine's outcomes into those of the record.
pub fn outcomes(tally: &Tally) -> Outcomes {
    let all = &tally.outcomes;
    Outcomes {
        ok: all.ok,
        status: all.status,
        mismatch: all.mismatch,
        connect: all.connect,
        read: all.read,
        write: all.write,
        timeout: all.timeout,
        protocol: all.protocol,
        cut: all.cut,
    }
}

/// A contender with its connections open.
pub(crate) struct LoadedContender {
    /// The contender.
    pub runner: ReadyContender,
    session: Box<dyn LoadSession>,
    pace: Pace,
    settle: Duration,
    /// Whether stretches load the contender at full speed, whatever the scenario's rate is.
    flat_out: bool,
}

impl LoadedContender {
    /// Opens the connections of a scenario, over TLS if `tls` is given. The contender is thawed while they open.
    ///
    /// # Errors
    /// When the connections cannot be opened.
    pub(crate) fn open(
        generator: &dyn LoadGenerator,
        runner: ReadyContender,
        scenario: &ScenarioPlan,
        plan: &Plan,
        sent: Sent,
        tls: Option<TlsSettings>,
        seed: u64,
    ) -> Result<Self, Box<(ReadyContender, LoadError)>> {
        let address = runner.process.address().clone();
        let connections = scenario.shape.connections() as usize;
        let config = SessionConfig {
            tls,
            threads: plan.pinning.load_cpus.len().max(1),
            cpus: plan.pinning.load_cpus.clone(),
            spin: !plan.pinning.load_cpus.is_empty(),
            timeout: Duration::from_nanos(plan.method.timeout_ns),
            sample_every: SAMPLE_EVERY,
            max_samples_per_slice: MAX_SAMPLES,
            ..SessionConfig::to(address, connections, sent.requests)
        };
        let name = runner.process.name().to_owned();
        let pace = match Pace::of(scenario, sent.times, seed) {
            Ok(pace) => pace,
            Err(source) => return Err(Box::new((runner, LoadError::Rate { contender: name, source }))),
        };
        if let Err(source) = runner.process.thaw() {
            return Err(Box::new((runner, LoadError::Freeze { contender: name, source })));
        }
        let opened = generator.open(config);
        if let Err(source) = runner.process.freeze() {
            return Err(Box::new((runner, LoadError::Freeze { contender: name, source })));
        }
        match opened {
            Ok(session) => Ok(Self {
                runner,
                session,
                pace,
                settle: Duration::from_nanos(plan.method.settle_ns),
                flat_out: true,
            }),
            Err(source) => Err(Box::new((runner, LoadError::Open { contender: name, source }))),
        }
    }

    /// Thaws the contender, loads it for `length` from `start` of the requests, and freezes it. Slices with the same `start` have the same
    /// arrivals.
    ///
    /// # Errors
    /// When the slice fails as a whole, or the contender cannot be frozen or thawed.
    pub(crate) fn slice(&mut self, length: Duration, start: SliceStart) -> Result<Tally, LoadError> {
        let (pacer, position) = (self.pace.pacer(start), self.pace.position(start));
        self.slice_of(pacer, length, position)
    }

    /// Runs a slice at the given rate.
    ///
    /// # Errors
    /// As [`Self::slice`].
    pub(crate) fn trial(
        &mut self,
        rate_per_s: f64,
        length: Duration,
        start: u64,
    ) -> Result<Tally, LoadError> {
        let connections = self.pace.shape.connections();
        let shape = Experiment::Open { connections, rate_per_s, poisson: true };
        let pace = Pace { shape, stages: None, recorded: None, seed: self.pace.seed };
        self.slice_of(pace.pacer(SliceStart::Position(start)), length, start)
    }

    fn slice_of(
        &mut self,
        pacer: Result<Pacer, RateError>,
        length: Duration,
        start: u64,
    ) -> Result<Tally, LoadError> {
        let name = || self.runner.process.name().to_owned();
        let pacer = pacer.map_err(|source| LoadError::Rate { contender: name(), source })?;
        let order = SliceOrder { pacer, limit: Limit::duration(length), settle: self.settle, start };
        self.runner.process.thaw().map_err(|source| LoadError::Freeze { contender: name(), source })?;
        let tally = self.session.slice(&order);
        self.runner.process.freeze().map_err(|source| LoadError::Freeze { contender: name(), source })?;
        tally.map_err(|source| LoadError::Slice { contender: name(), source })
    }

    /// Makes later stretches keep to the scenario's rate, if it has one. Returns whether that changes anything.
    pub(crate) fn keep_to_rate(&mut self) -> bool {
        let changes = self.flat_out && self.pace.shape.rate_per_s().is_some();
        self.flat_out &= !changes;
        changes
    }

    /// Adds this much work of the generator to each request, from the next slice on.
    ///
    /// # Errors
    /// When the generator has failed.
    pub(crate) fn set_handicap(&self, handicap: Duration) -> Result<(), LoadError> {
        let contender = || self.runner.process.name().to_owned();
        let set = self.session.set_handicap(handicap);
        set.map_err(|source| LoadError::Slice { contender: contender(), source })
    }

    /// Loads the contender slice by slice from position `from` of the requests, without freezing in between, until `enough` returns true
    /// or the contender has died. The load runs at full speed, whatever the scenario's rate is: that warms the contender up soonest, and
    /// its rate shows whether it is warm. After [`Self::keep_to_rate`] the load runs at the scenario's rate.
    ///
    /// # Errors
    /// As [`Self::slice`].
    pub(crate) fn stretch(
        &mut self,
        slice: Duration,
        from: u64,
        enough: impl FnMut(&LoadTotals, &Tally) -> bool,
    ) -> Result<LoadTotals, LoadError> {
        self.go_on(LoadTotals::default(), slice, from, enough)
    }

    /// Continues a stretch that began at `from` and gave `sum`. Returns the sum of both.
    ///
    /// # Errors
    /// As [`Self::slice`].
    pub(crate) fn go_on(
        &mut self,
        mut sum: LoadTotals,
        slice: Duration,
        from: u64,
        mut enough: impl FnMut(&LoadTotals, &Tally) -> bool,
    ) -> Result<LoadTotals, LoadError> {
        let name = || self.runner.process.name().to_owned();
        self.runner.process.thaw().map_err(|source| LoadError::Freeze { contender: name(), source })?;
        loop {
            let (limit, start) = (Limit::duration(slice), from + sum.outcomes.total());
            let paced = || self.pace.pacer(SliceStart::Position(start));
            let pacer = if self.flat_out { Ok(Pacer::Closed) } else { paced() };
            let pacer = pacer.map_err(|source| LoadError::Rate { contender: name(), source })?;
            let order = SliceOrder { pacer, limit, settle: Duration::ZERO, start };
            let tally = self
                .session
                .slice(&order)
                .map_err(|source| LoadError::Slice { contender: name(), source })?;
            let last = tally.clone();
            sum.add(tally);
            if enough(&sum, &last) || self.runner.process.exited().is_some() {
                break;
            }
        }
        self.runner.process.freeze().map_err(|source| LoadError::Freeze { contender: name(), source })?;
        Ok(sum)
    }
}

/// What is sent to a contender.
pub(crate) struct Sent {
    /// The requests and their order.
    pub requests: Arc<Requests>,
    /// When the requests of the order were recorded, if the scenario keeps to that.
    pub times: Option<Arc<RecordedTimes>>,
}

/// Where in the requests a slice begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SliceStart {
    /// At this position of their order.
    Position(u64),
    /// At this recorded time, in nanoseconds after the first request. Without recorded times: at position 0.
    Time(u64),
}

/// When requests are due.
struct Pace {
    shape: Experiment,
    /// For an open load: its rate over the time of a slice.
    stages: Option<Rate>,
    /// For an open load with the recorded timing: the times, and how many times as fast requests are due.
    recorded: Option<(Arc<RecordedTimes>, f64)>,
    seed: u64,
}

impl Pace {
    /// # Errors
    /// The scenario's rate is invalid.
    fn of(scenario: &ScenarioPlan, times: Option<Arc<RecordedTimes>>, seed: u64) -> Result<Self, RateError> {
        let stages = scenario.traffic.stages.as_deref().map(str::parse::<Rate>).transpose()?;
        let recorded = times.zip(scenario.traffic.speed());
        let pace = Self { shape: scenario.shape.clone(), stages, recorded, seed };
        pace.pacer(SliceStart::Position(0))?;
        Ok(pace)
    }

    /// When the requests of a slice are due. Each slice has its own random arrivals. All contenders of a round have the same ones, because
    /// their slices share the epoch's seed and `start`.
    fn pacer(&self, start: SliceStart) -> Result<Pacer, RateError> {
        let Experiment::Open { rate_per_s, poisson, .. } = self.shape else { return Ok(Pacer::Closed) };
        if let Some((times, speed)) = &self.recorded {
            let from_ns = match start {
                SliceStart::Position(position) => times.at_ns(position),
                SliceStart::Time(ns) => ns,
            };
            return Ok(Pacer::Recorded { times: times.clone(), from_ns, speed: *speed });
        }
        let seed = derive_seed(self.seed, usize::try_from(self.position(start)).unwrap_or(usize::MAX), 0);
        let arrivals = if poisson { Arrivals::Poisson { seed } } else { Arrivals::Constant };
        let rate = match &self.stages {
            Some(stages) => stages.clone(),
            None => Rate::constant(rate_per_s)?,
        };
        Ok(Pacer::Open { rate, arrivals })
    }

    /// The position of a slice's first request.
    fn position(&self, start: SliceStart) -> u64 {
        match (start, &self.recorded) {
            (SliceStart::Position(position), _) => position,
            (SliceStart::Time(ns), Some((times, _))) => times.position_at(ns),
            (SliceStart::Time(_), None) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slice_has_arrivals_of_its_own_and_all_contenders_of_a_round_the_same() {
        let shape = Experiment::Open { connections: 4, rate_per_s: 1_000.0, poisson: true };
        let pacer = |shape: &Experiment, stages: Option<&Rate>, seed, start| {
            let pace = Pace { shape: shape.clone(), stages: stages.cloned(), recorded: None, seed };
            pace.pacer(SliceStart::Position(start))
        };
        let first =
            |seed, start| pacer(&shape, None, seed, start).unwrap().due_times().unwrap().next().unwrap();
        assert_eq!(first(7, 1_000), first(7, 1_000));
        let all = [first(7, 1_000), first(7, 2_000), first(8, 1_000)];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "{all:?}");
        let even = Experiment::Open { connections: 4, rate_per_s: 1_000.0, poisson: false };
        assert_eq!(pacer(&even, None, 7, 1_000), pacer(&even, None, 8, 2_000));
        let stages: Rate = "10:1s,1000:1s,10:1s".parse().unwrap();
        let due = pacer(&even, Some(&stages), 7, 0).unwrap().due_times().unwrap();
        let within = |from_ns, to_ns| due.clone().filter(move |ns| (from_ns..to_ns).contains(ns));
        let until = due.clone().take_while(|ns| *ns < 3_000_000_000).count();
        assert_eq!(until, 1_020, "each slice has the whole of it");
        assert_eq!(within(1_000_000_000, 2_000_000_000).take(1_000).count(), 1_000);
    }

    #[test]
    fn slices_of_recorded_traffic_begin_where_the_time_says() {
        let times = Arc::new(RecordedTimes::new(vec![0, 1_000, 4_000, 9_000]).unwrap());
        let shape = Experiment::Open { connections: 4, rate_per_s: 1.0, poisson: false };
        let pace = Pace { shape, stages: None, recorded: Some((times, 2.0)), seed: 7 };
        let due = |start| -> Vec<u64> { pace.pacer(start).unwrap().due_times().unwrap().take(3).collect() };
        // A request of the recorded time 4,000 is due 1,500 after a slice that begins at 1,000.
        assert_eq!(due(SliceStart::Time(1_000)), [0, 1_500, 4_000]);
        assert_eq!(due(SliceStart::Time(3_000)), [500, 3_000, 4_500]);
        assert_eq!(due(SliceStart::Position(2)), [0, 2_500, 4_000]);
        let positions = [0, 1, 3_000, 9_001].map(|ns| pace.position(SliceStart::Time(ns)));
        assert_eq!(positions, [0, 1, 2, 4]);
    }
}
