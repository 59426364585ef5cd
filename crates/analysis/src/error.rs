//! The reasons why a record cannot be made into a report.

use deadheat_record::HistogramError;
use deadheat_stats::{JudgeError, RulesError};

use crate::judge::AskError;

/// The reason why a record cannot be made into a report.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// A histogram in the record is damaged.
    #[error("the record's scenario {scenario} cannot be reported: {source}; the record is damaged")]
    Histogram {
        /// The scenario.
        scenario: String,
        /// The damage.
        source: HistogramError,
    },
    /// The plan's method is not valid.
    #[error("the record's method cannot be followed: {0}")]
    Rules(#[from] RulesError),
    /// The record has epochs that its own rules do not allow.
    #[error("the record's scenario {scenario} cannot be judged: {source}")]
    Judge {
        /// The scenario.
        scenario: String,
        /// The reason.
        source: JudgeError,
    },
    /// The record belongs to a different study than the audit.
    #[error("the record is of the study {found}, and not of {wanted}; give a record of {wanted}")]
    OtherStudy {
        /// The study of the record.
        found: String,
        /// The study of the audit.
        wanted: String,
    },
}

impl AnalysisError {
    /// The error of a judge about a scenario.
    pub(crate) fn of(scenario: &str, error: AskError) -> Self {
        match error {
            AskError::Rules(source) => Self::Rules(source),
            AskError::Judge(source) => Self::Judge { scenario: scenario.into(), source },
            AskError::Histogram(source) => Self::Histogram { scenario: scenario.into(), source },
        }
    }
}
