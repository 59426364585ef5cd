//! Converts the judgements of contests to comparisons and letters.
//!
//! Owns which verdicts a finding makes invalid. Must not know how a comparison is shown.

use deadheat_record::{Metric, Record};
use deadheat_stats::{EpochRatio, PairJudgement, Verdict, compact_letters};

use crate::judge::{Judged, word};
use crate::report::{Comparison, ContenderResult};
use crate::series::Contest;

/// One comparison per contest; invalid if a finding invalidates the value of either side.
pub(crate) fn all(
    record: &Record,
    judged: &Judged,
    invalid: &dyn Fn(&str, Metric) -> bool,
) -> Vec<Comparison> {
    let name = |index: usize| record.plan.contenders[index].name.clone();
    let is_whole = judged.numbers.iter().copied().eq(1..=judged.numbers.len());
    let numbers: &[usize] = if is_whole { &[] } else { &judged.numbers };
    let one = |((contest, judged), epochs): ((&Contest, &PairJudgement), &Vec<EpochRatio>)| {
        let (baseline, contender) = (name(contest.baseline), name(contest.contender));
        let taken = [&baseline, &contender].iter().any(|one| invalid(one, contest.metric));
        let verdict = if taken { Verdict::Invalid } else { judged.verdict };
        Comparison {
            baseline,
            contender,
            metric: contest.metric,
            ratio: judged.ratio,
            low: judged.low,
            high: judged.high,
            alpha: judged.alpha,
            verdict: word(verdict),
            negligible: judged.negligible && verdict != Verdict::Invalid,
            epochs: judged.epochs,
            sd_log_ratio: judged.sd_log_ratio,
            serial_correlation: judged.serial.map(|serial| serial.lag1),
            serial_z: judged.serial.map(|serial| serial.z),
            detectable_ratio: judged.detectable_ratio,
            epochs_needed: judged.epochs_needed,
            total_ratio: judged.total_ratio,
            provisional: judged.provisional,
            epoch_ratios: epochs.iter().map(|epoch| epoch.trimmed().exp()).collect(),
            epoch_numbers: numbers.to_vec(),
        }
    };
    let pairs = judged.judgement.iter().flat_map(|all| &all.pairs);
    judged.contests.iter().zip(pairs).zip(&judged.epochs).map(one).collect()
}

/// The compact letters of `results` in the metric of `comparisons`. All are empty unless every pair was compared: contenders that were not
/// compared would share a letter for no reason.
pub(crate) fn letters(
    results: &[ContenderResult],
    order: &[usize],
    comparisons: &[&Comparison],
) -> Vec<String> {
    let n = results.len();
    if n < 2 || comparisons.len() != n * (n - 1) / 2 {
        return vec![String::new(); n];
    }
    let place = |name: &str| results.iter().position(|result| result.contender == name);
    let apart = |one: &&&Comparison| one.verdict.tells_apart();
    let told_apart: Vec<(usize, usize)> = comparisons
        .iter()
        .filter(apart)
        .filter_map(|one| Some((place(&one.baseline)?, place(&one.contender)?)))
        .collect();
    // There are always letters: the order is a permutation, and each pair has two members.
    compact_letters(order, &told_apart).unwrap_or_else(|_| vec![String::new(); n])
}
