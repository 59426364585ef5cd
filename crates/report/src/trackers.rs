//! The JSON formats of services that track results over time: Bencher and github-action-benchmark.
//!
//! Owns: which figures these formats contain, with which name and unit. Must not know: files.

use deadheat_analysis::number::{interval_of, three_digits};
use deadheat_analysis::{ContenderResult, Report, ScenarioResult};
use deadheat_record::{METRICS, Metric, MetricRow};
use serde_json::{Map, Value, json};

use crate::ReportError;

/// Bencher Metric Format: one benchmark per scenario and contender, with `throughput` (requests per second), `latency`, `latency-p90`, `latency-p99`, `latency-p99-9`
/// (nanoseconds), `cpu` (nanoseconds per request), `peak` (requests per second), `cold-start` (nanoseconds), `measure` (nanoseconds if it is a time) and `memory`
/// (bytes), each if it was measured. A compared metric includes the ends of its 95 % interval. Figures that a gate invalidated are left out, because
/// a service would draw them like any other.
///
/// # Errors
/// None in practice.
pub fn bencher(report: &Report) -> Result<String, ReportError> {
    let mut all = Map::new();
    for (scenario, result, measured) in every(report) {
        let measures: Map<String, Value> = measured
            .into_iter()
            .map(|one| {
                let mut value = json!({ "value": one.value });
                if let Some((low, high)) = one.ends {
                    value["lower_value"] = json!(low);
                    value["upper_value"] = json!(high);
                }
                (one.slug.to_owned(), value)
            })
            .collect();
        if !measures.is_empty() {
            all.insert(name(scenario, result), Value::Object(measures));
        }
    }
    crate::json(&all)
}

/// The files that github-action-benchmark reads: its tools `customBiggerIsBetter` and `customSmallerIsBetter`.
pub const BENCHMARK_FILES: [&str; 2] = ["bigger-is-better.json", "smaller-is-better.json"];

/// The content of [`BENCHMARK_FILES`], in their order.
///
/// # Errors
/// None in practice.
pub fn benchmark_action(report: &Report) -> Result<[String; 2], ReportError> {
    let of = |bigger: bool| -> Result<String, ReportError> {
        let entries: Vec<Value> = every(report)
            .flat_map(|(scenario, result, measured)| {
                let some = measured.into_iter().filter(|one| one.bigger_is_better == bigger);
                some.map(|one| entry(&name(scenario, result), &one)).collect::<Vec<_>>()
            })
            .collect();
        crate::json(&entries)
    };
    Ok([of(true)?, of(false)?])
}

fn entry(benchmark: &str, one: &Measured) -> Value {
    let mut entry =
        json!({ "name": format!("{benchmark}: {}", one.slug), "unit": one.unit, "value": one.value });
    if let Some((low, high)) = one.ends {
        entry["range"] = json!(format!("± {}", three_digits((high - low) / 2.0)));
        entry["extra"] = json!(format!("95 % interval {}", interval_of(low, high)));
    }
    entry
}

/// Every contender in every scenario with its figures, except those that a finding invalidates. The finding can belong to the scenario or to the
/// race, and can be about this contender or about all.
fn every(report: &Report) -> impl Iterator<Item = (&ScenarioResult, &ContenderResult, Vec<Measured>)> {
    let all = report.scenarios.iter();
    let all = all.flat_map(|scenario| scenario.results.iter().map(move |one| (scenario, one)));
    all.map(move |(scenario, result)| {
        let taken = |metric: Metric| {
            let mut findings = scenario.findings.iter().chain(&report.findings);
            findings.any(|one| one.takes(&result.contender, Some(metric)))
        };
        let stands = measured(result).into_iter().filter(|one| !taken(one.metric)).collect();
        (scenario, result, stands)
    })
}

/// A unique name. The last slash separates scenario and contender; slashes in the contender's name are escaped as in a URL.
fn name(scenario: &ScenarioResult, result: &ContenderResult) -> String {
    format!("{}/{}", scenario.name, result.contender.replace('%', "%25").replace('/', "%2F"))
}

struct Measured {
    metric: Metric,
    slug: &'static str,
    unit: &'static str,
    value: f64,
    ends: Option<(f64, f64)>,
    bigger_is_better: bool,
}

fn measured(result: &ContenderResult) -> Vec<Measured> {
    let one = |row: &MetricRow| {
        let (metric, (slug, unit)) = (row.metric, row.tracker);
        let size = 1.0 / row.unit.scale();
        let figure = result.figure(metric);
        // If the metric was compared, use the value of the comparison, because the interval belongs to it.
        let ends = figure.and_then(|one| Some((one.low? * size, one.high? * size)));
        let shown = result.value(metric).filter(|_| row.always_shown);
        let value = figure.map(|one| one.value).or(shown)? * size;
        Some(Measured { metric, slug, unit, value, ends, bigger_is_better: row.more_is_better })
    };
    METRICS.iter().filter_map(one).collect()
}
