//! Plots: lines and dots over a shared axis, in one panel or in several stacked ones of the same scale.
//!
//! Owns: the position of panels on a sheet. Must not know: what is plotted.

use super::SIDE;
use super::canvas::{Along, BAD, Canvas, Drawn, INK, LEFT, MUTED, RIGHT, RULE, WARM, WIDTH, paint, wide};
use crate::figures::{Dots, Line, More, Panel, Plot, Point, Stroke};

const AXIS: i32 = 30;
const FOOT: i32 = 34;
/// With more points than this, dots are smaller.
const MANY: usize = 2000;

/// The height of one panel: the space above it, and the panel itself.
fn panel_height(plot: &Plot) -> (i32, i32) {
    let above = if plot.panels.iter().any(|panel| panel.title.is_some()) { 28 } else { 8 };
    (above, if plot.panels.len() > 1 { 92 } else { 360 })
}

/// Pixels from the top of the first panel to the end of the axis's label.
pub(super) fn height(plot: &Plot) -> i32 {
    let (above, panel) = panel_height(plot);
    (above + panel) * plot.panels.len() as i32 + AXIS + FOOT
}

pub(super) fn draw(canvas: &Canvas<'_>, plot: &Plot, top: i32) -> Drawn {
    let (above, high) = panel_height(plot);
    let labels = plot.y.ticks.iter().map(|(_, label)| wide(label, 15.0)).max().unwrap_or(0);
    let x = Along::new(&plot.x, SIDE + labels + 10, WIDTH - SIDE);
    let mut bottom = top;
    for panel in &plot.panels {
        bottom += above + high;
        let y = Along::new(&plot.y, bottom, bottom - high);
        draw_panel(canvas, plot, panel, &x, &y)?;
    }
    canvas.line(vec![(x.from, bottom), (x.to, bottom)], RULE, 1.0, 1)?;
    x.labels(canvas, bottom + 14)?;
    let words = [plot.x.label.as_str(), &plot.y.label].join("; ");
    canvas.write(words.trim_end_matches("; "), 130, 15.0, MUTED, LEFT, (x.from, bottom + AXIS + 14))
}

fn draw_panel(canvas: &Canvas<'_>, plot: &Plot, panel: &Panel, x: &Along<'_>, y: &Along<'_>) -> Drawn {
    for (from, to) in &panel.shaded {
        canvas.fill((x.at(*from), y.to), (x.at(*to), y.from), WARM)?;
    }
    if plot.panels.len() == 1 {
        for (at, _) in x.ticks() {
            canvas.line(vec![(at, y.from), (at, y.to)], RULE, 1.0, 1)?;
        }
    }
    for (at, label) in y.ticks() {
        canvas.line(vec![(x.from, at), (x.to, at)], RULE, 1.0, 1)?;
        canvas.write(label, 12, 15.0, MUTED, RIGHT, (x.from - 8, at))?;
    }
    canvas.write(panel.title.as_deref().unwrap_or_default(), 60, 16.0, INK, LEFT, (x.from, y.to - 12))?;
    for line in &panel.lines {
        draw_line(canvas, line, x, y)?;
    }
    let many = panel.lines.iter().map(|line| line.points.len()).sum::<usize>() * plot.panels.len() > MANY;
    for line in &panel.lines {
        draw_dots(canvas, line, many, x, y)?;
    }
    Ok(())
}

fn draw_line(canvas: &Canvas<'_>, line: &Line, x: &Along<'_>, y: &Along<'_>) -> Drawn {
    let kept = line.points.iter().filter(|point| !matches!(point.more, More::LeftOut));
    let places = kept.map(|point| (x.at(point.x), y.at(point.y))).collect();
    let color = paint(line.color);
    match line.stroke {
        Stroke::None => Ok(()),
        Stroke::Bold => canvas.line(places, color, 1.0, 2),
        Stroke::Thin => canvas.line(places, color, 1.0, 1),
        Stroke::Faint => canvas.line(places, color, 0.45, 1),
        Stroke::Dashed => canvas.dashes(places, color),
    }
}

fn draw_dots(canvas: &Canvas<'_>, line: &Line, many: bool, x: &Along<'_>, y: &Along<'_>) -> Drawn {
    let color = paint(line.color);
    let dot = |point: &Point, radius: i32| {
        let place = (x.at(point.x), y.at(point.y));
        match point.more {
            More::LeftOut => canvas.cross(place, BAD),
            More::Nothing => canvas.dot(place, radius, color, 1.0),
            More::Ends(low, high) => {
                canvas.line(vec![(place.0, y.at(low)), (place.0, y.at(high))], color, 1.0, 2)?;
                canvas.dot(place, radius, color, 1.0)
            }
        }
    };
    match &line.dots {
        Dots::None => Ok(()),
        Dots::Each => line.points.iter().try_for_each(|point| dot(point, 3)),
        Dots::Fine => line.points.iter().try_for_each(|point| dot(point, if many { 1 } else { 2 })),
        Dots::At(places) => {
            places.iter().filter_map(|at| line.points.get(*at)).try_for_each(|point| dot(point, 3))
        }
    }
}
