//! The results of each contender in a scenario: rates, latency, CPU, memory, cold start, outcomes.
//!
//! Owns the sums, means and medians over epochs. The submodules derive results from several contenders or scenarios together.

pub(crate) mod collector;
pub(crate) mod comparisons;
pub(crate) mod edge;
pub(crate) mod ladder;
pub(crate) mod load_hosts;
pub(crate) mod profile;
pub(crate) mod shift;
pub(crate) mod sweep;

use std::collections::BTreeMap;

use deadheat_record::{
    ContenderEpoch, EncodedHistogram, Epoch, HistogramError, Metric, Outcomes, Quantiles, Record, Throttling,
    Usage, VerdictWord, curve,
};
use deadheat_stats::Sample;
use deadheat_stats::average::{geometric_mean, mean, median};

use crate::report::{Comparison, ContenderResult, EpochFigures, Figure};
use crate::series::{self, Values};

/// One result per contender in the scenario, in plan order.
pub(crate) fn of(record: &Record, scenario: &str) -> Result<Vec<ContenderResult>, HistogramError> {
    record.racing(scenario).into_iter().map(|contender| one(record, scenario, contender)).collect()
}

/// Indices into `results`, best first in `metric`. The order follows the ratios to the common baseline in `comparisons`, because verdicts
/// come from them; a contender that is faster than another by a verdict always precedes it. Without ratios the order follows the
/// contenders' values; those without a value come last.
pub(crate) fn order(results: &[ContenderResult], metric: Metric, comparisons: &[&Comparison]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..results.len()).collect();
    order.sort_by(|a, b| figure(&results[*a], metric).total_cmp(&figure(&results[*b], metric)));
    let Some(baseline) = comparisons.first().map(|one| one.baseline.as_str()) else { return order };
    if comparisons.iter().all(|one| one.ratio.is_none()) {
        return order;
    }
    let to_baseline = |index: &usize| {
        let name = results[*index].contender.as_str();
        let compared = comparisons.iter().find(|one| one.baseline == baseline && one.contender == name);
        let ratio = if name == baseline { Some(1.0) } else { compared.and_then(|one| one.ratio) };
        ratio.map_or(f64::INFINITY, |ratio| if metric.more_is_better() { -ratio } else { ratio })
    };
    order.sort_by(|a, b| to_baseline(a).total_cmp(&to_baseline(b)));
    let is_better = |one: usize, other: usize| {
        let (one, other) = (results[one].contender.as_str(), results[other].contender.as_str());
        comparisons.iter().any(|pair| match pair.verdict {
            VerdictWord::Faster => pair.contender == one && pair.baseline == other,
            VerdictWord::Slower => pair.baseline == one && pair.contender == other,
            _ => false,
        })
    };
    // Ratios of trimmed means are not transitive: a pair's ratio may differ from the quotient of two others, and a pair that was decided
    // early may have drifted since. Only such a drift can make verdicts circular, so the number of rounds is limited.
    for _ in 0..order.len() * order.len() {
        let wrong = (1..order.len())
            .find_map(|back| Some((back, (0..back).find(|front| is_better(order[back], order[*front]))?)));
        let Some((back, front)) = wrong else { break };
        let better = order.remove(back);
        order.insert(front, better);
    }
    order
}

/// A contender's value in a metric with the sign that makes the best the smallest; infinite without a value.
fn figure(result: &ContenderResult, metric: Metric) -> f64 {
    let sign = if metric.more_is_better() { -1.0 } else { 1.0 };
    result.value(metric).map_or(f64::INFINITY, |value| sign * value)
}

