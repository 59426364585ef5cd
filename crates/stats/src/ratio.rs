//! The log ratio of one pair of contenders in one epoch, from their paired rounds.
//!
//! Owns the two estimators of an epoch, trimmed and total. It must not know other epochs, intervals or verdicts.

use crate::average::mean;

/// The fraction trimmed at each end of an epoch's sorted log ratios: one fifth.
const TRIM_DIVISOR: usize = 5;

/// The largest possible log ratio of two positive floats: ln(1.8e308 / 4.9e-324) is 1,454.2.
const FURTHEST_LN: f64 = 1455.0;

/// One epoch's natural log of contender / baseline, with two estimators. Both values are finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpochRatio {
    trimmed: f64,
    total: f64,
    resolution: f64,
    stalled: bool,
}

impl EpochRatio {
    /// An epoch with known estimates, for example from a record. `None` unless both can be
    /// the log of a ratio of two positive floats: finite and at most 1,455 away from zero.
    pub fn new(trimmed: f64, total: f64) -> Option<Self> {
        (trimmed.abs() <= FURTHEST_LN && total.abs() <= FURTHEST_LN).then_some(Self {
            trimmed,
            total,
            resolution: 0.0,
            stalled: false,
        })
    }

    /// Adds the resolution of the values on the log scale: whole milliseconds, or the cells of a histogram. This error is the same in every
    /// epoch, so that more epochs do not reduce it. A resolution that is not over 0 becomes 0.
    #[must_use]
    pub fn coarse(self, resolution: f64) -> Self {
        Self { resolution: resolution.max(0.0), ..self }
    }

    /// How far both estimates may be off because of the resolution of the values; 0 unless set.
    pub fn resolution(self) -> f64 {
        self.resolution
    }

    /// An epoch with a single value (CPU per request, a latency quantile): `ln_ratio` is the natural log
    /// of contender / baseline. `None` as for [`EpochRatio::new`].
    pub fn single(ln_ratio: f64) -> Option<Self> {
        Self::new(ln_ratio, ln_ratio)
    }

    /// Whether either side had no progress in more rounds than the trimming drops, so that the totals replace the trimmed mean.
    pub fn is_stalled(self) -> bool {
        self.stalled
    }

    /// Mean over rounds of ln(contender / baseline), without the fifth at either end. Verdicts use it, so that a
    /// passing disturbance of one contender's round does not decide them.
    pub fn trimmed(self) -> f64 {
        self.trimmed
    }

    /// ln(sum of contender / sum of baseline), without trimming: what a user would have received in total.
    pub fn total(self) -> f64 {
        self.total
    }
}

/// Both estimates of one epoch from its rounds, where `baseline[r]` and `contender[r]` come from the same round.
///
/// A round counts if both of its values are finite and at least 0, and one of them is over 0. Any other round is ignored for both
/// contenders. A value of 0 means infinitely slower in that round: trimming drops such rounds first, at their end, and they add
/// nothing to the totals. If there are more such rounds than trimming drops, there is no trimmed mean, and the totals replace it:
/// a stall always counts. `None` if either side is 0 in all rounds, or if the slices differ in length (they
/// are then not paired).
pub fn epoch_log_ratio(baseline: &[f64], contender: &[f64]) -> Option<EpochRatio> {
    if baseline.len() != contender.len() {
        return None;
    }
    let usable = |y: f64| y.is_finite() && y >= 0.0;
    let rounds: Vec<(f64, f64)> = baseline
        .iter()
        .copied()
        .zip(contender.iter().copied())
        .filter(|&(b, c)| usable(b) && usable(c) && (b > 0.0 || c > 0.0))
        .collect();
    let logs = rounds.iter().map(|(b, c)| c.ln() - b.ln()).collect();
    let total = ln_sum(rounds.iter().map(|r| r.1))? - ln_sum(rounds.iter().map(|r| r.0))?;
    let trimmed = trimmed_mean(logs)?;
    match trimmed.is_finite() {
        true => EpochRatio::new(trimmed, total),
        false => EpochRatio::new(total, total).map(|ratio| EpochRatio { stalled: true, ..ratio }),
    }
}

pub(crate) fn trimmed_mean(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let cut = values.len() / TRIM_DIVISOR;
    let kept = &values[cut..values.len() - cut];
    mean(kept.iter().copied())
}

