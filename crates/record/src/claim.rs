//! Published numbers, as a study lists them.
//!
//! Owns what one claim says and what a number can have been before it was rounded. Must not know what follows from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A published number with its source: what was measured, or under which setting it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// Where it was published.
    pub source: String,
    /// The contender that it is about; none where it is about all of them, such as a number of connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contender: Option<String>,
    /// What the contender is compared with, for ratios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Which of several published runs it belongs to, such as `500 connections`; figures of one run are held against each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// What it measures, as the study names it: `throughput_rps`, `latency_p99_ms`, `connections`.
    pub metric: String,
    /// The number; none for a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Half a unit of the last digit that was written of the number.
    #[serde(default)]
    pub half_digit: f64,
    /// Lower end of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Its unit, where the metric's name does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The scenario in which it can be tested here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Of a ratio of one scenario to another: the scenario of what is divided by, which is the contender's own figure there unless
    /// there is a baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_scenario: Option<String>,
    /// What the reader should know beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Claim {
    /// The run that its figures belong to: the row, else the scenario; none for what is said of all runs.
    pub fn run(&self) -> Option<&str> {
        self.row.as_deref().or(self.scenario.as_deref())
    }
}
