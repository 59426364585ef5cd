//! Owns: what a slice yields, and how the shares of its workers are put together. Must not know how it was measured.

use crate::backlog::Behind;
use crate::outcome::{Outcome, Outcomes, StatusCounts};
use crate::protocol::http1::Wrong;
use crate::rate::RatePiece;
use crate::request::Expectation;
use crate::times::Times;

/// How many [`Mismatch`]es a tally keeps; the count is in the outcomes.
pub const MAX_MISMATCHES: usize = 8;

/// How many [`Fault`]s a tally tells apart; what is beyond is in the outcomes alone.
pub const MAX_FAULTS: usize = 16;

/// How much of a mismatching body is kept, in bytes.
pub const MAX_MISMATCH_BODY: usize = 1024;

/// How much of a sampled body is kept, in bytes.
pub const MAX_SAMPLE_BODY: usize = 16 << 20;

/// What a slice yielded. `due` equals the sum of `outcomes`.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Requests that were due: taken up by a connection, or (open pacers) whose due time came.
    pub due: u64,
    /// Complete answers, right or wrong (ok + status + mismatch), those of the drain included.
    pub completions: u64,
    /// Complete answers at or before the deadline; all, where there is none.
    pub in_time: u64,
    /// From the slice's start to its deadline, or to the last request settled if that came first; the longest of the workers.
    pub loading_ns: u64,
    /// Open pacers: by how much the server fell behind with what was due.
    pub behind: Option<Behind>,
    /// What each worker contributes to the rate of a closed load, in order of workers.
    pub rates: Vec<RatePiece>,
    /// From the slice's start until the last request was settled, drain included; the longest of the workers.
    pub elapsed_ns: u64,
    /// done - intended, of complete answers to requests intended after the settling time.
    pub latency: Times,
    /// done - sent, of the same.
    pub service: Times,
    /// sent - intended, of the same. Where requests waited for a connection, the wait is part of it.
    pub send_lag: Times,
    /// How long they waited because no connection was free; 0 for most. Closed pacers know no such wait.
    pub wait: Times,
    /// taken up - intended - wait, of the same: the part of the send lag that is the generator's own.
    pub own_lag: Times,
    /// Requests that waited because no connection was free, whatever came of them.
    pub waited: u64,
    /// How the requests ended.
    pub outcomes: Outcomes,
    /// Status codes of complete answers.
    pub status: StatusCounts,
    /// Bytes that came in, of whatever kind.
    pub bytes_read: u64,
    /// Bytes that the operating system took for sending, repeated requests included.
    pub bytes_written: u64,
    /// Connections that were opened anew, in preparation of the slice or while it ran.
    pub reconnects: u64,
    /// Connections that the server closed without fault: announced in an answer, or while none was owed.
    pub closed_by_server: u64,
    /// Connections closed by us, because bytes came on them that no request had asked for.
    pub unsolicited: u64,
    /// Requests sent a second time, because the server closed a used connection before any byte of an answer, and may have
    /// done so before it read the request; only methods that may be repeated.
    pub retried: u64,
    /// Connections that were open at the same time: the most at any time of the slice, of each worker, added up.
    pub connections: usize,
    /// Attempts to open a connection that failed while no request stood on it, each reason with its count; at most
    /// [`MAX_FAULTS`] of them. Where a request did, it is among the `faults`.
    pub unopened: Vec<Fault>,
    /// Requests in flight, integrated over time: their number times nanoseconds, those left out that ended without a
    /// complete answer or were intended before the settling time, and with the time from intended to taken up. By Little's
    /// law it is the sum of all latencies.
    pub in_flight_ns: u64,
    /// As `in_flight_ns`, over `loading_ns` only and with those that were intended before the settling time.
    pub loading_in_flight_ns: u64,
    /// CPU time of the workers while the slice ran, added up, `spin_ns` included.
    pub cpu_ns: u64,
    /// How long the workers looked out for the next due time or answer, awake and without anything to do, added up. It is read from
    /// the clock, which goes on while another program has the CPU: where that happened it says too much, but never more than the
    /// worker's `cpu_ns` in the slice.
    pub spin_ns: u64,
    /// How long the workers waited for a CPU while they could have run, added up; `None` where the kernel does not say.
    pub run_delay_ns: Option<u64>,
    /// How often the workers came to run on a CPU, added up: so often they may have waited for it; `None` where the kernel
    /// does not say.
    pub runs: Option<u64>,
    /// Wall time of the workers while the slice ran, added up: cpu_ns / wall_ns is the share of a core in use.
    pub wall_ns: u64,
    /// Whether a slice without a duration was given up because no answer came any more.
    pub gave_up: bool,
    /// Bodies kept for comparison.
    pub samples: Vec<Sample>,
    /// The first [`MAX_MISMATCHES`] answers with the wrong status or body.
    pub mismatches: Vec<Mismatch>,
    /// Why requests ended without a complete answer, each reason with its count; at most [`MAX_FAULTS`] of them.
    pub faults: Vec<Fault>,
}

