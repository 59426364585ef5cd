//! Throughput over time: every slice of every round, with starts and warm-ups between them. Also the pilot's warm-up.
//!
//! Owns: the position of epochs on the time axis. Must not know: what is derived from rates.

use deadheat_analysis::ScenarioResult;
use deadheat_analysis::number::{three_digits, time_ns};
use deadheat_record::{Epoch, Pilot};

use super::axis::tick;
use super::model::{
    Axis, Cell, Color, Dots, Drawing, Figure, Line, More, Panel, Plot, Point, Section, Stroke, Table,
};
use super::{Scope, Set};

pub(super) const S: f64 = 1e9;

fn per_s(rate: f64) -> String {
    format!("{}/s", three_digits(rate))
}

pub(super) fn seconds(at: f64) -> String {
    format!("{} s", tick(&three_digits(at)))
}

fn rates<'l>(lines: impl IntoIterator<Item = &'l Line>, most: f64) -> Axis {
    let rates = lines.into_iter().flat_map(|line| line.points.iter().map(|point| point.y));
    Axis::from_zero(rates, (1.0, most), "requests per second", three_digits)
}

/// Every slice of each scenario.
pub(super) fn slices(scope: &Scope<'_>) -> Vec<Figure> {
    let sets = scope.each(|scenario| scope.report.record.epochs_of(&scenario.name).count());
    sets.iter().filter_map(|set| timeline(scope, set)).collect()
}

fn timeline(scope: &Scope<'_>, set: &Set<'_>) -> Option<Figure> {
    let scenario = set.scenarios[0];
    let (mut end_s, mut shaded) = (0.0, Vec::new());
    let mut lines: Vec<(usize, Line)> = Vec::new();
    for epoch in scope.report.record.epochs_of(&scenario.name) {
        let slices = epoch.rounds.iter().flat_map(|round| &round.slices);
        let load_ns = slices.map(|slice| slice.start_ns).min().unwrap_or(epoch.took_ns);
        shaded.push((end_s, end_s + load_ns as f64 / S));
        for (place, name) in scope.contenders(|_, _| true) {
            let points = points(epoch, place, end_s);
            let name = format!("{name}, epoch {}", epoch.number);
            let (color, stroke, dots) = (Color::Series(place), Stroke::Faint, Dots::Fine);
            lines.push((place, Line { name, color, stroke, dots, points }));
        }
        end_s += epoch.took_ns as f64 / S;
    }
    let panels = scope.panels(lines, &shaded);
    let all = || panels.iter().flat_map(|panel| &panel.lines);
    let left_out = all().flat_map(|line| &line.points).any(|one| matches!(one.more, More::LeftOut));
    let crosses =
        if left_out { " Crosses: rounds that were left out, because the machine was disturbed." } else { "" };
    let x = Axis::from_zero([end_s / 1.06], (1.0, 9.0), "time in epochs", seconds);
    let y = rates(all(), 3.0);
    let note = format!(
        "One dot for each slice; higher is faster. Shaded: starts and warm-up, which do not count.{crosses}"
    );
    let title = set.title("Rate of every slice");
    (!panels.is_empty()).then(|| Figure {
        note,
        says: panels.iter().map(|panel| says(scenario, panel)).collect(),
        ..Figure::new(
            ("time", Section::Time),
            &scenario.name,
            title,
            Drawing::Plot(Plot { x, y, panels }),
            means(scenario),
        )
    })
}

fn says(scenario: &ScenarioResult, panel: &Panel) -> String {
    let name = panel.title.as_deref().unwrap_or_default();
    let slices = panel.lines.iter().map(|line| line.points.len()).sum::<usize>();
    let rate = scenario.result(name).and_then(|one| one.throughput_rps).map(three_digits);
    let mean = rate.map_or_else(String::new, |rate| format!(", {rate} requests per second in the mean"));
    format!("{name}: {slices} slices{mean}")
}

