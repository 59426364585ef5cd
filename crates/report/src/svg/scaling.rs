//! A sweep: the rate over what is varied, with intervals, and the law that was fitted to it.
//!
//! Owns that drawing. Must not know how rates and laws come about.

use deadheat_analysis::number::{interval_of, three_digits};
use deadheat_analysis::{Report, SweepResult};
use deadheat_record::Metric;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::canvas::{
    Area, Axis, Drawn, Figure, MUTED, color_of, legend, rates_over, styled, tick, write, zero_ticks,
};

/// A contender's rate at one point.
struct At<'d> {
    name: &'d str,
    n: f64,
    rate: f64,
    ends: Option<(f64, f64)>,
}

/// The rates of a sweep; none where there are none.
pub(super) fn of<'d>(report: &'d Report, sweep: &'d SweepResult) -> Option<Figure<'d>> {
    let points = points(report, sweep);
    (!points.is_empty()).then(|| Figure {
        stem: format!("scaling-{}", sweep.name),
        title: format!("{}: rate over {}", sweep.name, sweep.axis.word()),
        says: points.iter().map(says).collect(),
        height: 480,
        draw: Box::new(move |area: &Area<'_>| draw(area, report, sweep, &points)),
    })
}

fn points<'d>(report: &'d Report, sweep: &SweepResult) -> Vec<At<'d>> {
    let mut points = Vec::new();
    for (n, name) in &sweep.points {
        let scenario = report.scenario(name);
        for result in scenario.into_iter().flat_map(|one| &one.results) {
            let of_rates = |metric| matches!(metric, Metric::Throughput | Metric::Peak);
            if let Some(figure) = result.figures.iter().find(|one| of_rates(one.metric)) {
                let ends = figure.low.zip(figure.high);
                points.push(At { name: &result.contender, n: *n, rate: figure.value, ends });
            }
        }
    }
    points
}

fn says(one: &At<'_>) -> String {
    let ends = one.ends.map_or_else(String::new, |(low, high)| format!(" ({})", interval_of(low, high)));
    format!("{} at {}: {} requests per second{ends}", one.name, one.n, three_digits(one.rate))
}

fn draw(area: &Area<'_>, report: &Report, sweep: &SweepResult, points: &[At<'_>]) -> Drawn {
    let curves = || sweep.fits.iter().flat_map(|fit| &fit.curve);
    let tops = points.iter().map(|one| one.ends.map_or(one.rate, |(_, high)| high));
    let high = tops.chain(curves().map(|(_, rate)| *rate)).fold(0.0, f64::max) * 1.05;
    let mut values: Vec<f64> = points.iter().map(|one| one.n).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let first = values.first().copied().unwrap_or(1.0) / 1.15;
    let last = values.last().copied().unwrap_or(1.0) * 1.15;
    let ticks = zero_ticks(high, 5.0);
    let plot = area.margin(48, 34, 20, 20);
    let mut chart = ChartBuilder::on(&plot)
        .x_label_area_size(34)
        .y_label_area_size(76)
        .margin_right(200)
        .build_cartesian_2d(
            Axis::of(first.ln()..last.ln(), values.iter().map(|n| n.ln())),
            Axis::of(0.0..high, ticks.iter().copied()),
        )?;
    rates_over(&mut chart, (values.len(), ticks.len()), &|at| tick(&three_digits(at.exp())))?;
    for fit in &sweep.fits {
        let line = fit.curve.iter().map(|(n, rate)| (n.ln(), *rate));
        let style = color_of(report, &fit.contender).mix(0.6).stroke_width(1);
        chart.draw_series(LineSeries::new(line, style))?;
    }
    for one in points {
        let (at, paint) = (one.n.ln(), color_of(report, one.name));
        if let Some((low, high)) = one.ends {
            chart.draw_series([PathElement::new([(at, low), (at, high)], paint.stroke_width(2))])?;
        }
        chart.draw_series([Circle::new((at, one.rate), 4, paint.filled())])?;
    }
    let law = if sweep.fits.is_empty() { "" } else { "; lines: a scalability law, which decides nothing" };
    let foot = format!("{}; requests per second, with 95 % intervals{law}", sweep.axis.word());
    write(area, &foot, 130, &styled(15.0, MUTED, HPos::Left), (96, 464))?;
    let names = report.record.plan.contenders.iter().map(|one| one.name.as_str());
    let raced = names.filter(|name| points.iter().any(|one| one.name == *name));
    legend(area, raced.map(|name| (name, color_of(report, name))))
}
