//! Why a record could not be made into a report.

use deadheat_record::HistogramError;
use deadheat_stats::{JudgeError, RulesError};

/// Why a record could not be made into a report.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// A histogram in the record is damaged.
    #[error("the record's scenario {scenario} cannot be reported: {source}; the record is damaged")]
    Histogram {
        /// The scenario.
        scenario: String,
        /// What is wrong.
        source: HistogramError,
    },
    /// The plan's method cannot be followed.
    #[error("the record's method cannot be followed: {0}")]
    Rules(#[from] RulesError),
    /// The record has epochs that its own rules do not allow.
    #[error("the record's scenario {scenario} cannot be judged: {source}")]
    Judge {
        /// The scenario.
        scenario: String,
        /// What is wrong.
        source: JudgeError,
    },
    /// The record of another study than the one that is audited.
    #[error("the record is of the study {found}, and not of {wanted}; give a record of {wanted}")]
    OtherStudy {
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
}
