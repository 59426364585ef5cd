//! The kinds of scenario: what is done to contenders, and what can be compared afterwards.
//!
//! Owns: everything that depends on the kind alone. Whoever needs to know asks here, so that a new kind changes few files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Metric, Objective, Slices, beyond};

/// What is done to each contender in a scenario. In JSON it is the scenario's `shape`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[schemars(rename = "Shape")]
pub enum Experiment {
    /// Each connection waits for its answer before it sends again.
    Closed {
        /// How many connections.
        connections: u32,
    },
    /// Requests are due at a rate, whatever the answers do.
    Open {
        /// How many connections at the most.
        connections: u32,
        /// Requests per second.
        rate_per_s: f64,
        /// Whether the gaps are exponential (Poisson) or all the same.
        poisson: bool,
    },
    /// Requests are due at rates that are tried one after the other: the highest at which an objective is met is looked
    /// for. Gaps are exponential.
    Peak {
        /// How many connections at the most.
        connections: u32,
        /// What must hold.
        objective: Objective,
    },
    /// No load: each contender is started afresh again and again, and the time to its first answer that meets the contract is
    /// compared.
    Starts {
        /// How many fresh starts of each contender.
        starts: u32,
    },
    /// No load: a command of each contender measures something by itself, in a fresh process each time, and prints it.
    Measure {
        /// Its name among the contenders' `measures`.
        measure: String,
    },
}

impl Experiment {
    /// How many connections the load holds open; 0 without a load.
    pub fn connections(&self) -> u32 {
        match self {
            Self::Closed { connections }
            | Self::Open { connections, .. }
            | Self::Peak { connections, .. } => *connections,
            Self::Starts { .. } | Self::Measure { .. } => 0,
        }
    }

    /// The same with another number of connections.
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

    /// The same as somebody asks for it who gives it another rate or objective; what has no load stays as it is.
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

    /// Whether contenders are loaded at all: else each epoch has one value of each contender.
    pub fn is_load(&self) -> bool {
        !matches!(self, Self::Starts { .. } | Self::Measure { .. })
    }

    /// Whether one and the same load lasts from the first slice to the last.
    pub fn is_steady(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Open { .. })
    }

    /// Whether each connection waits for its answer.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// The rate that is common to all contenders, in requests per second; none where the contender sets it.
    pub fn rate_per_s(&self) -> Option<f64> {
        if let Self::Open { rate_per_s, .. } = self { Some(*rate_per_s) } else { None }
    }

    /// What must hold at the peak rate that is looked for.
    pub fn objective(&self) -> Option<Objective> {
        if let Self::Peak { objective, .. } = self { Some(*objective) } else { None }
    }

    /// How many fresh starts of each contender are compared.
    pub fn starts(&self) -> Option<u32> {
        if let Self::Starts { starts } = self { Some(*starts) } else { None }
    }

    /// The name of what each contender measures by itself.
    pub fn measure(&self) -> Option<&str> {
        if let Self::Measure { measure } = self { Some(measure) } else { None }
    }

    /// Every metric that it measures of each contender, and in which two records can be compared.
    pub fn metrics(&self) -> &'static [Metric] {
        match self {
            Self::Closed { .. } | Self::Open { .. } => &Metric::OF_LOADS,
            Self::Peak { .. } => &[Metric::Peak],
            Self::Starts { .. } => &[Metric::ColdStart],
            Self::Measure { .. } => &[Metric::Measure],
        }
    }

    /// What is compared where nobody says otherwise, what matters most first.
    pub fn usual_metrics(&self) -> &'static [Metric] {
        match self {
            Self::Closed { .. } => &[Metric::Throughput],
            Self::Open { .. } => &[Metric::P50, Metric::P99],
            Self::Peak { .. } | Self::Starts { .. } | Self::Measure { .. } => self.metrics(),
        }
    }

    /// The quantile of its objective, from 0 to 1; else none.
    pub fn objective_quantile(&self) -> Option<f64> {
        self.objective().map(|objective| objective.quantile)
    }

    /// How many requests of an epoch will lie beyond a percentile, of each contender, where a rate says so; none of other metrics and
    /// where nobody knows before the race.
    pub fn requests_beyond(&self, slices: Slices, metric: Metric) -> Option<f64> {
        let requests = self.rate_per_s()? * slices.measured_ns() as f64 / 1e9;
        metric.quantile().map(|at| beyond(requests, at))
    }
}
