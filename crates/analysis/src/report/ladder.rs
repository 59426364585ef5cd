//! Ladders: the same servers do more work from scenario to scenario, and each step shows what the added work costs per request.
//!
//! Owns the data types. Must not know how they are derived or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The scenarios under closed load that are the rungs of one ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LadderResult {
    /// The ladder's name in the study.
    pub name: String,
    /// The scenarios, the one with the least work first.
    pub rungs: Vec<String>,
    /// One entry per contender with a rate on the first rung, in plan order.
    pub contenders: Vec<Climb>,
}

/// One contender's steps on a ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Climb {
    /// The contender's name.
    pub contender: String,
    /// One entry per rung, in their order, up to the first rung without a rate.
    pub steps: Vec<LadderStep>,
}

/// One rung.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LadderStep {
    /// The rung's scenario.
    pub scenario: String,
    /// The inverse of the rate: the time that the whole server takes per request, in microseconds.
    pub time_us: f64,
    /// The time added since the rung before, in microseconds; 0 if this rung is faster. The first rung has its full time here.
    pub added_us: f64,
    /// Whether this rung is faster than the one before although it has more work: the difference is noise, or the work is not the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub faster: bool,
}
