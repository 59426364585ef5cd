//! Group-sequential boundaries: how large |t| must be at each look, so that all looks together have an error rate of at most `alpha`.
//!
//! Owns the spending of alpha over looks and the simulation that turns it into critical values. It must not know
//! epochs, pairs or verdicts; a look is a number of observations.
//!
//! Observations are Gaussian with unknown mean and variance, t = sqrt(n) * mean / sd over the first n. Spending follows
//! Lan and DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70 (1983), with the power family of
//! Kim and DeMets (1987): after n of N observations, alpha * (n/N)^2 is spent. The published tables assume known
//! variance and are too lenient at six observations, so this module simulates the paths of t themselves. The first look needs no
//! simulation (Student's t is exact), and the Bonferroni bound, which is exact too, caps every later look.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use crate::student::two_sided_quantile;

/// The default number of paths. The boundaries then have a standard error of 0.4 % at the second look and of
/// at most 0.2 % at later ones.
pub const DEFAULT_PATHS: usize = 1 << 20;

/// Fewer paths than this in a tail do not determine its quantile; the Bonferroni bound replaces it.
const RESOLVED: f64 = 400.0;

/// The paths kept at each look reach further into the centre than `tail` by this factor, to allow for the noise of the simulation.
const SLACK: f64 = 1.3;

/// The fraction of alpha that is spent by each look: (n/N)^2.
///
/// `max` is the planned number of observations N, at least 1; a look beyond it has spent all.
pub fn quadratic_spend(looks: &[usize], max: usize) -> Vec<f64> {
    looks.iter().map(|&n| spent_by(n, max)).collect()
}

/// The fraction of alpha spent by `n` of `max` observations, in [0, 1]: (n/max)^2.
pub fn spent_by(n: usize, max: usize) -> f64 {
    if n >= max { 1.0 } else { (n as f64 / max as f64).powi(2) }
}

/// Critical values for |t|, one for each look.
#[derive(Debug, Clone, PartialEq)]
pub struct Boundaries {
    looks: Vec<usize>,
    critical: Vec<f64>,
}

impl Boundaries {
    /// The critical values, in the order of the looks. Positive; infinite at a look that spends nothing.
    pub fn values(&self) -> &[f64] {
        &self.critical
    }

    /// The critical value at the look after `n` observations; `None` if there is no such look.
    pub fn at(&self, n: usize) -> Option<f64> {
        self.looks.iter().position(|&look| look == n).map(|k| self.critical[k])
    }
}

/// Simulated paths of |t| without a true difference; only the outer tail at each look is kept.
#[derive(Debug, Clone)]
pub struct Paths {
    looks: Vec<usize>,
    count: usize,
    tail: f64,
    /// For each look, (|t|, path) with the largest |t| first.
    extremes: Vec<Vec<(f64, u32)>>,
}

