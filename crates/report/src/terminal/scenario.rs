//! One scenario: its headline, its table, its findings.
//!
//! Owns: which columns there are, and which of them matter most.

use deadheat_analysis::number::{ends_nearby, quotient};
use deadheat_analysis::{Comparison, ContenderResult, Ended, Ranking, Report, ScenarioResult};
use deadheat_record::{Metric, VerdictWord};

use super::bar::{Bar, DRAWN_FROM, bar};
use super::paragraph::indented;
use super::table::{self, Cell, Column};
use super::{collector, edge, findings, profile, quota};
use crate::columns::{self, FigureColumn, value};
use crate::load_hosts;
use crate::style::{Style, Tone};
use crate::text::{plain, verdict};
use crate::transport;
use deadheat_analysis::experiment::{measured, of_scenario, sentence};

pub(super) fn lines(report: &Report, scenario: &ScenarioResult, style: &Style) -> Vec<String> {
    let mut lines = indented(&about(report, scenario), 0, Tone::Quiet, style);
    for ranking in &scenario.rankings {
        let which = if scenario.rankings.len() > 1 {
            format!("{}: ", ranking.metric.row().column)
        } else {
            String::new()
        };
        lines.extend(indented(&(which + &plain(&ranking.headline)), 0, Tone::Strong, style));
    }
    if scenario.epochs > 0 && !scenario.results.is_empty() {
        lines.extend(tables(report, scenario, style));
        let mut ranked = scenario.rankings.iter().flat_map(|one| &one.contenders);
        if ranked.any(|one| !one.letters.is_empty()) && scenario.results.len() > 2 {
            lines.extend(indented(
                "deadheat found no clear difference between contenders that share a letter",
                2,
                Tone::Quiet,
                style,
            ));
        }
        lines.extend(quota::lines(report, scenario, style));
    }
    if let Some(cache) = &scenario.edge_cache {
        let closed = scenario.shape.is_closed();
        lines.extend(edge::lines(cache, report.baseline(&scenario.name), closed, style));
    }
    let collectors: Vec<_> = scenario.collectors.iter().map(|one| (String::new(), one)).collect();
    if !collectors.is_empty() {
        lines.extend(collector::lines(&collectors, "", style));
    }
    lines.extend(profile::lines(scenario, style));
    let network = network(report, scenario);
    if !network.is_empty() {
        lines.push(String::new());
        let told = network.iter().map(|text| style.spell(&plain(text)));
        lines.extend(told.flat_map(|text| indented(&text, 2, Tone::Quiet, style)));
    }
    if !scenario.findings.is_empty() {
        lines.push(String::new());
        lines.extend(findings::lines(&scenario.findings, style));
    }
    lines
}

/// What was read of the network between load and contenders; nothing where there is only the loopback.
fn network(report: &Report, scenario: &ScenarioResult) -> Vec<String> {
    let link = report
        .record
        .link_of(&scenario.name)
        .map(|link| format!("the link, measured before the race: {}", measured(&link.reading)));
    let hosts = scenario.load_hosts.iter().flat_map(|of| [load_hosts::who(of), load_hosts::together(of)]);
    link.into_iter().chain(hosts).filter(|text| !text.is_empty()).collect()
}

fn about(report: &Report, scenario: &ScenarioResult) -> String {
    let plan = &report.record.plan;
    let planned = plan.scenario(&scenario.name);
    let load = planned.map_or_else(|| sentence(&scenario.shape), of_scenario);
    let told = planned.and_then(|planned| transport::about(plan, planned));
    let transport = told.map_or_else(String::new, |told| format!(", {told}"));
    format!("{}: {}{transport}; {}", plain(&scenario.name), plain(&load), lasted(report, scenario))
}

