//! Quantiles of latency compared between contenders: one ratio per epoch, and when a quantile may be spoken of at all.
//!
//! Owns the guard on the number of requests beyond a quantile, the log ratio of an epoch's two quantiles, its pooling
//! over epochs and the quantile of merged counts. It must not know histograms' formats, units or how a verdict is taken:
//! [`EpochRatio`]s go to the referee like those of any other metric.
//!
//! The epoch is the replicate (method, section 2): y = ln(quantile) of all requests of a contender in an epoch, and
//! d = y_contender - y_baseline. The interval over epochs is that of d, so that no assumption on the distribution of
//! latencies, or on requests being independent, enters it.

use thiserror::Error;

use crate::interval::{LogInterval, Sample};
use crate::ratio::EpochRatio;

/// A percentile is shown only with at least so many requests beyond it (method, section 5). The number beyond is about
/// Poisson, so that the rank of the quantile is known within 10 % of the requests beyond it.
pub const BEYOND: f64 = 100.0;

/// Room for the rounding of `count * (1 - q)`: 10,000 requests are enough for 0.99.
const ROUNDING: f64 = 1e-6;

/// How many of `count` requests lie beyond the quantile `q`, in [0, 1].
pub fn beyond(count: u64, q: f64) -> f64 {
    count as f64 * (1.0 - q)
}

/// Whether `count` requests are enough to speak of their quantile `q`: at least [`BEYOND`] lie beyond it. Never for a
/// `q` outside (0, 1).
pub fn enough(count: u64, q: f64) -> bool {
    is_quantile(q) && beyond(count, q) >= BEYOND - ROUNDING
}

/// The fewest requests that are [`enough`] for `q`; `None` outside (0, 1).
pub fn requests_needed(q: f64) -> Option<u64> {
    is_quantile(q).then(|| ((BEYOND - ROUNDING) / (1.0 - q)).ceil() as u64)
}

fn is_quantile(q: f64) -> bool {
    q > 0.0 && q < 1.0
}

/// A quantile of one contender in one epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpochQuantile {
    /// How many requests it is taken from.
    pub count: u64,
    /// Its value in any unit, the same for both contenders; positive.
    pub value: f64,
}

/// Which side of a pair is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// What is compared against.
    Baseline,
    /// What is compared.
    Contender,
}

/// Quantiles that cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum QuantileError {
    /// There is no such quantile.
    #[error("the quantile is {found}; choose one over 0 and under 1, such as 0.99")]
    Quantile {
        /// As given.
        found: f64,
    },
    /// The two sides are not the same epochs.
    #[error("the baseline has {baseline} epochs and the contender {contender}; both must have been in each")]
    Unequal {
        /// The baseline's number of epochs.
        baseline: usize,
        /// That of the contender.
        contender: usize,
    },
    /// Too few requests in an epoch for this quantile.
    #[error(
        "epoch {epoch} of the {side:?} has {count} requests where the quantile {q} takes {needed}; measure longer, raise \
         the rate or ask for a lower quantile"
    )]
    TooFew {
        /// Index of the epoch.
        epoch: usize,
        /// Whose.
        side: Side,
        /// How many requests there are.
        count: u64,
        /// The quantile.
        q: f64,
        /// How many it takes.
        needed: u64,
    },
    /// A value that has no logarithm.
    #[error("epoch {epoch} of the {side:?} has a quantile of {found}; it must be positive and finite")]
    Value {
        /// Index of the epoch.
        epoch: usize,
        /// Whose.
        side: Side,
        /// As given.
        found: f64,
    },
}

/// One epoch: the log ratio of the contender's quantile to the baseline's, as the epoch's only value. `None` unless both
/// are positive and finite. Whether there were enough requests is asked elsewhere: see [`enough`] and [`epoch_ratios`].
pub fn epoch_ratio(baseline: f64, contender: f64) -> Option<EpochRatio> {
    let usable = |y: f64| y.is_finite() && y > 0.0;
    (usable(baseline) && usable(contender)).then(|| EpochRatio::single(contender.ln() - baseline.ln()))?
}

