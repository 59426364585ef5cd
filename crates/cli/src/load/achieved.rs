//! Whether a server kept up with what was due.
//!
//! Owns: that reading. Must not know how it is judged.

/// What it is read from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    /// Requests that were due.
    pub(super) due: u64,
    /// Complete answers.
    pub(super) completions: u64,
    /// From the first due time to the last, in seconds.
    pub(super) due_span_s: f64,
    /// Answers per second, from the first answer to the last.
    pub(super) answers_per_s: f64,
    /// 90th percentile of the latency, in seconds.
    pub(super) p90_s: f64,
}

/// A last answer this many times later than nine in ten of all is late alone; where a queue grows, all become late.
const ALONE: f64 = 4.0;

/// The share of what was due that the server kept up with, 0 to 1: those that were answered, and of them as many as came in
/// the time over which they were due. A server that falls behind answers on after the last due time, and the more so
/// the longer the load; that is told from a last answer that came late alone, which says nothing of the rate.
/// None with fewer than two requests.
pub(super) fn achieved(reading: &Reading) -> Option<f64> {
    let Reading { due, completions, due_span_s, answers_per_s, p90_s } = *reading;
    if due < 2 || due_span_s <= 0.0 {
        return None;
    }
    let answered = completions as f64 / due as f64;
    if answered <= 0.0 {
        return Some(0.0);
    }
    let due_per_s = (due - 1) as f64 / due_span_s;
    let in_time = (answers_per_s / due_per_s / answered).min(1.0);
    let late_s = due_span_s * (1.0 / in_time - 1.0);
    let alone = late_s > ALONE * p90_s;
    Some(answered * if alone { 1.0 } else { in_time })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10,000 requests over ten seconds, answered at this rate.
    fn of(completions: u64, answers_per_s: f64, p90_s: f64) -> f64 {
        achieved(&Reading { due: 10_001, completions, due_span_s: 10.0, answers_per_s, p90_s }).unwrap()
    }

    #[test]
    fn a_server_that_falls_behind_is_seen() {
        assert!((of(10_001, 1000.0, 0.001) - 1.0).abs() < 1e-9, "kept up");
        assert!((of(10_001, 1001.0, 0.001) - 1.0).abs() < 1e-9, "not more than all");
        // 900/s is all it can do: the queue grows for ten seconds and is worked off for one; nine in ten wait up to 1 s.
        assert!((of(10_001, 900.0, 1.0) - 0.9).abs() < 1e-9);
        // 1 % too much: 0.1 s at the end, and most wait for a good part of that.
        assert!((of(10_001, 990.0, 0.09) - 0.99).abs() < 1e-9);
    }

    #[test]
    fn one_late_answer_is_no_sign() {
        // The last answer came half a second late, the others at once.
        assert!((of(10_001, 952.0, 0.002) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_answered_is_not_kept_up_with() {
        assert!((of(9_501, 950.0, 0.001) - 0.95).abs() < 1e-3);
        assert!((of(0, 0.0, 0.0)).abs() < 1e-9);
        let one = Reading { due: 1, completions: 1, due_span_s: 0.0, answers_per_s: 5.0, p90_s: 0.1 };
        assert_eq!(achieved(&one), None);
    }
}
