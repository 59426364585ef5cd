//! Whether a contender's rate is still rising while it is measured.
//!
//! Owns the slope of ln(rate) over the rounds of an epoch, pooled over epochs, and its interval. It must not know why a
//! rate rises or what follows from it.

use crate::interval::LogInterval;
use crate::student::upper_quantile;

/// A rate that rises by more than this fraction across an epoch is not steady.
pub const STEADY: f64 = 0.01;
/// Two-sided error rate of that test: in the race, which then warms up for longer or continues, and in the gate, which withdraws verdicts.
pub const STEADY_ALPHA: f64 = 0.01;
/// With fewer epochs, slopes are not compared: on a machine whose speed alternates they differ by chance.
pub const FEWEST_SLOPES: usize = 4;
/// With fewer epochs than this, the standard error comes from the scatter of rounds instead of the scatter of epochs.
const FEWEST_EPOCHS: usize = 3;

/// A pooled slope of ln(rate) per round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// Change of ln(rate) from one round to the next.
    pub per_round: f64,
    /// Standard error of `per_round`.
    pub standard_error: f64,
    /// Degrees of freedom of the standard error; at least 1.
    pub degrees: usize,
    /// Rounds in the longest epoch.
    pub rounds: usize,
}

impl Slope {
    /// Two-sided t interval of the slope per round at level `alpha`.
    pub fn interval(&self, alpha: f64) -> LogInterval {
        let critical = upper_quantile(alpha / 2.0, self.degrees as f64);
        LogInterval::around(self.per_round, critical, self.standard_error)
    }
}

/// Rounds of one epoch, centred: sums of x*x and of x*y, and the points themselves.
struct Centred {
    points: Vec<(f64, f64)>,
    xx: f64,
    xy: f64,
}

impl Centred {
    fn of(rates: &[f64]) -> Option<Self> {
        let usable = |(round, rate): (usize, &f64)| {
            (rate.is_finite() && *rate > 0.0).then(|| (round as f64, rate.ln()))
        };
        let mut points: Vec<(f64, f64)> = rates.iter().enumerate().filter_map(usable).collect();
        if points.len() < 2 {
            return None;
        }
        let n = points.len() as f64;
        let (x_mean, y_mean) =
            (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
        for point in &mut points {
            *point = (point.0 - x_mean, point.1 - y_mean);
        }
        let xx = points.iter().map(|p| p.0 * p.0).sum();
        let xy = points.iter().map(|p| p.0 * p.1).sum();
        Some(Self { points, xx, xy })
    }
}

/// Least squares of ln(rate) on the round's index, with a common slope and an intercept for each epoch.
///
/// `epochs[e][r]` is the rate in round r of epoch e, in any unit; rounds whose rate is not positive and finite are
/// ignored. From three epochs on, the standard error comes from the scatter between epochs (the sandwich estimator clustered
/// by epoch, Liang and Zeger 1986, with the factor E/(E-1); with equally long epochs it is the t interval of the
/// epochs' own slopes), because rounds of one epoch are not replicates. With fewer epochs it comes from the residuals of
/// the rounds. `None` if there are too few usable rounds: at least three in one epoch, or two in each of two.
pub fn slope(epochs: &[Vec<f64>]) -> Option<Slope> {
    let centred: Vec<Centred> = epochs.iter().filter_map(|rates| Centred::of(rates)).collect();
    let (count, points) = (centred.len(), centred.iter().map(|c| c.points.len()).sum::<usize>());
    let xx: f64 = centred.iter().map(|c| c.xx).sum();
    let per_round = if count == 0 { return None } else { centred.iter().map(|c| c.xy).sum::<f64>() / xx };
    let (squares, degrees) = if count >= FEWEST_EPOCHS {
        let scores: f64 = centred.iter().map(|c| (c.xy - per_round * c.xx).powi(2)).sum();
        (scores / (xx * xx) * count as f64 / (count - 1) as f64, count - 1)
    } else {
        let degrees = points.checked_sub(count + 1).filter(|&d| d > 0)?;
        let residual = |c: &Centred| c.points.iter().map(|(x, y)| (y - per_round * x).powi(2)).sum::<f64>();
        (centred.iter().map(residual).sum::<f64>() / degrees as f64 / xx, degrees)
    };
    let rounds = epochs.iter().map(Vec::len).max().unwrap_or(0);
    Some(Slope { per_round, standard_error: squares.sqrt(), degrees, rounds })
}

/// How a rate changes from the first round of an epoch to the last, as fractions: 0.02 is a rise of 2 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Climb {
    /// Estimated change across an epoch.
    pub change: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval; infinite if there is very little information.
    pub high: f64,
    /// Whether `low` lies over the threshold: the rate is still rising.
    pub climbs: bool,
    /// Whether `high` lies below the negative threshold: the rate keeps falling.
    pub falls: bool,
}

