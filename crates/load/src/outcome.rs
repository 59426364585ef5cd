//! Owns: the ways in which a request can end, and their counts. Must not know the reasons.

/// How a due request ended. Each request ends in exactly one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Outcome {
    /// A complete answer that meets the expectation.
    Ok,
    /// A complete answer with a wrong status.
    Status,
    /// A complete answer with a right status and a wrong body.
    Mismatch,
    /// No connection could be made.
    Connect,
    /// The connection broke or was closed before the answer was complete.
    Read,
    /// The connection broke while the request was written.
    Write,
    /// There was no complete answer within the timeout.
    Timeout,
    /// The bytes received are not an HTTP/1.1 answer.
    Protocol,
    /// The request was unsent or unanswered when the slice had to end.
    Cut,
}

/// Counts of [`Outcome`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Outcomes {
    /// See [`Outcome::Ok`].
    pub ok: u64,
    /// See [`Outcome::Status`].
    pub status: u64,
    /// See [`Outcome::Mismatch`].
    pub mismatch: u64,
    /// See [`Outcome::Connect`].
    pub connect: u64,
    /// See [`Outcome::Read`].
    pub read: u64,
    /// See [`Outcome::Write`].
    pub write: u64,
    /// See [`Outcome::Timeout`].
    pub timeout: u64,
    /// See [`Outcome::Protocol`].
    pub protocol: u64,
    /// See [`Outcome::Cut`].
    pub cut: u64,
}

impl Outcomes {
    /// The count of one outcome.
    pub fn of(&self, outcome: Outcome) -> u64 {
        let mut copy = *self;
        *copy.slot(outcome)
    }

    /// All requests that ended, in any way.
    pub fn total(&self) -> u64 {
        let failed = self.connect + self.read + self.write + self.timeout + self.protocol + self.cut;
        self.ok + self.status + self.mismatch + failed
    }

    /// All requests that did not end well: all but `ok`.
    pub fn errors(&self) -> u64 {
        self.total() - self.ok
    }

    #[inline]
    pub(crate) fn add(&mut self, outcome: Outcome, count: u64) {
        *self.slot(outcome) += count;
    }

    pub(crate) fn merge(&mut self, other: &Outcomes) {
        for outcome in ALL {
            self.add(outcome, other.of(outcome));
        }
    }

    #[inline]
    fn slot(&mut self, outcome: Outcome) -> &mut u64 {
        match outcome {
            Outcome::Ok => &mut self.ok,
            Outcome::Status => &mut self.status,
            Outcome::Mismatch => &mut self.mismatch,
            Outcome::Connect => &mut self.connect,
            Outcome::Read => &mut self.read,
            Outcome::Write => &mut self.write,
            Outcome::Timeout => &mut self.timeout,
            Outcome::Protocol => &mut self.protocol,
            Outcome::Cut => &mut self.cut,
        }
    }
}

const ALL: [Outcome; 9] = [
    Outcome::Ok,
    Outcome::Status,
    Outcome::Mismatch,
    Outcome::Connect,
    Outcome::Read,
    Outcome::Write,
    Outcome::Timeout,
    Outcome::Protocol,
    Outcome::Cut,
];

/// How many complete answers had each status code (0 to 999).
// Serialised as the codes that occurred, with their counts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "Vec<(u16, u64)>", into = "Vec<(u16, u64)>")]
pub struct StatusCounts(Box<[u64; 1000]>);

impl From<StatusCounts> for Vec<(u16, u64)> {
    fn from(counts: StatusCounts) -> Self {
        counts.iter().collect()
    }
}

impl From<Vec<(u16, u64)>> for StatusCounts {
    /// Ignores codes above 999.
    fn from(pairs: Vec<(u16, u64)>) -> Self {
        let mut counts = StatusCounts::default();
        for (status, count) in pairs {
            if let Some(slot) = counts.0.get_mut(usize::from(status)) {
                *slot = count;
            }
        }
        counts
    }
}

impl StatusCounts {
    /// The count of one code; 0 for codes above 999.
    pub fn of(&self, status: u16) -> u64 {
        self.0.get(usize::from(status)).copied().unwrap_or(0)
    }

    /// The codes that occurred, ascending, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(status, count)| (status as u16, *count))
    }

    #[inline]
    pub(crate) fn add(&mut self, status: u16) {
        if let Some(count) = self.0.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: &StatusCounts) {
        self.0.iter_mut().zip(other.0.iter()).for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl Default for StatusCounts {
    fn default() -> Self {
        StatusCounts(Box::new([0; 1000]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_a_place_of_its_own() {
        let mut counts = Outcomes::default();
        for (index, outcome) in ALL.into_iter().enumerate() {
            counts.add(outcome, 1 << index);
        }
        assert_eq!((counts.total(), counts.errors()), (511, 510));
        let mut twice = counts;
        twice.merge(&counts);
        for (index, outcome) in ALL.into_iter().enumerate() {
            assert_eq!((counts.of(outcome), twice.of(outcome)), (1 << index, 2 << index));
        }
    }

    #[test]
    fn status_counts() {
        let mut counts = StatusCounts::default();
        for status in [200, 404, 200, 999] {
            counts.add(status);
        }
        counts.add(1000);
        let mut sum = counts.clone();
        sum.merge(&counts);
        assert_eq!(sum.iter().collect::<Vec<_>>(), [(200, 4), (404, 2), (999, 2)]);
        assert_eq!((sum.of(200), sum.of(201), sum.of(u16::MAX)), (4, 0, 0));
    }
}
