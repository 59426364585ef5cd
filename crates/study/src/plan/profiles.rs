//! Profiles: sets of defaults as pure values, such as the number of epochs and the lengths of slices, pilot and warm-up.

use std::time::Duration;

use deadheat_load::nanos;
use deadheat_record::{BEYOND, Experiment, Metric, Slices};

use crate::choices::ProfileWord;
use crate::values::EpochRange;

/// A set of defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The name as typed.
    pub name: &'static str,
    /// How long deadheat loads each contender in the pilot.
    pub pilot: Duration,
    /// The shortest and the longest warm-up.
    pub warmup: (Duration, Duration),
    /// The fewest requests that every warm-up answers.
    pub warmup_requests: u64,
    /// Numbers of epochs after which deadheat checks whether the race is decided.
    pub looks: &'static [usize],
    /// How long each contender is measured in an epoch.
    pub measured: Duration,
    /// The same for percentiles: the minimum, and the maximum for low rates that need more time.
    pub measured_tail: (Duration, Duration),
    /// How long the diagnostic pass loads each contender with a declared collector. Zero: no such pass.
    pub collectors: Duration,
    /// No epoch starts that would end after this time. For few contenders.
    budget: Option<Duration>,
}

/// For a verdict within minutes.
pub(crate) const QUICK: Profile = Profile {
    name: "quick",
    pilot: Duration::from_secs(4),
    warmup: (Duration::from_secs(1), Duration::from_secs(5)),
    warmup_requests: 2_000,
    looks: &[4, 6, 8, 10, 12],
    measured: Duration::from_secs(3),
    measured_tail: (Duration::from_secs(4), Duration::from_secs(12)),
    collectors: Duration::ZERO,
    budget: Some(Duration::from_secs(180)),
};

/// For figures to publish.
pub(crate) const FULL: Profile = Profile {
    name: "full",
    pilot: Duration::from_secs(20),
    warmup: (Duration::from_secs(2), Duration::from_secs(15)),
    warmup_requests: 20_000,
    looks: &[6, 10, 15, 20, 25, 30],
    measured: Duration::from_secs(3),
    measured_tail: (Duration::from_secs(6), Duration::from_secs(30)),
    collectors: Duration::from_secs(5),
    budget: None,
};

/// The fewest rounds that leave data after the trim of one fifth at either end.
const FEWEST_ROUNDS: u64 = 4;
/// The most rounds. Beyond this number, the fresh start of each epoch limits the precision.
pub(super) const MOST_ROUNDS: u64 = 200;

/// The time of a contender in an epoch besides its measurement: start, warm-up and end.
const BESIDE: Duration = Duration::from_secs(6);
/// The default length of slices. In a closed load they are short, which gives the least noise. For percentiles they are long enough to show the
/// tail. At a fixed rate they are long too: freezing by signals costs CPU time in each slice, which is a small part only of a long slice.
const SLICE: Duration = Duration::from_millis(100);
const SLICE_TAIL: Duration = Duration::from_secs(1);
/// The number of trials around the peak, after the coarse search: see "Peak under an objective" in docs/src/method.md.
const STAIRCASE: u32 = 10;
/// The factor by which a plan exceeds the number of requests that a percentile needs, because arrivals are random.
pub const ROOM: f64 = 1.2;

impl Profile {
    /// The time limit for this number of contenders. `loaded` is how long each is loaded in an epoch besides its start, warm-up and end. The limit
    /// is long enough for the first of these looks if starts take the usual time. `None` if there is only one look: it comes after a fixed number
    /// of epochs, however long they take.
    pub fn budget_for(&self, contenders: usize, loaded: Duration, looks: &[usize]) -> Option<Duration> {
        let &[first, _, ..] = looks else { return None };
        let starts = u32::try_from(contenders.saturating_mul(first)).unwrap_or(u32::MAX);
        self.budget.map(|budget| budget.max(loaded.saturating_add(BESIDE).saturating_mul(starts)))
    }

    /// The slices of a load for these metrics. Typed values override those of the profile.
    pub fn slices(
        &self,
        shape: &Experiment,
        metrics: &[Metric],
        slice: Option<Duration>,
        measured: Option<Duration>,
    ) -> Slices {
        if shape.objective().is_some() {
            let least = slice.unwrap_or(SLICE_TAIL);
            return Slices { slice_ns: nanos(least), rounds: STAIRCASE };
        }
        // A percentile that is out of reach must not shorten what another one needs.
        let quantiles = metrics.iter().filter_map(|metric| metric.quantile());
        let tail = quantiles.map(|at| self.measured_to(shape, at)).max();
        let long = tail.is_some() || shape.rate_per_s().is_some();
        let slice = slice.unwrap_or(if long { SLICE_TAIL } else { SLICE });
        let measured = measured.or(tail).unwrap_or(self.measured);
        let slice_ns = nanos(slice);
        Slices { slice_ns, rounds: rounds(measured, slice) }
    }

