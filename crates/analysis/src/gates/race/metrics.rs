//! Findings on metrics that a scenario asks for and cannot compare.
//!
//! Owns the wording. Must not know when a metric cannot be compared: the record says it.

use deadheat_record::{BEYOND, ContenderEpoch, Epoch, Finding, Metric, PeakEnd, Severity, beyond};

use super::scene::Scene;
use crate::gates::table::{self, By};
use crate::number::{three_digits, whole};
use crate::series;

/// Percentiles with too few requests beyond them; invalid if no other metric is left.
pub(super) fn unavailable(scene: &Scene<'_>) -> Vec<Finding> {
    let metrics = series::metrics(scene.record, &scene.plan.name);
    let none_left = !metrics.is_empty() && metrics.iter().all(|(_, can)| !can);
    let first = scene.epochs.first();
    let fewest = first.and_then(|epoch| epoch.contenders.iter().map(|part| part.completions).min());
    let missing = metrics.into_iter().filter(|(_, can)| !can);
    let finding = |(metric, _): (Metric, bool)| {
        if metric == Metric::Peak {
            return Vec::new();
        }
        let beyond = beyond(fewest.unwrap_or(0) as f64, metric.quantile().unwrap_or(1.0));
        let message = format!(
            "{} is not compared: an epoch has only {} requests beyond it, but needs {BEYOND}",
            metric.word(),
            whole(beyond as u64)
        );
        let severity = if none_left { Severity::Invalid } else { Severity::Warn };
        let finding = table::METRIC_UNAVAILABLE.finding(By::Race, severity, message);
        vec![Finding { metrics: vec![metric], ..finding }]
    };
    missing.flat_map(finding).chain(peaks_not_found(scene)).collect()
}

/// Contenders whose peak was not found: in the first epoch, after which the scenario ends, or in a later one, which is then left out for all
/// contenders. A peak outside the tested range, or beyond the generator's ceiling, is a valid outcome. Without those epochs, the verdict
/// would rest on the contender's good epochs alone or its bad epochs alone, so there is no verdict. A search that stopped because the machine
/// disturbed it says nothing about the contender.
fn peaks_not_found(scene: &Scene<'_>) -> Vec<Finding> {
    let finding = |(epoch, part): (&Epoch, &ContenderEpoch)| {
        let peak = part.peak?;
        let rate = three_digits(peak.rate_per_s);
        let (message, case) = match peak.end {
            PeakEnd::Found => return None,
            PeakEnd::AtLeast => {
                (format!("it meets the objective even at {rate}/s, the highest rate tried"), 0)
            }
            PeakEnd::Below => (format!("it misses the objective even at {rate}/s, the lowest rate tried"), 1),
            PeakEnd::GaveUp => (format!("trials at {rate}/s were disturbed again and again"), 2),
            PeakEnd::Generator => (format!("the generator could not keep up with trials at {rate}/s"), 3),
        };
        let name = &scene.record.plan.contenders[part.contender].name;
        let first = scene.epochs.first().is_some_and(|first| first.number == epoch.number);
        let (severity, message) = match (first, peak.end) {
            (true, _) => (Severity::Invalid, message),
            (false, PeakEnd::AtLeast | PeakEnd::Below | PeakEnd::Generator) => {
                (Severity::Invalid, format!("in epoch {}: {message}", epoch.number))
            }
            (false, _) => (Severity::Warn, format!("epoch {} is left out: {message}", epoch.number)),
        };
        let remedy = table::PEAK_NOT_FOUND.remedy(By::Race, case).to_owned();
        let all = Finding { remedy, ..table::PEAK_NOT_FOUND.finding(By::Race, severity, message) };
        Some(all.about(name))
    };
    let parts = scene.epochs.iter().flat_map(|epoch| epoch.contenders.iter().map(move |part| (*epoch, part)));
    parts.filter_map(finding).collect()
}
