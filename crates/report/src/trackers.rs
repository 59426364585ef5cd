//! The JSON forms that services read which keep figures over time: Bencher, and github-action-benchmark.
//!
//! Owns: which figure goes there under which name and unit. Must not know files.

use deadheat_record::{ContenderResult, Document, Figure, Metric, ScenarioResult};
use serde_json::{Map, Value, json};

use crate::number::{interval, three_digits};

/// Bencher Metric Format: one benchmark per scenario and contender, with `throughput` (requests per second), `latency`,
/// `latency-p99` (nanoseconds), `cpu` (nanoseconds per request) and `peak` (requests per second), each where it was measured;
/// with the ends of its 95 % interval where the metric was compared.
///
/// # Errors
/// None in practice.
pub fn bencher(document: &Document) -> Result<String, serde_json::Error> {
    let mut all = Map::new();
    for (scenario, result) in every(document) {
        let measures: Map<String, Value> = measured(result)
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
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

/// The files that github-action-benchmark reads: its tools `customBiggerIsBetter` and `customSmallerIsBetter`.
pub const BENCHMARK_FILES: [&str; 2] = ["bigger-is-better.json", "smaller-is-better.json"];

/// What goes into [`BENCHMARK_FILES`], in their order.
///
/// # Errors
/// None in practice.
pub fn benchmark_action(document: &Document) -> Result<[String; 2], serde_json::Error> {
    let of = |bigger: bool| -> Result<String, serde_json::Error> {
        let entries: Vec<Value> = every(document)
            .flat_map(|(scenario, result)| {
                let some = measured(result).into_iter().filter(|one| one.bigger_is_better == bigger);
                some.map(|one| entry(&name(scenario, result), &one)).collect::<Vec<_>>()
            })
            .collect();
        Ok(serde_json::to_string_pretty(&entries)? + "\n")
    };
    Ok([of(true)?, of(false)?])
}

fn entry(benchmark: &str, one: &Measured) -> Value {
    let mut entry =
        json!({ "name": format!("{benchmark}: {}", one.slug), "unit": one.unit, "value": one.value });
    if let Some((low, high)) = one.ends {
        entry["range"] = json!(format!("± {}", three_digits((high - low) / 2.0)));
        entry["extra"] = json!(format!("95 % interval {}", interval(Some(low), Some(high))));
    }
    entry
}

fn every(document: &Document) -> impl Iterator<Item = (&ScenarioResult, &ContenderResult)> {
    document.scenarios.iter().flat_map(|scenario| scenario.results.iter().map(move |one| (scenario, one)))
}

fn name(scenario: &ScenarioResult, result: &ContenderResult) -> String {
    format!("{}/{}", scenario.name, result.contender)
}

struct Measured {
    slug: &'static str,
    unit: &'static str,
    value: f64,
    ends: Option<(f64, f64)>,
    bigger_is_better: bool,
}

fn measured(result: &ContenderResult) -> Vec<Measured> {
    let latency = |ns: Option<u64>| ns.map(|ns| ns as f64);
    let all = [
        ("throughput", "requests/s", Metric::Throughput, result.throughput_rps, 1.0),
        ("peak", "requests/s", Metric::Peak, result.peak_rps, 1.0),
        ("latency", "ns", Metric::P50, latency(result.latency_ns.p50), 1.0),
        ("latency-p99", "ns", Metric::P99, latency(result.latency_ns.p99), 1.0),
        ("cpu", "ns/request", Metric::Cpu, result.cpu_us_per_request, 1e3),
    ];
    let one = |(slug, unit, metric, value, size): (_, _, Metric, Option<f64>, f64)| {
        let figure: Option<&Figure> = result.figures.iter().find(|one| one.metric == metric);
        // Where there is an interval, its own middle stands with it.
        let ends = figure.and_then(|one| Some((one.low? * size, one.high? * size)));
        let value = figure.map(|one| one.value).or(value)? * size;
        Some(Measured { slug, unit, value, ends, bigger_is_better: metric.more_is_better() })
    };
    all.into_iter().filter_map(one).collect()
}
