//! Mean, spread and interval of log ratios, and the smallest difference that a race of a given size can detect.
//!
//! Owns fixed-size arithmetic: n values in, an interval out for a critical value that the caller chose. It must not
//! know looks, spending or verdicts.

use crate::student::upper_quantile;

/// The chance with which a race should detect a difference of the size that it calls detectable.
pub const POWER: f64 = 0.9;

/// The largest number of epochs that [`epochs_needed`] returns; beyond it, the result is `None`.
pub const MOST_EPOCHS: usize = 1_000_000;

/// Degrees of freedom at which Student's t is practically normal; over [`MOST_EPOCHS`].
const MANY_DEGREES: f64 = 1e9;

/// Size, mean and standard deviation of a sample, in the unit of the values: here natural logs of ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The number of values; at least one.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n - 1 in the denominator; `None` for a single value. Exactly 0 if all values are equal.
    pub sd: Option<f64>,
    /// Degrees of freedom of `sd`: n - 1, or more if other samples tell about it.
    pub degrees: f64,
}

impl Sample {
    /// Summarises `values`; `None` if there are none or if one is not finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        let first = *values.first()?;
        if !values.iter().all(|x| x.is_finite()) {
            return None;
        }
        let n = values.len();
        // Deviations from the first value: for equal values the mean is exact and the spread exactly zero. A plain
        // sum would leave a spread of rounding errors, and a meaningless interval.
        let mean = first + values.iter().map(|x| x - first).sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        let sd = (n > 1).then(|| (squares / (n - 1) as f64).sqrt());
        Some(Self { n, mean, sd, degrees: n as f64 - 1.0 })
    }

    /// Standard error of the mean, sd / sqrt(n); `None` for a single value.
    pub fn standard_error(&self) -> Option<f64> {
        self.sd.map(|sd| sd / (self.n as f64).sqrt())
    }

    /// |t| = (|mean| - `resolution`) / standard error: the evidence against every mean that is at most `resolution` away from zero.
    /// `resolution` is at least 0, in the values' unit. Without variation, the result is infinite for a mean farther away and 0 for a nearer
    /// one. `None` for a single value.
    pub fn abs_t_beyond(&self, resolution: f64) -> Option<f64> {
        let beyond = (self.mean.abs() - resolution).max(0.0);
        self.standard_error().map(|se| if beyond == 0.0 { 0.0 } else { beyond / se })
    }

    /// mean +- `critical` * standard error; `critical` in standard errors, positive. `None` for a single value.
    pub fn interval(&self, critical: f64) -> Option<LogInterval> {
        self.standard_error().map(|se| LogInterval::around(self.mean, critical, se))
    }

    /// The ordinary t interval at level `alpha` (two-sided), for a sample size that was fixed in advance. `None` for a
    /// single value.
    pub fn t_interval(&self, alpha: f64) -> Option<LogInterval> {
        self.interval(upper_quantile(alpha / 2.0, self.degrees))
    }
}

/// An interval of the natural log of a ratio. Never NaN; `low <= high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogInterval {
    /// Lower end, natural log.
    pub low: f64,
    /// Upper end, natural log.
    pub high: f64,
}

impl LogInterval {
    /// `estimate` +- `critical` * `standard_error`; `critical` in standard errors, positive. Without a standard error it is the estimate
    /// itself, even with an infinite critical value.
    pub fn around(estimate: f64, critical: f64, standard_error: f64) -> Self {
        let half = if standard_error == 0.0 { 0.0 } else { critical * standard_error };
        Self { low: estimate - half, high: estimate + half }
    }

    /// Whether there is a difference: 0 (a ratio of one) lies outside.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// Whether the whole interval lies strictly between `-margin_ln` and `margin_ln`.
    pub fn is_within(&self, margin_ln: f64) -> bool {
        -margin_ln < self.low && self.high < margin_ln
    }

