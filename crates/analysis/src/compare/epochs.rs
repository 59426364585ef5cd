//! The logs of a contender's epochs: their levels, or their ratios to a reference.
//!
//! Owns the conversion of the record's values to the input of `stats`.

use deadheat_record::{HistogramError, Metric, Record};
use deadheat_stats::{epoch_log_level, epoch_log_ratio};

use crate::series::{has_tail, seen, unanswered_share};

/// One record's values of one contender in one metric.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Series {
    /// Natural logs of the epochs' levels, in time order.
    pub(super) levels: Vec<f64>,
    /// The compared natural logs: the levels, or with a reference the ratios of the epochs to it.
    pub(super) compared: Vec<f64>,
    /// The largest common error of all of them on the log scale that comes from the resolution of the values: that of the epoch with the
    /// finest one.
    pub(super) resolution: f64,
}

/// Empty for a percentile with too few requests beyond it. Also empty if the percentile falls among requests without an answer in any epoch, because the
/// latency of these is unknown.
pub(super) fn series(
    record: &Record,
    scenario: &str,
    contender: usize,
    metric: Metric,
    reference: Option<usize>,
) -> Result<Series, HistogramError> {
    let mut all = Series::default();
    let mut steps: Vec<f64> = Vec::new();
    let both = [Some(contender), reference].into_iter().flatten();
    if !both.clone().all(|one| has_tail(record, scenario, one, metric)) {
        return Ok(all);
    }
    for epoch in record.epochs_of(scenario) {
        if !both.clone().all(|one| epoch.of(one).is_some()) {
            continue;
        }
        for (one, quantile) in both.clone().filter_map(|one| Some((one, metric.quantile()?))) {
            if unanswered_share(epoch, one)? > 1.0 - quantile {
                return Ok(Series::default());
            }
        }
        let (values, mut step) = seen(epoch, contender, metric)?;
        let values = values.flat();
        let level = epoch_log_level(&values);
        let compared = match reference {
            None => level,
            Some(reference) => {
                let (of_reference, other) = seen(epoch, reference, metric)?;
                // The quotient has the resolution error of both values.
                step += other;
                epoch_log_ratio(&of_reference.flat(), &values).map(deadheat_stats::EpochRatio::trimmed)
            }
        };
        all.levels.extend(level);
        // An epoch without a value has no step either.
        steps.extend(compared.map(|_| step));
        all.compared.extend(compared);
    }
    all.resolution = steps.into_iter().min_by(f64::total_cmp).unwrap_or(0.0);
    Ok(all)
}
