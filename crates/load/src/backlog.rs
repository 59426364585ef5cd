//! Owns: whether due requests that have not ended pile up. Must not know the reason, nor a clock.

/// Most stretches to keep of a slice. When there are more, pairs of them are merged.
const STRETCHES: usize = 128;
/// Tolerance for chance: a number with expected value n is off by more than this many times its square root in one of
/// 1,000 cases.
const SIGMAS: f64 = 3.0;
/// So few answers can be exceptions.
const A_FEW: u64 = 3;

/// The share of an open slice's requests by which the server fell behind.
///
/// By Little's law, a server that keeps up has about rate times latency requests in flight at any time. The number
/// outstanding when the last request is due is therefore compared with this usual number: the rate at that time, times
/// the highest latency (outstanding / rate) in the first half of the slice. Pauses that recur are in both numbers. What
/// exceeds the usual number by more than chance has piled up in the second half. If at most a few were answered in the first half, answers may just take
/// longer than that, and nothing counts as piled up; requests that never get an answer are counted elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Behind {
    /// Requests by which the backlog has grown, not counting what pauses and chance explain.
    pub requests: f64,
    /// Requests that were due while it grew.
    pub of: f64,
}

impl Behind {
    /// The share, 0 to 1; `None` where no request was due.
    pub fn share(&self) -> Option<f64> {
        (self.of > 0.0).then(|| (self.requests / self.of).min(1.0))
    }

    pub(crate) fn add(&mut self, other: &Behind) {
        self.requests += other.requests;
        self.of += other.of;
    }
}

/// A stretch of time, with the highest latency that its notes imply and how many requests were answered by its end.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    until_ns: u64,
    latency_s: f64,
    answered: u64,
}

/// Requests outstanding over time, in memory of fixed size.
#[derive(Debug)]
pub(crate) struct Backlog {
    stretches: Vec<Stretch>,
    /// Number of notes that make up one stretch, and number of notes in the last one.
    width: u32,
    noted: u32,
    rate_per_s: f64,
    last: Option<(u64, f64)>,
}

impl Backlog {
    pub(crate) fn new() -> Backlog {
        Backlog { stretches: Vec::with_capacity(STRETCHES), width: 1, noted: 0, rate_per_s: 0.0, last: None }
    }

    /// Records how many requests are outstanding, how many were answered, and the current rate; times never fall.
    pub(crate) fn note(&mut self, at_ns: u64, outstanding: u64, answered: u64, rate_per_s: f64) {
        if rate_per_s > 0.0 {
            self.rate_per_s = rate_per_s;
            self.stretch(Stretch { until_ns: at_ns, latency_s: outstanding as f64 / rate_per_s, answered });
        }
        self.last = Some((at_ns, outstanding as f64));
    }

    fn stretch(&mut self, new: Stretch) {
        match self.stretches.last_mut().filter(|_| self.noted < self.width) {
            Some(last) => *last = last.with(&new),
            None => {
                if self.stretches.len() == STRETCHES {
                    for index in 0..STRETCHES / 2 {
                        self.stretches[index] =
                            self.stretches[2 * index].with(&self.stretches[2 * index + 1]);
                    }
                    self.stretches.truncate(STRETCHES / 2);
                    self.width *= 2;
                }
                self.stretches.push(new);
                self.noted = 0;
            }
        }
        self.noted += 1;
    }

    /// What has piled up until the last note; `due(from, until)` returns how many requests were due between two times.
    pub(crate) fn behind(&self, due: impl Fn(u64, u64) -> f64) -> Behind {
        let Some((end_ns, outstanding)) = self.last else { return Behind::default() };
        let half_ns = end_ns / 2;
        let first_half = self.stretches.iter().filter(|stretch| stretch.until_ns <= half_ns);
        let is_unanswered = first_half.clone().next_back().is_some_and(|last| last.answered <= A_FEW);
        let usual_s = first_half.map(|stretch| stretch.latency_s).fold(0.0, f64::max);
        let usual = usual_s * self.rate_per_s;
        let more = outstanding - usual;
        let by_chance = more <= SIGMAS * (usual + 1.0).sqrt();
        Behind { requests: if by_chance || is_unanswered { 0.0 } else { more }, of: due(half_ns, end_ns) }
    }
}

impl Stretch {
    fn with(&self, later: &Stretch) -> Stretch {
        Stretch { latency_s: self.latency_s.max(later.latency_s), ..*later }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Ten seconds at 1,000/s, with a note every 10 ms.
    fn share(outstanding: impl Fn(f64) -> f64) -> f64 {
        let mut backlog = Backlog::new();
        for tick in 0..=1000 {
            let open = outstanding(tick as f64 / 100.0) as u64;
            backlog.note(tick * 10 * MS, open, (tick * 10).saturating_sub(open), 1000.0);
        }
        assert!(backlog.stretches.len() <= STRETCHES);
        backlog.behind(|from_ns, until_ns| (until_ns - from_ns) as f64 / 1e6).share().unwrap()
    }

    #[test]
    fn what_piles_up_is_seen() {
        // The server manages only 900/s.
        assert!((0.098..0.102).contains(&share(|t| 100.0 * t)));
        assert!((0.009..0.011).contains(&share(|t| 10.0 * t)), "1 % too much");
        assert!((0.94..0.96).contains(&share(|t| 950.0 * t)), "it answers one of 20");
        // The server keeps up until the last half second, then stops.
        assert!((0.098..0.1).contains(&share(|t| if t > 9.5 { (t - 9.5) * 1000.0 } else { 2.0 })));
    }

    #[test]
    fn what_is_only_slow_does_not_pile_up() {
        assert_eq!(share(|_| 0.0), 0.0);
        assert_eq!(share(|_| 300.0), 0.0, "answers take 300 ms");
        assert_eq!(share(|t| (t * 1000.0).min(300.0)), 0.0, "from the start");
        assert_eq!(share(|t| (t * 1000.0).min(6_000.0)), 0.0, "for longer than half of the load");
        assert_eq!(share(|t| (t * 1000.0 - 1.0).min(6_000.0)), 0.0, "and one of them was answered at once");
        // 100 ms of pause in each second, the last just before the end.
        let pausing = |t: f64| if t.fract() > 0.9 { (t.fract() - 0.9) * 1000.0 } else { 1.0 };
        assert_eq!(share(pausing), 0.0);
    }

    #[test]
    fn a_rising_rate_has_more_in_flight() {
        let mut backlog = Backlog::new();
        for tick in 0..1000_u64 {
            // 50 ms each, from 0 to 5,000/s.
            backlog.note(tick * 10 * MS, tick * 5 / 20, tick, tick as f64 * 5.0);
        }
        assert_eq!(backlog.behind(|_, _| 20_000.0).requests, 0.0);
    }

    #[test]
    fn nothing_is_behind_nothing() {
        assert_eq!(Backlog::new().behind(|_, _| 0.0).share(), None);
        let mut sum = Behind { requests: 1.0, of: 10.0 };
        sum.add(&Behind { requests: 1.0, of: 10.0 });
        assert_eq!(sum.share(), Some(0.1));
    }
}
