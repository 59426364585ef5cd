//! The report: everything that is shown of a race. It is also the document that `race --json` writes, schema `deadheat.record/1`, a
//! public contract.
//!
//! Owns: its shape, and what can be looked up in it. It holds the whole record and, beside it, what was derived from it. Texts are as the
//! record has them: renderers escape. Must not know: how anything is derived or shown.

mod edge;
mod ladder;

use std::collections::BTreeMap;

use deadheat_record::{
    Axis, CollectorKind, End, Experiment, Finding, Limits, Machine, Method, Metric, Outcomes, Quantiles,
    Record, Severity, Throttling, VerdictWord,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::ConditionResult;
use crate::series;

pub use edge::{EdgeCache, EdgeUser};
pub use ladder::{Climb, LadderResult, LadderStep};

/// The record with what was derived from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct Report {
    /// `deadheat.record/1`.
    pub schema: String,
    /// The study's name; `ad-hoc` for commands given on the command line.
    pub study: String,
    /// Every random order comes from it.
    pub seed: u64,
    /// Where it was measured.
    pub machine: Machine,
    /// Who was raced.
    pub contenders: Vec<ContenderSummary>,
    /// Every difference that a parity check found; empty when all contenders agree.
    pub parity: Vec<ParitySummary>,
    /// One entry per scenario.
    pub scenarios: Vec<ScenarioResult>,
    /// One entry per sweep.
    #[serde(default)]
    pub sweeps: Vec<SweepResult>,
    /// One entry per ladder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ladders: Vec<LadderResult>,
    /// Findings that are not about one scenario.
    pub findings: Vec<Finding>,
    /// Whether the race came to its planned end; false while it runs and after an interruption.
    pub complete: bool,
    /// The command that runs the same plan again, ready for a shell.
    #[serde(default)]
    pub reproduce: String,
    /// What `--fail-if` asked of this race, in the order given; `deadheat report` knows of none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionResult>,
    /// Everything planned and observed, raw.
    pub record: Record,
}

/// One contender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContenderSummary {
    /// Unique.
    pub name: String,
    /// What its version command printed.
    pub version: Option<String>,
    /// How it was started.
    pub command: String,
    /// `raced`, or why it was not.
    pub status: String,
}

/// One difference between contenders or against the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParitySummary {
    /// Who.
    pub contender: String,
    /// The probe that was asked.
    pub probe: String,
    /// Where in the answer.
    pub path: String,
    /// What it should have been.
    pub expected: String,
    /// What it was.
    pub got: String,
}

/// A contender's figure in one metric, for itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// What it is: requests per second, microseconds of CPU time, or nanoseconds.
    pub metric: Metric,
    /// Geometric mean over epochs.
    pub value: f64,
    /// Lower end of its 95 % interval over epochs; none with fewer than two. It is the spread of one contender: whether two
    /// differ is said by their comparison.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// What one contender did in one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Result")]
