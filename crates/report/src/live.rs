//! The race while it runs: lines for a terminal that are drawn over again, or one line per epoch.
//!
//! Owns how the standing of a race is written. Must not know terminals' cursors, clocks or processes: what there is to
//! show comes in.

use deadheat_analysis::number::{clock, interval, ratio, ratio_decimals, three_digits};
use deadheat_record::VerdictWord;

use crate::style::{Style, Tone};
use crate::terminal::{Bar, bar};
use crate::text::{columns, left, plain, right, shorten_end};

/// From this width on, the interval is drawn too.
const DRAWN_FROM: usize = 100;

/// How a race stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveState {
    /// The scenario that is raced.
    pub scenario: String,
    /// Epochs that are complete and count.
    pub epochs: usize,
    /// Epochs that are complete and do not count: others take their place.
    pub left_out: usize,
    /// Epochs after which it is asked next whether the race is decided.
    pub next_look: Option<usize>,
    /// The most epochs that can count.
    pub max_epochs: usize,
    /// What is being done now: `warm-up`, `round 12 of 40`.
    pub doing: String,
    /// Seconds that are left at the most, as far as it can be told.
    pub left_s: Option<u64>,
    /// Ratios within 1 +- margin count as equivalent.
    pub margin: f64,
    /// One per contender, in the order in which they are shown.
    pub rows: Vec<LiveRow>,
}

/// How one contender stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveRow {
    /// Who.
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
    /// The verdict as of the last look; none before it.
    pub verdict: Option<VerdictWord>,
}

/// The standing in lines of at most the style's width: first where the race is, then one line per contender.
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
        let tone = row.verdict.map_or(Tone::Plain, |verdict| crate::terminal::verdict(verdict).1);
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

/// The standing in one line, for a log: `closed-64: 4 of at most 30 epochs: node 11,400/s; bun 17,300/s 1.52 (1.45 to 1.59)`.
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

/// How many epochs there are of how many; beside them those that do not count.
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
    let decimals = ratio_decimals(row.low, row.high);
    let compared = match row.ratio {
        _ if row.is_baseline => "baseline".into(),
        Some(value) if row.low.is_some() => {
            format!("{} ({})", ratio(value, decimals), interval(row.low, row.high))
        }
        Some(value) => ratio(value, decimals),
        None => String::new(),
    };
    let verdict =
        row.verdict.map(|verdict| crate::terminal::verdict(verdict).0.to_owned()).unwrap_or_default();
    [plain(&row.name), rate, compared, verdict]
}
