//! Takes ratios between two contenders or two scenarios, and a contender's own values, from a race on this machine.
//!
//! Owns: where a ratio comes from (the race's own comparison, otherwise its epochs) and how its interval is computed. Must not know the
//! published values.

use deadheat_record::{FEWEST_BEYOND, HistogramError, Metric, VerdictWord, beyond};
use deadheat_stats::{EpochRatio, LogInterval, Sample, Welch, epoch_log_level, epoch_log_ratio};

use super::super::figures::Place;
use super::measured::{Wanted, values};
use super::race::{Race, Side};
use crate::report::Comparison;

/// The error rate of the interval of a ratio that the race itself did not compare.
const ALPHA: f64 = 0.05;

/// A ratio or a value from this machine.
pub(super) struct Found {
    pub(super) value: f64,
    pub(super) interval: Option<(f64, f64)>,
    pub(super) invalid: bool,
}

/// The result of looking for a ratio in a race.
pub(super) enum Looked {
    Found(Found),
    /// A percentile with too few requests beyond it. The number is the most that any epoch has, for the side with fewer.
    TooFew(u64),
    /// The race has no such ratio.
    Nothing,
}

impl Race<'_> {
    /// The ratio as the race itself compared it, otherwise over its epochs.
    pub(super) fn looked(
        &self,
        side: Side<'_>,
        base: Side<'_>,
        wanted: Wanted,
    ) -> Result<Looked, HistogramError> {
        let found = if side.scenario != base.scenario {
            self.apart(side, base, wanted)?
        } else if let Some(compared) = self.compared(side, base, wanted) {
            Some(compared)
        } else {
            self.over_epochs(side, base, wanted)?
        };
        match (found, wanted) {
            (Some(found), _) => Ok(Looked::Found(found)),
            (None, Wanted::Latency(Place::Quantile(at))) => {
                let few = self.most_beyond(side, at)?.min(self.most_beyond(base, at)?);
                Ok(few
                    .filter(|count| (*count as f64) < FEWEST_BEYOND)
                    .map_or(Looked::Nothing, Looked::TooFew))
            }
            (None, _) => Ok(Looked::Nothing),
        }
    }

    /// The ratio over the epochs of one scenario that measured both sides.
    fn over_epochs(
        &self,
        side: Side<'_>,
        base: Side<'_>,
        wanted: Wanted,
    ) -> Result<Option<Found>, HistogramError> {
        let sides = self.index(base).zip(self.index(side));
        let Some((base_index, other)) = sides else { return Ok(None) };
        let mut logs = Vec::new();
        for epoch in self.report.record.epochs_of(side.scenario) {
            let (base, other) = (values(epoch, base_index, wanted)?, values(epoch, other, wanted)?);
            logs.extend(epoch_log_ratio(&base, &other).map(EpochRatio::trimmed));
        }
        let Some(sample) = Sample::of(&logs) else { return Ok(None) };
        let interval = sample.t_interval(ALPHA).and_then(ratios);
        let invalid = self.invalid(side, wanted) || self.invalid(base, wanted);
        Ok(Some(Found { value: sample.mean.exp(), interval, invalid }))
    }

    /// The ratio between two scenarios. They were raced one after the other, so their epochs are not pairs, and the interval is Welch's over
    /// the levels of the epochs.
    fn apart(&self, side: Side<'_>, base: Side<'_>, wanted: Wanted) -> Result<Option<Found>, HistogramError> {
        let (old, new) = (self.levels(base, wanted)?, self.levels(side, wanted)?);
        let invalid = self.invalid(side, wanted) || self.invalid(base, wanted);
        let Some(welch) = Welch::of(&old, &new) else {
            let means = Sample::of(&old).zip(Sample::of(&new));
            let ratio = means.map(|(old, new)| (new.mean - old.mean).exp());
            return Ok(ratio.map(|value| Found { value, interval: None, invalid }));
        };
        let interval = ratios(welch.interval(ALPHA));
        Ok(Some(Found { value: welch.difference.exp(), interval, invalid }))
    }

    /// A contender's own value over its epochs: `unit` times the value in the record.
    pub(super) fn own(
        &self,
        side: Side<'_>,
        wanted: Wanted,
        unit: f64,
    ) -> Result<Option<Found>, HistogramError> {
        let Some(sample) = Sample::of(&self.levels(side, wanted)?) else { return Ok(None) };
        let interval = sample.t_interval(ALPHA).and_then(ratios);
        let interval = interval.map(|(low, high)| (low * unit, high * unit));
        Ok(Some(Found { value: sample.mean.exp() * unit, interval, invalid: self.invalid(side, wanted) }))
    }

    /// Natural logs of a contender's levels, one per epoch.
    fn levels(&self, side: Side<'_>, wanted: Wanted) -> Result<Vec<f64>, HistogramError> {
        let Some(contender) = self.index(side) else { return Ok(Vec::new()) };
        let mut levels = Vec::new();
        for epoch in self.report.record.epochs_of(side.scenario) {
            levels.extend(epoch_log_level(&values(epoch, contender, wanted)?));
        }
        Ok(levels)
    }

    /// The largest number of requests that any epoch of a contender has beyond a percentile; none if it has no latencies.
    fn most_beyond(&self, side: Side<'_>, at: f64) -> Result<Option<u64>, HistogramError> {
        let Some(contender) = self.index(side) else { return Ok(None) };
        let mut most = None;
        for part in self.report.record.epochs_of(side.scenario).filter_map(|epoch| epoch.of(contender)) {
            if !part.latency.0.is_empty() {
                most = most.max(Some(beyond(part.latency.decode()?.len() as f64, at) as u64));
            }
        }
        Ok(most)
    }

    fn compared(&self, side: Side<'_>, base: Side<'_>, wanted: Wanted) -> Option<Found> {
        let (contender, baseline) = (side.contender, base.contender);
        let metric = match wanted {
            Wanted::Of(metric) => metric,
            Wanted::ColdStart => Metric::ColdStart,
            Wanted::Latency(Place::Quantile(at)) => percentile(at)?,
            _ => return None,
        };
        let raced = self.report.scenario(side.scenario)?;
        let of = |one: &&Comparison| {
            let names = [one.contender.as_str(), one.baseline.as_str()];
            one.metric == metric && (names == [contender, baseline] || names == [baseline, contender])
        };
        let found = raced.comparisons.iter().find(of)?;
        let (ratio, interval) = (found.ratio?, found.low.zip(found.high));
        let turned = found.contender != contender;
        Some(Found {
            value: if turned { 1.0 / ratio } else { ratio },
            interval: if turned { interval.map(|(low, high)| (1.0 / high, 1.0 / low)) } else { interval },
            invalid: found.verdict == VerdictWord::Invalid,
        })
    }

    /// Whether a finding invalidates a contender's value.
    fn invalid(&self, side: Side<'_>, wanted: Wanted) -> bool {
        let here = self.report.scenario(side.scenario).into_iter().flat_map(|one| &one.findings);
        here.chain(&self.report.findings).any(|one| one.takes(side.contender, judged_as(wanted)))
    }
}

/// The metric that is this percentile.
fn percentile(at: f64) -> Option<Metric> {
    let is_it = |one: &Metric| one.quantile().is_some_and(|share| (share - at).abs() < 1e-9);
    Metric::OF_LOADS.into_iter().find(is_it)
}

/// The metric whose findings apply to a value. Percentiles that are no metric follow the median below the 99th percentile, and the 99th percentile
/// above it.
fn judged_as(wanted: Wanted) -> Option<Metric> {
    match wanted {
        Wanted::Of(metric) => Some(metric),
        Wanted::ColdStart => Some(Metric::ColdStart),
        Wanted::Memory => None,
        Wanted::Latency(Place::Quantile(at)) => {
            percentile(at).or(Some(if at >= 0.99 { Metric::P99 } else { Metric::P50 }))
        }
        Wanted::Latency(Place::Max) => Some(Metric::P99),
        Wanted::Latency(_) => Some(Metric::P50),
    }
}

fn ratios(interval: LogInterval) -> Option<(f64, f64)> {
    let (low, high) = interval.as_ratios();
    low.zip(high)
}