impl Paths {
    /// Draws `count` paths and takes looks at each after `looks` observations. The same arguments give the same paths.
    ///
    /// `looks` strictly increasing from at least 2; `count` at most 2^32; `tail` in (0, 1] is the largest alpha for
    /// [`Self::boundaries`] (for a larger alpha, the boundaries are too wide, never too narrow).
    ///
    /// # Panics
    /// If the looks do not strictly increase from at least 2.
    pub fn simulate(looks: &[usize], seed: u64, count: usize, tail: f64) -> Self {
        let increase =
            looks.first().is_none_or(|&n| n >= 2) && looks.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(increase, "looks must strictly increase from at least 2, found {looks:?}");
        let count = count.min(u32::MAX as usize);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let steps = steps(looks, (tail * SLACK).min(1.0));
        let mut extremes: Vec<Vec<(f64, u32)>> = vec![Vec::new(); steps.len()];
        for path in 0..count as u32 {
            let mut sums = Moments::default();
            for (step, kept) in steps.iter().zip(&mut extremes) {
                sums.add(step, &mut rng);
                let squared = sums.t_squared();
                if squared >= step.keep_squared {
                    kept.push((squared.sqrt(), path));
                }
            }
        }
        for kept in &mut extremes {
            kept.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        Self { looks: looks.to_vec(), count, tail, extremes }
    }

    /// The critical values that spend `alpha` (two-sided) according to `spend`: the fraction of alpha that is spent by
    /// each look, not decreasing, 1 at the last (see [`quadratic_spend`]).
    ///
    /// The value of a look is the quantile of |t| among the paths that no earlier look has stopped, chosen so
    /// that it spends exactly this look's part. Looks without a fraction get no value.
    pub fn boundaries(&self, alpha: f64, spend: &[f64]) -> Boundaries {
        let mut walk = Walk::over(self);
        let mut before = 0.0;
        let mut critical = Vec::with_capacity(spend.len());
        for (look, &spent) in spend.iter().take(self.looks.len()).enumerate() {
            let value = walk.critical(look, alpha * (spent - before).max(0.0));
            walk.stop_beyond(look, value);
            critical.push(value);
            before = spent;
        }
        Boundaries { looks: self.looks[..critical.len()].to_vec(), critical }
    }

    /// The critical value at the last look when the earlier values are fixed as `earlier`, and `increment` of
    /// alpha is left: for an unplanned final look, at a size that does not depend on the data.
    pub fn last_boundary(&self, earlier: &[f64], increment: f64) -> f64 {
        let Some(last) = self.looks.len().checked_sub(1) else { return f64::INFINITY };
        let mut walk = Walk::over(self);
        for (look, &value) in earlier.iter().take(last).enumerate() {
            walk.stop_beyond(look, value);
        }
        walk.critical(last, increment)
    }

    /// The largest alpha that these paths support.
    pub fn tail(&self) -> f64 {
        self.tail
    }
}

/// The random values between two looks: a group's mean and sum of squares, instead of each observation.
struct Step {
    size: f64,
    squares: Option<ChiSquared<f64>>,
    keep_squared: f64,
}

fn steps(looks: &[usize], keep: f64) -> Vec<Step> {
    let mut before = 0;
    let step = |&look: &usize| {
        let size = look - before;
        before = look;
        let squares = if size > 1 { ChiSquared::new((size - 1) as f64).ok() } else { None };
        Step { size: size as f64, squares, keep_squared: two_sided_quantile(keep, look - 1).powi(2) }
    };
    looks.iter().map(step).collect()
}

/// Count, mean and sum of squared deviations of the observations so far.
#[derive(Default)]
struct Moments {
    n: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Adds a group of standard normal observations: its mean and its sum of squares are independent, normal and
    /// chi-squared (Cochran), and are merged by the formula of Chan, Golub and LeVeque (1979).
    fn add(&mut self, step: &Step, rng: &mut ChaCha8Rng) {
        let z: f64 = StandardNormal.sample(rng);
        let within = step.squares.as_ref().map_or(0.0, |chi| chi.sample(rng));
        let delta = z / step.size.sqrt() - self.mean;
        let n = self.n + step.size;
        self.mean += delta * step.size / n;
        self.squares += within + delta * delta * self.n * step.size / n;
        self.n = n;
    }

    fn t_squared(&self) -> f64 {
        self.n * self.mean * self.mean * (self.n - 1.0) / self.squares
    }
}

/// The looks in order, with the paths that earlier looks have stopped.
struct Walk<'a> {
    paths: &'a Paths,
    stopped: Vec<bool>,
}

impl<'a> Walk<'a> {
    fn over(paths: &'a Paths) -> Self {
        Self { paths, stopped: vec![false; paths.count] }
    }

    fn critical(&self, look: usize, increment: f64) -> f64 {
        let bonferroni = two_sided_quantile(increment, self.paths.looks[look] - 1);
        let wanted = increment * self.paths.count as f64;
        if look == 0 || wanted < RESOLVED {
            return bonferroni;
        }
        let running = |&&(_, path): &&(f64, u32)| !self.stopped[path as usize];
        let beyond = self.paths.extremes[look].iter().filter(running).nth(wanted as usize);
        beyond.map_or(bonferroni, |&(t, _)| t.min(bonferroni))
    }

