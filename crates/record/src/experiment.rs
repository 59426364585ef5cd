//! The kinds of scenario: what deadheat does to contenders, and what can be compared afterwards.
//!
//! Owns: everything that depends on the kind alone. Other code asks this module, so that a new kind changes few files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Metric, Objective, Slices, beyond};

/// What a scenario does to each contender. In JSON it is the scenario's `shape`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[schemars(rename = "Shape")]
pub enum Experiment {
    /// Closed load: each connection waits for its answer before it sends again.
    Closed {
        /// Number of connections.
        connections: u32,
    },
    /// Open load: requests are due at a given rate, independent of the answers.
    Open {
        /// Maximum number of connections.
        connections: u32,
        /// Requests per second.
        rate_per_s: f64,
        /// Whether the gaps between due times are exponential (Poisson) or constant.
        poisson: bool,
    },
    /// Peak search: deadheat tries one rate after the other to find the highest at which the objective is met. Gaps between due times are
    /// exponential.
    Peak {
        /// Maximum number of connections.
        connections: u32,
        /// The objective that the rate must meet.
        objective: Objective,
    },
    /// No load: deadheat starts each contender several times and compares the time to its first answer that meets the contract.
    Starts {
        /// Number of fresh starts of each contender.
        starts: u32,
    },
    /// No load: a command of each contender measures something and prints the value. deadheat runs it in a new process each time.
    Measure {
        /// Name of the measure in the contenders' `measures`.
        measure: String,
    },
}

impl Experiment {
    /// Number of connections that the load holds open; 0 without a load.
    pub fn connections(&self) -> u32 {
        match self {
            Self::Closed { connections }
            | Self::Open { connections, .. }
            | Self::Peak { connections, .. } => *connections,
            Self::Starts { .. } | Self::Measure { .. } => 0,
        }
    }

    /// The same experiment with another number of connections.
    #[must_use]
    pub fn with_connections(mut self, number: u32) -> Self {
        match &mut self {
            Self::Closed { connections }
            | Self::Open { connections, .. }
            | Self::Peak { connections, .. } => *connections = number,
            Self::Starts { .. } | Self::Measure { .. } => {}
        }
        self
    }

    /// The same experiment with another rate or objective. An experiment without a load is returned unchanged.
    #[must_use]
    pub fn with_load(self, rate_per_s: Option<f64>, objective: Option<Objective>) -> Self {
        let connections = self.connections();
        match (self, rate_per_s, objective) {
            (kept, None, None) => kept,
            (kept @ (Self::Starts { .. } | Self::Measure { .. }), ..) => kept,
            (_, _, Some(objective)) => Self::Peak { connections, objective },
            (Self::Open { poisson, .. }, Some(rate_per_s), None) => {
                Self::Open { connections, rate_per_s, poisson }
            }
            (_, Some(rate_per_s), None) => Self::Open { connections, rate_per_s, poisson: true },
        }
    }

    /// Whether contenders are loaded. Otherwise each epoch has one value for each contender.
    pub fn is_load(&self) -> bool {
        !matches!(self, Self::Starts { .. } | Self::Measure { .. })
    }

    /// Whether the load is the same from the first slice to the last.
    pub fn is_steady(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Open { .. })
    }

    /// Whether each connection waits for its answer.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// The rate that is the same for all contenders, in requests per second; none if the contender determines it.
    pub fn rate_per_s(&self) -> Option<f64> {
        if let Self::Open { rate_per_s, .. } = self { Some(*rate_per_s) } else { None }
    }

    /// The objective of a peak search.
    pub fn objective(&self) -> Option<Objective> {
        if let Self::Peak { objective, .. } = self { Some(*objective) } else { None }
    }

    /// Number of fresh starts of each contender, if these are compared.
    pub fn starts(&self) -> Option<u32> {
        if let Self::Starts { starts } = self { Some(*starts) } else { None }
    }

    /// The name of the contenders' own measure, if this is compared.
    pub fn measure(&self) -> Option<&str> {
        if let Self::Measure { measure } = self { Some(measure) } else { None }
    }

    /// Every metric that the experiment measures for each contender. Two records can be compared in all of them.
    pub fn metrics(&self) -> &'static [Metric] {
        match self {
            Self::Closed { .. } | Self::Open { .. } => &Metric::OF_LOADS,
            Self::Peak { .. } => &[Metric::Peak],
            Self::Starts { .. } => &[Metric::ColdStart],
            Self::Measure { .. } => &[Metric::Measure],
        }
    }

    /// The metrics that are compared by default, most important first.
    pub fn usual_metrics(&self) -> &'static [Metric] {
        match self {
            Self::Closed { .. } => &[Metric::Throughput],
            Self::Open { .. } => &[Metric::P50, Metric::P99],
            Self::Peak { .. } | Self::Starts { .. } | Self::Measure { .. } => self.metrics(),
        }
    }

    /// Expected number of requests of one contender that lie beyond a percentile in one epoch. None for metrics that are no percentile, and if no
    /// rate is given, because the number is then unknown before the race.
    pub fn requests_beyond(&self, slices: Slices, metric: Metric) -> Option<f64> {
        let requests = self.rate_per_s()? * slices.measured_ns() as f64 / 1e9;
        metric.quantile().map(|at| beyond(requests, at))
    }
}