    /// Moves both ends out by `resolution` (at least 0), for values that may all be off by it in the same direction.
    #[must_use]
    pub fn widened(self, resolution: f64) -> Self {
        Self { low: self.low - resolution, high: self.high + resolution }
    }

    /// Both ends as ratios; `None` for an end beyond a float.
    pub fn as_ratios(&self) -> (Option<f64>, Option<f64>) {
        let ratio = |ln: f64| Some(ln.exp()).filter(|r| r.is_finite());
        (ratio(self.low), ratio(self.high))
    }
}

/// The smallest ratio (over 1) that n epochs with this spread detect with a chance of 90 %:
/// exp((t_{1-alpha/2,d} + t_{0.9,d}) * sd / sqrt(n)), with d = n - 1 + `known` degrees of freedom.
///
/// `sd` of the log ratios, at least 0; `alpha` two-sided; `known`: degrees of freedom of what other pairs tell about `sd`.
/// `None` for n < 2, for an sd that is not a number of at least 0, or if the ratio is beyond a float. This is the usual sample-size formula, with t in place of normal quantiles. It assumes
/// one look at n epochs: the detectable difference of a group-sequential race is about a tenth larger.
pub fn detectable_ratio(sd: f64, n: usize, alpha: f64, known: f64) -> Option<f64> {
    let ratio = detectable_ln(sd, n, alpha, known)?.exp();
    ratio.is_finite().then_some(ratio)
}

/// The fewest epochs (at least 2) whose detectable ratio is no larger than exp(`margin_ln`).
///
/// With this number of epochs, each of these has a chance of 90 %: a difference as large as the margin is detected, and an interval
/// without a true difference fits in the margin. `None` if the result is over [`MOST_EPOCHS`], or for an invalid margin or sd.
pub fn epochs_needed(sd: f64, alpha: f64, margin_ln: f64) -> Option<usize> {
    if !(sd >= 0.0 && margin_ln > 0.0) {
        return None;
    }
    let enough = |n: usize| detectable_ln(sd, n, alpha, 0.0).is_some_and(|seen| seen <= margin_ln);
    // The number for a known spread is at most the right one, because t quantiles lie above the normal ones.
    let known = normal_quantiles(alpha) * sd / margin_ln;
    if known.is_nan() || known * known >= MOST_EPOCHS as f64 {
        return None;
    }
    let (mut short, mut step) = (((known * known) as usize).max(2) - 1, 1);
    while !enough(short + step) {
        short += step;
        step *= 2;
        if short >= MOST_EPOCHS {
            return None;
        }
    }
    let mut reached = short + step;
    while reached - short > 1 {
        let middle = short + (reached - short) / 2;
        if enough(middle) { reached = middle } else { short = middle }
    }
    Some(reached)
}

/// z_{1-alpha/2} + z_{0.9}: the limit of [`detectable_ln`]'s quantiles for many epochs.
fn normal_quantiles(alpha: f64) -> f64 {
    upper_quantile(alpha / 2.0, MANY_DEGREES) + upper_quantile(1.0 - POWER, MANY_DEGREES)
}

