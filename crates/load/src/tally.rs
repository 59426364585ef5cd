//! Owns: the results of a slice, and how those of several workers are combined. Must not know how they were measured.

use crate::backlog::Behind;
use crate::outcome::{Outcome, Outcomes, StatusCounts};
use crate::protocol::http1::Wrong;
use crate::rate::RatePiece;
use crate::request::Expectation;
use crate::times::Times;

/// How many [`Mismatch`]es a tally keeps; `outcomes` counts all of them.
pub const MAX_MISMATCHES: usize = 8;

/// How many different [`Fault`]s a tally keeps; `outcomes` counts all of them.
pub const MAX_FAULTS: usize = 16;

/// How much of a mismatching body is kept, in bytes.
pub const MAX_MISMATCH_BODY: usize = 1024;

/// How much of a sampled body is kept, in bytes.
pub const MAX_SAMPLE_BODY: usize = 16 << 20;

/// The results of a slice. `due` equals the sum of `outcomes`.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Tally {
    /// Requests that were due: taken up by a connection, or (open pacers) past their due time.
    pub due: u64,
    /// Complete answers, right or wrong (ok + status + mismatch), including those of the drain.
    pub completions: u64,
    /// Complete answers at or before the deadline; without a deadline, all of them.
    pub in_time: u64,
    /// From the slice's start to its deadline, or to the last settled request if that is earlier; the maximum over the
    /// workers.
    pub loading_ns: u64,
    /// Open pacers: by how much the server fell behind the requests that were due.
    pub behind: Option<Behind>,
    /// What each worker contributes to the rate of a closed load, in order of workers.
    pub rates: Vec<RatePiece>,
    /// From the slice's start until the last request was settled, drain included; the maximum over the workers.
    pub elapsed_ns: u64,
    /// done - intended, for complete answers to requests intended after the settling time.
    pub latency: Times,
    /// done - sent, for the same requests.
    pub service: Times,
    /// sent - intended, for the same requests. It includes the wait for a free connection.
    pub send_lag: Times,
    /// How long the same requests waited because no connection was free; 0 for most. Closed pacers have no such wait.
    pub wait: Times,
    /// taken up - intended - wait, for the same requests: the part of the send lag that the generator causes.
    pub own_lag: Times,
    /// Requests that waited because no connection was free, whatever their outcome.
    pub waited: u64,
    /// How the requests ended.
    pub outcomes: Outcomes,
    /// Status codes of complete answers.
    pub status: StatusCounts,
    /// Bytes received, of any kind.
    pub bytes_read: u64,
    /// Bytes that the operating system accepted for sending, repeated requests included.
    pub bytes_written: u64,
    /// Connections that were opened again, before the slice or during it.
    pub reconnects: u64,
    /// Connections that the server closed properly: announced in an answer, or while it owed no answer.
    pub closed_by_server: u64,
    /// Connections that the generator closed because bytes came that answered no request.
    pub unsolicited: u64,
    /// Requests sent a second time. This happens when the server closes a used connection before any byte of an answer,
    /// possibly before it read the request, and only for methods that may be repeated.
    pub retried: u64,
    /// Largest number of connections open at the same time during the slice, for each worker, added up.
    pub connections: usize,
    /// Failed attempts to open a connection that had no request waiting on it: each reason with its count, at most
    /// [`MAX_FAULTS`] reasons. Failed attempts with a request are in `faults`.
    pub unopened: Vec<Fault>,
    /// Number of requests in flight, integrated over time in nanoseconds. It includes the time from intended to taken
    /// up. It omits requests that ended without a complete answer or were intended before the settling time. By
    /// Little's law it equals the sum of all latencies.
    pub in_flight_ns: u64,
    /// CPU time of the workers during the slice, added up, `spin_ns` included.
    pub cpu_ns: u64,
    /// How long the workers were awake with nothing to do, waiting for the next due time or answer, added up. It is
    /// wall time and so includes time during which another program had the CPU. It can therefore be too high, but it is
    /// never more than the worker's `cpu_ns` in the slice.
    pub spin_ns: u64,
    /// How long the workers were runnable but waited for a CPU, added up; `None` where the kernel does not report it.
    pub run_delay_ns: Option<u64>,
    /// How often the workers were scheduled on a CPU, added up: the largest possible number of waits for a CPU. `None`
    /// where the kernel does not report it.
    pub runs: Option<u64>,
    /// Wall time of the workers during the slice, added up: cpu_ns / wall_ns is the share of a core in use.
    pub wall_ns: u64,
    /// Whether a slice without a duration gave up because answers stopped coming.
    pub gave_up: bool,
    /// Bodies kept for comparison.
    pub samples: Vec<Sample>,
    /// The first [`MAX_MISMATCHES`] answers with the wrong status or body.
    pub mismatches: Vec<Mismatch>,
    /// Why requests ended without a complete answer: each reason with its count, at most [`MAX_FAULTS`] reasons.
    pub faults: Vec<Fault>,
}

/// A reason why requests ended without a complete answer, or why connections were not opened.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fault {
    /// How the requests ended; [`Outcome::Connect`] for connections.
    pub outcome: Outcome,
    /// Why.
    pub cause: Cause,
    /// Number of times.
    pub count: u64,
}

