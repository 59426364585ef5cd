//! What a contender's process tree used over its slices: CPU time, context switches, memory over time.
//!
//! Owns: the readings before and after, and which memory readings of an epoch are kept. Must not know: the source of a reading, and
//! what happened between two readings.

use std::collections::BTreeMap;
use std::time::Duration;

use deadheat_record::{MemoryPoint, Usage};

use crate::process::Process;

/// The largest number of memory readings kept for an epoch.
const MOST_POINTS: usize = 64;

/// Follows one contender from before its first slice to after its last. The contender is frozen at every reading.
#[derive(Debug)]
pub struct Meter {
    before: UsageSample,
    memory: Series,
}

impl Meter {
    /// Takes the first reading; `at` is the time since the epoch began, here and below.
    pub fn begin(running: &dyn Process, at: Duration) -> Self {
        let mut memory = Series::new();
        memory.see(at, || running.pss_bytes());
        Self { before: UsageSample::of(running), memory }
    }

    /// Call this between two rounds.
    pub fn between_rounds(&mut self, running: &dyn Process, at: Duration) {
        self.memory.see(at, || running.pss_bytes());
    }

    /// The usage since the first reading.
    pub fn end(&mut self, running: &dyn Process, at: Duration) -> Usage {
        let pss_bytes = running.pss_bytes();
        self.memory.keep(at, pss_bytes);
        Usage {
            pss_bytes,
            peak_pss_bytes: self.memory.highest,
            memory: std::mem::take(&mut self.memory.points),
            processes: running.processes().len(),
            ..UsageSample::of(running).since(&self.before)
        }
    }
}

/// What a contender has used since it was started; for memory, what it uses now.
pub fn since_start(running: &dyn Process) -> Usage {
    let pss_bytes = running.pss_bytes();
    let nothing = UsageSample { split: Some((0, 0)), ..UsageSample::default() };
    Usage {
        pss_bytes,
        peak_pss_bytes: pss_bytes,
        processes: running.processes().len(),
        ..UsageSample::of(running).since(&nothing)
    }
}

/// What a tree had used by one moment.
#[derive(Debug, Default)]
struct UsageSample {
    cpu_ns: u64,
    cpu_source: &'static str,
    /// CPU time in user mode and in the kernel, in nanoseconds.
    split: Option<(u64, u64)>,
    /// Voluntary and involuntary switches of each living thread.
    switches: BTreeMap<i32, (u64, u64)>,
}

impl UsageSample {
    fn of(running: &dyn Process) -> Self {
        let (cpu_ns, cpu_source) = running.cpu_ns();
        Self { cpu_ns, cpu_source, split: running.cpu_split(), switches: running.switches() }
    }

    /// The usage from `before` until this reading. Switches of threads that have ended since are lost, and not subtracted.
    fn since(&self, before: &Self) -> Usage {
        let grown =
            |now: (u64, u64), then: (u64, u64)| (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1));
        let split = self.split.zip(before.split).map(|(now, then)| grown(now, then));
        let each = self.switches.iter().map(|(thread, now)| {
            let then = before.switches.get(thread).copied().unwrap_or_default();
            grown(*now, then)
        });
        let switches = each.reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1));
        Usage {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            cpu_source: self.cpu_source.into(),
            user_ns: split.map(|(user, _)| user),
            system_ns: split.map(|(_, system)| system),
            voluntary_switches: switches.map(|(voluntary, _)| voluntary),
            involuntary_switches: switches.map(|(_, involuntary)| involuntary),
            ..Usage::default()
        }
    }
}

/// The memory of an epoch at every n-th reading; n doubles whenever there would be too many points.
#[derive(Debug)]
struct Series {
    every: usize,
    moments: usize,
    points: Vec<MemoryPoint>,
    /// The highest of all readings, including those that were dropped later.
    highest: Option<u64>,
}

impl Series {
    fn new() -> Self {
        Self { every: 1, moments: 0, points: Vec::new(), highest: None }
    }

