//! Pauses of garbage collectors on a terminal: one table below a scenario's or a sweep's own.
//!
//! Owns: its columns, and the sentence that explains the source of its numbers.

use deadheat_analysis::CollectorResult;
use deadheat_analysis::number::{three_digits, time_ns, whole};

use super::paragraph::indented;
use super::table::{self, Column};
use crate::style::{Style, Tone};
use crate::text::plain;

/// The table, with an empty line before it. With an axis, its values are next to the contenders.
pub(super) fn lines(collectors: &[(String, &CollectorResult)], axis: &str, style: &Style) -> Vec<String> {
    let about = "pauses of garbage collectors, from a separate diagnostic pass with their logging on; all other figures were measured without it";
    let mut lines = vec![String::new()];
    lines.extend(indented(about, 2, Tone::Quiet, style));
    let values = (!axis.is_empty()).then(|| Column::of(collectors, axis, None, false, |(value, _)| value));
    let name = usize::from(values.is_some());
    let mut columns: Vec<Column> = values.into_iter().collect();
    columns.extend([
        Column::of(collectors, "contender", None, true, |(_, one)| plain(&one.contender)),
        Column::of(collectors, "collector", Some(4), true, |(_, one)| one.kind.word()),
        Column::of(collectors, "pauses", Some(3), false, |(_, one)| whole(one.pauses)),
        Column::of(collectors, "pauses/s", None, false, |(_, one)| three_digits(one.pauses_per_s)),
        Column::of(collectors, "paused/s", None, false, |(_, one)| time_ns(one.paused_ns_per_s)),
        Column::of(collectors, "longest", None, false, |(_, one)| time_ns(one.longest_ns as f64)),
    ]);
    lines.extend(table::lines(columns, name, 2, style));
    lines
}
