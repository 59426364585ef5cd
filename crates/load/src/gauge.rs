//! Owns: the values of a slice that can be read while it runs. One worker writes them and any thread reads them,
//! without locks; an update for each answer is cheap. Must not know what is displayed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Steps per doubling of a time: times are precise to 3.2 %.
const STEPS: u32 = 16;
/// Covers times from 0 to 2^41 ns (36 min); the last bucket also holds longer ones.
const BUCKETS: usize = (41 * STEPS) as usize + 1;

/// One worker's counts, over all its slices.
#[derive(Debug)]
pub(crate) struct Gauge {
    pub(crate) due: AtomicU64,
    pub(crate) completions: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) connections: AtomicU64,
    latencies: Box<[AtomicU64; BUCKETS]>,
}

/// What has happened up to a moment, added up over workers and slices. The difference of two gives what happened
/// between.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// Requests that were due.
    pub due: u64,
    /// Complete answers.
    pub completions: u64,
    /// Requests that did not end well, for any reason.
    pub errors: u64,
    /// Bytes received.
    pub bytes_read: u64,
    /// Connections that are open now.
    pub connections: u64,
    latencies: Vec<u64>,
}

impl Gauge {
    pub(crate) fn new() -> Gauge {
        Gauge {
            due: AtomicU64::new(0),
            completions: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            latencies: Box::new([const { AtomicU64::new(0) }; BUCKETS]),
        }
    }

    /// Counts a latency. Only one thread may call this.
    #[inline]
    pub(crate) fn latency(&self, ns: u64) {
        let bucket = &self.latencies[bucket(ns)];
        bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl Default for Progress {
    /// Nothing has happened.
    fn default() -> Progress {
        Progress {
            due: 0,
            completions: 0,
            errors: 0,
            bytes_read: 0,
            connections: 0,
            latencies: vec![0; BUCKETS],
        }
    }
}

impl Progress {
    pub(crate) fn of<'a>(gauges: impl Iterator<Item = &'a Gauge>) -> Progress {
        let mut sum = Progress::default();
        for gauge in gauges {
            sum.due += gauge.due.load(Ordering::Relaxed);
            sum.completions += gauge.completions.load(Ordering::Relaxed);
            sum.errors += gauge.errors.load(Ordering::Relaxed);
            sum.bytes_read += gauge.bytes_read.load(Ordering::Relaxed);
            sum.connections += gauge.connections.load(Ordering::Relaxed);
            for (total, count) in sum.latencies.iter_mut().zip(gauge.latencies.iter()) {
                *total += count.load(Ordering::Relaxed);
            }
        }
        sum
    }

    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &Progress) {
        self.due += other.due;
        self.completions += other.completions;
        self.errors += other.errors;
        self.bytes_read += other.bytes_read;
        self.connections += other.connections;
        self.latencies.iter_mut().zip(&other.latencies).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// What happened between `earlier` and this; `connections` is the current number.
    pub fn since(&self, earlier: &Progress) -> Progress {
        Progress {
            due: self.due.saturating_sub(earlier.due),
            completions: self.completions.saturating_sub(earlier.completions),
            errors: self.errors.saturating_sub(earlier.errors),
            bytes_read: self.bytes_read.saturating_sub(earlier.bytes_read),
            connections: self.connections,
            latencies: self
                .latencies
                .iter()
                .zip(&earlier.latencies)
                .map(|(now, then)| now.saturating_sub(*then))
                .collect(),
        }
    }

    /// The latency at or below which the share `quantile` (0 to 1) of the answers lies, in nanoseconds, precise to 3.2
    /// %; `None` if there are no answers.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let total: u64 = self.latencies.iter().sum();
        let rank = ((total as f64 * quantile).ceil() as u64).max(1);
        let mut seen = 0;
        let at = self.latencies.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        at.filter(|_| total > 0).map(middle)
    }
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let (octave, step) = (bucket as u32 / STEPS, bucket as u64 % u64::from(STEPS));
    ((2 * (u64::from(STEPS) + step) + 1) << octave) / (2 * u64::from(STEPS))
}

/// The bucket of a time. The buckets of an octave divide it evenly; the number's highest bits give the bucket.
#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.max(1);
    let octave = ns.ilog2();
    // The four bits below the highest one.
    let fraction = if octave >= 4 { (ns >> (octave - 4)) & 15 } else { (ns << (4 - octave)) & 15 };
    ((octave * STEPS) as usize + fraction as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_three_percent() {
        let gauge = Gauge::new();
        (1..=10_000u64).for_each(|k| gauge.latency(k * 1_000));
        let progress = Progress::of([&gauge].into_iter());
        for (quantile, wanted) in [(0.5, 5e6), (0.9, 9e6), (0.99, 9.9e6)] {
            let got = progress.quantile_ns(quantile).unwrap() as f64;
            assert!((got / wanted - 1.0).abs() < 0.033, "{quantile}: {got}");
        }
    }

    #[test]
    fn any_time_has_a_bucket_and_they_never_fall() {
        let mut last = 0;
        for ns in (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + (1 << bit) / 3]) {
            assert!(bucket(ns) < BUCKETS);
            if ns > 0 {
                assert!(bucket(ns) >= last, "{ns}");
                last = bucket(ns);
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn differences_are_of_what_came_between() {
        let gauge = Gauge::new();
        gauge.latency(1_000_000);
        let before = Progress::of([&gauge].into_iter());
        gauge.latency(4_000_000);
        gauge.completions.store(7, Ordering::Relaxed);
        let between = Progress::of([&gauge].into_iter()).since(&before);
        assert_eq!(between.completions, 7);
        assert!(between.quantile_ns(0.01).unwrap() > 3_000_000);
        assert_eq!(before.since(&before).quantile_ns(0.5), None);
    }
}
