//! What users see behind an edge cache: a model based on measured latencies.
//!
//! Owns the data types. Must not know how the model is computed or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The model: the edge alone answers a share of the requests, and the others also wait for the origin. It assumes that hits do not depend on
/// how long the origin would take, and that the edge always takes the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EdgeCache {
    /// Share of the requests that the edge answers, 0 to 1: the requested one, otherwise the study's.
    pub hit_rate: f64,
    /// The time that a hit takes and that the edge adds to a miss. It is an assumption unless the study sets it.
    pub edge_latency_ns: u64,
    /// One entry per contender with enough requests, in plan order.
    pub users: Vec<EdgeUser>,
}

/// What users see if one contender is the origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EdgeUser {
    /// The contender's name.
    pub contender: String,
    /// Mean over all users.
    pub mean_ns: u64,
    /// Median over all users.
    pub p50_ns: u64,
    /// 95th percentile over all users.
    pub p95_ns: u64,
    /// 99th percentile over all users.
    pub p99_ns: u64,
    /// The measured mean of the origin.
    pub origin_mean_ns: u64,
    /// The measured median of the origin.
    pub origin_p50_ns: u64,
    /// The measured 95th percentile of the origin.
    pub origin_p95_ns: u64,
    /// The measured 99th percentile of the origin.
    pub origin_p99_ns: u64,
}
