//! The one judge: it applies a race's own rules to the data in its record.
//!
//! Owns the translation between the record's types and those of `stats`. A running race asks it whether to continue, and the report asks it
//! for the verdicts. Both use the same judge, so they come to the same verdicts. Must not know: any statistics.

use deadheat_record::{End, HistogramError, Method, Record, VerdictWord};
use deadheat_stats::boundary::spent_by;
use deadheat_stats::{
    Climb, Direction, EpochRatio, FEWEST_SLOPES, Hypothesis, JudgeError, Judgement, Progress, Referee,
    RulesError, STEADY, STEADY_ALPHA, StoppingRules, Verdict, climbs, epoch_log_ratio,
};

use crate::series::{self, Contest, PairedEpoch};

/// Why a scenario could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The plan's rules are not valid.
    #[error("the race's rules: {0}")]
    Rules(#[from] RulesError),
    /// The measured data cannot be judged.
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

/// A judged scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The compared pairs and metrics.
    pub contests: Vec<Contest>,
    /// `[contest][epoch]`: the ratio of each contest in each epoch that counts, in time order.
    pub epochs: Vec<Vec<EpochRatio>>,
    /// The number of each epoch that counts within the scenario, from 1.
    pub numbers: Vec<usize>,
    /// The judgement of the contests, in their order; none if there are no contests.
    pub judgement: Option<Judgement>,
}

impl Judge {
    /// Creates a judge with the rules of a method.
    ///
    /// # Errors
    /// When the rules are not valid.
    pub fn new(method: &Method) -> Result<Self, RulesError> {
        let rules = StoppingRules::ending_at_the_last(&method.looks, method.alpha, method.margin);
        Ok(Self { referee: Referee::new(rules)? })
    }

    /// The share of alpha that a scenario's looks have spent so far, 0 to 1; 0 before the first look.
    ///
    /// # Errors
    /// Those of [`Judge::ask`].
    pub fn spent(&self, record: &Record, scenario: &str) -> Result<f64, AskError> {
        let ended = matches!(record.end_of(scenario), Some(End::Maximum | End::Budget));
        let judged = self.ask(record, scenario, Progress::Interrupted)?;
        let most = self.referee.rules().max_epochs;
        // Once a contender is excluded from a race of two there is nothing to judge, but looks may have been taken before.
        let measured = || Some(record.epochs_of(scenario).count()).filter(|_| judged.contests.is_empty());
        let look = judged.judgement.as_ref().and_then(|judgement| judgement.look).or_else(measured);
        Ok(if ended { 1.0 } else { look.map_or(0.0, |look| spent_by(look, most)) })
    }

    /// Judges a scenario in the current state of the race.
    ///
    /// # Errors
    /// When the record has a damaged histogram, or epochs that the rules do not allow.
    pub fn ask(&self, record: &Record, scenario: &str, progress: Progress) -> Result<Judged, AskError> {
        let contests = series::contests(record, scenario);
        let paired = series::paired_epochs(record, scenario, &contests)?;
        let epochs: Vec<Vec<EpochRatio>> = paired.iter().map(|epochs| ratios(epochs)).collect();
        // An epoch counts for all contests or for none.
        let numbers = paired.first().into_iter().flatten().map(|epoch| epoch.number).collect();
        let family: Vec<Hypothesis<'_>> = contests
            .iter()
            .zip(&epochs)
            .map(|(contest, epochs)| Hypothesis {
                pair: (contest.baseline, contest.contender),
                metric: contest.metric as usize,
                epochs,
                direction: direction(contest.metric.more_is_better()),
            })
            .collect();
        let judgement = if family.is_empty() { None } else { Some(self.referee.judge(&family, progress)?) };
        Ok(Judged { contests, epochs, numbers, judgement })
    }
}

impl Judged {
    /// The number of epochs of the scenario that count.
    pub fn counted(&self, record: &Record, scenario: &str) -> usize {
        let pair = self.judgement.as_ref().and_then(|all| all.pairs.first());
        series::counted(record, scenario, pair.map(|pair| pair.epochs))
    }

    /// The judgement that decides whether the race continues; none before the first epoch that counts.
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

/// The direction in which a metric improves.
pub fn direction(more_is_better: bool) -> Direction {
    if more_is_better { Direction::MoreIsBetter } else { Direction::LessIsBetter }
}

/// Converts a verdict to the record's word.
pub fn word(verdict: Verdict) -> VerdictWord {
    match verdict {
        Verdict::Faster => VerdictWord::Faster,
        Verdict::Slower => VerdictWord::Slower,
        Verdict::Equivalent => VerdictWord::Equivalent,
        Verdict::Inconclusive => VerdictWord::Inconclusive,
        Verdict::Invalid => VerdictWord::Invalid,
    }
}

/// Converts a record's word to a verdict.
pub fn verdict(word: VerdictWord) -> Verdict {
    match word {
        VerdictWord::Faster => Verdict::Faster,
        VerdictWord::Slower => Verdict::Slower,
        VerdictWord::Equivalent => Verdict::Equivalent,
        VerdictWord::Inconclusive => Verdict::Inconclusive,
        VerdictWord::Invalid => Verdict::Invalid,
    }
}

/// How much faster a contender became during the epochs of a scenario so far, and whether that counts as a climb; none if fewer than
/// [`FEWEST_SLOPES`] epochs have kept two rounds.
pub fn climb(record: &Record, scenario: &str, contender: usize) -> Option<Climb> {
    let paces = series::paces(record, scenario, contender);
    let is_enough = paces.iter().filter(|epoch| epoch.len() > 1).count() >= FEWEST_SLOPES;
    is_enough.then(|| climbs(&paces, STEADY, STEADY_ALPHA))?
}

/// Contenders whose rate still climbed during the epochs so far, with the change per epoch.
pub fn climbing(record: &Record, scenario: &str) -> Vec<(String, f64)> {
    let one = |contender: usize| {
        let climb = climb(record, scenario, contender)?;
        climb.climbs.then(|| (record.plan.contenders[contender].name.clone(), climb.change))
    };
    record.racing(scenario).into_iter().filter_map(one).collect()
}
