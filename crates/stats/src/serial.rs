//! Whether values that should be independent are correlated with the value before them.
//!
//! Owns the lag-1 autocorrelation and its significance. It must not know what the values are.
//!
//! With the mean m of n values, r = sum over t of (x_t - m)(x_{t+1} - m) / sum over t of (x_t - m)^2. For independent normal
//! values its mean is -1 / n, because m comes from the same values, and its variance (n - 2)^2 / (n^2 (n - 1)), both
//! exactly: Moran, "Some theorems on time series, II: the significance of the serial correlation coefficient", Biometrika 35
//! (1948); Dufour and Roy, "Some robust exact results on sample autocorrelations and tests of randomness", Journal of
//! Econometrics 29 (1985), show the same mean for any exchangeable values.

use crate::interval::Sample;
use statrs::distribution::{ContinuousCDF, Normal};

/// Fewer values are not enough: z is then far from normal, and varies as much as any correlation.
pub const FEWEST: usize = 10;

/// The false alarm rate for independent values, over all pairs of a race together. One-sided, z over 2.
pub const ALARM: f64 = 0.0228;

/// The serial correlation of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Serial {
    /// The lag-1 autocorrelation without its bias, r + 1 / n: 0 on average for independent values.
    pub lag1: f64,
    /// Its distance from 0 in standard errors.
    pub z: f64,
}

impl Serial {
    /// The correlation of values in time order; `None` for fewer than [`FEWEST`], for equal values, or if one is not finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < FEWEST {
            return None;
        }
        let lag1 = lag1(values)?;
        Some(Self { lag1, z: lag1 / standard_error(values.len()) })
    }

    /// Whether the correlation is more than chance. If `sharing` series are tested together, the chance of any false alarm
    /// is about [`ALARM`] (Bonferroni).
    pub fn is_significant(&self, sharing: usize) -> bool {
        let limit = Normal::standard().inverse_cdf(1.0 - ALARM / sharing.max(1) as f64);
        self.z > limit
    }
}

/// The standard error of [`lag1`] for `n` independent values.
pub(crate) fn standard_error(n: usize) -> f64 {
    let n = n as f64;
    // Two values have r = -0.5 always.
    ((n - 2.0) / (n * (n - 1.0).sqrt())).max(f64::EPSILON)
}

/// The lag-1 autocorrelation of values without its bias, r + 1 / n; `None` if they are all equal or one is not finite.
pub(crate) fn lag1(values: &[f64]) -> Option<f64> {
    let (n, mean) = (values.len() as f64, Sample::of(values)?.mean);
    let off: Vec<f64> = values.iter().map(|x| x - mean).collect();
    let squares: f64 = off.iter().map(|x| x * x).sum();
    let r = off.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares;
    r.is_finite().then_some(r + 1.0 / n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ten_values_by_hand() {
        // 1 to 10: deviations -4.5 to 4.5, squares 82.5, products of neighbours 57.75, so that r = 0.7.
        let rising: Vec<f64> = (1..=10).map(f64::from).collect();
        let found = Serial::of(&rising).unwrap();
        assert!((found.lag1 - 0.8).abs() < 1e-12, "{found:?}");
        assert!((found.z - 0.8 / (8.0 / 30.0)).abs() < 1e-12, "{found:?}");
        assert!(found.is_significant(1) && found.is_significant(10) && !found.is_significant(100));
        // Alternating values: each deviation is the opposite of the one before, r = -0.9.
        let swinging: Vec<f64> = (0..10).map(|i| f64::from(i % 2)).collect();
        let found = Serial::of(&swinging).unwrap();
        assert!((found.lag1 + 0.8).abs() < 1e-12 && !found.is_significant(1), "{found:?}");
    }

    #[test]
    fn two_standard_errors_are_the_limit_of_one_pair() {
        assert!(!Serial { lag1: 0.3, z: 1.99 }.is_significant(1));
        assert!(Serial { lag1: 0.3, z: 2.01 }.is_significant(1));
        assert!(!Serial { lag1: 0.3, z: 2.01 }.is_significant(2));
    }

    #[test]
    fn too_little_to_say() {
        assert_eq!(Serial::of(&[0.5; 9]), None);
        // A plain mean of ten times 0.1 is off by its last bit, and all values would deviate by that much.
        assert_eq!([Serial::of(&[0.5; 12]), Serial::of(&[0.1; 10])], [None; 2]);
        let mut values: Vec<f64> = (0..12).map(f64::from).collect();
        values[3] = f64::NAN;
        assert_eq!(Serial::of(&values), None);
    }

    proptest! {
        #[test]
        fn neither_level_nor_scale_nor_direction_of_time_matters(
            values in prop::collection::vec(-1.0_f64..1.0, 10..40), level in -5.0_f64..5.0, scale in 0.1_f64..10.0,
        ) {
            let found = Serial::of(&values).unwrap();
            let moved: Vec<f64> = values.iter().rev().map(|x| level + scale * x).collect();
            prop_assert!((Serial::of(&moved).unwrap().lag1 - found.lag1).abs() < 1e-9);
        }
    }
}
