//! The metrics: one row for each, with everything that any part of deadheat says of it.
//!
//! Owns: word, titles, unit, direction. How a metric's value comes about is `analysis::series`; nothing else depends on which metric it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Completions per second; more is better.
    Throughput,
    /// CPU time of the contender's tree per completion; less is better.
    Cpu,
    /// Median latency; less is better.
    P50,
    /// 99th percentile of latency; less is better.
    P99,
    /// Proportional set size of the contender's process tree at the end of an epoch; less is better.
    Memory,
    /// Highest rate at which the scenario's objective is met; more is better.
    Peak,
    /// Time from when its command began to its first answer that met the contract; less is better.
    #[serde(rename = "cold_start")]
    ColdStart,
    /// What a contender's own command measured; less is better.
    Measure,
}

/// In which unit a metric's value is shown, and how the record's number becomes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Per second.
    Rate,
    /// Nanoseconds.
    Time,
    /// Nanoseconds of CPU time in the record, microseconds in every document.
    CpuTime,
    /// Bytes.
    Size,
}

/// What is said of one metric.
#[derive(Debug, Clone, Copy)]
pub struct MetricRow {
    /// The metric.
    pub metric: Metric,
    /// As it is written in options, studies and records.
    pub word: &'static str,
    /// As a heading.
    pub title: &'static str,
    /// As the head of a column.
    pub column: &'static str,
    /// What it is, for help and book; the direction is added.
    pub help: &'static str,
    /// The words of a verdict around its ratio: `A` {is} 1.20x {than} `B`.
    pub verdict: (&'static str, &'static str),
    /// Its unit.
    pub unit: Unit,
    /// Whether the higher value is the better one.
    pub more_is_better: bool,
    /// The quantile of latency that it is, from 0 to 1.
    pub quantile: Option<f64>,
    /// What services that keep figures over time call it, and the unit there.
    pub tracker: (&'static str, &'static str),
}

/// Every metric, in the order in which they are listed anywhere.
pub const METRICS: [MetricRow; 8] = [
    MetricRow {
        metric: Metric::Throughput,
        word: "throughput",
        title: "Throughput",
        column: "req/s",
        help: "Completions per second",
        verdict: ("is", "as fast as"),
        unit: Unit::Rate,
        more_is_better: true,
        quantile: None,
        tracker: ("throughput", "requests/s"),
    },
    MetricRow {
        metric: Metric::Cpu,
        word: "cpu",
        title: "CPU time per request",
        column: "CPU/req",
        help: "CPU time per request",
        verdict: ("uses", "the CPU time per request of"),
        unit: Unit::CpuTime,
        more_is_better: false,
        quantile: None,
        tracker: ("cpu", "ns/request"),
    },
    MetricRow {
        metric: Metric::P50,
        word: "p50",
        title: "Median latency",
        column: "p50",
        help: "Median latency",
        verdict: ("has", "the p50 latency of"),
        unit: Unit::Time,
        more_is_better: false,
        quantile: Some(0.50),
        tracker: ("latency", "ns"),
    },
    MetricRow {
        metric: Metric::P99,
        word: "p99",
        title: "99th percentile of latency",
        column: "p99",
        help: "99th percentile of latency",
        verdict: ("has", "the p99 latency of"),
        unit: Unit::Time,
        more_is_better: false,
        quantile: Some(0.99),
        tracker: ("latency-p99", "ns"),
    },
    MetricRow {
        metric: Metric::Memory,
        word: "memory",
        title: "Memory",
        column: "memory",
        help: "Proportional set size of the process tree after the load",
        verdict: ("uses", "the memory of"),
        unit: Unit::Size,
        more_is_better: false,
        quantile: None,
        tracker: ("memory", "bytes"),
    },
    MetricRow {
        metric: Metric::Peak,
        word: "peak",
        title: "Peak rate under the objective",
        column: "peak/s",
        help: "Highest rate at which the objective is met",
        verdict: ("has", "the peak rate of"),
        unit: Unit::Rate,
        more_is_better: true,
        quantile: None,
        tracker: ("peak", "requests/s"),
    },
    MetricRow {
        metric: Metric::ColdStart,
        word: "cold_start",
        title: "Cold start",
        column: "cold start",
        help: "Time from start to the first right answer",
        verdict: ("starts in", "the time of"),
        unit: Unit::Time,
        more_is_better: false,
        quantile: None,
        tracker: ("cold-start", "ns"),
    },
    MetricRow {
        metric: Metric::Measure,
        word: "measure",
        title: "Own measurement",
        column: "measured",
        help: "What the contender's own command measured",
        verdict: ("takes", "the time of"),
        unit: Unit::Time,
        more_is_better: false,
        quantile: None,
        tracker: ("measure", "ns"),
    },
];

impl Metric {
    /// What every load measures, so that a scenario of one may ask for it.
    pub const OF_LOADS: [Self; 5] = [Self::Throughput, Self::Cpu, Self::P50, Self::P99, Self::Memory];

    /// All that there are.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        METRICS.iter().map(|row| row.metric)
    }

    /// What is said of it.
    pub fn row(self) -> &'static MetricRow {
        // The table is in the order of the variants: a test holds it to that.
        &METRICS[self as usize]
    }

    /// The metric that is written so, as [`Metric::word`] writes it.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::all().find(|metric| metric.word() == word)
    }

    /// As it is written in options, studies and records.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// Whether the higher value is the better one.
    pub fn more_is_better(self) -> bool {
        self.row().more_is_better
    }

    /// The quantile of latency that it is, from 0 to 1; none for what is no latency.
    pub fn quantile(self) -> Option<f64> {
        self.row().quantile
    }

    /// What it is and in which direction it is better, for help and book: `Median latency; less is better`.
    pub fn help(self) -> String {
        format!("{}; {} is better", self.row().help, if self.more_is_better() { "more" } else { "less" })
    }
}

impl Unit {
    /// The record's number times this is what documents have.
    pub fn scale(self) -> f64 {
        if self == Self::CpuTime { 1e-3 } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_its_row_and_its_word() {
        for (place, row) in METRICS.iter().enumerate() {
            assert_eq!(row.metric as usize, place, "{}", row.word);
            assert_eq!(serde_json::to_value(row.metric).unwrap(), row.word);
            assert_eq!(Metric::of_word(row.word), Some(row.metric));
        }
        assert_eq!(Metric::of_word("speed"), None);
    }
}
