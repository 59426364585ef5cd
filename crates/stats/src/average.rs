//! Averages of plain values.
//!
//! Must not know what the values are.

/// The arithmetic mean; none without values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.into_iter().fold((0.0, 0_u32), |(sum, count), one| (sum + one, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The geometric mean; none without values.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    mean(values.into_iter().map(f64::ln)).map(f64::exp)
}

/// The median, which for an even number of values is the mean of the two in the middle; none without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[values.len() / 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!([median([]), median([3.0]), median([9.0, 1.0, 5.0])], [None, Some(3.0), Some(5.0)]);
        assert_eq!([median([3.0, 1.0]), median([8.0, 1.0, 5.0, 2.0])], [Some(2.0), Some(3.5)]);
    }

    #[test]
    fn means() {
        assert_eq!([mean([]), mean([1.0, 3.0, 5.0])], [None, Some(3.0)]);
        assert_eq!(geometric_mean([]), None);
        assert!(geometric_mean([2.0, 8.0]).is_some_and(|mean| (mean - 4.0).abs() < 1e-12));
    }
}
