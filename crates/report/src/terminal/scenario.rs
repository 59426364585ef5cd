//! One scenario: its headline, its table, its findings.
//!
//! Owns which columns there are and which of them matter most.

use deadheat_record::{Comparison, ContenderResult, Metric, Shape, VerdictWord};

use super::table::{self, Cell, Column};
use super::{Bar, bar, findings, indented};
use crate::number::{bytes, interval, ratio, ratio_decimals, three_digits, time_ns, whole};
use crate::style::{Style, Tone};
use crate::text::plain;
use crate::{ScenarioView, View};

/// From this width on, the interval is drawn too.
const DRAWN_FROM: usize = 100;

pub(super) fn lines(view: &View, scenario: &ScenarioView, style: &Style) -> Vec<String> {
    let mut lines = indented(&about(scenario), 0, Tone::Quiet, style);
    lines.extend(indented(&plain(&scenario.headline), 0, Tone::Strong, style));
    if scenario.result.epochs > 0 && !scenario.result.results.is_empty() {
        lines.push(String::new());
        lines.extend(table::lines(columns(view, scenario, style), 0, 2, style));
        if scenario.result.results.iter().any(|result| !result.letters.is_empty()) && scenario.order.len() > 2
        {
            lines.extend(indented(
                "contenders that share a letter are not told apart",
                2,
                Tone::Quiet,
                style,
            ));
        }
    }
    if !scenario.result.findings.is_empty() {
        lines.push(String::new());
        lines.extend(findings::lines(&scenario.result.findings, style));
    }
    lines
}

fn about(scenario: &ScenarioView) -> String {
    let result = &scenario.result;
    let load = match &result.shape {
        Shape::Closed { connections } => format!("closed, {} connections", whole(u64::from(*connections))),
        Shape::Open { rate_per_s, poisson, .. } => {
            let arrivals = if *poisson { "Poisson" } else { "constant" };
            format!("open, {} requests/s, {arrivals}", three_digits(*rate_per_s))
        }
    };
    let end = match result.ended.as_str() {
        "maximum" => "the most planned".into(),
        "budget" => "time budget used up".into(),
        other => plain(other),
    };
    let epochs = if result.epochs == 1 { "epoch" } else { "epochs" };
    format!("{}: {load}; {} {epochs}, {end}", plain(&result.name), result.epochs)
}

/// All columns that there can be; the table leaves out what does not fit.
fn columns(view: &View, scenario: &ScenarioView, style: &Style) -> Vec<Column> {
    let rows: Vec<Row<'_>> = rows(view, scenario);
    let column = |title: &str, keep: Option<u8>, left: bool, cell: &dyn Fn(&Row<'_>) -> Cell| Column {
        group: "",
        title: style.spell(title),
        left,
        keep,
        cells: rows.iter().map(cell).collect(),
    };
    let plain_cell =
        |text: Option<String>| Cell { text: style.spell(&text.unwrap_or_default()), tone: Tone::Plain };
    let latency = |title: &str, keep: u8, value: fn(&ContenderResult) -> Option<u64>| Column {
        group: if matches!(scenario.result.shape, Shape::Closed { .. }) { "at saturation" } else { "" },
        ..column(title, Some(keep), false, &|row| plain_cell(value(row.result).map(|ns| time_ns(ns as f64))))
    };
    let versus = scenario.baseline.as_ref().map_or_else(String::new, |name| {
        format!("vs {}", crate::text::shorten_end(&plain(name), 18, &style.spell("…")))
    });
    let (p50_keep, p99_keep) = if view.metric == Metric::P50 { (8, 5) } else { (4, 8) };
    let mut all = vec![
        column("contender", None, true, &|row| Cell {
            text: plain(&row.result.contender),
            tone: Tone::Plain,
        }),
        column("rank", Some(9), true, &|row| rank(row, scenario)),
        column("req/s", None, false, &|row| plain_cell(row.result.throughput_rps.map(three_digits))),
        column(&versus, None, true, &|row| versus_cell(row)),
        column("verdict", None, true, &|row| verdict_cell(row.comparison)),
    ];
    if style.width >= DRAWN_FROM {
        all.push(drawn(view, scenario, &rows, style));
    }
    all.extend([
        latency("p50", p50_keep, |result| result.latency_ns.p50),
        latency("p99", p99_keep, |result| result.latency_ns.p99),
        column("CPU/req", Some(6), false, &|row| {
            plain_cell(row.result.cpu_us_per_request.map(|us| time_ns(us * 1e3)))
        }),
        column("memory", Some(3), false, &|row| plain_cell(row.result.rss_bytes.map(bytes))),
        column("cold start", Some(2), false, &|row| {
            plain_cell(row.result.cold_start_ns.map(|ns| time_ns(ns as f64)))
        }),
        column("version", Some(1), true, &|row| {
            let version =
                row.version.map(|version| crate::text::shorten_end(&plain(version), 24, &style.spell("…")));
            Cell { text: version.unwrap_or_default(), tone: Tone::Quiet }
        }),
    ]);
    all
}

