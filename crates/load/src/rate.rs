//! Owns: the throughput of one worker in one slice, without rounding errors from answers that come in batches. Must not
//! know a clock.

/// One worker's part of a slice's throughput: `counted` answers in the span (first, last].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct RatePiece {
    /// Complete answers after `first_ns`, up to and including `last_ns`, with any outcome.
    pub counted: u64,
    /// Start of the span, in nanoseconds after the slice's start: the time of the last answer at or before the end of
    /// the settling time, or else the slice's start.
    pub first_ns: u64,
    /// When the last request was settled, drain included; in nanoseconds after the slice's start. The span includes the
    /// time that the server spent on requests in flight at the end and on requests that never got an answer.
    pub last_ns: u64,
}

impl RatePiece {
    /// Answers per second, or `None` if no answer counts.
    pub fn rate_per_s(&self) -> Option<f64> {
        let span_ns = self.last_ns.saturating_sub(self.first_ns);
        (self.counted > 0 && span_ns > 0).then(|| self.counted as f64 * 1e9 / span_ns as f64)
    }

    /// Adds a later slice of the same worker: counts add up, and `last_ns` increases by the later span.
    pub(crate) fn append(&mut self, later: &RatePiece) {
        self.counted += later.counted;
        self.last_ns = self.last_ns.max(self.first_ns) + later.last_ns.saturating_sub(later.first_ns);
    }
}

/// Determines a [`RatePiece`] as answers come in, in time order.
#[derive(Debug, Clone)]
pub(crate) struct RateWindow {
    settle_ns: u64,
    piece: RatePiece,
}

impl RateWindow {
    /// Times are nanoseconds after the slice's start.
    pub(crate) fn new(settle_ns: u64) -> RateWindow {
        RateWindow { settle_ns, piece: RatePiece::default() }
    }

    /// Records a complete answer.
    #[inline]
    pub(crate) fn note(&mut self, at_ns: u64) {
        if at_ns <= self.settle_ns {
            self.piece.first_ns = at_ns;
            self.piece.last_ns = at_ns;
        } else {
            self.piece.last_ns = at_ns;
            self.piece.counted += 1;
        }
    }

    /// Records a request that ended without an answer: its time counts, but it does not.
    pub(crate) fn lost(&mut self, at_ns: u64) {
        if at_ns > self.settle_ns {
            self.piece.last_ns = at_ns;
        }
    }

    pub(crate) fn piece(&self) -> RatePiece {
        self.piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(settle_ns: u64, times: impl IntoIterator<Item = u64>) -> RatePiece {
        let mut window = RateWindow::new(settle_ns);
        times.into_iter().for_each(|at| window.note(at));
        window.piece()
    }

    #[test]
    fn spans_run_from_answer_to_answer() {
        for (name, settle, times, counted, first, last) in [
            ("no settling: from the start", 0, vec![10, 20, 30], 3, 0, 30),
            ("settled on an answer", 20, vec![10, 20, 30, 40], 2, 20, 40),
            ("settled between answers", 25, vec![10, 20, 30, 40], 2, 20, 40),
            ("no answer while settling", 5, vec![10, 20], 2, 0, 20),
            ("nothing", 10, vec![], 0, 0, 0),
            ("all while settling", 10, vec![5, 9], 0, 9, 9),
        ] {
            let wanted = RatePiece { counted, first_ns: first, last_ns: last };
            assert_eq!(of(settle, times), wanted, "{name}");
        }
    }

    #[test]
    fn a_stall_across_the_end_costs_its_time() {
        // 10,000/s, with the last answer 50 ms late.
        let mut times: Vec<u64> = (1..1000u64).map(|k| k * 100_000).collect();
        times.push(150_000_000);
        assert!((of(0, times).rate_per_s().unwrap() - 1000.0 / 0.15).abs() < 1e-6);
    }

    #[test]
    fn a_request_without_answer_costs_its_time() {
        let mut window = RateWindow::new(0);
        (1..=10).for_each(|k| window.note(k * 1_000_000));
        window.lost(1_000_000_000);
        assert_eq!(window.piece().rate_per_s(), Some(10.0));
    }

    #[test]
    fn batches_do_not_quantise_the_rate() {
        // 64 answers every 3 ms: 21,333.3/s. The naive rate over 90 ms is wrong by up to 4 %; this one is not.
        let times = (1..40u64).flat_map(|batch| std::iter::repeat_n(batch * 3_000_000, 64));
        let piece = of(10_000_000, times.clone());
        assert!((piece.rate_per_s().unwrap() - 64.0 / 0.003).abs() < 1e-6);
        let naive = times.filter(|&at| at > 10_000_000 && at <= 100_000_000).count() as f64 / 0.09;
        assert!((naive / (64.0 / 0.003) - 1.0).abs() < 0.04);
    }

    #[test]
    fn no_rate_from_nothing() {
        assert_eq!(of(10, []).rate_per_s(), None);
        assert_eq!(of(10, [5, 9]).rate_per_s(), None);
    }

    #[test]
    fn later_slices_add_counts_and_spans() {
        let mut piece = of(20, [10, 20, 30, 40]);
        piece.append(&of(5, [5, 15, 25, 35]));
        assert_eq!((piece.counted, piece.last_ns - piece.first_ns), (5, 50));
        let mut empty = of(10, [5, 9]);
        empty.append(&of(0, [10]));
        assert_eq!((empty.counted, empty.last_ns - empty.first_ns), (1, 10));
    }
}
