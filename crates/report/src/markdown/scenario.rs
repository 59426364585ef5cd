//! One scenario in Markdown: its verdicts, what each contender did, every pair, what follows from them.
//!
//! Owns which figures are shown of which kind of scenario. Must not know how numbers come about.

use deadheat_analysis::number::{
    bytes, interval, quantile, ratio, ratio_decimals, seldom, three_digits, time_ns, whole,
};
use deadheat_analysis::{Comparison, ContenderResult, EdgeCache, EdgeUser, Report, ScenarioResult};
use deadheat_record::{Metric, Shape};

use super::{collectors, findings, said, shown, table};
use crate::comparison::{code, text};
use crate::quota::{self, Told};
use crate::terminal::{behind, instructions, kept_up, metric_title, over};
use crate::transport;

pub(super) fn section(report: &Report, scenario: &ScenarioResult) -> String {
    let planned = report.record.plan.scenario(&scenario.name);
    let load =
        [Some(shape(&scenario.shape)), planned.and_then(|one| transport::about(&report.record.plan, one))];
    let load = load.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let mut out = format!("\n### {}\n\n{load}; {} epochs\n", code(&scenario.name), scenario.epochs);
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
        out += &figures(&results, &columns(&scenario.shape));
        if let Some(held) = report.limits(&scenario.name).and_then(quota::about) {
            out += &format!("\nEach contender was held to {held}:\n{}", figures(&results, &quota::TOLD));
        }
    }
    if !scenario.comparisons.is_empty() {
        out += &comparisons(scenario);
    }
    if let Some(cache) = &scenario.edge_cache {
        out += &edge(cache, report.baseline(&scenario.name), &scenario.shape);
    }
    let seen: Vec<_> = scenario.collectors.iter().map(|one| (String::new(), one)).collect();
    out + &collectors(&seen, "") + &findings(&scenario.findings)
}

fn shape(shape: &Shape) -> String {
    let connections = whole(u64::from(shape.connections()));
    match shape {
        Shape::Closed { .. } => {
            format!("closed load, {connections} connections; latencies are at saturation")
        }
        Shape::Open { rate_per_s, .. } => {
            format!("open load, {} requests/s, at most {connections} connections", three_digits(*rate_per_s))
        }
        Shape::Peak { objective, .. } => format!(
            "highest rate with {} under {}, at most {connections} connections",
            quantile(objective.quantile),
            time_ns(objective.limit_ns as f64)
        ),
        Shape::Starts { starts } => format!("{starts} fresh starts of each, by turns"),
        Shape::Measure { measure } => format!("each contender's own {}, in fresh processes", code(measure)),
    }
}

const RATE: Told = ("req/s", |one| one.throughput_rps.map(three_digits));
const LATENCIES: [Told; 2] =
    [("p50", |one| time(one.latency_ns.p50)), ("p99", |one| time(one.latency_ns.p99))];
const COSTS: [Told; 6] = [
    ("CPU/req", cpu),
    ("instructions/req", |one| instructions(one, "instructions")),
    ("user-mode instr./req", |one| instructions(one, "instructions:u")),
    ("switches/req", switches),
    ("memory", |one| one.rss_bytes.map(bytes)),
    ("cold start", |one| time(one.cold_start_ns)),
];
const OFFERED: Told = ("of offered", kept_up);
const PEAK: Told = ("peak/s", |one| one.peak_rps.map(three_digits));
/// The interval is that of the mean: beside the median alone it might not even hold it.
const STARTS: [Told; 5] = [
    ("cold start, median", |one| time(one.cold_start_ns)),
    ("geometric mean", |one| Some(time_ns(one.figure(Metric::ColdStart)?.value))),
    ("95 % interval", |one| spread(one, Metric::ColdStart)),
    ("starts", |one| Some(whole(one.cold_starts_ns.len() as u64))),
    ("artefact", |one| one.artefact_bytes.map(bytes)),
];
const MEASURE: [Told; 2] =
    [("measured", |one| one.measured.map(time_ns)), ("95 % interval", |one| spread(one, Metric::Measure))];

/// What is told of contenders in a scenario of that kind.
fn columns(shape: &Shape) -> Vec<Told> {
    match shape {
        Shape::Closed { .. } => [&[RATE][..], &LATENCIES[..], &COSTS[..]].concat(),
        Shape::Open { .. } => [&[RATE, OFFERED][..], &LATENCIES[..], &COSTS[..]].concat(),
        Shape::Peak { .. } => [&[PEAK][..], &COSTS[..]].concat(),
        Shape::Starts { .. } => STARTS.to_vec(),
        Shape::Measure { .. } => MEASURE.to_vec(),
    }
}

/// A line for each contender, with those of the figures that any of them has.
fn figures(results: &[&ContenderResult], columns: &[Told]) -> String {
    let any = |(_, cell): &&Told| results.iter().any(|one| cell(one).is_some());
    let known: Vec<&Told> = columns.iter().filter(any).collect();
    let titles: Vec<&str> =
        std::iter::once("contender").chain(known.iter().map(|(title, _)| *title)).collect();
    let rules = format!("---{}", "|--:".repeat(known.len()));
    let row = |one: &&ContenderResult| {
        let cells = known.iter().map(|(_, cell)| shown(cell(one)));
        std::iter::once(code(&one.contender)).chain(cells).collect()
    };
    table(&titles, &rules, results.iter().map(row))
}

fn time(ns: Option<u64>) -> Option<String> {
    ns.map(|ns| time_ns(ns as f64))
}

/// CPU time per request, with its two parts where they are known.
fn cpu(one: &ContenderResult) -> Option<String> {
    let time = |us: f64| time_ns(us * 1e3);
    let parts = one.user_us_per_request.zip(one.system_us_per_request);
    let parts = parts.map(|(user, system)| format!(" ({} user, {} system)", time(user), time(system)));
    Some(time(one.cpu_us_per_request?) + &parts.unwrap_or_default())
}

/// Context switches per request, with those that were involuntary.
fn switches(one: &ContenderResult) -> Option<String> {
    let (all, involuntary) = (one.switches_per_request?, one.involuntary_switches_per_request?);
    Some(format!("{} ({} involuntary)", seldom(all), seldom(involuntary)))
}

/// The 95 % interval of a time.
fn spread(one: &ContenderResult, metric: Metric) -> Option<String> {
    let figure = one.figure(metric)?;
    Some(format!("{} to {}", time_ns(figure.low?), time_ns(figure.high?)))
}

/// From so many pairs on, only those with the baseline in the first metric stand open.
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
            metric_title(one.metric).into(),
            shown(one.ratio.map(|value| ratio(value, ratio_decimals(one.low, one.high)))),
            interval(one.low, one.high),
            said(one),
        ]
    };
    let titles = ["pair", "metric", "ratio", "interval", "verdict"];
    table(&titles, "---|---|--:|---|---", comparisons.iter().map(row))
}

/// What users see behind the study's cache, and the origin alone.
fn edge(cache: &EdgeCache, baseline: Option<&str>, shape: &Shape) -> String {
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
    let closed = matches!(shape, Shape::Closed { .. });
    let brackets = base.map_or_else(String::new, |base| {
        format!("; in brackets as a multiple of {}'s", code(&base.contender))
    });
    format!(
        "\nNot measured, but {}{brackets}:\n{}",
        text(&behind(cache, closed)),
        table(&titles, "---|--:|--:|--:|--:|--:|--:", cache.users.iter().map(row))
    )
}
