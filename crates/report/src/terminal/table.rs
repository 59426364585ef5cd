//! Fits columns into a width: drops the least important ones and shortens names, and never wraps.
//!
//! Owns: which columns are dropped, and that every text is in the characters that may be used. Must not know: their content.

use crate::style::{Style, Tone};
use crate::text::{columns, left, right, shorten_end};

/// Width of the gap between columns.
const GAP: usize = 2;
/// Columns with at most this `keep` are dropped before names become shorter than `NAME_LONG`.
const LITTLE: u8 = 2;
const NAME_MOST: usize = 40;
const NAME_LONG: usize = 32;
/// The other columns are dropped before names become shorter than this.
const NAME_SHORT: usize = 14;
/// Names never become shorter than this.
const NAME_LEAST: usize = 6;

/// One cell: its text, already escaped, and its tone.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
}

impl<T: Into<String>> From<T> for Cell {
    /// A cell without a tone.
    fn from(text: T) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }
}

/// One column.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Heading above the title, right-aligned with the last column of the same group.
    pub(super) group: &'static str,
    pub(super) title: String,
    /// Whether texts are left-aligned.
    pub(super) left: bool,
    /// Columns with a lower value are dropped first; `None` is never dropped.
    pub(super) keep: Option<u8>,
    pub(super) cells: Vec<Cell>,
}

impl Column {
    /// A column without a group: a cell for each row.
    pub(super) fn of<R, C: Into<Cell>>(
        rows: impl IntoIterator<Item = R>,
        title: impl Into<String>,
        keep: Option<u8>,
        left: bool,
        cell: impl Fn(R) -> C,
    ) -> Self {
        let cells = rows.into_iter().map(|row| cell(row).into()).collect();
        Self { group: "", title: title.into(), left, keep, cells }
    }

    /// Writes all its texts in the characters that may be used.
    fn spell(&mut self, style: &Style) {
        self.title = style.spell(&self.title);
        self.cells.iter_mut().for_each(|cell| cell.text = style.spell(&cell.text));
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|cell| columns(&cell.text)).fold(columns(&self.title), usize::max)
    }

    /// Whether the column is empty in every row.
    fn is_empty(&self) -> bool {
        self.cells.iter().all(|cell| cell.text.is_empty())
    }

    fn pad(&self, text: &str, width: usize) -> String {
        if self.left { left(text, width) } else { right(text, width) }
    }
}

/// The table in lines, indented by `indent`. The column with index `name` is shortened if needed, and never dropped.
pub(super) fn lines(mut table: Vec<Column>, name: usize, indent: usize, style: &Style) -> Vec<String> {
    table.iter_mut().for_each(|column| column.spell(style));
    let natural = table[name].width().min(NAME_MOST);
    let others = |table: &[Column], name: usize| {
        indent + total(table) - table[name].width() // what the table takes without the names
    };
    let mut name = name;
    for at in (0..table.len()).rev() {
        if table[at].keep.is_some() && table[at].is_empty() {
            remove(&mut table, at, &mut name);
        }
    }
    while let Some((at, keep)) = least(&table) {
        // Drop the least important columns before names are shortened much, and the others afterwards.
        let wanted = natural.min(if keep <= LITTLE { NAME_LONG } else { NAME_SHORT });
        if others(&table, name) + wanted <= style.width {
            break;
        }
        remove(&mut table, at, &mut name);
    }
    let room = style.width.saturating_sub(others(&table, name)).max(NAME_LEAST);
    shorten(&mut table[name], room.min(natural), style);
    draw(&table, indent, style)
}

fn total(table: &[Column]) -> usize {
    widths(table).iter().sum::<usize>() + GAP * table.len().saturating_sub(1)
}

