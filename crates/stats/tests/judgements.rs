//! Tests of judgements: properties that hold for any epochs, and cases worked out by hand.
//!
//! Owns the referee's behaviour as its callers see it. It must not know the modules behind it.

use std::sync::LazyLock;

use deadheat_stats::{
    Direction, EpochRatio, Hypothesis, Judgement, Next, PairJudgement, Progress, Referee, StoppingRules,
    Verdict,
};
use proptest::prelude::*;

static REFEREE: LazyLock<Referee> = LazyLock::new(|| Referee::new(StoppingRules::default()).unwrap());

fn epochs(logs: &[f64]) -> Vec<EpochRatio> {
    logs.iter().map(|&x| EpochRatio::single(x).unwrap()).collect()
}

/// `n` log ratios around `centre`, alternately `spread` above and below.
fn around(centre: f64, spread: f64, n: usize) -> Vec<EpochRatio> {
    epochs(&(0..n).map(|i| centre + if i % 2 == 0 { spread } else { -spread }).collect::<Vec<_>>())
}

fn judge(pairs: &[Vec<EpochRatio>], progress: Progress) -> Judgement {
    judge_by(pairs, &vec![Direction::MoreIsBetter; pairs.len()], progress)
}

fn judge_by(pairs: &[Vec<EpochRatio>], directions: &[Direction], progress: Progress) -> Judgement {
    let both = pairs.iter().zip(directions);
    let family: Vec<_> =
        both.map(|(epochs, &direction)| Hypothesis { pair: (0, 1), metric: 0, epochs, direction }).collect();
    REFEREE.judge(&family, progress).unwrap()
}

fn numbers(p: &PairJudgement) -> [Option<f64>; 7] {
    [p.ratio, p.low, p.high, Some(p.alpha), p.sd_log_ratio, p.detectable_ratio, p.total_ratio]
}

#[test]
fn nothing_and_one_epoch_have_no_interval() {
    for n in [0, 1] {
        for progress in [Progress::Running, Progress::Ended, Progress::Interrupted] {
            let found = judge(&[around(0.1, 0.0, n)], progress);
            let pair = found.pairs[0];
            assert_eq!(
                (pair.low, pair.high, pair.sd_log_ratio, pair.detectable_ratio),
                (None, None, None, None)
            );
            assert_eq!((pair.ratio.is_some(), pair.verdict), (n == 1, Verdict::Inconclusive));
            let next =
                if progress == Progress::Ended { Next::Exhausted } else { Next::GoOn { next_look: 6 } };
            assert_eq!((found.next, found.look), (next, None));
        }
    }
}

#[test]
fn identical_contenders_are_equivalent_at_the_first_look() {
    let found = judge(&[around(0.0, 0.0, 6)], Progress::Running);
    let pair = found.pairs[0];
    assert_eq!((pair.ratio, pair.low, pair.high), (Some(1.0), Some(1.0), Some(1.0)));
    assert_eq!((pair.verdict, pair.decided_at, pair.provisional), (Verdict::Equivalent, Some(6), false));
    assert_eq!((found.next, found.look), (Next::Decided, Some(6)));
}

#[test]
fn a_constant_difference_is_told_apart_and_may_be_negligible() {
    let pairs = [around(0.2, 0.0, 6), around(-0.01, 0.0, 6)];
    let found = judge(&pairs, Progress::Running);
    assert_eq!((found.pairs[0].verdict, found.pairs[0].negligible), (Verdict::Faster, false));
    assert_eq!((found.pairs[1].verdict, found.pairs[1].negligible), (Verdict::Slower, true));
    let less = judge_by(&pairs, &[Direction::LessIsBetter; 2], Progress::Running);
    assert_eq!((less.pairs[0].verdict, less.pairs[1].verdict), (Verdict::Slower, Verdict::Faster));
}

#[test]
fn metrics_that_improve_in_opposite_ways_are_one_family() {
    // One pair in three metrics: throughput is 10 % higher, latency is 10 % lower, and CPU time is the same.
    let family = [around(0.1, 0.0, 6), around(-0.1, 0.0, 6), around(0.0, 0.2, 6)];
    let directions = [Direction::MoreIsBetter, Direction::LessIsBetter, Direction::LessIsBetter];
    let found = judge_by(&family, &directions, Progress::Running);
    let verdicts: Vec<_> = found.pairs.iter().map(|p| p.verdict).collect();
    assert_eq!(verdicts, [Verdict::Faster, Verdict::Faster, Verdict::Inconclusive]);
    // By Holm's procedure, the last metric has inherited alpha from both others. Directions change verdicts but no numbers.
    assert_eq!(found.pairs[2].alpha, 0.025);
    let mirrored = [Direction::LessIsBetter, Direction::MoreIsBetter, Direction::MoreIsBetter];
    let other = judge_by(&family, &mirrored, Progress::Running);
    for (a, b) in found.pairs.iter().zip(&other.pairs) {
        assert_eq!(numbers(a), numbers(b));
    }
    assert_eq!((other.pairs[0].verdict, other.pairs[1].verdict), (Verdict::Slower, Verdict::Slower));
}