/// Why a request ended without a complete answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Cause {
    /// An error of the operating system, as its number.
    System(i32),
    /// The bytes received are not an HTTP/1.1 answer.
    Answer(Wrong),
    /// The server closed the connection before the answer was complete.
    Closed,
    /// A timeout.
    Time,
    /// TLS failed; with the failure as text.
    Tls(String),
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cause::System(number) => write!(f, "{}", std::io::Error::from_raw_os_error(*number)),
            Cause::Answer(wrong) => write!(f, "{wrong}"),
            Cause::Closed => f.write_str("the server closed the connection before the answer was complete"),
            Cause::Time => f.write_str("time was up"),
            Cause::Tls(text) => f.write_str(text),
        }
    }
}

/// A complete answer, kept for comparison.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sample {
    /// Index into the prepared requests.
    pub request: u32,
    /// Status code.
    pub status: u16,
    /// The first bytes of the decoded body, at most [`MAX_SAMPLE_BODY`].
    pub body: Vec<u8>,
    /// Whether the body is longer than the bytes kept.
    pub truncated: bool,
}

/// An answer that did not meet its expectation.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Mismatch {
    /// Index into the prepared requests.
    pub request: u32,
    /// What was expected.
    pub expected: Expectation,
    /// The status received.
    pub status: u16,
    /// Length of the decoded body received, in bytes.
    pub length: u64,
    /// Digest of that body, if the expectation required computing it.
    pub digest: Option<u64>,
    /// The last piece of the body as received, usually all of it; at most [`MAX_MISMATCH_BODY`] bytes.
    pub body: Vec<u8>,
}

impl Tally {
    /// Answers per second.
    ///
    /// Closed: the sum over the workers of counted / (last - first). Open: the answers divided by the loading time,
    /// reduced by the share by which the server fell behind. (For an open load the time from first to last answer can
    /// be close to zero when only a few requests are due by chance.)
    ///
    /// Every complete answer counts, also one with the wrong status or body, because the server did the work. The
    /// reader of `outcomes` must decide whether a slice with such answers is valid. `None` if no answer counts.
    pub fn rate_per_s(&self) -> Option<f64> {
        if let Some(behind) = self.behind {
            let per_s = self.completions as f64 * 1e9 / self.loading_ns as f64;
            let rate = per_s * (1.0 - behind.share().unwrap_or(0.0));
            return (self.completions > 0 && self.loading_ns > 0).then_some(rate);
        }
        self.rates.iter().filter_map(RatePiece::rate_per_s).reduce(|sum, rate| sum + rate)
    }

    /// Answers per second as load generators usually report it: answers in time divided by the loading time. Requests
    /// still in flight at the end neither count nor extend the time. `None` if there was no answer in time.
    pub fn throughput_per_s(&self) -> Option<f64> {
        (self.in_time > 0 && self.loading_ns > 0).then(|| self.in_time as f64 * 1e9 / self.loading_ns as f64)
    }

    /// Open pacers: the share of the due requests that the server kept up with, 0 to 1: the share answered at all,
    /// reduced by the share by which the server fell behind. `None` for closed pacers and when no request was due.
    pub fn achieved_share(&self) -> Option<f64> {
        let behind = self.behind?.share().unwrap_or(0.0);
        (self.due > 0).then(|| self.completions as f64 / self.due as f64 * (1.0 - behind))
    }

    /// Complete answers on which the rate of a closed load is based.
    pub fn counted(&self) -> u64 {
        self.rates.iter().map(|piece| piece.counted).sum()
    }

    /// Share of its cores that the generator needed, 0 to 1: CPU time without `spin_ns`, divided by wall time. `None`
    /// for an empty tally.
    pub fn cpu_share(&self) -> Option<f64> {
        (self.wall_ns > 0).then(|| self.cpu_ns.saturating_sub(self.spin_ns) as f64 / self.wall_ns as f64)
    }

    /// Both sides of Little's law: (mean number of requests in flight, throughput times mean latency), both per loading
    /// time and both of all answered requests, those answered after it included. `None` if there was no answer.
    pub fn littles_law(&self) -> Option<(f64, f64)> {
        let latencies_ns = self.latency.mean_ns()? * self.latency.count() as f64;
        let over_time = |ns: f64| ns / self.loading_ns.max(1) as f64;
        Some((over_time(self.in_flight_ns as f64), over_time(latencies_ns)))
    }

    /// Counts a request that ended without a complete answer.
    pub(crate) fn fault(&mut self, outcome: Outcome, cause: Cause, count: u64) {
        count_fault(&mut self.faults, Fault { outcome, cause, count });
    }

    /// Counts a failed attempt to open a connection that had no request waiting on it.
    pub(crate) fn not_opened(&mut self, cause: Cause) {
        count_fault(&mut self.unopened, Fault { outcome: Outcome::Connect, cause, count: 1 });
    }

