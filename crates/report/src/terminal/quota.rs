//! The effect of a CPU quota on contenders: one table on the terminal, below that of the scenario.
//!
//! Owns: its position, and which of its columns are dropped first. Must not know: which figures there are.

use deadheat_analysis::{Report, ScenarioResult};

use super::paragraph::indented;
use super::table::{self, Column};
use crate::columns;
use crate::style::{Style, Tone};
use crate::text::plain;

/// The table, with an empty line before it; none without a quota.
pub(super) fn lines(report: &Report, scenario: &ScenarioResult, style: &Style) -> Vec<String> {
    let Some(held) = report.limits(&scenario.name).and_then(columns::quota) else { return Vec::new() };
    let mut lines = vec![String::new()];
    lines.extend(indented(&format!("each contender was limited to {held}"), 2, Tone::Quiet, style));
    let results = scenario.best_first();
    let mut all = vec![Column::of(&results, "contender", None, true, |one| plain(&one.contender))];
    all.extend(columns::of_quota().iter().map(|told| {
        Column::of(&results, told.title, Some(told.keep), false, |one| told.of(one).unwrap_or_default())
    }));
    lines.extend(table::lines(all, 0, 2, style));
    lines
}
