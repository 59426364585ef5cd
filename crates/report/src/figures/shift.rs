//! Two contenders' latencies at the same share of requests: their ratio, and one against the other.
//!
//! Owns: these two figures. Must not know: how ratios are derived.

use deadheat_analysis::number::{interval, quantile, ratio, time_ns};
use deadheat_analysis::{ContenderResult, LatencyShift, ScenarioResult, ShiftPoint};

use super::axis::{ends, labelled, ratio_ticks};
use super::latency::{LABEL, curve};
use super::model::{
    Axis, Cell, Color, Dots, Drawing, Figure, Line, More, Panel, Plot, Point, Section, Stroke, Table,
};
use super::{Scope, Set};

/// The ratio at each share of requests, with its interval.
pub(super) fn ratios(scope: &Scope<'_>) -> Vec<Figure> {
    let sets = scope.each(|scenario| scenario.latency_shifts.len());
    sets.iter().map(|set| of_ratios(scope, set)).collect()
}

fn of_ratios(scope: &Scope<'_>, set: &Set<'_>) -> Figure {
    let scenario = set.scenarios[0];
    let shifts = &scenario.latency_shifts;
    let mut shares: Vec<f64> = shifts.iter().flat_map(|one| &one.points).map(|point| point.share).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let place = |share: f64| shares.iter().position(|one| *one == share).unwrap_or(0) as f64;
    let last = shares.len().saturating_sub(1) as f64;
    let all = shifts.iter().flat_map(|one| &one.points);
    let known = all.flat_map(|point| [Some(point.ratio), point.low, point.high]).flatten();
    // A single interval without bounds worth showing must not squeeze all others.
    let (low, high) =
        ends(known.map(|ratio| ratio.clamp(0.1, 10.0)).chain([0.95, 1.05])).unwrap_or((0.9, 1.1));
    let room = (high / low).powf(0.06);
    let domain = (low / room, high * room);
    let line = |one: &LatencyShift| Line {
        name: pair(one),
        color: scope.color(&one.contender),
        stroke: Stroke::Bold,
        dots: Dots::Each,
        points: one.points.iter().map(|point| shown(place(point.share), point, domain)).collect(),
    };
    let y = Axis {
        label: "ratio, lower is better".into(),
        log: true,
        domain,
        ticks: labelled(ratio_ticks(domain.0, domain.1), |one| ratio(one, 2)),
    };
    let ticks = shares.iter().map(|share| (place(*share), quantile(*share))).collect();
    let x = Axis { label: LABEL.into(), log: false, domain: (-0.3, last + 0.3), ticks };
    let mut lines = vec![level((-0.3, 1.0), (last + 0.3, 1.0))];
    lines.extend(shifts.iter().map(line));
    let cells = |one: &LatencyShift| {
        let row = |point: &ShiftPoint| {
            let number = |value| Cell::number(value, |value| ratio(value, 3));
            let ratios = [Some(point.ratio), point.low, point.high].map(number);
            [Cell::text(pair(one)), Cell::text(quantile(point.share))].into_iter().chain(ratios).collect()
        };
        one.points.iter().map(row).collect::<Vec<Vec<Cell>>>()
    };
    Figure {
        note: "Contender divided by baseline at each share of requests; below 1 the contender is faster. Each bar is a 95 % interval for \
               its own share. It shows where a difference lies; verdicts are elsewhere."
            .into(),
        legend: scope.legend(shifts.iter().map(|one| one.contender.as_str())),
        says: shifts.iter().map(says).collect(),
        ..Figure::new(
            ("latency-ratio", Section::Latency),
            scenario.name.clone(),
            set.title("Latency ratio by percentile"),
            Drawing::Plot(Plot { x, y, panels: vec![Panel { title: None, shaded: Vec::new(), lines }] }),
            Table::new(
                format!("{}: latency ratio by percentile", scenario.name),
                &["pair", "share", "#ratio", "#low", "#high"],
                shifts.iter().flat_map(cells),
            ),
        )
    }
}

fn pair(one: &LatencyShift) -> String {
    format!("{} / {}", one.contender, one.baseline)
}

fn shown(x: f64, point: &ShiftPoint, domain: (f64, f64)) -> Point {
    // Cut off an interval that exceeds the axis at its edge.
    let within = |ratio: f64| ratio.clamp(domain.0, domain.1);
    let ends = point.low.zip(point.high).map(|(low, high)| (within(low), within(high)));
    let of = interval(point.low, point.high);
    let said = format!("{}: {} ({of})", quantile(point.share), ratio(point.ratio, 3));
    let more = ends.map_or(More::Nothing, |(low, high)| More::Ends(low, high));
    Point { more, ..Point::new(x, within(point.ratio), said) }
}