/// The same twelve values, each like the one before, or in an order in which they are not.
#[test]
fn epochs_that_follow_each_other_widen_the_interval() {
    let rising: Vec<f64> = (0..12).map(|at| f64::from(at) / 100.0).collect();
    let mixed: Vec<f64> = (0..12).map(|at| f64::from(at * 5 % 12) / 100.0).collect();
    let width = |logs: &[f64]| {
        let pair = judge(&[epochs(logs)], Progress::Running).pairs[0];
        (pair.high.unwrap() / pair.low.unwrap()).ln()
    };
    assert!(width(&rising) > 1.5 * width(&mixed), "{} {}", width(&rising), width(&mixed));
}

/// A pair of seven contenders that happens to vary little is not more certain than the others let expect.
#[test]
fn pairs_of_a_metric_tell_each_other_how_much_to_expect_them_to_vary() {
    let calm = around(0.02, 0.0001, 6);
    let usual = around(0.02, 0.02, 6);
    let judged = |metrics: [usize; 6]| {
        let of = |(at, metric): (usize, usize)| Hypothesis {
            pair: (0, at + 1),
            metric,
            epochs: if at == 0 { &calm } else { &usual },
            direction: Direction::MoreIsBetter,
        };
        let family: Vec<_> = metrics.into_iter().enumerate().map(of).collect();
        REFEREE.judge(&family, Progress::Running).unwrap().pairs[0]
    };
    assert_eq!(judged([0; 6]).verdict, Verdict::Inconclusive);
    assert_eq!(judged([0, 1, 1, 1, 1, 1]).verdict, Verdict::Faster, "others vary in another metric");
}

#[test]
fn between_looks_the_interval_is_provisional_and_the_verdict_waits() {
    let found = judge(&[around(0.2, 0.001, 5)], Progress::Running);
    let pair = found.pairs[0];
    assert!(pair.provisional && pair.low.unwrap() > 1.0);
    assert_eq!((pair.verdict, found.next), (Verdict::Inconclusive, Next::GoOn { next_look: 6 }));
    let later = judge(&[around(0.2, 0.001, 8)], Progress::Running);
    assert_eq!((later.pairs[0].verdict, later.pairs[0].decided_at), (Verdict::Faster, Some(6)));
    assert!(later.pairs[0].provisional && later.pairs[0].epochs == 8);
}

#[test]
fn a_budget_that_ends_takes_a_last_look_and_an_interruption_does_not() {
    let pair = || vec![around(0.2, 0.001, 4)];
    let ended = judge(&pair(), Progress::Ended);
    assert_eq!((ended.pairs[0].verdict, ended.look, ended.next), (Verdict::Faster, Some(4), Next::Decided));
    assert!(!ended.pairs[0].provisional);
    let interrupted = judge(&pair(), Progress::Interrupted);
    assert_eq!((interrupted.pairs[0].verdict, interrupted.look), (Verdict::Inconclusive, None));
    assert!(interrupted.pairs[0].provisional);
    assert_eq!(interrupted.next, Next::GoOn { next_look: 6 });
}

#[test]
fn an_end_at_a_planned_look_spends_what_is_left() {
    // |t| of about 4.9: under 6.869, the boundary at six epochs, and over t_{0.9875,5} = 3.16.
    let pair = vec![epochs(&[0.05, 0.09, 0.03, 0.08, 0.04, 0.12])];
    assert_eq!(judge(&pair, Progress::Running).pairs[0].verdict, Verdict::Inconclusive);
    let ended = judge(&pair, Progress::Ended);
    assert_eq!((ended.pairs[0].verdict, ended.next), (Verdict::Faster, Next::Decided));
}