fn one(record: &Record, scenario: &str, contender: usize) -> Result<ContenderResult, HistogramError> {
    let parts: Vec<&ContenderEpoch> =
        record.epochs_of(scenario).filter_map(|epoch| epoch.of(contender)).collect();
    let plan = record.plan.scenario(scenario);
    // Most trials of a search have too high a rate, so their rates and latencies are not the contender's.
    let searched = plan.is_some_and(|plan| plan.shape.objective().is_some() || !plan.shape.is_load());
    let starts = plan.is_some_and(|plan| plan.shape.starts().is_some());
    let measures = plan.is_some_and(|plan| plan.shape.measure().is_some());
    let kept = record.epochs_of(scenario).filter(|epoch| !epoch.is_disturbed());
    let kept: Vec<&ContenderEpoch> = kept.filter_map(|epoch| epoch.of(contender)).collect();
    // If the scenario compares starts, only those that count.
    let started = if starts { &kept } else { &parts };
    let merged = EncodedHistogram::merge(parts.iter().map(|part| &part.latency))?;
    let sum = |value: fn(&ContenderEpoch) -> u64| parts.iter().map(|part| value(part)).sum::<u64>();
    let outcomes = parts.iter().fold(Outcomes::default(), |mut sum, part| {
        sum.add(&part.outcomes);
        sum
    });
    let (cpu_ns, completions) = (sum(|part| part.usage.cpu_ns), sum(|part| part.completions));
    let counted = record.epochs_of(scenario);
    let counted = counted.filter_map(|epoch| series::cpu_and_completions(epoch, epoch.of(contender)?));
    let counted = counted.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    // If all rounds were dropped, this uses the CPU time and completions of the dropped rounds.
    let cpu_us_per_request = cpu_us(counted.0, counted.1).or_else(|| cpu_us(cpu_ns, completions));
    let split = cpu_us_per_request.zip(user_share(&parts)).map(|(us, share)| (us * share, us - us * share));
    let cores = plan.and_then(|plan| plan.limits.cores(record.plan.pinning.server_cpus.len()));
    let services_ns = parts.iter().filter_map(|part| part.usage.services_cpu_ns).reduce(|sum, ns| sum + ns);
    let cores_ns = sum(|part| part.loaded_ns) as f64 * record.plan.pinning.server_cpus.len() as f64;
    let available_ns = sum(|part| part.loaded_ns) as f64 * cores.unwrap_or(0.0);
    let pilots = record.pilots.iter().filter(|one| one.scenario == scenario).flat_map(|one| &one.contenders);
    let pilot = pilots.rev().find(|one| one.contender == record.plan.contenders[contender].name);
    Ok(ContenderResult {
        contender: record.plan.contenders[contender].name.clone(),
        throughput_rps: if searched {
            None
        } else {
            throughput(series::rates_by_epoch(record, scenario, contender))
        },
        peak_rps: geometric_mean(parts.iter().filter_map(|part| part.peak?.found())),
        offered_rps: offered(record, scenario, parts.len(), outcomes.total()),
        achieved_share: plan.filter(|plan| plan.shape.rate_per_s().is_some()).and_then(|plan| {
            let slice_ns = record.plan.slices(plan).slice_ns;
            series::achieved_share(record.epochs_of(scenario), contender, slice_ns)
        }),
        latency_ns: merged.as_ref().map_or_else(Quantiles::default, Quantiles::of),
        latency_curve: merged.as_ref().map_or_else(Vec::new, curve),
        cpu_us_per_request,
        user_us_per_request: split.map(|(user, _)| user),
        system_us_per_request: split.map(|(_, system)| system),
        instructions_per_request: pilot.and_then(|one| one.instructions_per_request),
        instructions_source: pilot.and_then(|one| one.instructions_source.clone()),
        switches_per_request: per_request(&parts, |usage| {
            Some(usage.voluntary_switches? + usage.involuntary_switches?)
        }),
        involuntary_switches_per_request: per_request(&parts, |usage| usage.involuntary_switches),
        cpu_share: (available_ns > 0.0).then(|| cpu_ns as f64 / available_ns),
        services_us_per_request: services_ns.and_then(|ns| cpu_us(ns, completions)),
        services_share: services_ns.filter(|_| cores_ns > 0.0).map(|ns| ns as f64 / cores_ns),
        received_bytes_per_s: received_per_s(&parts),
        processes: parts.iter().map(|part| part.usage.processes).max().filter(|most| *most > 0),
        throttled: parts.iter().filter_map(|part| part.throttled).reduce(Throttling::plus),
        rss_bytes: median_of(parts.iter().filter_map(|part| part.usage.pss_bytes)),
        peak_rss_bytes: parts.iter().filter_map(|part| part.usage.peak_pss_bytes).max(),
        cold_start_ns: median_of(started.iter().map(|part| part.cold_start_ns)).filter(|_| !measures),
        cold_starts_ns: kept.iter().filter(|_| starts).map(|part| part.cold_start_ns).collect(),
        measured: geometric_mean(kept.iter().filter_map(|part| part.measured)),
        artefact_bytes: record.plan.contenders[contender].artefact_bytes,
        outcomes,
        status: statuses(&parts),
        figures: figures(record, scenario, contender)?,
        letters: String::new(),
        epochs: record
            .epochs_of(scenario)
            .filter_map(|epoch| Some(in_epoch(epoch, epoch.of(contender)?, searched)))
            .collect(),
    })
}

fn cpu_us(cpu_ns: u64, completions: u64) -> Option<f64> {
    (completions > 0).then(|| cpu_ns as f64 / completions as f64 / 1e3)
}

/// The share of CPU time in user mode, over the epochs that have it.
fn user_share(parts: &[&ContenderEpoch]) -> Option<f64> {
    let known = parts.iter().filter_map(|part| part.usage.user_ns.zip(part.usage.system_ns));
    let (user, system) = known.reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))?;
    (user + system > 0).then(|| user as f64 / (user + system) as f64)
}

/// A count of the process tree per completion, over the epochs that have it.
fn per_request(parts: &[&ContenderEpoch], count: fn(&Usage) -> Option<u64>) -> Option<f64> {
    let known = parts.iter().filter_map(|part| Some((count(&part.usage)?, part.completions)));
    let (sum, completions) = known.reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))?;
    (completions > 0).then(|| sum as f64 / completions as f64)
}

/// Bytes of answers per second of load, over the epochs that counted them.
fn received_per_s(parts: &[&ContenderEpoch]) -> Option<f64> {
    let known = parts.iter().filter_map(|part| Some((part.bytes_read?, part.loaded_ns)));
    let (bytes, loaded_ns) = known.reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))?;
    (loaded_ns > 0).then(|| bytes as f64 * 1e9 / loaded_ns as f64)
}

