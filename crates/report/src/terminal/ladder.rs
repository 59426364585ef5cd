//! A ladder on a terminal: what each rung adds to a request of each contender.
//!
//! Owns: the table, and the sentence that explains its numbers.

use deadheat_analysis::number::time_ns;
use deadheat_analysis::{Climb, LadderResult, LadderStep};

use super::paragraph::indented;
use super::table::{self, Column};
use crate::style::{Style, Tone};
use crate::text::plain;

/// What a rung adds to the time of the one before.
pub(crate) fn added(step: &LadderStep) -> String {
    if step.faster { "0, is faster".into() } else { time_ns(step.added_us * 1e3) }
}

/// One line per contender and rung.
pub(super) fn lines(ladder: &LadderResult, style: &Style) -> Vec<String> {
    let about = format!(
        "ladder {}: time per request (1 / requests/s), and what each rung adds to the one before",
        plain(&ladder.name)
    );
    let mut lines = indented(&about, 0, Tone::Quiet, style);
    let rows: Vec<(&Climb, usize, &LadderStep)> = ladder
        .contenders
        .iter()
        .flat_map(|climb| climb.steps.iter().enumerate().map(move |(at, step)| (climb, at, step)))
        .collect();
    let columns = vec![
        Column::of(&rows, "contender", None, true, |(climb, at, _)| {
            if *at == 0 { plain(&climb.contender) } else { String::new() }
        }),
        Column::of(&rows, "rung", None, true, |(_, _, step)| {
            crate::text::shorten_end(&plain(&step.scenario), 28, "…")
        }),
        Column::of(&rows, "per request", None, false, |(_, _, step)| time_ns(step.time_us * 1e3)),
        Column::of(&rows, "adds", None, false, |(_, _, step)| added(step)),
    ];
    lines.extend(table::lines(columns, 0, 2, style));
    lines
}