    fn stop_beyond(&mut self, look: usize, critical: f64) {
        for &(_, path) in self.paths.extremes[look].iter().take_while(|(t, _)| *t > critical) {
            self.stopped[path as usize] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    const LOOKS: [usize; 6] = [6, 10, 15, 20, 25, 30];

    /// Simulated once for all tests of this file.
    static PATHS: LazyLock<Paths> = LazyLock::new(|| Paths::simulate(&LOOKS, 1, DEFAULT_PATHS, 0.5));

    fn standard(alpha: f64) -> Boundaries {
        PATHS.boundaries(alpha, &quadratic_spend(&LOOKS, 30))
    }

    #[test]
    fn agrees_with_the_tables_of_the_method() {
        let tables = [
            (0.025, [6.869, 4.322, 3.430, 3.034, 2.787, 2.598]),
            (0.05, [5.893, 3.842, 3.066, 2.701, 2.455, 2.266]),
        ];
        for (alpha, expected) in tables {
            let found = standard(alpha);
            for (value, table) in found.values().iter().zip(expected) {
                assert!((value / table - 1.0).abs() < 0.01, "alpha {alpha}: {found:?} against {expected:?}");
            }
        }
    }

    #[test]
    fn spends_exactly_alpha_on_fresh_paths() {
        let fresh = Paths::simulate(&LOOKS, 2, DEFAULT_PATHS, 0.5);
        for alpha in [0.025, 0.1, 0.3] {
            let critical = standard(alpha);
            let mut walk = Walk::over(&fresh);
            for (look, &value) in critical.values().iter().enumerate() {
                walk.stop_beyond(look, value);
            }
            let spent = walk.stopped.iter().filter(|&&s| s).count() as f64 / fresh.count as f64;
            assert!((spent / alpha - 1.0).abs() < 0.03, "alpha {alpha}, spent {spent}");
        }
    }

    #[test]
    fn smaller_shares_of_alpha_never_narrow_a_boundary() {
        // Holm's step-down depends on this.
        let mut before = vec![0.0; LOOKS.len()];
        for share in 1..=30 {
            let critical = standard(0.025 / f64::from(share));
            for (wider, narrower) in critical.values().iter().zip(&before) {
                assert!(wider >= narrower, "share {share}: {critical:?} after {before:?}");
            }
            before = critical.values().to_vec();
        }
    }

    #[test]
    fn a_tail_too_thin_to_simulate_is_bonferroni() {
        let few = Paths::simulate(&[6, 10], 1, 1000, 0.025);
        let spend = quadratic_spend(&[6, 10], 10);
        let found = few.boundaries(0.025, &spend);
        assert_eq!(found.at(10), Some(two_sided_quantile(0.025 * (1.0 - spend[0]), 9)));
        assert_eq!(found.at(7), None);
    }

    #[test]
    fn a_single_look_is_plain_student() {
        let one = Paths::simulate(&[12], 1, 10, 0.05);
        assert_eq!(one.boundaries(0.05, &[1.0]).values(), &[two_sided_quantile(0.05, 11)]);
        assert_eq!(one.last_boundary(&[], 0.05), two_sided_quantile(0.05, 11));
    }

    #[test]
    fn a_forced_last_look_at_the_planned_one_is_the_planned_one() {
        let planned = standard(0.025);
        let increment = 0.025 * (1.0 - spent_by(25, 30));
        assert_eq!(PATHS.last_boundary(&planned.values()[..5], increment), planned.values()[5]);
    }

    #[test]
    fn a_look_that_spends_nothing_stops_nothing() {
        let found = PATHS.boundaries(0.05, &[0.0, 0.0, 0.5, 0.5, 0.5, 1.0]);
        assert_eq!(&found.values()[..2], &[f64::INFINITY; 2]);
        assert!(found.values()[2].is_finite() && found.values()[4].is_infinite());
    }

    proptest! {
        #[test]
        fn quadratic_spending_lowers_the_bar_at_each_look(alpha in 0.001_f64..0.4) {
            let found = standard(alpha);
            prop_assert!(found.values().windows(2).all(|w| w[0] > w[1]), "{found:?}");
        }
    }
}
