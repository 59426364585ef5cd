//! Group-sequential boundaries: how large |t| must be at each look, so that all looks together have an error rate of at most `alpha`.
//!
//! Owns the spending of alpha over looks and the law of t that turns it into critical values. It must not know
//! epochs, pairs or verdicts; a look is a number of observations.
//!
//! Observations are Gaussian with unknown mean and variance, t = sqrt(n) * mean / sd over the first n. Spending follows
//! Lan and DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70 (1983), with the power family of
//! Kim and DeMets (1987): after n of N observations, alpha * (n/N)^2 is spent. The published tables assume known
//! variance and are too lenient at six observations, so this module computes the law of the t values themselves.
//!
//! Without a true difference, t after n observations depends on the earlier ones only through t after n - 1 of them, because
//! their total sum of squares is independent of every statistic that does not change with the scale (Basu 1955). So the law is
//! computed by recursive numerical integration, as Armitage, McPherson and Rowe, "Repeated significance tests on accumulating
//! data", Journal of the Royal Statistical Society A 132 (1969), do for known variance.

use std::collections::BTreeMap;
use std::f64::consts::{FRAC_PI_2, PI};
use std::sync::{Arc, Mutex, PoisonError};

use crate::student::{two_sided_tail, upper_quantile};

/// Cells of the grid over |t|. Twice as many change no boundary by over 0.1 %.
const CELLS: usize = 160;

/// The grid ends where a single look would go with this chance.
const BEYOND: f64 = 1e-9;

/// Points of the table of an angle's distribution.
const ANGLES: usize = 4096;

/// What each look spends of `alpha`: by a look at n of N observations, alpha * (n/N)^2 is spent. The last look spends all that is left.
///
/// `looks` increases; `max` is the planned number of observations N, at least 1.
pub fn quadratic_spend(looks: &[usize], max: usize, alpha: f64) -> Vec<f64> {
    let mut before = 0.0;
    let part = |(place, &n): (usize, &usize)| {
        let spent = if place + 1 == looks.len() { 1.0 } else { spent_by(n, max) };
        alpha * (spent - std::mem::replace(&mut before, spent))
    };
    looks.iter().enumerate().map(part).collect()
}

/// The fraction of alpha spent by `n` of `max` observations, in [0, 1]: (n/max)^2.
pub fn spent_by(n: usize, max: usize) -> f64 {
    if n >= max { 1.0 } else { (n as f64 / max as f64).powi(2) }
}

/// The law of t over a growing number of observations without a true difference.
#[derive(Debug)]
pub struct SequentialT {
    /// Degrees of freedom with which the variance was known before the first observation.
    prior: f64,
    first: usize,
    most: usize,
}

/// The steps that are known already, by the number of observations that each begins with and the bits of the prior. Each takes about a
/// millisecond, and the races of a process mostly need the same.
static KNOWN: Mutex<BTreeMap<(usize, u64), Arc<Step>>> = Mutex::new(BTreeMap::new());

/// The number of steps at which all are forgotten. Each has 200 kB.
const MOST_KNOWN: usize = 500;

/// The chances of going from each cell of |t| to each cell after one more observation.
#[derive(Debug)]
struct Step {
    /// `[from][to]`; what is missing to 1 goes beyond the grid.
    chances: Vec<[f64; CELLS]>,
}

impl SequentialT {
    /// For looks from `first` observations, at least 2, to `most`. `prior`, at least 0, counts the degrees of freedom of what other observations
    /// tell about the variance. sd^2 is then the mean of their variance and of these observations' own, weighted by degrees of freedom.
    ///
    /// # Panics
    /// If `first` is under 2.
    pub fn new(first: usize, most: usize, prior: f64) -> Self {
        assert!(first >= 2, "a spread takes two observations, found a look at {first}");
        Self { prior, first, most }
    }

