//! Owns: one worker's state of the slice that it runs: times, remaining requests, and the worker's tally. Must not know
//! connections or sockets. Times are on the worker's clock.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::backlog::Backlog;
use crate::connection::InFlight;
use crate::gauge::Gauge;
use crate::limit::Limit;
use crate::outcome::Outcome;
use crate::pacer::Pacer;
use crate::rate::RateWindow;
use crate::source::{Source, SourceSettings};
use crate::tally::{Cause, MAX_MISMATCHES, Tally};
use crate::times::Times;

/// The orders of a worker for a slice.
#[derive(Debug, Clone)]
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
    /// The slice ends at this time at the latest; `u64::MAX` while there is no deadline.
    pub(crate) cut_ns: u64,
    pub(crate) source: Source,
    pub(crate) in_flight: usize,
    pub(crate) next_tick_ns: u64,
    /// No more connections are opened before this.
    pub(crate) next_growth_ns: u64,
    /// For how long something has been owed since the last answer, as of the last tick.
    owed_ns: u64,
    last_tick_ns: u64,
    /// The first and the last request that has failed since the last answer.
    failures_ns: Option<(u64, u64)>,
    pub(crate) samples_left: u32,
    /// Since when requests have waited because no connection is free; `None` while none waits.
    blocked_since_ns: Option<u64>,
    /// The time up to which `in_flight_ns` is computed.
    counted_until_ns: u64,
    /// Latencies of requests that were sent when intended and did not wait. They equal the service times.
    prompt: Times,
    window: RateWindow,
    backlog: Backlog,
    /// Whether no more requests will become due: from then on the number outstanding can only fall.
    backlog_closed: bool,
    pub(crate) tally: Tally,
}

impl Slice {
    /// A slice that begins no request: it only prepares connections.
    pub(crate) fn preparing(order: &WorkerOrder, now_ns: u64) -> Slice {
        let order = WorkerOrder { pacer: Pacer::Closed, limit: Limit::requests(0), ..order.clone() };
        Slice::with(Tally::default(), Times::default(), &order, Duration::ZERO, now_ns)
    }

    /// The slice itself, starting now.
    pub(crate) fn running(order: &WorkerOrder, timeout: Duration, now_ns: u64) -> Slice {
        Slice::with(Tally::ready(), Times::new(), order, timeout, now_ns)
    }

    fn with(mut tally: Tally, prompt: Times, order: &WorkerOrder, timeout: Duration, now_ns: u64) -> Slice {
        let deadline_ns = order.limit.duration.map_or(u64::MAX, |duration| after(now_ns, duration));
        tally.mismatches.reserve(MAX_MISMATCHES);
        tally.samples.reserve(order.max_samples as usize);
        let source = Source::new(plan(order), now_ns, deadline_ns);
        Slice {
            start_ns: now_ns,
            settled_ns: after(now_ns, order.settle),
            deadline_ns,
            cut_ns: after(deadline_ns, timeout),
            in_flight: 0,
            next_tick_ns: 0,
            next_growth_ns: 0,
            owed_ns: 0,
            last_tick_ns: now_ns,
            failures_ns: None,
            samples_left: order.max_samples,
            blocked_since_ns: None,
            counted_until_ns: now_ns,
            prompt,
            window: RateWindow::new(nanos(order.settle)),
            backlog: Backlog::new(),
            backlog_closed: false,
            source,
            tally,
        }
    }

    /// Whether the slice is complete at `now_ns`.
    pub(crate) fn is_finished(&self, now_ns: u64) -> bool {
        self.in_flight == 0 && self.source.is_exhausted(now_ns)
    }

