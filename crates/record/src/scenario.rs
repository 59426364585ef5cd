//! What a scenario asks: its metrics, its slices, and the contests between its contenders that are judged together.
//!
//! Owns: which contests there are. Must not know: how they are judged or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BEYOND, HistogramError, Metric, Plan, Record, ScenarioPlan};

/// How an epoch is cut into slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slices {
    /// Length of a slice.
    pub slice_ns: u64,
    /// Rounds per epoch, even.
    pub rounds: u32,
}

impl Slices {
    /// How long each contender is measured in an epoch.
    pub fn measured_ns(&self) -> u64 {
        self.slice_ns.saturating_mul(u64::from(self.rounds))
    }
}

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

impl Metric {
    /// All that a scenario can ask for.
    pub const ALL: [Self; 4] = [Self::Throughput, Self::Cpu, Self::P50, Self::P99];

    /// Whether the higher value is the better one.
    pub fn more_is_better(self) -> bool {
        self == Self::Throughput
    }

    /// The quantile of latency that it is, from 0 to 1; none for what is no latency.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.50),
            Self::P99 => Some(0.99),
            Self::Throughput | Self::Cpu => None,
        }
    }

    /// As it is written in flags, studies and records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Cpu => "cpu",
            Self::P50 => "p50",
            Self::P99 => "p99",
        }
    }
}

impl Plan {
    /// What a scenario compares, what matters most first; never empty.
    pub fn metrics(&self, scenario: &ScenarioPlan) -> Vec<Metric> {
        if scenario.metrics.is_empty() { vec![self.method.metric] } else { scenario.metrics.clone() }
    }

    /// How a scenario's epochs are cut into slices.
    pub fn slices(&self, scenario: &ScenarioPlan) -> Slices {
        scenario.slices.unwrap_or(Slices { slice_ns: self.method.slice_ns, rounds: self.method.rounds })
    }

    /// The scenario of that name.
    pub fn scenario(&self, name: &str) -> Option<&ScenarioPlan> {
        self.scenarios.iter().find(|one| one.name == name)
    }
}

impl Record {
    /// What a scenario was to compare, and whether it can: a percentile needs at least [`BEYOND`] requests beyond it, of
    /// every contender, in the first epoch. All can before that.
    ///
    /// # Errors
    /// When a histogram in the record cannot be read.
    pub fn metrics(&self, scenario: &str) -> Result<Vec<(Metric, bool)>, HistogramError> {
        let Some(plan) = self.plan.scenario(scenario) else { return Ok(Vec::new()) };
        let metrics = self.plan.metrics(plan);
        let Some(first) = self.epochs_of(scenario).next() else {
            return Ok(metrics.into_iter().map(|metric| (metric, true)).collect());
        };
        let mut fewest = u64::MAX;
        if metrics.iter().any(|metric| metric.quantile().is_some()) {
            for part in self.racing(scenario).into_iter().filter_map(|contender| first.of(contender)) {
                fewest = fewest.min(part.latency.decode()?.len());
            }
        }
        // The small allowance is for 1 - 0.99, which is not exactly 0.01.
        let enough = |at: f64| fewest as f64 * (1.0 - at) >= BEYOND - 1e-6;
        let can = |metric: Metric| (metric, metric.quantile().is_none_or(enough));
        Ok(metrics.into_iter().map(can).collect())
    }

    /// The contests of a scenario: every pair in every metric that can be compared, metric by metric.
    ///
    /// # Errors
    /// When a histogram in the record cannot be read.
    pub fn contests(&self, scenario: &str) -> Result<Vec<Contest>, HistogramError> {
        let pairs = self.pairs(scenario);
        let of_metric = |metric: Metric| {
            pairs.iter().map(move |(baseline, contender)| Contest {
                baseline: *baseline,
                contender: *contender,
                metric,
            })
        };
        let metrics = self.metrics(scenario)?.into_iter().filter(|(_, can)| *can);
        Ok(metrics.flat_map(|(metric, _)| of_metric(metric)).collect())
    }
}
