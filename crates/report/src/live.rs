//! A race while it runs: lines on a terminal that are redrawn, or one line per epoch.
//!
//! Owns: how the state of a race is written. Must not know: terminal cursors, clocks or processes. The caller supplies the data.

use deadheat_analysis::number::{clock, quotient, three_digits};
use deadheat_record::VerdictWord;

use crate::style::{Style, Tone};
use crate::terminal::{Bar, DRAWN_FROM, bar, verdict_tone};
use crate::text::{columns, left, plain, right, shorten_end};

/// The state of a race.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveState {
    /// The current scenario.
    pub scenario: String,
    /// Complete epochs that count.
    pub epochs: usize,
    /// Complete epochs that do not count, and are repeated.
    pub left_out: usize,
    /// The number of epochs at the next check of whether the race is decided.
    pub next_look: Option<usize>,
    /// Maximum number of epochs that count.
    pub max_epochs: usize,
    /// The current step: `warm-up`, `round 12 of 40`.
    pub doing: String,
    /// Maximum number of seconds left, as far as it can be estimated.
    pub left_s: Option<u64>,
    /// Ratios this close to 1 count as equivalent.
    pub margin: f64,
    /// One row per contender, in display order.
    pub rows: Vec<LiveRow>,
}

/// The state of one contender.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveRow {
    /// The contender's name.
    pub name: String,
    /// Completions per second so far.
    pub rate_per_s: Option<f64>,
    /// Whether the others are compared with it.
    pub is_baseline: bool,
    /// Contender over baseline so far.
    pub ratio: Option<f64>,
    /// Lower end of the interval so far.
    pub low: Option<f64>,
    /// Upper end of the interval so far.
    pub high: Option<f64>,
    /// The verdict of the last look; none before the first look.
    pub verdict: Option<VerdictWord>,
}

/// The state in lines of at most the style's width: first the progress of the race, then one line per contender.
pub fn lines(state: &LiveState, style: &Style) -> Vec<String> {
    let mark = style.spell("…");
    let shown: Vec<[String; 4]> = state.rows.iter().map(texts).collect();
    let width = |column: usize| shown.iter().map(|texts| columns(&texts[column])).max().unwrap_or(0);
    let (rate, compared, verdict) = (width(1), width(2), width(3));
    let scale = (style.width >= DRAWN_FROM).then(|| {
        let ends = state.rows.iter().flat_map(|row| [row.low, row.ratio, row.high]).flatten();
        Bar::around(ends, state.margin, if style.width >= 140 { 41 } else { 25 })
    });
    let drawn = scale.map_or(0, |scale| scale.columns + 2);
    let others = 2 + 2 + rate + 2 + compared + 2 + verdict + drawn;
    let name = width(0).min(style.width.saturating_sub(others).max(6));
    let mut lines = vec![style.paint(Tone::Strong, &shorten_end(&heading(state), style.width, &mark))];
    for (row, texts) in state.rows.iter().zip(&shown) {
        let tone = row.verdict.map_or(Tone::Plain, verdict_tone);
        let figure = scale.map(|scale| {
            let figure = bar(&scale, row.low, row.ratio, row.high, style);
            format!("  {}", style.paint(tone, &figure))
        });
        let line = format!(
            "  {}  {}  {}{}  {}",
            left(&shorten_end(&texts[0], name, &mark), name),
            right(&texts[1], rate),
            left(&texts[2], compared),
            figure.unwrap_or_default(),
            style.paint(tone, &texts[3])
        );
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// The state in one line, for a log: `closed-64: 4 of at most 30 epochs: node 11,400/s; bun 17,300/s 1.52 (1.45 to 1.59)`.
pub fn plain_line(state: &LiveState) -> String {
    let rows: Vec<String> = state
        .rows
        .iter()
        .map(|row| texts(row).into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" "))
        .collect();
    let left = state.left_s.map(|seconds| format!("; at most {} left", clock(seconds))).unwrap_or_default();
    format!("{}: {}: {}{left}", plain(&state.scenario), epochs(state), rows.join("; "))
}

fn heading(state: &LiveState) -> String {
    let look = state.next_look.map(|look| format!(", next look at {look}")).unwrap_or_default();
    let left = state.left_s.map(|seconds| format!("  at most {} left", clock(seconds))).unwrap_or_default();
    let doing = if state.doing.is_empty() { String::new() } else { format!("  {}", plain(&state.doing)) };
    format!("{}  {}{look}{left}{doing}", plain(&state.scenario), epochs(state))
}

/// The number of epochs of how many, and the number of those that do not count.
fn epochs(state: &LiveState) -> String {
    let left_out = match state.left_out {
        0 => String::new(),
        some => format!(", {some} left out"),
    };
    format!("{} of at most {} epochs{left_out}", state.epochs, state.max_epochs)
}

/// Name, rate, ratio, verdict.
fn texts(row: &LiveRow) -> [String; 4] {
    let rate = row.rate_per_s.map(|rate| format!("{}/s", three_digits(rate))).unwrap_or_default();
    let compared = match row.ratio {
        _ if row.is_baseline => "baseline".into(),
        Some(value) => quotient(value, row.low, row.high),
        None => String::new(),
    };
    let verdict = row.verdict.map_or("", VerdictWord::word).to_owned();
    [plain(&row.name), rate, compared, verdict]
}