    /// The critical values of |t| that spend `spend[i]` (a probability, not a fraction of one) at the look after `looks[i]` observations.
    ///
    /// `looks` strictly increases within the range given to [`Self::new`]. The value of a look is the quantile of |t| among the paths that
    /// no earlier look has stopped. It is infinite at a look that spends nothing.
    ///
    /// # Panics
    /// If the looks do not strictly increase, or leave the range.
    pub fn boundaries(&self, looks: &[usize], spend: &[f64]) -> Vec<f64> {
        let increase = looks.windows(2).all(|pair| pair[0] < pair[1]);
        let within = looks.iter().all(|n| (self.first..=self.most).contains(n));
        assert!(increase && within, "looks must strictly increase within the range, found {looks:?}");
        let mut walk = Vec::<f64>::new();
        let (mut at, mut critical) = (0, Vec::new());
        for (&n, &spend) in looks.iter().zip(spend) {
            if walk.is_empty() {
                (walk, at) = (self.start(n), n);
            }
            while at < n {
                walk = self.step(at).walked(&walk);
                at += 1;
            }
            // No look asks more than a single test at its level would.
            let most = upper_quantile(spend / 2.0, self.degrees(n));
            critical.push(match spend > 0.0 && !critical.is_empty() {
                true => self.stop_at(&walk, n, spend).min(most),
                false => most,
            });
            stop(&mut walk, spend);
        }
        critical
    }

    /// Degrees of freedom of t after `n` observations.
    fn degrees(&self, n: usize) -> f64 {
        self.prior + n as f64 - 1.0
    }

    /// A cell's width after `n` observations. The grid divides atan(|t| / sqrt(degrees)), which has no end where t has none.
    fn width(&self, n: usize) -> f64 {
        let degrees = self.degrees(n);
        (upper_quantile(BEYOND, degrees) / degrees.sqrt()).atan() / CELLS as f64
    }

    /// The distribution of |t| over the cells after `n` observations, without any look before.
    fn start(&self, n: usize) -> Vec<f64> {
        let (width, degrees) = (self.width(n), self.degrees(n));
        let tail = |edge: usize| two_sided_tail((edge as f64 * width).tan() * degrees.sqrt(), degrees);
        (0..CELLS).map(|cell| tail(cell) - tail(cell + 1)).collect()
    }

    fn step(&self, n: usize) -> Arc<Step> {
        // Ignores poisoning: steps are inserted whole, so that a panic elsewhere cannot have left a wrong one.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let question = (n, self.prior.to_bits());
        if known.len() >= MOST_KNOWN && !known.contains_key(&question) {
            known.clear();
        }
        let compute = || Arc::new(Step::new(n, self.prior, self.width(n), self.width(n + 1)));
        Arc::clone(known.entry(question).or_insert_with(compute))
    }

    /// The value of |t| that a share `spend` of all paths exceeds, of those that are left.
    fn stop_at(&self, left: &[f64], n: usize, spend: f64) -> f64 {
        let mut beyond = 0.0;
        for (cell, mass) in left.iter().enumerate().rev() {
            if beyond + mass > spend {
                // Tails fall by a constant factor over a short distance.
                let share =
                    if beyond > 0.0 { (spend / beyond).ln() / (mass / beyond).ln_1p() } else { spend / mass };
                return ((cell as f64 + 1.0 - share) * self.width(n)).tan() * self.degrees(n).sqrt();
            }
            beyond += mass;
        }
        0.0
    }
}

/// Stops the share `spend` of all paths: those that are farthest out.
fn stop(left: &mut [f64], mut spend: f64) {
    for mass in left.iter_mut().rev() {
        let stopped = mass.min(spend);
        *mass -= stopped;
        spend -= stopped;
    }
}