/// The number of epochs that count, the number left out, and why the scenario ended.
pub(crate) fn lasted(report: &Report, scenario: &ScenarioResult) -> String {
    let end = match scenario.ended {
        Ended::Decided => "decided",
        Ended::Maximum => "maximum reached",
        Ended::Budget => "time budget used up",
        Ended::Stopped => "stopped",
        Ended::Unavailable => "nothing to compare",
        Ended::Unfinished => "unfinished",
    };
    format!("{}, {end}", counted(report, scenario))
}

/// The number of epochs that count, and the number left out.
pub(crate) fn counted(report: &Report, scenario: &ScenarioResult) -> String {
    let counted = report.counted(scenario);
    let epochs = if counted == 1 { "epoch" } else { "epochs" };
    let left_out = match report.left_out(scenario) {
        0 => String::new(),
        more => format!(", {more} more left out"),
    };
    format!("{counted} {epochs}{left_out}")
}

/// One table with everything if one metric is compared; otherwise one for each metric, and one with the other figures.
fn tables(report: &Report, scenario: &ScenarioResult, style: &Style) -> Vec<String> {
    let shown: Vec<Metric> = scenario.rankings.iter().map(|one| one.metric).collect();
    let sheet = |ranking| Sheet::new(report, scenario, ranking, style);
    let mut tables = Vec::new();
    if let [only] = &scenario.rankings[..] {
        tables.push([sheet(only).compared(), sheet(only).figures(&shown)].concat());
    } else {
        let compared = |one: &&Ranking| scenario.comparisons.iter().any(|pair| pair.metric == one.metric);
        tables.extend(scenario.rankings.iter().filter(compared).map(|ranking| sheet(ranking).compared()));
        tables.extend(scenario.rankings.first().map(|first| {
            let who = sheet(first).who();
            [vec![who], sheet(first).figures(&shown)].concat()
        }));
    }
    let lines = |columns: Vec<Column>| [vec![String::new()], table::lines(columns, 0, 2, style)].concat();
    tables.into_iter().flat_map(lines).collect()
}

/// The data for the columns of one metric's table.
struct Sheet<'a> {
    report: &'a Report,
    scenario: &'a ScenarioResult,
    ranking: &'a Ranking,
    rows: Vec<Row<'a>>,
    style: &'a Style,
}

impl<'a> Sheet<'a> {
    fn new(report: &'a Report, scenario: &'a ScenarioResult, ranking: &'a Ranking, style: &'a Style) -> Self {
        Self { report, scenario, ranking, rows: rows(report, scenario, ranking), style }
    }

    fn who(&self) -> Column {
        Column::of(&self.rows, "contender", None, true, |row| plain(&row.result.contender))
    }

    /// The columns for the contender, the compared figure and the comparison.
    fn compared(&self) -> Vec<Column> {
        let versus = self.report.baseline(&self.scenario.name).map_or_else(String::new, |name| {
            format!("vs {}", crate::text::shorten_end(&plain(name), 18, &self.style.spell("…")))
        });
        let metric = self.ranking.metric;
        let figure = |row: &Row<'_>| value(row.result, metric).unwrap_or_default();
        let mut all = vec![
            self.who(),
            Column::of(&self.rows, "rank", Some(9), true, |row| self.rank(row)),
            Column::of(&self.rows, metric.row().column, None, false, figure),
            Column::of(&self.rows, versus, None, true, versus_cell),
            Column::of(&self.rows, "verdict", None, true, |row| verdict_of(row.comparison)),
        ];
        if self.style.width >= DRAWN_FROM {
            all.push(self.drawn());
        }
        all
    }

    /// The columns for the other figures; `shown` lists metrics that are already in a table.
    fn figures(&self, shown: &[Metric]) -> Vec<Column> {
        let told = columns::of(&self.scenario.shape).into_iter();
        let told = told.filter(|one| one.metric.is_none_or(|metric| !shown.contains(&metric)));
        let column = |one: FigureColumn| Column {
            group: one.group,
            ..Column::of(&self.rows, one.title, Some(one.keep), false, |row| {
                one.of(row.result).unwrap_or_default()
            })
        };
        let version = Column::of(&self.rows, "version", Some(1), true, |row| {
            let mark = self.style.spell("…");
            let version = row.version.map(|version| crate::text::shorten_end(&plain(version), 24, &mark));
            Cell { text: version.unwrap_or_default(), tone: Tone::Quiet }
        });
        told.map(column).chain([version]).collect()
    }

