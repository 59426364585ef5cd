//! Latency by percentile, on an axis of nines; and what users see behind an edge cache.
//!
//! Owns those drawings. Must not know where latencies come from, and not the model of the cache: its numbers are the
//! document's.

use deadheat_analysis::number::{percent, quantile, time_ns};
use deadheat_analysis::{ContenderResult, EdgeCache, EdgeUser, Report, ScenarioResult};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::canvas::{
    Area, Axis, Drawn, Figure, MUTED, RULE, color_of, legend, log_ticks, of_powers, styled, tick,
};
use super::rows::{Dot, Group, Row, Rows, Scale};

/// The curves of a scenario; none where there are none.
pub(super) fn of<'d>(report: &'d Report, scenario: &'d ScenarioResult) -> Option<Figure<'d>> {
    let curves: Vec<&ContenderResult> =
        scenario.results.iter().filter(|one| one.latency_curve.len() > 1).collect();
    (!curves.is_empty()).then(|| Figure {
        stem: format!("latency-{}", scenario.name),
        title: format!("{}: latency by percentile", scenario.name),
        says: curves.iter().map(|one| says(one)).collect(),
        height: 520,
        draw: Box::new(move |area: &Area<'_>| draw(area, report, &curves)),
    })
}

fn says(one: &ContenderResult) -> String {
    let latency = &one.latency_ns;
    let named = [("p50", latency.p50), ("p99", latency.p99)];
    let known = named.iter().filter_map(|(name, ns)| Some(format!("{name} {}", time_ns((*ns)? as f64))));
    format!("{}: {}", one.contender, known.collect::<Vec<_>>().join(", "))
}

/// One nine is one step.
fn nines(at: f64) -> f64 {
    -(1.0 - at).log10()
}

fn draw(area: &Area<'_>, report: &Report, curves: &[&ContenderResult]) -> Drawn {
    let points = || curves.iter().flat_map(|one| &one.latency_curve);
    let last = points().map(|(at, _)| nines(*at)).fold(1.0, f64::max) * 1.02;
    let low = points().map(|(_, ns)| *ns.max(&1) as f64).fold(f64::INFINITY, f64::min) / 1.1;
    let high = points().map(|(_, ns)| *ns as f64).fold(1.0, f64::max) * 1.1;
    let shown: Vec<f64> =
        [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999].into_iter().filter(|at| nines(*at) <= last).collect();
    let times = log_ticks(low, high);
    let plot = area.margin(48, 14, 20, 20);
    let mut chart = ChartBuilder::on(&plot)
        .x_label_area_size(34)
        .y_label_area_size(76)
        .margin_right(200)
        .build_cartesian_2d(
            Axis::of(0.0..last, shown.iter().map(|at| nines(*at))),
            Axis::of(low.log10()..high.log10(), times.iter().map(|ns| ns.log10())),
        )?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RULE)
        .axis_style(RULE)
        .x_labels(8)
        .y_labels(times.len())
        .label_style(styled(15.0, MUTED, HPos::Center))
        .y_label_style(styled(15.0, MUTED, HPos::Right))
        .x_label_formatter(&|at| quantile(1.0 - 10_f64.powf(-at)))
        .y_label_formatter(&|power| tick(&time_ns(10_f64.powf(*power))))
        .draw()?;
    for one in curves {
        let line = one.latency_curve.iter().map(|(at, ns)| (nines(*at), (*ns.max(&1) as f64).log10()));
        let paint = color_of(report, &one.contender);
        chart.draw_series(LineSeries::new(line, paint.stroke_width(2)))?;
    }
    legend(area, curves.iter().map(|one| (one.contender.as_str(), color_of(report, &one.contender))))
}

/// A quantile's name, that of a user, and that of the origin alone.
type Told = (&'static str, fn(&EdgeUser) -> u64, fn(&EdgeUser) -> u64);
const TOLD: [Told; 3] = [
    ("p50", |one| one.p50_ns, |one| one.origin_p50_ns),
    ("p95", |one| one.p95_ns, |one| one.origin_p95_ns),
    ("p99", |one| one.p99_ns, |one| one.origin_p99_ns),
];

/// Round times from left to right, as many as have room beside each other.
fn times_across(low: f64, high: f64) -> Vec<f64> {
    let mut times = log_ticks(low, high);
    if times.len() > 8 {
        times = of_powers(low, high, &[1.0]);
    }
    // A label takes less than a twelfth of the axis.
    let (room, mut last) = ((high / low).powf(1.0 / 12.0), 0.0);
    times.retain(|time| {
        let free = *time >= last * room;
        last = if free { *time } else { last };
        free
    });
    times
}

/// What users see behind the cache at the hit rate that the study names, beside the origin alone.
pub(super) fn edge_cache(report: &Report, scenario: &ScenarioResult) -> Option<Figure<'static>> {
    let cache = scenario.edge_cache.as_ref().filter(|cache| !cache.users.is_empty())?;
    let all = cache.users.iter().flat_map(|user| TOLD.map(|(_, seen, origin)| [seen(user), origin(user)]));
    let all: Vec<f64> = all.flatten().map(|ns| ns.max(1) as f64).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min) / 1.2;
    let high = all.iter().copied().fold(1.0, f64::max) * 1.2;
    let rows = Rows {
        groups: TOLD.iter().map(|told| users(report, cache, told)).collect(),
        scale: Scale {
            log: true,
            range: low..high,
            ticks: times_across(low, high),
            format: |ns| tick(&time_ns(ns)),
            label: "a model: filled, what users see behind the cache; hollow, the origin alone",
        },
        band: None,
        rule: None,
    };
    Some(Figure {
        stem: format!("edge-cache-{}", scenario.name),
        title: format!(
            "{}: behind an edge cache, {} hits of {}",
            scenario.name,
            percent(cache.hit_rate),
            time_ns(cache.edge_latency_ns as f64)
        ),
        says: rows.says(),
        height: rows.height(),
        draw: Box::new(move |area: &Area<'_>| rows.draw(area)),
    })
}

fn users(report: &Report, cache: &EdgeCache, (name, seen, origin): &Told) -> Group {
    let time = |ns: u64| time_ns(ns as f64);
    let row = |user: &EdgeUser| Row {
        label: user.contender.clone(),
        aside: format!("{}, origin {}", time(seen(user)), time(origin(user))),
        paint: color_of(report, &user.contender),
        dots: vec![
            Dot { value: origin(user).max(1) as f64, hollow: true },
            Dot::filled(seen(user).max(1) as f64),
        ],
        mark: None,
    };
    Group { title: (*name).to_owned(), rows: cache.users.iter().map(row).collect() }
}