/// Tests whether a contender's rate rises or falls by over `threshold` (a fraction; 0.01 by the method) across an epoch.
///
/// `epochs` as for [`slope`]; `alpha` is the two-sided level of the interval. `None` if there is no slope.
pub fn climbs(epochs: &[Vec<f64>], threshold: f64, alpha: f64) -> Option<Climb> {
    let slope = slope(epochs)?;
    let steps = slope.rounds.saturating_sub(1) as f64;
    let across = |per_round: f64| (per_round * steps).exp_m1();
    let interval = slope.interval(alpha);
    let (low, high) = (across(interval.low), across(interval.high));
    Some(Climb {
        change: across(slope.per_round),
        low,
        high,
        climbs: low > threshold,
        falls: high < -threshold,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Sample;
    use proptest::prelude::*;

    fn exp(logs: &[f64]) -> Vec<f64> {
        logs.iter().map(|x| x.exp()).collect()
    }

    #[test]
    fn one_epoch_is_the_textbook_regression() {
        // y = 1, 3, 2, 5 on x = 0..3: slope 1.1, residual squares 2.7, 2 degrees, Sxx 5.
        let found = slope(&[exp(&[1.0, 3.0, 2.0, 5.0])]).unwrap();
        assert!((found.per_round - 1.1).abs() < 1e-12);
        assert!((found.standard_error - (2.7_f64 / 2.0 / 5.0).sqrt()).abs() < 1e-12);
        assert_eq!((found.degrees, found.rounds), (2, 4));
    }

    #[test]
    fn equally_long_epochs_are_a_t_interval_of_their_slopes() {
        let slopes = [0.01, 0.03, -0.02, 0.02];
        let wobble = [0.05, -0.05, -0.05, 0.05];
        let epochs: Vec<_> = slopes
            .iter()
            .map(|b| exp(&[0, 1, 2, 3].map(|r| 7.0 + b * f64::from(r) + wobble[r as usize])))
            .collect();
        let found = slope(&epochs).unwrap();
        let sample = Sample::of(&slopes).unwrap();
        assert!((found.per_round - sample.mean).abs() < 1e-12);
        assert!((found.standard_error - sample.standard_error().unwrap()).abs() < 1e-12);
        assert_eq!(found.degrees, 3);
    }

    #[test]
    fn a_steady_climb_or_fall_is_seen_and_a_flat_rate_is_neither() {
        let rising: Vec<f64> = (0..20).map(|r| 1000.0 * 1.002_f64.powi(r)).collect();
        let falling: Vec<f64> = rising.iter().rev().copied().collect();
        let flat: Vec<f64> = (0..20).map(|r| 1000.0 + f64::from(r % 2)).collect();
        let found = climbs(&vec![rising; 6], 0.01, 0.05).unwrap();
        assert!(found.climbs && !found.falls && (found.change - (1.002_f64.powi(19) - 1.0)).abs() < 1e-9);
        let found = climbs(&vec![falling; 6], 0.01, 0.05).unwrap();
        assert!(found.falls && !found.climbs, "{found:?}");
        let found = climbs(&vec![flat; 6], 0.01, 0.05).unwrap();
        assert!(!found.climbs && !found.falls, "{found:?}");
    }

    #[test]
    fn too_little_to_say() {
        assert_eq!(slope(&[]), None);
        assert_eq!(slope(&[vec![1.0, 2.0]]), None);
        assert_eq!(slope(&[vec![0.0, 2.0, f64::NAN]]), None);
        assert!(slope(&[vec![1.0, 2.0], vec![1.0, 2.0]]).is_some());
    }

    proptest! {
        #[test]
        fn a_level_of_its_own_per_epoch_changes_nothing(
            epochs in prop::collection::vec(prop::collection::vec(1.0_f64..1e4, 4), 1..6), scale in 0.01_f64..100.0,
        ) {
            let mut scaled = epochs.clone();
            scaled[0].iter_mut().for_each(|y| *y *= scale);
            let (a, b) = (slope(&epochs).unwrap(), slope(&scaled).unwrap());
            prop_assert!((a.per_round - b.per_round).abs() < 1e-9);
            prop_assert!((a.standard_error - b.standard_error).abs() < 1e-7);
        }
    }
}