fn detectable_ln(sd: f64, n: usize, alpha: f64, known: f64) -> Option<f64> {
    let degrees = n.checked_sub(1).filter(|&degrees| degrees > 0)? as f64 + known;
    if !(sd >= 0.0 && sd.is_finite()) {
        return None;
    }
    let quantiles = upper_quantile(alpha / 2.0, degrees) + upper_quantile(1.0 - POWER, degrees);
    Some(if sd == 0.0 { 0.0 } else { quantiles * sd / (n as f64).sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hand_computed_interval() {
        // 1..5: mean 3, sd sqrt(2.5), t_{0.975,4} = 2.776445.
        let sample = Sample::of(&[4.0, 1.0, 5.0, 2.0, 3.0]).unwrap();
        assert_eq!((sample.n, sample.mean), (5, 3.0));
        assert!((sample.sd.unwrap() - 2.5_f64.sqrt()).abs() < 1e-15);
        let interval = sample.t_interval(0.05).unwrap();
        let half = 2.776_445_105 * (0.5_f64).sqrt();
        assert!((interval.low - (3.0 - half)).abs() < 1e-8);
        assert!((interval.high - (3.0 + half)).abs() < 1e-8);
    }

    #[test]
    fn equal_values_have_no_spread_at_all() {
        let sample = Sample::of(&[0.1; 7]).unwrap();
        assert_eq!((sample.mean, sample.sd), (0.1, Some(0.0)));
        assert_eq!(sample.abs_t_beyond(0.0), Some(f64::INFINITY));
        assert_eq!(sample.interval(f64::INFINITY), Some(LogInterval { low: 0.1, high: 0.1 }));
        assert_eq!(Sample::of(&[0.0; 3]).unwrap().abs_t_beyond(0.0), Some(0.0));
    }

    #[test]
    fn what_is_no_farther_than_the_resolution_is_no_evidence() {
        let sample = Sample::of(&[0.2; 4]).unwrap();
        assert_eq!([sample.abs_t_beyond(0.2), sample.abs_t_beyond(0.3)], [Some(0.0); 2]);
        assert_eq!(sample.abs_t_beyond(0.1), Some(f64::INFINITY));
        let varied = Sample::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((varied.abs_t_beyond(1.0).unwrap() - 3.0_f64.sqrt()).abs() < 1e-12);
        let interval = varied.interval(1.0).unwrap();
        let wider = interval.widened(0.5);
        assert_eq!((wider.low, wider.high), (interval.low - 0.5, interval.high + 0.5));
    }

    #[test]
    fn too_little_to_say() {
        assert_eq!(Sample::of(&[]), None);
        assert_eq!(Sample::of(&[1.0, f64::NAN]), None);
        let one = Sample::of(&[1.0]).unwrap();
        assert_eq!((one.sd, one.abs_t_beyond(0.0), one.t_interval(0.05)), (None, None, None));
        assert_eq!(detectable_ratio(0.01, 1, 0.05, 0.0), None);
        assert_eq!(epochs_needed(10.0, 0.025, 0.001), None);
        assert_eq!(epochs_needed(0.01, 0.025, 0.0), None);
        assert_eq!(epochs_needed(f64::NAN, 0.025, 0.03), None);
        assert_eq!(epochs_needed(0.0, 0.025, 0.03), Some(2));
    }

    #[test]
    fn detectable_ratio_by_hand() {
        // n = 30, alpha 0.05: t_{0.975,29} = 2.045230, t_{0.9,29} = 1.311434.
        let expected = ((2.045_230 + 1.311_434) * 0.04 / 30.0_f64.sqrt()).exp();
        assert!((detectable_ratio(0.04, 30, 0.05, 0.0).unwrap() - expected).abs() < 1e-7);
        assert_eq!(detectable_ratio(0.0, 2, 0.05, 0.0), Some(1.0));
    }

    #[test]
    fn an_interval_back_transformed() {
        let (low, high) = LogInterval { low: -0.01, high: 800.0 }.as_ratios();
        assert_eq!((low, high), (Some((-0.01_f64).exp()), None));
    }

    proptest! {
        #[test]
        fn epochs_needed_is_the_smallest_that_suffices(sd in 0.0001_f64..3.0, alpha in 0.001_f64..0.2) {
            let margin = 1.03_f64.ln();
            let n = epochs_needed(sd, alpha, margin).unwrap();
            prop_assert!(n >= 2);
            prop_assert!(detectable_ratio(sd, n, alpha, 0.0).unwrap().ln() <= margin * (1.0 + 1e-9));
            if n > 2 {
                prop_assert!(detectable_ratio(sd, n - 1, alpha, 0.0).is_none_or(|r| r.ln() > margin * (1.0 - 1e-9)));
            }
        }
    }
}
