//! The chance that a race detects a true difference, from its own boundaries.
//!
//! Owns the noncentral t distribution, which `statrs` lacks, and the chance of equivalence, which may end a race earlier. It must not
//! know how boundaries are computed, nor how a chance is used. Observations are Gaussian, as in [`crate::boundary`]; means and margins
//! are in true standard deviations of one observation.

use statrs::distribution::{ContinuousCDF, Normal};

/// The sum over spreads of a sample extends this far from the true spread, in standard errors.
const REACH: f64 = 9.0;
/// Number of steps in that sum.
const STEPS: usize = 1_000;

/// The chance that t of `n` observations with true mean `effect` lies over `critical`; 0 for fewer than two observations.
///
/// t = (Z + sqrt(n) * effect) / S with Z standard normal and, independent of Z, S = sample standard deviation / true standard deviation:
/// the noncentral t distribution (Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions" 2, chapter 31). The chance is
/// the mean over S of the chance of Z > critical * S - sqrt(n) * effect.
pub fn chance_beyond(critical: f64, n: usize, effect: f64) -> f64 {
    let shift = (n as f64).sqrt() * effect;
    over_spreads(n, |spread| Normal::standard().cdf(shift - critical * spread))
}

/// For each look, a lower bound for the chance that a race of one pair has by then found the difference, in the right direction, if the
/// true difference is `effect` (over 0).
///
/// `looks` and `critical` are those of a referee, in the same order. A race ends at the first look that finds a difference or whose
/// interval lies inside `margin`. A look's chance is that of this look alone, less the chances of equivalence at each earlier look. It
/// is a bound because those chances overlap, and because differences found at earlier looks remain. The bound is close unless the
/// margin exceeds the effect.
pub fn chances_by_look(looks: &[usize], critical: &[f64], effect: f64, margin: f64) -> Vec<f64> {
    let mut ended = 0.0;
    let one = |(&n, &critical): (&usize, &f64)| {
        let chance = (chance_beyond(critical, n, effect) - ended).max(0.0);
        ended += chance_of_equivalence(critical, n, effect, margin);
        chance
    };
    looks.iter().zip(critical).map(one).collect()
}

/// The chance that the interval after `n` observations includes 0 and lies inside the margin.
fn chance_of_equivalence(critical: f64, n: usize, effect: f64, margin: f64) -> f64 {
    let (normal, root) = (Normal::standard(), (n as f64).sqrt());
    over_spreads(n, |spread| {
        let half = critical * spread / root;
        let farthest = half.min(margin - half);
        if farthest > 0.0 {
            normal.cdf((farthest - effect) * root) - normal.cdf((-farthest - effect) * root)
        } else {
            0.0
        }
    })
}

/// The mean of `value` over the ratio of the sample's to the true standard deviation for `n` observations, which is distributed as
/// chi / sqrt(n - 1) with n - 1 degrees of freedom.
fn over_spreads(n: usize, value: impl Fn(f64) -> f64) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let degrees = (n - 1) as f64;
    let reach = REACH / (2.0 * degrees).sqrt();
    let low = (1.0 - reach).max(0.0);
    let step = (1.0 + reach - low) / STEPS as f64;
    let (mut sum, mut weights) = (0.0, 0.0);
    for index in 0..STEPS {
        let spread = low + (index as f64 + 0.5) * step;
        // The density of chi, without a factor that cancels between the two sums.
        let weight = ((degrees - 1.0) * spread.ln() - degrees * (spread * spread - 1.0) / 2.0).exp();
        sum += weight * value(spread);
        weights += weight;
    }
    sum / weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::student::upper_quantile;

    #[test]
    fn agrees_with_published_power() {
        // Expected values from R's `power.t.test`: one sample, two-sided at 5 %.
        for (n, effect, expected) in [(10, 1.0, 0.8031), (20, 0.5, 0.5645), (34, 0.5, 0.8078)] {
            let found = chance_beyond(upper_quantile(0.025, n as f64 - 1.0), n, effect);
            assert!((found - expected).abs() < 5e-4, "{n} observations, {effect}: {found}");
        }
    }

    #[test]
    fn without_an_effect_it_is_the_tail_of_student() {
        for n in [4, 12, 30, 1_000, 1_000_000] {
            for tail in [0.3, 0.0125, 0.001] {
                let found = chance_beyond(upper_quantile(tail, n as f64 - 1.0), n, 0.0);
                assert!((found / tail - 1.0).abs() < 1e-6, "{n} observations, {tail}: {found}");
            }
        }
    }

    #[test]
    fn limits_are_sane() {
        assert_eq!(chance_beyond(3.0, 1, 1.0), 0.0);
        assert_eq!(chance_beyond(f64::INFINITY, 6, 1.0), 0.0);
        // A sample without spread: it cannot be called equivalent, because the difference is certain.
        assert_eq!(chances_by_look(&[4, 6], &[9.0, 5.0], f64::INFINITY, f64::INFINITY), [1.0, 1.0]);
        assert_eq!(chances_by_look(&[], &[], 1.0, 1.0), [0.0; 0]);
    }

    #[test]
    fn a_race_that_ends_as_equivalent_tells_nothing_apart_any_more() {
        let (looks, critical) = ([4, 6, 8, 10, 12], [9.1, 5.1, 3.9, 3.3, 2.95]);
        // An effect of 1 % at a spread of 0.6 %, with no margin, a margin of 1 % and a margin of 3 %.
        let effect = 0.01_f64.ln_1p() / 0.006;
        let last = |margin: f64| chances_by_look(&looks, &critical, effect, margin)[4];
        let (never, narrow, wide) = (last(0.0), last(effect), last(0.03_f64.ln_1p() / 0.006));
        assert!(never > 0.98 && narrow > never - 0.02 && narrow < never, "{never} {narrow}");
        assert!(wide < 0.5, "{wide}");
    }
}
