//! Published numbers, as a study lists them.
//!
//! Owns: the content of one claim, and the range of values that a rounded number can stand for. Must not know: what follows from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A published number with its source. It is either a measured value or a setting of the measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// Where it was published.
    pub source: String,
    /// The contender that the claim is about. Absent if it is about all contenders, such as a number of connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contender: Option<String>,
    /// What the contender is compared with, for ratios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The published run that the claim belongs to, such as `500 connections`. Figures of the same run are checked against each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// The metric or setting, as the study names it: `throughput_rps`, `latency_p99_ms`, `connections`.
    pub metric: String,
    /// The number; absent for a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Half a unit of the last digit that was published, in the unit of the number.
    #[serde(default)]
    pub half_digit: f64,
    /// Lower end of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The unit, if the name of the metric does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The scenario of this study that tests the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// For a ratio between two scenarios: the scenario of the divisor. The divisor is the contender's own figure there, unless `baseline` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_scenario: Option<String>,
    /// A note for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Claim {
    /// The run that the claim belongs to: the row, otherwise the scenario. None for a claim that is about all runs.
    pub fn run(&self) -> Option<&str> {
        self.row.as_deref().or(self.scenario.as_deref())
    }
}
