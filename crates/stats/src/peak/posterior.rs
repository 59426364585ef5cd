//! An estimate of the peak from trials that passed and failed.
//!
//! Owns the model of a trial, its prior and the posterior's median and interval. It must not know how the rates were
//! chosen: the likelihood does not depend on that.

/// A trial passes and fails each with at least this chance, however far it is from the peak, so that a passing
/// disturbance of the machine does not shift the estimate much (Wichmann and Hill, "The psychometric function: I",
/// Perception & Psychophysics 63, 2001).
const LAPSE: f64 = 0.01;

/// The smallest spread of the logistic in the prior, in ln(rate); each further spread is sqrt(2) times the one before.
const SHARPEST: f64 = 0.005;
/// The number of spreads: up to 0.11.
const SPREADS: usize = 10;

/// The prior for the peak extends this far, in ln(rate), on either side of the middle: a factor of 1.65.
const REACH: f64 = 0.5;
/// Cells of the grid over ln(rate), each 0.2 % wide; the posterior is constant within a cell.
const CELLS: usize = 500;

/// A trial that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Whether the objective was met.
    pub pass: bool,
}

/// The estimate of the peak: the rate at which half of all trials pass. Rates in requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeakEstimate {
    /// The posterior's median.
    pub rate_per_s: f64,
    /// Lower end of the credible interval (equal tails).
    pub low_per_s: f64,
    /// Upper end.
    pub high_per_s: f64,
    /// The number of trials used.
    pub trials: usize,
}

/// The posterior median and credible interval of the peak's rate, from all trials.
///
/// A trial at rate r passes with chance LAPSE + (1 - 2 LAPSE) / (1 + exp((ln r - m) / s)), independently of others. The
/// prior is flat in m = ln(peak) within a factor of 1.65 of `around_per_s`, where the staircase ended, and uniform over
/// ten spreads s from 0.005 to 0.113 at equal ratios (Jeffreys' choice for a scale, cut off: at 0.005, rates 5 % apart
/// never give answers in the wrong order; at 0.113, a trial 25 % off still gives the wrong answer one time in ten). The posterior is
/// summed over s. `alpha` is the two-sided level of the interval. The curve and its use are those of Watson and Pelli, "QUEST: a
/// Bayesian adaptive psychometric method", Perception & Psychophysics 33 (1983).
pub fn posterior(tried: &[Tried], around_per_s: f64, alpha: f64) -> PeakEstimate {
    // Distances from the middle keep more digits.
    let trials: Vec<(f64, bool)> =
        tried.iter().map(|one| ((one.rate_per_s / around_per_s).ln(), one.pass)).collect();
    let width = 2.0 * REACH / CELLS as f64;
    let centre = |cell: usize| (cell as f64 + 0.5) * width - REACH;
    let logs: Vec<f64> = (0..CELLS)
        .flat_map(|cell| spreads().map(move |spread| (cell, spread)))
        .map(|(cell, spread)| log_likelihood(&trials, centre(cell), spread))
        .collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let masses: Vec<f64> =
        logs.chunks(SPREADS).map(|of_cell| of_cell.iter().map(|log| (log - most).exp()).sum()).collect();
    let at = |share: f64| around_per_s * (quantile(&masses, share) * width - REACH).exp();
    PeakEstimate {
        rate_per_s: at(0.5),
        low_per_s: at(alpha / 2.0),
        high_per_s: at(1.0 - alpha / 2.0),
        trials: tried.len(),
    }
}

fn spreads() -> impl Iterator<Item = f64> {
    (0..SPREADS).map(|k| SHARPEST * 2.0_f64.powf(k as f64 / 2.0))
}

fn log_likelihood(trials: &[(f64, bool)], middle: f64, spread: f64) -> f64 {
    let chance = |&(x, pass): &(f64, bool)| {
        let off = if pass { x - middle } else { middle - x };
        (LAPSE + (1.0 - 2.0 * LAPSE) / (1.0 + (off / spread).exp())).ln()
    };
    trials.iter().map(chance).sum()
}

/// The place, in cells from the left, below which this share of all mass lies.
fn quantile(masses: &[f64], share: f64) -> f64 {
    let mut left = share * masses.iter().sum::<f64>();
    for (cell, &mass) in masses.iter().enumerate() {
        if left <= mass && mass > 0.0 {
            return cell as f64 + left / mass;
        }
        left -= mass;
    }
    masses.len() as f64
}
