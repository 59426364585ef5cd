//! What a record holds of one metric, taken out as plain numbers, and the contests that are judged together.
//!
//! Owns: which pairs and metrics a scenario compares, and which of its rounds and epochs count. No arithmetic beyond a quotient that a
//! metric is defined by. Must not know: how contests are judged or shown.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use deadheat_record::{
    BEYOND, ContenderEpoch, Epoch, FEWEST_BEYOND, HistogramError, Metric, Record, Round, Slice, beyond,
};
use hdrhistogram::Histogram;

/// One question that a scenario answers: how two contenders compare in a metric. All contests of a scenario are judged
/// together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contest {
    /// The side that is compared with, as an index into the plan's contenders.
    pub baseline: usize,
    /// The side that the verdict speaks of.
    pub contender: usize,
    /// What is compared.
    pub metric: Metric,
}

/// One contender's values in one epoch.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// One value per kept round, in round order.
    PerRound(Vec<f64>),
    /// One value for the epoch; none when it could not be measured.
    PerEpoch(Option<f64>),
}

impl Values {
    /// All values: one per round, or at the most one.
    fn all(self) -> Vec<Option<f64>> {
        match self {
            Self::PerRound(rates) => rates.into_iter().map(Some).collect(),
            Self::PerEpoch(value) => vec![value],
        }
    }
}

/// The two sides of one pair in one epoch: value `n` of either was taken in the same round.
///
/// Metrics that have one value for the whole of an epoch have one element on each side, which is positive. A rate is 0 in a round in which
/// that side answered nothing; not both are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairedEpoch {
    /// Of the side that is compared with.
    pub baseline: Vec<f64>,
    /// Of the side that the verdict speaks of.
    pub contender: Vec<f64>,
    /// So much may the log of their ratio be off, because neither value is known any finer: 0 of rates and of CPU time.
    pub resolution_ln: f64,
}

/// A metric's values, and by how much the log of a ratio of two such may be off for their steps: 0 where it does not matter.
pub type Seen = (Values, f64);

/// Completions per second of a contender's slice, 0 where nothing was answered; the mean over time of the windows into
/// which it is cut where nothing was warmed up. None where the contender has no slice.
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

/// Completions per second of a contender in the rounds that were kept, in round order: see [`rate_per_s`].
pub fn rates(epoch: &Epoch, contender: usize) -> Vec<f64> {
    let kept = epoch.rounds.iter().filter(|round| round.dropped.is_none());
    kept.filter_map(|round| rate_per_s(round, contender)).collect()
}

/// What a contender did per second of its own CPU time, in the rounds that were kept: completions, in round order. Where a rate is
/// given, this is what grows while a program becomes faster. None where it was not read.
fn rates_of_cpu(epoch: &Epoch, contender: usize) -> Option<Vec<f64>> {
    let rate = |slice: &Slice| Some(slice.completions as f64 * 1e9 / slice.cpu_ns?.max(1) as f64);
    kept(epoch, contender).map(rate).collect()
}

/// A contender's slices of the rounds that were kept.
pub(crate) fn kept(epoch: &Epoch, contender: usize) -> impl Iterator<Item = &Slice> {
    let rounds = epoch.rounds.iter().filter(|round| round.dropped.is_none());
    rounds.flat_map(|round| &round.slices).filter(move |slice| slice.contender == contender)
}

/// The share of what was due that a contender kept up with, 0 to 1, in the rounds that were kept: what it answered in them, less the
/// share by which it fell behind. A slice's rate has that share taken off already: see `deadheat_load::Tally::achieved_share`.
pub(crate) fn achieved_share<'e>(
    epochs: impl Iterator<Item = &'e Epoch>,
    contender: usize,
    slice_ns: u64,
) -> Option<f64> {
    let slices = epochs.flat_map(|epoch| kept(epoch, contender));
    let (kept_up, due) = slices.fold((0.0, 0), |(kept_up, due), slice| {
        let answered = slice.rate_per_s.unwrap_or(0.0) * slice_ns as f64 / 1e9;
        (kept_up + answered, due + slice.completions + slice.failed)
    });
    (due > 0).then(|| (kept_up / due as f64).min(1.0))
}