/// All epochs of a pair at the quantile `q`, for the referee.
///
/// # Errors
/// If an epoch cannot be compared. No epoch is left out quietly: too few requests depend on what was measured (a slow
/// contender answers fewer in a closed loop), and epochs picked by their outcome are no sample.
pub fn epoch_ratios(
    q: f64,
    baseline: &[EpochQuantile],
    contender: &[EpochQuantile],
) -> Result<Vec<EpochRatio>, QuantileError> {
    let needed = requests_needed(q).ok_or(QuantileError::Quantile { found: q })?;
    if baseline.len() != contender.len() {
        return Err(QuantileError::Unequal { baseline: baseline.len(), contender: contender.len() });
    }
    let value = |epoch: usize, side: Side, one: &EpochQuantile| {
        if !enough(one.count, q) {
            return Err(QuantileError::TooFew { epoch, side, count: one.count, q, needed });
        }
        let usable = one.value.is_finite() && one.value > 0.0;
        if usable { Ok(one.value) } else { Err(QuantileError::Value { epoch, side, found: one.value }) }
    };
    let ratio = |(epoch, (baseline, contender)): (usize, (&EpochQuantile, &EpochQuantile))| {
        let baseline = value(epoch, Side::Baseline, baseline)?;
        let found = value(epoch, Side::Contender, contender)?;
        // Two positive floats always have a log ratio.
        epoch_ratio(baseline, found).ok_or(QuantileError::Value { epoch, side: Side::Contender, found })
    };
    baseline.iter().zip(contender).enumerate().map(ratio).collect()
}

/// A ratio over epochs, with its interval. All numbers are positive; `low <= ratio <= high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    /// Contender / baseline: exp of the mean over epochs of the log ratio, so the geometric mean of the epochs' ratios.
    pub ratio: f64,
    /// Its interval, natural log.
    pub interval: LogInterval,
    /// Standard deviation of the log ratio between epochs.
    pub sd_log_ratio: f64,
    /// Over how many epochs.
    pub epochs: usize,
}

/// Pools epochs: mean(d) +- `critical` * s_d / sqrt(n), back-transformed.
///
/// `critical` in standard errors: a look's boundary ([`crate::Referee::boundaries`]) in a race that is looked at as it
/// runs, else the t quantile ([`crate::student::two_sided_quantile`]). `None` with fewer than two epochs, or where the
/// ratio is beyond a float.
pub fn pooled(epochs: &[EpochRatio], critical: f64) -> Option<Pooled> {
    let logs: Vec<f64> = epochs.iter().map(|one| one.trimmed()).collect();
    let sample = Sample::of(&logs)?;
    let (interval, sd_log_ratio) = (sample.interval(critical)?, sample.sd?);
    let ratio = sample.mean.exp();
    (ratio.is_finite() && ratio > 0.0).then_some(Pooled { ratio, interval, sd_log_ratio, epochs: sample.n })
}

