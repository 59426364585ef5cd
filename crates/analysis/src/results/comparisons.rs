//! From a record's pairs to comparisons and letters, by way of the referee.
//!
//! Owns the translation between the record's words and those of `stats`. Must not know how a comparison is shown, and
//! decides nothing itself.

use deadheat_record::{
    Comparison, ContenderResult, End, HistogramError, Method, Metric, Record, VerdictWord,
};
use deadheat_stats::{
    Direction, EpochRatio, Hypothesis, Judgement, PairJudgement, Progress, Referee, Rules, Verdict,
    compact_letters, epoch_log_ratio,
};

use crate::AnalysisError;
use crate::series::{self, Contest, PairedEpoch};

/// The referee's rules of a plan's method. The race must use the same to come to the same verdicts.
pub(crate) fn rules(method: &Method) -> Rules {
    Rules::ending_at_the_last(&method.looks, method.alpha, method.margin, method.seed)
}

/// `[contest][epoch]`: what each epoch says of each contest.
pub(crate) fn epoch_ratios(
    record: &Record,
    scenario: &str,
    contests: &[Contest],
) -> Result<Vec<Vec<EpochRatio>>, HistogramError> {
    let paired = series::paired_epochs(record, scenario, contests)?;
    let ratio =
        |one: &PairedEpoch| Some(epoch_log_ratio(&one.baseline, &one.contender)?.coarse(one.resolution_ln));
    Ok(paired.iter().map(|epochs| epochs.iter().filter_map(ratio).collect()).collect())
}

/// What the referee says of all contests; none when there are none.
pub(crate) fn judge(
    record: &Record,
    scenario: &str,
    referee: &Referee,
    contests: &[Contest],
    epochs: &[Vec<EpochRatio>],
) -> Result<Option<Judgement>, AnalysisError> {
    if epochs.is_empty() {
        return Ok(None);
    }
    let progress = match record.end_of(scenario) {
        Some(End::Decided | End::Maximum | End::Budget | End::Stopped | End::Unavailable) => Progress::Ended,
        None => Progress::Interrupted,
    };
    let direction = |contest: &Contest| {
        if contest.metric.more_is_better() { Direction::MoreIsBetter } else { Direction::LessIsBetter }
    };
    let family: Vec<Hypothesis<'_>> = contests
        .iter()
        .zip(epochs)
        .map(|(contest, epochs)| Hypothesis { epochs, direction: direction(contest) })
        .collect();
    let judgement = referee.judge(&family, progress);
    judgement.map(Some).map_err(|source| AnalysisError::Judge { scenario: scenario.into(), source })
}

/// How many epochs of a scenario count: each does for all contests or for none. Where nothing is compared, it does unless every round
/// was left out.
pub(crate) fn counted(record: &Record, scenario: &str, judgement: Option<&Judgement>) -> usize {
    let pair = judgement.and_then(|all| all.pairs.first());
    let undisturbed = || record.epochs_of(scenario).filter(|epoch| !epoch.is_disturbed()).count();
    pair.map_or_else(undisturbed, |pair| pair.epochs)
}

/// One comparison per contest; invalid where a finding takes the number of either side away.
pub(crate) fn all(
    record: &Record,
    contests: &[Contest],
    epochs: &[Vec<EpochRatio>],
    judgement: Option<&Judgement>,
    invalid: &dyn Fn(&str, Metric) -> bool,
) -> Vec<Comparison> {
    let judged = judgement.map_or(&[][..], |all| &all.pairs);
    let name = |index: usize| record.plan.contenders[index].name.clone();
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
        }
    };
    contests.iter().zip(judged).zip(epochs).map(one).collect()
}

/// The letters of so many results in one metric, of which these are the comparisons; all empty unless every pair was
/// compared: a pair that was not would share one for no reason.
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
    let apart = |one: &&&Comparison| matches!(one.verdict, VerdictWord::Faster | VerdictWord::Slower);
    let told_apart: Vec<(usize, usize)> = comparisons
        .iter()
        .filter(apart)
        .filter_map(|one| Some((place(&one.baseline)?, place(&one.contender)?)))
        .collect();
    // The order is a permutation and the pairs are of two, so that there are always letters.
    compact_letters(order, &told_apart).unwrap_or_else(|_| vec![String::new(); n])
}

pub(crate) fn word(verdict: Verdict) -> VerdictWord {
    match verdict {
        Verdict::Faster => VerdictWord::Faster,
        Verdict::Slower => VerdictWord::Slower,
        Verdict::Equivalent => VerdictWord::Equivalent,
        Verdict::Inconclusive => VerdictWord::Inconclusive,
        Verdict::Invalid => VerdictWord::Invalid,
    }
}