/// Requests of a contender that never got a complete answer, in the rounds that were kept.
pub fn unanswered(epoch: &Epoch, contender: usize) -> u64 {
    let all = epoch.of(contender).map_or(0, |part| part.outcomes.failed() - part.outcomes.wrong());
    // A slice does not tell them from wrong answers.
    kept(epoch, contender).map(|slice| slice.failed).sum::<u64>().min(all)
}

/// Of the rounds that were kept; in records from before slices had their CPU time, of all unless all were left out.
fn cpu_per_request_ns(epoch: &Epoch, part: &ContenderEpoch) -> Option<f64> {
    let (ns, completions) = cpu_and_completions(epoch, part)?;
    (completions > 0).then(|| ns as f64 / completions as f64)
}

/// CPU time of a contender in nanoseconds and what it completed with it, of the same rounds as its [`Metric::Cpu`]; none where all were
/// left out.
pub fn cpu_and_completions(epoch: &Epoch, part: &ContenderEpoch) -> Option<(u64, u64)> {
    let kept: Option<Vec<(u64, u64)>> =
        kept(epoch, part.contender).map(|slice| Some((slice.cpu_ns?, slice.completions))).collect();
    match kept.filter(|all| !all.is_empty()) {
        Some(all) => Some(all.into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))),
        None if epoch.is_disturbed() => None,
        None => Some((part.usage.cpu_ns, part.completions)),
    }
}

/// A contender's values of a metric. A percentile needs at least [`FEWEST_BEYOND`] requests beyond it; that there are
/// enough as planned is asked of the whole scenario: [`metrics`].
///
/// # Errors
/// When a histogram in the record cannot be read.
pub fn values(epoch: &Epoch, contender: usize, metric: Metric) -> Result<Values, HistogramError> {
    Ok(seen(epoch, contender, metric)?.0)
}

/// The same, and by how much the log of a ratio of two such values may be off for having no finer digits.
///
/// # Errors
/// As [`values`].
pub fn seen(epoch: &Epoch, contender: usize, metric: Metric) -> Result<Seen, HistogramError> {
    let mut all = values_of(epoch, &[(contender, metric)])?;
    Ok(all.remove(&(contender, metric)).unwrap_or((Values::PerEpoch(None), 0.0)))
}

/// Values of several contenders and metrics; each histogram is read once.
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
            // A start or a command has a round of its own, and a disturbed one has no value.
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
            // Percentiles are above: named here, so that a new metric does not compile as CPU time.
            (Metric::Cpu | Metric::P50 | Metric::P99, None) => {
                Values::PerEpoch(part.and_then(|part| cpu_per_request_ns(epoch, part)))
            }
        };
        values.insert((contender, metric), (value, step));
    }
    Ok(values)
}

/// Both sides of every contest; none where one of them has nothing to compare.
fn paired(epoch: &Epoch, contests: &[Contest]) -> Result<Option<Vec<PairedEpoch>>, HistogramError> {
    let sides = contests.iter().flat_map(|one| [(one.baseline, one.metric), (one.contender, one.metric)]);
    let sides: Vec<(usize, Metric)> = sides.collect();
    if sides.iter().any(|(contender, _)| epoch.of(*contender).is_none()) {
        return Ok(None);
    }
    let values = values_of(epoch, &sides)?;
    let side = |contender: usize, metric: Metric| {
        let (of_side, step) = values.get(&(contender, metric)).cloned()?;
        // Only a rate can be nothing: whatever else is not positive was not measured.
        let least = if matches!(of_side, Values::PerRound(_)) { 0.0 } else { f64::MIN_POSITIVE };
        Some((of_side.all(), step, least))
    };
    let pair = |one: &Contest| {
        let (left, step, least) = side(one.baseline, one.metric)?;
        let (right, other_step, _) = side(one.contender, one.metric)?;
        let resolution_ln = step.max(other_step);
        pair_up(&left, &right, least).map(|pair| PairedEpoch { resolution_ln, ..pair })
    };
    Ok(contests.iter().map(pair).collect())
}

/// The latency that a share of all requests does not exceed: those that never got an answer are the slowest. Where it would be one of
/// those, the longest that is known.
fn at_rank(answered: &Histogram<u64>, unanswered: u64, quantile: f64) -> u64 {
    let (all, some) = ((answered.len() + unanswered) as f64, answered.len().max(1) as f64);
    answered.value_at_quantile((quantile * (all / some)).min(1.0))
}

