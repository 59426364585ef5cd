//! Owns: which request a worker begins next, and when it was intended. Must not know connections or a clock: callers
//! pass times as nanoseconds of their clock.

use crate::pacer::{DueTimes, Pacer};

/// A request to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    /// Position in the request order.
    pub(crate) position: u64,
    pub(crate) intended_ns: u64,
}

/// The settings of a source.
#[derive(Debug, Clone)]
pub(crate) struct SourceSettings {
    pub(crate) pacer: Pacer,
    /// Position of the slice's first request.
    pub(crate) first: u64,
    /// This worker's index among the workers, and their number.
    pub(crate) index: u64,
    pub(crate) workers: u64,
    /// How many requests all workers together may begin; `u64::MAX` without a limit.
    pub(crate) total: u64,
}

impl SourceSettings {
    /// The place in the slice's sequence of the worker's request in this block. A block is `workers` consecutive
    /// requests, and each worker takes one of them. Which one changes from block to block. Otherwise, with a mix whose
    /// period shares a factor with the number of workers, one worker would get all requests of a kind.
    fn place(&self, block: u64) -> u64 {
        let turn = if self.workers > 1 { splitmix64(block) % self.workers } else { 0 };
        block.wrapping_mul(self.workers).wrapping_add((self.index + turn) % self.workers)
    }

    /// How many requests this worker may begin.
    fn quota(&self) -> u64 {
        let (blocks, rest) = (self.total / self.workers, self.total % self.workers);
        let in_last = rest > 0 && self.place(blocks) % self.workers < rest;
        blocks + u64::from(in_last)
    }
}

