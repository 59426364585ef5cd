//! How long a contender warms up: until its rate stops changing in a pilot.
//!
//! Owns the cut of a pilot and the length that follows from several cuts. It must not know which contender warms up or how.
//!
//! Source: White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for simulation", Winter
//! Simulation Conference (2000).

use crate::average::mean;
use crate::slope::{STEADY, STEADY_ALPHA};
use crate::welch::Welch;

/// Number of windows in a batch.
const BATCH: usize = 5;

/// Fewer batches than this leave too little after the cut to locate it.
const FEWEST_BATCHES: usize = 4;

/// The warm-up is this many times the largest cut.
const MARGIN: f64 = 1.5;

/// How many of the first windows to cut: a multiple of 5 windows, at most about half of them.
///
/// `rates` are the completions per second in windows of equal length, in time order; windows before the first answer may be
/// zero. Of the batch means Y_0..Y_{n-1} the first d are cut, where d is the smallest d <= n/2 that minimises
/// sum_{i>=d} (Y_i - mean)^2 / (n-d)^2. Windows at the end that do not fill a batch are ignored. A cut of half the
/// windows means that the pilot may have been too short. `None` with fewer than 20 windows, with a rate that is
/// negative or not finite, or if there were no answers at all.
pub fn mser5(rates: &[f64]) -> Option<usize> {
    if !rates.iter().all(|y| y.is_finite() && *y >= 0.0) || rates.iter().all(|y| *y == 0.0) {
        return None;
    }
    let batches = batch_means(rates);
    if batches.len() < FEWEST_BATCHES {
        return None;
    }
    let statistic = |d: usize| {
        let rest = &batches[d..];
        let centre = mean(rest.iter().copied()).unwrap_or(0.0);
        rest.iter().map(|y| (y - centre).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    // `min_by` returns the first of equal values: the shortest cut.
    let cut = (0..=batches.len() / 2).min_by(|&a, &b| statistic(a).total_cmp(&statistic(b)))?;
    Some(cut * BATCH)
}

/// How many of the first windows of a pilot to cut: as [`mser5`], or half of them if the rate still climbs after that cut.
///
/// MSER-5 may cut too little where a climb pauses. The rate still climbs if the batches after the middle are faster than those between the cut
/// and the middle, with a 99 % interval that lies above 1 % (Welch's, of the logs of the batch means).
pub fn pilot_cut(rates: &[f64]) -> Option<usize> {
    let cut = mser5(rates)?;
    let half = rates.len() / BATCH / 2 * BATCH;
    let logs = |windows: &[f64]| batch_means(windows).into_iter().map(f64::ln).collect::<Vec<f64>>();
    let change = Welch::of(&logs(&rates[cut..half]), &logs(&rates[half..]));
    let climbs = change.is_some_and(|change| change.interval(STEADY_ALPHA).low > STEADY.ln_1p());
    Some(if climbs { half } else { cut })
}

/// The means of whole batches.
fn batch_means(rates: &[f64]) -> Vec<f64> {
    rates.chunks_exact(BATCH).filter_map(|batch| mean(batch.iter().copied())).collect()
}

/// The limits of a warm-up's length, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmupLimits {
    /// The minimum, also if nothing had to be cut.
    pub shortest_s: f64,
    /// The maximum; takes precedence over `shortest_s` if they contradict each other.
    pub longest_s: f64,
}

/// The warm-up in seconds for all contenders: 1.5 times the largest cut, within the limits.
///
/// `cuts_s` are the contenders' cuts in seconds; if there are none, the result is the minimum.
pub fn warmup_length_s(cuts_s: &[f64], limits: WarmupLimits) -> f64 {
    let largest = cuts_s.iter().copied().fold(0.0, f64::max);
    (MARGIN * largest).max(limits.shortest_s).min(limits.longest_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_flat_series_is_not_cut() {
        assert_eq!(mser5(&[100.0; 80]), Some(0));
    }

    #[test]
    fn a_step_is_cut_where_it_ends() {
        let mut rates = vec![10.0; 20];
        rates.resize(80, 100.0);
        assert_eq!(mser5(&rates), Some(20));
        // Three windows without answers affect only the first batch.
        let mut silent = vec![0.0; 3];
        silent.resize(60, 100.0);
        assert_eq!(mser5(&silent), Some(5));
    }

    #[test]
    fn hand_computed_four_batches() {
        // Batch means 2, 4, 5, 5. d = 0: 6/16 (mean 4: 4+0+1+1); d = 1: (2/3)/9; d = 2: 0.
        let rates: Vec<f64> = [2.0, 4.0, 5.0, 5.0].iter().flat_map(|y| [*y; 5]).collect();
        assert_eq!(mser5(&rates), Some(10));
        // Batch means 2, 4, 4, 5. d = 0: 4.75/16 = 0.297; d = 1: 0.667/9 = 0.074; d = 2: 0.5/4 = 0.125.
        let rates: Vec<f64> = [2.0, 4.0, 4.0, 5.0].iter().flat_map(|y| [*y; 5]).collect();
        assert_eq!(mser5(&rates), Some(5));
    }

    #[test]
    fn never_more_than_half() {
        let climbing: Vec<f64> = (0..83).map(|i| f64::from(i) + 1.0).collect();
        assert_eq!(mser5(&climbing), Some(40));
    }

    /// Windows with these means of batches.
    fn windows(batches: &[f64]) -> Vec<f64> {
        batches.iter().flat_map(|mean| [*mean; BATCH]).collect()
    }

    /// Two real pilots, of Node and of Bun in a race of seven. Node is a tenth faster in the second half, after a dip; Bun is not.
    #[test]
    fn a_climb_that_pauses_is_cut() {
        let node = windows(&[
            5805.0, 6808.0, 7097.0, 7326.0, 7477.0, 7458.0, 7375.0, 6701.0, 6994.0, 8107.0, 8232.0, 8553.0,
            8176.0, 8073.0, 8548.0, 8454.0,
        ]);
        assert_eq!((mser5(&node), pilot_cut(&node)), (Some(10), Some(40)));
        let bun = windows(&[
            16334.0, 16518.0, 15679.0, 15747.0, 15775.0, 16065.0, 15189.0, 15751.0, 14781.0, 15423.0,
            15576.0, 15661.0, 15780.0, 15553.0, 15625.0, 14886.0,
        ]);
        assert_eq!((mser5(&bun), pilot_cut(&bun)), (Some(10), Some(10)));
    }

    #[test]
    fn what_gets_slower_or_does_not_change_is_cut_as_before() {
        let falling: Vec<f64> = (0..16).map(|i| 100.0 - 2.0 * f64::from(i)).collect();
        for rates in [windows(&falling), vec![100.0; 80], vec![100.0; 23]] {
            assert_eq!(pilot_cut(&rates), mser5(&rates));
        }
        assert_eq!((pilot_cut(&[]), pilot_cut(&[0.0; 40])), (None, None));
        // Nothing is left between cut and middle.
        let late = windows(&[[10.0; 8], [100.0; 8]].concat());
        assert_eq!((mser5(&late), pilot_cut(&late)), (Some(40), Some(40)));
    }

    #[test]
    fn too_little_to_say() {
        assert_eq!(mser5(&[]), None);
        assert_eq!(mser5(&[1.0; 19]), None);
        assert_eq!(mser5(&[0.0; 40]), None);
        assert_eq!(mser5(&[f64::NAN; 40]), None);
    }

    #[test]
    fn the_length_stays_within_its_limits() {
        let limits = WarmupLimits { shortest_s: 2.0, longest_s: 15.0 };
        assert_eq!(warmup_length_s(&[], limits), 2.0);
        assert_eq!(warmup_length_s(&[1.0, 4.0, 2.0], limits), 6.0);
        assert_eq!(warmup_length_s(&[20.0], limits), 15.0);
    }

    proptest! {
        #[test]
        fn the_unit_of_the_rate_does_not_matter(rates in prop::collection::vec(1.0_f64..1e5, 20..100)) {
            let doubled: Vec<f64> = rates.iter().map(|y| y * 2.0).collect();
            prop_assert_eq!(mser5(&rates), mser5(&doubled));
            prop_assert_eq!(pilot_cut(&rates), pilot_cut(&doubled));
        }
    }
}
