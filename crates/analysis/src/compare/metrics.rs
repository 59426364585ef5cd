//! What two records can be compared in, and their loads in words.

use deadheat_record::{Metric, Plan, Shape};

use crate::number::{quantile, three_digits, time_ns, whole};

/// What a race is about in a scenario: conditions that name no metric speak of it.
pub fn asked_metrics(plan: &Plan, scenario: &str) -> Vec<Metric> {
    plan.scenario(scenario).map_or_else(Vec::new, |scenario| plan.metrics(scenario))
}

/// What a scenario of that shape measures of each contender, and two records can be compared in.
pub(super) fn measured(shape: &Shape) -> &'static [Metric] {
    match shape {
        Shape::Closed { .. } | Shape::Open { .. } => &Metric::ALL,
        Shape::Peak { .. } => &[Metric::Peak],
        Shape::Starts { .. } => &[Metric::ColdStart],
        Shape::Measure { .. } => &[Metric::Measure],
    }
}

/// A load in words; a measure stands in them as the study calls it.
pub fn shape(shape: &Shape) -> String {
    let connections = whole(u64::from(shape.connections()));
    match shape {
        Shape::Closed { .. } => format!("closed, {connections} connections"),
        Shape::Open { rate_per_s, poisson, .. } => {
            let arrivals = if *poisson { "Poisson" } else { "constant" };
            format!("open, {} requests/s, {arrivals}, {connections} connections", three_digits(*rate_per_s))
        }
        Shape::Peak { objective, .. } => {
            let (what, limit) = (quantile(objective.quantile), time_ns(objective.limit_ns as f64));
            format!("the highest rate with {what} < {limit}, {connections} connections")
        }
        Shape::Starts { starts } => format!("{starts} fresh starts"),
        Shape::Measure { measure } => format!("{measure}, as each measures it itself"),
    }
}
