//! The metrics: one row for each, with all texts and properties that deadheat uses for it.
//!
//! Owns: word, titles, unit, direction. `analysis::series` computes the values. No other code depends on which metric it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A metric in which contenders are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Completions per second; more is better.
    Throughput,
    /// CPU time of the contender's tree per completion; less is better.
    Cpu,
    /// Median latency; less is better.
    P50,
    /// 90th percentile of latency; less is better.
    P90,
    /// 99th percentile of latency; less is better.
    P99,
    /// 99.9th percentile of latency; less is better.
    #[serde(rename = "p99_9")]
    P999,
    /// Proportional set size of the contender's process tree at the end of an epoch; less is better.
    Memory,
    /// Highest rate at which the scenario's objective is met; more is better.
    Peak,
    /// Time from the start of its command to its first answer that meets the contract; less is better.
    #[serde(rename = "cold_start")]
    ColdStart,
    /// The value that a contender's own command measures; less is better.
    Measure,
}

/// The unit in which a metric is shown, and the conversion from the record's number.
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

/// The texts and properties of one metric.
#[derive(Debug, Clone, Copy)]
pub struct MetricRow {
    /// The metric.
    pub metric: Metric,
    /// The word that options, studies and records use.
    pub word: &'static str,
    /// The title in headings.
    pub title: &'static str,
    /// The title of a column.
    pub column: &'static str,
    /// The description for help and book, without the direction.
    pub help: &'static str,
    /// The words of a verdict around its ratio: `A` {is} 1.20x {than} `B`.
    pub verdict: (&'static str, &'static str),
    /// Its unit.
    pub unit: Unit,
    /// Whether the higher value is the better one.
    pub more_is_better: bool,
    /// For a latency: its quantile, from 0 to 1.
    pub quantile: Option<f64>,
    /// Whether a report shows its value wherever it is measured. The others appear only where they are compared.
    pub always_shown: bool,
    /// The name and the unit in services that track results over time.
    pub tracker: (&'static str, &'static str),
}

/// Every metric, in the order of all lists.
pub const METRICS: [MetricRow; 10] = [
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
        always_shown: true,
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
        always_shown: true,
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
        always_shown: true,
        tracker: ("latency", "ns"),
    },
    MetricRow {
        metric: Metric::P90,
        word: "p90",
        title: "90th percentile of latency",
        column: "p90",
        help: "90th percentile of latency",
        verdict: ("has", "the p90 latency of"),
        unit: Unit::Time,
        more_is_better: false,
        quantile: Some(0.90),
        always_shown: false,
        tracker: ("latency-p90", "ns"),
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
        always_shown: true,
        tracker: ("latency-p99", "ns"),
    },
    MetricRow {
        metric: Metric::P999,
        word: "p99_9",
        title: "99.9th percentile of latency",
        column: "p99.9",
        help: "99.9th percentile of latency",
        verdict: ("has", "the p99.9 latency of"),
        unit: Unit::Time,
        more_is_better: false,
        quantile: Some(0.999),
        always_shown: false,
        tracker: ("latency-p99-9", "ns"),
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
        always_shown: true,
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
        always_shown: true,
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
        always_shown: true,
        tracker: ("cold-start", "ns"),
    },
    MetricRow {
        metric: Metric::Measure,
        word: "measure",
        title: "Measured value",
        column: "measured",
        help: "What the contender's own command measured",
        verdict: ("takes", "the time of"),
        unit: Unit::Time,
        more_is_better: false,
        quantile: None,
        always_shown: true,
        tracker: ("measure", "ns"),
    },
];

impl Metric {
    /// The metrics that every load measures, so that every scenario with a load can select them.
    pub const OF_LOADS: [Self; 7] =
        [Self::Throughput, Self::Cpu, Self::P50, Self::P90, Self::P99, Self::P999, Self::Memory];

    /// All metrics.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        METRICS.iter().map(|row| row.metric)
    }

    /// The texts and properties of the metric.
    pub fn row(self) -> &'static MetricRow {
        // The table is in the order of the variants; a test checks this.
        &METRICS[self as usize]
    }

    /// The metric of a word, as [`Metric::word`] writes it.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::all().find(|metric| metric.word() == word)
    }

    /// The word that options, studies and records use.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// Whether the higher value is the better one.
    pub fn more_is_better(self) -> bool {
        self.row().more_is_better
    }

    /// The quantile of a latency, from 0 to 1; none for other metrics.
    pub fn quantile(self) -> Option<f64> {
        self.row().quantile
    }

    /// Whether it is about the slowest hundredth of the requests, or fewer.
    pub fn is_tail(self) -> bool {
        self.quantile().is_some_and(|at| at >= 0.99)
    }

    /// The description with the direction, for help and book: `Median latency; less is better`.
    pub fn help(self) -> String {
        format!("{}; {} is better", self.row().help, if self.more_is_better() { "more" } else { "less" })
    }
}

impl Unit {
    /// Factor from the record's number to the number in documents.
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
