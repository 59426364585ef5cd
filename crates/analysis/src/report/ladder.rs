//! Ladders: the same servers doing more of their work from scenario to scenario, and what each step adds to a request.
//!
//! Owns the nouns. Must not know how they are derived or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Scenarios under closed load that are the rungs of one ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LadderResult {
    /// As the study calls it.
    pub name: String,
    /// The scenarios, the least work first.
    pub rungs: Vec<String>,
    /// One per contender with a rate on the first rung, in plan order.
    pub contenders: Vec<Climb>,
}

/// One contender's way up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Climb {
    /// Who.
    pub contender: String,
    /// One per rung, in their order; they end before the first rung without a rate.
    pub steps: Vec<LadderStep>,
}

/// One rung.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LadderStep {
    /// The rung's scenario.
    pub scenario: String,
    /// The inverse of the rate: how long the whole server takes per request, in microseconds.
    pub time_us: f64,
    /// What it takes longer than the rung before, in microseconds; 0 where it is faster. All of it on the first rung.
    pub added_us: f64,
    /// Whether it is faster than the rung before: with more to do, so that the difference is noise or the work another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub faster: bool,
}
