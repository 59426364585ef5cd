//! The uncertainty of a spread from few values, and the probability of a count of false claims.
//!
//! Owns the chi-square interval of a standard deviation and the binomial tail. It must not know what was measured.

use statrs::distribution::{ChiSquared, ContinuousCDF};

/// The interval that contains the true standard deviation with the chance `level` (0.9 for 90 %), if n normally distributed values have
/// the standard deviation `sd`. `None` for fewer than two values or for invalid numbers.
pub fn sd_interval(sd: f64, n: usize, level: f64) -> Option<(f64, f64)> {
    let degrees = n.checked_sub(1).filter(|&degrees| degrees > 0)? as f64;
    if !(sd >= 0.0 && sd.is_finite() && level > 0.0 && level < 1.0) {
        return None;
    }
    let squares = ChiSquared::new(degrees).ok()?;
    let tail = (1.0 - level) / 2.0;
    let at = |p: f64| sd * (degrees / squares.inverse_cdf(p)).sqrt();
    Some((at(1.0 - tail), at(tail)))
}

/// The chance of `hits` or more in `tries` independent attempts that each succeed with the chance `chance`, in [0, 1].
pub fn chance_of_at_least(hits: usize, tries: usize, chance: f64) -> f64 {
    if hits == 0 {
        return 1.0;
    }
    if hits > tries || chance <= 0.0 {
        return 0.0;
    }
    // Starts from the chance of no hit at all; each count's chance follows from the one before.
    let odds = chance / (1.0 - chance).max(f64::MIN_POSITIVE);
    let mut exactly = (1.0 - chance).powf(tries as f64);
    let mut fewer = exactly;
    for count in 1..hits {
        exactly *= odds * (tries - count + 1) as f64 / count as f64;
        fewer += exactly;
    }
    (1.0 - fewer).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_eight_values_is_known_by_half_and_double() {
        // chi-square with 7 degrees: 2.16735 at 5 %, 14.06714 at 95 %.
        let (low, high) = sd_interval(1.0, 8, 0.9).unwrap();
        assert!((low - (7.0_f64 / 14.067_14).sqrt()).abs() < 1e-5, "{low}");
        assert!((high - (7.0_f64 / 2.167_35).sqrt()).abs() < 1e-5, "{high}");
        assert_eq!(sd_interval(0.0, 5, 0.9), Some((0.0, 0.0)));
        assert_eq!((sd_interval(1.0, 1, 0.9), sd_interval(f64::NAN, 5, 0.9)), (None, None));
    }

    #[test]
    fn few_false_claims_are_no_surprise_and_many_are() {
        // Binomial(20, 0.05): P(X >= 1) = 0.641514, P(X >= 4) = 0.015902, P(X >= 5) = 0.002574.
        for (hits, expected) in [(0, 1.0), (1, 0.641_514), (4, 0.015_902), (5, 0.002_574)] {
            assert!((chance_of_at_least(hits, 20, 0.05) - expected).abs() < 1e-6, "{hits}");
        }
        assert!((chance_of_at_least(3, 3, 0.5) - 0.125).abs() < 1e-12);
        assert_eq!(chance_of_at_least(4, 3, 0.5), 0.0);
        assert_eq!(chance_of_at_least(1, 3, 1.0), 1.0);
    }
}
