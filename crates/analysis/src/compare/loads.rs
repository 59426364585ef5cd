//! Compares two lone loads. With one run each, there are ratios but no verdicts.
//!
//! Owns which values of two loads are compared, and why they allow no conclusion. Must not know how the comparison is shown.

use deadheat_record::{
    ArrivalsWord, Experiment, Finding, LoadRecord, LoadShape, Metric, Severity, VerdictWord,
};
use deadheat_stats::StoppingRules;

use crate::experiment::sentence;
use crate::gates::table::{self, By};

use super::comparability::unlike;
use super::document::{
    COMPARE_SCHEMA, Change, CompareDocument, ComparedKind, ComparedRecord, ComparedScenario,
};
use super::options::Named;

/// Compares two loads.
pub fn loads(old: &Named<'_, LoadRecord>, new: &Named<'_, LoadRecord>) -> CompareDocument {
    let (then, now) = (old.record, new.record);
    let findings = findings(then, now);
    let invalid = findings.iter().any(|one| one.severity == Severity::Invalid);
    let verdict = if invalid { VerdictWord::Invalid } else { VerdictWord::Inconclusive };
    let scenario = ComparedScenario {
        name: "load".into(),
        shape: shape(now),
        changes: changes(then, now, verdict),
        findings: vec![],
    };
    // No result uses them.
    let StoppingRules { margin, alpha, .. } = StoppingRules::default();
    CompareDocument {
        schema: COMPARE_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        kind: ComparedKind::Loads,
        old: side(old),
        new: side(new),
        reference: None,
        margin,
        alpha,
        scenarios: vec![scenario],
        findings,
        conditions: vec![],
    }
}

fn side(one: &Named<'_, LoadRecord>) -> ComparedRecord {
    ComparedRecord {
        file: one.file.clone(),
        study: one.record.url.clone(),
        version: one.record.version.clone(),
        started_unix_ms: one.record.started_unix_ms,
        seed: one.record.seed,
    }
}

fn shape(load: &LoadRecord) -> Experiment {
    let connections = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    match load.shape {
        LoadShape::Closed => Experiment::Closed { connections: connections(load.connections) },
        LoadShape::Open => Experiment::Open {
            connections: connections(load.max_connections),
            rate_per_s: load.offered_rps.unwrap_or_default(),
            poisson: load.arrivals == Some(ArrivalsWord::Poisson),
        },
    }
}

/// The values that both have, in reading order.
fn changes(then: &LoadRecord, now: &LoadRecord, verdict: VerdictWord) -> Vec<Change> {
    let throughput = (Metric::Throughput, then.throughput_rps, now.throughput_rps);
    let times = |load: &LoadRecord| {
        let all = load.latency_ns;
        [(Metric::P50, all.p50), (Metric::P90, all.p90), (Metric::P99, all.p99), (Metric::P999, all.p99_9)]
    };
    let both = times(then).into_iter().zip(times(now));
    let ns = |value: Option<u64>| value.map(|ns| ns as f64);
    let times = both.map(|((metric, old), (_, new))| (metric, ns(old), ns(new)));
    let all = std::iter::once(throughput).chain(times);
    all.filter_map(|(metric, old, new)| {
        let (old, new) = (old?, new?);
        Some(Change {
            contender: now.url.clone(),
            old_contender: then.url.clone(),
            old_version: None,
            new_version: None,
            metric,
            more_is_better: metric.more_is_better(),
            asked: true,
            old: Some(old),
            new: Some(new),
            ratio: Some(new / old).filter(|ratio| ratio.is_finite()),
            low: None,
            high: None,
            alpha: None,
            verdict,
            negligible: false,
            old_epochs: 1,
            new_epochs: 1,
            detectable_ratio: None,
        })
    })
    .collect()
}

fn findings(then: &LoadRecord, now: &LoadRecord) -> Vec<Finding> {
    let mut all = Vec::new();
    if (then.started_unix_ms, then.seed) == (now.started_unix_ms, now.seed) {
        all.push(table::SAME_RECORD.finding(
            By::Compare,
            Severity::Invalid,
            "both files are records of the same load, so there is nothing to compare",
        ));
    }
    all.extend(asked(then, now));
    for (load, when) in [(then, "then"), (now, "now")] {
        let invalid = load.findings.iter().filter(|one| one.severity == Severity::Invalid);
        all.extend(invalid.map(|one| Finding { message: format!("{when}: {}", one.message), ..one.clone() }));
    }
    all.push(table::ONE_RUN_EACH.warning(
        By::Compare,
        "each file holds one run of a load: two runs do not show how much a ratio varies from run to run, nor whether the \
         machine was the same; so there is no interval and no verdict",
    ));
    all.extend(generator(then, now));
    all
}

fn asked(then: &LoadRecord, now: &LoadRecord) -> Option<Finding> {
    // The port often changes when a server is restarted.
    let path = |load: &LoadRecord| {
        let rest = load.url.split_once("://").map_or(load.url.as_str(), |(_, rest)| rest);
        rest.find('/').map_or_else(|| "/".to_owned(), |at| rest[at..].to_owned())
    };
    let sent = |load: &LoadRecord| {
        format!("{} {} ({} requests, {})", load.sent.method, path(load), load.sent.distinct, load.sent.order)
    };
    let rate = |load: &LoadRecord| load.rate.clone().unwrap_or_else(|| "as answered".into());
    let scheme =
        |load: &LoadRecord| load.url.split_once("://").map_or("http", |(scheme, _)| scheme).to_owned();
    let message = unlike([
        ("scheme", scheme(then), scheme(now)),
        ("load", sentence(&shape(then)), sentence(&shape(now))),
        ("rate", rate(then), rate(now)),
        ("requests", sent(then), sent(now)),
    ])?;
    Some(table::DIFFERENT_LOAD.finding(By::Compare, Severity::Invalid, message))
}

fn generator(then: &LoadRecord, now: &LoadRecord) -> Vec<Finding> {
    let cpus = |load: &LoadRecord| format!("{:?}", load.generator.cpus);
    let hosts = |load: &LoadRecord| {
        let names: Vec<&str> = load.hosts.iter().map(|host| host.name.as_str()).collect();
        if names.is_empty() { "the machine itself".to_owned() } else { names.join(", ") }
    };
    let cores = unlike([
        ("load from", hosts(then), hosts(now)),
        ("generator's threads", then.generator.threads.to_string(), now.generator.threads.to_string()),
        ("generator on cores", cpus(then), cpus(now)),
        ("generator by", then.generator.backend.clone(), now.generator.backend.clone()),
    ]);
    let version = unlike([("measured by deadheat", then.version.clone(), now.version.clone())]);
    let cores = cores.map(|message| table::DIFFERENT_CORES.warning(By::Compare, message));
    let version = version.map(|message| table::DIFFERENT_VERSION.warning(By::Compare, message));
    cores.into_iter().chain(version).collect()
}