#[test]
fn a_rejection_persists_while_the_race_goes_on() {
    let steady = around(0.1, 0.001, 6);
    // Later epochs undo the difference; the other pair stays open and keeps the race going.
    let mut fading = steady.clone();
    fading.extend(epochs(&[-0.15, 0.3, -0.4, 0.1]));
    let open = around(0.0, 0.2, 10);
    let found = judge(&[fading, open], Progress::Running);
    let pair = found.pairs[0];
    assert_eq!((pair.verdict, pair.decided_at, pair.epochs), (Verdict::Faster, Some(6), 10));
    assert!(pair.low.unwrap() < 1.0 && pair.high.unwrap() > 1.0);
    assert_eq!(found.next, Next::GoOn { next_look: 15 });
    assert_eq!(found.pairs[1].alpha, 0.025, "the second pair has inherited the first one's share");
    assert_eq!(pair.alpha, 0.0125);
}

#[test]
fn an_equivalent_pair_may_yet_be_told_apart() {
    // At six epochs, |t| = 5: the interval includes 1 and lies inside the margin. At ten epochs, it excludes 1.
    let small = around(0.004, 0.0018, 10);
    let open = around(0.0, 0.2, 10);
    let at_six = judge(&[small[..6].to_vec(), open[..6].to_vec()], Progress::Running).pairs[0];
    assert_eq!((at_six.verdict, at_six.decided_at), (Verdict::Equivalent, Some(6)));
    let at_ten = judge(&[small, open], Progress::Running).pairs[0];
    assert_eq!((at_ten.verdict, at_ten.negligible, at_ten.decided_at), (Verdict::Faster, true, Some(10)));
}

/// The pair is equivalent at six epochs, but not at ten, while another pair keeps the race going. An equivalence always follows the
/// current interval.
#[test]
fn an_equivalence_is_taken_back_with_its_interval() {
    let mut fading = around(0.0, 0.0005, 6);
    fading.extend(epochs(&[0.06, 0.06, -0.06, 0.06]));
    let open = around(0.0, 0.2, 10);
    let at_six = judge(&[fading[..6].to_vec(), open[..6].to_vec()], Progress::Running).pairs[0];
    assert_eq!((at_six.verdict, at_six.decided_at), (Verdict::Equivalent, Some(6)));
    let at_ten = judge(&[fading, open], Progress::Running).pairs[0];
    assert!(at_ten.high.unwrap() > 1.03, "{at_ten:?}");
    assert_eq!((at_ten.verdict, at_ten.decided_at), (Verdict::Inconclusive, None));
}

/// All pairs are decided at six epochs, and the race continues for two more. Its end is also a look.
#[test]
fn an_end_after_all_was_decided_is_a_look() {
    let told = judge(&[around(0.2, 0.001, 8)], Progress::Ended).pairs[0];
    assert_eq!((told.verdict, told.decided_at, told.provisional), (Verdict::Faster, Some(6), false));
    let mut fading = around(0.0, 0.0005, 6);
    fading.extend(epochs(&[0.1, -0.1]));
    let faded = judge(&[fading], Progress::Ended).pairs[0];
    assert_eq!((faded.verdict, faded.provisional), (Verdict::Inconclusive, false));
}

/// The values are whole milliseconds: 12 and 13 in every epoch may be 12.49 and 12.51, and 12 and 12 may differ by 7 %.
#[test]
fn what_is_finer_than_the_values_is_not_told() {
    let coarse = |ln: f64, resolution: f64| {
        let one = EpochRatio::single(ln).unwrap().coarse(resolution);
        judge(&[vec![one; 6]], Progress::Running).pairs[0]
    };
    let (ln, step) = ((13.0_f64 / 12.0).ln(), 1.0 / 12.0);
    assert_eq!(coarse(ln, step).verdict, Verdict::Inconclusive);
    assert!(
        coarse(ln, step).detectable_ratio.unwrap() > 1.08,
        "what the steps hide could not have been seen"
    );
    assert_eq!(coarse(ln, step).epochs_needed, None, "no number of epochs gets within 3 %");
    assert_eq!(coarse(0.0, step).verdict, Verdict::Inconclusive);
    assert_eq!((coarse(ln, 0.0).verdict, coarse(0.0, 0.001).verdict), (Verdict::Faster, Verdict::Equivalent));
    let told = coarse(1.0, step);
    assert_eq!(told.verdict, Verdict::Faster);
    assert!((told.low.unwrap().ln() - (1.0 - step)).abs() < 1e-12, "{told:?}");
}

/// Later epochs with finer values do not change what a look could tell.
#[test]
fn a_look_knows_only_the_resolution_of_its_own_epochs() {
    let ln = 0.07;
    let coarse = EpochRatio::single(ln).unwrap().coarse(0.1);
    let mut pair = vec![coarse; 6];
    assert_eq!(judge(&[pair.clone()], Progress::Running).pairs[0].verdict, Verdict::Inconclusive);
    pair.push(EpochRatio::single(ln).unwrap().coarse(0.01));
    let told = judge(&[pair], Progress::Running).pairs[0];
    assert_eq!((told.verdict, told.decided_at), (Verdict::Inconclusive, None));
}

