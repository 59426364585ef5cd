//! Where CPU time goes, on a terminal: the functions that gained most, and the counts per request, below a scenario's own table.
//!
//! Owns: its columns. Must not know: how the gains were found.

use deadheat_analysis::number::{percent, time_ns};
use deadheat_analysis::{FunctionGain, Gains, ScenarioResult};

use super::paragraph::indented;
use super::table::{self, Cell, Column};
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
            lines.extend(table::lines(functions(one, style), 0, 2, style));
        }
    }
    lines.push(String::new());
    lines.extend(table::lines(counts(scenario, style), 0, 2, style));
    lines
}

fn functions(gains: &Gains, style: &Style) -> Vec<Column> {
    let column = |title: &str, keep: Option<u8>, cell: &dyn Fn(&FunctionGain) -> String| Column {
        group: "",
        title: plain(title),
        left: matches!(title, "function" | "place" | "most of it"),
        keep,
        cells: gains
            .functions
            .iter()
            .map(|one| Cell { text: style.spell(&cell(one)), tone: Tone::Plain })
            .collect(),
    };
    vec![
        column("function", None, &|one| plain(&one.function)),
        column("place", Some(5), &|one| plain(&profile::place(one.file.as_deref(), one.line))),
        column(&gains.baseline, Some(2), &|one| time_ns(one.baseline_ns)),
        column(&gains.contender, Some(2), &|one| time_ns(one.contender_ns)),
        column("gained/request", None, &|one| time_ns(one.gained_ns)),
        column(&format!("of {}", gains.contender), Some(3), &|one| percent(one.share)),
        column("most of it", Some(4), &|one| shorten_end(&plain(&profile::called(one)), CALLED, "…")),
    ]
}

fn counts(scenario: &ScenarioResult, style: &Style) -> Vec<Column> {
    let rows = profile::counts(&scenario.profiles);
    let cell = |text: &str| Cell { text: style.spell(text), tone: Tone::Plain };
    let titles = Column {
        group: "",
        title: "per request".into(),
        left: true,
        keep: None,
        cells: rows.iter().map(|(title, _)| cell(title)).collect(),
    };
    let values = scenario.profiles.iter().enumerate().map(|(at, one)| Column {
        group: "",
        title: plain(&one.contender),
        left: false,
        keep: None,
        cells: rows.iter().map(|(_, values)| cell(&values[at].0)).collect(),
    });
    std::iter::once(titles).chain(values).collect()
}
