//! Extracts a record's values of one metric as plain numbers, and the contests that are judged together.
//!
//! Owns: which pairs and metrics a scenario compares, and which of its rounds and epochs count. Its only arithmetic is the quotient that
//! defines a metric. Must not know: how contests are judged or shown.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use deadheat_record::{
    BEYOND, ContenderEpoch, Epoch, FEWEST_BEYOND, HistogramError, Metric, Record, Round, Slice, beyond,
};
use deadheat_stats::average::mean;
use hdrhistogram::Histogram;

/// One question that a scenario answers: how two contenders compare in a metric. All contests of a scenario are judged together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contest {
    /// The baseline side, as an index into the plan's contenders.
    pub baseline: usize,
    /// The side that the verdict is about, as an index into the plan's contenders.
    pub contender: usize,
    /// The metric.
    pub metric: Metric,
}

/// One contender's values in one epoch.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// One value per kept round, in round order.
    PerRound(Vec<f64>),
    /// One value for the epoch; none if it could not be measured.
    PerEpoch(Option<f64>),
}

impl Values {
    /// Returns all values: one per round, or the single value of the epoch.
    fn all(self) -> Vec<Option<f64>> {
        match self {
            Self::PerRound(rates) => rates.into_iter().map(Some).collect(),
            Self::PerEpoch(value) => vec![value],
        }
    }

    /// Returns the values that could be measured.
    pub(crate) fn flat(self) -> Vec<f64> {
        match self {
            Self::PerRound(rates) => rates,
            Self::PerEpoch(value) => value.into_iter().collect(),
        }
    }
}

/// The two sides of one pair in one epoch: value `n` of each side comes from the same round.
///
/// A metric with one value per epoch has one element on each side, and it is positive. A rate is 0 in a round in which that side answered
/// nothing; the two sides are never both 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairedEpoch {
    /// The number of the epoch within the scenario, from 1.
    pub number: usize,
    /// Values of the baseline side.
    pub baseline: Vec<f64>,
    /// Values of the side that the verdict is about.
    pub contender: Vec<f64>,
    /// The largest error of the log of their ratio that comes from the resolution of the values; 0 for rates and CPU time.
    pub resolution_ln: f64,
}

/// A metric's values, and the largest error of the log of a ratio of two such values that comes from their resolution; 0 if it does not
/// matter.
pub type Seen = (Values, f64);

/// Completions per second of a contender's slice, 0 if it answered nothing. In a scenario without warm-up the slice is divided into windows,
/// and the rate is the time-weighted mean of the windows. None if the contender has no slice.
pub fn rate_per_s(round: &Round, contender: usize) -> Option<f64> {
    let own: Vec<&Slice> = round.slices.iter().filter(|slice| slice.contender == contender).collect();
    let rate = |slice: &Slice| slice.rate_per_s.unwrap_or(0.0);
    match own[..] {
        [] => None,
        [whole] => Some(rate(whole)),
        _ => {
            let ns: u64 = own.iter().map(|window| window.elapsed_ns).sum();
            let all: f64 = own.iter().map(|window| rate(window) * window.elapsed_ns as f64).sum();
            Some(all / ns.max(1) as f64)
        }
    }
}

/// Completions per second of a contender in the kept rounds, in round order: see [`rate_per_s`].
pub fn rates(epoch: &Epoch, contender: usize) -> Vec<f64> {
    let kept = epoch.rounds.iter().filter(|round| round.dropped.is_none());
    kept.filter_map(|round| rate_per_s(round, contender)).collect()
}

/// Completions per second of a contender's CPU time in the kept rounds, in round order. Under a load with a fixed rate, this is the value
/// that grows as a program becomes faster. None if the CPU time was not read.
fn rates_of_cpu(epoch: &Epoch, contender: usize) -> Option<Vec<f64>> {
    let rate = |slice: &Slice| Some(slice.completions as f64 * 1e9 / slice.cpu_ns?.max(1) as f64);
    kept(epoch, contender).map(rate).collect()
}

