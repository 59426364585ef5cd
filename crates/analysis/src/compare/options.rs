//! The options of a comparison, and its errors.

use deadheat_record::Metric;
use deadheat_stats::Condition;

use crate::error::AnalysisError;

/// The options of a comparison of two races. Empty lists and `None` leave the choice to the records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CompareOptions {
    /// Pairs of old name and new name, for contenders that were renamed.
    pub map: Vec<(String, String)>,
    /// Compare only these contenders, by their names in the new record.
    pub contenders: Vec<String>,
    /// Compare only these scenarios.
    pub scenarios: Vec<String>,
    /// Compare only these metrics.
    pub metrics: Vec<Metric>,
    /// Divide by this contender, by its name in the new record.
    pub reference: Option<String>,
    /// Replaces the new record's margin.
    pub margin: Option<f64>,
    /// Replaces the new record's error rate.
    pub alpha: Option<f64>,
    /// The conditions that make the command fail.
    pub conditions: Vec<FailIf>,
}

/// A condition as written, and its meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct FailIf {
    /// The text as written.
    pub text: String,
    /// The metric that it names; none for those that the race was about.
    pub metric: Option<Metric>,
    /// When it holds.
    pub condition: Condition,
}

/// A record and the file that it was read from.
#[derive(Debug)]
pub struct Named<'a, R> {
    /// The file name as given.
    pub file: String,
    /// The record.
    pub record: &'a R,
}

/// Why two records could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// One of the records is damaged.
    #[error("{file}: {source}")]
    Report {
        /// The file.
        file: String,
        /// The damage.
        source: AnalysisError,
    },
    /// An unknown name.
    #[error("{option} {name}: not in {place}, which has {}", .known.join(", "))]
    Unknown {
        /// The option that has the name.
        option: &'static str,
        /// The name.
        name: String,
        /// The place where the name is missing.
        place: String,
        /// The names that exist there.
        known: Vec<String>,
    },
    /// A name is the new name of two pairs.
    #[error("--map names {name} twice as the name in the new record")]
    Twice {
        /// The name.
        name: String,
    },
    /// No contender but the reference is chosen.
    #[error("--contender names only the reference {name}, which all others are compared with")]
    OnlyReference {
        /// The reference.
        name: String,
    },
    /// All contenders that would be compared were excluded from the old race.
    #[error("{file}: no contender is left to compare with; excluded from that race: {}", .out.join(", "))]
    Out {
        /// The old record's file.
        file: String,
        /// Names in the new record.
        out: Vec<String>,
    },
    /// The records have no scenario or contender in common.
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