/// The width of each column. The columns of a group are wide enough to separate its heading from the heading before it.
fn widths(table: &[Column]) -> Vec<usize> {
    let mut widths: Vec<usize> = table.iter().map(Column::width).collect();
    // The free width above the columns since the last heading, and whether there is one.
    let (mut free, mut named, mut from) = (0, false, 0);
    while from < table.len() {
        let group = table[from].group;
        let to = from + table[from..].iter().take_while(|one| one.group == group).count();
        let span = widths[from..to].iter().sum::<usize>() + GAP * (to - from - 1);
        if group.is_empty() {
            free += span + GAP;
        } else {
            let wanted = columns(group) + if named { GAP } else { 0 };
            widths[from] += wanted.saturating_sub(free + span);
            (free, named) = (GAP, true);
        }
        from = to;
    }
    widths
}

/// The column to drop first, and its importance.
fn least(table: &[Column]) -> Option<(usize, u8)> {
    let kept = table.iter().enumerate().filter_map(|(at, column)| Some((at, column.keep?)));
    kept.min_by_key(|(_, keep)| *keep)
}

fn remove(table: &mut Vec<Column>, at: usize, name: &mut usize) {
    table.remove(at);
    *name -= usize::from(at < *name);
}

fn shorten(column: &mut Column, width: usize, style: &Style) {
    column.title = shorten_end(&column.title, width, &style.spell("…"));
    for cell in &mut column.cells {
        cell.text = shorten_end(&cell.text, width, &style.spell("…"));
    }
}

fn draw(table: &[Column], indent: usize, style: &Style) -> Vec<String> {
    let margin = " ".repeat(indent);
    let widths = widths(table);
    let mut lines = Vec::new();
    if let Some(line) = group_line(table, &widths) {
        lines.push(format!("{margin}{}", style.paint(Tone::Quiet, &line)));
    }
    let titles: Vec<String> =
        table.iter().zip(&widths).map(|(column, width)| column.pad(&column.title, *width)).collect();
    lines.push(format!("{margin}{}", style.paint(Tone::Quiet, titles.join("  ").trim_end())));
    for row in 0..table.first().map_or(0, |column| column.cells.len()) {
        let cells = table.iter().zip(&widths).map(|(column, width)| {
            let cell = &column.cells[row];
            let padded = column.pad(&cell.text, *width);
            // Paint only the text, so that trailing spaces can be removed.
            padded.replacen(
                &cell.text,
                &style.paint(cell.tone, &cell.text),
                usize::from(!cell.text.is_empty()),
            )
        });
        lines.push(format!("{margin}{}", cells.collect::<Vec<_>>().join("  ").trim_end()));
    }
    lines
}

/// The headings of groups, each ending where the last column of the group ends; none if no column has one.
fn group_line(table: &[Column], widths: &[usize]) -> Option<String> {
    let mut line = String::new();
    let mut end = 0;
    for (index, (column, width)) in table.iter().zip(widths).enumerate() {
        end += width + if index > 0 { GAP } else { 0 };
        let last = table.get(index + 1).is_none_or(|next| next.group != column.group);
        if !column.group.is_empty() && last {
            line += &right(column.group, end.saturating_sub(columns(&line)));
        }
    }
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_groups_never_run_together() {
        let column = |group, width: usize| Column {
            group,
            title: "x".repeat(width),
            left: false,
            keep: None,
            cells: vec![],
        };
        let table = |groups: &[(&'static str, usize)]| {
            let table: Vec<Column> = groups.iter().map(|(group, width)| column(group, *width)).collect();
            (group_line(&table, &widths(&table)).unwrap(), total(&table))
        };
        let close =
            [("", 9), ("user", 4), ("ratio of users", 4), ("ratio of users", 4), ("ratio of origins", 4)];
        assert_eq!(table(&close).0, "           user  ratio of users  ratio of origins");
        // There is room above columns without a group.
        let wide = [("", 12), ("at saturation", 4), ("", 4), ("CPU time", 4)];
        assert_eq!(table(&wide), ("     at saturation    CPU time".into(), 12 + 4 + 4 + 4 + 6));
        let narrow = [("", 12), ("at saturation", 4), ("", 1), ("CPU time", 4)];
        assert_eq!(table(&narrow).0, "     at saturation  CPU time");
    }
}