/// A contender's slices in the kept rounds.
pub(crate) fn kept(epoch: &Epoch, contender: usize) -> impl Iterator<Item = &Slice> {
    let rounds = epoch.rounds.iter().filter(|round| round.dropped.is_none());
    rounds.flat_map(|round| &round.slices).filter(move |slice| slice.contender == contender)
}

/// The share of due requests that a contender kept up with in the kept rounds, 0 to 1: the share that it answered, minus the share by which its
/// backlog grew. The rate of a slice already excludes that growth: see `deadheat_load::Tally::achieved_share`.
pub(crate) fn achieved_share<'e>(
    epochs: impl Iterator<Item = &'e Epoch>,
    contender: usize,
    slice_ns: u64,
) -> Option<f64> {
    let (mut kept_up, mut due) = (0.0, 0);
    for epoch in epochs {
        for slice in kept(epoch, contender) {
            kept_up += slice.rate_per_s.unwrap_or(0.0) * slice_ns as f64 / 1e9;
            due += slice.completions;
        }
        // Wrong answers are among the completions.
        due += unanswered(epoch, contender);
    }
    (due > 0).then(|| (kept_up / due as f64).min(1.0))
}

/// Number of a contender's requests in the kept rounds that never got a complete answer.
pub fn unanswered(epoch: &Epoch, contender: usize) -> u64 {
    let all = epoch.of(contender).map_or(0, |part| part.outcomes.unanswered());
    // A slice counts wrong answers as failed, too.
    kept(epoch, contender).map(|slice| slice.failed).sum::<u64>().min(all)
}

/// Share, 0 to 1, of a contender's requests in the kept rounds that never got a complete answer.
///
/// # Errors
/// When the record's latencies cannot be decoded.
pub(crate) fn unanswered_share(epoch: &Epoch, contender: usize) -> Result<f64, HistogramError> {
    let (unanswered, Some(part)) = (unanswered(epoch, contender), epoch.of(contender)) else {
        return Ok(0.0);
    };
    if unanswered == 0 {
        return Ok(0.0);
    }
    Ok(unanswered as f64 / (part.latency.decode()?.len() + unanswered) as f64)
}

/// CPU time per completion in the kept rounds. In older records, whose slices have no CPU time, in all rounds unless all were dropped.
fn cpu_per_request_ns(epoch: &Epoch, part: &ContenderEpoch) -> Option<f64> {
    let (ns, completions) = cpu_and_completions(epoch, part)?;
    (completions > 0).then(|| ns as f64 / completions as f64)
}

/// A contender's CPU time in nanoseconds and its completions, from the same rounds as its [`Metric::Cpu`]; none if all rounds were dropped.
pub fn cpu_and_completions(epoch: &Epoch, part: &ContenderEpoch) -> Option<(u64, u64)> {
    let kept: Option<Vec<(u64, u64)>> =
        kept(epoch, part.contender).map(|slice| Some((slice.cpu_ns?, slice.completions))).collect();
    match kept.filter(|all| !all.is_empty()) {
        Some(all) => Some(all.into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))),
        None if epoch.is_disturbed() => None,
        None => Some((part.usage.cpu_ns, part.completions)),
    }
}

/// A contender's values of a metric. A percentile needs at least [`FEWEST_BEYOND`] requests beyond it. Whether the planned requests suffice
/// is a question about the whole scenario: see [`metrics`].
///
/// # Errors
/// When the record has an unreadable histogram.
pub fn values(epoch: &Epoch, contender: usize, metric: Metric) -> Result<Values, HistogramError> {
    Ok(seen(epoch, contender, metric)?.0)
}

/// The same as [`values`], with the largest error of the log of a ratio of two such values that comes from their resolution.
///
/// # Errors
/// As [`values`].
pub fn seen(epoch: &Epoch, contender: usize, metric: Metric) -> Result<Seen, HistogramError> {
    let mut all = values_of(epoch, &[(contender, metric)])?;
    Ok(all.remove(&(contender, metric)).unwrap_or((Values::PerEpoch(None), 0.0)))
}

