//! What `deadheat compare --json` writes: schema `deadheat.compare/1`, a public contract.
//!
//! Owns the nouns of a comparison of two records. Must not know how it is made or shown.

use deadheat_record::{Experiment, Finding, Severity, VerdictWord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::ConditionResult;

/// The schema of [`CompareDocument`]. Keys are stable within the number.
pub const COMPARE_SCHEMA: &str = "deadheat.compare/1";

/// Two records, compared: what the new one says against the old one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareDocument {
    /// `deadheat.compare/1`.
    pub schema: String,
    /// The version of deadheat that compared.
    pub version: String,
    /// What the records are of.
    pub kind: ComparedKind,
    /// What is compared with.
    pub old: ComparedRecord,
    /// What the verdicts speak of.
    pub new: ComparedRecord,
    /// The contender by which both records were divided, epoch by epoch, as the new record names it; null if the records
    /// were compared as they are, with whatever the machine did between them.
    pub reference: Option<String>,
    /// Ratios within 1 +- margin count as equivalent.
    pub margin: f64,
    /// Two-sided error rate of each metric in each scenario, shared by its contenders (Holm).
    pub alpha: f64,
    /// One entry per scenario that is in both records and has a metric that is compared, in the new one's order.
    pub scenarios: Vec<ComparedScenario>,
    /// What weakens every comparison.
    pub findings: Vec<Finding>,
    /// What `--fail-if` asked, in the order given.
    pub conditions: Vec<ConditionResult>,
}

/// What was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComparedKind {
    /// Two races: epochs are the unit of replication.
    Races,
    /// Two lone loads: one run each, so that there is no interval and no verdict.
    Loads,
}

/// One of the two records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRecord {
    /// The file, as it was given.
    pub file: String,
    /// The study's name; of a load what was loaded.
    pub study: String,
    /// The version of deadheat that measured.
    pub version: String,
    /// Start in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Every random order came from it.
    pub seed: u64,
}

/// One scenario that both records have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedScenario {
    /// Its name; of loads `load`.
    pub name: String,
    /// Closed or open, as the new record has it.
    pub shape: Experiment,
    /// One per contender and metric.
    pub changes: Vec<Change>,
    /// What weakens the comparisons of this scenario.
    pub findings: Vec<Finding>,
}

/// One contender in one metric: the new record against the old one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Its name in the new record.
    pub contender: String,
    /// Its name in the old record.
    pub old_contender: String,
    /// What its version command printed when the old record was made.
    pub old_version: Option<String>,
    /// What its version command printed when the new record was made.
    pub new_version: Option<String>,
    /// `throughput`, `cpu`, `p50`, `p99`; `peak`, `cold_start` and `measure` where these are measured; of loads the percentiles that
    /// both have.
    pub metric: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// Whether the new record's race asked for this metric. Conditions that name no metric speak of these.
    pub asked: bool,
    /// The old record's typical epoch: the geometric mean over epochs. Requests per second, or nanoseconds. Of a load its value.
    pub old: Option<f64>,
    /// The new record's, likewise.
    pub new: Option<f64>,
    /// New over old; with a reference the quotient of new over reference there and old over reference here.
    pub ratio: Option<f64>,
    /// Lower end of the interval; null with fewer than two epochs on either side, and of loads.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The error rate that the interval spends, after Holm; null without an interval.
    pub alpha: Option<f64>,
    /// What can be said of the new record's contender.
    pub verdict: VerdictWord,
    /// Whether a difference was found that lies within the margin.
    pub negligible: bool,
    /// Epochs of the old record that the comparison rests on.
    pub old_epochs: usize,
    /// Epochs of the new record that the comparison rests on.
    pub new_epochs: usize,
    /// The smallest ratio that could have been detected (with a power of 90 %).
    pub detectable_ratio: Option<f64>,
}

impl CompareDocument {
    /// Whether some condition neither holds nor is known not to.
    pub fn is_unknown(&self) -> bool {
        self.conditions.iter().any(ConditionResult::is_unknown)
    }

    /// Whether a finding takes any comparison away that the race was about, also one that there could not even be: of a contender that
    /// was put out of the new race.
    pub fn is_invalid(&self) -> bool {
        let is = |one: &ComparedScenario| {
            let whole =
                |finding: &Finding| finding.severity == Severity::Invalid && finding.metrics.is_empty();
            one.changes.iter().any(|change| change.asked && change.verdict == VerdictWord::Invalid)
                || one.findings.iter().any(whole)
        };
        self.scenarios.iter().any(is)
    }
}

/// The JSON Schema of [`CompareDocument`], pretty-printed.
///
/// # Errors
/// None in practice: the schema is made from the types.
pub fn compare_schema_json() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(CompareDocument))?;
    text.push('\n');
    Ok(text)
}