/// Number of answers per status code.
fn statuses(parts: &[&ContenderEpoch]) -> BTreeMap<u16, u64> {
    let mut sum = BTreeMap::new();
    for (status, count) in parts.iter().flat_map(|part| &part.status) {
        *sum.entry(*status).or_default() += count;
    }
    sum
}

fn in_epoch(epoch: &Epoch, part: &ContenderEpoch, searched: bool) -> EpochFigures {
    EpochFigures {
        epoch: epoch.number,
        throughput_rps: mean(series::rates(epoch, part.contender)).filter(|_| !searched),
        cpu_us_per_request: series::cpu_and_completions(epoch, part)
            .and_then(|(ns, count)| cpu_us(ns, count)),
        rss_bytes: part.usage.pss_bytes,
        peak_rss_bytes: part.usage.peak_pss_bytes,
        cold_start_ns: part.cold_start_ns,
    }
}

/// Two-sided error rate of the intervals that no verdict rests on.
const FIGURE_ALPHA: f64 = 0.05;

/// A contender's value over epochs in every metric that can be compared.
fn figures(record: &Record, scenario: &str, contender: usize) -> Result<Vec<Figure>, HistogramError> {
    let mut figures = Vec::new();
    for (metric, _) in series::metrics(record, scenario).into_iter().filter(|(_, can)| *can) {
        let mut logs = Vec::new();
        for epoch in record.epochs_of(scenario).filter(|epoch| epoch.of(contender).is_some()) {
            let value = match series::values(epoch, contender, metric)? {
                Values::PerRound(rates) => mean(rates),
                Values::PerEpoch(value) => value,
            };
            logs.extend(value.filter(|value| *value > 0.0 && value.is_finite()).map(f64::ln));
        }
        let Some(sample) = Sample::of(&logs) else { continue };
        let ends = sample.t_interval(FIGURE_ALPHA);
        let shown = |log: f64| log.exp() * metric.row().unit.scale();
        let (low, high) = (ends.map(|ends| shown(ends.low)), ends.map(|ends| shown(ends.high)));
        figures.push(Figure { metric, value: shown(sample.mean), low, high });
    }
    Ok(figures)
}

/// Requests due per second of the slices, under an open load.
fn offered(record: &Record, scenario: &str, epochs: usize, due: u64) -> Option<f64> {
    let plan = record.plan.scenario(scenario).filter(|plan| plan.shape.rate_per_s().is_some())?;
    let planned_s = record.plan.slices(plan).measured_ns() as f64 / 1e9 * epochs as f64;
    (planned_s > 0.0).then(|| due as f64 / planned_s)
}

/// Mean over epochs of the mean of their slices' rates. It skips epochs whose rounds were all dropped.
pub(crate) fn throughput(epochs: impl IntoIterator<Item = Vec<f64>>) -> Option<f64> {
    mean(epochs.into_iter().filter_map(mean))
}

/// Median of whole numbers, rounded down.
fn median_of(values: impl Iterator<Item = u64>) -> Option<u64> {
    median(values.map(|value| value as f64)).map(|middle| middle as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_of_the_epochs_that_have_them() {
        let part = |user_ns, system_ns, involuntary_switches, completions| ContenderEpoch {
            completions,
            usage: Usage { user_ns, system_ns, involuntary_switches, ..Usage::default() },
            ..ContenderEpoch::default()
        };
        let (one, other) = (part(Some(60), Some(20), Some(30), 10), part(Some(30), Some(10), Some(50), 30));
        let (older, idle) = (part(None, None, None, 1_000), part(Some(0), Some(0), Some(0), 0));
        assert_eq!(user_share(&[&one, &other, &older]), Some(0.75));
        assert_eq!([user_share(&[&older]), user_share(&[&idle]), user_share(&[])], [None; 3]);
        let switches = |parts: &[&ContenderEpoch]| per_request(parts, |usage| usage.involuntary_switches);
        assert_eq!(switches(&[&one, &other, &older]), Some(2.0));
        assert_eq!([switches(&[&older]), switches(&[&idle])], [None; 2]);
    }

    #[test]
    fn what_came_in_is_of_the_epochs_that_counted_it() {
        let part =
            |bytes_read, loaded_ns| ContenderEpoch { bytes_read, loaded_ns, ..ContenderEpoch::default() };
        let (one, other, older) =
            (part(Some(3_000), 500_000_000), part(Some(6_000), 1_000_000_000), part(None, 9));
        assert_eq!(received_per_s(&[&one, &other, &older]), Some(6_000.0));
        assert_eq!([received_per_s(&[&older]), received_per_s(&[&part(Some(0), 0)])], [None; 2]);
    }

    #[test]
    fn every_epoch_weighs_the_same_however_many_rounds_it_kept() {
        assert_eq!(throughput([vec![1.0, 3.0], vec![], vec![10.0]]), Some(6.0));
        assert_eq!(throughput([vec![], vec![]]), None);
    }
}