/// Values of several contenders and metrics. It reads each histogram once.
fn values_of(
    epoch: &Epoch,
    wanted: &[(usize, Metric)],
) -> Result<BTreeMap<(usize, Metric), Seen>, HistogramError> {
    let mut histograms: BTreeMap<usize, Option<Histogram<u64>>> = BTreeMap::new();
    let mut values = BTreeMap::new();
    for &(contender, metric) in wanted {
        let part = epoch.of(contender);
        let mut step = 0.0;
        let value = match (metric, metric.quantile()) {
            (Metric::Throughput, _) => Values::PerRound(rates(epoch, contender)),
            (_, Some(at)) => {
                let histogram = match histograms.entry(contender) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(part.map(|part| part.latency.decode()).transpose()?),
                };
                let some = histogram.as_ref().filter(|all| beyond(all.len() as f64, at) >= FEWEST_BEYOND);
                let found = some.map(|all| (all, at_rank(all, unanswered(epoch, contender), at)));
                step = found.map_or(0.0, |(all, ns)| step_ln(all.equivalent_range(ns) as f64, ns as f64));
                Values::PerEpoch(found.map(|(_, ns)| ns as f64))
            }
            // A start or a command has a round to itself, and has no value if that round was disturbed.
            (Metric::ColdStart, None) => {
                Values::PerEpoch(part.filter(|_| !epoch.is_disturbed()).map(|part| part.cold_start_ns as f64))
            }
            (Metric::Measure, None) => {
                let part = part.filter(|_| !epoch.is_disturbed());
                let both = part.and_then(|part| part.measured_step.zip(part.measured));
                step = both.map_or(0.0, |(step, value)| step_ln(step, value));
                Values::PerEpoch(part.and_then(|part| part.measured))
            }
            (Metric::Memory, None) => {
                Values::PerEpoch(part.and_then(|part| part.usage.pss_bytes).map(|bytes| bytes as f64))
            }
            (Metric::Peak, None) => Values::PerEpoch(part.and_then(|part| part.peak?.found())),
            // The percentiles are handled above. They are listed here so that a new metric cannot compile as CPU time by accident.
            (Metric::Cpu | Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999, None) => {
                Values::PerEpoch(part.and_then(|part| cpu_per_request_ns(epoch, part)))
            }
        };
        values.insert((contender, metric), (value, step));
    }
    Ok(values)
}

/// Both sides of every contest; none if any side has nothing to compare.
fn paired(epoch: &Epoch, contests: &[Contest]) -> Result<Option<Vec<PairedEpoch>>, HistogramError> {
    let sides = contests.iter().flat_map(|one| [(one.baseline, one.metric), (one.contender, one.metric)]);
    let sides: Vec<(usize, Metric)> = sides.collect();
    if sides.iter().any(|(contender, _)| epoch.of(*contender).is_none()) {
        return Ok(None);
    }
    let values = values_of(epoch, &sides)?;
    let side = |contender: usize, metric: Metric| {
        let (of_side, step) = values.get(&(contender, metric)).cloned()?;
        // Only a rate can be 0. Any other value that is not positive was not measured.
        let least = if matches!(of_side, Values::PerRound(_)) { 0.0 } else { f64::MIN_POSITIVE };
        Some((of_side.all(), step, least))
    };
    let pair = |one: &Contest| {
        let (left, step, least) = side(one.baseline, one.metric)?;
        let (right, other_step, _) = side(one.contender, one.metric)?;
        let resolution_ln = step.max(other_step);
        pair_up(&left, &right, least).map(|pair| PairedEpoch { number: epoch.number, resolution_ln, ..pair })
    };
    Ok(contests.iter().map(pair).collect())
}

/// The latency that a share of all requests does not exceed. Requests that never got an answer count as the slowest. If the rank falls among
/// those, it returns the longest measured latency.
pub(crate) fn at_rank(answered: &Histogram<u64>, unanswered: u64, quantile: f64) -> u64 {
    let (all, some) = ((answered.len() + unanswered) as f64, answered.len().max(1) as f64);
    answered.value_at_quantile((quantile * (all / some)).min(1.0))
}

