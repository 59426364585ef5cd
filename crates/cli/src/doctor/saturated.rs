//! Measures built-in servers at full load, in this process: the generator's ceiling, the cost of an answer, and whether a plant has the intended
//! size.
//!
//! Owns: these measurements. Must not know: races.

use std::time::Duration;

use deadheat_host::affinity;
use deadheat_load::{
    Address, Backend, BodyRule, Expectation, LoadSession, NullConfig, NullServer, Prepared, Requests,
    Session, SessionConfig, SliceOrder, Spin, StatusRule, Tally, request_bytes, step_ns,
};
use deadheat_record::{DoctorCeiling, DoctorLink, Pinning, Plant};
use deadheat_runner::LoadGenerator as _;
use deadheat_runner::ceiling::{LARGE_BODY, link_session};
use deadheat_stats::Sample;

use crate::elsewhere::Elsewhere;
use crate::load::{MEASURED, WARMUP};

/// The number of connections, the same as in a race. Each waits for its answer.
const CONNECTIONS: usize = 64;
/// The work for each answer of the built-in contender.
const WORK: Duration = Duration::from_micros(40);
/// The number of pairs of slices that check a plant, the fewest in tests, and the length of a slice.
const PAIRS: u32 = 20;
const FEWEST_PAIRS: u32 = 4;
const SLICE: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(10);

/// A built-in server with connections to it.
struct Loaded {
    session: Session,
    // Stops when this struct is dropped, after its connections.
    _server: NullServer,
    backend: Backend,
    threads: usize,
}

impl Loaded {
    fn start(pinning: &Pinning, spin: Spin, backend: Backend, measured: Duration) -> std::io::Result<Self> {
        let server = NullServer::start(NullConfig { spin, backend, ..null(pinning) });
        let server = server.map_err(std::io::Error::other)?;
        let mut session = Session::open(session(&server, pinning)?).map_err(std::io::Error::other)?;
        slice(&mut session, WARMUP.min(measured))?;
        let backend = server.backend();
        Ok(Self { session, _server: server, backend, threads: pinning.server_cpus.len().max(1) })
    }

    /// The CPU time of an answer on its core, in nanoseconds. None if no answer came, usually because other programs had the cores all the time.
    fn cost_ns(&mut self, duration: Duration) -> std::io::Result<Option<f64>> {
        let rate = slice(&mut self.session, duration)?.rate_per_s();
        Ok(rate.map(|rate| self.threads as f64 * 1e9 / rate))
    }
}

/// A server on the servers' cores that does nothing.
fn null(pinning: &Pinning) -> NullConfig {
    NullConfig {
        threads: pinning.server_cpus.len().max(1),
        cpus: pinning.server_cpus.clone(),
        ..NullConfig::default()
    }
}

/// The connections to such a server.
fn session(server: &NullServer, pinning: &Pinning) -> std::io::Result<SessionConfig> {
    let bytes = request_bytes("GET", "/", "127.0.0.1", &[], b"").map_err(std::io::Error::other)?;
    let expect = Expectation { status: StatusRule::Exact(200), body: BodyRule::Any };
    let request = Prepared { bytes, head: false, expect };
    Ok(SessionConfig {
        threads: pinning.load_cpus.len().max(1),
        cpus: pinning.load_cpus.clone(),
        spin: !pinning.load_cpus.is_empty(),
        connect_timeout: TIMEOUT,
        timeout: TIMEOUT,
        ..SessionConfig::to(server.address().clone(), CONNECTIONS, Requests::one(request))
    })
}

fn slice(session: &mut dyn LoadSession, duration: Duration) -> std::io::Result<Tally> {
    session.slice(&SliceOrder::closed(duration)).map_err(std::io::Error::other)
}

/// Loads a server that does nothing. Returns the generator's rate, on its cores, and whether io_uring is available. `measured` is the length of
/// the measurement.
///
/// # Errors
/// The server or the generator fails.
pub(crate) fn ceiling(pinning: &Pinning, measured: Duration) -> std::io::Result<(DoctorCeiling, bool)> {
    let mut loaded = Loaded::start(pinning, Spin::default(), Backend::Auto, measured)?;
    let tally = slice(&mut loaded.session, measured)?;
    let ceiling = reached(&tally, loaded.session.workers(), loaded.session.backend());
    Ok((ceiling, loaded.backend == Backend::Uring))
}

fn reached(tally: &Tally, threads: usize, backend: Backend) -> DoctorCeiling {
    let busy_ns = tally.cpu_ns.saturating_sub(tally.spin_ns);
    DoctorCeiling {
        throughput_rps: tally.rate_per_s().unwrap_or(0.0),
        connections: CONNECTIONS as u64,
        threads: threads as u64,
        backend: backend.name().into(),
        cpu_us_per_request: busy_ns as f64 / 1e3 / tally.completions.max(1) as f64,
        cpu_share: tally.cpu_share(),
    }
}

