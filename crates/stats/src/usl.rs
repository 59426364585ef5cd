//! The Universal Scalability Law, fitted to throughput over cores or connections: a diagnostic, never a verdict.
//!
//! Owns the fit and what follows from its coefficients. It must not know what the load was made of or how the points
//! were measured.
//!
//! X(N) = lambda * N / (1 + sigma * (N - 1) + kappa * N * (N - 1)): Gunther, "A general theory of computational
//! scalability based on rational functions", arXiv:0808.1431 (2008); "Guerrilla Capacity Planning" (2007), chapters 4 to
//! 6. `sigma` is the share of work that has to wait for its turn, `kappa` the price of keeping all pairs consistent.
//!
//! The fit is least squares of ln X, because the error of a rate grows with the rate. In N/X the law is linear in
//! (1, sigma, kappa) / lambda, which gives the starting point; Levenberg and Marquardt's damped Gauss-Newton steps (Marquardt,
//! SIAM Journal 11, 1963) in (ln lambda, sigma, kappa) give the rest. A projection keeps sigma within 0 and 1 and kappa at
//! 0 or above: a step leaves out a coefficient that is at its bound and would cross it.

use thiserror::Error;

/// The fewest different N for a fit: one more than coefficients.
pub const FEWEST_SIZES: usize = 4;

/// The maximum number of steps; a few are usually enough.
const MOST_STEPS: usize = 500;

/// The fit ends when the relative change of the sum of squares is below this.
const SETTLED: f64 = 1e-15;

/// Damping beyond which no step improves the fit.
const STUCK: f64 = 1e12;

/// A fitted law. All numbers are finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usl {
    /// Throughput of a single core or connection, in the unit of the points.
    pub lambda: f64,
    /// Contention, from 0 to 1: the share of the work that is serial.
    pub sigma: f64,
    /// Coherency, at least 0: the cost of keeping each pair consistent.
    pub kappa: f64,
    /// Share of the variance of ln X that the law explains; `None` if all X are equal. At most 1, and below 0 if the
    /// points do not follow the law at all.
    pub r2: Option<f64>,
}

impl Usl {
    /// Throughput at `n`, in the unit of the points; `n` of at least 1.
    pub fn throughput(&self, n: f64) -> f64 {
        self.lambda * n / load(n, self.sigma, self.kappa)
    }

    /// The N of the highest throughput, sqrt((1 - sigma) / kappa), at least 1. `None` if throughput never falls.
    ///
    /// It is not rounded, and may lie far beyond the points, where it is an extrapolation.
    pub fn peak_n(&self) -> Option<f64> {
        (self.kappa > 0.0)
            .then(|| ((1.0 - self.sigma) / self.kappa).sqrt().max(1.0))
            .filter(|peak| peak.is_finite())
    }
}

/// Why the law cannot be fitted to the points.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum UslError {
    /// A point is out of range.
    #[error(
        "the point N = {n}, X = {x} has no place in a fit; N must be at least 1 and X over 0, both finite"
    )]
    Point {
        /// Cores or connections of the point.
        n: f64,
        /// Throughput of the point.
        x: f64,
    },
    /// Too few different N for three coefficients.
    #[error("there are {found} different N; the law takes at least {FEWEST_SIZES}")]
    TooFew {
        /// The number of different N.
        found: usize,
    },
}