/// The largest error of the log of a ratio of two values of this size, each known to within half a step: twice the error of one side. A value
/// no larger than a step counts as one step.
fn step_ln(step: f64, value: f64) -> f64 {
    let half = if value > 0.0 { (step / value).min(1.0) / 2.0 } else { 0.0 };
    half.ln_1p() - (-half).ln_1p()
}

/// The values that both sides have at the same positions, each at least `least`. None if there are no values, or the rounds of the sides
/// differ. It skips a round in which neither side answered.
fn pair_up(left: &[Option<f64>], right: &[Option<f64>], least: f64) -> Option<PairedEpoch> {
    if left.len() != right.len() {
        return None;
    }
    let usable = |value: Option<f64>| value.filter(|number| number.is_finite() && *number >= least);
    let sides = left.iter().zip(right).filter_map(|(left, right)| Some((usable(*left)?, usable(*right)?)));
    let (baseline, contender): (Vec<f64>, Vec<f64>) =
        sides.filter(|(left, right)| *left > 0.0 || *right > 0.0).unzip();
    let answered = |side: &[f64]| side.iter().any(|value| *value > 0.0);
    let both = answered(&baseline) && answered(&contender);
    both.then_some(PairedEpoch { baseline, contender, ..PairedEpoch::default() })
}

/// The pairs that a scenario compares, as indices into the plan: first the baseline, then the contender that the verdict is about.
pub fn pairs(record: &Record, scenario: &str) -> Vec<(usize, usize)> {
    let racing = record.racing(scenario);
    let named = racing
        .iter()
        .copied()
        .find(|index| record.plan.contenders[*index].name == record.plan.method.baseline);
    let Some(baseline) = named.or_else(|| racing.first().copied()) else { return Vec::new() };
    let others: Vec<usize> = racing.into_iter().filter(|index| *index != baseline).collect();
    let mut pairs: Vec<(usize, usize)> = others.iter().map(|other| (baseline, *other)).collect();
    if record.plan.method.all_pairs {
        for (place, first) in others.iter().enumerate() {
            pairs.extend(others[place + 1..].iter().map(|second| (*first, *second)));
        }
    }
    pairs
}

/// A contender's [`rates`] for each epoch of a scenario that it took part in.
pub fn rates_by_epoch(record: &Record, scenario: &str, contender: usize) -> Vec<Vec<f64>> {
    let epochs = record.epochs_of(scenario).filter(|epoch| epoch.of(contender).is_some());
    epochs.map(|epoch| rates(epoch, contender)).collect()
}

/// How fast a contender worked in each kept round, for each epoch of a scenario that it took part in: its rate, or under a load with a fixed
/// rate its completions per second of CPU time.
pub fn paces(record: &Record, scenario: &str, contender: usize) -> Vec<Vec<f64>> {
    let epochs = record.epochs_of(scenario).filter(|epoch| epoch.of(contender).is_some());
    epochs.map(|epoch| paces_in(record, epoch, contender)).collect()
}

/// One epoch of [`paces`].
fn paces_in(record: &Record, epoch: &Epoch, contender: usize) -> Vec<f64> {
    match record.plan.scenario(&epoch.scenario).is_some_and(|one| one.shape.rate_per_s().is_some()) {
        // Slices of older records have no CPU time.
        true => rates_of_cpu(epoch, contender).unwrap_or_default(),
        false => rates(epoch, contender),
    }
}

/// How fast each of the contenders worked in each epoch that all of them took part in, on average over its kept rounds: see [`paces`].
pub fn epoch_paces(record: &Record, scenario: &str, contenders: &[usize]) -> Vec<Vec<f64>> {
    let of =
        |epoch: &Epoch, contender: usize| mean(paces_in(record, epoch, contender)).filter(|pace| *pace > 0.0);
    let epochs = record.epochs_of(scenario);
    epochs.filter_map(|epoch| contenders.iter().map(|one| of(epoch, *one)).collect()).collect()
}