    /// The letter of a contender. Letters help only with three contenders or more; with two, the verdict is enough.
    fn rank<'r>(&self, row: &Row<'r>) -> &'r str {
        if self.ranking.contenders.len() > 2 { row.letters } else { "" }
    }

    /// The intervals, drawn around 1 on one scale.
    fn drawn(&self) -> Column {
        let width = if self.style.width >= 140 { 31 } else { 17 };
        let comparisons = self.rows.iter().filter_map(|row| row.comparison);
        let ends = comparisons.flat_map(|one| ends_nearby(one.low, one.ratio, one.high));
        let scale = Bar::around(ends, self.report.method().margin, width);
        let cell = |row: &Row<'_>| {
            let (low, value, high) =
                row.comparison.map_or((None, None, None), |one| (one.low, one.ratio, one.high));
            Cell { text: bar(&scale, low, value, high, self.style), tone: verdict_of(row.comparison).tone }
        };
        let any = self.scenario.comparisons.iter().any(|one| one.metric == self.ranking.metric);
        Column::of(&self.rows, format!("{:^width$}", "1"), Some(if any { 5 } else { 0 }), true, cell)
    }
}

/// The data for one line of the table.
struct Row<'a> {
    result: &'a ContenderResult,
    /// Comparison with the race's baseline; none for the baseline itself.
    comparison: Option<&'a Comparison>,
    is_baseline: bool,
    letters: &'a str,
    version: Option<&'a str>,
}

fn rows<'a>(report: &'a Report, scenario: &'a ScenarioResult, ranking: &'a Ranking) -> Vec<Row<'a>> {
    let baseline = report.baseline(&scenario.name);
    let row = |result: &'a ContenderResult| {
        let name = result.contender.as_str();
        Row {
            result,
            comparison: baseline.and_then(|baseline| scenario.pair(ranking.metric, baseline, name)),
            is_baseline: baseline == Some(name),
            letters: ranking.letters(name),
            version: report.contender(name).and_then(|one| one.version.as_deref()),
        }
    };
    scenario.ranked(ranking).map(row).collect()
}

fn versus_cell(row: &Row<'_>) -> Cell {
    versus(row.comparison, row.is_baseline)
}

/// The ratio with its interval.
pub(super) fn versus(comparison: Option<&Comparison>, is_baseline: bool) -> Cell {
    if is_baseline {
        return Cell { text: "baseline".into(), tone: Tone::Quiet };
    }
    let Some((one, value)) = comparison.and_then(|one| Some((one, one.ratio?))) else {
        return Cell::default();
    };
    let tone = if one.verdict == VerdictWord::Invalid { Tone::Quiet } else { Tone::Plain };
    Cell { text: quotient(value, one.low, one.high), tone }
}

pub(super) fn verdict_of(comparison: Option<&Comparison>) -> Cell {
    comparison.map_or_else(Cell::default, |one| verdict_cell(one.verdict, one.negligible, one.provisional))
}

/// A verdict in its tone. A negligible difference has none.
pub(super) fn verdict_cell(of: VerdictWord, negligible: bool, provisional: bool) -> Cell {
    Cell {
        text: verdict(of, negligible, provisional),
        tone: if negligible { Tone::Plain } else { verdict_tone(of) },
    }
}

/// The tone of a verdict's word.
pub(crate) fn verdict_tone(verdict: VerdictWord) -> Tone {
    match verdict {
        VerdictWord::Faster => Tone::Good,
        VerdictWord::Slower => Tone::Bad,
        VerdictWord::Equivalent => Tone::Plain,
        VerdictWord::Inconclusive => Tone::Caution,
        VerdictWord::Invalid => Tone::Alarm,
    }
}
