//! A load while it runs: two lines on a terminal that are redrawn, or one line at intervals.
//!
//! Owns: how its state is written. Must not know: terminal cursors, clocks or the engine. The caller supplies the data.

use deadheat_analysis::number::{clock, three_digits, time_ns, whole};

use crate::style::{Style, Tone};
use crate::text::{count, right, shorten_end};

/// Maximum length of the bar.
const LONGEST_BAR: usize = 60;

/// The state of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadState {
    /// The current phase.
    pub phase: Phase,
    /// Seconds since this phase began.
    pub elapsed_s: f64,
    /// Maximum length of the phase in seconds; none if only the number of requests ends it.
    pub total_s: Option<f64>,
    /// Requests that ended so far, and the total; none if only time ends the phase.
    pub requests: Option<(u64, u64)>,
    /// Complete answers per second just now.
    pub rate_per_s: f64,
    /// Median latency just now.
    pub p50_ns: Option<u64>,
    /// 99th percentile of latency just now.
    pub p99_ns: Option<u64>,
    /// Requests so far that did not end as expected.
    pub errors: u64,
    /// Connections in use.
    pub connections: u64,
}

/// A phase of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Load that does not count.
    WarmUp,
    /// Load that counts.
    Load,
    /// No request starts any more; the generator waits for answers.
    Drain,
}

impl LoadState {
    /// Progress from 0 to 1, by the limit that ends the phase first.
    fn share(&self) -> f64 {
        let of_time = self.total_s.map_or(0.0, |total_s| self.elapsed_s / total_s);
        let of_requests = self.requests.map_or(0.0, |(done, total)| done as f64 / total.max(1) as f64);
        of_time.max(of_requests).clamp(0.0, 1.0)
    }

    /// Seconds left at this pace, by the limit that ends the phase first; none if unknown.
    fn left_s(&self) -> Option<f64> {
        let of_time = self.total_s.map(|total_s| (total_s - self.elapsed_s).max(0.0));
        let of_requests = self
            .requests
            .filter(|(done, _)| *done > 0)
            .map(|(done, total)| total.saturating_sub(done) as f64 * self.elapsed_s / done as f64);
        of_time.into_iter().chain(of_requests).reduce(f64::min)
    }

    fn doing(&self) -> &'static str {
        match self.phase {
            Phase::WarmUp => "warm-up  ",
            Phase::Load => "",
            Phase::Drain => "waiting for the last answers  ",
        }
    }
}

/// The state in two lines of at most the style's width.
pub fn lines(state: &LoadState, style: &Style) -> Vec<String> {
    let left =
        state.left_s().map_or_else(String::new, |left_s| format!("{} left", clock(left_s.ceil() as u64)));
    let done = match state.requests {
        Some((done, total)) => format!("{} of {}", whole(done), whole(total)),
        None => clock(state.elapsed_s as u64),
    };
    let words = format!("{}{done}  {left}", state.doing());
    let room = style.width.saturating_sub(words.chars().count() + 5).clamp(10, LONGEST_BAR);
    let filled = (state.share() * room as f64).round() as usize;
    let [full, rest] = if style.unicode { ['━', '─'] } else { ['=', '-'] };
    let (full, rest) = (full.to_string().repeat(filled), rest.to_string().repeat(room - filled));
    let bar = format!("{}{}", style.paint(Tone::Good, &full), style.paint(Tone::Quiet, &rest));
    let numbers = style.spell(&numbers(state, true));
    let tone = if state.errors > 0 { Tone::Caution } else { Tone::Plain };
    let mark = style.spell("…");
    vec![
        format!("  {bar}  {}", shorten_end(words.trim_end(), style.width.saturating_sub(room + 4), &mark)),
        style.paint(tone, &shorten_end(&format!("  {numbers}"), style.width, &mark)),
    ]
}

/// The state in one line, for a log: `0:03: 21,300/s, p50 1.20 ms, p99 3.40 ms, 0 errors, 64 connections`.
pub fn plain_line(state: &LoadState) -> String {
    format!("{}{}: {}", state.doing(), clock(state.elapsed_s as u64), numbers(state, false))
}

/// `fixed`: every number has a fixed position, so that nothing moves when the line is redrawn.
fn numbers(state: &LoadState, fixed: bool) -> String {
    let place = |text: String, width| if fixed { right(&text, width) } else { text };
    let time = |ns: Option<u64>| place(ns.map_or_else(|| "-".into(), |ns| time_ns(ns as f64)), 7);
    let parts = [
        place(format!("{}/s", three_digits(state.rate_per_s)), 9),
        format!("p50 {}", time(state.p50_ns)),
        format!("p99 {}", time(state.p99_ns)),
        count(state.errors, "error"),
        count(state.connections, "connection"),
    ];
    parts.join(if fixed { "   " } else { ", " })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::columns;

    const STATE: LoadState = LoadState {
        phase: Phase::Load,
        elapsed_s: 3.2,
        total_s: Some(10.0),
        requests: None,
        rate_per_s: 21_312.0,
        p50_ns: Some(1_204_000),
        p99_ns: Some(3_400_000),
        errors: 0,
        connections: 64,
    };
    const STYLE: Style = Style { color: false, width: 60, unicode: true };

    #[test]
    fn two_lines_say_how_it_stands() {
        let requests = LoadState { total_s: None, requests: Some((250, 1000)), errors: 1, ..STATE };
        let warming = LoadState { phase: Phase::WarmUp, p50_ns: None, p99_ns: None, ..STATE };
        let wide = Style { width: 100, ..STYLE };
        assert_eq!(
            lines(&STATE, &wide),
            [
                format!("  {}{}  0:03  0:07 left", "━".repeat(19), "─".repeat(41)),
                "   21,300/s   p50 1.20 ms   p99 3.40 ms   0 errors   64 connections".into(),
            ]
        );
        assert_eq!(plain_line(&STATE), "0:03: 21,300/s, p50 1.20 ms, p99 3.40 ms, 0 errors, 64 connections");
        assert!(lines(&requests, &wide)[0].ends_with("250 of 1,000  0:10 left"));
        assert!(lines(&warming, &wide)[0].contains("warm-up"));
        assert!(lines(&requests, &wide)[1].contains("1 error "));
        assert_eq!(plain_line(&warming), "warm-up  0:03: 21,300/s, p50 -, p99 -, 0 errors, 64 connections");
    }

    #[test]
    fn no_line_is_too_wide() {
        let far = LoadState {
            rate_per_s: 12_345_678.0,
            requests: Some((1, u64::MAX)),
            errors: u64::MAX,
            phase: Phase::Drain,
            ..STATE
        };
        for width in [20, 40, 80, 160] {
            for unicode in [true, false] {
                for state in [STATE, far] {
                    let shown = lines(&state, &Style { width, unicode, ..STYLE });
                    assert!(shown.iter().all(|line| columns(line) <= width), "{width}: {shown:#?}");
                    assert!(unicode || shown.concat().is_ascii());
                }
            }
        }
    }
}
