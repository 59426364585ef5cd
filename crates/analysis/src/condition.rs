//! Results of the conditions of `--fail-if`, for a race and for a comparison of two records.

use deadheat_record::Metric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A condition of `--fail-if`, and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionResult {
    /// The text as given.
    pub condition: String,
    /// Whether it holds in at least one comparison.
    pub holds: bool,
    /// The comparisons in which it holds.
    pub of: Vec<ConditionPlace>,
    /// The comparisons for which the result is unknown, because the condition's metric was not compared there, or not validly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<ConditionPlace>,
}

/// One comparison that a condition applies to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionPlace {
    /// The scenario.
    pub scenario: String,
    /// The contender.
    pub contender: String,
    /// The metric.
    pub metric: Metric,
}

impl ConditionResult {
    /// Whether the result is unknown: the condition holds nowhere, and at least one comparison could not be tested.
    pub fn is_unknown(&self) -> bool {
        !self.holds && !self.unknown.is_empty()
    }
}