    /// One possible reading; calls `read` only if the reading is kept, because reading takes time.
    fn see(&mut self, at: Duration, read: impl FnOnce() -> Option<u64>) {
        // One place stays free for the final reading.
        if self.points.len() + 1 == MOST_POINTS {
            let mut place = 0;
            self.points.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every *= 2;
        }
        if self.moments.is_multiple_of(self.every) {
            self.keep(at, read());
        }
        self.moments += 1;
    }

    fn keep(&mut self, at: Duration, pss_bytes: Option<u64>) {
        let at_ns = at.as_nanos() as u64;
        self.points.extend(pss_bytes.map(|pss_bytes| MemoryPoint { at_ns, pss_bytes }));
        self.highest = self.highest.max(pss_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_the_difference_of_two_readings() {
        let reading = |cpu_ns, split, switches: &[(i32, (u64, u64))]| UsageSample {
            cpu_ns,
            cpu_source: "cpuacct",
            split,
            switches: switches.iter().copied().collect(),
        };
        let before = reading(100, Some((60, 38)), &[(1, (10, 5)), (2, (900, 900)), (3, (50, 50))]);
        // Thread 2 has ended, 4 is new, and 3 is a different thread that got the same number.
        let after = reading(400, Some((300, 95)), &[(1, (25, 6)), (3, (1, 1)), (4, (7, 0))]);
        let used = after.since(&before);
        assert_eq!((used.cpu_ns, used.user_ns, used.system_ns), (300, Some(240), Some(57)));
        assert_eq!((used.voluntary_switches, used.involuntary_switches), (Some(15 + 7), Some(1)));
        let blind = reading(400, None, &[]).since(&before);
        assert_eq!((blind.cpu_ns, blind.user_ns, blind.system_ns), (300, None, None));
        assert_eq!((blind.voluntary_switches, blind.involuntary_switches), (None, None), "unknown is not 0");
        // Without a group the source is clock ticks, and a later reading may be lower.
        let fewer = reading(100, Some((59, 40)), &[]).since(&before);
        assert_eq!((fewer.user_ns, fewer.system_ns), (Some(0), Some(2)));
    }

    #[test]
    fn of_many_rounds_every_nth_is_kept_and_always_the_first_and_the_last() {
        for rounds in [0, 1, 61, 62, 63, 64, 200, 5_000] {
            let (mut series, mut asked) = (Series::new(), 0);
            // The size is the moment's number, to show which moments are kept.
            for moment in 0..=rounds {
                series.see(Duration::from_secs(moment), || {
                    asked += 1;
                    Some(moment)
                });
            }
            series.keep(Duration::from_secs(rounds + 1), Some(rounds + 1));
            let sizes: Vec<u64> = series.points.iter().map(|point| point.pss_bytes).collect();
            assert!(sizes.len() <= MOST_POINTS, "{rounds}: {}", sizes.len());
            assert!(sizes.len() as u64 >= (rounds + 2).min(32), "{rounds}: {}", sizes.len());
            assert_eq!((sizes[0], sizes.last()), (0, Some(&(rounds + 1))));
            let (inner, every) = (&sizes[..sizes.len() - 1], series.every as u64);
            assert!(inner.windows(2).all(|two| two[1] - two[0] == every), "{rounds}: {sizes:?}");
            assert!(asked <= 64 + 32 * 7, "{rounds}: read {asked} times");
            assert!(series.points.is_sorted_by_key(|point| point.at_ns));
            assert_eq!(series.highest, Some(rounds + 1));
        }
    }

    #[test]
    fn memory_that_may_not_be_read_is_no_point() {
        let mut series = Series::new();
        series.see(Duration::ZERO, || None);
        series.see(Duration::ZERO, || Some(5));
        series.keep(Duration::ZERO, None);
        let sizes: Vec<u64> = series.points.iter().map(|point| point.pss_bytes).collect();
        assert_eq!((sizes, series.highest), (vec![5], Some(5)));
    }
}
