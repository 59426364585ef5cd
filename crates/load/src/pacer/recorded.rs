//! Owns: when clients sent recorded requests, repeated without end. Must not know the requests, nor a clock.

/// When clients sent recorded requests, in nanoseconds after the first of them. After the last one they begin again, one
/// mean gap later.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub struct RecordedTimes {
    at_ns: Box<[u64]>,
    period_ns: u64,
}

impl From<RecordedTimes> for Vec<u64> {
    fn from(times: RecordedTimes) -> Self {
        times.at_ns.into()
    }
}

impl TryFrom<Vec<u64>> for RecordedTimes {
    type Error = RecordedTimesError;

    fn try_from(at_ns: Vec<u64>) -> Result<RecordedTimes, RecordedTimesError> {
        RecordedTimes::new(at_ns)
    }
}

/// Why times cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordedTimesError {
    /// There are fewer than two different times, so there is no rate.
    #[error("the requests were all sent at the same time, so there is no timing to replay")]
    OneMoment,
    /// A time is before the one in front of it.
    #[error("time {position} is before the one in front of it")]
    Order {
        /// Its position, from 0.
        position: usize,
    },
}

impl RecordedTimes {
    /// The times in nanoseconds, in ascending order. The first one may have any value.
    ///
    /// # Errors
    /// [`RecordedTimesError`].
    pub fn new(mut at_ns: Vec<u64>) -> Result<RecordedTimes, RecordedTimesError> {
        if let Some(position) = at_ns.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(RecordedTimesError::Order { position: position + 1 });
        }
        let (first_ns, last_ns) = match at_ns[..] {
            [first_ns, .., last_ns] if first_ns < last_ns => (first_ns, last_ns),
            _ => return Err(RecordedTimesError::OneMoment),
        };
        at_ns.iter_mut().for_each(|at| *at -= first_ns);
        let span_ns = last_ns - first_ns;
        let mean_gap_ns = (span_ns / (at_ns.len() as u64 - 1)).max(1);
        Ok(RecordedTimes { at_ns: at_ns.into(), period_ns: span_ns.saturating_add(mean_gap_ns) })
    }

    /// Two times, one nanosecond apart: they stand for others that are known elsewhere.
    pub fn shortest() -> RecordedTimes {
        RecordedTimes { at_ns: [0, 1].into(), period_ns: 2 }
    }

    /// How many there are before they begin again; at least 2.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.at_ns.len() as u64
    }

    /// After how long they begin again, in nanoseconds.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Mean requests per second.
    pub fn rate_per_s(&self) -> f64 {
        self.len() as f64 * 1e9 / self.period_ns as f64
    }

    /// When the request at `position` was sent. Positions go on counting when the requests begin again.
    #[inline]
    pub fn at_ns(&self, position: u64) -> u64 {
        let (cycle, within) = (position / self.len(), (position % self.len()) as usize);
        cycle.saturating_mul(self.period_ns).saturating_add(self.at_ns[within])
    }

    /// The position of the first request at or after this time.
    pub fn position_at(&self, ns: u64) -> u64 {
        let (cycle, within_ns) = (ns / self.period_ns, ns % self.period_ns);
        cycle * self.len() + self.at_ns.partition_point(|at| *at < within_ns) as u64
    }

    /// How many requests were sent from `from_ns` until `length_s` seconds later, including both ends.
    pub(super) fn count_within(&self, from_ns: u64, length_s: f64) -> f64 {
        let until_ns = from_ns.saturating_add((length_s.max(0.0) * 1e9).round() as u64);
        (self.position_at(until_ns.saturating_add(1)) - self.position_at(from_ns)) as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_begin_again_one_mean_gap_after_the_last() {
        let times = RecordedTimes::new(vec![7_000, 7_100, 7_100, 7_400]).unwrap();
        assert_eq!((times.len(), times.period_ns()), (4, 533));
        assert_eq!((0..6).map(|at| times.at_ns(at)).collect::<Vec<_>>(), [0, 100, 100, 400, 533, 633]);
        let positions = [0, 1, 100, 101, 401, 533, 534].map(|ns| times.position_at(ns));
        assert_eq!(positions, [0, 1, 1, 3, 4, 4, 5]);
        assert!((times.rate_per_s() - 4e9 / 533.0).abs() < 1e-6);
    }

    #[test]
    fn times_without_a_rate_are_refused() {
        for one in [vec![], vec![5], vec![5, 5, 5]] {
            assert_eq!(RecordedTimes::new(one), Err(RecordedTimesError::OneMoment));
        }
        assert_eq!(RecordedTimes::new(vec![5, 9, 8]), Err(RecordedTimesError::Order { position: 2 }));
    }

    proptest! {
        #[test]
        fn positions_and_times_agree(
            mut at_ns in prop::collection::vec(0..10_000u64, 2..50),
            ns in 0..50_000u64,
        ) {
            at_ns.sort_unstable();
            prop_assume!(at_ns.first() != at_ns.last());
            let times = RecordedTimes::new(at_ns).unwrap();
            let position = times.position_at(ns);
            prop_assert!(times.at_ns(position) >= ns);
            prop_assert!(position == 0 || times.at_ns(position - 1) < ns);
        }
    }
}
