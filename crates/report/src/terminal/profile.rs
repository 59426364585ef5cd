//! Where CPU time goes, on a terminal: the functions that gained most, and the counts per request, below a scenario's own table.
//!
//! Owns: its columns. Must not know: how the gains were found.

use deadheat_analysis::number::{percent, time_ns};
use deadheat_analysis::{Gains, ScenarioResult};

use super::paragraph::indented;
use super::table::{self, Column};
use crate::profile;
use crate::style::{Style, Tone};
use crate::text::{plain, shorten_end};

/// The most columns that what a function called may take.
const CALLED: usize = 44;

/// The tables, with an empty line before each; nothing if no contender was profiled.
pub(super) fn lines(scenario: &ScenarioResult, style: &Style) -> Vec<String> {
    if scenario.profiles.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.extend(indented(&profile::about(&scenario.profiles), 2, Tone::Quiet, style));
    if let Some(why) = profile::lower_rate(scenario) {
        lines.extend(indented(why, 2, Tone::Quiet, style));
    }
    for one in &scenario.gains {
        let (contender, baseline) = (plain(&one.contender), plain(&one.baseline));
        let headline = format!(
            "{contender} takes {} than {baseline}{}",
            profile::gained(one),
            profile::unexplained(one)
        );
        lines.extend(indented(&headline, 2, Tone::Plain, style));
        if !one.functions.is_empty() {
            lines.extend(indented(profile::COUNTED, 2, Tone::Quiet, style));
            lines.extend(table::lines(functions(one), 0, 2, style));
        }
    }
    lines.push(String::new());
    lines.extend(table::lines(counts(scenario), 0, 2, style));
    lines
}

fn functions(gains: &Gains) -> Vec<Column> {
    let all = &gains.functions;
    let (contender, baseline) = (plain(&gains.contender), plain(&gains.baseline));
    let share = format!("of {contender}");
    vec![
        Column::of(all, "function", None, true, |one| plain(&one.function)),
        Column::of(all, "place", Some(5), true, |one| plain(&profile::place(one.file.as_deref(), one.line))),
        Column::of(all, baseline, Some(2), false, |one| time_ns(one.baseline_ns)),
        Column::of(all, contender, Some(2), false, |one| time_ns(one.contender_ns)),
        Column::of(all, "gained/request", None, false, |one| time_ns(one.gained_ns)),
        Column::of(all, share, Some(3), false, |one| percent(one.share)),
        Column::of(all, "most of it", Some(4), true, |one| {
            shorten_end(&plain(&profile::called(one)), CALLED, "…")
        }),
    ]
}

/// One line for each contender. On a narrow terminal, the last counts go first.
fn counts(scenario: &ScenarioResult) -> Vec<Column> {
    let names = Column::of(&scenario.profiles, "per request", None, true, |one| plain(&one.contender));
    let counts = profile::counts(&scenario.profiles).into_iter().zip((0..=u8::MAX).rev());
    let values = counts
        .map(|((title, values), keep)| Column::of(values, title, Some(keep), false, |(shown, _)| shown));
    std::iter::once(names).chain(values).collect()
}