/// A contender's slices of an epoch that starts at `from_s`, in time order.
fn points(epoch: &Epoch, contender: usize, from_s: f64) -> Vec<Point> {
    let rounds = epoch.rounds.iter().enumerate();
    let of_round = rounds.flat_map(|(at, round)| {
        let own = round.slices.iter().filter(|slice| slice.contender == contender);
        own.filter_map(move |slice| {
            let (rate, dropped) = (slice.rate_per_s?, round.dropped.is_some());
            let middle_ns = slice.start_ns as f64 + slice.elapsed_ns as f64 / 2.0;
            let out = if dropped { ", left out" } else { "" };
            let said = format!("round {}: {}{out}", at + 1, per_s(rate));
            let more = if dropped { More::LeftOut } else { More::Nothing };
            Some(Point { more, ..Point::new(from_s + middle_ns / S, rate, said) })
        })
    });
    of_round.collect()
}

fn means(scenario: &ScenarioResult) -> Table {
    let rows = scenario.results.iter().flat_map(|one| {
        one.epochs.iter().map(|epoch| {
            let rate = Cell::number(epoch.throughput_rps, three_digits);
            vec![Cell::text(&one.contender), Cell::count(epoch.epoch), rate]
        })
    });
    let caption = format!("{}: mean rate of each epoch's slices that count", scenario.name);
    Table::new(caption, &["contender", "#epoch", "#requests/s"], rows)
}

/// The rates of each pilot's windows, and the warm-up that the pilot found.
pub(super) fn warm_up(scope: &Scope<'_>) -> Vec<Figure> {
    let loaded = |pilot: &&Pilot| pilot.contenders.iter().any(|one| one.window_rates_per_s.len() > 1);
    scope.report.record.pilots.iter().filter(loaded).map(|pilot| of_pilot(scope, pilot)).collect()
}

fn of_pilot(scope: &Scope<'_>, pilot: &Pilot) -> Figure {
    let window_s = pilot.window_ns as f64 / S;
    let line = |one: &deadheat_record::PilotContender| {
        let point = |(at, rate): (usize, &f64)| {
            let at_s = (at as f64 + 0.5) * window_s;
            let said = format!("{}: {}", time_ns(at_s * S), per_s(*rate));
            Point::new(at_s, *rate, said)
        };
        let (name, color) = (one.contender.clone(), scope.color(&one.contender));
        let points = one.window_rates_per_s.iter().enumerate().map(point).collect();
        Line { name, color, stroke: Stroke::Bold, dots: Dots::Each, points }
    };
    let lines: Vec<Line> = pilot.contenders.iter().map(line).filter(|line| !line.points.is_empty()).collect();
    let windows = lines.iter().map(|line| line.points.len()).max().unwrap_or(1);
    let end_s = windows as f64 * window_s;
    let warm_up = time_ns(pilot.warmup_ns as f64);
    let caption =
        format!("{}: rates in the pilot, in windows of {}", pilot.scenario, time_ns(pilot.window_ns as f64));
    let table = Table::of_record(caption, &["contender", "#from, s", "#requests/s"]);
    let x = Axis {
        domain: (0.0, end_s),
        ..Axis::from_zero([end_s / 1.06], (1.0, 9.0), "time under load", seconds)
    };
    let y = rates(&lines, 5.0);
    let note = format!(
        "Shaded: the {warm_up} for which every contender is loaded before an epoch counts. After it, lines should be level."
    );
    let legend = scope.legend(lines.iter().map(|line| line.name.as_str()));
    let says = vec![format!("every contender is loaded for {warm_up} before an epoch counts")];
    let shaded = vec![(0.0, (pilot.warmup_ns as f64 / S).min(end_s))];
    let drawing = Drawing::Plot(Plot { x, y, panels: vec![Panel { title: None, shaded, lines }] });
    let title = scope.title(&pilot.scenario, "Warm-up, as the pilot found it");
    Figure {
        note,
        legend,
        says,
        ..Figure::new(("warm-up", Section::Time), &pilot.scenario, title, drawing, table)
    }
}
