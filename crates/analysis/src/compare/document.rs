//! The document that `deadheat compare --json` writes: schema `deadheat.compare/1`, a public contract.
//!
//! Owns the data types of a comparison of two records. Must not know how it is made or shown.

use deadheat_record::{Experiment, Finding, Metric, Severity, VerdictWord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::ConditionResult;

/// The schema of [`CompareDocument`]. Keys do not change within a version number.
pub const COMPARE_SCHEMA: &str = "deadheat.compare/1";

/// The comparison of a new record with an old one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareDocument {
    /// `deadheat.compare/1`.
    pub schema: String,
    /// The version of deadheat that made the comparison.
    pub version: String,
    /// The kind of the records.
    pub kind: ComparedKind,
    /// The record that the new one is compared with.
    pub old: ComparedRecord,
    /// The record that the verdicts are about.
    pub new: ComparedRecord,
    /// The contender by which both records are divided, epoch by epoch, with its name in the new record. Null if the records are compared
    /// directly, including whatever changed on the machine between them.
    pub reference: Option<String>,
    /// Ratios this close to 1 (1 +- margin) count as equivalent.
    pub margin: f64,
    /// Two-sided error rate of each metric in each scenario, shared by its contenders (Holm).
    pub alpha: f64,
    /// One entry per scenario that is in both records and has a compared metric, in the new record's order.
    pub scenarios: Vec<ComparedScenario>,
    /// Findings that apply to every comparison.
    pub findings: Vec<Finding>,
    /// The results of the `--fail-if` conditions, in the order given.
    pub conditions: Vec<ConditionResult>,
}

/// The kind of the compared records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComparedKind {
    /// Two races: epochs are the unit of replication.
    Races,
    /// Two lone loads: one run each, so there is no interval and no verdict.
    Loads,
}

/// One of the two records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRecord {
    /// The file, as it was given.
    pub file: String,
    /// The study's name; for a load, its target.
    pub study: String,
    /// The version of deadheat that measured.
    pub version: String,
    /// Start in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The seed of every random order.
    pub seed: u64,
}

/// One scenario that both records have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedScenario {
    /// Its name; `load` for loads.
    pub name: String,
    /// Its experiment in the new record, for example a closed or an open load.
    pub shape: Experiment,
    /// One entry per contender and metric.
    pub changes: Vec<Change>,
    /// Findings that apply to the comparisons of this scenario.
    pub findings: Vec<Finding>,
}

/// One contender in one metric: the new record compared with the old one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Its name in the new record.
    pub contender: String,
    /// Its name in the old record.
    pub old_contender: String,
    /// The output of its version command when the old record was made.
    pub old_version: Option<String>,
    /// The output of its version command when the new record was made.
    pub new_version: Option<String>,
    /// One that both records have.
    pub metric: Metric,
    /// Whether larger values are better.
    pub more_is_better: bool,
    /// Whether the new record's race asked for this metric. Conditions that name no metric apply to these.
    pub asked: bool,
    /// The geometric mean over the old record's epochs, in requests per second or nanoseconds; the value itself for a load.
    pub old: Option<f64>,
    /// The same for the new record.
    pub new: Option<f64>,
    /// New divided by old. With a reference, contender over reference in the new record, divided by contender over reference in the old one.
    pub ratio: Option<f64>,
    /// Lower end of the interval; null for loads and with fewer than two epochs on either side.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The error rate of the interval, after Holm's correction; null without an interval.
    pub alpha: Option<f64>,
    /// The verdict on the new record's contender.
    pub verdict: VerdictWord,
    /// Whether there is a difference that lies within the margin.
    pub negligible: bool,
    /// The number of epochs of the old record behind the comparison.
    pub old_epochs: usize,
    /// The number of epochs of the new record behind the comparison.
    pub new_epochs: usize,
    /// The smallest ratio that could have been detected with a power of 90 %.
    pub detectable_ratio: Option<f64>,
}

impl CompareDocument {
    /// Whether a finding invalidates any comparison that the race was about, including comparisons that are missing because a contender was
    /// excluded from the new race.
    pub fn is_invalid(&self) -> bool {
        let is = |one: &ComparedScenario| {
            let whole =
                |finding: &Finding| finding.severity == Severity::Invalid && finding.metrics.is_empty();
            one.changes.iter().any(|change| change.asked && change.verdict == VerdictWord::Invalid)
                || one.findings.iter().any(whole)
        };
        // What invalidates a load invalidates its comparison, also if nothing was measured that could be compared.
        let of_loads = self.kind == ComparedKind::Loads
            && self.findings.iter().any(|one| one.severity == Severity::Invalid);
        of_loads || self.scenarios.iter().any(is)
    }
}
