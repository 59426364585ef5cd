//! Pauses of garbage collectors on a terminal: one table below a scenario's or a sweep's own.
//!
//! Owns: its columns, and the sentence that explains the source of its numbers.

use deadheat_analysis::CollectorResult;
use deadheat_analysis::number::{three_digits, time_ns, whole};

use super::paragraph::indented;
use super::table::{self, Cell, Column};
use crate::style::{Style, Tone};
use crate::text::plain;

/// The table, with an empty line before it. With an axis, its values are next to the contenders.
pub(super) fn lines(collectors: &[(String, &CollectorResult)], axis: &str, style: &Style) -> Vec<String> {
    let about = "pauses of garbage collectors, from a separate diagnostic pass with their logging on; all other figures were measured without it";
    let mut lines = vec![String::new()];
    lines.extend(indented(about, 2, Tone::Quiet, style));
    let column = |title: &str, keep: Option<u8>, cell: &dyn Fn(&str, &CollectorResult) -> String| Column {
        group: "",
        title: title.into(),
        left: matches!(title, "contender" | "collector"),
        keep,
        cells: collectors
            .iter()
            .map(|(value, one)| Cell { text: style.spell(&cell(value, one)), tone: Tone::Plain })
            .collect(),
    };
    let values = (!axis.is_empty()).then(|| column(axis, None, &|value, _| value.into()));
    let name = usize::from(values.is_some());
    let mut columns: Vec<Column> = values.into_iter().collect();
    columns.extend([
        column("contender", None, &|_, one| plain(&one.contender)),
        column("collector", Some(4), &|_, one| one.kind.word().into()),
        column("pauses", Some(3), &|_, one| whole(one.pauses)),
        column("pauses/s", None, &|_, one| three_digits(one.pauses_per_s)),
        column("paused/s", None, &|_, one| time_ns(one.paused_ns_per_s)),
        column("longest", None, &|_, one| time_ns(one.longest_ns as f64)),
    ]);
    lines.extend(table::lines(columns, name, 2, style));
    lines
}
