//! Measures whether the generator is on the critical path: how the rate changes if the generator works longer on every request.
//!
//! Owns: the order of the slices with and without the handicap. Must not know: what follows from the result.

use std::time::Duration;

use deadheat_record::Handicap;
use deadheat_stats::Sample;

use crate::loaded::{LoadError, LoadedContender, SliceStart};
use crate::schedule::derive_seed;

/// Work added to each request.
pub(crate) const ADDED: Duration = Duration::from_micros(2);
/// Number of pairs of slices.
const PAIRS: usize = 10;
/// Maximum length of a slice.
const LONGEST: Duration = Duration::from_millis(100);
/// Maximum length of all slices of a contender together.
pub const MOST: Duration = LONGEST.saturating_mul(2 * PAIRS as u32);

/// Loads a warm contender in pairs of slices, with and without the handicap, with the order reversed in every other pair. Returns none if
/// fewer than two pairs can be compared. Stops early if `stopped` returns true.
///
/// # Errors
/// As [`LoadedContender::slice`].
pub(crate) fn measure(
    one: &mut LoadedContender,
    slice: Duration,
    seed: u64,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Handicap>, LoadError> {
    let mut ratios = Vec::new();
    for pair in 0..PAIRS {
        if stopped() {
            break;
        }
        let start = derive_seed(seed, pair, 0) >> 44;
        let mut rates = [None, None];
        for with in [pair % 2 == 0, pair % 2 != 0] {
            one.set_handicap(if with { ADDED } else { Duration::ZERO })?;
            rates[usize::from(with)] =
                one.slice(slice.min(LONGEST), SliceStart::Position(start))?.rate_per_s();
        }
        let [without, with] = rates;
        ratios.extend(with.zip(without).map(|(with, without)| (with / without).ln()));
    }
    one.set_handicap(Duration::ZERO)?;
    Ok(of(&ratios))
}

/// The time that the slices of a measured handicap took, in a race with slices of length `slice_ns`.
pub(crate) fn took_ns(handicap: &Handicap, slice_ns: u64) -> u64 {
    u64::from(handicap.pairs) * 2 * slice_ns.min(LONGEST.as_nanos() as u64)
}

fn of(ln_ratios: &[f64]) -> Option<Handicap> {
    let sample = Sample::of(ln_ratios)?;
    Some(Handicap {
        added_ns: ADDED.as_nanos() as u64,
        ratio: sample.mean.exp(),
        standard_error: sample.standard_error()?,
        pairs: ln_ratios.len() as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_has_its_error() {
        let handicap = of(&[0.9_f64.ln(), 0.92_f64.ln(), 0.88_f64.ln()]).unwrap();
        assert!((handicap.ratio - 0.9).abs() < 1e-3, "{handicap:?}");
        assert!((handicap.standard_error - 0.0128).abs() < 1e-3, "{handicap:?}");
        assert_eq!((handicap.added_ns, handicap.pairs), (2_000, 3));
        assert_eq!((of(&[]), of(&[0.1])), (None, None));
    }
}