/// Maps consecutive numbers to numbers scattered over 64 bits (S. Vigna, splitmix64.c, 2015, public domain).
fn splitmix64(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The requests of one worker: one of every `workers` in the slice's sequence. There is no queue: overdue requests stay
/// at their place in the sequence.
#[derive(Debug)]
pub(crate) struct Source {
    plan: SourceSettings,
    quota: u64,
    due_times: Option<DueTimes>,
    start_ns: u64,
    deadline_ns: u64,
    begun: u64,
    /// The place in the sequence of the next request to begin.
    place: u64,
    /// When the next request is due; `u64::MAX` when no more will be due.
    next_due_ns: u64,
}

impl Source {
    /// `deadline_ns` is `u64::MAX` without a deadline.
    pub(crate) fn new(plan: SourceSettings, start_ns: u64, deadline_ns: u64) -> Source {
        let due_times = plan.pacer.due_times();
        let (quota, place) = (plan.quota(), plan.place(0));
        let mut source =
            Source { plan, quota, due_times, start_ns, deadline_ns, begun: 0, place, next_due_ns: u64::MAX };
        source.step(place as usize);
        source
    }

    /// Whether requests become due at set times, and not when a connection is free.
    pub(crate) fn is_open(&self) -> bool {
        self.due_times.is_some()
    }

    /// Closed: the next request for a connection that has been free since `free_ns`, if one may still begin at
    /// `now_ns`.
    #[inline]
    pub(crate) fn when_free(&mut self, free_ns: u64, now_ns: u64) -> Option<Job> {
        if self.is_open() || self.begun >= self.quota || now_ns >= self.deadline_ns {
            return None;
        }
        Some(self.begin(free_ns))
    }

    /// Open: the due time of the next request; `None` if no more will be due.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        let more = self.begun < self.quota && self.next_due_ns < self.deadline_ns;
        (self.is_open() && more).then_some(self.next_due_ns)
    }

    /// Open: about how many requests are due at `now_ns` and have not begun.
    pub(crate) fn waiting(&self, now_ns: u64) -> u64 {
        if self.next_due_ns().is_none_or(|due_ns| due_ns > now_ns) {
            return 0;
        }
        let until_ns = now_ns.min(self.deadline_ns);
        let (since, _) = self.due_between(self.next_due_ns, until_ns);
        (since.max(0.0) as u64).saturating_add(1).min(self.quota - self.begun)
    }

    /// Open: how many requests are due between two times, and the rate per second at the second one.
    pub(crate) fn due_between(&self, from_ns: u64, until_ns: u64) -> (f64, f64) {
        let pacer = &self.plan.pacer;
        let at_s = |ns: u64| ns.saturating_sub(self.start_ns) as f64 / 1e9;
        let (from_s, until_s) = (at_s(from_ns), at_s(until_ns));
        let workers = self.plan.workers as f64;
        ((pacer.expected(until_s) - pacer.expected(from_s)) / workers, pacer.rate_at(until_s) / workers)
    }

    /// Open: the next request if it is due at `now_ns`.
    pub(crate) fn when_due(&mut self, now_ns: u64) -> Option<Job> {
        let due_ns = self.next_due_ns().filter(|due| *due <= now_ns)?;
        let before = self.place;
        let job = self.begin(due_ns);
        self.step((self.place - before) as usize - 1);
        Some(job)
    }

    /// Open: whether no more requests become due after `now_ns`.
    pub(crate) fn all_due(&self, now_ns: u64) -> bool {
        let counted = self.begun.saturating_add(self.waiting(now_ns)) >= self.quota;
        now_ns >= self.deadline_ns || counted || self.next_due_ns().is_none()
    }

    /// Whether no request will begin at or after `now_ns`.
    pub(crate) fn is_exhausted(&self, now_ns: u64) -> bool {
        let spent = self.begun >= self.quota;
        if self.is_open() {
            let over = now_ns >= self.deadline_ns || self.deadline_ns == u64::MAX;
            spent || (over && self.next_due_ns().is_none())
        } else {
            spent || now_ns >= self.deadline_ns
        }
    }

    /// Moves the deadline to `deadline_ns` if that is earlier. No request is due at or after the deadline.
    pub(crate) fn end_at(&mut self, deadline_ns: u64) {
        self.deadline_ns = self.deadline_ns.min(deadline_ns);
    }

    /// Skips `skip` due times and takes the next one.
    fn step(&mut self, skip: usize) {
        let next_ns = self.due_times.as_mut().and_then(|times| times.nth(skip)).unwrap_or(u64::MAX);
        self.next_due_ns = self.start_ns.saturating_add(next_ns);
    }

    fn begin(&mut self, intended_ns: u64) -> Job {
        let position = self.plan.first.wrapping_add(self.place);
        self.begun += 1;
        self.place = self.plan.place(self.begun);
        Job { position, intended_ns }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::pacer::{Arrivals, RecordedTimes};

    fn open(rate: &str, arrivals: Arrivals) -> Pacer {
        Pacer::Open { rate: rate.parse().unwrap(), arrivals }
    }

    fn source(pacer: Pacer, index: u64, workers: u64, total: u64, deadline_ns: u64) -> Source {
        Source::new(SourceSettings { pacer, first: 100, index, workers, total }, 1000, deadline_ns)
    }

    fn due(mut source: Source, now_ns: u64) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| source.when_due(now_ns)).map(|job| (job.position, job.intended_ns)).collect()
    }

    #[test]
    fn closed_begins_until_the_deadline_or_the_last_request() {
        let mut source = source(Pacer::Closed, 0, 1, 2, 2000);
        assert_eq!(source.when_free(1500, 1600), Some(Job { position: 100, intended_ns: 1500 }));
        assert_eq!(source.when_free(1500, 2000), None);
        assert!(!source.is_exhausted(1999));
        assert!(source.is_exhausted(2000));
        assert_eq!(source.when_free(1700, 1700), Some(Job { position: 101, intended_ns: 1700 }));
        assert_eq!(source.when_free(1700, 1700), None);
        assert!(source.is_exhausted(1700));
    }

    fn positions(index: u64, workers: u64, total: u64) -> Vec<u64> {
        let mut source = source(Pacer::Closed, index, workers, total, u64::MAX);
        std::iter::from_fn(|| source.when_free(1000, 1000)).map(|job| job.position - 100).collect()
    }

    #[test]
    fn workers_share_the_order_out_among_them() {
        for (workers, total) in
            [(1, 0), (1, 7), (2, 0), (2, 1), (2, 100), (3, 1), (3, 2), (3, 10), (3, 301), (8, 1000)]
        {
            let mut all: Vec<u64> = (0..workers).flat_map(|index| positions(index, workers, total)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..total).collect::<Vec<_>>(), "{workers} workers, {total} requests");
        }
    }

    #[test]
    fn each_worker_sends_the_same_mix() {
        // Two kinds in turn over two workers, and eight over four: each worker gets about the expected number of each
        // kind.
        for (workers, kinds) in [(2, 2), (4, 8), (3, 3)] {
            for index in 0..workers {
                let own = positions(index, workers, workers * 4000);
                let of_kind = |kind| own.iter().filter(|&&position| position % kinds == kind).count() as f64;
                let wanted = 4000.0 / kinds as f64;
                let worst = (0..kinds).map(|kind| (of_kind(kind) - wanted).abs()).fold(0.0, f64::max);
                assert!(
                    worst < 5.0 * wanted.sqrt(),
                    "worker {index} of {workers}, {kinds} kinds: off by {worst}"
                );
            }
        }
    }

    #[test]
    fn open_workers_together_send_what_one_would() {
        let kinds = [Arrivals::Constant, Arrivals::Poisson { seed: 3 }];
        for pacer in ["100000k", "1k..200000k:1us"].into_iter().flat_map(|r| kinds.map(|kind| open(r, kind)))
        {
            let alone = due(source(pacer.clone(), 0, 1, u64::MAX, 2000), 5000);
            let mut together: Vec<_> =
                (0..3).flat_map(|i| due(source(pacer.clone(), i, 3, u64::MAX, 2000), 5000)).collect();
            together.sort_unstable();
            assert_eq!(alone, together);
            assert!(alone.len() > 50);
        }
    }

    #[test]
    fn recorded_requests_begin_when_they_were_sent() {
        let times = Arc::new(RecordedTimes::new(vec![0, 100, 150, 400, 1000, 1100]).unwrap());
        let recorded = |from_ns, speed| Pacer::Recorded { times: times.clone(), from_ns, speed };
        let alone = |from_ns, speed| due(source(recorded(from_ns, speed), 0, 1, u64::MAX, 2000), 5000);
        assert_eq!(alone(0, 1.0), [(100, 1000), (101, 1100), (102, 1150), (103, 1400)]);
        assert_eq!(
            alone(120, 2.0),
            [
                (100, 1015),
                (101, 1140),
                (102, 1440),
                (103, 1490),
                (104, 1600),
                (105, 1650),
                (106, 1675),
                (107, 1800)
            ]
        );
        let mut together: Vec<_> =
            (0..3).flat_map(|i| due(source(recorded(0, 1.0), i, 3, u64::MAX, 9000), 9000)).collect();
        together.sort_unstable();
        assert_eq!(together, due(source(recorded(0, 1.0), 0, 1, u64::MAX, 9000), 9000));
        let mut late = source(recorded(0, 1.0), 0, 1, u64::MAX, 9000);
        assert_eq!((late.waiting(999), late.waiting(1000), late.waiting(1200)), (0, 1, 3));
        assert!(late.when_due(1200).is_some() && late.waiting(1200) == 2);
    }

    #[test]
    fn open_waits_for_the_due_time_and_stops_at_the_limits() {
        let constant = || open("10000k", Arrivals::Constant);
        let mut first = source(constant(), 0, 1, 2, u64::MAX);
        assert_eq!(first.when_free(1000, 1000), None);
        assert_eq!(first.when_due(999), None);
        assert_eq!(first.when_due(1000), Some(Job { position: 100, intended_ns: 1000 }));
        assert_eq!((first.when_due(1099), first.next_due_ns()), (None, Some(1100)));
        assert!(first.when_due(1100).is_some());
        assert_eq!((first.when_due(9999), first.next_due_ns()), (None, None));
        assert!(first.is_exhausted(1100));
        let mut late = source(constant(), 0, 1, u64::MAX, 1150);
        assert!(!late.is_exhausted(1200), "two were due before the deadline");
        assert_eq!(due(source(constant(), 0, 1, u64::MAX, 1150), 9999), [(100, 1000), (101, 1100)]);
        late.end_at(1050);
        assert!(late.when_due(1200).is_some());
        assert!(late.is_exhausted(1200) && !late.is_exhausted(1049));
    }

    #[test]
    fn a_rate_that_ends_at_zero_ends_the_source() {
        let ending = || open("10000k:300ns,0", Arrivals::Constant);
        for (deadline_ns, exhausted) in [(u64::MAX, true), (9000, false)] {
            let mut source = source(ending(), 0, 1, u64::MAX, deadline_ns);
            assert!(!source.is_exhausted(1000));
            assert_eq!(std::iter::from_fn(|| source.when_due(5000)).count(), 3);
            assert_eq!((source.next_due_ns(), source.is_exhausted(5000)), (None, exhausted));
            assert!(source.is_exhausted(9000));
        }
    }
}
