//! What follows from a few published figures: requests in flight, the length of a run, the bounds of a mean.
//!
//! Owns arithmetic on figures that were rounded before publication. It must not know their source.

/// A published figure, with the bounds of its value before rounding. All three values have the same unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The figure as published; the middle of a range.
    pub value: f64,
    /// The smallest possible value before rounding.
    pub low: f64,
    /// The largest possible value before rounding.
    pub high: f64,
}

impl Published {
    /// A figure that was rounded by at most `half`, half a unit of its last digit; `half` at least 0.
    pub fn rounded(value: f64, half: f64) -> Self {
        Self { value, low: value - half, high: value + half }
    }

    /// A range, `low` at most `high`.
    pub fn range(low: f64, high: f64) -> Self {
        Self { value: f64::midpoint(low, high), low, high }
    }

    /// The figure in another unit; `by` above 0.
    pub fn scaled(self, by: f64) -> Self {
        Self { value: self.value * by, low: self.low * by, high: self.high * by }
    }

    /// The product of two figures of at least 0.
    pub fn times(self, other: Self) -> Self {
        Self { value: self.value * other.value, low: self.low * other.low, high: self.high * other.high }
    }

    /// The quotient of two figures above 0.
    pub fn over(self, other: Self) -> Self {
        Self { value: self.value / other.value, low: self.low / other.high, high: self.high / other.low }
    }

    /// The distance of this figure from `other`: 0 if they may differ only by rounding, otherwise the distance of the nearest ends as a
    /// fraction of `other`, negative if this figure is lower.
    pub fn off(self, other: Self) -> f64 {
        if self.high < other.low {
            self.high / other.low - 1.0
        } else if self.low > other.high {
            self.low / other.high - 1.0
        } else {
            0.0
        }
    }

    /// Whether both can be the same figure, within `tolerance` (a fraction of `other`).
    pub fn agrees(self, other: Self, tolerance: f64) -> bool {
        self.off(other).abs() <= tolerance
    }
}

/// The bounds of a mean, from published quantiles: as if all values between two quantiles were equal to the lower one,
/// or to the upper one. `quantiles` have increasing shares (each in (0, 1)) and increasing values. Without `min` the values begin at 0,
/// and without `max` there is no upper bound (`None`). Values must be at least 0.
pub fn mean_bounds(min: Option<f64>, quantiles: &[(f64, f64)], max: Option<f64>) -> (f64, Option<f64>) {
    let steps = |ends: &mut dyn Iterator<Item = (f64, f64)>| {
        let sum =
            |(sum, before): (f64, f64), (share, value): (f64, f64)| (sum + (share - before) * value, share);
        ends.fold((0.0, 0.0), sum).0
    };
    // Values up to each share are at least the quantile at the share before.
    let reached = std::iter::once(min.unwrap_or(0.0)).chain(quantiles.iter().map(|(_, value)| *value));
    let shares = quantiles.iter().map(|(share, _)| *share).chain([1.0]);
    let low = steps(&mut shares.zip(reached));
    let high = max.map(|max| steps(&mut quantiles.iter().copied().chain([(1.0, max)])));
    (low, high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn figures_agree_as_far_as_their_digits_go() {
        // 201,346.62/s times 1.19 ms: 239.6, and at most 240.6 before rounding.
        let flight = Published::rounded(201_346.62, 0.005).times(Published::rounded(1.19e-3, 0.005e-3));
        assert!((flight.value - 239.6).abs() < 0.01 && (flight.high - 240.6).abs() < 0.02);
        assert!(
            flight.agrees(Published::rounded(245.0, 0.0), 0.02),
            "{}",
            flight.off(Published::rounded(245.0, 0.0))
        );
        assert!(!flight.agrees(Published::rounded(400.0, 0.0), 0.02));
        let ratio = Published::rounded(58_200.0, 0.5).over(Published::rounded(41_900.0, 0.5));
        assert_eq!(ratio.off(Published::rounded(1.39, 0.005)), 0.0);
        assert!(ratio.off(Published::rounded(1.5, 0.005)) < -0.07);
        assert!(ratio.off(Published::range(1.0, 1.1)) > 0.25);
    }

    #[test]
    fn a_mean_between_its_quantiles() {
        // Half of all below 1, nine tenths below 2, none over 10: 0.5 * 0 + 0.4 * 1 + 0.1 * 2, 0.5 * 1 + 0.4 * 2 + 0.1 * 10.
        let (low, high) = mean_bounds(None, &[(0.5, 1.0), (0.9, 2.0)], Some(10.0));
        assert!((low - 0.6).abs() < 1e-12 && (high.unwrap() - 2.3).abs() < 1e-12);
        assert_eq!(mean_bounds(Some(0.5), &[(0.5, 1.0)], None), (0.75, None));
        assert_eq!(mean_bounds(Some(2.0), &[], Some(3.0)), (2.0, Some(3.0)));
    }

    proptest! {
        #[test]
        fn the_mean_of_any_sample_lies_within_its_bounds(mut all in prop::collection::vec(0.0_f64..100.0, 1..200)) {
            all.sort_by(f64::total_cmp);
            let n = all.len();
            // The smallest value for which at least this share of all values is not larger.
            let at = |share: f64| all[((share * n as f64).ceil() as usize).clamp(1, n) - 1];
            let exact = [0.5, 0.9, 0.99].map(|share| ((share * n as f64).ceil() / n as f64, at(share)));
            let exact: Vec<(f64, f64)> = exact.into_iter().filter(|(share, _)| *share < 1.0).collect();
            let mean = all.iter().sum::<f64>() / n as f64;
            let (low, high) = mean_bounds(Some(all[0]), &exact, Some(all[n - 1]));
            prop_assert!(low <= mean + 1e-9 && mean <= high.unwrap() + 1e-9, "{low} {mean} {high:?}");
        }
    }
}