impl Step {
    /// From `n` observations to one more. With T the sum of all squares, that of the prior included, and S the sum of the observations,
    /// r = S / sqrt(n T). The next observation is sqrt(T') sin(phi) and T = T' cos(phi)^2, where phi in (-pi/2, pi/2) has a density
    /// proportional to cos(phi)^(prior + n - 1) and is independent of r. So r' = (r sqrt(n) cos(phi) + sin(phi)) / sqrt(n + 1).
    fn new(n: usize, prior: f64, from: f64, to: f64) -> Self {
        let angle = Angle::new(prior + n as f64 - 1.0);
        let edges: Vec<f64> =
            (1..=CELLS).map(|edge| (edge as f64 * to).sin() * (n as f64 + 1.0).sqrt()).collect();
        let row = |cell: usize| {
            let x = ((cell as f64 + 0.5) * from).sin() * (n as f64).sqrt();
            let (reach, centre) = (x.hypot(1.0), 1.0_f64.atan2(x));
            // x cos(phi) + sin(phi) = reach * cos(phi - centre).
            let between = |around: f64| angle.below(centre + around) - angle.below(centre - around);
            let tail = |value: f64| {
                let share = value / reach;
                if share >= 1.0 {
                    return 0.0;
                }
                let around = share.acos();
                between(around) + 1.0 - between(PI - around)
            };
            let mut before = 1.0;
            std::array::from_fn(|cell| {
                let after = tail(edges[cell]);
                let mass = (before - after).max(0.0);
                before = after;
                mass
            })
        };
        Self { chances: (0..CELLS).map(row).collect() }
    }

    fn walked(&self, from: &[f64]) -> Vec<f64> {
        let mut to = vec![0.0; CELLS];
        for (mass, chances) in from.iter().zip(&self.chances).filter(|(mass, _)| **mass > 0.0) {
            to.iter_mut().zip(chances).for_each(|(sum, chance)| *sum += mass * chance);
        }
        to
    }
}

/// The distribution of an angle in (-pi/2, pi/2) whose density is proportional to a power of its cosine.
struct Angle {
    /// P(angle <= x) at equal steps from 0 to pi/2.
    below: Vec<f64>,
}

impl Angle {
    fn new(power: f64) -> Self {
        let step = FRAC_PI_2 / ANGLES as f64;
        let density = |at: f64| (at * step).cos().max(0.0).powf(power);
        let (mut below, mut left) = (vec![0.0], 1.0);
        for cell in 0..ANGLES {
            let right = density(cell as f64 + 1.0);
            // Simpson's rule.
            let mass = left + 4.0 * density(cell as f64 + 0.5) + right;
            below.push(below[cell] + mass);
            left = right;
        }
        let half = below[ANGLES];
        below.iter_mut().for_each(|sum| *sum = 0.5 + 0.5 * *sum / half);
        Self { below }
    }

    fn below(&self, angle: f64) -> f64 {
        let place = angle.abs().min(FRAC_PI_2) / FRAC_PI_2 * ANGLES as f64;
        let cell = (place as usize).min(ANGLES - 1);
        let share = place - cell as f64;
        let below = self.below[cell] + share * (self.below[cell + 1] - self.below[cell]);
        if angle < 0.0 { 1.0 - below } else { below }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{ChiSquared, Distribution, StandardNormal};
    use std::sync::LazyLock;

    const LOOKS: [usize; 6] = [6, 10, 15, 20, 25, 30];

    static LAW: LazyLock<SequentialT> = LazyLock::new(|| SequentialT::new(6, 30, 0.0));

    fn standard(alpha: f64) -> Vec<f64> {
        LAW.boundaries(&LOOKS, &quadratic_spend(&LOOKS, 30, alpha))
    }

    #[test]
    fn agrees_with_the_tables_of_the_method() {
        let tables = [
            (0.025, [6.869, 4.322, 3.430, 3.034, 2.787, 2.598]),
            (0.05, [5.893, 3.842, 3.066, 2.701, 2.455, 2.266]),
        ];
        for (alpha, expected) in tables {
            let found = standard(alpha);
            for (value, table) in found.iter().zip(expected) {
                assert!((value / table - 1.0).abs() < 0.005, "alpha {alpha}: {found:?} against {expected:?}");
            }
        }
    }

    /// Draws paths, and counts those that leave the boundaries.
    fn simulated(prior: f64, looks: &[usize], critical: &[f64], paths: usize) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let normal = |rng: &mut ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
        let known = |rng: &mut ChaCha8Rng| match prior > 0.0 {
            true => ChiSquared::new(prior).unwrap().sample(rng),
            false => 0.0,
        };
        let leaves = |rng: &mut ChaCha8Rng| {
            let (mut sum, mut squares) = (0.0, known(rng));
            (1..=looks[looks.len() - 1]).any(|n| {
                let x = normal(rng);
                (sum, squares) = (sum + x, squares + x * x);
                let count = n as f64;
                let variance = (squares - sum * sum / count) / (prior + count - 1.0);
                let at = looks.iter().position(|&look| look == n);
                at.is_some_and(|at| sum.abs() / (count * variance).sqrt() > critical[at])
            })
        };
        (0..paths).filter(|_| leaves(&mut rng)).count() as f64 / paths as f64
    }

