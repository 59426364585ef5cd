//! A sweep: the rate over the varied setting, with intervals, and the law that was fitted to it.
//!
//! Owns: this figure. Must not know: how rates and laws are computed.

use deadheat_analysis::number::{exact, interval_of, three_digits};
use deadheat_analysis::{Fit, SweepResult};
use deadheat_record::Unit;

use super::Scope;
use super::axis::labelled;
use super::model::{
    Axis, Cell, Dots, Drawing, Figure, Line, More, Panel, Plot, Point, Section, Stroke, Table,
};

/// A contender's rate at one point.
struct At<'r> {
    name: &'r str,
    n: f64,
    rate: f64,
    ends: Option<(f64, f64)>,
}

impl At<'_> {
    /// Its description, which follows the contender's name.
    fn said(&self) -> String {
        let ends = self.ends.map_or_else(String::new, |(low, high)| format!(", {}", interval_of(low, high)));
        format!("at {}: {}/s{ends}", exact(self.n), three_digits(self.rate))
    }
}

/// The rates of each sweep.
pub(super) fn rates(scope: &Scope<'_>) -> Vec<Figure> {
    scope.report.sweeps.iter().filter_map(|sweep| figure(scope, sweep)).collect()
}

fn points<'r>(scope: &Scope<'r>, sweep: &SweepResult) -> Vec<At<'r>> {
    let mut points = Vec::new();
    for (n, name) in &sweep.points {
        let scenario = scope.report.scenario(name).filter(|one| one.epochs > 0);
        for result in scenario.into_iter().flat_map(|one| &one.results) {
            if let Some(figure) = result.figures.iter().find(|one| one.metric.row().unit == Unit::Rate) {
                let ends = figure.low.zip(figure.high);
                points.push(At { name: &result.contender, n: *n, rate: figure.value, ends });
            }
        }
    }
    points
}

fn figure(scope: &Scope<'_>, sweep: &SweepResult) -> Option<Figure> {
    let all = points(scope, sweep);
    let mut values: Vec<f64> = all.iter().map(|one| one.n).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let (first, last) = values.first().zip(values.last())?;
    let domain = (first / 1.15, last * 1.15);
    let curves = || sweep.fits.iter().flat_map(|fit| &fit.curve);
    let highest = all.iter().map(|one| one.ends.map_or(one.rate, |(_, high)| high));
    let y = Axis::from_zero(
        highest.chain(curves().map(|(_, rate)| *rate)),
        (1.0, 5.0),
        "requests per second",
        three_digits,
    );
    let names = scope.contenders(|_, name| all.iter().any(|one| one.name == name));
    let law = |fit: &Fit| {
        let points = fit.curve.iter().map(|(x, y)| Point::new(*x, *y, String::new())).collect();
        let (name, color) = (String::new(), scope.color(&fit.contender));
        Line { name, color, stroke: Stroke::Dashed, dots: Dots::None, points }
    };
    let measured = |(_, name): &(usize, &str)| {
        let point = |one: &At<'_>| {
            let more = one.ends.map_or(More::Nothing, |(low, high)| More::Ends(low, high));
            Point { more, ..Point::new(one.n, one.rate, one.said()) }
        };
        let points = all.iter().filter(|one| one.name == *name).map(point).collect();
        let (name, color) = ((*name).to_owned(), scope.color(name));
        Line { name, color, stroke: Stroke::None, dots: Dots::Each, points }
    };
    let title = format!("{}: rate over {}", sweep.name, sweep.axis.word());
    let word = sweep.axis.title();
    let column = format!("#{word}");
    let columns = ["contender", &column, "#requests/s", "#low", "#high"];
    let cells = |one: &At<'_>| {
        let ends = [Some(one.rate), one.ends.map(|(low, _)| low), one.ends.map(|(_, high)| high)];
        let rates = ends.map(|rate| Cell::number(rate, three_digits));
        [Cell::text(one.name), Cell::number(Some(one.n), exact)].into_iter().chain(rates).collect()
    };
    let lines = sweep.fits.iter().map(law).chain(names.iter().map(measured)).collect();
    let x = Axis { label: word.into(), log: true, domain, ticks: labelled(values, exact) };
    let drawing =
        Drawing::Plot(Plot { x, y, panels: vec![Panel { title: None, shaded: Vec::new(), lines }] });
    let caption = format!("{}: rates over {word}", sweep.name);
    let table = Table::new(caption, &columns, all.iter().map(cells));
    Some(Figure {
        note: note(sweep),
        legend: scope.legend(names.iter().map(|(_, name)| *name)),
        says: all.iter().map(|one| format!("{}, {}", one.name, one.said())).collect(),
        ..Figure::new(("scaling", Section::Scaling), &sweep.name, title, drawing, table)
    })
}

fn note(sweep: &SweepResult) -> String {
    let law = |fit: &Fit| {
        let highest =
            fit.peak_at.map_or_else(String::new, |at| format!(", highest near {}", three_digits(at)));
        let share = fit.r2.map_or_else(String::new, |r2| format!(", r² {r2:.3}"));
        format!(
            "{}: contention {}, coherency {}{highest}{share}",
            fit.contender,
            three_digits(fit.sigma),
            three_digits(fit.kappa)
        )
    };
    let laws: Vec<String> = sweep.fits.iter().map(law).collect();
    let dashed = if laws.is_empty() {
        String::new()
    } else {
        format!(" Dashed: a scalability law, which decides nothing. {}.", laws.join("; "))
    };
    format!("Dots: rates, with their 95 % intervals; higher is faster.{dashed}")
}
