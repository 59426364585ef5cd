//! Owns: requests that clients once sent, in their order. Must not know where they were recorded, nor their answers.

use std::sync::Arc;

use crate::pacer::RecordedTimes;

/// A request that a client once sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordedRequest {
    /// The method, which is a token.
    pub method: String,
    /// Path and query; visible ASCII characters.
    pub target: String,
    /// Header names and values. A name may occur several times.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
}

/// Requests in the order in which clients sent them. Each distinct request is kept once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The distinct requests, in the order of their first occurrence; at least one.
    pub requests: Vec<RecordedRequest>,
    /// Where each of `requests` occurs first: the number of the line, from 1.
    pub lines: Vec<u64>,
    /// The order: indices into `requests`; at least one.
    pub order: Vec<u32>,
    /// When each request of `order` was sent, if all times are known and not the same.
    pub times: Option<Arc<RecordedTimes>>,
}

impl Recording {
    /// How often each of `requests` occurs.
    pub fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.requests.len()];
        self.order.iter().for_each(|&index| counts[index as usize] += 1);
        counts
    }
}
