//! The one judge: what a race's own rules say of what is in its record.
//!
//! Owns the way from the record's words to those of `stats`, and back. A race asks whether to go on, and its report what can be said: they
//! ask the same judge, and so come to the same verdicts. Must not know: any statistics of its own.

use deadheat_record::{HistogramError, Method, Record, VerdictWord};
use deadheat_stats::{
    Climb, Direction, EpochRatio, Hypothesis, JudgeError, Judgement, Progress, Referee, RulesError, STEADY,
    STEADY_ALPHA, StoppingRules, Verdict, climbs, epoch_log_ratio,
};

use crate::series::{self, Contest, PairedEpoch};

/// Why nothing could be judged.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The plan's rules make no sense.
    #[error("the race's rules: {0}")]
    Rules(#[from] RulesError),
    /// What was measured cannot be judged.
    #[error("what was measured cannot be judged: {0}")]
    Judge(#[from] JudgeError),
    /// A histogram in the record is damaged.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
}

/// The judge of one race.
#[derive(Debug)]
pub struct Judge {
    referee: Referee,
}

/// A scenario, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What is compared.
    pub contests: Vec<Contest>,
    /// `[contest][epoch]`: what each epoch that counts says of each contest, in time order.
    pub epochs: Vec<Vec<EpochRatio>>,
    /// What can be said of the contests, in their order; none where there are none.
    pub judgement: Option<Judgement>,
}

impl Judge {
    /// A judge by the rules of a method.
    ///
    /// # Errors
    /// When the rules make no sense.
    pub fn new(method: &Method) -> Result<Self, RulesError> {
        let rules =
            StoppingRules::ending_at_the_last(&method.looks, method.alpha, method.margin, method.seed);
        Ok(Self { referee: Referee::new(rules)? })
    }

    /// What can be said of a scenario, as the race stands.
    ///
    /// # Errors
    /// When a histogram in the record is damaged, or it has epochs that the rules do not allow.
    pub fn ask(&self, record: &Record, scenario: &str, progress: Progress) -> Result<Judged, AskError> {
        let contests = series::contests(record, scenario);
        let paired = series::paired_epochs(record, scenario, &contests)?;
        let epochs: Vec<Vec<EpochRatio>> = paired.iter().map(|epochs| ratios(epochs)).collect();
        let family: Vec<Hypothesis<'_>> = contests
            .iter()
            .zip(&epochs)
            .map(|(contest, epochs)| Hypothesis {
                epochs,
                direction: direction(contest.metric.more_is_better()),
            })
            .collect();
        let judgement = if family.is_empty() { None } else { Some(self.referee.judge(&family, progress)?) };
        Ok(Judged { contests, epochs, judgement })
    }
}

impl Judged {
    /// How many epochs of the scenario count.
    pub fn counted(&self, record: &Record, scenario: &str) -> usize {
        let pair = self.judgement.as_ref().and_then(|all| all.pairs.first());
        series::counted(record, scenario, pair.map(|pair| pair.epochs))
    }

    /// What decides whether a race goes on; none before the first epoch that counts.
    pub fn decision(&self) -> Option<&Judgement> {
        self.judgement.as_ref().filter(|_| self.epochs.iter().any(|epochs| !epochs.is_empty()))
    }
}

fn ratios(epochs: &[PairedEpoch]) -> Vec<EpochRatio> {
    let ratio = |epoch: &PairedEpoch| {
        Some(epoch_log_ratio(&epoch.baseline, &epoch.contender)?.coarse(epoch.resolution_ln))
    };
    epochs.iter().filter_map(ratio).collect()
}

/// Which way a metric improves.
pub fn direction(more_is_better: bool) -> Direction {
    if more_is_better { Direction::MoreIsBetter } else { Direction::LessIsBetter }
}

/// A verdict as records have it.
pub fn word(verdict: Verdict) -> VerdictWord {
    match verdict {
        Verdict::Faster => VerdictWord::Faster,
        Verdict::Slower => VerdictWord::Slower,
        Verdict::Equivalent => VerdictWord::Equivalent,
        Verdict::Inconclusive => VerdictWord::Inconclusive,
        Verdict::Invalid => VerdictWord::Invalid,
    }
}

/// What a record's word of a verdict means.
pub fn verdict(word: VerdictWord) -> Verdict {
    match word {
        VerdictWord::Faster => Verdict::Faster,
        VerdictWord::Slower => Verdict::Slower,
        VerdictWord::Equivalent => Verdict::Equivalent,
        VerdictWord::Inconclusive => Verdict::Inconclusive,
        VerdictWord::Invalid => Verdict::Invalid,
    }
}

/// How much faster a contender became within the epochs of a scenario so far, and whether that is a climb; none where there are too few
/// rounds to tell.
pub fn climb(record: &Record, scenario: &str, contender: usize) -> Option<Climb> {
    climbs(&series::paces(record, scenario, contender), STEADY, STEADY_ALPHA)
}

/// Contenders whose rate still climbed within the epochs so far, with the change over an epoch.
pub fn climbing(record: &Record, scenario: &str) -> Vec<(String, f64)> {
    let one = |contender: usize| {
        let climb = climb(record, scenario, contender)?;
        climb.climbs.then(|| (record.plan.contenders[contender].name.clone(), climb.change))
    };
    record.racing(scenario).into_iter().filter_map(one).collect()
}
