//! What is said of metrics that a scenario asks for and cannot compare.
//!
//! Owns the wording. Must not know when that is so: the record says it.

use deadheat_record::{BEYOND, Finding};

use super::Scene;
use crate::number::whole;

/// Percentiles with too few requests beyond them; invalid when no other metric is left.
pub(super) fn unavailable(scene: &Scene<'_>) -> Vec<Finding> {
    let metrics = scene.record.metrics(&scene.plan.name).unwrap_or_default();
    let none_left = !metrics.is_empty() && metrics.iter().all(|(_, can)| !can);
    let first = scene.epochs.first();
    let fewest = first.and_then(|epoch| epoch.contenders.iter().map(|part| part.completions).min());
    let missing = metrics.into_iter().filter(|(_, can)| !can);
    let finding = |(metric, _): (deadheat_record::Metric, bool)| {
        let beyond = fewest.unwrap_or(0) as f64 * (1.0 - metric.quantile().unwrap_or(1.0));
        let message = format!(
            "{} is not compared: an epoch has {} requests beyond it, and it takes {BEYOND}",
            metric.word(),
            whole(beyond as u64)
        );
        let remedy = "measure longer with --measure, or raise the --rate";
        match none_left {
            true => Finding::invalid("metric-unavailable", message, remedy),
            false => Finding::warn("metric-unavailable", message, remedy),
        }
    };
    missing.map(finding).collect()
}
