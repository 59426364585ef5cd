//! The drawing that most figures share: one row for each contender or pair, values along one axis, groups under headings.
//!
//! Owns where rows stand. Must not know what their values are.

use std::ops::Range;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::canvas::{Area, Axis, BAND, Drawn, INK, MUTED, WIDTH, across, styled, write};

/// One value.
pub(super) struct Dot {
    pub(super) value: f64,
    pub(super) hollow: bool,
}

impl Dot {
    pub(super) fn filled(value: f64) -> Self {
        Self { value, hollow: false }
    }
}

/// One row.
pub(super) struct Row {
    /// Left of it.
    pub(super) label: String,
    /// Right of it: the figure in words.
    pub(super) aside: String,
    pub(super) paint: RGBColor,
    /// In time order: earlier ones stand higher.
    pub(super) dots: Vec<Dot>,
    /// What the dots come to: a line across the row.
    pub(super) mark: Option<f64>,
}

impl Row {
    fn height(&self) -> i32 {
        if self.dots.len() > 2 { 48 } else { 30 }
    }

    fn says(&self) -> String {
        format!("{}: {}", self.label, self.aside)
    }
}

/// Rows under a heading; an empty heading is none.
pub(super) struct Group {
    pub(super) title: String,
    pub(super) rows: Vec<Row>,
}

impl Group {
    fn heading(&self) -> i32 {
        if self.title.is_empty() { 0 } else { 28 }
    }

    fn height(&self) -> i32 {
        self.heading() + self.rows.iter().map(Row::height).sum::<i32>() + 6
    }
}

/// The scale that all rows share.
pub(super) struct Scale {
    /// Whether equal ratios are equal lengths.
    pub(super) log: bool,
    pub(super) range: Range<f64>,
    pub(super) ticks: Vec<f64>,
    pub(super) format: fn(f64) -> String,
    /// What is measured, below the axis.
    pub(super) label: &'static str,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        if self.log { value.ln() } else { value }
    }
}

/// A whole drawing.
pub(super) struct Rows {
    pub(super) groups: Vec<Group>,
    pub(super) scale: Scale,
    /// Shaded: values that count as alike.
    pub(super) band: Option<Range<f64>>,
    /// A line through all rows.
    pub(super) rule: Option<f64>,
}

/// What the heading takes above the rows, and axis and label below them.
const TOP: i32 = 48;
const AXIS: i32 = 34;
const FOOT: i32 = 36;

impl Rows {
    /// Pixels, the figure's heading included.
    pub(super) fn height(&self) -> i32 {
        TOP + self.groups.iter().map(Group::height).sum::<i32>() + AXIS + FOOT
    }

    /// Every row in words.
    pub(super) fn says(&self) -> Vec<String> {
        let of = |group: &Group| {
            let before = if group.title.is_empty() { String::new() } else { format!("{}, ", group.title) };
            group.rows.iter().map(|row| format!("{before}{}", row.says())).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(of).collect()
    }

    pub(super) fn draw(&self, area: &Area<'_>) -> Drawn {
        let plot = area.margin(TOP, FOOT, 20, 20);
        let scale = &self.scale;
        let range = scale.at(scale.range.start)..scale.at(scale.range.end);
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(AXIS)
            .margin_left(210)
            .margin_right(250)
            .build_cartesian_2d(
                Axis::of(range, scale.ticks.iter().map(|tick| scale.at(*tick))),
                Axis::bare(),
            )?;
        if let Some(band) = &self.band {
            let corners = [(scale.at(band.start), 0.0), (scale.at(band.end), 1.0)];
            chart.draw_series([Rectangle::new(corners, BAND.filled())])?;
        }
        across(&mut chart, scale.ticks.len(), &|at| (scale.format)(if scale.log { at.exp() } else { *at }))?;
        if let Some(rule) = self.rule {
            let at = scale.at(rule);
            chart.draw_series([PathElement::new([(at, 0.0), (at, 1.0)], INK)])?;
        }
        let x = |value: f64| chart.backend_coord(&(scale.at(value), 0.0)).0;
        let (left, mut y) = chart.backend_coord(&(scale.at(scale.range.start), 1.0));
        for group in &self.groups {
            let heading = styled(16.0, INK, HPos::Left);
            write(area, &group.title, 80, &heading, (20, y + 14))?;
            y += group.heading();
            for row in &group.rows {
                draw_row(area, row, y, &x)?;
                y += row.height();
            }
            y += 6;
        }
        write(area, scale.label, 110, &styled(15.0, MUTED, HPos::Left), (left, y + AXIS + 12))
    }
}

fn draw_row(area: &Area<'_>, row: &Row, top: i32, x: &dyn Fn(f64) -> i32) -> Drawn {
    let height = row.height();
    let middle = top + height / 2;
    if let Some(mark) = row.mark {
        let line = [(x(mark), top + 4), (x(mark), top + height - 4)];
        area.draw(&PathElement::new(line, row.paint.stroke_width(2)))?;
    }
    let steps = row.dots.len().saturating_sub(1).max(1) as f64;
    for (at, dot) in row.dots.iter().enumerate() {
        // The first dot of a row stands at its top, the last at its bottom; a few stand on one line.
        let share = if row.dots.len() > 2 { 0.2 + 0.6 * at as f64 / steps } else { 0.5 };
        let place = (x(dot.value), top + (f64::from(height) * share).round() as i32);
        let style = if dot.hollow { row.paint.stroke_width(1) } else { row.paint.mix(0.75).filled() };
        area.draw(&Circle::new(place, if dot.hollow { 4 } else { 3 }, style))?;
    }
    write(area, &row.label, 28, &styled(16.0, INK, HPos::Right), (222, middle))?;
    write(area, &row.aside, 34, &styled(16.0, MUTED, HPos::Left), (WIDTH - 258, middle))
}