pub struct ContenderResult {
    /// Who.
    pub contender: String,
    /// Mean over epochs of the mean of the slices' rates.
    pub throughput_rps: Option<f64>,
    /// Requests that were due per second, under an open load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_rps: Option<f64>,
    /// The share of what was due that it kept up with, under an open load, 0 to 1: what it answered, less the share by which it fell behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_share: Option<f64>,
    /// The highest rate at which the scenario's objective was met: geometric mean over epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_rps: Option<f64>,
    /// Of all requests of all epochs, from the intended time.
    pub latency_ns: Quantiles,
    /// CPU time of the whole process tree per completion, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// The part of it in user mode: `cpu_us_per_request` divided as the kernel's ticks fell (`user_ns` and `system_ns` of the
    /// record's usage), so that both parts add up to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_us_per_request: Option<f64>,
    /// The part of it in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_us_per_request: Option<f64>,
    /// Instructions that the tree retired per completion in the pilot, where the processor counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_per_request: Option<f64>,
    /// What was counted: `instructions`, or `instructions:u` where those of the kernel are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_source: Option<String>,
    /// Context switches of the tree's threads per completion, voluntary and involuntary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches_per_request: Option<f64>,
    /// Those of them that were involuntary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches_per_request: Option<f64>,
    /// CPU time of the tree while it was loaded, as a share of what the contender's cores or its quota of them allow, 0 to 1.
    pub cpu_share: Option<f64>,
    /// CPU time of the study's services per completion, in microseconds: what the contender had them do. None without services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services_us_per_request: Option<f64>,
    /// CPU time of the study's services while the contender was loaded, as a share of the contenders' cores, on which they run, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services_share: Option<f64>,
    /// Bytes of answers in each second of load, heads included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes_per_s: Option<f64>,
    /// The most processes that its tree had after an epoch's last round: its workers are among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<usize>,
    /// How often, and for how long, a CPU quota held it back over all rounds: the scenario's, or one that nobody asked for. None
    /// where no control group counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttling>,
    /// Proportional set size of the tree at the end of an epoch, median over epochs.
    pub rss_bytes: Option<u64>,
    /// Highest proportional set size of the tree seen.
    pub peak_rss_bytes: Option<u64>,
    /// From when its command began to its first answer that met the contract, median over epochs.
    pub cold_start_ns: Option<u64>,
    /// Every start of a scenario of fresh starts, in time order; those of disturbed rounds are not among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cold_starts_ns: Vec<u64>,
    /// What its own command measured: geometric mean over runs, in nanoseconds where it is a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// Size of the files that it is deployed as, in bytes, where the study names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artefact_bytes: Option<u64>,
    /// How the requests ended.
    pub outcomes: Outcomes,
    /// Answers by status.
    pub status: BTreeMap<u16, u64>,
    /// One entry per metric that was compared and measured, with its interval.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// Compact letters in the scenario's first metric, best first: contenders that share one are not told apart.
    pub letters: String,
    /// Latency of all requests of all epochs: quantile, from 0 to 1, and nanoseconds, ascending; as far as there are 100 requests
    /// beyond.
    #[serde(default)]
    pub latency_curve: Vec<(f64, u64)>,
    /// One entry per epoch that it took part in, in time order.
    #[serde(default)]
    pub epochs: Vec<EpochFigures>,
}

/// What one contender did in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpochFigures {
    /// From 1, within the scenario.
    pub epoch: usize,
    /// Mean of the rates of the slices that were kept; none where a peak is looked for.
    pub throughput_rps: Option<f64>,
    /// CPU time of the whole process tree per completion, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Proportional set size of the tree at the end of the epoch.
    pub rss_bytes: Option<u64>,
    /// Highest proportional set size of the tree seen in the epoch.
    pub peak_rss_bytes: Option<u64>,
    /// From when its command began to its first answer that met the contract.
    pub cold_start_ns: u64,
}

/// What a gate says of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GateWord {
    /// The reading is within its limits.
    Pass,
    /// The number stands, with a finding beside it.
    Warn,
    /// The number does not measure what it claims to.
    Invalid,
}

impl From<Option<Severity>> for GateWord {
    fn from(severity: Option<Severity>) -> Self {
        match severity {
            None => Self::Pass,
            Some(Severity::Warn) => Self::Warn,
            Some(Severity::Invalid) => Self::Invalid,
        }
    }
}

/// What a gate read, also where the reading is within its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateReading {
    /// The code of the finding that it makes when the reading is over a limit.
    pub code: String,
    /// The contender that it is about; none when it is about the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contender: Option<String>,
    /// What it says.
    pub state: GateWord,
    /// What was read, with its figure first.
    pub reading: String,
}

/// A contender's place in one metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ranked {
    /// Who.
    pub contender: String,
    /// Compact letters: contenders that share one are not told apart. Empty unless every pair was compared.
    pub letters: String,
}

/// Who is how good in one metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// What is compared.
    pub metric: Metric,
    /// Best first.
    pub contenders: Vec<Ranked>,
    /// The verdict as a sentence.
    #[serde(default)]
    pub headline: String,
}

/// One pair, compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The other side.
    pub baseline: String,
    /// The side that the verdict speaks of.
    pub contender: String,
    /// What was compared.
    pub metric: Metric,
    /// Contender over baseline; none before anything was measured.
    pub ratio: Option<f64>,
    /// Lower end of the interval; none with fewer than two epochs.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The error rate that the interval spends, after Holm.
    pub alpha: f64,
    /// What can be said.
    pub verdict: VerdictWord,
    /// Whether a difference was found that lies within the margin.
    pub negligible: bool,
    /// Epochs that the comparison rests on.
    pub epochs: usize,
    /// Standard deviation of the epochs' log ratios.
    pub sd_log_ratio: Option<f64>,
    /// How much each epoch's log ratio follows that of the epoch before: their correlation, corrected for its bias in few
    /// epochs; none with fewer than ten. Verdicts rest on epochs that do not follow each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_correlation: Option<f64>,
    /// Its distance from 0 in standard errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_z: Option<f64>,
    /// The smallest ratio that this race could have detected (with a power of 90 %).
    pub detectable_ratio: Option<f64>,
    /// Epochs that would be needed to decide at the margin.
    pub epochs_needed: Option<usize>,
    /// The ratio of the totals, nothing trimmed.
    pub total_ratio: Option<f64>,
    /// Whether the interval is not yet a look's: the race was interrupted or is still running.
    pub provisional: bool,
    /// Contender over baseline in each epoch, in time order.
    pub epoch_ratios: Vec<f64>,
}

