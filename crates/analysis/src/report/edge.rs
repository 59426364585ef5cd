//! What users see behind an edge cache: a model on measured latencies.
//!
//! Owns the nouns. Must not know how the model is computed or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model: a share of the requests is answered by the edge alone, the others wait for the origin as well. Whether they
/// are hits does not depend on how long the origin would take, and the edge always takes the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EdgeCache {
    /// Share of the requests that the edge answers, 0 to 1: as it was asked for, else as the study has it.
    pub hit_rate: f64,
    /// The time of a hit, and what the edge adds to a miss: an assumption unless the study says it.
    pub edge_latency_ns: u64,
    /// One per contender with enough requests, in plan order.
    pub users: Vec<EdgeUser>,
}

/// What users see whose origin is one contender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EdgeUser {
    /// Who.
    pub contender: String,
    /// Mean over all users.
    pub mean_ns: u64,
    /// Median over all users.
    pub p50_ns: u64,
    /// 95th percentile over all users.
    pub p95_ns: u64,
    /// 99th percentile over all users.
    pub p99_ns: u64,
    /// The origin's own mean, as measured.
    pub origin_mean_ns: u64,
    /// The origin's own median.
    pub origin_p50_ns: u64,
    /// The origin's own 95th percentile.
    pub origin_p95_ns: u64,
    /// The origin's own 99th percentile.
    pub origin_p99_ns: u64,
}