/// Fits the law to `points` of (N, throughput at N). An N may occur more than once; all points have the same weight.
///
/// Measure N = 1 too: without it, lambda of a law with much contention is an extrapolation that the points hardly constrain.
///
/// # Errors
/// If a point is out of range, or if there are fewer than [`FEWEST_SIZES`] different N.
pub fn fit(points: &[(f64, f64)]) -> Result<Usl, UslError> {
    let usable = |p: &(f64, f64)| p.0 >= 1.0 && p.0.is_finite() && p.1 > 0.0 && p.1.is_finite();
    if let Some(&(n, x)) = points.iter().find(|p| !usable(p)) {
        return Err(UslError::Point { n, x });
    }
    let mut sizes: Vec<f64> = points.iter().map(|p| p.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    if sizes.len() < FEWEST_SIZES {
        return Err(UslError::TooFew { found: sizes.len() });
    }
    // With ln X as the data and ln lambda as the level, the scale of X does not matter.
    let logs: Vec<(f64, f64)> = points.iter().map(|p| (p.0, p.1.ln())).collect();
    let found = descend(&logs, start(&logs));
    let mean = logs.iter().map(|p| p.1).sum::<f64>() / logs.len() as f64;
    let all: f64 = logs.iter().map(|p| (p.1 - mean).powi(2)).sum();
    let left = squares(&logs, &found);
    let r2 = (all > 0.0).then(|| 1.0 - left / all);
    Ok(Usl { lambda: found[0].exp(), sigma: found[1], kappa: found[2], r2 })
}

/// The law's denominator: by which factor the work of one takes longer among N.
fn load(n: f64, sigma: f64, kappa: f64) -> f64 {
    1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0)
}

/// ln X of a point minus the law's.
fn residual(point: (f64, f64), [level, sigma, kappa]: &[f64; 3]) -> f64 {
    point.1 - (level + point.0.ln() - load(point.0, *sigma, *kappa).ln())
}

fn squares(points: &[(f64, f64)], at: &[f64; 3]) -> f64 {
    points.iter().map(|&p| residual(p, at).powi(2)).sum()
}

/// The linear form, N/X = (1 + sigma * (N - 1) + kappa * N * (N - 1)) / lambda, by weighted least squares with relative
/// weights; negative coefficients become 0, and the level is adjusted to them.
fn start(points: &[(f64, f64)]) -> [f64; 3] {
    let middle = points.iter().map(|p| p.1 - p.0.ln()).sum::<f64>() / points.len() as f64;
    let mut normal = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for &(n, ln_x) in points {
        let weight = (ln_x - n.ln() - middle).exp();
        let row = [weight, weight * (n - 1.0), weight * n * (n - 1.0)];
        for i in 0..3 {
            right[i] += row[i];
            for j in 0..3 {
                normal[i][j] += row[i] * row[j];
            }
        }
    }
    let solved = solve(normal, right).filter(|s| s[0] > 0.0).unwrap_or([1.0, 0.0, 0.0]);
    let [_, sigma, kappa] = project([0.0, solved[1] / solved[0], solved[2] / solved[0]]);
    let level = points.iter().map(|&p| residual(p, &[0.0, sigma, kappa])).sum::<f64>() / points.len() as f64;
    [level, sigma, kappa]
}

/// The nearest coefficients within their bounds.
fn project([level, sigma, kappa]: [f64; 3]) -> [f64; 3] {
    [level, sigma.clamp(0.0, 1.0), kappa.max(0.0)]
}

