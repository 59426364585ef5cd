//! Owns: when a slice stops asking for more. Must not know who asks.

use std::time::Duration;

/// When a slice stops; whichever comes first. At least one must be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit {
    /// No request is begun later than this after the slice's start.
    pub duration: Option<Duration>,
    /// No more than this many requests are begun, over all workers.
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
