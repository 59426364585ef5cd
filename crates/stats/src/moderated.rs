//! What the pairs of one race tell about each other: how much to expect a pair to vary, and whether epochs follow each other.
//!
//! Owns how a pair's own standard deviation changes by that. It must not know what the pairs are.
//!
//! **Spread.** After four epochs a pair knows its standard deviation with three degrees of freedom, and its interval has to allow for a
//! spread that looks small by luck. The other pairs tell what spread to expect. Source: Smyth, "Linear models and empirical Bayes methods
//! for assessing differential expression in microarray experiments", Statistical Applications in Genetics and Molecular Biology 3 (2004):
//! with a variance s^2 of d degrees of freedom, and an expected one of v with p degrees, (p v + d s^2) / (p + d) has p + d. Smyth
//! estimates p from how much the variances differ. Six pairs cannot tell that, so p is fixed, and small enough that a contender that
//! varies four times as much as the others is claimed to differ no more often than alpha allows (docs/src/simulations.md). From
//! [`ENOUGH`] epochs on, a pair knows its own spread well enough, and that of the others would only blur it.
//!
//! **Order.** If an epoch's ratio is like that of the epoch before, n epochs tell less than n independent ones. With a correlation of r^j
//! between epochs j apart, the mean's variance is (1 + 2 w) / n times that of an epoch, where w is the sum over j of (1 - j/n) r^j, and
//! the epochs' own variance comes out too small by 1 - 2 w / (n - 1): Bayley and Hammersley, "The 'effective' number of independent
//! observations in an autocorrelated time series", Supplement to the Journal of the Royal Statistical Society 8 (1946). Fewer than
//! [`ENOUGH`] epochs do not show r, and it counts as [`UNSEEN`]. From then on it is estimated, without the bias of few values (Marriott and
//! Pope, "Bias in the estimation of autocorrelations", Biometrika 41 (1954)), but cannot be shown to be 0, so it counts as [`LEAST`] at least.

use std::collections::BTreeSet;

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use crate::average::mean;
use crate::interval::Sample;
use crate::serial::{lag1, standard_error};

/// Degrees of freedom of the expected variance, at most.
const MOST_DEGREES: f64 = 4.0;

/// From this number of epochs on, a pair's own values show its spread and whether they follow each other.
pub(crate) const ENOUGH: usize = 8;

/// The correlation that intervals of fewer epochs allow for.
const UNSEEN: f64 = 0.1;

/// The correlation that every interval allows for.
const LEAST: f64 = 0.05;

/// The largest correlation that an interval allows for: with more, there is hardly more than one observation.
const MOST: f64 = 0.6;

/// The largest correction for the bias of few values.
const MOST_CORRECTION: f64 = 1.5;

/// What the pairs of one race tell about each other in one metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shared {
    /// The mean of the pairs' variances.
    pub variance: f64,
    /// The degrees of freedom that this mean is worth to a pair; see [`degrees`].
    pub degrees: f64,
    /// The correlation between successive epochs, the mean over the pairs.
    pub lag1: f64,
}

impl Shared {
    /// From all series of ratios in one metric, of the same epochs. `degrees` is the result of [`degrees`] for their contenders.
    pub fn of(series: &[&[f64]], degrees: f64) -> Self {
        let variance = |values: &&[f64]| Sample::of(values)?.sd.map(|sd| sd * sd);
        Self {
            variance: mean(series.iter().filter_map(variance)).unwrap_or(0.0),
            degrees,
            lag1: mean(series.iter().filter_map(|values| lag1(values))).unwrap_or(0.0),
        }
    }

    /// The sample of a pair with the standard deviation that its interval rests on.
    pub fn applied(&self, own: Sample) -> Sample {
        let Some(sd) = own.sd else { return own };
        let known = known(own.n, self.degrees);
        let degrees = known + own.degrees;
        let variance = (known * self.variance + own.degrees * sd * sd) / degrees;
        let inflation = inflation(own.n, allowed(own.n, self.lag1));
        Sample { sd: Some((variance * inflation).sqrt()), degrees, ..own }
    }
}

/// The degrees of freedom with which pairs of these contenders know each other's spread. None for two contenders: their only pair has no
/// neighbour.
pub fn degrees(pairs: impl Iterator<Item = (usize, usize)>) -> f64 {
    let contenders: BTreeSet<usize> = pairs.flat_map(|(one, other)| [one, other]).collect();
    (contenders.len() as f64 - 2.5).clamp(0.0, MOST_DEGREES)
}

/// The degrees of freedom that count after `n` epochs, of `degrees`: see [`degrees`].
pub fn known(n: usize, degrees: f64) -> f64 {
    if n < ENOUGH { degrees } else { 0.0 }
}

