//! The search for the highest rate at which an objective is met: what must hold, what was tried, what came of it.
//!
//! Owns: those nouns. Must not know: which rate is tried next, or why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What must hold at a rate: a quantile of latency within a limit, at the most one request in a thousand without the
/// expected answer, and 99 % of what was due kept up with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// From 0 to 1: 0.99 is the 99th percentile.
    pub quantile: f64,
    /// Its highest value.
    pub limit_ns: u64,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrialEnd {
    /// The objective was met.
    Pass,
    /// It was not.
    Fail,
    /// It says nothing of the contender, and was repeated.
    Invalid,
}

/// A slice at a rate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Requests per second that were due.
    pub rate_per_s: f64,
    /// The objective's quantile of the latency; none when nothing was answered.
    pub quantile_ns: Option<u64>,
    /// Share of what was due that was kept up with, 0 to 1.
    pub achieved_share: f64,
    /// Share of the requests that did not end as expected, 0 to 1.
    pub failed_share: f64,
    /// How it ended.
    pub end: TrialEnd,
    /// Why it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// How a contender's search in an epoch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PeakEnd {
    /// The peak was found.
    Found,
    /// The objective is met at the highest rate that is tried.
    AtLeast,
    /// It is not met at the lowest rate that is tried.
    Below,
    /// Trials were invalid again and again, by what happened on the machine.
    GaveUp,
    /// Trials were invalid again and again because the generator was too busy: the peak may lie beyond what it can do.
    Generator,
}

/// What a contender's search in an epoch came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeakSeen {
    /// How it ended.
    pub end: PeakEnd,
    /// Requests per second: the estimate where the peak was found, else the rate at which the search ended.
    pub rate_per_s: f64,
    /// Lower end of the estimate's credible interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_per_s: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_per_s: Option<f64>,
    /// How many trials it is made of; invalid ones do not count.
    pub trials: usize,
}

impl PeakSeen {
    /// The estimate, where there is one.
    pub fn found(&self) -> Option<f64> {
        (self.end == PeakEnd::Found).then_some(self.rate_per_s)
    }
}
