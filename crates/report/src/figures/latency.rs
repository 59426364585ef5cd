//! Latency by percentile, on an axis of nines: the tail has as much room as the rest.
//!
//! Owns: this axis. Must not know: where latencies come from.

use deadheat_analysis::ContenderResult;
use deadheat_analysis::number::{quantile, time_ns};

use super::model::{
    Axis, Cell, Color, Dots, Drawing, Figure, Line, More, Panel, Plot, Point, Section, Stroke, Table,
};
use super::{Scope, Set};

/// Quantiles that have a dot and a column.
const NAMED: [f64; 8] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];
const COLUMNS: [&str; 10] =
    ["contender", "#p50", "#p75", "#p90", "#p95", "#p99", "#p99.9", "#p99.99", "#p99.999", "#max"];
const TICKS: [(f64, &str); 10] = [
    (0.0, "0 %"),
    (0.5, "50 %"),
    (0.9, "90 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
    (0.9999, "99.99 %"),
    (0.99999, "99.999 %"),
    (0.999_999, "99.9999 %"),
    (0.999_999_9, "99.99999 %"),
    (0.999_999_99, "99.999999 %"),
];

pub(super) const LABEL: &str = "share of requests answered within the time";

/// Pairs of a share of requests and the nanoseconds within which they were answered.
pub(super) type Curve = Vec<(f64, f64)>;

/// Position on the axis of nines: each nine is one step.
pub(super) fn nines(at: f64) -> f64 {
    -(1.0 - at).log10()
}

fn named(at: f64) -> bool {
    NAMED.iter().any(|one| (one - at).abs() < 1e-9)
}

fn has(one: &ContenderResult) -> bool {
    one.latency_curve.len() > 1
}

pub(super) fn curve(one: &ContenderResult) -> Curve {
    one.latency_curve.iter().map(|(at, ns)| (*at, *ns as f64)).collect()
}

/// The curves of each scenario.
pub(super) fn by_percentile(scope: &Scope<'_>) -> Vec<Figure> {
    let sets = scope.each(|scenario| scenario.results.iter().filter(|one| has(one)).count());
    sets.iter().map(|set| figure(scope, set)).collect()
}

fn figure(scope: &Scope<'_>, set: &Set<'_>) -> Figure {
    let scenario = set.scenarios[0];
    let curves: Vec<(&ContenderResult, Curve)> =
        scenario.results.iter().filter(|one| has(one)).map(|one| (one, curve(one))).collect();
    let drawn =
        curves.iter().map(|(one, curve)| (one.contender.as_str(), scope.color(&one.contender), curve));
    let saturated = if scenario.shape.is_closed() {
        " Closed load: each connection waits for its answer, so that these are latencies at saturation, not those of a user."
    } else {
        ""
    };
    let cells = |one: &ContenderResult| {
        let at = |wanted: &f64| one.latency_curve.iter().find(|(at, _)| (at - wanted).abs() < 1e-9);
        let quantiles = NAMED.iter().map(|wanted| at(wanted).map(|(_, ns)| *ns as f64));
        let times = quantiles.chain([one.latency_ns.max.map(|ns| ns as f64)]);
        let times = times.map(|ns| Cell::number(ns, time_ns));
        [Cell::text(&one.contender)].into_iter().chain(times).collect()
    };
    Figure {
        note: format!("Lower curves are faster; the slowest requests are at the right.{saturated}"),
        legend: scope.legend(curves.iter().map(|(one, _)| one.contender.as_str())),
        says: curves.iter().map(|(one, _)| says(one)).collect(),
        ..Figure::new(
            ("latency", Section::Latency),
            scenario.name.clone(),
            set.title("Latency by percentile"),
            Drawing::Plot(plot(drawn.collect(), None, LABEL)),
            Table::new(
                format!("{}: latency by percentile", scenario.name),
                &COLUMNS,
                scenario.results.iter().map(cells),
            ),
        )
    }
}

pub(super) fn says(one: &ContenderResult) -> String {
    let latency = &one.latency_ns;
    let named = [("p50", latency.p50), ("p99", latency.p99)];
    let known = named.iter().filter_map(|(name, ns)| Some(format!("{name} {}", time_ns((*ns)? as f64))));
    format!("{}: {}", one.contender, known.collect::<Vec<_>>().join(", "))
}

/// Curves on an axis of nines. This axis has ticks beyond its end, because readers can move it. The other axis also has room for the time `also`.
pub(super) fn plot(curves: Vec<(&str, Color, &Curve)>, also: Option<f64>, label: &str) -> Plot {
    let all = || curves.iter().flat_map(|(_, _, curve)| curve.iter());
    let last = all().map(|(at, _)| nines(*at)).fold(1.0, f64::max) * 1.02;
    let ticks = TICKS.iter().map(|(at, label)| (nines(*at), (*label).to_owned())).collect();
    let y = Axis::of_times(all().map(|(_, ns)| ns.max(1.0)).chain(also), 1.08, "");
    let line = |(name, color, curve): &(&str, Color, &Curve)| {
        let point = |(at, ns): &(f64, f64)| Point {
            x: nines(*at),
            y: ns.max(1.0),
            said: format!("{}: {}", quantile(*at), time_ns(*ns)),
            more: More::Nothing,
        };
        let dots = curve.iter().enumerate().filter(|(_, (at, _))| named(*at)).map(|(place, _)| place);
        Line {
            name: (*name).to_owned(),
            color: *color,
            stroke: Stroke::Bold,
            dots: Dots::At(dots.collect()),
            points: curve.iter().map(point).collect(),
        }
    };
    Plot {
        x: Axis { label: label.to_owned(), log: false, domain: (0.0, last), ticks },
        y,
        panels: vec![Panel { title: None, shaded: Vec::new(), lines: curves.iter().map(line).collect() }],
    }
}
