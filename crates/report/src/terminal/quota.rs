//! The effect of a CPU quota on contenders: one table on the terminal, below that of the scenario.
//!
//! Owns: its position, and which of its columns are dropped first. Must not know: which figures there are.

use deadheat_analysis::{Report, ScenarioResult};

use super::paragraph::indented;
use super::table::{self, Cell, Column};
use crate::columns;
use crate::style::{Style, Tone};
use crate::text::plain;

/// The table, with an empty line before it; none without a quota.
pub(super) fn lines(report: &Report, scenario: &ScenarioResult, style: &Style) -> Vec<String> {
    let Some(held) = report.limits(&scenario.name).and_then(columns::quota) else { return Vec::new() };
    let mut lines = vec![String::new()];
    lines.extend(indented(&format!("each contender was limited to {held}"), 2, Tone::Quiet, style));
    let results = || scenario.best_first().into_iter();
    let column = |title: &str, keep: Option<u8>, cells: Vec<String>| Column {
        group: "",
        title: title.into(),
        left: title == "contender",
        keep,
        cells: cells.iter().map(|text| Cell { text: style.spell(text), tone: Tone::Plain }).collect(),
    };
    let mut all = vec![column("contender", None, results().map(|one| plain(&one.contender)).collect())];
    all.extend(columns::of_quota().iter().map(|told| {
        column(told.title, Some(told.keep), results().map(|one| told.of(one).unwrap_or_default()).collect())
    }));
    lines.extend(table::lines(all, 0, 2, style));
    lines
}