/// By how much the log of a ratio may be off whose sides are this value, each known to half a step: twice that of one side. A value of no
/// more than a step counts as one.
fn step_ln(step: f64, value: f64) -> f64 {
    let half = if value > 0.0 { (step / value).min(1.0) / 2.0 } else { 0.0 };
    half.ln_1p() - (-half).ln_1p()
}

/// What both sides have at the same places, each at least `least`; none where there is nothing, or not the same rounds. A round in which
/// neither answered says nothing of either.
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
    both.then_some(PairedEpoch { baseline, contender, resolution_ln: 0.0 })
}

/// The pairs that are compared in a scenario, as indices into the plan: first the side that is the baseline, then the contender
/// that the verdict speaks of.
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

/// A contender's rates: for each epoch of a scenario that it took part in, as [`rates`].
pub fn rates_by_epoch(record: &Record, scenario: &str, contender: usize) -> Vec<Vec<f64>> {
    let epochs = record.epochs_of(scenario).filter(|epoch| epoch.of(contender).is_some());
    epochs.map(|epoch| rates(epoch, contender)).collect()
}

/// How fast a contender worked, for each epoch of a scenario that it took part in and each round that was kept: its rate, or where a
/// rate is given, what it did per second of its own CPU time.
pub fn paces(record: &Record, scenario: &str, contender: usize) -> Vec<Vec<f64>> {
    let given = record.plan.scenario(scenario).is_some_and(|one| one.shape.rate_per_s().is_some());
    let epochs = record.epochs_of(scenario).filter(|epoch| epoch.of(contender).is_some());
    let pace = |epoch: &Epoch| match given {
        // Records from before slices had their CPU time do not tell.
        true => rates_of_cpu(epoch, contender).unwrap_or_default(),
        false => rates(epoch, contender),
    };
    epochs.map(pace).collect()
}

/// What `contests` are judged from: `[contest][epoch]`, in time order.
///
/// A round in which neither side of a pair answered anything is left out for that pair. An epoch counts for all
/// contests or for none: one in which any has nothing to compare, or not the same rounds on both sides, is left out.
///
/// # Errors
/// When a histogram in the record cannot be read.
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
    // Epochs that somebody spoilt who is out since come to count again: no race has more than its rules allow. Where nobody is out,
    // more are an error, which the referee tells.
    let plan = record.plan.scenario(scenario).filter(|_| !record.out.is_empty());
    let most = plan.and_then(|one| record.plan.method_of(one).looks.last().copied());
    for of_contest in &mut series {
        of_contest.truncate(most.unwrap_or(usize::MAX));
    }
    Ok(series)
}

/// How many epochs of a scenario count, where its pairs rest on so many: each does for all contests or for none. Where nothing is
/// compared, each does unless every round of it was left out.
pub(crate) fn counted(record: &Record, scenario: &str, of_pairs: Option<usize>) -> usize {
    let undisturbed = || record.epochs_of(scenario).filter(|epoch| !epoch.is_disturbed()).count();
    of_pairs.unwrap_or_else(undisturbed)
}

/// What a scenario was to compare, and whether it can: a percentile needs at least [`BEYOND`] requests beyond it, of
/// every contender, in the first epoch, and a peak must be found there. All can before that.
pub fn metrics(record: &Record, scenario: &str) -> Vec<(Metric, bool)> {
    let Some(plan) = record.plan.scenario(scenario) else { return Vec::new() };
    let metrics = record.plan.metrics(plan).into_iter();
    let Some(first) = record.epochs_of(scenario).next() else {
        return metrics.map(|metric| (metric, true)).collect();
    };
    let racing = record.racing(scenario);
    let parts: Vec<&ContenderEpoch> = racing.into_iter().filter_map(|one| first.of(one)).collect();
    // Of all rounds: that some of the first epoch's were disturbed says nothing of the others'.
    let fewest = parts.iter().map(|part| part.completions).min().unwrap_or(u64::MAX);
    let can = |metric: Metric| match (metric, metric.quantile()) {
        (_, Some(at)) => beyond(fewest as f64, at) >= BEYOND,
        (Metric::Peak, _) => parts.iter().all(|part| part.peak.is_some_and(|peak| peak.found().is_some())),
        _ => true,
    };
    metrics.map(|metric| (metric, can(metric))).collect()
}

/// Whether a contender's first epoch has as many requests beyond a metric's percentile as it takes, [`BEYOND`]; true of metrics that
/// are no percentile. Also of those that the race was not about.
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