#[test]
fn too_noisy_is_said_at_the_first_look() {
    let noisy = judge(&[around(0.0, 0.2, 6)], Progress::Running).too_noisy.unwrap();
    assert!(noisy.epochs_needed.unwrap() > 60 && noisy.detectable_ratio.unwrap() > 1.1);
    assert_eq!(judge(&[around(0.0, 0.2, 5)], Progress::Running).too_noisy, None);
    assert_eq!(judge(&[around(0.0, 0.02, 6)], Progress::Running).too_noisy, None);
    // There is no warning if the difference is plain in spite of the noise.
    assert_eq!(judge(&[around(2.0, 0.2, 6)], Progress::Running).too_noisy, None);
}

#[test]
fn slow_slices_that_come_and_go_are_noticed() {
    let pair = |stalls: &[f64]| -> Vec<EpochRatio> {
        let noise = [0.011, -0.009, 0.004, -0.012, 0.008, -0.002];
        noise.iter().zip(stalls).map(|(x, stall)| EpochRatio::new(*x, x - stall).unwrap()).collect()
    };
    let intermittent = |stalls: [f64; 6]| judge(&[pair(&stalls)], Progress::Running).pairs[0].intermittent;
    assert!(!intermittent([0.0; 6]));
    assert!(!intermittent([0.002, -0.001, 0.001, 0.003, -0.002, 0.001]));
    assert!(intermittent([0.03; 6]));
    // The noise has sd 0.00927, so that two standard errors are 0.00757.
    assert!(intermittent([0.0085; 6]) && !intermittent([0.0065; 6]));
    // Two of six epochs stall. A standard error that included the stalls would be too large to detect them.
    assert!(intermittent([0.0, 0.08, 0.0, 0.0, 0.1, 0.0]));
    // A rounding error is not a stall, even if the epochs have no spread.
    let flat = vec![EpochRatio::new(0.01, 0.01 + 1e-15).unwrap(); 6];
    assert!(!judge(&[flat], Progress::Running).pairs[0].intermittent);
}

fn some_epochs() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let scale = prop_oneof![Just(0.0), Just(0.003), Just(0.02), Just(0.2), Just(5.0), Just(700.0)];
    let shift = prop_oneof![Just(0.0), Just(0.01), Just(-0.1), Just(0.4)];
    (scale, shift, prop::collection::vec((-1.0_f64..1.0, -1.0_f64..1.0), 0..=30)).prop_map(
        |(scale, shift, xs)| {
            xs.into_iter().map(|(a, b)| (shift + scale * a, shift + scale * (a + 0.3 * b))).collect()
        },
    )
}

fn some_progress() -> impl Strategy<Value = Progress> {
    prop_oneof![Just(Progress::Running), Just(Progress::Ended), Just(Progress::Interrupted)]
}

fn ratios(raw: &[(f64, f64)]) -> Vec<EpochRatio> {
    raw.iter().map(|&(a, b)| EpochRatio::new(a, b).unwrap()).collect()
}

fn near(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => a.is_none() && b.is_none(),
    }
}

/// Whether an interval shows a dead heat.
fn lies_within_the_margin(pair: &PairJudgement) -> bool {
    let margin = 1.0 + StoppingRules::default().margin;
    pair.low.zip(pair.high).is_some_and(|(low, high)| 1.0 / margin <= low && high <= margin)
}

