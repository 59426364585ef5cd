//! What is asked of a comparison, and why it can be refused.

use deadheat_record::Metric;
use deadheat_stats::Condition;

use crate::error::AnalysisError;

/// What is asked of a comparison of two races; empty lists and `None` leave the choice to the records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CompareOptions {
    /// Names in the old record and in the new one, of contenders that go by two names.
    pub map: Vec<(String, String)>,
    /// Only these contenders, by their names in the new record.
    pub contenders: Vec<String>,
    /// Only these scenarios.
    pub scenarios: Vec<String>,
    /// Only these metrics.
    pub metrics: Vec<Metric>,
    /// Divide by this contender, by its name in the new record.
    pub reference: Option<String>,
    /// Instead of the new record's margin.
    pub margin: Option<f64>,
    /// Instead of the new record's error rate.
    pub alpha: Option<f64>,
    /// What must not be.
    pub conditions: Vec<FailIf>,
}

/// A condition as it was written, and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct FailIf {
    /// As it was written.
    pub text: String,
    /// The metric that it speaks of; none for what the race was about.
    pub metric: Option<Metric>,
    /// When it holds.
    pub condition: Condition,
}

/// A record and the file that it was read from.
#[derive(Debug)]
pub struct Named<'a, R> {
    /// As it was given.
    pub file: String,
    /// What it holds.
    pub record: &'a R,
}

/// Why two records could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// One of them is damaged.
    #[error("{file}: {source}")]
    Report {
        /// The file.
        file: String,
        /// What is wrong.
        source: AnalysisError,
    },
    /// A name that is not there.
    #[error("{option} {name}: {place} has none of that name; it has {}", .known.join(", "))]
    Unknown {
        /// The option that named it.
        option: &'static str,
        /// The name.
        name: String,
        /// Where it was looked for.
        place: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Whoever would be compared was put out of the old race.
    #[error("{file}: nobody is left to compare with: {} was put out of that race", .out.join(", "))]
    Out {
        /// The old record's file.
        file: String,
        /// Names in the new record.
        out: Vec<String>,
    },
    /// No scenario or contender is in both.
    #[error("no {what} is in both records: {} then, {} now", .old.join(", "), .new.join(", "))]
    Nothing {
        /// `scenario` or `contender`.
        what: &'static str,
        /// Names in the old record.
        old: Vec<String>,
        /// Names in the new one.
        new: Vec<String>,
    },
}
