//! Owns: which request a worker begins next, and when it was intended. Must not know connections or a clock: times come
//! in as nanoseconds of the caller's clock.

use crate::pacer::{DueTimes, Pacer};

/// A request to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    /// Position in the request order.
    pub(crate) position: u64,
    pub(crate) intended_ns: u64,
}

/// What a source is made from.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) pacer: Pacer,
    /// Position of the slice's first request.
    pub(crate) first: u64,
    /// This worker's place among the workers, and their number.
    pub(crate) index: u64,
    pub(crate) workers: u64,
    /// How many requests this worker may begin.
    pub(crate) quota: u64,
}

/// The requests that fall to one worker: of the slice's sequence each `workers`-th. It keeps no queue: requests whose
/// due time has passed wait where they are, in the sequence.
#[derive(Debug)]
pub(crate) struct Source {
    plan: Plan,
    due_times: Option<DueTimes>,
    start_ns: u64,
    deadline_ns: u64,
    begun: u64,
    /// `u64::MAX` when no more will be due.
    next_due_ns: u64,
}

impl Source {
    /// `deadline_ns` is `u64::MAX` where there is none.
    pub(crate) fn new(plan: Plan, start_ns: u64, deadline_ns: u64) -> Source {
        let due_times = plan.pacer.due_times();
        let skip = plan.index as usize;
        let mut source = Source { plan, due_times, start_ns, deadline_ns, begun: 0, next_due_ns: u64::MAX };
        source.step(skip);
        source
    }

    /// Whether requests are due by themselves, not when a connection is free.
    pub(crate) fn is_open(&self) -> bool {
        self.due_times.is_some()
    }

    /// Closed: the next request for a connection that is free since `free_ns`, if one may still be begun at `now_ns`.
    #[inline]
    pub(crate) fn when_free(&mut self, free_ns: u64, now_ns: u64) -> Option<Job> {
        if self.is_open() || self.begun >= self.plan.quota || now_ns >= self.deadline_ns {
            return None;
        }
        Some(self.begin(free_ns))
    }

    /// Open: when the next request is or was due; `None` if no more will be.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        let more = self.begun < self.plan.quota && self.next_due_ns < self.deadline_ns;
        (self.is_open() && more).then_some(self.next_due_ns)
    }

    /// Open: about how many requests are due at `now_ns` and not begun.
    pub(crate) fn waiting(&self, now_ns: u64) -> u64 {
        let Pacer::Open { rate, .. } = &self.plan.pacer else { return 0 };
        if self.next_due_ns().is_none_or(|due_ns| due_ns > now_ns) {
            return 0;
        }
        let offered = rate.expected((now_ns - self.start_ns) as f64 / 1e9) / self.plan.workers as f64;
        ((offered - self.begun as f64) as u64).max(1)
    }

    /// Open: the next request if it is due at `now_ns`.
    pub(crate) fn when_due(&mut self, now_ns: u64) -> Option<Job> {
        let due_ns = self.next_due_ns().filter(|due| *due <= now_ns)?;
        let job = self.begin(due_ns);
        self.step(self.plan.workers as usize - 1);
        Some(job)
    }

    /// Whether no request will be begun any more at or after `now_ns`.
    pub(crate) fn is_exhausted(&self, now_ns: u64) -> bool {
        let spent = self.begun >= self.plan.quota;
        if self.is_open() {
            let over = now_ns >= self.deadline_ns || self.deadline_ns == u64::MAX;
            spent || (over && self.next_due_ns().is_none())
        } else {
            spent || now_ns >= self.deadline_ns
        }
    }

    /// No request is due at or after `deadline_ns`, should that be earlier than before.
    pub(crate) fn end_at(&mut self, deadline_ns: u64) {
        self.deadline_ns = self.deadline_ns.min(deadline_ns);
    }

    /// Goes to the due time after the next `skip` ones.
    fn step(&mut self, skip: usize) {
        let next_ns = self.due_times.as_mut().and_then(|times| times.nth(skip)).unwrap_or(u64::MAX);
        self.next_due_ns = self.start_ns.saturating_add(next_ns);
    }

    fn begin(&mut self, intended_ns: u64) -> Job {
        let position = self.begun.wrapping_mul(self.plan.workers).wrapping_add(self.plan.index);
        self.begun += 1;
        Job { position: self.plan.first.wrapping_add(position), intended_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacer::Arrivals;

    fn open(rate: &str, arrivals: Arrivals) -> Pacer {
        Pacer::Open { rate: rate.parse().unwrap(), arrivals }
    }

    fn source(pacer: Pacer, index: u64, workers: u64, quota: u64, deadline_ns: u64) -> Source {
        Source::new(Plan { pacer, first: 100, index, workers, quota }, 1000, deadline_ns)
    }

    fn due(mut source: Source, now_ns: u64) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| source.when_due(now_ns)).map(|job| (job.position, job.intended_ns)).collect()
    }

    #[test]
    fn closed_gives_each_worker_its_share_of_the_order() {
        let mut source = source(Pacer::Closed, 1, 3, 2, 2000);
        assert_eq!(source.when_free(1500, 1600), Some(Job { position: 101, intended_ns: 1500 }));
        assert_eq!(source.when_free(1500, 2000), None);
        assert!(!source.is_exhausted(1999));
        assert!(source.is_exhausted(2000));
        assert_eq!(source.when_free(1700, 1700), Some(Job { position: 104, intended_ns: 1700 }));
        assert_eq!(source.when_free(1700, 1700), None);
        assert!(source.is_exhausted(1700));
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
