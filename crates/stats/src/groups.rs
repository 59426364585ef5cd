//! Whether values come in two groups, far apart and each close together.
//!
//! Owns the split and its limit. It must not know what the values are.
//!
//! The split is the one with the smallest sum of squares within the groups (Fisher, "On grouping for maximum homogeneity",
//! Journal of the American Statistical Association 53, 1958). Any values can be split, so the groups count only if their means
//! lie much further apart than the best split of values from one group does by chance.

use crate::interval::Sample;

/// Fewer values are not enough.
pub const FEWEST: usize = 6;

/// Values that come in two groups.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoGroups {
    /// Mean of the lower group.
    pub low: f64,
    /// Mean of the upper group.
    pub high: f64,
    /// For each value, in the given order, whether it belongs to the upper group.
    pub upper: Vec<bool>,
}

impl TwoGroups {
    /// The best split of `values` into two groups of at least two each; `None` for fewer than [`FEWEST`], if one is not finite, or if
    /// the groups are not far enough apart.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < FEWEST || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let split = |at: usize| {
            let (low, high) = (Sample::of(&sorted[..at])?, Sample::of(&sorted[at..])?);
            let squares = |group: &[f64], mean: f64| group.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            Some((
                squares(&sorted[..at], low.mean) + squares(&sorted[at..], high.mean),
                low.mean,
                high.mean,
                at,
            ))
        };
        let splits = (2..=sorted.len() - 2).filter_map(split);
        let (squares, low, high, at) = splits.min_by(|one, other| one.0.total_cmp(&other.0))?;
        let deviation = (squares / (values.len() - 2) as f64).sqrt();
        let smaller = at.min(values.len() - at);
        let apart = high - low > limit(values.len(), smaller) * deviation && high > low;
        apart.then(|| Self { low, high, upper: values.iter().map(|value| *value >= sorted[at]).collect() })
    }
}

/// How far apart the means of two groups among `n` values must lie, in standard deviations within the groups, if the smaller group has
/// `smaller` values (2 to n / 2).
///
/// The limit is chosen by simulation: the best split of independent values exceeds it in at most one of 1,000 series, whether the values
/// are normal, exponential, from Student's t with three degrees of freedom, or normal with a five times wider tenth
/// (`simulations::one_group_is_seldom_taken_for_two`). Groups of two need the most: two values far from the others are common where
/// tails are heavy.
fn limit(n: usize, smaller: usize) -> f64 {
    (11.0 + 45.0 / (n as f64 - 2.0)) * (2.0 / smaller as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_kinds_of_values_are_told_apart_and_one_kind_is_not() {
        let found = TwoGroups::of(&[1.0, 2.01, 0.99, 2.0, 1.01, 1.99]).unwrap();
        assert_eq!(found.upper, [false, true, false, true, false, true]);
        assert!((found.low - 1.0).abs() < 1e-9 && (found.high - 2.0).abs() < 1e-9);
        assert_eq!(TwoGroups::of(&[1.0, 1.1, 1.2, 1.3, 1.4, 1.5]), None);
    }

    #[test]
    fn a_group_of_half_of_the_values_may_be_nearer_than_one_of_two() {
        // Means 12 standard deviations apart.
        let at = |upper: usize| -> Vec<f64> {
            (0..10_usize)
                .map(|i| f64::from(u8::from(i < upper)) * 12.0 + if i % 2 == 0 { 0.9 } else { -0.9 })
                .collect()
        };
        assert!(TwoGroups::of(&at(4)).is_some());
        assert_eq!(TwoGroups::of(&at(2)), None);
    }

    #[test]
    fn one_value_is_no_group_and_few_or_equal_values_are_none() {
        assert_eq!(TwoGroups::of(&[1.0, 1.01, 0.99, 1.0, 1.01, 2.0]), None);
        assert_eq!(TwoGroups::of(&[1.0, 1.0, 2.0, 2.0, 2.0]), None);
        assert_eq!(TwoGroups::of(&[1.0; 8]), None);
        assert_eq!(TwoGroups::of(&[1.0, 1.0, 1.0, f64::NAN, 2.0, 2.0, 2.0]), None);
    }

    proptest! {
        #[test]
        fn scale_and_place_change_nothing(
            values in prop::collection::vec(0.0_f64..1.0, 6..12), scale in 0.5_f64..4.0, place in -3.0_f64..3.0,
        ) {
            let moved: Vec<f64> = values.iter().map(|x| x * scale + place).collect();
            let (one, other) = (TwoGroups::of(&values), TwoGroups::of(&moved));
            prop_assert_eq!(one.map(|found| found.upper), other.map(|found| found.upper));
        }
    }
}