/// Natural log of a sum of values of at least 0, scaled by the largest so that no sum overflows; `None` if none is over 0.
fn ln_sum(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let largest = values.clone().max_by(f64::total_cmp).filter(|largest| *largest > 0.0)?;
    Some(largest.ln() + values.map(|y| y / largest).sum::<f64>().ln())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * (1.0 + a.abs())
    }

    #[test]
    fn five_rounds_lose_their_two_extremes() {
        // Ratios 0.5, 1.1, 1.2, 1.3, 9: trimming drops the first and the last.
        let found = epoch_log_ratio(&[100.0; 5], &[120.0, 50.0, 900.0, 110.0, 130.0]).unwrap();
        assert!(close(found.trimmed(), (1.1_f64.ln() + 1.2_f64.ln() + 1.3_f64.ln()) / 3.0));
        assert!(close(found.total(), (1310.0_f64 / 500.0).ln()));
    }

    #[test]
    fn four_rounds_lose_nothing_and_eleven_lose_two_at_each_end() {
        let four = epoch_log_ratio(&[1.0; 4], &[1.0, 2.0, 4.0, 8.0]).unwrap();
        assert!(close(four.trimmed(), 1.5 * 2.0_f64.ln()));
        let logs: Vec<f64> = (0..11).map(|i| f64::from(i * i)).collect();
        let contender: Vec<f64> = logs.iter().map(|x| (x / 10.0).exp()).collect();
        let eleven = epoch_log_ratio(&[1.0; 11], &contender).unwrap();
        assert!(close(eleven.trimmed(), logs[2..9].iter().sum::<f64>() / 70.0));
    }

    #[test]
    fn a_round_with_a_hole_is_left_out_for_both() {
        let found = epoch_log_ratio(&[10.0, 0.0, f64::NAN, 30.0], &[20.0, 0.0, 7.0, 60.0]).unwrap();
        assert!(close(found.trimmed(), 2.0_f64.ln()));
        assert!(close(found.total(), 2.0_f64.ln()));
    }

    /// Twice as fast, except for one round of six without progress: trimming drops this round, but the total includes it.
    #[test]
    fn a_stall_is_not_left_out() {
        let found = epoch_log_ratio(&[10.0; 6], &[20.0, 20.0, 0.0, 20.0, 20.0, 20.0]).unwrap();
        assert!(close(found.trimmed(), 2.0_f64.ln()));
        assert!(close(found.total(), (100.0_f64 / 60.0).ln()) && !found.is_stalled());
        // Trimming drops none of four rounds, and one of two such rounds in six remains: the totals replace the trimmed mean.
        for rounds in [&[20.0, 20.0, 0.0, 20.0][..], &[20.0, 0.0, 0.0, 20.0, 20.0, 20.0]] {
            let found = epoch_log_ratio(&vec![10.0; rounds.len()], rounds).unwrap();
            let total = rounds.iter().sum::<f64>() / (10.0 * rounds.len() as f64);
            assert!(close(found.trimmed(), total.ln()) && close(found.total(), total.ln()));
            assert!(found.is_stalled());
        }
    }

    #[test]
    fn nothing_usable_is_none() {
        assert_eq!(epoch_log_ratio(&[], &[]), None);
        assert_eq!(epoch_log_ratio(&[0.0, 0.0], &[1.0, 2.0]), None);
        assert_eq!(epoch_log_ratio(&[0.0, 0.0], &[0.0, 0.0]), None);
        assert_eq!(epoch_log_ratio(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(epoch_log_ratio(&[f64::INFINITY], &[1.0]), None);
        assert_eq!(EpochRatio::single(f64::NAN), None);
        assert_eq!(EpochRatio::new(0.0, f64::INFINITY), None);
    }

    #[test]
    fn extreme_values_stay_finite() {
        let found = epoch_log_ratio(&[1e-308, 1e-308], &[1e308, 1.7e308]).unwrap();
        assert!(found.trimmed().is_finite() && found.total().is_finite());
    }

    proptest! {
        #[test]
        fn swapping_mirrors(rounds in prop::collection::vec((0.1_f64..1e6, 0.1_f64..1e6), 1..40)) {
            let (b, c): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
            let there = epoch_log_ratio(&b, &c).unwrap();
            let back = epoch_log_ratio(&c, &b).unwrap();
            prop_assert!(close(there.trimmed(), -back.trimmed()));
            prop_assert!(close(there.total(), -back.total()));
        }

        #[test]
        fn a_common_scale_cancels(
            rounds in prop::collection::vec((0.1_f64..1e6, 0.1_f64..1e6), 1..40), scale in 1e-3_f64..1e3,
        ) {
            let (b, c): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
            let scaled = |v: &[f64]| v.iter().map(|y| y * scale).collect::<Vec<_>>();
            let there = epoch_log_ratio(&b, &c).unwrap();
            let again = epoch_log_ratio(&scaled(&b), &scaled(&c)).unwrap();
            prop_assert!((there.trimmed() - again.trimmed()).abs() < 1e-9);
            prop_assert!((there.total() - again.total()).abs() < 1e-9);
        }
    }
}