/// A contender's pauses in the diagnostic pass of a scenario, for each second of load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectorResult {
    /// Who.
    pub contender: String,
    /// Whose collector it is.
    pub kind: CollectorKind,
    /// How many pauses were counted.
    pub pauses: u64,
    /// How many there were in each second of load.
    pub pauses_per_s: f64,
    /// For how long the contender paused in each second of load, in nanoseconds; over 1e9 only where it has several processes.
    pub paused_ns_per_s: f64,
    /// The longest pause, in nanoseconds; 0 where there was none.
    pub longest_ns: u64,
    /// Requests answered in each second of this load, with the logging on: not what the race measured.
    pub requests_per_s: f64,
}

/// Why a scenario ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// Every pair was decided at a look.
    Decided,
    /// The largest number of epochs was reached.
    Maximum,
    /// The time budget was used up.
    Budget,
    /// Parity or a gate left fewer than two contenders.
    Stopped,
    /// Nothing can be compared.
    Unavailable,
    /// It has not ended: the race runs, or was interrupted.
    Unfinished,
}

impl From<Option<End>> for Ended {
    fn from(end: Option<End>) -> Self {
        match end {
            Some(End::Decided) => Self::Decided,
            Some(End::Maximum) => Self::Maximum,
            Some(End::Budget) => Self::Budget,
            Some(End::Stopped) => Self::Stopped,
            Some(End::Unavailable) => Self::Unavailable,
            None => Self::Unfinished,
        }
    }
}

/// One scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioResult {
    /// Its name.
    pub name: String,
    /// Closed, open, or a peak that is looked for.
    pub shape: Experiment,
    /// Epochs that were measured.
    pub epochs: usize,
    /// One entry per raced contender, in plan order.
    pub results: Vec<ContenderResult>,
    /// Every pair that was asked for, in every metric that could be compared, metric by metric.
    pub comparisons: Vec<Comparison>,
    /// One entry per metric that was asked for, what matters most first.
    #[serde(default)]
    pub rankings: Vec<Ranking>,
    /// What weakens the numbers.
    pub findings: Vec<Finding>,
    /// What every gate read that follows from the record's figures.
    #[serde(default)]
    pub gates: Vec<GateReading>,
    /// What users would see behind the cache that the study speaks of: a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_cache: Option<EdgeCache>,
    /// One entry per contender whose collector a diagnostic pass watched under this load, in plan order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<CollectorResult>,
    /// Why it ended.
    pub ended: Ended,
}

/// The Universal Scalability Law fitted to a contender's rates over a sweep: a diagnostic, never a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// Who.
    pub contender: String,
    /// Requests per second at 1.
    pub lambda: f64,
    /// Contention: the share of the work that waits for its turn, 0 to 1.
    pub sigma: f64,
    /// Coherency: the cost of keeping each pair in agreement.
    pub kappa: f64,
    /// Where the law has its highest rate; none when it never falls.
    pub peak_at: Option<f64>,
    /// Share of the variance that the law explains.
    pub r2: Option<f64>,
    /// The law between the first and the last point: value of the axis, requests per second.
    #[serde(default)]
    pub curve: Vec<(f64, f64)>,
}

/// Scenarios that differ in one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepResult {
    /// The name that they have in common.
    pub name: String,
    /// What differs between them.
    pub axis: Axis,
    /// Value and scenario's name of each point, in plan order.
    pub points: Vec<(f64, String)>,
    /// One entry per contender whose rates a law could be fitted to.
    pub fits: Vec<Fit>,
}

impl Report {
    /// The scenario of that name.
    pub fn scenario(&self, name: &str) -> Option<&ScenarioResult> {
        self.scenarios.iter().find(|one| one.name == name)
    }

