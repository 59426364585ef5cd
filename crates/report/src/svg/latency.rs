//! Latency by percentile, on an axis of nines.
//!
//! Owns that drawing. Must not know where latencies come from.

use deadheat_record::{Document, ScenarioResult};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::canvas::{Area, Axis, Drawn, INK, MUTED, RULE, SERIES, WIDTH, styled};
use crate::number::{quantile, time_ns};
use crate::text::{plain, shorten_end};

/// One nine is one step.
fn nines(at: f64) -> f64 {
    -(1.0 - at).log10()
}

pub(super) fn latency(area: &Area<'_>, document: &Document, scenario: &ScenarioResult) -> Drawn {
    let title = format!("{}: latency by percentile", plain(&scenario.name));
    area.draw_text(&shorten_end(&title, 90, "…"), &styled(20.0, INK, HPos::Left), (20, 26))?;
    let curves: Vec<_> = scenario.results.iter().filter(|one| one.latency_curve.len() > 1).collect();
    let points = || curves.iter().flat_map(|one| &one.latency_curve);
    let last = points().map(|(at, _)| nines(*at)).fold(1.0, f64::max) * 1.02;
    let low = points().map(|(_, ns)| *ns.max(&1) as f64).fold(f64::INFINITY, f64::min) / 1.1;
    let high = points().map(|(_, ns)| *ns as f64).fold(1.0, f64::max) * 1.1;
    let shown: Vec<f64> =
        [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999].into_iter().filter(|at| nines(*at) <= last).collect();
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let times: Vec<f64> =
        powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| (digit * 10_f64.powi(power)).log10())).collect();
    let plot = area.margin(48, 14, 20, 20);
    let mut chart = ChartBuilder::on(&plot)
        .x_label_area_size(34)
        .y_label_area_size(76)
        .margin_right(200)
        .build_cartesian_2d(
            Axis::of(0.0..last, shown.iter().map(|at| nines(*at))),
            Axis::of(low.log10()..high.log10(), times),
        )?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RULE)
        .axis_style(RULE)
        .x_labels(8)
        .y_labels(30)
        .label_style(styled(15.0, MUTED, HPos::Center))
        .y_label_style(styled(15.0, MUTED, HPos::Right))
        .x_label_formatter(&|at| quantile(1.0 - 10_f64.powf(-at)))
        .y_label_formatter(&|power| time_ns(10_f64.powf(*power)))
        .draw()?;
    for (row, one) in curves.iter().enumerate() {
        let place = document.record.plan.contenders.iter().position(|each| each.name == one.contender);
        let paint = SERIES[place.unwrap_or(row) % SERIES.len()];
        let line = one.latency_curve.iter().map(|(at, ns)| (nines(*at), (*ns.max(&1) as f64).log10()));
        chart.draw_series(LineSeries::new(line, paint.stroke_width(2)))?;
        let y = 66 + 24 * row as i32;
        area.draw(&Rectangle::new(
            [(WIDTH as i32 - 206, y - 5), (WIDTH as i32 - 194, y + 5)],
            paint.filled(),
        ))?;
        let name = shorten_end(&plain(&one.contender), 24, "…");
        area.draw_text(&name, &styled(16.0, INK, HPos::Left), (WIDTH as i32 - 186, y))?;
    }
    Ok(())
}
