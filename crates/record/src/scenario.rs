//! What a scenario asks: its metrics, its slices, and its place in a sweep or on a ladder.
//!
//! Owns: what of the method holds for a scenario. Must not know: how anything is judged or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Method, Metric, Plan, ScenarioPlan};

/// How an epoch is cut into slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slices {
    /// Length of a slice; the least length of a trial where a peak is looked for.
    pub slice_ns: u64,
    /// Rounds per epoch, even; trials of a search's last part, the staircase, where a peak is looked for.
    pub rounds: u32,
}

impl Slices {
    /// How long each contender is measured in an epoch.
    pub fn measured_ns(&self) -> u64 {
        self.slice_ns.saturating_mul(u64::from(self.rounds))
    }
}

/// What a sweep goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// The number of connections.
    Connections,
    /// The number of cores that contenders may run on.
    Cores,
    /// The quota of CPU time, in cores.
    Cpus,
}

impl Axis {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Connections, Self::Cores, Self::Cpus];

    /// As it is written in studies and records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Cores => "cores",
            Self::Cpus => "cpus",
        }
    }
}

/// A scenario that is one point of a sweep: the same load again and again, but for one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// The name that the points have in common.
    pub of: String,
    /// What differs between them.
    pub axis: Axis,
    /// The value here.
    pub value: f64,
}

/// A scenario that is one rung of a ladder: the same servers, doing more of their work from rung to rung.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rung {
    /// The ladder's name.
    pub of: String,
    /// Its place among the rungs, from 1, the least work first; rungs of the same place stand in plan order.
    pub place: u32,
}

impl Plan {
    /// What a scenario compares, what matters most first; never empty.
    pub fn metrics(&self, scenario: &ScenarioPlan) -> Vec<Metric> {
        if scenario.metrics.is_empty() { vec![self.method.metric] } else { scenario.metrics.clone() }
    }

    /// Whether requests of a scenario say `Connection: close`: each of them is then sent on a connection of its own.
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

    /// As [`Self::metrics`] of the scenario of that name; empty where there is none.
    pub fn metrics_of(&self, scenario: &str) -> Vec<Metric> {
        self.scenario(scenario).map_or_else(Vec::new, |scenario| self.metrics(scenario))
    }

    /// The highest percentile that a scenario's verdicts rest on, as a quantile from 0 to 1, where requests are due while a server stands
    /// still: none where each connection waits for its answer.
    pub fn highest_quantile(&self, scenario: &ScenarioPlan) -> Option<f64> {
        let at_the_rate =
            || self.metrics(scenario).into_iter().filter_map(Metric::quantile).max_by(f64::total_cmp);
        let experiment = &scenario.shape;
        experiment.objective_quantile().or_else(|| experiment.rate_per_s().and_then(|_| at_the_rate()))
    }

    /// How a scenario's epochs are cut into slices.
    pub fn slices(&self, scenario: &ScenarioPlan) -> Slices {
        scenario.slices.unwrap_or(Slices { slice_ns: self.method.slice_ns, rounds: self.method.rounds })
    }

    /// The method as it holds for a scenario: one of fresh starts is looked at once, when it has all of them.
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
