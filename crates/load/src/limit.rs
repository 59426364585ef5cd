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

    /// How many requests worker `index` of `workers` may begin: of the sequence 0, 1, 2, ... it takes each
    /// `workers`-th, beginning with its own index.
    pub(crate) fn share(&self, index: u64, workers: u64) -> u64 {
        match self.requests {
            None => u64::MAX,
            Some(total) if total <= index => 0,
            Some(total) => (total - index).div_ceil(workers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (total, wanted) in
            [(0, [0, 0, 0]), (1, [1, 0, 0]), (2, [1, 1, 0]), (3, [1, 1, 1]), (10, [4, 3, 3])]
        {
            let limit = Limit::requests(total);
            assert_eq!([0, 1, 2].map(|i| limit.share(i, 3)), wanted, "{total}");
        }
        assert_eq!(Limit::duration(Duration::from_secs(1)).share(1, 2), u64::MAX);
    }
}
