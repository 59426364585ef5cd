//! Owns: when a slice begins no more requests. Must not know its callers.

use std::time::Duration;

/// When a slice stops: at whichever limit comes first. At least one must be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Limit {
    /// No request begins later than this after the slice's start.
    pub duration: Option<Duration>,
    /// At most this many requests begin, over all workers.
    pub requests: Option<u64>,
}

impl Limit {
    /// Stops after `duration`.
    pub fn duration(duration: Duration) -> Limit {
        Limit { duration: Some(duration), requests: None }
    }

    /// Stops after `requests` requests.
    pub fn requests(requests: u64) -> Limit {
        Limit { duration: None, requests: Some(requests) }
    }
}
