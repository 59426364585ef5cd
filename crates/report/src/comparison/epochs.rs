//! A contender's epochs as logs: their levels, and what they are against a reference.
//!
//! Owns the way from the record's values to what `stats` compares.

use deadheat_record::{HistogramError, Metric, Record, Values};
use deadheat_stats::{epoch_log_level, epoch_log_ratio};

/// What one record holds of one contender in one metric.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Series {
    /// Natural logs of the epochs' levels, in time order.
    pub(super) levels: Vec<f64>,
    /// Natural logs that are compared: the levels, or with a reference the epochs' ratios to it.
    pub(super) compared: Vec<f64>,
}

pub(super) fn series(
    record: &Record,
    scenario: &str,
    contender: usize,
    metric: Metric,
    reference: Option<usize>,
) -> Result<Series, HistogramError> {
    let mut all = Series::default();
    for epoch in record.epochs_of(scenario).filter(|epoch| epoch.of(contender).is_some()) {
        let values = flat(epoch.values(contender, metric)?);
        let level = epoch_log_level(&values);
        let compared = match reference {
            None => level,
            Some(reference) if epoch.of(reference).is_some() => {
                let reference = flat(epoch.values(reference, metric)?);
                epoch_log_ratio(&reference, &values).map(deadheat_stats::EpochRatio::trimmed)
            }
            Some(_) => None,
        };
        all.levels.extend(level);
        all.compared.extend(compared);
    }
    Ok(all)
}

fn flat(values: Values) -> Vec<f64> {
    match values {
        Values::PerRound(rates) => rates,
        Values::PerEpoch(value) => value.into_iter().collect(),
    }
}
