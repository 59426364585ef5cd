//! Owns: what one worker knows of the slice it runs: its times, what is still to be begun, and the worker's own tally.
//! Must not know sockets. Times are on the worker's clock.

use std::time::Duration;

use crate::connection::Connection;
use crate::connection::InFlight;
use crate::limit::Limit;
use crate::outcome::Outcome;
use crate::pacer::Pacer;
use crate::rate::RateWindow;
use crate::requests::Requests;
use crate::source::{Plan, Source};
use crate::tally::{MAX_MISMATCHES, Mismatch, Sample, Tally};

/// What a worker is told about a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerOrder {
    pub(crate) pacer: Pacer,
    pub(crate) limit: Limit,
    pub(crate) settle: Duration,
    pub(crate) first: u64,
    pub(crate) index: u64,
    pub(crate) workers: u64,
    pub(crate) max_samples: u32,
}

/// A slice on one worker.
pub(crate) struct Slice {
    start_ns: u64,
    settled_ns: u64,
    deadline_ns: u64,
    /// Nothing goes on after this; `u64::MAX` while there is no deadline.
    pub(crate) cut_ns: u64,
    pub(crate) source: Source,
    pub(crate) in_flight: usize,
    pub(crate) next_tick_ns: u64,
    pub(crate) last_answer_ns: u64,
    pub(crate) samples_left: u32,
    window: RateWindow,
    pub(crate) tally: Tally,
}

impl Slice {
    /// A slice that begins nothing: connections are only put in order.
    pub(crate) fn preparing(order: &WorkerOrder, now_ns: u64) -> Slice {
        let mut slice = Slice::running(order, Duration::ZERO, now_ns);
        slice.source = Source::new(Plan { pacer: Pacer::Closed, quota: 0, ..plan(order) }, now_ns, now_ns);
        slice
    }

    /// The slice itself, from now on.
    pub(crate) fn running(order: &WorkerOrder, timeout: Duration, now_ns: u64) -> Slice {
        let deadline_ns = order.limit.duration.map_or(u64::MAX, |duration| after(now_ns, duration));
        let mut tally = Tally::default();
        tally.mismatches.reserve(MAX_MISMATCHES);
        tally.samples.reserve(order.max_samples as usize);
        Slice {
            start_ns: now_ns,
            settled_ns: after(now_ns, order.settle),
            deadline_ns,
            cut_ns: after(deadline_ns, timeout),
            source: Source::new(plan(order), now_ns, deadline_ns),
            in_flight: 0,
            next_tick_ns: 0,
            last_answer_ns: now_ns,
            samples_left: order.max_samples,
            window: RateWindow::new(nanos(order.settle), order.limit.duration.map_or(u64::MAX, nanos)),
            tally,
        }
    }

    /// Whether all is done at `now_ns`.
    pub(crate) fn is_finished(&self, now_ns: u64) -> bool {
        self.in_flight == 0 && self.source.is_exhausted(now_ns)
    }

    /// Whether the slice has a deadline to end it.
    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline_ns != u64::MAX
    }

    /// Begins nothing more from `now_ns` on; what is in flight has `timeout` to end.
    pub(crate) fn end_at(&mut self, now_ns: u64, timeout: Duration) {
        if now_ns < self.deadline_ns {
            self.deadline_ns = now_ns;
            self.cut_ns = after(now_ns, timeout);
            self.source.end_at(now_ns);
            self.window.end_at(now_ns - self.start_ns);
        }
    }

    /// When something must be done even if nothing happens: the next due time or the deadline. Only open slices wait for
    /// either; in a closed one every connection is busy until the end.
    pub(crate) fn next_alarm_ns(&self, now_ns: u64) -> Option<u64> {
        if !self.source.is_open() {
            return None;
        }
        let deadline_ns = Some(self.deadline_ns).filter(|at| *at != u64::MAX);
        self.source.next_due_ns().or(deadline_ns).filter(|at| *at > now_ns)
    }

    /// Counts a request that was taken up.
    #[inline]
    pub(crate) fn took(&mut self) {
        self.in_flight += 1;
        self.tally.due += 1;
    }

    /// Counts a request that ended without a complete answer.
    pub(crate) fn failed(&mut self, outcome: Outcome) {
        self.in_flight -= 1;
        self.tally.outcomes.add(outcome, 1);
    }

    /// Counts a complete answer on `connection` to `request`.
    #[inline]
    pub(crate) fn answered(
        &mut self,
        connection: &mut Connection,
        request: &InFlight,
        requests: &Requests,
        now_ns: u64,
    ) {
        let expect = &requests.prepared()[request.prepared as usize].expect;
        let status = connection.parser.status();
        let outcome = connection.check.judge(expect, status);
        let tally = &mut self.tally;
        self.in_flight -= 1;
        self.last_answer_ns = now_ns;
        tally.outcomes.add(outcome, 1);
        tally.completions += 1;
        tally.status.add(status);
        self.window.note(now_ns - self.start_ns);
        if request.intended_ns >= self.settled_ns {
            tally.latency.record(now_ns.saturating_sub(request.intended_ns));
            tally.service.record(now_ns.saturating_sub(request.sent_ns));
            tally.send_lag.record(request.sent_ns.saturating_sub(request.intended_ns));
        }
        if outcome != Outcome::Ok && tally.mismatches.len() < MAX_MISMATCHES {
            let (length, digest) = (connection.check.length(), connection.check.digest());
            let request = request.prepared;
            tally.mismatches.push(Mismatch { request, expected: *expect, status, length, digest });
        }
        if let Some(body) = connection.check.take_copy() {
            let truncated = body.len() as u64 != connection.check.length();
            tally.samples.push(Sample { request: request.prepared, status, body, truncated });
        }
    }

    /// Counts all requests that are due and were never taken up as cut.
    pub(crate) fn cut_waiting(&mut self, now_ns: u64) {
        while self.source.when_due(now_ns).is_some() {
            self.tally.due += 1;
            self.tally.outcomes.add(Outcome::Cut, 1);
        }
    }

    /// The finished tally.
    pub(crate) fn finish(mut self, now_ns: u64, cpu_ns: u64) -> Tally {
        self.tally.elapsed_ns = now_ns - self.start_ns;
        self.tally.wall_ns = self.tally.elapsed_ns;
        self.tally.cpu_ns = cpu_ns;
        self.tally.rates.push(self.window.piece());
        self.tally
    }
}

fn plan(order: &WorkerOrder) -> Plan {
    let WorkerOrder { pacer, first, index, workers, .. } = *order;
    Plan { pacer, first, index, workers, quota: order.limit.share(index, workers) }
}

/// A duration in nanoseconds, at most `u64::MAX`.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The time `duration` after `at_ns`, at most `u64::MAX`.
pub(crate) fn after(at_ns: u64, duration: Duration) -> u64 {
    at_ns.saturating_add(nanos(duration))
}
