//! One scenario in Markdown: its verdicts, each contender's figures, every pair, the findings.
//!
//! Owns: which figures each kind of scenario shows. Must not know: how numbers are computed.

use deadheat_analysis::number::{interval, ratio_within, time_ns};
use deadheat_analysis::{
    Comparison, ContenderResult, EdgeCache, EdgeUser, LoadHostsResult, Report, ScenarioResult,
};
use deadheat_record::Experiment;

use super::{collectors, findings, lasted, profile, said, shown, table};
use crate::columns::{self, FigureColumn};
use crate::comparison::{code, text};
use crate::load_hosts;
use crate::terminal::{behind, over};
use crate::transport;
use deadheat_analysis::experiment::{measured, of_scenario, sentence};

pub(super) fn section(report: &Report, scenario: &ScenarioResult) -> String {
    let planned = report.record.plan.scenario(&scenario.name);
    let load = [
        Some(text(&planned.map_or_else(|| sentence(&scenario.shape), of_scenario))),
        planned.and_then(|one| transport::about(&report.record.plan, one)),
    ];
    let load = load.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let mut out = format!("\n### {}\n\n{load}; {}\n", code(&scenario.name), lasted(report, scenario));
    for (place, ranking) in scenario.rankings.iter().enumerate() {
        let headline = text(&ranking.headline);
        out += &match place {
            0 => format!("\n**{headline}**\n"),
            1 => format!("\n- {}: {headline}\n", ranking.metric.word()),
            _ => format!("- {}: {headline}\n", ranking.metric.word()),
        };
    }
    if !scenario.results.is_empty() {
        let results = scenario.best_first();
        out += &figures(&results, &columns::of(&scenario.shape));
        if let Some(held) = report.limits(&scenario.name).and_then(columns::quota) {
            out += &format!(
                "\nEach contender was limited to {held}:\n{}",
                figures(&results, &columns::of_quota())
            );
        }
    }
    if !scenario.comparisons.is_empty() {
        out += &comparisons(scenario);
    }
    if let Some(cache) = &scenario.edge_cache {
        out += &edge(cache, report.baseline(&scenario.name), &scenario.shape);
    }
    let seen: Vec<_> = scenario.collectors.iter().map(|one| (String::new(), one)).collect();
    let hosts = scenario.load_hosts.as_ref().map_or_else(String::new, machines);
    let link = report.record.link_of(&scenario.name);
    let link = link.map_or_else(String::new, |one| {
        format!("\nThe link, measured before the race: {}.\n", text(&measured(&one.reading)))
    });
    out + &collectors(&seen, "")
        + &profile::section(scenario)
        + &link
        + &hosts
        + &findings(&scenario.findings)
}

/// The machines of a load from load hosts, with the columns that are known of at least one of them.
fn machines(hosts: &LoadHostsResult) -> String {
    let rows = load_hosts::rows(hosts);
    let known: Vec<usize> = (0..load_hosts::TITLES.len())
        .filter(|column| rows.iter().any(|row| row[*column].is_some()))
        .collect();
    let titles: Vec<&str> = known.iter().map(|column| load_hosts::TITLES[*column]).collect();
    let row = |row: &[Option<String>; 12]| {
        let cell = |column: &usize| match (column, &row[*column]) {
            (0, Some(name)) => code(name),
            (_, value) => shown(value.clone()),
        };
        known.iter().map(cell).collect()
    };
    let rules = format!("---{}", "|--:".repeat(known.len() - 1));
    let together = load_hosts::together(hosts);
    let below = if together.is_empty() { String::new() } else { format!("\nIn all: {}.\n", text(&together)) };
    format!("\nThe machines that took part:\n{}{below}", table(&titles, &rules, rows.iter().map(row)))
}

/// A line for each contender, with the columns that have a figure for at least one of them.
fn figures(results: &[&ContenderResult], columns: &[FigureColumn]) -> String {
    let known: Vec<&FigureColumn> =
        columns.iter().filter(|column| results.iter().any(|one| column.of(one).is_some())).collect();
    let title = |column: &&FigureColumn| match column.group {
        "" => column.title.to_owned(),
        group => format!("{} ({group})", column.title),
    };
    let titles: Vec<String> = std::iter::once("contender".into()).chain(known.iter().map(title)).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let rules = format!("---{}", "|--:".repeat(known.len()));
    let row = |one: &&ContenderResult| {
        let cells = known.iter().map(|column| shown(column.of(one)));
        std::iter::once(code(&one.contender)).chain(cells).collect()
    };
    table(&titles, &rules, results.iter().map(row))
}

/// With at least this number of pairs, only those with the baseline in the first metric are shown unfolded.
const FOLDED_FROM: usize = 13;

fn comparisons(scenario: &ScenarioResult) -> String {
    let all = &scenario.comparisons;
    let first = all.first().map(|one| (one.metric, &one.baseline));
    let open = |one: &&Comparison| all.len() < FOLDED_FROM || first == Some((one.metric, &one.baseline));
    let (open, folded): (Vec<_>, Vec<_>) = all.iter().partition(open);
    let mut out = pairs(&open);
    if !folded.is_empty() {
        let count = folded.len();
        out += &format!(
            "\n<details><summary>{count} more comparisons</summary>\n{}\n</details>\n",
            pairs(&folded)
        );
    }
    out
}

fn pairs(comparisons: &[&Comparison]) -> String {
    let row = |one: &&Comparison| {
        vec![
            format!("{} / {}", code(&one.contender), code(&one.baseline)),
            one.metric.row().column.into(),
            shown(one.ratio.map(|value| ratio_within(value, one.low, one.high))),
            interval(one.low, one.high),
            said(one),
        ]
    };
    let titles = ["pair", "metric", "ratio", "interval", "verdict"];
    table(&titles, "---|---|--:|---|---", comparisons.iter().map(row))
}

/// The latency that users see behind the study's cache, and that of the origin alone.
fn edge(cache: &EdgeCache, baseline: Option<&str>, shape: &Experiment) -> String {
    let base = cache.users.iter().find(|one| Some(one.contender.as_str()) == baseline);
    let row = |one: &EdgeUser| {
        let other = base.filter(|base| base.contender != one.contender);
        let cell = |of: fn(&EdgeUser) -> u64| {
            let times = other.and_then(|other| over(of(one), of(other)));
            time_ns(of(one) as f64) + &times.map_or_else(String::new, |times| format!(" ({times})"))
        };
        let seen: [fn(&EdgeUser) -> u64; 3] = [|one| one.p50_ns, |one| one.p95_ns, |one| one.p99_ns];
        let origin: [fn(&EdgeUser) -> u64; 3] =
            [|one| one.origin_p50_ns, |one| one.origin_p95_ns, |one| one.origin_p99_ns];
        std::iter::once(code(&one.contender)).chain(seen.into_iter().chain(origin).map(cell)).collect()
    };
    let titles = ["contender", "p50", "p95", "p99", "origin's p50", "p95", "p99"];
    let closed = shape.is_closed();
    let brackets = base.map_or_else(String::new, |base| {
        format!("; in brackets as a multiple of {}'s", code(&base.contender))
    });
    format!(
        "\nNot measured, but {}{brackets}:\n{}",
        text(&behind(cache, closed)),
        table(&titles, "---|--:|--:|--:|--:|--:|--:", cache.users.iter().map(row))
    )
}