    #[test]
    fn spends_exactly_alpha_on_simulated_paths() {
        for (prior, alpha) in [(0.0, 0.025), (0.0, 0.3), (5.5, 0.025), (40.0, 0.1)] {
            let looks = [4, 6, 7, 12];
            let law = SequentialT::new(4, 12, prior);
            let critical = law.boundaries(&looks, &quadratic_spend(&looks, 12, alpha));
            let paths = 200_000;
            let spent = simulated(prior, &looks, &critical, paths);
            let error = (alpha * (1.0 - alpha) / paths as f64).sqrt();
            assert!((spent - alpha).abs() < 3.0 * error, "prior {prior}, alpha {alpha}: {spent}");
        }
    }

    #[test]
    fn smaller_shares_of_alpha_never_narrow_a_boundary() {
        // Holm's step-down depends on this.
        let mut before = vec![0.0; LOOKS.len()];
        for share in 1..=200 {
            let critical = standard(0.025 / f64::from(share));
            for (wider, narrower) in critical.iter().zip(&before) {
                assert!(wider >= narrower, "share {share}: {critical:?} after {before:?}");
            }
            before = critical;
        }
    }

    #[test]
    fn a_single_look_is_plain_student() {
        let one = SequentialT::new(12, 12, 0.0);
        assert_eq!(one.boundaries(&[12], &[0.05]), [upper_quantile(0.025, 11.0)]);
        let late = LAW.boundaries(&[20], &[0.05]);
        assert_eq!(late, [upper_quantile(0.025, 19.0)]);
    }

    /// Without a look before, the recursion must give back Student's own distribution.
    #[test]
    fn the_law_after_many_steps_is_students() {
        for prior in [0.0, 3.0] {
            let law = SequentialT::new(3, 30, prior);
            let found = law.boundaries(&[3, 30], &[0.0, 0.01])[1];
            let expected = upper_quantile(0.005, 29.0 + prior);
            assert!((found / expected - 1.0).abs() < 0.002, "{found} against {expected}");
        }
    }

    #[test]
    fn a_look_that_spends_nothing_stops_nothing() {
        let found = LAW.boundaries(&LOOKS, &[0.0, 0.0, 0.01, 0.0, 0.0, 0.01]);
        assert_eq!(
            found.iter().map(|value| value.is_finite()).collect::<Vec<_>>(),
            [false, false, true, false, false, true]
        );
    }

    #[test]
    fn a_variance_known_beforehand_lowers_the_bar() {
        let of = |prior| SequentialT::new(4, 12, prior).boundaries(&[4, 12], &[0.003, 0.022]);
        let (without, with) = (of(0.0), of(6.0));
        assert!(with.iter().zip(&without).all(|(with, without)| with < without), "{with:?} {without:?}");
        // As for a known variance: of two looks at 5 and 10 of 10, alpha 0.05 spent evenly gives 2.241 and 2.125 (two-sided).
        let known = SequentialT::new(5, 10, 3e3).boundaries(&[5, 10], &[0.025, 0.025]);
        assert!((known[0] - 2.241).abs() < 0.003 && (known[1] - 2.125).abs() < 0.004, "{known:?}");
    }

    proptest! {
        #[test]
        fn quadratic_spending_lowers_the_bar_at_each_look(alpha in 0.001_f64..0.4) {
            let found = standard(alpha);
            prop_assert!(found.windows(2).all(|w| w[0] > w[1]), "{found:?}");
        }
    }
}
