//! Asks the referee whether to go on, from what is in the record.
//!
//! Owns: the way from a record to the referee. Must not know: any statistics of its own.

use deadheat_record::{HistogramError, Method, Record};
use deadheat_stats::{
    Direction, EpochRatio, Hypothesis, JudgeError, Judgement, Progress, Referee, Rules, RulesError, STEADY,
    STEADY_ALPHA, climbs, epoch_log_ratio,
};

use crate::series::{self, Contest, PairedEpoch};

/// Why the referee could not be asked.
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

/// A referee for one race.
#[derive(Debug)]
pub struct Bench {
    referee: Referee,
}

impl Bench {
    /// A referee by the rules of a method.
    ///
    /// # Errors
    /// When the rules make no sense.
    pub fn new(method: &Method) -> Result<Self, AskError> {
        let rules = Rules::ending_at_the_last(&method.looks, method.alpha, method.margin, method.seed);
        Ok(Self { referee: Referee::new(rules)? })
    }

    /// What can be said of a scenario now; none before its first epoch.
    ///
    /// # Errors
    /// When the record cannot be judged.
    pub fn ask(
        &self,
        record: &Record,
        scenario: &str,
        progress: Progress,
    ) -> Result<Option<Judgement>, AskError> {
        let contests = series::contests(record, scenario);
        let series: Vec<Vec<EpochRatio>> =
            series::paired_epochs(record, scenario, &contests)?.iter().map(|epochs| ratios(epochs)).collect();
        if series.iter().all(Vec::is_empty) {
            return Ok(None);
        }
        let direction = |contest: &Contest| {
            if contest.metric.more_is_better() { Direction::MoreIsBetter } else { Direction::LessIsBetter }
        };
        let family: Vec<Hypothesis<'_>> = contests
            .iter()
            .zip(&series)
            .map(|(contest, epochs)| Hypothesis { epochs, direction: direction(contest) })
            .collect();
        Ok(Some(self.referee.judge(&family, progress)?))
    }
}

fn ratios(epochs: &[PairedEpoch]) -> Vec<EpochRatio> {
    let ratio = |epoch: &PairedEpoch| {
        Some(epoch_log_ratio(&epoch.baseline, &epoch.contender)?.coarse(epoch.resolution_ln))
    };
    epochs.iter().filter_map(ratio).collect()
}

/// Contenders whose rate still climbed within the epochs so far, with the change over an epoch.
pub fn climbing(record: &Record, scenario: &str) -> Vec<(String, f64)> {
    record
        .racing(scenario)
        .into_iter()
        .filter_map(|contender| {
            let climb = climbs(&series::paces(record, scenario, contender), STEADY, STEADY_ALPHA)?;
            climb.climbs.then(|| (record.plan.contenders[contender].name.clone(), climb.change))
        })
        .collect()
}
