//! Turns an interval into a verdict.
//!
//! Owns the five verdicts and the rule that picks one from an interval, a margin and a direction. It must not know
//! where the interval came from.

use crate::interval::LogInterval;

/// The result for a contender against its baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Better than the baseline: the interval of the ratio lies on the better side of 1.
    Faster,
    /// Worse than the baseline.
    Slower,
    /// Equally good, within the margin: the interval includes 1 and lies inside the margin.
    Equivalent,
    /// No verdict yet, or none possible with the available epochs.
    Inconclusive,
    /// A gate failed, so the number is not the server's. This crate never returns it, because it does not see gates.
    Invalid,
}

impl Verdict {
    /// Whether a difference was found: faster or slower.
    pub fn tells_apart(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }

    /// Whether a race may stop on it: faster, slower or equivalent.
    pub fn is_decided(self) -> bool {
        self.tells_apart() || self == Self::Equivalent
    }
}

/// Which way the metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Throughput: a ratio over 1 is faster.
    MoreIsBetter,
    /// Latency, CPU per request: a ratio under 1 is faster.
    LessIsBetter,
}

impl Direction {
    /// The verdict on a ratio that differs from 1, from the natural log of that ratio.
    pub fn of_difference(self, ln_ratio: f64) -> Verdict {
        if (ln_ratio > 0.0) == (self == Self::MoreIsBetter) { Verdict::Faster } else { Verdict::Slower }
    }
}

/// A verdict, and whether its difference is negligible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    /// Faster, slower, equivalent or inconclusive.
    pub verdict: Verdict,
    /// There is a difference, but the whole interval lies inside the margin: the difference does not matter.
    pub negligible: bool,
}

/// The ruling on `interval`, the natural log of contender / baseline, with the margin as a natural log: ln(1 + margin).
///
/// Faster or slower if the two differ; otherwise equivalent if the interval lies inside the margin; otherwise inconclusive. The caller
/// decides whether they differ: by a test over several pairs, or at an earlier look.
pub fn rule(differs: bool, interval: &LogInterval, margin_ln: f64, direction: Direction) -> Ruling {
    let within = interval.is_within(margin_ln);
    let verdict = match (differs, within) {
        (true, _) => direction.of_difference(interval.low + interval.high),
        (false, true) => Verdict::Equivalent,
        (false, false) => Verdict::Inconclusive,
    };
    Ruling { verdict, negligible: differs && within }
}

#[cfg(test)]
mod tests {
    use super::Direction::{LessIsBetter, MoreIsBetter};
    use super::*;

    #[test]
    fn the_table_of_verdicts() {
        let cases = [
            (0.01, 0.09, Verdict::Faster, false),
            (0.01, 0.02, Verdict::Faster, true),
            (-0.09, -0.01, Verdict::Slower, false),
            (-0.02, -0.01, Verdict::Slower, true),
            (-0.01, 0.02, Verdict::Equivalent, false),
            (0.0, 0.02, Verdict::Equivalent, false),
            (-0.01, 0.03, Verdict::Inconclusive, false),
            (-0.03, 0.01, Verdict::Inconclusive, false),
            (0.0, 0.0, Verdict::Equivalent, false),
        ];
        for (low, high, verdict, negligible) in cases {
            for (interval, direction) in [
                (LogInterval { low, high }, MoreIsBetter),
                (LogInterval { low: -high, high: -low }, LessIsBetter),
            ] {
                let ruling = rule(interval.excludes_zero(), &interval, 0.03, direction);
                assert_eq!(ruling, Ruling { verdict, negligible }, "{interval:?}");
            }
        }
    }

    #[test]
    fn an_invalid_comparison_decides_nothing() {
        assert!(!Verdict::Invalid.is_decided());
    }
}
