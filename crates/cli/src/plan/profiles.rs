//! Sets of defaults as pure values: how many epochs, how long slices, pilot and warm-up last.

use std::time::Duration;

use deadheat_record::Metric;

use crate::flags::{EpochRange, ProfileWord};

/// A set of defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Profile {
    /// As it is typed.
    pub(crate) name: &'static str,
    /// How long each contender is loaded in the pilot.
    pub(crate) pilot: Duration,
    /// Shortest and longest warm-up.
    pub(crate) warmup: (Duration, Duration),
    /// Every warm-up answers at least so many requests.
    pub(crate) warmup_requests: u64,
    /// Numbers of epochs after which it is asked whether the race is decided.
    pub(crate) looks: &'static [usize],
    /// How long each contender is measured in an epoch.
    pub(crate) measured: Duration,
    /// No epoch starts that would end later; for few contenders.
    budget: Option<Duration>,
}

/// A verdict within minutes.
pub(crate) const QUICK: Profile = Profile {
    name: "quick",
    pilot: Duration::from_secs(4),
    warmup: (Duration::from_secs(1), Duration::from_secs(5)),
    warmup_requests: 2_000,
    looks: &[4, 6, 8, 10, 12],
    measured: Duration::from_secs(2),
    budget: Some(Duration::from_secs(180)),
};

/// For figures that are published: sections 2 and 4 of the method.
pub(crate) const FULL: Profile = Profile {
    name: "full",
    pilot: Duration::from_secs(20),
    warmup: (Duration::from_secs(2), Duration::from_secs(15)),
    warmup_requests: 20_000,
    looks: &[6, 10, 15, 20, 25, 30],
    measured: Duration::from_secs(3),
    budget: None,
};

/// The fewest rounds that still leave something after the fifth at either end is trimmed.
const FEWEST_ROUNDS: u64 = 4;
/// The most rounds: beyond, the epoch's fresh start is what limits precision.
const MOST_ROUNDS: u64 = 200;

/// What each of many contenders needs for its share of the epochs up to the first look.
const BUDGET_EACH: Duration = Duration::from_secs(32);

impl Profile {
    /// The time that so many contenders get: enough for a first look.
    pub(crate) fn budget_for(&self, contenders: usize) -> Option<Duration> {
        let each = BUDGET_EACH.saturating_mul(u32::try_from(contenders).unwrap_or(u32::MAX));
        self.budget.map(|budget| budget.max(each))
    }

    /// The profile of that name.
    pub(crate) fn of(word: ProfileWord) -> &'static Self {
        match word {
            ProfileWord::Quick => &QUICK,
            ProfileWord::Full => &FULL,
        }
    }

    /// The looks of a race with so many epochs: the fewest, then steps in the proportion of the profile's own.
    pub(crate) fn looks_within(&self, range: EpochRange) -> Vec<usize> {
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

/// How many rounds of such slices make up the time that each contender is measured: even, from 4 to 200.
pub(crate) fn rounds(measured: Duration, slice: Duration) -> u32 {
    let pairs = measured.as_nanos() as f64 / slice.as_nanos() as f64 / 2.0;
    let rounds = (pairs.round() as u64).saturating_mul(2);
    rounds.clamp(FEWEST_ROUNDS, MOST_ROUNDS) as u32
}

/// The length of a slice: short for rates, since that is quietest; long enough for latency to show its tail.
pub(crate) fn slice(metric: Metric) -> Duration {
    match metric {
        Metric::Throughput | Metric::Cpu => Duration::from_millis(100),
        Metric::P50 | Metric::P99 => Duration::from_secs(1),
    }
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
            (&QUICK, ms(100), 20),
            (&QUICK, ms(50), 40),
            (&QUICK, ms(300), 6),
            (&QUICK, ms(1000), 4),
            (&QUICK, ms(10), 200),
            (&QUICK, ms(60_000), 4),
            (&FULL, ms(100), 30),
        ] {
            assert_eq!(super::rounds(profile.measured, slice), rounds, "{} {slice:?}", profile.name);
        }
    }
}