    /// Adds the tally of another worker in the same slice. The rates of both are kept separately.
    pub fn merge(&mut self, other: Tally) {
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.loading_ns = self.loading_ns.max(other.loading_ns);
        self.rates.extend_from_slice(&other.rates);
        self.connections += other.connections;
        self.merge_counts(other);
    }

    /// An empty tally whose distributions have their memory already.
    pub(crate) fn ready() -> Tally {
        let [latency, service, send_lag, wait, own_lag] = std::array::from_fn(|_| Times::new());
        Tally { latency, service, send_lag, wait, own_lag, ..Tally::default() }
    }

    /// Adds a later slice of the same session. Counts and spans of each worker add up, so that the rate is the mean
    /// over both slices, weighted by time.
    pub fn append(&mut self, later: Tally) {
        self.elapsed_ns += later.elapsed_ns;
        self.loading_ns += later.loading_ns;
        self.rates.resize(self.rates.len().max(later.rates.len()), RatePiece::default());
        self.rates.iter_mut().zip(&later.rates).for_each(|(mine, theirs)| mine.append(theirs));
        self.connections = self.connections.max(later.connections);
        self.merge_counts(later);
    }

    fn merge_counts(&mut self, other: Tally) {
        self.due += other.due;
        self.completions += other.completions;
        self.in_time += other.in_time;
        self.behind = match (self.behind.take(), other.behind) {
            (Some(mut mine), Some(theirs)) => {
                mine.add(&theirs);
                Some(mine)
            }
            (mine, theirs) => mine.or(theirs),
        };
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.send_lag.merge(&other.send_lag);
        self.wait.merge(&other.wait);
        self.own_lag.merge(&other.own_lag);
        self.waited += other.waited;
        self.in_flight_ns += other.in_flight_ns;
        self.outcomes.merge(&other.outcomes);
        self.status.merge(&other.status);
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.reconnects += other.reconnects;
        self.closed_by_server += other.closed_by_server;
        self.retried += other.retried;
        self.unsolicited += other.unsolicited;
        self.cpu_ns += other.cpu_ns;
        self.spin_ns += other.spin_ns;
        let both = |mine: Option<u64>, theirs: Option<u64>| Some(mine? + theirs?);
        self.run_delay_ns = both(self.run_delay_ns, other.run_delay_ns);
        self.runs = both(self.runs, other.runs);
        self.wall_ns += other.wall_ns;
        self.gave_up |= other.gave_up;
        self.samples.extend(other.samples);
        self.mismatches.extend(other.mismatches);
        self.mismatches.truncate(MAX_MISMATCHES);
        other.faults.into_iter().for_each(|fault| count_fault(&mut self.faults, fault));
        other.unopened.into_iter().for_each(|fault| count_fault(&mut self.unopened, fault));
    }
}

fn count_fault(faults: &mut Vec<Fault>, new: Fault) {
    let alike = |fault: &&mut Fault| fault.outcome == new.outcome && fault.cause == new.cause;
    if let Some(fault) = faults.iter_mut().find(alike) {
        fault.count += new.count;
    } else if faults.len() < MAX_FAULTS {
        faults.push(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn worker(counted: u64, first_ns: u64, last_ns: u64) -> Tally {
        let mut tally = Tally { due: counted, completions: counted, elapsed_ns: last_ns, ..Tally::default() };
        tally.rates.push(RatePiece { counted, first_ns, last_ns });
        tally.outcomes.add(Outcome::Ok, counted);
        (0..counted).for_each(|_| tally.latency.record(1_000_000));
        tally
    }

    #[test]
    fn workers_stand_side_by_side() {
        let mut tally = worker(100, 0, 1_000_000_000);
        tally.merge(worker(100, 500_000_000, 1_000_000_000));
        tally.merge(worker(0, 0, 0));
        assert_eq!(tally.rate_per_s(), Some(300.0));
        assert_eq!((tally.counted(), tally.completions, tally.due), (200, 200, 200));
        assert_eq!(
            (tally.elapsed_ns, tally.outcomes.total(), tally.latency.count()),
            (1_000_000_000, 200, 200)
        );
    }

    #[test]
    fn slices_follow_each_other() {
        let mut tally = worker(100, 0, 1_000_000_000);
        tally.append(worker(500, 0, 1_000_000_000));
        assert_eq!(tally.rate_per_s(), Some(300.0));
        assert_eq!((tally.elapsed_ns, tally.rates.len()), (2_000_000_000, 1));
    }

    #[test]
    fn at_a_rate_of_its_own_the_time_of_loading_counts_not_the_span_of_the_answers() {
        let open = |requests| Tally {
            loading_ns: 100_000_000,
            behind: Some(Behind { requests, of: 4.0 }),
            ..worker(2, 40_000_000, 41_000_000)
        };
        assert_eq!(open(0.0).rate_per_s(), Some(20.0));
        assert_eq!(open(1.0).rate_per_s(), Some(15.0));
        assert_eq!(Tally { completions: 0, ..open(0.0) }.rate_per_s(), None);
    }

    #[test]
    fn nothing_gives_no_rate() {
        assert_eq!(Tally::default().rate_per_s(), None);
        assert_eq!(Tally::default().cpu_share(), None);
    }
}