/// Takes damped Gauss-Newton steps from `at` until the sum of squares no longer falls.
fn descend(points: &[(f64, f64)], mut at: [f64; 3]) -> [f64; 3] {
    let mut best = squares(points, &at);
    let mut damping = 1e-3;
    for _ in 0..MOST_STEPS {
        let Some(next) = step(points, &at, damping) else { break };
        let found = squares(points, &next);
        if found < best {
            let settled = best - found <= SETTLED * best;
            (at, best, damping) = (next, found, damping / 10.0);
            if settled {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > STUCK {
                break;
            }
        }
    }
    at
}

/// One damped step, projected. `None` if there is no direction left.
fn step(points: &[(f64, f64)], at: &[f64; 3], damping: f64) -> Option<[f64; 3]> {
    let mut normal = [[0.0; 3]; 3];
    let mut downhill = [0.0; 3];
    for &point in points {
        let n = point.0;
        let size = load(n, at[1], at[2]);
        // How the law's ln X changes with each coefficient.
        let slope = [1.0, -(n - 1.0) / size, -n * (n - 1.0) / size];
        let off = residual(point, at);
        for i in 0..3 {
            downhill[i] += slope[i] * off;
            for j in 0..3 {
                normal[i][j] += slope[i] * slope[j];
            }
        }
    }
    for i in 0..3 {
        normal[i][i] *= 1.0 + damping;
        let below = i > 0 && at[i] == 0.0 && downhill[i] <= 0.0;
        let above = i == 1 && at[i] == 1.0 && downhill[i] >= 0.0;
        if below || above {
            (0..3).for_each(|j| (normal[i][j], normal[j][i]) = (0.0, 0.0));
            (normal[i][i], downhill[i]) = (1.0, 0.0);
        }
    }
    let by = solve(normal, downhill)?;
    Some(project([at[0] + by[0], at[1] + by[1], at[2] + by[2]]))
}

/// Solves three normal equations by elimination, the largest pivot first. `None` without a finite solution.
fn solve(mut a: [[f64; 3]; 3], mut b: [f64; 3]) -> Option<[f64; 3]> {
    // The coefficients differ by orders of magnitude (1, N, N * N): scale the matrix to a diagonal of ones.
    let scale = [0, 1, 2].map(|i| a[i][i].sqrt());
    for i in 0..3 {
        b[i] /= scale[i];
        a[i].iter_mut().zip(scale).for_each(|(x, column)| *x /= scale[i] * column);
    }
    for i in 0..3 {
        let pivot = (i..3).max_by(|&p, &q| a[p][i].abs().total_cmp(&a[q][i].abs()))?;
        a.swap(i, pivot);
        b.swap(i, pivot);
        for row in i + 1..3 {
            let factor = a[row][i] / a[i][i];
            let above = a[i];
            a[row].iter_mut().zip(above).skip(i).for_each(|(x, y)| *x -= factor * y);
            b[row] -= factor * b[i];
        }
    }
    let mut x = [0.0; 3];
    for i in (0..3).rev() {
        let known: f64 = (i + 1..3).map(|j| a[i][j] * x[j]).sum();
        x[i] = (b[i] - known) / a[i][i];
    }
    x.iter_mut().zip(scale).for_each(|(v, scale)| *v /= scale);
    x.iter().all(|v| v.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn law(lambda: f64, sigma: f64, kappa: f64) -> Usl {
        Usl { lambda, sigma, kappa, r2: None }
    }

    fn points(law: &Usl, sizes: &[f64]) -> Vec<(f64, f64)> {
        sizes.iter().map(|&n| (n, law.throughput(n))).collect()
    }

    #[test]
    fn an_exact_law_is_found_again() {
        for (sigma, kappa) in [(0.05, 0.001), (0.0, 0.02), (0.3, 0.0), (0.0, 0.0), (0.9, 1e-5), (1.0, 0.01)] {
            let truth = law(1234.5, sigma, kappa);
            let found = fit(&points(&truth, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0])).unwrap();
            assert!((found.lambda / truth.lambda - 1.0).abs() < 1e-6, "{truth:?} {found:?}");
            assert!(
                (found.sigma - sigma).abs() < 1e-6 && (found.kappa - kappa).abs() < 1e-6,
                "{truth:?} {found:?}"
            );
            assert!(found.r2.unwrap() > 1.0 - 1e-9);
        }
    }

    #[test]
    fn the_peak_lies_where_the_law_turns() {
        let peak = law(1.0, 0.02, 0.0005).peak_n().unwrap();
        assert!((peak - (0.98_f64 / 0.0005).sqrt()).abs() < 1e-12);
        let (at, before, after) = (
            law(1.0, 0.02, 0.0005).throughput(peak),
            law(1.0, 0.02, 0.0005).throughput(peak * 0.99),
            law(1.0, 0.02, 0.0005).throughput(peak * 1.01),
        );
        assert!(at > before && at > after);
        assert_eq!(law(1.0, 0.5, 0.0).peak_n(), None);
        assert_eq!(law(1.0, 0.5, 2.0).peak_n(), Some(1.0));
        assert_eq!(law(1.0, 1.0, 0.1).peak_n(), Some(1.0));
        assert_eq!(law(1.0, 1.0, 0.0).peak_n(), None);
    }

    #[test]
    fn better_than_linear_is_linear() {
        // Throughput per core grows: contention is 0, and not negative.
        let found = fit(&[(1.0, 100.0), (2.0, 210.0), (4.0, 440.0), (8.0, 930.0)]).unwrap();
        assert_eq!((found.sigma, found.kappa), (0.0, 0.0));
        // The level is then the geometric mean of X / N.
        assert!((found.lambda - (100.0_f64 * 105.0 * 110.0 * 116.25).powf(0.25)).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn points_without_a_fit_are_named() {
        assert_eq!(fit(&[]), Err(UslError::TooFew { found: 0 }));
        assert_eq!(
            fit(&[(1.0, 1.0), (2.0, 2.0), (2.0, 2.1), (3.0, 3.0)]),
            Err(UslError::TooFew { found: 3 })
        );
        assert_eq!(fit(&[(0.5, 1.0)]), Err(UslError::Point { n: 0.5, x: 1.0 }));
        assert_eq!(fit(&[(1.0, 0.0)]), Err(UslError::Point { n: 1.0, x: 0.0 }));
        assert!(fit(&[(f64::NAN, 1.0)]).is_err() && fit(&[(1.0, f64::INFINITY)]).is_err());
    }

    #[test]
    fn a_flat_line_has_no_variance_to_explain() {
        let found = fit(&[(1.0, 5.0), (2.0, 5.0), (3.0, 5.0), (4.0, 5.0)]).unwrap();
        assert_eq!(found.r2, None);
        assert!((found.sigma - 1.0).abs() < 1e-6 && found.kappa < 1e-6, "{found:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_nearby_fits_better(
            raw in prop::collection::vec((1_u32..100, -0.5_f64..0.5), 5..20), sigma in 0.0_f64..1.0, kappa in 0.0_f64..0.1,
            by in prop::array::uniform3(-0.01_f64..0.01),
        ) {
            let truth = law(1000.0, sigma, kappa);
            let point = |&(n, noise): &(u32, f64)| (f64::from(n), truth.throughput(f64::from(n)) * noise.exp());
            let mut points: Vec<(f64, f64)> = raw.iter().map(point).collect();
            points.push((1.0, 1000.0));
            let Ok(found) = fit(&points) else { return Ok(()) };
            prop_assert!((0.0..=1.0).contains(&found.sigma) && found.kappa >= 0.0 && found.kappa.is_finite());
            prop_assert!(found.lambda > 0.0 && found.lambda.is_finite());
            let logs: Vec<(f64, f64)> = points.iter().map(|p| (p.0, p.1.ln())).collect();
            let at = [found.lambda.ln(), found.sigma, found.kappa];
            let beside = |x: f64, by: f64| if x == 0.0 { 1e-3 * by.abs() } else { x * (1.0 + by) };
            let near = project([at[0] + by[0], beside(at[1], by[1]), beside(at[2], by[2])]);
            prop_assert!(squares(&logs, &at) <= squares(&logs, &near) * (1.0 + 1e-9));
        }

        #[test]
        fn the_unit_of_throughput_does_not_matter(
            sigma in 0.0_f64..0.5, kappa in 0.0_f64..0.05, noise in prop::array::uniform6(-0.05_f64..0.05), unit in 1e-6_f64..1e6,
        ) {
            let truth = law(1.0, sigma, kappa);
            let sizes = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
            let of = |unit: f64| -> Vec<(f64, f64)> {
                sizes.iter().zip(noise).map(|(&n, e)| (n, unit * truth.throughput(n) * f64::exp(e))).collect()
            };
            let (one, other) = (fit(&of(1.0)).unwrap(), fit(&of(unit)).unwrap());
            prop_assert!((one.sigma - other.sigma).abs() < 1e-5 && (one.kappa - other.kappa).abs() < 1e-5);
            prop_assert!((one.lambda * unit / other.lambda - 1.0).abs() < 1e-5);
        }
    }
}