    /// Whether the slice has a deadline.
    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline_ns != u64::MAX
    }

    /// Begins no more requests from `now_ns` on. Requests in flight have `timeout` to end.
    pub(crate) fn end_at(&mut self, now_ns: u64, timeout: Duration) {
        if now_ns < self.deadline_ns {
            self.deadline_ns = now_ns;
            self.cut_ns = after(now_ns, timeout);
            self.source.end_at(now_ns);
        }
    }

    /// When the worker must act even without events: the next due time or the deadline. Only open slices need it; in a
    /// closed slice every connection is busy until the end.
    pub(crate) fn next_alarm_ns(&self, now_ns: u64) -> Option<u64> {
        if !self.source.is_open() {
            return None;
        }
        let deadline_ns = Some(self.deadline_ns).filter(|at| *at != u64::MAX);
        self.source.next_due_ns().or(deadline_ns).filter(|at| *at > now_ns)
    }

    /// Open: whether a request is due at `now_ns`.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.source.next_due_ns().is_some_and(|due_ns| due_ns <= now_ns)
    }

    /// How long the server has been silent since its last answer. This is the longer of two times: the time in which an answer was owed, and the time from
    /// the first to the last failed request. Time in which no request is in flight or due does not count.
    pub(crate) fn silence_ns(&mut self, now_ns: u64) -> u64 {
        let is_idle = self.source.is_open() && self.in_flight == 0 && !self.is_due(now_ns);
        let passed_ns = now_ns - std::mem::replace(&mut self.last_tick_ns, now_ns);
        self.owed_ns += if is_idle { 0 } else { passed_ns };
        let failing_ns = self.failures_ns.map_or(0, |(first, last)| last - first);
        self.owed_ns.max(failing_ns)
    }

    /// Open: a request is due at `now_ns` and no connection is free.
    pub(crate) fn blocked(&mut self, now_ns: u64) {
        self.blocked_since_ns.get_or_insert(now_ns);
    }

    /// Open: all due requests are taken up.
    #[inline]
    pub(crate) fn unblocked(&mut self) {
        self.blocked_since_ns = None;
    }

    /// How long a request intended at `intended_ns` has waited until `now_ns` because no connection was free.
    #[inline]
    pub(crate) fn waited_ns(&self, intended_ns: u64, now_ns: u64) -> u64 {
        self.blocked_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(intended_ns.max(since_ns)))
    }

    /// Counts a request that was taken up.
    #[inline]
    pub(crate) fn took(&mut self, intended_ns: u64, waited_ns: u64, now_ns: u64) {
        self.count_until(now_ns);
        self.tally.in_flight_ns += now_ns.saturating_sub(intended_ns);
        self.tally.waited += u64::from(waited_ns > 0);
        self.in_flight += 1;
        self.tally.due += 1;
    }

    /// Counts a request that ended without a complete answer.
    pub(crate) fn failed(&mut self, request: &InFlight, outcome: Outcome, cause: Cause, now_ns: u64) {
        self.count_until(now_ns);
        let tally = &mut self.tally;
        tally.in_flight_ns = tally.in_flight_ns.saturating_sub(now_ns.saturating_sub(request.intended_ns));
        self.in_flight -= 1;
        self.failures_ns = Some((self.failures_ns.map_or(now_ns, |(first, _)| first), now_ns));
        self.tally.outcomes.add(outcome, 1);
        self.tally.fault(outcome, cause, 1);
        self.window.lost(now_ns - self.start_ns);
    }

    /// Counts a complete answer.
    #[inline]
    pub(crate) fn answered(
        &mut self,
        request: &InFlight,
        outcome: Outcome,
        status: u16,
        now_ns: u64,
        gauge: &Gauge,
    ) {
        self.count_until(now_ns);
        self.in_flight -= 1;
        (self.owed_ns, self.failures_ns) = (0, None);
        let tally = &mut self.tally;
        tally.outcomes.add(outcome, 1);
        tally.completions += 1;
        tally.in_time += u64::from(now_ns <= self.deadline_ns);
        tally.status.add(status);
        self.window.note(now_ns - self.start_ns);
        let latency_ns = now_ns.saturating_sub(request.intended_ns);
        gauge.latency(latency_ns);
        if request.intended_ns < self.settled_ns {
            tally.in_flight_ns = tally.in_flight_ns.saturating_sub(latency_ns);
            return;
        }
        if request.sent_ns == request.intended_ns && request.waited_ns == 0 {
            self.prompt.record(latency_ns);
        } else {
            tally.latency.record(latency_ns);
            tally.service.record(now_ns.saturating_sub(request.sent_ns));
            tally.send_lag.record(request.sent_ns.saturating_sub(request.intended_ns));
            tally.wait.record(request.waited_ns);
            let taken_after_ns = request.taken_ns.saturating_sub(request.intended_ns);
            tally.own_lag.record(taken_after_ns.saturating_sub(request.waited_ns));
        }
    }

    /// Counts all due requests that were never taken up as cut.
    pub(crate) fn cut_waiting(&mut self, now_ns: u64) {
        let mut count = 0;
        while self.source.when_due(now_ns).is_some() {
            count += 1;
        }
        if count > 0 {
            self.tally.due += count;
            self.tally.waited += count;
            self.tally.outcomes.add(Outcome::Cut, count);
            self.tally.fault(Outcome::Cut, Cause::Time, count);
            self.window.lost(now_ns - self.start_ns);
        }
    }

    /// Open: notes how many requests are outstanding, until the last one is due.
    pub(crate) fn note_backlog(&mut self, now_ns: u64) {
        if !self.source.is_open() || self.backlog_closed {
            return;
        }
        self.backlog_closed = self.source.all_due(now_ns);
        let outstanding = self.in_flight as u64 + self.source.waiting(now_ns);
        let (_, rate_per_s) = self.source.due_between(now_ns, now_ns.min(self.deadline_ns));
        self.backlog.note(now_ns - self.start_ns, outstanding, self.tally.completions, rate_per_s);
    }

    /// Publishes the progress of the slice; `before` holds the gauge's values from when it began.
    pub(crate) fn show(&self, gauge: &Gauge, before: &Before) {
        gauge.due.store(before.due + self.tally.due, Ordering::Relaxed);
        gauge.completions.store(before.completions + self.tally.completions, Ordering::Relaxed);
        gauge.errors.store(before.errors + self.tally.outcomes.errors(), Ordering::Relaxed);
        gauge.bytes_read.store(before.bytes_read + self.tally.bytes_read, Ordering::Relaxed);
    }

    /// Completes the tally and returns it.
    pub(crate) fn finish(mut self, now_ns: u64, connections: usize) -> Tally {
        if self.source.is_open() {
            let (source, start_ns) = (&self.source, self.start_ns);
            let due = |from_ns, until_ns| source.due_between(start_ns + from_ns, start_ns + until_ns).0;
            self.tally.behind = Some(self.backlog.behind(due));
        }
        let tally = &mut self.tally;
        tally.elapsed_ns = now_ns - self.start_ns;
        tally.loading_ns = now_ns.min(self.deadline_ns) - self.start_ns;
        tally.wall_ns = tally.elapsed_ns;
        tally.connections = connections;
        tally.rates.push(self.window.piece());
        tally.latency.merge(&self.prompt);
        tally.service.merge(&self.prompt);
        tally.send_lag.record_many(0, self.prompt.count());
        tally.wait.record_many(0, self.prompt.count());
        tally.own_lag.record_many(0, self.prompt.count());
        self.tally
    }

    /// Updates the integral of requests in flight up to `now_ns`.
    #[inline]
    fn count_until(&mut self, now_ns: u64) {
        let now_ns = now_ns.max(self.counted_until_ns);
        let (from_ns, flying) = (self.counted_until_ns, self.in_flight as u64);
        self.tally.in_flight_ns += (now_ns - from_ns) * flying;
        self.counted_until_ns = now_ns;
    }
}

/// The values of a gauge at some time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    due: u64,
    completions: u64,
    errors: u64,
    bytes_read: u64,
}

impl Before {
    pub(crate) fn of(gauge: &Gauge) -> Before {
        Before {
            due: gauge.due.load(Ordering::Relaxed),
            completions: gauge.completions.load(Ordering::Relaxed),
            errors: gauge.errors.load(Ordering::Relaxed),
            bytes_read: gauge.bytes_read.load(Ordering::Relaxed),
        }
    }
}

fn plan(order: &WorkerOrder) -> SourceSettings {
    let WorkerOrder { first, index, workers, .. } = *order;
    SourceSettings {
        pacer: order.pacer.clone(),
        first,
        index,
        workers,
        total: order.limit.requests.unwrap_or(u64::MAX),
    }
}

/// A duration in nanoseconds, at most `u64::MAX`.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The time `duration` after `at_ns`, at most `u64::MAX`.
pub(crate) fn after(at_ns: u64, duration: Duration) -> u64 {
    at_ns.saturating_add(nanos(duration))
}
