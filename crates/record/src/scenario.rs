//! What a scenario specifies: its metrics, its slices, and its place in a sweep or on a ladder.
//!
//! Owns: how the method applies to a scenario. Must not know: how anything is judged or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Method, Metric, Plan, ScenarioPlan};

/// How an epoch is divided into slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slices {
    /// Length of a slice in nanoseconds; in a peak search, the minimum length of a trial.
    pub slice_ns: u64,
    /// Rounds per epoch, an even number; in a peak search, the number of trials of its last part, the staircase.
    pub rounds: u32,
}

impl Slices {
    /// Time for which each contender is measured in an epoch.
    pub fn measured_ns(&self) -> u64 {
        self.slice_ns.saturating_mul(u64::from(self.rounds))
    }
}

/// The setting that a sweep varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// The number of connections.
    Connections,
    /// The number of cores that contenders may run on.
    Cores,
    /// The quota of CPU time, in cores.
    Cpus,
    /// The rate of the link, in megabits per second.
    #[serde(rename = "link.rate")]
    LinkRate,
    /// The delay of the link in each direction, in milliseconds.
    #[serde(rename = "link.delay")]
    LinkDelay,
}

impl Axis {
    /// All axes.
    pub const ALL: [Self; 5] = [Self::Connections, Self::Cores, Self::Cpus, Self::LinkRate, Self::LinkDelay];

    /// The word that studies and records use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Cores => "cores",
            Self::Cpus => "cpus",
            Self::LinkRate => "link.rate",
            Self::LinkDelay => "link.delay",
        }
    }

    /// What a value of the axis counts, as it follows or heads numbers.
    pub fn title(self) -> &'static str {
        match self {
            Self::Connections | Self::Cores | Self::Cpus => self.word(),
            Self::LinkRate => "Mbit/s",
            Self::LinkDelay => "ms delay",
        }
    }
}

/// The place of a scenario in a sweep: several scenarios with the same load that differ in one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// The name of the sweep.
    pub of: String,
    /// The setting that differs between the points.
    pub axis: Axis,
    /// The value of the setting in this scenario.
    pub value: f64,
}

/// The place of a scenario on a ladder: several scenarios with the same servers, which do more of their work on each rung.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rung {
    /// The ladder's name.
    pub of: String,
    /// Position of the rung, from 1, least work first. Rungs with the same position are in plan order.
    pub place: u32,
}

impl Plan {
    /// The metrics that a scenario compares, most important first; never empty.
    pub fn metrics(&self, scenario: &ScenarioPlan) -> Vec<Metric> {
        if scenario.metrics.is_empty() { vec![self.method.metric] } else { scenario.metrics.clone() }
    }

    /// Whether requests of a scenario say `Connection: close`. Each of them then opens a new connection.
    pub fn connects_anew(&self, scenario: &ScenarioPlan) -> bool {
        let is_close = |(name, value): (&String, &String)| {
            let mut words = value.split(',');
            name.eq_ignore_ascii_case("connection")
                && words.any(|one| one.trim().eq_ignore_ascii_case("close"))
        };
        let asked = |name: &str| self.probes.iter().find(|probe| probe.name == name);
        let mut probes = scenario.requests.iter().filter_map(|share| asked(&share.probe));
        probes.any(|probe| probe.request_headers.iter().any(is_close))
    }

    /// [`Self::metrics`] of the scenario of that name; empty if there is none.
    pub fn metrics_of(&self, scenario: &str) -> Vec<Metric> {
        self.scenario(scenario).map_or_else(Vec::new, |scenario| self.metrics(scenario))
    }

    /// The highest percentile that a scenario's verdicts rest on, as a quantile from 0 to 1, if requests are due even while a server stands still.
    /// None if each connection waits for its answer.
    pub fn highest_quantile(&self, scenario: &ScenarioPlan) -> Option<f64> {
        let at_the_rate =
            || self.metrics(scenario).into_iter().filter_map(Metric::quantile).max_by(f64::total_cmp);
        let experiment = &scenario.shape;
        experiment
            .objective()
            .map(|one| one.quantile)
            .or_else(|| experiment.rate_per_s().and_then(|_| at_the_rate()))
    }

    /// How a scenario's epochs are divided into slices.
    pub fn slices(&self, scenario: &ScenarioPlan) -> Slices {
        scenario.slices.unwrap_or(Slices { slice_ns: self.method.slice_ns, rounds: self.method.rounds })
    }

    /// The method as it applies to a scenario. A scenario of fresh starts has one look, after all of them.
    pub fn method_of(&self, scenario: &ScenarioPlan) -> Method {
        let looks = match scenario.shape.starts() {
            Some(starts) => vec![starts as usize],
            None => self.method.looks.clone(),
        };
        Method { looks, ..self.method.clone() }
    }

    /// The scenario of that name.
    pub fn scenario(&self, name: &str) -> Option<&ScenarioPlan> {
        self.scenarios.iter().find(|one| one.name == name)
    }
}