    /// How long to measure each contender in an epoch to get enough requests beyond the quantile. If that would take too long: the usual time.
    fn measured_to(&self, shape: &Experiment, at: f64) -> Duration {
        let (usual, most) = self.measured_tail;
        let Some(rate_per_s) = shape.rate_per_s() else { return usual };
        let needed_s = (ROOM * BEYOND / (rate_per_s * (1.0 - at)) - 1e-6).ceil();
        if needed_s > most.as_secs_f64() { usual } else { usual.max(Duration::from_secs_f64(needed_s)) }
    }

    /// The profile with this name.
    pub fn of(word: ProfileWord) -> &'static Self {
        match word {
            ProfileWord::Quick => &QUICK,
            ProfileWord::Full => &FULL,
        }
    }

    /// The looks of a race with this range of epochs: the first at the fewest epochs, then steps in the profile's proportions.
    pub fn looks_within(&self, range: EpochRange) -> Vec<usize> {
        let (Some(&first), Some(&last)) = (self.looks.first(), self.looks.last()) else {
            return vec![range.most];
        };
        let stretched = |look: &usize| {
            let share = (look - first) as f64 / (last - first) as f64;
            range.fewest + (share * (range.most - range.fewest) as f64).round() as usize
        };
        let mut looks: Vec<usize> = self.looks.iter().map(stretched).collect();
        looks.dedup();
        looks
    }
}

/// How many rounds of such slices fill the time for which each contender is measured: even, from 4 to 200.
pub(super) fn rounds(measured: Duration, slice: Duration) -> u32 {
    let pairs = measured.as_nanos() as f64 / slice.as_nanos() as f64 / 2.0;
    let rounds = (pairs.round() as u64).saturating_mul(2);
    rounds.clamp(FEWEST_ROUNDS, MOST_ROUNDS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_keep_their_proportion() {
        let within = |profile: &Profile, fewest, most| profile.looks_within(EpochRange { fewest, most });
        for (profile, fewest, most, looks) in [
            (&QUICK, 4, 12, vec![4, 6, 8, 10, 12]),
            (&QUICK, 10, 10, vec![10]),
            (&QUICK, 3, 5, vec![3, 4, 5]),
            (&QUICK, 6, 30, vec![6, 12, 18, 24, 30]),
            (&FULL, 6, 30, vec![6, 10, 15, 20, 25, 30]),
            (&FULL, 3, 200, vec![3, 36, 77, 118, 159, 200]),
            (&FULL, 6, 7, vec![6, 7]),
        ] {
            assert_eq!(within(profile, fewest, most), looks, "{} {fewest}..{most}", profile.name);
        }
    }

    #[test]
    fn looks_rise_from_the_fewest_to_the_most() {
        for fewest in 3..60 {
            for most in fewest..=200 {
                let looks = FULL.looks_within(EpochRange { fewest, most });
                assert!(looks.windows(2).all(|pair| pair[0] < pair[1]), "{looks:?}");
                assert_eq!((looks.first(), looks.last()), (Some(&fewest), Some(&most)));
            }
        }
    }

    #[test]
    fn rounds_fill_the_measured_time() {
        let ms = Duration::from_millis;
        for (profile, slice, rounds) in [
            (&QUICK, ms(100), 30),
            (&QUICK, ms(50), 60),
            (&QUICK, ms(300), 10),
            (&QUICK, ms(1000), 4),
            (&QUICK, ms(10), 200),
            (&QUICK, ms(60_000), 4),
            (&FULL, ms(100), 30),
        ] {
            assert_eq!(super::rounds(profile.measured, slice), rounds, "{} {slice:?}", profile.name);
        }
    }

    #[test]
    fn percentiles_are_measured_until_they_can_be_shown() {
        let open = |rate_per_s| Experiment::Open { connections: 64, rate_per_s, poisson: true };
        let closed = Experiment::Closed { connections: 64 };
        let tail = [Metric::P50, Metric::P99];
        for (profile, shape, metrics, slice_ms, rounds) in [
            (&QUICK, closed.clone(), &[Metric::Throughput][..], 100, 30),
            (&QUICK, open(2_000.0), &[Metric::Cpu], 1_000, 4),
            (&QUICK, closed, &tail, 1_000, 4),
            (&QUICK, open(10_000.0), &tail, 1_000, 4),
            (&QUICK, open(2_000.0), &tail, 1_000, 6),
            (&QUICK, open(1_000.0), &tail, 1_000, 12),
            (&QUICK, open(1_000.0), &[Metric::P99, Metric::P999], 1_000, 12),
            (&QUICK, open(999.0), &tail, 1_000, 4),
            (&FULL, open(999.0), &tail, 1_000, 14),
            (&QUICK, open(100.0), &[Metric::P50], 1_000, 4),
        ] {
            let expected = Slices { slice_ns: slice_ms * 1_000_000, rounds };
            assert_eq!(profile.slices(&shape, metrics, None, None), expected, "{shape:?} {metrics:?}");
        }
    }
}
