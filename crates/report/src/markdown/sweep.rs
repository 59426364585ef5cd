//! A sweep in Markdown: all of its points in one table for each metric, as on the terminal.
//!
//! Owns: its columns. Must not know: how a point's figures are computed.

use deadheat_analysis::number::quotient;
use deadheat_analysis::{Comparison, Report, SweepResult};
use deadheat_record::Metric;

use super::{collectors, findings, lasted, said, shown, table};
use crate::comparison::{code, text};
use crate::sweep::{self, Point};

pub(super) fn section(report: &Report, sweep: &SweepResult) -> String {
    let points = sweep::points(report, sweep);
    let Some((_, first)) = points.first() else { return String::new() };
    let base = report.baseline(&first.name);
    let load = text(&sweep::load_of(sweep, &first.shape));
    let mut out = format!("\n### {}\n\n{load}, over {}\n", code(&sweep.name), sweep.axis.word());
    for ranking in &first.rankings {
        let many = first.rankings.len() > 1;
        let which = if many { format!("{}: ", ranking.metric.row().column) } else { String::new() };
        for said in sweep::summaries(report, sweep, &points, ranking.metric, base) {
            out += &format!("\n**{which}{}**\n", text(&said));
        }
    }
    for ranking in &first.rankings {
        out += &compared(report, sweep, &points, ranking.metric, base);
    }
    if !sweep.fits.is_empty() {
        out += "\n";
        sweep.fits.iter().for_each(|fit| out += &format!("- {}\n", text(&sweep::law(sweep, fit))));
    }
    let seen = sweep::collectors(&points);
    out + &collectors(&seen, sweep.axis.title()) + &findings(&sweep::found(sweep, &points))
}

/// Every contender at every point, in one metric. Only the first contender of a point shows the point's value.
fn compared(
    report: &Report,
    sweep: &SweepResult,
    points: &[Point<'_>],
    metric: Metric,
    base: Option<&str>,
) -> String {
    let lettered = points.iter().any(|(_, point)| point.results.len() > 2);
    let against: String = base.map_or_else(|| "ratio".into(), |base| format!("vs {}", code(base)));
    let ratio = |one: &Comparison| Some(quotient(one.ratio?, one.low, one.high));
    let mut rows = Vec::new();
    for (value, point) in points {
        // The title of the column says what a mere number counts.
        let lasted = lasted(report, point);
        let epochs = lasted.strip_suffix(" epochs").unwrap_or(&lasted);
        for (at, result) in point.results.iter().enumerate() {
            let name = result.contender.as_str();
            let figure = result.figure(metric);
            let pair = base.and_then(|base| point.pair(metric, base, name));
            let is_base = base == Some(name);
            let first = |text: String| if at == 0 { text } else { String::new() };
            let mut row = vec![first(value.to_string()), code(name)];
            row.extend(
                lettered.then(|| point.ranking(metric).map_or("", |one| one.letters(name)).to_owned()),
            );
            row.extend([
                shown(figure.map(sweep::figure)),
                shown(figure.and_then(sweep::within)),
                if is_base { "baseline".into() } else { shown(pair.and_then(ratio)) },
                if is_base { String::new() } else { shown(pair.map(said)) },
                first(epochs.to_owned()),
            ]);
            rows.push(row);
        }
    }
    let rank = lettered.then_some("rank");
    let titles = [sweep.axis.title(), "contender"].into_iter().chain(rank);
    let titles: Vec<&str> =
        titles.chain([metric.row().column, "95 %", against.as_str(), "verdict", "epochs"]).collect();
    let rules = format!("--:|---{}|--:|--:|---|---|--:", if lettered { "|---" } else { "" });
    table(&titles, &rules, rows)
}
