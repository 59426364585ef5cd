//! The search for the highest rate at which an objective is met: the objective, the trials, the result.
//!
//! Owns: these nouns. Must not know: which rate is tried next, or why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The conditions for a rate to pass: a quantile of latency within a limit, at most one request in a thousand without the expected answer, and 99 %
/// of the due requests kept up with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// The quantile, from 0 to 1: 0.99 is the 99th percentile.
    pub quantile: f64,
    /// Limit of this quantile, in nanoseconds.
    pub limit_ns: u64,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrialEnd {
    /// The objective was met.
    Pass,
    /// The objective was not met.
    Fail,
    /// The trial says nothing about the contender and was repeated.
    Invalid,
}

/// A slice of load at one rate of the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Requests per second that were due.
    pub rate_per_s: f64,
    /// The objective's quantile of the latency, in nanoseconds; null when nothing was answered.
    pub quantile_ns: Option<u64>,
    /// Share of the due requests that the contender kept up with, 0 to 1.
    pub achieved_share: f64,
    /// Share of the requests that did not end as expected, 0 to 1.
    pub failed_share: f64,
    /// How it ended.
    pub end: TrialEnd,
    /// Why the trial is invalid; absent if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// How a contender's search in an epoch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PeakEnd {
    /// The peak was found.
    Found,
    /// The objective is met at the highest rate that the search tries.
    AtLeast,
    /// The objective is not met at the lowest rate that the search tries.
    Below,
    /// Trials were invalid repeatedly, because of events on the machine.
    GaveUp,
    /// Trials were invalid repeatedly, because the generator was too busy. The peak may be above the generator's limit.
    Generator,
}

/// The result of a contender's search in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeakSeen {
    /// How it ended.
    pub end: PeakEnd,
    /// Requests per second: the estimate if the peak was found, otherwise the rate at which the search ended.
    pub rate_per_s: f64,
    /// Lower end of the estimate's credible interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_per_s: Option<f64>,
    /// Upper end of the estimate's credible interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_per_s: Option<f64>,
    /// Number of trials, without invalid ones.
    pub trials: usize,
}

impl PeakSeen {
    /// The estimate, if the peak was found.
    pub fn found(&self) -> Option<f64> {
        (self.end == PeakEnd::Found).then_some(self.rate_per_s)
    }
}
