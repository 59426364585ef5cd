//! A condition on a comparison that the user does not accept, such as "slower by 3 %".
//!
//! Owns when such a condition holds. It must not know how it was written or what follows from it.
//!
//! "By 3 %" has the same meaning as for the margin: on the log scale, ln(1.03) to either side. A latency is slower by 3 % at 1.03 times
//! the baseline's, a throughput at 1 / 1.03 = 0.971 times.

use crate::interval::LogInterval;
use crate::verdict::{Direction, Verdict};

/// The claim about a contender against its baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ConditionKind {
    /// Slower by at least this natural log of a ratio over 1; 0 for any difference.
    Slower(f64),
    /// Faster by at least this natural log of a ratio over 1; 0 for any difference.
    Faster(f64),
    /// Not shown to be equivalent: the verdict is not equivalent, and no difference lies wholly within the margin.
    NotEquivalent,
    /// The verdict is inconclusive.
    Inconclusive,
}

/// A claim, and how certain it must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// The claim.
    pub claim: ConditionKind,
    /// Whether the condition already holds if the claim cannot be excluded. Only for slower and faster.
    pub maybe: bool,
}

/// The result of the comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// The verdict on the contender; no condition holds for an invalid one.
    pub verdict: Verdict,
    /// The verdict is faster or slower, but the interval lies within the margin.
    pub negligible: bool,
    /// The interval of the natural log of contender / baseline; its ends may be infinite. None with too few epochs.
    pub interval: Option<LogInterval>,
    /// Which way the metric improves.
    pub direction: Direction,
}

impl Condition {
    /// Whether the condition holds. No condition holds for an invalid comparison, which says nothing.
    ///
    /// - slower: the verdict is slower. Slower by x: also, the whole interval lies beyond x, so that the claim "slower by
    ///   at least x" holds at the error rate of the interval (at half of it, being one-sided).
    /// - maybe slower by x: the interval reaches beyond x, so that the claim cannot be excluded; also if there is no interval.
    /// - faster: the same on the other side.
    pub fn holds(&self, of: &Compared) -> bool {
        if of.verdict == Verdict::Invalid {
            return false;
        }
        match self.claim {
            ConditionKind::Slower(by) => {
                self.differs(of, Verdict::Slower, by, of.direction == Direction::MoreIsBetter)
            }
            ConditionKind::Faster(by) => {
                self.differs(of, Verdict::Faster, by, of.direction == Direction::LessIsBetter)
            }
            ConditionKind::NotEquivalent => of.verdict != Verdict::Equivalent && !of.negligible,
            ConditionKind::Inconclusive => of.verdict == Verdict::Inconclusive,
        }
    }

    /// `turned`: the claim is about ratios under 1.
    fn differs(&self, of: &Compared, verdict: Verdict, by: f64, turned: bool) -> bool {
        let ends = of.interval.map(|all| if turned { (-all.high, -all.low) } else { (all.low, all.high) });
        match (self.maybe, ends) {
            (true, ends) => ends.is_none_or(|(_, far)| far > by),
            (false, ends) => of.verdict == verdict && (by == 0.0 || ends.is_some_and(|(near, _)| near > by)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOWER_3: ConditionKind = ConditionKind::Slower(0.0296);

    fn compared(verdict: Verdict, ends: Option<(f64, f64)>, direction: Direction) -> Compared {
        let interval = ends.map(|(low, high)| LogInterval { low, high });
        Compared { verdict, negligible: false, interval, direction }
    }

    fn latency(verdict: Verdict, low: f64, high: f64) -> Compared {
        compared(verdict, Some((low, high)), Direction::LessIsBetter)
    }

    fn holds(claim: ConditionKind, of: &Compared) -> (bool, bool) {
        (Condition { claim, maybe: false }.holds(of), Condition { claim, maybe: true }.holds(of))
    }

    #[test]
    fn slower_by_so_much_needs_the_whole_interval_and_maybe_a_part_of_it() {
        assert_eq!(holds(SLOWER_3, &latency(Verdict::Slower, 0.03, 0.08)), (true, true));
        assert_eq!(holds(SLOWER_3, &latency(Verdict::Slower, 0.01, 0.08)), (false, true));
        assert_eq!(holds(SLOWER_3, &latency(Verdict::Slower, 0.01, 0.02)), (false, false));
        assert_eq!(holds(SLOWER_3, &latency(Verdict::Inconclusive, -0.02, 0.08)), (false, true));
        assert_eq!(holds(SLOWER_3, &latency(Verdict::Equivalent, -0.01, 0.01)), (false, false));
        assert_eq!(holds(SLOWER_3, &latency(Verdict::Faster, -0.08, -0.04)), (false, false));
        assert!(holds(ConditionKind::Slower(0.0), &latency(Verdict::Slower, 0.001, 0.02)).0);
    }

    #[test]
    fn of_throughput_the_other_side_is_the_slower_one() {
        let of = compared(Verdict::Slower, Some((-0.08, -0.03)), Direction::MoreIsBetter);
        assert_eq!(holds(SLOWER_3, &of), (true, true));
        assert_eq!(holds(ConditionKind::Faster(0.0296), &of), (false, false));
        let of = compared(Verdict::Faster, Some((0.03, 0.08)), Direction::MoreIsBetter);
        assert_eq!(holds(SLOWER_3, &of), (false, false));
        assert_eq!(holds(ConditionKind::Faster(0.0296), &of), (true, true));
        let of = latency(Verdict::Faster, -0.08, -0.03);
        assert_eq!(holds(ConditionKind::Faster(0.0296), &of), (true, true));
    }

    #[test]
    fn a_verdict_of_an_earlier_look_stands_though_the_interval_reaches_back() {
        let of = latency(Verdict::Slower, -0.001, 0.05);
        assert_eq!(holds(ConditionKind::Slower(0.0), &of), (true, true));
        assert_eq!(holds(SLOWER_3, &of), (false, true));
    }

    #[test]
    fn what_is_not_known_cannot_be_excluded() {
        let of = compared(Verdict::Inconclusive, None, Direction::LessIsBetter);
        assert_eq!(holds(SLOWER_3, &of), (false, true));
        assert_eq!(holds(ConditionKind::Inconclusive, &of), (true, true));
        assert_eq!(holds(ConditionKind::NotEquivalent, &of), (true, true));
    }

    #[test]
    fn equivalent_is_what_lies_within_the_margin() {
        let negligible = Compared { negligible: true, ..latency(Verdict::Slower, 0.01, 0.02) };
        assert!(!holds(ConditionKind::NotEquivalent, &negligible).0);
        assert!(holds(ConditionKind::Slower(0.0), &negligible).0);
        assert!(!holds(ConditionKind::NotEquivalent, &latency(Verdict::Equivalent, -0.01, 0.01)).0);
        assert!(holds(ConditionKind::NotEquivalent, &latency(Verdict::Slower, 0.01, 0.09)).0);
        assert!(!holds(ConditionKind::Inconclusive, &latency(Verdict::Equivalent, -0.01, 0.01)).0);
    }

    #[test]
    fn of_an_invalid_comparison_nothing_holds() {
        let of = latency(Verdict::Invalid, 0.2, 0.3);
        for claim in
            [SLOWER_3, ConditionKind::Faster(0.1), ConditionKind::NotEquivalent, ConditionKind::Inconclusive]
        {
            assert_eq!(holds(claim, &of), (false, false));
        }
    }
}