/// Six equal epochs look like a dead heat. Fifteen that follow each other say less: random tests found these.
#[test]
fn a_dead_heat_is_open_again_when_its_interval_no_longer_lies_within_the_margin() {
    let found = [
        0.01, 0.01, 0.01, 0.01, 0.0229, 0.0127, 0.0285, 0.01, 0.01, -0.0043, -0.0053, -0.0085, 0.01, 0.0197,
        0.0225,
    ];
    let raw: Vec<(f64, f64)> = found.iter().map(|one| (*one, *one)).collect();
    let earlier = judge(&[ratios(&raw[..6])], Progress::Running).pairs[0];
    let later = judge(&[ratios(&raw)], Progress::Running).pairs[0];
    assert_eq!(earlier.verdict, Verdict::Equivalent);
    assert!(lies_within_the_margin(&earlier) && !lies_within_the_margin(&later), "{earlier:?} {later:?}");
    assert_eq!((later.verdict, later.decided_at), (Verdict::Inconclusive, None));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_number_is_without_meaning(raw in some_epochs(), other in some_epochs(), progress in some_progress()) {
        let n = raw.len().min(other.len());
        for p in judge(&[ratios(&raw[..n]), ratios(&other[..n])], progress).pairs {
            prop_assert!(numbers(&p).into_iter().flatten().all(f64::is_finite), "{p:?}");
            if let (Some(low), Some(ratio), Some(high)) = (p.low, p.ratio, p.high) {
                prop_assert!(low <= ratio && ratio <= high, "{p:?}");
            }
            prop_assert_eq!(p.decided_at.is_some(), p.verdict.is_decided());
            prop_assert!(!p.negligible || p.verdict.tells_apart());
        }
    }

    #[test]
    fn swapping_the_sides_mirrors_the_judgement(raw in some_epochs(), progress in some_progress()) {
        let there = judge(&[ratios(&raw)], progress);
        let swapped: Vec<_> = raw.iter().map(|(a, b)| (-a, -b)).collect();
        let back = judge(&[ratios(&swapped)], progress);
        let less = judge_by(&[ratios(&swapped)], &[Direction::LessIsBetter], progress);
        let (a, b) = (there.pairs[0], back.pairs[0]);
        let inverse = |x: Option<f64>| x.map(|x| 1.0 / x);
        // The inverse of a ratio near the limits of `f64` may be outside them.
        if [a.ratio, a.low, a.high, b.ratio, b.low, b.high].into_iter().flatten().all(f64::is_normal) {
            prop_assert!(near(a.ratio, inverse(b.ratio)), "{a:?} {b:?}");
            prop_assert!(near(a.low, inverse(b.high)) && near(a.high, inverse(b.low)), "{a:?} {b:?}");
        }
        let mirrored = match a.verdict {
            Verdict::Faster => Verdict::Slower,
            Verdict::Slower => Verdict::Faster,
            same => same,
        };
        prop_assert_eq!(b.verdict, mirrored);
        prop_assert_eq!(less.pairs[0].verdict, a.verdict);
        prop_assert_eq!(there.next, back.next);
    }

    /// Fewer than eight epochs do not show whether they follow each other.
    #[test]
    fn the_order_of_a_few_epochs_does_not_matter(raw in some_epochs(), turn in 0_usize..4) {
        let raw = &raw[..raw.len().min(7)];
        let mut turned = raw.to_vec();
        let first = turned.len().min(6);
        turned[..first].rotate_left(turn.min(first));
        let (a, b) = (judge(&[ratios(raw)], Progress::Running), judge(&[ratios(&turned)], Progress::Running));
        let (p, q) = (a.pairs[0], b.pairs[0]);
        prop_assert!(near(p.ratio, q.ratio) && near(p.low, q.low) && near(p.high, q.high));
        prop_assert_eq!((p.verdict, p.decided_at, a.next), (q.verdict, q.decided_at, b.next));
    }

    #[test]
    fn what_was_told_apart_stays_so_with_more_epochs(raw in some_epochs(), cut in 0_usize..30) {
        let cut = cut.min(raw.len());
        let earlier = judge(&[ratios(&raw[..cut])], Progress::Running).pairs[0];
        let later = judge(&[ratios(&raw)], Progress::Running).pairs[0];
        if earlier.verdict.tells_apart() {
            prop_assert_eq!((earlier.verdict, earlier.decided_at), (later.verdict, later.decided_at));
        }
        // A dead heat is open again only if the interval no longer lies within the margin.
        if earlier.verdict.is_decided() && !later.verdict.is_decided() {
            prop_assert!(!lies_within_the_margin(&later), "{later:?}");
        }
    }

    #[test]
    fn the_order_of_the_pairs_does_not_matter(a in some_epochs(), b in some_epochs(), c in some_epochs()) {
        let n = a.len().min(b.len()).min(c.len());
        let pairs: Vec<_> = [&a, &b, &c].iter().map(|raw| ratios(&raw[..n])).collect();
        let turned = [pairs[2].clone(), pairs[0].clone(), pairs[1].clone()];
        let (first, second) = (judge(&pairs, Progress::Running), judge(&turned, Progress::Running));
        // Shares of alpha may change places between pairs with equal evidence; verdicts may not.
        let verdicts = |j: &Judgement, order: [usize; 3]| order.map(|i| (j.pairs[i].verdict, j.pairs[i].decided_at));
        prop_assert_eq!(verdicts(&first, [0, 1, 2]), verdicts(&second, [1, 2, 0]));
    }

    #[test]
    fn judging_twice_gives_the_same_answer(raw in some_epochs(), progress in some_progress()) {
        prop_assert_eq!(judge(&[ratios(&raw)], progress), judge(&[ratios(&raw)], progress));
    }
}
