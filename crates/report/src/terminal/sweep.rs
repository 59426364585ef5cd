//! A sweep: all of its points in one table, the summary for each contender, the findings.
//!
//! Owns: which columns there are. Must not know: how a point's figures are computed.

use deadheat_analysis::{Comparison, ContenderResult, Figure, Ranking, Report, ScenarioResult, SweepResult};
use deadheat_record::Metric;

use super::paragraph::indented;
use super::scenario::{lasted, verdict_of, versus};
use super::table::{self, Column};
use super::{collector, findings};
use crate::style::{Style, Tone};
use crate::sweep::{self, Point};
use crate::text::plain;

pub(super) fn lines(report: &Report, sweep: &SweepResult, style: &Style) -> Vec<String> {
    let points = sweep::points(report, sweep);
    let Some((_, first)) = points.first() else { return Vec::new() };
    let baseline = report.baseline(&first.name);
    let kind = sweep::load_of(sweep, &first.shape);
    let mut lines = indented(
        &format!("{}: {kind}, over {}", plain(&sweep.name), sweep.axis.word()),
        0,
        Tone::Quiet,
        style,
    );
    for ranking in &first.rankings {
        for said in sweep::summaries(report, sweep, &points, ranking.metric, baseline) {
            let many = first.rankings.len() > 1;
            let which = if many { format!("{}: ", ranking.metric.row().column) } else { String::new() };
            lines.extend(indented(&(which + &plain(&said)), 0, Tone::Strong, style));
        }
    }
    for ranking in &first.rankings {
        lines.push(String::new());
        lines.extend(table::lines(columns(report, sweep, &points, ranking.metric, style), 1, 2, style));
    }
    let laws = sweep.fits.iter().map(|fit| plain(&sweep::law(sweep, fit)));
    lines.extend(laws.flat_map(|law| indented(&law, 2, Tone::Quiet, style)));
    let collectors = sweep::collectors(&points);
    if !collectors.is_empty() {
        lines.extend(collector::lines(&collectors, sweep.axis.title(), style));
    }
    let all = sweep::found(sweep, &points);
    if !all.is_empty() {
        lines.push(String::new());
        lines.extend(findings::lines(&all, style));
    }
    lines
}

/// One line of the table.
struct Row<'a> {
    /// Empty except in the first line of a point.
    value: String,
    point: &'a ScenarioResult,
    ranking: &'a Ranking,
    result: &'a ContenderResult,
    /// The contender that the others at the point are compared with.
    baseline: Option<&'a str>,
}

impl Row<'_> {
    fn name(&self) -> &str {
        &self.result.contender
    }

    fn figure(&self) -> Option<&Figure> {
        self.result.figure(self.ranking.metric)
    }

    fn comparison(&self) -> Option<&Comparison> {
        self.point.pair(self.ranking.metric, self.baseline?, self.name())
    }
}

fn columns(
    report: &Report,
    sweep: &SweepResult,
    points: &[Point<'_>],
    metric: Metric,
    style: &Style,
) -> Vec<Column> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for &(value, point) in points {
        let Some(ranking) = point.ranking(metric) else { continue };
        let baseline = report.baseline(&point.name);
        // Plan order, so that each contender keeps its position from point to point.
        for (index, result) in point.results.iter().enumerate() {
            let value = if index == 0 { value.to_string() } else { String::new() };
            rows.push(Row { value, point, ranking, result, baseline });
        }
    }
    let baseline = points.first().and_then(|(_, point)| report.baseline(&point.name)).unwrap_or_default();
    let against = format!("vs {}", crate::text::shorten_end(&plain(baseline), 18, &style.spell("…")));
    let many = rows.iter().any(|row| row.ranking.contenders.len() > 2);
    vec![
        Column::of(&rows, sweep.axis.title(), None, false, |row| row.value.as_str()),
        Column::of(&rows, "contender", None, true, |row| plain(row.name())),
        Column::of(
            &rows,
            "rank",
            Some(6),
            true,
            |row| {
                if many { row.ranking.letters(row.name()) } else { "" }
            },
        ),
        Column::of(&rows, metric.row().column, None, false, |row| {
            row.figure().map(sweep::figure).unwrap_or_default()
        }),
        Column::of(&rows, "95 %", Some(7), false, |row| {
            row.figure().and_then(sweep::within).unwrap_or_default()
        }),
        Column::of(&rows, against, Some(9), true, |row| {
            versus(row.comparison(), row.baseline == Some(row.name()))
        }),
        Column::of(&rows, "verdict", None, true, |row| verdict_of(row.comparison())),
        Column::of(&rows, "epochs", Some(3), true, |row| {
            if row.value.is_empty() { String::new() } else { lasted(report, row.point) }
        }),
    ]
}
