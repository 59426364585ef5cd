//! How much faster or slower a contender is than the baseline at each share of requests, from the fastest to the slowest.
//!
//! Owns: these shares, and the intervals. Must not know: verdicts. They are about the metrics that the race was asked for.
//!
//! Source: the "shift function" of Doksum and Sievers, "Plotting with confidence", Biometrika (1976), as ratios and with intervals over epochs.

use deadheat_record::{FEWEST_BEYOND, HistogramError, Record, ScenarioPlan, beyond};
use deadheat_stats::Sample;

use super::FIGURE_ALPHA;
use crate::report::{LatencyShift, ShiftPoint};
use crate::series;

/// The shares of requests.
const SHARES: [f64; 13] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999];

/// One entry for each contender beside the baseline; none unless requests come at a given rate, because only then latencies are those of a user.
pub(crate) fn of(record: &Record, scenario: &ScenarioPlan) -> Result<Vec<LatencyShift>, HistogramError> {
    if scenario.shape.rate_per_s().is_none() {
        return Ok(Vec::new());
    }
    let pairs = series::pairs(record, &scenario.name);
    let Some(&(baseline, _)) = pairs.first() else { return Ok(Vec::new()) };
    let compared = pairs.iter().filter(|(one, _)| *one == baseline);
    let name = |index: usize| record.plan.contenders[index].name.clone();
    let base = latencies(record, &scenario.name, baseline)?;
    let lost = |contender: usize| -> Result<f64, HistogramError> {
        let kept = record.epochs_of(&scenario.name).filter(|epoch| !epoch.is_disturbed());
        kept.map(|epoch| series::unanswered_share(epoch, contender))
            .try_fold(0.0_f64, |most, share| Ok(share?.max(most)))
    };
    let base_lost = lost(baseline)?;
    let mut shifts = Vec::new();
    for &(_, contender) in compared {
        let own = latencies(record, &scenario.name, contender)?;
        // The latency of requests without an answer is unknown. The other epochs alone would make the contender look too good.
        let lost = base_lost.max(lost(contender)?);
        let known = SHARES.iter().enumerate().filter(|(_, share)| lost <= 1.0 - *share);
        let points = known.filter_map(|(place, share)| {
            let both =
                base.iter().zip(&own).filter_map(|(base, own)| Some(own[place]?.ln() - base[place]?.ln()));
            let sample = Sample::of(&both.collect::<Vec<f64>>())?;
            let ends = sample.t_interval(FIGURE_ALPHA).map(|ends| ends.as_ratios());
            let (low, high) = ends.unwrap_or_default();
            Some(ShiftPoint { share: *share, ratio: sample.mean.exp(), low, high })
        });
        let points: Vec<ShiftPoint> = points.collect();
        if !points.is_empty() {
            shifts.push(LatencyShift { baseline: name(baseline), contender: name(contender), points });
        }
    }
    Ok(shifts)
}

/// A contender's latency in nanoseconds at each of [`SHARES`], epoch by epoch; none where too few requests lie beyond.
fn latencies(
    record: &Record,
    scenario: &str,
    contender: usize,
) -> Result<Vec<[Option<f64>; SHARES.len()]>, HistogramError> {
    let of_epoch = |epoch: &deadheat_record::Epoch| {
        let part = epoch.of(contender).filter(|_| !epoch.is_disturbed());
        let Some(part) = part.filter(|part| part.completions > 0) else { return Ok([None; SHARES.len()]) };
        let (all, unanswered) = (part.latency.decode()?, series::unanswered(epoch, contender));
        Ok(SHARES.map(|share| {
            let ns = series::at_rank(&all, unanswered, share) as f64;
            (beyond(all.len() as f64, share) >= FEWEST_BEYOND && ns > 0.0).then_some(ns)
        }))
    };
    record.epochs_of(scenario).map(of_epoch).collect()
}
