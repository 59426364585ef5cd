//! A ladder: what each part of the work adds to a request, one part behind the other.
//!
//! Owns that drawing. Must not know how the parts come about.

use deadheat_analysis::number::time_ns;
use deadheat_analysis::{Climb, LadderResult, LadderStep};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::canvas::{
    Area, Axis, Drawn, Figure, INK, MUTED, across, color, legend, styled, tick, write, zero_ticks,
};

const ROW: i32 = 40;
const BAR: i32 = 24;
const TOP: i32 = 48;
const FOOT: i32 = 70;

/// The parts of each contender's request; none where no contender has any.
pub(super) fn of(ladder: &LadderResult) -> Option<Figure<'_>> {
    let rows = ladder.contenders.len().max(ladder.rungs.len().div_ceil(2)) as i32;
    (!ladder.contenders.is_empty()).then(|| Figure {
        stem: format!("ladder-{}", ladder.name),
        title: format!("{}: parts of a request", ladder.name),
        says: ladder.contenders.iter().flat_map(says).collect(),
        height: TOP + ROW * rows + FOOT,
        draw: Box::new(move |area: &Area<'_>| draw(area, ladder)),
    })
}

fn says(climb: &Climb) -> Vec<String> {
    let step = |step: &LadderStep| format!("{}, {}: {}", climb.contender, step.scenario, added(step));
    climb.steps.iter().map(step).collect()
}

fn added(step: &LadderStep) -> String {
    if step.faster { "0, is faster".into() } else { time_ns(step.added_us * 1e3) }
}

/// From where to where each step of a climb goes, in microseconds.
fn parts(climb: &Climb) -> Vec<(&LadderStep, f64, f64)> {
    let (mut parts, mut end_us) = (Vec::new(), 0.0);
    for step in &climb.steps {
        let from_us = end_us;
        end_us += step.added_us;
        parts.push((step, from_us, end_us));
    }
    parts
}

fn draw(area: &Area<'_>, ladder: &LadderResult) -> Drawn {
    let ends = ladder.contenders.iter().flat_map(|climb| parts(climb).into_iter().map(|(_, _, to)| to));
    let high = ends.fold(0.0, f64::max) * 1.05;
    let ticks = zero_ticks(high, 6.0);
    let plot = area.margin(TOP, FOOT - 34, 20, 20);
    let mut chart = ChartBuilder::on(&plot)
        .x_label_area_size(34)
        .margin_left(210)
        .margin_right(300)
        .build_cartesian_2d(Axis::of(0.0..high, ticks.iter().copied()), Axis::bare())?;
    across(&mut chart, ticks.len(), &|us| if *us == 0.0 { "0".into() } else { tick(&time_ns(us * 1e3)) })?;
    let x = |us: f64| chart.backend_coord(&(us, 0.0)).0;
    let (_, bottom) = chart.backend_coord(&(0.0, 0.0));
    for (row, climb) in ladder.contenders.iter().enumerate() {
        let top = TOP + ROW * row as i32 + (ROW - BAR) / 2;
        for (step, from, to) in parts(climb) {
            let place = ladder.rungs.iter().position(|name| *name == step.scenario).unwrap_or(0);
            let corners = [(x(from), top), (x(to), top + BAR)];
            area.draw(&Rectangle::new(corners, color(place).filled()))?;
            area.draw(&Rectangle::new(corners, WHITE.stroke_width(1)))?;
        }
        write(area, &climb.contender, 28, &styled(16.0, INK, HPos::Right), (222, top + BAR / 2))?;
        let whole = climb.steps.last().map(|step| time_ns(step.time_us * 1e3)).unwrap_or_default();
        let aside = styled(16.0, MUTED, HPos::Left);
        write(area, &whole, 12, &aside, (x(high) + 8, top + BAR / 2))?;
    }
    let faster = ladder.contenders.iter().flat_map(|climb| &climb.steps).any(|step| step.faster);
    let aside = if faster { "; a rung that is faster than the one before adds nothing" } else { "" };
    let label =
        format!("time per request: the inverse of the rate; at the right, that of the last rung{aside}");
    write(area, &label, 140, &styled(15.0, MUTED, HPos::Left), (20, bottom + 50))?;
    legend(area, ladder.rungs.iter().enumerate().map(|(place, name)| (name.as_str(), color(place))))
}
