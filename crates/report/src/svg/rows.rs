//! Rows, one for each contender or pair, with values along one axis, in groups under headings.
//!
//! Owns: the position of rows on a sheet. Must not know: what their values mean.

use plotters::style::WHITE;

use super::canvas::{Along, BAND, Canvas, Drawn, INK, LEFT, MUTED, RIGHT, RULE, WIDTH, paint, wide};
use super::{LINE, SIDE};
use crate::figures::{Group, Row, Rows};
use crate::text::{plain, wrap};

const SIZE: f64 = 16.0;
const AXIS: i32 = 34;
/// Maximum width of names at the left and of words at the right, in pixels.
const SIDES: (i32, i32) = (250, 340);
const BAR: i32 = 24;

fn heading(group: &Group) -> i32 {
    if group.title.is_some() { 28 } else { 0 }
}

fn row_height(row: &Row) -> i32 {
    match row {
        _ if !row.bars.is_empty() => BAR + 14,
        _ if row.dots.len() > 2 => 48,
        _ => 30,
    }
}

fn rows_height(rows: &Rows) -> i32 {
    let of = |group: &Group| heading(group) + group.rows.iter().map(row_height).sum::<i32>() + 6;
    rows.groups.iter().map(of).sum()
}

fn label(rows: &Rows) -> Vec<String> {
    wrap(&plain(&rows.x.label), 100)
}

/// Pixels from the top of the first row to the end of the axis's label.
pub(super) fn height(rows: &Rows) -> i32 {
    rows_height(rows) + AXIS + LINE * label(rows).len() as i32 + 10
}

/// Width of the longest text, within limits.
fn widest<'t>(texts: impl Iterator<Item = &'t str>, most: i32) -> i32 {
    texts.map(|text| wide(text, SIZE)).max().unwrap_or(0).min(most)
}

pub(super) fn draw(canvas: &Canvas<'_>, rows: &Rows, top: i32) -> Drawn {
    let all = || rows.groups.iter().flat_map(|group| &group.rows);
    let left = SIDE + widest(all().map(|row| row.label.as_str()), SIDES.0) + 16;
    let aside = widest(all().map(|row| row.aside.as_str()), SIDES.1);
    let x = Along::new(&rows.x, left, WIDTH - SIDE - aside - if aside > 0 { 18 } else { 0 });
    let bottom = top + rows_height(rows);
    if let Some((from, to)) = rows.band {
        canvas.fill((x.at(from), top), (x.at(to), bottom), BAND)?;
    }
    for (at, _) in x.ticks() {
        canvas.line(vec![(at, top), (at, bottom)], RULE, 1.0, 1)?;
    }
    if let Some(rule) = rows.rule {
        canvas.line(vec![(x.at(rule), top), (x.at(rule), bottom)], INK, 1.0, 1)?;
    }
    let mut y = top;
    for group in &rows.groups {
        canvas.write(group.title.as_deref().unwrap_or_default(), 80, SIZE, INK, LEFT, (SIDE, y + 14))?;
        y += heading(group);
        for row in &group.rows {
            draw_row(canvas, row, y, &x)?;
            y += row_height(row);
        }
        y += 6;
    }
    x.labels(canvas, bottom + 14)?;
    for (at, line) in label(rows).iter().enumerate() {
        canvas.write(line, 110, 15.0, MUTED, LEFT, (left, bottom + AXIS + 6 + LINE * at as i32))?;
    }
    Ok(())
}

fn draw_row(canvas: &Canvas<'_>, row: &Row, top: i32, x: &Along<'_>) -> Drawn {
    let height = row_height(row);
    let middle = top + height / 2;
    let color = paint(row.color);
    for bar in &row.bars {
        let corners = ((x.at(bar.from), middle - BAR / 2), (x.at(bar.to), middle + BAR / 2));
        let color = paint(bar.color);
        let (inside, edge) = if bar.hollow { (WHITE, color) } else { (color, WHITE) };
        canvas.fill(corners.0, corners.1, inside)?;
        canvas.frame(corners.0, corners.1, edge)?;
    }
    if let Some((low, high)) = row.interval {
        canvas.line(vec![(x.at(low), middle), (x.at(high), middle)], color, 1.0, 3)?;
    }
    match &row.mark {
        Some(mark) if row.dots.is_empty() && mark.hollow => {
            canvas.ring((x.at(mark.value), middle), 6, color)?;
        }
        Some(mark) if row.dots.is_empty() => canvas.dot((x.at(mark.value), middle), 6, color, 1.0)?,
        Some(mark) => {
            let at = x.at(mark.value);
            canvas.line(vec![(at, top + 4), (at, top + height - 4)], color, 1.0, 2)?;
        }
        None => {}
    }
    let steps = row.dots.len().saturating_sub(1).max(1) as f64;
    for (at, dot) in row.dots.iter().enumerate() {
        // The first dot of a row is at its top, the last at its bottom; one or two dots are on the middle line.
        let share = if row.dots.len() > 2 { 0.2 + 0.6 * at as f64 / steps } else { 0.5 };
        let place = (x.at(dot.value), top + (f64::from(height) * share).round() as i32);
        if dot.hollow { canvas.ring(place, 3, color)? } else { canvas.dot(place, 3, color, 0.75)? }
    }
    canvas.write(&row.label, 30, SIZE, INK, RIGHT, (x.from - 16, middle))?;
    canvas.write(&row.aside, 42, SIZE, MUTED, LEFT, (x.to + 18, middle))
}
