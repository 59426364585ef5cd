//! What a record holds of one metric, taken out as plain numbers: no arithmetic beyond a quotient that a metric is
//! defined by. Both who decides while racing and who reports afterwards read a record through this.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hdrhistogram::Histogram;

use crate::{
    ContenderEpoch, Contest, Epoch, FEWEST_BEYOND, HistogramError, Metric, Record, Round, Shape, Slice,
    beyond,
};

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
type Seen = (Values, f64);

impl Round {
    /// Completions per second of a contender's slice, 0 where nothing was answered; the mean over time of the windows into
    /// which it is cut where nothing was warmed up. None where the contender has no slice.
    pub fn rate_per_s(&self, contender: usize) -> Option<f64> {
        let own: Vec<&Slice> = self.slices.iter().filter(|slice| slice.contender == contender).collect();
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
}

impl Epoch {
    /// Completions per second of a contender in the rounds that were kept, in round order: see [`Round::rate_per_s`].
    pub fn rates(&self, contender: usize) -> Vec<f64> {
        let kept = self.rounds.iter().filter(|round| round.dropped.is_none());
        kept.filter_map(|round| round.rate_per_s(contender)).collect()
    }

    /// What a contender did per second of its own CPU time, in the rounds that were kept: completions, in round order. Where a rate is
    /// given, this is what grows while a program becomes faster. None where it was not read.
    fn rates_of_cpu(&self, contender: usize) -> Option<Vec<f64>> {
        let rate = |slice: &Slice| Some(slice.completions as f64 * 1e9 / slice.cpu_ns?.max(1) as f64);
        self.kept(contender).map(rate).collect()
    }

    /// A contender's slices of the rounds that were kept.
    fn kept(&self, contender: usize) -> impl Iterator<Item = &Slice> {
        let rounds = self.rounds.iter().filter(|round| round.dropped.is_none());
        rounds.flat_map(|round| &round.slices).filter(move |slice| slice.contender == contender)
    }

    /// Requests of a contender that never got a complete answer, in the rounds that were kept.
    pub fn unanswered(&self, contender: usize) -> u64 {
        let all = self.of(contender).map_or(0, |part| part.outcomes.failed() - part.outcomes.wrong());
        // A slice does not tell them from wrong answers.
        self.kept(contender).map(|slice| slice.failed).sum::<u64>().min(all)
    }

    /// Of the rounds that were kept; in records from before slices had their CPU time, of all unless all were left out.
    fn cpu_per_request_ns(&self, part: &ContenderEpoch) -> Option<f64> {
        let (ns, completions) = self.cpu_and_completions(part)?;
        (completions > 0).then(|| ns as f64 / completions as f64)
    }