/// A reason for which requests ended without a complete answer, or connections were not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// How they ended; [`Outcome::Connect`] for connections.
    pub outcome: Outcome,
    /// Why.
    pub cause: Cause,
    /// How many.
    pub count: u64,
}

/// Why a request ended without a complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// What the operating system said, as its error number.
    System(i32),
    /// What came is not an HTTP/1.1 answer.
    Answer(Wrong),
    /// The server closed the connection before the answer was complete.
    Closed,
    /// Time was up.
    Time,
    /// TLS failed; what it said.
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

/// An answer kept whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Index into the prepared requests.
    pub request: u32,
    /// Status code.
    pub status: u16,
    /// Decoded body, at most [`MAX_SAMPLE_BODY`] bytes of it.
    pub body: Vec<u8>,
    /// Whether the body was longer than what is kept.
    pub truncated: bool,
}

/// An answer that did not meet its expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Index into the prepared requests.
    pub request: u32,
    /// What was expected.
    pub expected: Expectation,
    /// The status that came.
    pub status: u16,
    /// Bytes of the decoded body that came.
    pub length: u64,
    /// Digest of that body, if the expectation made it known.
    pub digest: Option<u64>,
    /// The last piece of the body as it came, which is mostly all of it; at most [`MAX_MISMATCH_BODY`] bytes.
    pub body: Vec<u8>,
}

impl Tally {
    /// Answers per second: closed, the sum over workers of counted / (last - first); open, the answers over the time of
    /// loading, less the share by which the server fell behind: a few due by chance span next to no time. Every complete
    /// answer counts, also one with the wrong status or body, because the server did the work; whether a slice with such
    /// answers is valid is for the reader of `outcomes` to say. `None` if nothing was counted.
    pub fn rate_per_s(&self) -> Option<f64> {
        if let Some(behind) = self.behind {
            let per_s = self.completions as f64 * 1e9 / self.loading_ns as f64;
            let rate = per_s * (1.0 - behind.share().unwrap_or(0.0));
            return (self.completions > 0 && self.loading_ns > 0).then_some(rate);
        }
        self.rates.iter().filter_map(RatePiece::rate_per_s).reduce(|sum, rate| sum + rate)
    }

    /// Answers per second as loads state it: those in time over the time of loading. What is still in flight at the end is
    /// neither counted nor waited for. `None` if nothing was answered in time.
    pub fn throughput_per_s(&self) -> Option<f64> {
        (self.in_time > 0 && self.loading_ns > 0).then(|| self.in_time as f64 * 1e9 / self.loading_ns as f64)
    }

    /// Open pacers: the share of what was due that the server kept up with, 0 to 1: those that were answered at all,
    /// less the share by which it fell behind. `None` for closed pacers and where nothing was due.
    pub fn achieved_share(&self) -> Option<f64> {
        let behind = self.behind?.share().unwrap_or(0.0);
        (self.due > 0).then(|| self.completions as f64 / self.due as f64 * (1.0 - behind))
    }

    /// Complete answers that the rate of a closed load is made from.
    pub fn counted(&self) -> u64 {
        self.rates.iter().map(|piece| piece.counted).sum()
    }

    /// Share of its cores that the generator needed, 0 to 1: CPU time without the time spent only looking
    /// out; `None` for an empty tally.
    pub fn cpu_share(&self) -> Option<f64> {
        (self.wall_ns > 0).then(|| self.cpu_ns.saturating_sub(self.spin_ns) as f64 / self.wall_ns as f64)
    }

    /// Little's law, which every run obeys: (mean number of requests in flight as counted over the time of loading,
    /// [`Tally::throughput_per_s`] times mean latency). Requests in flight at the end are on the first side only. `None` if
    /// nothing was answered, or where times were left out for settling, so that the two are of different requests.
    pub fn littles_law(&self) -> Option<(f64, f64)> {
        let whole = self.latency.count() == self.completions;
        let product = self.throughput_per_s()? * self.latency.mean_ns()? / 1e9;
        whole.then(|| (self.loading_in_flight_ns as f64 / self.loading_ns as f64, product))
    }

    /// Counts a request that ended without a complete answer.
    pub(crate) fn fault(&mut self, outcome: Outcome, cause: Cause, count: u64) {
        count_fault(&mut self.faults, Fault { outcome, cause, count });
    }

    /// Counts an attempt to connect that failed while no request stood on the connection.
    pub(crate) fn not_opened(&mut self, cause: Cause) {
        count_fault(&mut self.unopened, Fault { outcome: Outcome::Connect, cause, count: 1 });
    }

    /// Takes in the share of another worker in the same slice: its rate stands beside the others.
    pub fn merge(&mut self, other: Tally) {
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.loading_ns = self.loading_ns.max(other.loading_ns);
        self.rates.extend_from_slice(&other.rates);
        self.connections += other.connections;
        self.merge_counts(other);
    }

    /// Takes in a later slice of the same session: counts and spans of each worker add up, so that the rate is the
    /// mean over both, weighted by time.
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
        self.loading_in_flight_ns += other.loading_in_flight_ns;
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