/// The quantile `q` of counts that were merged over epochs, workers or slices: the smallest value that at least a share
/// of `q` of all requests do not exceed (the nearest rank, Hyndman and Fan's definition 1, The American Statistician 50,
/// 1996).
///
/// `counts` are (value, number of requests) in any order, a value may come more than once. It is what one contender's
/// users met over the whole race, and is shown beside the pooled ratio, never tested: percentiles are not averaged.
/// `None` where there are not [`enough`] requests, or for a value that is not a number.
pub fn of_merged(q: f64, counts: &[(f64, u64)]) -> Option<f64> {
    let all: u64 = counts.iter().map(|one| one.1).sum();
    if !enough(all, q) || counts.iter().any(|one| one.0.is_nan()) {
        return None;
    }
    let mut sorted = counts.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The rank that a share of q is, against the rounding of q * all: 0.99 of 10,000 is the 9,900th.
    let rank = ((q * all as f64 - ROUNDING).ceil() as u64).max(1);
    let mut seen = 0;
    let reaches = |one: &&(f64, u64)| {
        seen += one.1;
        seen >= rank
    };
    sorted.iter().find(reaches).map(|one| one.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::student::two_sided_quantile;
    use proptest::prelude::*;

    fn quantiles(count: u64, values: &[f64]) -> Vec<EpochQuantile> {
        values.iter().map(|&value| EpochQuantile { count, value }).collect()
    }

    #[test]
    fn a_hundred_beyond_are_enough_and_ninety_nine_are_not() {
        for (q, needed) in [(0.5, 200), (0.9, 1_000), (0.99, 10_000), (0.999, 100_000), (0.9999, 1_000_000)] {
            assert!(enough(needed, q) && !enough(needed - 1, q), "{q}");
            assert_eq!(requests_needed(q), Some(needed));
        }
        for q in [0.0, 1.0, -0.5, 1.5, f64::NAN] {
            assert!(!enough(u64::MAX, q) && requests_needed(q).is_none(), "{q}");
        }
    }

    #[test]
    fn epochs_by_hand() {
        let found =
            epoch_ratios(0.99, &quantiles(10_000, &[2.0, 4.0]), &quantiles(10_000, &[4.0, 4.0])).unwrap();
        let logs: Vec<f64> = found.iter().map(|one| one.trimmed()).collect();
        assert!((logs[0] - 2.0_f64.ln()).abs() < 1e-15 && logs[1] == 0.0);
        // Mean ln(2)/2, sd ln(2)/sqrt(2), standard error ln(2)/2.
        let critical = two_sided_quantile(0.05, 1);
        let all = pooled(&found, critical).unwrap();
        assert!((all.ratio - 2.0_f64.sqrt()).abs() < 1e-12 && all.epochs == 2);
        let half = critical * 2.0_f64.ln() / 2.0;
        assert!((all.interval.high - (2.0_f64.ln() / 2.0 + half)).abs() < 1e-12);
        assert!((all.sd_log_ratio - 2.0_f64.ln() / 2.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(pooled(&found[..1], critical), None);
        assert_eq!(pooled(&[], critical), None);
    }

    #[test]
    fn what_cannot_be_compared_is_named() {
        let good = quantiles(10_000, &[1.0, 1.0]);
        let mut few = good.clone();
        few[1].count = 9_999;
        let expected =
            QuantileError::TooFew { epoch: 1, side: Side::Contender, count: 9_999, q: 0.99, needed: 10_000 };
        assert_eq!(epoch_ratios(0.99, &good, &few), Err(expected));
        assert!(
            expected.to_string().contains("9999") && expected.to_string().contains("10000"),
            "{expected}"
        );
        assert!(epoch_ratios(0.9, &good, &few).is_ok());
        let zero = quantiles(10_000, &[0.0, 1.0]);
        let wrong = |side| QuantileError::Value { epoch: 0, side, found: 0.0 };
        assert_eq!(epoch_ratios(0.99, &zero, &good), Err(wrong(Side::Baseline)));
        assert_eq!(epoch_ratios(0.99, &good, &zero), Err(wrong(Side::Contender)));
        let unequal = QuantileError::Unequal { baseline: 2, contender: 1 };
        assert_eq!(epoch_ratios(0.99, &good, &good[..1]), Err(unequal));
        assert_eq!(epoch_ratios(1.0, &good, &good), Err(QuantileError::Quantile { found: 1.0 }));
        assert_eq!((epoch_ratio(0.0, 1.0), epoch_ratio(1.0, f64::INFINITY)), (None, None));
    }

    #[test]
    fn merged_counts_by_hand() {
        // 900 at 1 ms, 100 at 5 ms, from two epochs: the 900th of 1,000 is still 1 ms, the 901st is not.
        let counts = [(5.0, 60), (1.0, 450), (5.0, 40), (1.0, 450)];
        assert_eq!(of_merged(0.9, &counts), Some(1.0));
        assert_eq!(of_merged(0.5, &counts), Some(1.0));
        assert_eq!(of_merged(0.9, &[(1.0, 899), (5.0, 101)]), Some(5.0));
        assert_eq!(of_merged(0.91, &counts), None);
        assert_eq!(of_merged(0.5, &[]), None);
        assert_eq!(of_merged(0.5, &[(f64::NAN, 1_000)]), None);
    }

    proptest! {
        #[test]
        fn merging_is_the_quantile_of_all_values(
            values in prop::collection::vec(1_u32..50, 400..900), q in 0.05_f64..0.75, parts in 1_usize..5,
        ) {
            let counts: Vec<(f64, u64)> = values
                .chunks(values.len() / parts)
                .flat_map(|part| (1..50).map(|v| (f64::from(v), part.iter().filter(|x| **x == v).count() as u64)))
                .collect();
            let found = of_merged(q, &counts).unwrap();
            let share = |holds: &dyn Fn(f64) -> bool| {
                values.iter().filter(|x| holds(f64::from(**x))).count() as f64 / values.len() as f64
            };
            prop_assert!(share(&|x| x <= found) >= q - 1e-6 && share(&|x| x < found) < q);
        }

        #[test]
        fn swapping_the_sides_mirrors(raw in prop::collection::vec((0.01_f64..1e4, 0.01_f64..1e4), 2..30)) {
            let (b, c): (Vec<f64>, Vec<f64>) = raw.into_iter().unzip();
            let (b, c) = (quantiles(200, &b), quantiles(200, &c));
            let there = pooled(&epoch_ratios(0.5, &b, &c).unwrap(), 2.0).unwrap();
            let back = pooled(&epoch_ratios(0.5, &c, &b).unwrap(), 2.0).unwrap();
            prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
            prop_assert!((there.interval.low + back.interval.high).abs() < 1e-9);
        }
    }
}
