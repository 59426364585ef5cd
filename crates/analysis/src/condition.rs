//! What came of the conditions of `--fail-if`: of a race, and of two records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A condition of `--fail-if`, and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionResult {
    /// As it was given.
    pub condition: String,
    /// Whether it holds anywhere.
    pub holds: bool,
    /// Where it holds.
    pub of: Vec<ConditionPlace>,
    /// Where nobody can tell whether it holds: the metric that it names could not be compared there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<ConditionPlace>,
}

/// One comparison that a condition speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionPlace {
    /// The scenario.
    pub scenario: String,
    /// The contender.
    pub contender: String,
    /// The metric.
    pub metric: String,
}

impl ConditionResult {
    /// Whether nobody can tell: it holds nowhere, and somewhere it could not be asked.
    pub fn is_unknown(&self) -> bool {
        !self.holds && !self.unknown.is_empty()
    }
}