    /// CPU time of a contender in nanoseconds and what it completed with it, of the same rounds as its [`Metric::Cpu`]; none where all were
    /// left out.
    pub fn cpu_and_completions(&self, part: &ContenderEpoch) -> Option<(u64, u64)> {
        let kept: Option<Vec<(u64, u64)>> =
            self.kept(part.contender).map(|slice| Some((slice.cpu_ns?, slice.completions))).collect();
        match kept.filter(|all| !all.is_empty()) {
            Some(all) => Some(all.into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))),
            None if self.is_disturbed() => None,
            None => Some((part.usage.cpu_ns, part.completions)),
        }
    }

    /// Whether every round was left out.
    pub fn is_disturbed(&self) -> bool {
        !self.rounds.is_empty() && self.rounds.iter().all(|round| round.dropped.is_some())
    }

    /// A contender's part of the epoch.
    pub fn of(&self, contender: usize) -> Option<&ContenderEpoch> {
        self.contenders.iter().find(|part| part.contender == contender)
    }

    /// A contender's values of a metric. A percentile needs at least [`FEWEST_BEYOND`] requests beyond it; that there are
    /// enough as planned is asked of the whole scenario: [`Record::metrics`].
    ///
    /// # Errors
    /// When a histogram in the record cannot be read.
    pub fn values(&self, contender: usize, metric: Metric) -> Result<Values, HistogramError> {
        Ok(self.seen(contender, metric)?.0)
    }

    /// The same, and by how much the log of a ratio of two such values may be off for having no finer digits.
    ///
    /// # Errors
    /// As [`Epoch::values`].
    pub fn seen(&self, contender: usize, metric: Metric) -> Result<Seen, HistogramError> {
        let mut all = self.values_of(&[(contender, metric)])?;
        Ok(all.remove(&(contender, metric)).unwrap_or((Values::PerEpoch(None), 0.0)))
    }

    /// Values of several contenders and metrics; each histogram is read once.
    fn values_of(
        &self,
        wanted: &[(usize, Metric)],
    ) -> Result<BTreeMap<(usize, Metric), Seen>, HistogramError> {
        let mut histograms: BTreeMap<usize, Option<Histogram<u64>>> = BTreeMap::new();
        let mut values = BTreeMap::new();
        for &(contender, metric) in wanted {
            let part = self.of(contender);
            let mut step = 0.0;
            let value = match (metric, metric.quantile()) {
                (Metric::Throughput, _) => Values::PerRound(self.rates(contender)),
                (_, Some(at)) => {
                    let histogram = match histograms.entry(contender) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => new.insert(part.map(|part| part.latency.decode()).transpose()?),
                    };
                    let some = histogram.as_ref().filter(|all| beyond(all.len() as f64, at) >= FEWEST_BEYOND);
                    let found = some.map(|all| (all, at_rank(all, self.unanswered(contender), at)));
                    step = found.map_or(0.0, |(all, ns)| step_ln(all.equivalent_range(ns) as f64, ns as f64));
                    Values::PerEpoch(found.map(|(_, ns)| ns as f64))
                }
                // A start or a command has a round of its own, and a disturbed one has no value.
                (Metric::ColdStart, None) => Values::PerEpoch(
                    part.filter(|_| !self.is_disturbed()).map(|part| part.cold_start_ns as f64),
                ),
                (Metric::Measure, None) => {
                    let part = part.filter(|_| !self.is_disturbed());
                    let both = part.and_then(|part| part.measured_step.zip(part.measured));
                    step = both.map_or(0.0, |(step, value)| step_ln(step, value));
                    Values::PerEpoch(part.and_then(|part| part.measured))
                }
                (Metric::Peak, None) => Values::PerEpoch(part.and_then(|part| part.peak?.found())),
                (_, None) => Values::PerEpoch(part.and_then(|part| self.cpu_per_request_ns(part))),
            };
            values.insert((contender, metric), (value, step));
        }
        Ok(values)
    }

    /// Both sides of every contest; none where one of them has nothing to compare.
    fn paired(&self, contests: &[Contest]) -> Result<Option<Vec<PairedEpoch>>, HistogramError> {
        let sides = contests.iter().flat_map(|one| [(one.baseline, one.metric), (one.contender, one.metric)]);
        let sides: Vec<(usize, Metric)> = sides.collect();
        if sides.iter().any(|(contender, _)| self.of(*contender).is_none()) {
            return Ok(None);
        }
        let values = self.values_of(&sides)?;
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

impl Record {
    /// The pairs that are compared in a scenario, as indices into the plan: first the side that is the baseline, then the contender
    /// that the verdict speaks of.
    pub fn pairs(&self, scenario: &str) -> Vec<(usize, usize)> {
        let racing = self.racing(scenario);
        let named = racing
            .iter()
            .copied()
            .find(|index| self.plan.contenders[*index].name == self.plan.method.baseline);
        let Some(baseline) = named.or_else(|| racing.first().copied()) else { return Vec::new() };
        let others: Vec<usize> = racing.into_iter().filter(|index| *index != baseline).collect();
        let mut pairs: Vec<(usize, usize)> = others.iter().map(|other| (baseline, *other)).collect();
        if self.plan.method.all_pairs {
            for (place, first) in others.iter().enumerate() {
                pairs.extend(others[place + 1..].iter().map(|second| (*first, *second)));
            }
        }
        pairs
    }

    /// A contender's rates: for each epoch of a scenario that it took part in, as [`Epoch::rates`].
    pub fn rates(&self, scenario: &str, contender: usize) -> Vec<Vec<f64>> {
        let epochs = self.epochs_of(scenario).filter(|epoch| epoch.of(contender).is_some());
        epochs.map(|epoch| epoch.rates(contender)).collect()
    }

    /// How fast a contender worked, for each epoch of a scenario that it took part in and each round that was kept: its rate, or where a
    /// rate is given, what it did per second of its own CPU time.
    pub fn paces(&self, scenario: &str, contender: usize) -> Vec<Vec<f64>> {
        let given = self.plan.scenario(scenario).is_some_and(|one| matches!(one.shape, Shape::Open { .. }));
        let epochs = self.epochs_of(scenario).filter(|epoch| epoch.of(contender).is_some());
        let pace = |epoch: &Epoch| match given {
            // Records from before slices had their CPU time do not tell.
            true => epoch.rates_of_cpu(contender).unwrap_or_default(),
            false => epoch.rates(contender),
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
        &self,
        scenario: &str,
        contests: &[Contest],
    ) -> Result<Vec<Vec<PairedEpoch>>, HistogramError> {
        let mut series = vec![Vec::new(); contests.len()];
        for epoch in self.epochs_of(scenario) {
            for (of_contest, one) in series.iter_mut().zip(epoch.paired(contests)?.into_iter().flatten()) {
                of_contest.push(one);
            }
        }
        // Epochs that somebody spoilt who is out since come to count again: no race has more than its rules allow. Where nobody is out,
        // more are an error, which the referee tells.
        let plan = self.plan.scenario(scenario).filter(|_| !self.out.is_empty());
        let most = plan.and_then(|one| self.plan.method_of(one).looks.last().copied());
        for of_contest in &mut series {
            of_contest.truncate(most.unwrap_or(usize::MAX));
        }
        Ok(series)
    }
}