/// What one line of the table is made of.
struct Row<'a> {
    result: &'a ContenderResult,
    /// Against the race's baseline; none for the baseline itself.
    comparison: Option<&'a Comparison>,
    is_baseline: bool,
    version: Option<&'a str>,
}

fn rows<'a>(view: &'a View, scenario: &'a ScenarioView) -> Vec<Row<'a>> {
    let baseline = scenario.baseline.as_deref().unwrap_or_default();
    let row = |index: &usize| {
        let result = &scenario.result.results[*index];
        let name = result.contender.as_str();
        let of_pair = |one: &&Comparison| one.baseline == baseline && one.contender == name;
        Row {
            result,
            comparison: scenario.result.comparisons.iter().find(of_pair),
            is_baseline: scenario.baseline.is_some() && name == baseline,
            version: view
                .contenders
                .iter()
                .find(|one| one.name == name)
                .and_then(|one| one.version.as_deref()),
        }
    };
    scenario.order.iter().map(row).collect()
}

/// Letters only help from three contenders on: of two, the verdict says it.
fn rank(row: &Row<'_>, scenario: &ScenarioView) -> Cell {
    let text = if scenario.order.len() > 2 { row.result.letters.clone() } else { String::new() };
    Cell { text, tone: Tone::Plain }
}

fn versus_cell(row: &Row<'_>) -> Cell {
    if row.is_baseline {
        return Cell { text: "baseline".into(), tone: Tone::Quiet };
    }
    let Some(one) = row.comparison else { return Cell::default() };
    let decimals = ratio_decimals(one.low, one.high);
    let Some(shown) = one.ratio.map(|value| ratio(value, decimals)) else { return Cell::default() };
    let text = if one.low.is_none() { shown } else { format!("{shown} ({})", interval(one.low, one.high)) };
    let tone = if one.verdict == VerdictWord::Invalid { Tone::Quiet } else { Tone::Plain };
    Cell { text, tone }
}

fn verdict_cell(comparison: Option<&Comparison>) -> Cell {
    let Some(one) = comparison else { return Cell::default() };
    let (text, tone) = verdict(one.verdict);
    Cell { text: text.into(), tone: if one.negligible { Tone::Plain } else { tone } }
}

/// A verdict's word and what it is to the eye.
pub(crate) fn verdict(verdict: VerdictWord) -> (&'static str, Tone) {
    match verdict {
        VerdictWord::Faster => ("faster", Tone::Good),
        VerdictWord::Slower => ("slower", Tone::Bad),
        VerdictWord::Equivalent => ("equivalent", Tone::Plain),
        VerdictWord::Inconclusive => ("inconclusive", Tone::Caution),
        VerdictWord::Invalid => ("invalid", Tone::Alarm),
    }
}

/// The intervals drawn around 1, all on one scale.
fn drawn(view: &View, scenario: &ScenarioView, rows: &[Row<'_>], style: &Style) -> Column {
    let width = if style.width >= 140 { 31 } else { 17 };
    let comparisons = rows.iter().filter_map(|row| row.comparison);
    let ends = comparisons.flat_map(|one| [one.low, one.ratio, one.high]).flatten();
    let scale = Bar::around(ends, view.margin, width);
    let cell = |row: &Row<'_>| {
        let (low, value, high) =
            row.comparison.map_or((None, None, None), |one| (one.low, one.ratio, one.high));
        Cell { text: bar(&scale, low, value, high, style), tone: verdict_cell(row.comparison).tone }
    };
    let keep = if scenario.result.comparisons.is_empty() { Some(0) } else { Some(5) };
    let cells = rows.iter().map(cell).collect();
    Column { group: "", title: format!("{:^width$}", "1"), left: true, keep, cells }
}
