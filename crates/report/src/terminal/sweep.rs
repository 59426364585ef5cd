//! A sweep: all of its points in one table, what they say of each contender, their findings.
//!
//! Owns which columns there are. Must not know how a point's figures come about.

use deadheat_record::{Comparison, Figure, Finding, Fit, Metric, Shape, SweepResult, VerdictWord};

use super::scenario::{lasted, load, title, verdict, verdict_cell, versus};
use super::table::{self, Cell, Column};
use super::{findings, indented};
use crate::number::{percent, three_digits, time_ns};
use crate::style::{Style, Tone};
use crate::text::plain;
use crate::{MetricView, ScenarioView, View};

/// One point: its value and its scenario.
type Point<'a> = (f64, &'a ScenarioView);

pub(super) fn lines(view: &View, sweep: &SweepResult, style: &Style) -> Vec<String> {
    let of = |(value, name): &(f64, String)| {
        Some((*value, view.scenarios.iter().find(|one| one.result.name == *name)?))
    };
    let points: Vec<Point<'_>> = sweep.points.iter().filter_map(of).collect();
    let Some((_, first)) = points.first() else { return Vec::new() };
    let kind = load_without(&first.result.shape);
    let mut lines = indented(
        &format!("{}: {kind}, over {}", plain(&sweep.name), sweep.axis.word()),
        0,
        Tone::Quiet,
        style,
    );
    for metric in &first.metrics {
        for said in summaries(sweep, &points, metric.metric) {
            let which =
                if first.metrics.len() > 1 { format!("{}: ", title(metric.metric)) } else { String::new() };
            lines.extend(indented(&(which + &plain(&said)), 0, Tone::Strong, style));
        }
    }
    for metric in &first.metrics {
        lines.push(String::new());
        lines.extend(table::lines(columns(sweep, &points, metric.metric, style), 1, 2, style));
    }
    let laws = sweep.fits.iter().flat_map(|fit| indented(&law(sweep, fit), 2, Tone::Quiet, style));
    lines.extend(laws);
    let all = found(sweep, &points);
    if !all.is_empty() {
        lines.push(String::new());
        lines.extend(findings::lines(&all, style));
    }
    lines
}

/// The load of all points: the number of connections is theirs.
fn load_without(shape: &Shape) -> String {
    match shape {
        Shape::Closed { .. } => "closed".into(),
        other => load(other).replace(&format!(", {} connections", other.connections()), ""),
    }
}

/// What is said of each pair that is compared: `bun against node: faster at 1, 8; inconclusive at 64`.
fn summaries(sweep: &SweepResult, points: &[Point<'_>], metric: Metric) -> Vec<String> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let compared = points.iter().flat_map(|(_, point)| &point.result.comparisons);
    for one in compared.filter(|one| one.metric == metric) {
        let pair = (one.baseline.as_str(), one.contender.as_str());
        let baseline = points.first().and_then(|(_, point)| point.baseline.as_deref());
        if baseline == Some(pair.0) && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let verdicts = [
        VerdictWord::Faster,
        VerdictWord::Slower,
        VerdictWord::Equivalent,
        VerdictWord::Inconclusive,
        VerdictWord::Invalid,
    ];
    let said = |(baseline, contender): (&str, &str)| {
        let at = |wanted: &VerdictWord| {
            let has = |(value, point): &Point<'_>| {
                let one = pair_of(point, metric, baseline, contender)?;
                (one.verdict == *wanted).then(|| value.to_string())
            };
            let values: Vec<String> = points.iter().filter_map(has).collect();
            (!values.is_empty()).then(|| format!("{} at {}", verdict(*wanted).0, values.join(", ")))
        };
        let parts: Vec<String> = verdicts.iter().filter_map(at).collect();
        format!("{contender} against {baseline}: {} {}", parts.join("; "), sweep.axis.word())
    };
    pairs.into_iter().map(said).collect()
}

fn pair_of<'a>(
    point: &'a ScenarioView,
    metric: Metric,
    baseline: &str,
    contender: &str,
) -> Option<&'a Comparison> {
    let of_pair =
        |one: &&Comparison| one.metric == metric && one.baseline == baseline && one.contender == contender;
    point.result.comparisons.iter().find(of_pair)
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
        pair_of(self.point, self.standing.metric, self.point.baseline.as_deref()?, self.name())
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
        column(title(metric), None, false, &|row| {
            text(row.figure().map(|one| shown(metric, one.value)).unwrap_or_default())
        }),
        column("95 %", Some(7), false, &|row| text(row.figure().and_then(within).unwrap_or_default())),
        column(&against, Some(9), true, &|row| versus(row.comparison(), row.is_baseline())),
        column("verdict", None, true, &|row| verdict_cell(row.comparison())),
        column("epochs", Some(3), true, &|row| {
            text(if row.value.is_empty() { String::new() } else { lasted(row.point) })
        }),
    ]
}

/// The interval's half width on the log scale: `± 1.2 %`.
fn within(figure: &Figure) -> Option<String> {
    let (low, high) = (figure.low?, figure.high?);
    Some(format!("± {}", percent((high / low).sqrt() - 1.0)))
}

fn shown(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Throughput | Metric::Peak => three_digits(value),
        Metric::Cpu => time_ns(value * 1e3),
        Metric::P50 | Metric::P99 | Metric::ColdStart | Metric::Measure => time_ns(value),
    }
}

fn law(sweep: &SweepResult, fit: &Fit) -> String {
    let peak = match fit.peak_at {
        Some(at) => format!("highest at {} {}", three_digits(at), sweep.axis.word()),
        None => "no highest point".into(),
    };
    format!(
        "{}: a scalability law fitted: contention {}, coherency {}, {peak} (no verdict)",
        plain(&fit.contender),
        percent(fit.sigma),
        percent(fit.kappa)
    )
}

/// The findings of all points; one that several share is said once, with their values.
fn found(sweep: &SweepResult, points: &[Point<'_>]) -> Vec<Finding> {
    let mut all: Vec<(Finding, Vec<String>)> = Vec::new();
    for (value, point) in points {
        for finding in &point.result.findings {
            match all.iter_mut().find(|(one, _)| one == finding) {
                Some((_, values)) => values.push(value.to_string()),
                None => all.push((finding.clone(), vec![value.to_string()])),
            }
        }
    }
    let said = |(mut finding, values): (Finding, Vec<String>)| {
        if values.len() < points.len() {
            finding.message += &format!(" (at {} {})", values.join(", "), sweep.axis.word());
        }
        finding
    };
    let mut findings: Vec<Finding> = all.into_iter().map(said).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