/// A faint line between two points: where both sides are equal.
fn level((x, y): (f64, f64), (to_x, to_y): (f64, f64)) -> Line {
    let points = [(x, y), (to_x, to_y)].map(|(x, y)| Point::new(x, y, String::new()));
    Line {
        name: String::new(),
        color: Color::Neutral,
        stroke: Stroke::Faint,
        dots: Dots::None,
        points: points.into(),
    }
}

fn says(one: &LatencyShift) -> String {
    let at = |share: f64| one.points.iter().find(|point| point.share == share);
    let named = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")];
    let known =
        named.iter().filter_map(|(share, name)| Some(format!("{name} {}", ratio(at(*share)?.ratio, 2))));
    format!("{}: {}", pair(one), known.collect::<Vec<_>>().join(", "))
}

/// The contender's latency over the baseline's at the same share of requests (a quantile-quantile plot).
pub(super) fn against_each_other(scope: &Scope<'_>) -> Vec<Figure> {
    let sets = scope.each(|scenario| compared(scenario).len());
    sets.iter().filter_map(|set| of_both(scope, set)).collect()
}

/// The baseline's and the contender's results of every pair.
fn compared(scenario: &ScenarioResult) -> Vec<(&ContenderResult, &ContenderResult)> {
    let find = |name: &str| {
        let found = scenario.results.iter().find(|one| one.contender == name);
        found.filter(|one| one.latency_curve.len() > 1)
    };
    let shifts = scenario.latency_shifts.iter();
    shifts.filter_map(|one| Some((find(&one.baseline)?, find(&one.contender)?))).collect()
}

fn of_both(scope: &Scope<'_>, set: &Set<'_>) -> Option<Figure> {
    let scenario = set.scenarios[0];
    let pairs = compared(scenario);
    let baseline = &pairs.first()?.0.contender;
    let both = |(base, own): &(&ContenderResult, &ContenderResult)| -> Vec<(f64, f64, f64)> {
        let (base, own) = (curve(base), curve(own));
        let same = |at: f64| base.iter().find(|(one, _)| (one - at).abs() < 1e-9).map(|(_, ns)| *ns);
        own.iter().filter_map(|(at, ns)| Some((*at, same(*at)?.max(1.0), ns.max(1.0)))).collect()
    };
    let line = |pair: &(&ContenderResult, &ContenderResult)| {
        let point = |(at, x, y): &(f64, f64, f64)| {
            let said = format!(
                "{}: {baseline} {}, {} {}",
                quantile(*at),
                time_ns(*x),
                pair.1.contender,
                time_ns(*y)
            );
            Point::new(*x, *y, said)
        };
        Line {
            name: pair.1.contender.clone(),
            color: scope.color(&pair.1.contender),
            stroke: Stroke::Bold,
            dots: Dots::Fine,
            points: both(pair).iter().map(point).collect(),
        }
    };
    let lines: Vec<Line> = pairs.iter().map(line).collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let (low, high) = ends(points().flat_map(|point| [point.x, point.y]))?;
    let x = Axis::of_times(points().map(|point| point.x), 1.08, "latency of the baseline");
    let y = Axis::of_times(points().map(|point| point.y), 1.08, "");
    let from = low.max(x.domain.0).max(y.domain.0);
    let to = high.min(x.domain.1).min(y.domain.1);
    let equal = (from < to).then(|| level((from, from), (to, to)));
    let legend = scope.legend(pairs.iter().map(|(_, own)| own.contender.as_str()));
    let says = scenario.latency_shifts.iter().map(says).collect();
    let columns = ["pair", "share", "#baseline", "#contender"];
    let cells = |pair: &(&ContenderResult, &ContenderResult)| {
        let name = format!("{} / {baseline}", pair.1.contender);
        let row = |(at, x, y): (f64, f64, f64)| {
            let times = [x, y].map(|ns| Cell::number(Some(ns), time_ns));
            [Cell::text(&name), Cell::text(quantile(at))].into_iter().chain(times).collect()
        };
        both(pair).into_iter().map(row).collect::<Vec<Vec<Cell>>>()
    };
    let table = Table::new(
        format!("{}: latencies at the same share of requests", scenario.name),
        &columns,
        pairs.iter().flat_map(cells),
    );
    let lines = equal.into_iter().chain(lines).collect();
    let drawing =
        Drawing::Plot(Plot { x, y, panels: vec![Panel { title: None, shaded: Vec::new(), lines }] });
    let note = format!(
        "Each dot is one share of requests, the slowest at the top right. On the faint line both are equal; below it the contender is faster \
         than {baseline}."
    );
    Some(Figure {
        note,
        legend,
        says,
        ..Figure::new(
            ("latency-pairs", Section::Latency),
            scenario.name.clone(),
            set.title(&format!("Latency against {baseline}")),
            drawing,
            table,
        )
    })
}