    /// Who goes by that name.
    pub fn contender(&self, name: &str) -> Option<&ContenderSummary> {
        self.contenders.iter().find(|one| one.name == name)
    }

    /// The sweep that has the scenario among its points.
    pub fn sweep_of(&self, scenario: &str) -> Option<&SweepResult> {
        self.sweeps.iter().find(|sweep| sweep.points.iter().any(|(_, name)| name == scenario))
    }

    /// The method that the race went by.
    pub fn method(&self) -> &Method {
        &self.record.plan.method
    }

    /// Whom the others of a scenario are compared with; none when nobody is compared.
    pub fn baseline(&self, scenario: &str) -> Option<&str> {
        let (one, _) = series::pairs(&self.record, scenario).into_iter().next()?;
        self.record.plan.contenders.get(one).map(|one| one.name.as_str())
    }

    /// What each contender of a scenario was held to.
    pub fn limits(&self, scenario: &str) -> Option<&Limits> {
        self.record.plan.scenario(scenario).map(|plan| &plan.limits)
    }

    /// Epochs that a scenario's verdicts rest on; its own count is of all that were measured.
    pub fn counted(&self, scenario: &ScenarioResult) -> usize {
        let of_pairs = scenario.comparisons.first().map(|pair| pair.epochs);
        series::counted(&self.record, &scenario.name, of_pairs)
    }

    /// Epochs of a scenario that were measured and count for nothing.
    pub fn left_out(&self, scenario: &ScenarioResult) -> usize {
        scenario.epochs.saturating_sub(self.counted(scenario))
    }

    /// Who was not raced to the end, and why with the remedy.
    pub fn not_raced(&self) -> impl Iterator<Item = (&str, &str)> {
        let skipped = self.record.plan.skipped.iter().map(|(name, why)| (name.as_str(), why.as_str()));
        let out = self
            .record
            .out
            .iter()
            .filter_map(move |name| self.contender(name).map(|one| (name.as_str(), one.status.as_str())));
        skipped.chain(out)
    }
}

impl ScenarioResult {
    /// What a contender did.
    pub fn result(&self, contender: &str) -> Option<&ContenderResult> {
        self.results.iter().find(|one| one.contender == contender)
    }

    /// Who is how good in a metric.
    pub fn ranking(&self, metric: Metric) -> Option<&Ranking> {
        self.rankings.iter().find(|one| one.metric == metric)
    }

    /// The results, best first by a ranking of theirs.
    pub fn ranked<'a>(&'a self, ranking: &'a Ranking) -> impl Iterator<Item = &'a ContenderResult> {
        ranking.contenders.iter().filter_map(move |one| self.result(&one.contender))
    }

    /// The results, best first in the scenario's first metric.
    pub fn best_first(&self) -> Vec<&ContenderResult> {
        match self.rankings.first() {
            Some(first) => self.ranked(first).collect(),
            None => self.results.iter().collect(),
        }
    }

    /// How a pair stands in a metric.
    pub fn pair(&self, metric: Metric, baseline: &str, contender: &str) -> Option<&Comparison> {
        let of_pair = |one: &&Comparison| {
            one.metric == metric && one.baseline == baseline && one.contender == contender
        };
        self.comparisons.iter().find(of_pair)
    }
}

impl ContenderResult {
    /// Its figure in a metric, whether or not that was compared, in the unit of the document.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let whole = |number: Option<u64>| number.map(|number| number as f64);
        match metric {
            Metric::Throughput => self.throughput_rps,
            Metric::Cpu => self.cpu_us_per_request,
            Metric::P50 => whole(self.latency_ns.p50),
            Metric::P99 => whole(self.latency_ns.p99),
            Metric::Memory => whole(self.rss_bytes),
            Metric::Peak => self.peak_rps,
            Metric::ColdStart => whole(self.cold_start_ns),
            Metric::Measure => self.measured,
        }
    }

    /// Its figure in a metric that was compared.
    pub fn figure(&self, metric: Metric) -> Option<&Figure> {
        self.figures.iter().find(|one| one.metric == metric)
    }
}

impl Ranking {
    /// A contender's letters; empty unless every pair was compared.
    pub fn letters(&self, contender: &str) -> &str {
        self.contenders.iter().find(|one| one.contender == contender).map_or("", |one| one.letters.as_str())
    }
}

/// The JSON Schema of the document, pretty-printed.
///
/// # Errors
/// None in practice: the schema is made from the types.
pub fn schema_json() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(Report))?;
    text.push('\n');
    Ok(text)
}
