//! Tests several pairs together: Holm's step-down, continued over the looks of a sequential race.
//!
//! Owns which pairs have been rejected (found to differ) and which share of alpha each is tested at. It must not know how
//! evidence or boundaries are computed.
//!
//! Sources: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6
//! (1979); Ye, Li, Liu and Yao, "A group sequential Holm procedure with multiple primary endpoints", Statistics in
//! Medicine 32 (2013). Why it holds: take the first false rejection. All pairs rejected before it do differ, so that at
//! that moment at least as many pairs share alpha as there are pairs without a difference. One of those has passed the
//! boundary of alpha / (their number), which by Bonferroni happens with a chance of at most alpha over all looks. The only
//! requirement on the boundaries is that a smaller share never narrows one at any look.

/// The state of the step-down over a family of pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Holm {
    /// For each pair, whether it has been rejected.
    rejected: Vec<bool>,
    /// For each pair, the number of pairs that shared alpha when it was last tested.
    sharing: Vec<usize>,
}

impl Holm {
    /// A family of `pairs` pairs, none of them rejected.
    pub fn new(pairs: usize) -> Self {
        Self { rejected: vec![false; pairs], sharing: vec![pairs; pairs] }
    }

    /// One look. `evidence[i]` is |t| of pair i, one for each pair of the family; `boundary(s)` is the critical value at
    /// this look for alpha / s.
    ///
    /// Tests the pairs that are not yet rejected in order of decreasing evidence. `s` is the number of pairs that are left at each test, and
    /// the first pair that does not pass ends the look. Rejections persist.
    pub fn look(&mut self, evidence: &[f64], mut boundary: impl FnMut(usize) -> f64) {
        let mut waiting: Vec<usize> = (0..self.rejected.len()).filter(|&i| !self.rejected[i]).collect();
        waiting.sort_by(|&a, &b| evidence[b].total_cmp(&evidence[a]));
        let mut left = waiting.len();
        for &pair in &waiting {
            if evidence[pair] <= boundary(left) || evidence[pair].is_nan() {
                break;
            }
            self.rejected[pair] = true;
            self.sharing[pair] = left;
            left -= 1;
        }
        for &pair in &waiting {
            if !self.rejected[pair] {
                self.sharing[pair] = left;
            }
        }
    }

    /// Whether `pair` has been rejected at this look or an earlier one; pairs count from 0.
    pub fn rejected(&self, pair: usize) -> bool {
        self.rejected[pair]
    }

    /// The number of pairs that share alpha for `pair`: its level is alpha divided by this. For a rejected pair, the
    /// number at its rejection, otherwise the number of pairs that are left.
    pub fn sharing(&self, pair: usize) -> usize {
        self.sharing[pair]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Normal quantiles for 0.05 / s, two-sided: an ordinary Holm on z values.
    fn boundary(sharing: usize) -> f64 {
        [0.0, 1.960, 2.241, 2.394, 2.498][sharing]
    }

    fn state(holm: &Holm, pairs: usize) -> Vec<(bool, usize)> {
        (0..pairs).map(|i| (holm.rejected(i), holm.sharing(i))).collect()
    }

    #[test]
    fn steps_down_until_the_first_that_fails() {
        let mut holm = Holm::new(4);
        // Sorted 2.6, 2.45, 2.1, 2.0: passes 2.498, passes 2.394, fails 2.241.
        holm.look(&[2.1, 2.6, 2.0, 2.45], boundary);
        assert_eq!(state(&holm, 4), [(false, 2), (true, 4), (false, 2), (true, 3)]);
    }

    #[test]
    fn a_strong_pair_lifts_a_weak_one_only_in_order() {
        let mut holm = Holm::new(2);
        // 2.2 would pass 1.960, but the pair with the most evidence must pass 2.241.
        holm.look(&[2.2, 2.1], boundary);
        assert_eq!(state(&holm, 2), [(false, 2), (false, 2)]);
        holm.look(&[2.3, 2.1], boundary);
        assert_eq!(state(&holm, 2), [(true, 2), (true, 1)]);
    }

    #[test]
    fn rejections_persist_and_hand_on_their_share() {
        let mut holm = Holm::new(3);
        holm.look(&[3.0, 0.1, 0.2], boundary);
        assert_eq!(state(&holm, 3), [(true, 3), (false, 2), (false, 2)]);
        // The first pair's evidence has faded; the third now passes 0.05 / 2.
        holm.look(&[0.0, 0.1, 2.3], boundary);
        assert_eq!(state(&holm, 3), [(true, 3), (false, 1), (true, 2)]);
    }

    #[test]
    fn no_evidence_is_no_rejection() {
        let mut holm = Holm::new(2);
        holm.look(&[f64::NAN, 0.0], boundary);
        assert_eq!(state(&holm, 2), [(false, 2), (false, 2)]);
        Holm::new(0).look(&[], boundary);
    }
}
