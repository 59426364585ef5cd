//! A sweep: all of its points in one table, what they say of each contender, their findings.
//!
//! Owns which columns there are. Must not know how a point's figures come about.

use deadheat_analysis::{MetricView, ScenarioView, View};
use deadheat_record::{Comparison, Figure, Metric, SweepResult};

use super::scenario::{lasted, title, verdict_cell, versus};
use super::table::{self, Cell, Column};
use super::{collector, findings, indented};
use crate::style::{Style, Tone};
use crate::sweep;
use crate::text::plain;

/// One point: its value and its scenario.
type Point<'a> = (f64, &'a ScenarioView);

pub(super) fn lines(view: &View, sweep: &SweepResult, style: &Style) -> Vec<String> {
    let of = |(value, name): &(f64, String)| {
        Some((*value, view.scenarios.iter().find(|one| one.result.name == *name)?))
    };
    let points: Vec<Point<'_>> = sweep.points.iter().filter_map(of).collect();
    let results: Vec<sweep::Point<'_>> =
        points.iter().map(|(value, point)| (*value, &point.result)).collect();
    let Some((_, first)) = points.first() else { return Vec::new() };
    let kind = sweep::load_of(sweep, &first.result.shape);
    let mut lines = indented(
        &format!("{}: {kind}, over {}", plain(&sweep.name), sweep.axis.word()),
        0,
        Tone::Quiet,
        style,
    );
    for metric in &first.metrics {
        for said in sweep::summaries(sweep, &results, metric.metric, first.baseline.as_deref()) {
            let which =
                if first.metrics.len() > 1 { format!("{}: ", title(metric.metric)) } else { String::new() };
            lines.extend(indented(&(which + &plain(&said)), 0, Tone::Strong, style));
        }
    }
    for metric in &first.metrics {
        lines.push(String::new());
        lines.extend(table::lines(columns(sweep, &points, metric.metric, style), 1, 2, style));
    }
    let laws = sweep.fits.iter().map(|fit| plain(&sweep::law(sweep, fit)));
    lines.extend(laws.flat_map(|law| indented(&law, 2, Tone::Quiet, style)));
    let collectors = sweep::collectors(&results);
    if !collectors.is_empty() {
        lines.extend(collector::lines(&collectors, sweep.axis.word(), style));
    }
    let all = sweep::found(sweep, &results);
    if !all.is_empty() {
        lines.push(String::new());
        lines.extend(findings::lines(&all, style));
    }
    lines
}

/// One line of the table.
struct Row<'a> {
    /// Empty but for the first line of a point.
    value: String,
    point: &'a ScenarioView,
    standing: &'a MetricView,
    index: usize,
}

impl Row<'_> {
    fn name(&self) -> &str {
        &self.point.result.results[self.index].contender
    }

    fn is_baseline(&self) -> bool {
        self.point.baseline.as_deref() == Some(self.name())
    }

    fn figure(&self) -> Option<&Figure> {
        let result = &self.point.result.results[self.index];
        result.figures.iter().find(|one| one.metric == self.standing.metric)
    }

    fn comparison(&self) -> Option<&Comparison> {
        let baseline = self.point.baseline.as_deref()?;
        sweep::pair_of(&self.point.result, self.standing.metric, baseline, self.name())
    }
}

fn columns(sweep: &SweepResult, points: &[Point<'_>], metric: Metric, style: &Style) -> Vec<Column> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for &(value, point) in points {
        let Some(standing) = point.metrics.iter().find(|one| one.metric == metric) else { continue };
        // Plan order: from point to point each contender keeps its place.
        for index in 0..point.result.results.len() {
            let value = if index == 0 { value.to_string() } else { String::new() };
            rows.push(Row { value, point, standing, index });
        }
    }
    let column = |title: &str, keep: Option<u8>, left: bool, cell: &dyn Fn(&Row<'_>) -> Cell| Column {
        group: "",
        title: style.spell(title),
        left,
        keep,
        cells: rows.iter().map(cell).collect(),
    };
    let text = |text: String| Cell { text: style.spell(&text), tone: Tone::Plain };
    let baseline = points.first().and_then(|(_, point)| point.baseline.as_deref()).unwrap_or_default();
    let against = format!("vs {}", crate::text::shorten_end(&plain(baseline), 18, &style.spell("…")));
    let many = rows.iter().any(|row| row.standing.order.len() > 2);
    vec![
        column(sweep.axis.word(), None, false, &|row| text(row.value.clone())),
        column("contender", None, true, &|row| text(plain(row.name()))),
        column("rank", Some(6), true, &|row| {
            text(if many { row.standing.letters[row.index].clone() } else { String::new() })
        }),
        column(title(metric), None, false, &|row| text(row.figure().map(sweep::figure).unwrap_or_default())),
        column("95 %", Some(7), false, &|row| text(row.figure().and_then(sweep::within).unwrap_or_default())),
        column(&against, Some(9), true, &|row| versus(row.comparison(), row.is_baseline())),
        column("verdict", None, true, &|row| verdict_cell(row.comparison())),
        column("epochs", Some(3), true, &|row| {
            text(if row.value.is_empty() { String::new() } else { lasted(row.point) })
        }),
    ]
}
