//! Two records to one comparison: what the new one says against the old one.
//!
//! Owns what is asked of a comparison, why it can be refused, and who is matched with whom. Must not know flags or how
//! it is shown; `stats` does the arithmetic.
//!
//! The epochs of two records are not paired: they are compared by Welch's t on the logs of their levels, at a level that
//! the contenders of a scenario share by Holm's step-down, each metric on its own. With a reference, a contender that is
//! the same in both records, each epoch is first divided by what the reference did in it.

mod comparability;
mod conditions;
mod epochs;
mod loads;
mod races;

use deadheat_record::{Metric, Plan, Record, Shape};

use crate::AnalysisError;
use crate::number::{quantile, three_digits, time_ns, whole};

pub use comparability::{CODES, other_machine};
pub use conditions::of_race as race_conditions;
/// What a [`FailIf`] holds.
pub use deadheat_stats::{Claim, Condition};
pub use loads::loads;
pub use races::races;

/// What is asked of a comparison of two races; empty lists and `None` leave the choice to the records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
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

/// What a race is about in a scenario: conditions that name no metric speak of it.
pub fn asked_metrics(plan: &Plan, scenario: &str) -> Vec<Metric> {
    plan.scenario(scenario).map_or_else(Vec::new, |scenario| plan.metrics(scenario))
}

/// A metric by the name that it has in options and documents.
pub fn metric_word(metric: Metric) -> &'static str {
    metric.word()
}

/// What a scenario of that shape measures of each contender, and two records can be compared in.
fn measured(shape: &Shape) -> &'static [Metric] {
    match shape {
        Shape::Closed { .. } | Shape::Open { .. } => &Metric::ALL,
        Shape::Peak { .. } => &[Metric::Peak],
        Shape::Starts { .. } => &[Metric::ColdStart],
        Shape::Measure { .. } => &[Metric::Measure],
    }
}

/// A load in words; a measure stands in them as the study calls it.
pub fn shape(shape: &Shape) -> String {
    let connections = whole(u64::from(shape.connections()));
    match shape {
        Shape::Closed { .. } => format!("closed, {connections} connections"),
        Shape::Open { rate_per_s, poisson, .. } => {
            let arrivals = if *poisson { "Poisson" } else { "constant" };
            format!("open, {} requests/s, {arrivals}, {connections} connections", three_digits(*rate_per_s))
        }
        Shape::Peak { objective, .. } => {
            let (what, limit) = (quantile(objective.quantile), time_ns(objective.limit_ns as f64));
            format!("the highest rate with {what} < {limit}, {connections} connections")
        }
        Shape::Starts { starts } => format!("{starts} fresh starts"),
        Shape::Measure { measure } => format!("{measure}, as each measures it itself"),
    }
}

/// An index into the old plan's contenders and one into the new plan's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Match {
    old: usize,
    new: usize,
}

/// The name in the old record of the contender that the new one calls `new`.
fn old_name<'a>(asked: &'a Asked, new: &'a str) -> &'a str {
    asked.map.iter().find(|(_, now)| now == new).map_or(new, |(then, _)| then)
}

fn names(record: &Record) -> Vec<String> {
    record.plan.contenders.iter().map(|one| one.name.clone()).collect()
}

fn index_of(record: &Record, name: &str) -> Option<usize> {
    record.plan.contenders.iter().position(|one| one.name == name)
}
