//! Reads the values of a published metric from an epoch of a race.
//!
//! Owns: what a metric's name means, and where an epoch has it. Must not know claims, scenarios or verdicts.

use deadheat_record::{Epoch, FEWEST_BEYOND, HistogramError, Metric, beyond};

use super::super::figures::{Place, latency, time_unit};
use crate::series;

/// What to read from an epoch for a published metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wanted {
    Of(Metric),
    Latency(Place),
    ColdStart,
    Memory,
}

/// Whether a metric belongs to a measure: `serialize_million_s` belongs to `serialize`.
pub(super) fn is_of(metric: &str, measure: &str) -> bool {
    metric.strip_prefix(measure).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// What a metric's name stands for; for a ratio, what the ratio is of.
pub(super) fn wanted(metric: &str) -> Option<Wanted> {
    let of = metric.strip_suffix("_ratio").unwrap_or(metric);
    match of {
        "throughput" | "throughput_rps" => return Some(Wanted::Of(Metric::Throughput)),
        "rss" | "rss_mb" | "rss_bytes" | "memory_mb" => return Some(Wanted::Memory),
        "cold_start" => return Some(Wanted::ColdStart),
        _ => {}
    }
    // A ratio's name has no unit. Any unit will do to identify the latency.
    let timed = if time_unit(of).is_some() { of.to_owned() } else { format!("{of}_ms") };
    if timed.starts_with("cold_start_") {
        return Some(Wanted::ColdStart);
    }
    latency(&timed).map(Wanted::Latency)
}

/// The factor from the record's unit to the claim's; none if the metric's name does not imply a unit.
pub(super) fn unit(metric: &str, wanted: Wanted) -> Option<f64> {
    let of_ns = time_unit(metric).map(|(size, _)| 1e-9 / size);
    match wanted {
        Wanted::Of(Metric::Throughput) => Some(1.0),
        Wanted::Latency(_) | Wanted::ColdStart => of_ns,
        // A value that contenders measure themselves is in nanoseconds if it is a time, otherwise as printed.
        Wanted::Of(Metric::Measure) => Some(of_ns.unwrap_or(1.0)),
        Wanted::Memory if metric.ends_with("_mb") => Some(1e-6),
        Wanted::Memory if metric.ends_with("_bytes") => Some(1.0),
        Wanted::Memory | Wanted::Of(_) => None,
    }
}

/// A contender's values in an epoch: one per round, or a single one.
pub(super) fn values(epoch: &Epoch, contender: usize, wanted: Wanted) -> Result<Vec<f64>, HistogramError> {
    let Some(part) = epoch.of(contender) else { return Ok(Vec::new()) };
    let one = |value: Option<f64>| Ok(value.into_iter().collect());
    match wanted {
        Wanted::Of(metric) => Ok(series::values(epoch, contender, metric)?.flat()),
        Wanted::ColdStart => one(Some(part.cold_start_ns as f64).filter(|ns| *ns > 0.0)),
        Wanted::Memory => one(part.usage.pss_bytes.map(|bytes| bytes as f64)),
        Wanted::Latency(place) => {
            if part.latency.0.is_empty() {
                return Ok(Vec::new());
            }
            let all = part.latency.decode()?;
            let some = !all.is_empty();
            one(match place {
                Place::Mean => some.then(|| all.mean()),
                Place::Min => some.then(|| all.min() as f64),
                Place::Max => some.then(|| all.max() as f64),
                Place::Quantile(at) => {
                    (beyond(all.len() as f64, at) >= FEWEST_BEYOND).then(|| all.value_at_quantile(at) as f64)
                }
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_by_their_names() {
        let of = |metric: &str| wanted(metric);
        assert_eq!(of("throughput_ratio"), Some(Wanted::Of(Metric::Throughput)));
        assert_eq!(of("latency_p99_ratio"), Some(Wanted::Latency(Place::Quantile(0.99))));
        assert_eq!(of("latency_max_ms"), Some(Wanted::Latency(Place::Max)));
        assert_eq!([of("cold_start_ms"), of("cold_start_ratio")], [Some(Wanted::ColdStart); 2]);
        assert_eq!([of("rss_mb"), of("serialize_million_s")], [Some(Wanted::Memory), None]);
    }

    #[test]
    fn units_by_their_names() {
        let close = |metric: &str, wanted, expected: f64| {
            let found = unit(metric, wanted).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-12, "{metric}: {found}");
        };
        close("latency_p99_ms", Wanted::Latency(Place::Quantile(0.99)), 1e-6);
        close("cold_start_s", Wanted::ColdStart, 1e-9);
        close("serialize_million_s", Wanted::Of(Metric::Measure), 1e-9);
        close("parse_steps", Wanted::Of(Metric::Measure), 1.0);
        close("rss_mb", Wanted::Memory, 1e-6);
        assert_eq!(unit("rss", Wanted::Memory), None);
    }
}