/// The factor by which the interval of a pair without neighbours is usually wider than that of `n` epochs, at least 2, that are known to be
/// independent: for the mean of the correlation that it allows for, if there is none.
pub fn usual_widening(n: usize) -> f64 {
    let (normal, error) = (Normal::standard(), standard_error(n) * correction(n));
    let usual = if n < ENOUGH {
        UNSEEN
    } else {
        LEAST * normal.cdf(LEAST / error) + error * normal.pdf(LEAST / error)
    };
    inflation(n, usual).sqrt()
}

/// The correlation that an interval of `n` epochs allows for if they show `lag1`.
fn allowed(n: usize, lag1: f64) -> f64 {
    if n < ENOUGH { UNSEEN } else { (lag1 * correction(n)).clamp(LEAST, MOST) }
}

/// The mean of an estimate from `n` values is r - (1 + 4 r) / n; `lag1` already lacks the 1 / n.
fn correction(n: usize) -> f64 {
    let n = n as f64;
    if n > 4.0 { (n / (n - 4.0)).min(MOST_CORRECTION) } else { MOST_CORRECTION }
}

/// By how much larger the variance of the mean of `n` values, at least 2, is than their own variance over n.
fn inflation(n: usize, lag1: f64) -> f64 {
    let count = n as f64;
    let sum: f64 = (1..n).map(|apart| (1.0 - apart as f64 / count) * lag1.powi(apart as i32)).sum();
    (1.0 + 2.0 * sum) / (1.0 - 2.0 * sum / (count - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn contenders_count_once_in_however_many_pairs() {
        assert_eq!(degrees([(0, 1)].into_iter()), 0.0);
        assert_eq!(degrees([(0, 1), (0, 2), (1, 2)].into_iter()), 0.5);
        assert_eq!(degrees((1..5).map(|one| (0, one))), 2.5);
        assert_eq!(degrees((1..20).map(|one| (0, one))), 4.0);
    }

    #[test]
    fn a_spread_is_drawn_towards_the_others() {
        let shared = Shared { variance: 4.0, degrees: 4.0, lag1: 0.0 };
        let own = |variance: f64| Sample { n: 4, mean: 1.0, sd: Some(variance.sqrt()), degrees: 3.0 };
        let [small, large] = [0.5, 11.0].map(|variance| shared.applied(own(variance)));
        let ratio = small.sd.unwrap().powi(2) / large.sd.unwrap().powi(2);
        assert!((ratio - (17.5 / 7.0) / 7.0).abs() < 1e-12);
        assert_eq!((small.degrees, small.mean, small.n), (7.0, 1.0, 4));
        let later = shared.applied(Sample { n: 8, degrees: 7.0, ..own(11.0) });
        assert!(
            (later.sd.unwrap().powi(2) / 11.0 - inflation(8, LEAST)).abs() < 1e-12 && later.degrees == 7.0
        );
        let alone = Shared { degrees: 0.0, ..shared }.applied(own(11.0));
        assert!((alone.sd.unwrap().powi(2) / 11.0 - inflation(4, UNSEEN)).abs() < 1e-12);
    }

    #[test]
    fn the_inflation_is_that_of_simulated_series() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (n, lag) in [(4, 0.3), (12, 0.3), (12, 0.1)] {
            let (mut of_mean, mut own) = (0.0, 0.0);
            for _ in 0..40_000 {
                let mut draw = || -> f64 { StandardNormal.sample(&mut rng) };
                let mut x = draw();
                let mut values = vec![x];
                for _ in 1..n {
                    x = lag * x + (1.0_f64 - lag * lag).sqrt() * draw();
                    values.push(x);
                }
                let sample = Sample::of(&values).unwrap();
                of_mean += sample.mean.powi(2);
                own += sample.sd.unwrap().powi(2) / n as f64;
            }
            let seen = of_mean / own;
            assert!((seen / inflation(n, lag) - 1.0).abs() < 0.03, "{n}, {lag}: {seen}");
        }
        assert_eq!(inflation(7, 0.0), 1.0);
    }

    #[test]
    fn an_interval_is_usually_wider_by_a_tenth_to_a_quarter() {
        let found = [2, 4, 12, 30].map(usual_widening);
        assert!(found.iter().all(|wider| (1.05..1.25).contains(wider)), "{found:?}");
        assert_eq!(
            [allowed(7, 0.5), allowed(8, -0.5), allowed(12, 0.2), allowed(12, 0.9)],
            [UNSEEN, LEAST, 0.2 * 1.5, MOST]
        );
    }

    #[test]
    fn a_race_learns_from_all_its_pairs() {
        let series: [&[f64]; 2] = [&[1.0, 2.0, 3.0, 4.0], &[4.0, 4.0, 4.0, 4.0]];
        let shared = Shared::of(&series, 0.5);
        // Equal values have a variance of 0 and no correlation. Of 1 to 4, r is 0.25.
        assert!((shared.variance - 5.0 / 6.0).abs() < 1e-12 && shared.lag1 == 0.5, "{shared:?}");
        assert_eq!(Shared::of(&[], 0.0), Shared { variance: 0.0, degrees: 0.0, lag1: 0.0 });
    }
}