/// The values from which `contests` are judged: `[contest][epoch]`, in time order.
///
/// A pair skips a round in which neither of its sides answered anything. An epoch counts for all contests or for none: it is left out if any
/// contest has nothing to compare in it, or has different rounds on its two sides.
///
/// # Errors
/// When the record has an unreadable histogram.
pub fn paired_epochs(
    record: &Record,
    scenario: &str,
    contests: &[Contest],
) -> Result<Vec<Vec<PairedEpoch>>, HistogramError> {
    let mut series = vec![Vec::new(); contests.len()];
    for epoch in record.epochs_of(scenario) {
        for (of_contest, one) in series.iter_mut().zip(paired(epoch, contests)?.into_iter().flatten()) {
            of_contest.push(one);
        }
    }
    // Epochs that a contender spoilt count again after it is excluded, so there can be more than the race's rules allow; this truncates them.
    // If no contender is excluded, extra epochs are an error, which the referee reports.
    let plan = record.plan.scenario(scenario).filter(|_| !record.out.is_empty());
    let most = plan.and_then(|one| record.plan.method_of(one).looks.last().copied());
    for of_contest in &mut series {
        of_contest.truncate(most.unwrap_or(usize::MAX));
    }
    Ok(series)
}

/// The number of epochs of a scenario that count: `of_pairs` if it compares pairs, since an epoch counts for all contests or for none.
/// Otherwise every epoch counts unless all its rounds were dropped.
pub(crate) fn counted(record: &Record, scenario: &str, of_pairs: Option<usize>) -> usize {
    let undisturbed = || record.epochs_of(scenario).filter(|epoch| !epoch.is_disturbed()).count();
    of_pairs.unwrap_or_else(undisturbed)
}

/// The metrics that a scenario is to compare, each with whether it can. A percentile needs at least [`BEYOND`] requests beyond it for every
/// contender in the first epoch, and a peak must be found there. Before the first epoch, every metric can.
pub fn metrics(record: &Record, scenario: &str) -> Vec<(Metric, bool)> {
    let Some(plan) = record.plan.scenario(scenario) else { return Vec::new() };
    let metrics = record.plan.metrics(plan).into_iter();
    let Some(first) = record.epochs_of(scenario).next() else {
        return metrics.map(|metric| (metric, true)).collect();
    };
    let racing = record.racing(scenario);
    let parts: Vec<&ContenderEpoch> = racing.into_iter().filter_map(|one| first.of(one)).collect();
    // This counts all rounds: disturbances in the first epoch do not predict those in later epochs.
    let fewest = parts.iter().map(|part| part.completions).min().unwrap_or(u64::MAX);
    let can = |metric: Metric| match (metric, metric.quantile()) {
        (_, Some(at)) => beyond(fewest as f64, at) >= BEYOND,
        (Metric::Peak, _) => parts.iter().all(|part| part.peak.is_some_and(|peak| peak.found().is_some())),
        _ => true,
    };
    metrics.map(|metric| (metric, can(metric))).collect()
}

/// Whether a contender has at least [`BEYOND`] requests beyond a metric's percentile in its first epoch. It also accepts metrics that the
/// race was not about, and is true for metrics that are not percentiles.
pub fn has_tail(record: &Record, scenario: &str, contender: usize, metric: Metric) -> bool {
    let first = record.epochs_of(scenario).find_map(|epoch| epoch.of(contender));
    metric.quantile().zip(first).is_none_or(|(at, part)| beyond(part.completions as f64, at) >= BEYOND)
}

/// The contests of a scenario: every pair in every metric that can be compared, metric by metric.
pub fn contests(record: &Record, scenario: &str) -> Vec<Contest> {
    let pairs = pairs(record, scenario);
    let of_metric = |metric: Metric| {
        pairs.iter().map(move |(baseline, contender)| Contest {
            baseline: *baseline,
            contender: *contender,
            metric,
        })
    };
    let metrics = metrics(record, scenario).into_iter().filter(|(_, can)| *can);
    metrics.flat_map(|(metric, _)| of_metric(metric)).collect()
}