/// The rate of the load hosts against a server on this machine that does nothing, over the network between them; what that
/// network can do; and whether io_uring is available here. `measured` is the length of the rate's measurement.
///
/// # Errors
/// The server or a load host fails.
pub(crate) fn over_link(
    elsewhere: &Elsewhere,
    pinning: &Pinning,
    measured: Duration,
) -> std::io::Result<(DoctorCeiling, DoctorLink, bool)> {
    let start = |body_bytes| {
        let address = Address::Tcp((elsewhere.from().server_address, 0).into());
        NullServer::start(NullConfig { address, body_bytes, ..null(pinning) }).map_err(std::io::Error::other)
    };
    let server = start(NullConfig::default().body_bytes)?;
    let config = session(&server, pinning)?;
    let hosts = elsewhere.round_trips(&config)?;
    let mut opened = elsewhere.open(config.clone()).map_err(std::io::Error::other)?;
    slice(&mut *opened, WARMUP.min(measured))?;
    let tally = slice(&mut *opened, measured)?;
    let threads = config.threads * elsewhere.count();
    drop(opened);
    let large = start(LARGE_BODY)?;
    let config = link_session(large.address().clone(), pinning).map_err(std::io::Error::other)?;
    let bandwidth =
        elsewhere.bandwidth(&config).transpose().map_err(std::io::Error::other)?.unwrap_or_default();
    let io_uring = server.backend() == Backend::Uring;
    Ok((reached(&tally, threads, Backend::Auto), DoctorLink { hosts, bandwidth }, io_uring))
}

/// The calibration of the built-in contender: the steps of each answer, and the cost of such an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Calibration {
    /// CPU time of a step on the servers' cores, in nanoseconds.
    pub(crate) step_ns: f64,
    /// Steps of each answer.
    pub(crate) steps: u64,
    /// The total cost of an answer on its core, in nanoseconds.
    pub(crate) cost_ns: f64,
    /// How long that cost was measured.
    measured: Duration,
}

/// Calibrates on the servers' cores. `measured` is the length of the measurement of an answer's cost.
///
/// # Errors
/// The server or the generator fails.
pub(crate) fn calibrate(pinning: &Pinning, measured: Duration) -> std::io::Result<Calibration> {
    let cores = pinning.server_cpus.clone();
    // A separate thread, because it is pinned to the servers' cores and the current thread must not be.
    let step = std::thread::spawn(move || affinity::pin(&cores).map(|()| step_ns())).join();
    let step_ns = step.map_err(|_| std::io::Error::other("the length of a step could not be measured"))??;
    let steps = (WORK.as_nanos() as f64 / step_ns).round() as u64;
    let mut loaded = Loaded::start(pinning, Spin::steps(steps), Backend::Epoll, measured)?;
    let cost_ns = loaded.cost_ns(measured)?;
    Ok(Calibration { step_ns, steps, cost_ns: cost_ns.ok_or_else(no_answer)?, measured })
}

fn no_answer() -> std::io::Error {
    std::io::Error::other(
        "the built-in server gave no answer; do other programs use all of the servers' cores?",
    )
}

impl Calibration {
    /// A contender whose answers cost `share` more. Measures the actual cost by loading both servers alternately.
    ///
    /// # Errors
    /// The server or the generator fails.
    pub(crate) fn plant(&self, share: f64, pinning: &Pinning) -> std::io::Result<Plant> {
        let contender_steps = self.steps + (share * self.cost_ns / self.step_ns).round() as u64;
        let start = |steps| Loaded::start(pinning, Spin::steps(steps), Backend::Epoll, self.measured);
        let (mut baseline, mut contender) = (start(self.steps)?, start(contender_steps)?);
        let shortened = self.measured.as_secs_f64() / MEASURED.as_secs_f64();
        let pairs = ((f64::from(PAIRS) * shortened) as u32).max(FEWEST_PAIRS);
        let mut logs = Vec::new();
        for pair in 0..pairs {
            // The order alternates, so that a slowdown of the machine affects both.
            let (first, second) =
                if pair % 2 == 0 { (&mut baseline, &mut contender) } else { (&mut contender, &mut baseline) };
            let (one, other) = (first.cost_ns(SLICE)?, second.cost_ns(SLICE)?);
            let ratio =
                one.zip(other).map(|(one, other)| if pair % 2 == 0 { other / one } else { one / other });
            // A slice in which other programs had the cores says nothing.
            logs.extend(ratio.map(f64::ln));
        }
        if logs.len() < pairs as usize / 2 {
            return Err(no_answer());
        }
        let sample = Sample::of(&logs);
        Ok(Plant {
            cost_ns: self.cost_ns,
            step_ns: self.step_ns,
            baseline_steps: self.steps,
            contender_steps,
            checked_ratio: sample.map(|sample| sample.mean.exp()),
            checked_error: sample.and_then(|sample| sample.standard_error()),
        })
    }
}
