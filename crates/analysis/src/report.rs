//! The report: everything that deadheat shows of a race. It is also the document that `race --json` writes (schema `deadheat.record/1`),
//! which is a public contract.
//!
//! Owns: the shape of the report, and look-ups in it. The report holds the whole record and everything derived from it. It keeps texts
//! exactly as the record has them: renderers escape them. Must not know: how anything is derived or shown.

mod edge;
mod ladder;
mod load_hosts;

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
pub use load_hosts::{EpochReadings, LinkUse, LoadHostResult, LoadHostsResult, MachineReadings};

/// The record and everything derived from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct Report {
    /// `deadheat.record/1`.
    pub schema: String,
    /// The study's name; `ad-hoc` for commands given on the command line.
    pub study: String,
    /// The seed of every random order.
    pub seed: u64,
    /// The machine that was measured.
    pub machine: Machine,
    /// The contenders.
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
    /// Whether the race reached its planned end; false while it runs and after an interruption.
    pub complete: bool,
    /// The command that runs the same plan again, ready for a shell.
    #[serde(default)]
    pub reproduce: String,
    /// The results of the conditions of `--fail-if`, in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionResult>,
    /// Everything planned and observed, raw.
    pub record: Record,
}

/// One contender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContenderSummary {
    /// Its name, unique in the race.
    pub name: String,
    /// What its version command printed.
    pub version: Option<String>,
    /// How it was started.
    pub command: String,
    /// `raced`, or the reason why it was not raced.
    pub status: String,
}

/// One difference between two contenders, or between a contender and the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParitySummary {
    /// The contender's name.
    pub contender: String,
    /// The name of the probe.
    pub probe: String,
    /// The place in the answer.
    pub path: String,
    /// The expected value.
    pub expected: String,
    /// The value that the contender returned.
    pub got: String,
}

/// One contender's own value in one metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The metric. The value is in requests per second, microseconds of CPU time, or nanoseconds.
    pub metric: Metric,
    /// Geometric mean over epochs.
    pub value: f64,
    /// Lower end of its 95 % interval over epochs; none with fewer than two epochs. The interval shows the spread of one contender. Whether
    /// two contenders differ is decided by their comparison.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// One contender's results in one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Result")]
pub struct ContenderResult {
    /// The contender's name.
    pub contender: String,
    /// Mean over epochs of the mean of the slices' rates.
    pub throughput_rps: Option<f64>,
    /// Requests due per second, under an open load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_rps: Option<f64>,
    /// Share of the due requests that it kept up with, under an open load, 0 to 1: the share that it answered, minus the share by which it
    /// fell behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_share: Option<f64>,
    /// The highest rate at which it met the scenario's objective: geometric mean over epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_rps: Option<f64>,
    /// Latency of all requests of all epochs, measured from the intended time.
    pub latency_ns: Quantiles,
    /// CPU time of the whole process tree per completion, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// The part of `cpu_us_per_request` spent in user mode. `cpu_us_per_request` is split in proportion to the kernel's ticks (`user_ns` and
    /// `system_ns` of the record's usage), so both parts add up to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_us_per_request: Option<f64>,
    /// The part of `cpu_us_per_request` spent in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_us_per_request: Option<f64>,
    /// Instructions that the process tree retired per completion in the pilot, if the processor counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_per_request: Option<f64>,
    /// The counter: `instructions`, or `instructions:u` if it excludes the kernel's instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_source: Option<String>,
    /// Context switches of the tree's threads per completion, voluntary and involuntary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches_per_request: Option<f64>,
    /// The involuntary part of `switches_per_request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches_per_request: Option<f64>,
    /// CPU time of the process tree under load, as a share of what the contender's cores or its CPU quota allow, 0 to 1.
    pub cpu_share: Option<f64>,
    /// CPU time that the study's services spent on this contender per completion, in microseconds. None without services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services_us_per_request: Option<f64>,
    /// CPU time of the study's services while this contender was under load, as a share of the contenders' cores (which the services run on),
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services_share: Option<f64>,
    /// Bytes of answers received per second of load, including heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes_per_s: Option<f64>,
    /// The largest number of processes, workers included, in its tree after the last round of an epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<usize>,
    /// How often, and for how long, a CPU quota held it back over all rounds, whether or not the scenario sets that quota. None if no control
    /// group counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttling>,
    /// Proportional set size of the tree at the end of an epoch, median over epochs.
    pub rss_bytes: Option<u64>,
    /// Highest observed proportional set size of the tree.
    pub peak_rss_bytes: Option<u64>,
    /// Time from the start of its command to its first answer that met the contract, median over epochs.
    pub cold_start_ns: Option<u64>,
    /// Every start in a scenario of fresh starts, in time order, without those in disturbed rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cold_starts_ns: Vec<u64>,
    /// The value that its own command measured: geometric mean over runs, in nanoseconds if it is a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// Size of the files that it is deployed as, in bytes, if the study names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artefact_bytes: Option<u64>,
    /// How the requests ended.
    pub outcomes: Outcomes,
    /// Number of answers per status code.
    pub status: BTreeMap<u16, u64>,
    /// One entry per metric that was compared and measured, with its interval.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// Compact letters in the scenario's first metric, best first. No two contenders that share a letter have a verdict of faster or slower.
    pub letters: String,
    /// Latency of all requests of all epochs: pairs of quantile (0 to 1) and nanoseconds, ascending. The curve ends where fewer than 100
    /// requests lie beyond.
    #[serde(default)]
    pub latency_curve: Vec<(f64, u64)>,
    /// One entry per epoch that it took part in, in time order.
    #[serde(default)]
    pub epochs: Vec<EpochFigures>,
}

/// One contender's values in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpochFigures {
    /// The number of the epoch within the scenario, from 1.
    pub epoch: usize,
    /// Mean of the rates of the kept slices; none in a peak search.
    pub throughput_rps: Option<f64>,
    /// CPU time of the whole process tree per completion, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Proportional set size of the tree at the end of the epoch.
    pub rss_bytes: Option<u64>,
    /// Highest observed proportional set size of the tree in the epoch.
    pub peak_rss_bytes: Option<u64>,
    /// Time from the start of its command to its first answer that met the contract.
    pub cold_start_ns: u64,
}

/// A gate's judgement of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GateWord {
    /// The reading is within its limits.
    Pass,
    /// The number is usable, with a finding attached.
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

/// One value that a gate read, even if it is within its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateReading {
    /// The code of the finding that the gate raises when the reading exceeds a limit.
    pub code: String,
    /// The contender that the reading is about; none if it is about the whole scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contender: Option<String>,
    /// The gate's judgement.
    pub state: GateWord,
    /// The reading as text, beginning with its value.
    pub reading: String,
}

/// A contender's place in one metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ranked {
    /// The contender's name.
    pub contender: String,
    /// Compact letters: no two contenders that share a letter have a verdict of faster or slower. Empty unless every pair was compared.
    pub letters: String,
}

/// The order of the contenders in one metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// The metric.
    pub metric: Metric,
    /// The contenders, best first.
    pub contenders: Vec<Ranked>,
    /// The verdict as a sentence.
    #[serde(default)]
    pub headline: String,
}

/// The comparison of one pair in one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The side that the contender is compared with.
    pub baseline: String,
    /// The side that the verdict is about.
    pub contender: String,
    /// The metric.
    pub metric: Metric,
    /// Contender divided by baseline; none before the first measurement.
    pub ratio: Option<f64>,
    /// Lower end of the interval; none with fewer than two epochs.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The error rate of the interval, after Holm's correction.
    pub alpha: f64,
    /// The verdict.
    pub verdict: VerdictWord,
    /// Whether there is a difference that lies within the margin.
    pub negligible: bool,
    /// The number of epochs behind the comparison.
    pub epochs: usize,
    /// Standard deviation of the epochs' log ratios.
    pub sd_log_ratio: Option<f64>,
    /// The correlation of each epoch's log ratio with that of the epoch before, corrected for its bias with few epochs; none with fewer than
    /// ten. Intervals allow for its mean over the pairs of a metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_correlation: Option<f64>,
    /// The distance of `serial_correlation` from 0, in standard errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_z: Option<f64>,
    /// The smallest ratio that this race could have detected with a power of 90 %.
    pub detectable_ratio: Option<f64>,
    /// The number of epochs needed to decide at the margin.
    pub epochs_needed: Option<usize>,
    /// The ratio of the untrimmed totals.
    pub total_ratio: Option<f64>,
    /// Whether the interval was computed between looks, because the race was interrupted or is still running.
    pub provisional: bool,
    /// Contender divided by baseline in each epoch, in time order.
    pub epoch_ratios: Vec<f64>,
    /// The number of the epoch of each of these ratios, from 1 within the scenario; absent if no epoch before the last of them was left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epoch_numbers: Vec<usize>,
}

/// A contender's garbage collection pauses in the diagnostic pass of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectorResult {
    /// The contender's name.
    pub contender: String,
    /// The runtime that the collector belongs to.
    pub kind: CollectorKind,
    /// The number of pauses.
    pub pauses: u64,
    /// The number of pauses per second of load.
    pub pauses_per_s: f64,
    /// Time that the contender paused per second of load, in nanoseconds. It exceeds 1e9 only if the contender has several processes.
    pub paused_ns_per_s: f64,
    /// The longest pause, in nanoseconds; 0 if there was none.
    pub longest_ns: u64,
    /// Requests answered per second in this pass, with the collector's logging on. This is not the rate that the race measured.
    pub requests_per_s: f64,
}

/// What a contender used for each request in the diagnostic pass that sampled its CPU time. In this pass it ran alone, and its runtime described the
/// code that it compiled. These are not the values that the race measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileResult {
    /// The contender's name.
    pub contender: String,
    /// Requests per second that the generator sent, the same for all contenders.
    pub rate_per_s: f64,
    /// The number of requests that it answered.
    pub requests: u64,
    /// The number of sampled stacks.
    pub samples: u64,
    /// Whether only code in user mode was sampled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user_only: bool,
    /// CPU time of the whole process tree, in nanoseconds.
    pub cpu_ns_per_request: f64,
    /// System calls; absent if they could not be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls_per_request: Option<f64>,
    /// Page faults; absent if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_faults_per_request: Option<f64>,
    /// Context switches, voluntary and involuntary; absent if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches_per_request: Option<f64>,
    /// Bytes sent to the load generator, including the heads of answers.
    pub sent_bytes_per_request: f64,
    /// Bytes received from the load generator.
    pub received_bytes_per_request: f64,
    /// Growth of its memory, in bytes of proportional set size; absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_growth_bytes_per_request: Option<f64>,
}

/// The functions that take more CPU time per request in one contender than in another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gains {
    /// The contender that it is compared with.
    pub baseline: String,
    /// The contender.
    pub contender: String,
    /// CPU time per request of the contender minus that of the baseline, in nanoseconds.
    pub gained_ns: f64,
    /// At most five functions that gained more than chance explains, the largest gain first.
    pub functions: Vec<FunctionGain>,
}

/// One function that takes more CPU time per request than in the baseline. The times of a function in the contender's code include what it calls in the
/// runtime, libraries and the kernel. The times of a runtime's, library's or kernel function count only where no function in the contender's code called it.
/// So each moment counts for one function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionGain {
    /// Its name.
    pub function: String,
    /// The source file, without folders, if known; for code without a name, the program or library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line on which it begins in the contender, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// CPU time per request in the baseline, in nanoseconds.
    pub baseline_ns: f64,
    /// CPU time per request in the contender, in nanoseconds.
    pub contender_ns: f64,
    /// The difference of the two, in nanoseconds.
    pub gained_ns: f64,
    /// The gain as a share of all CPU time per request of the contender, 0 to 1.
    pub share: f64,
    /// The part of the gain in the function itself, in nanoseconds.
    #[serde(default)]
    pub own_gained_ns: f64,
    /// The function of the runtime, a library or the kernel that it called and in which most of its gain is; absent if more of it is in the function itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<CalledGain>,
}

/// The part of a function's gain that is in one of the functions that it called, with everything that this one called in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalledGain {
    /// The name of the called function.
    pub function: String,
    /// This part of the gain, in nanoseconds.
    pub gained_ns: f64,
}

/// Why a scenario ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// Every pair was decided at a look.
    Decided,
    /// The largest number of epochs was reached.
    Maximum,
    /// The time budget ran out.
    Budget,
    /// Parity or a gate left fewer than two contenders.
    Stopped,
    /// Nothing can be compared.
    Unavailable,
    /// It has not ended: the race is running or was interrupted.
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
    /// Its experiment, for example a closed load, an open load or a peak search.
    pub shape: Experiment,
    /// The number of measured epochs.
    pub epochs: usize,
    /// One entry per raced contender, in plan order.
    pub results: Vec<ContenderResult>,
    /// Every requested pair in every metric that could be compared, metric by metric.
    pub comparisons: Vec<Comparison>,
    /// One entry per requested metric, the most important first.
    #[serde(default)]
    pub rankings: Vec<Ranking>,
    /// Findings that weaken the numbers of this scenario.
    pub findings: Vec<Finding>,
    /// Every gate reading that follows from the record's values.
    #[serde(default)]
    pub gates: Vec<GateReading>,
    /// One entry per contender beside the baseline, if requests came at a given rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_shifts: Vec<LatencyShift>,
    /// A model of what users see behind the edge cache that the study describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_cache: Option<EdgeCache>,
    /// One entry per contender whose collector a diagnostic pass observed under this load, in plan order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<CollectorResult>,
    /// One entry per contender whose CPU time a diagnostic pass sampled, in plan order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfileResult>,
    /// One entry per profiled contender other than the one that the others are compared with, in plan order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<Gains>,
    /// The machines that took part; absent if the load came from the contenders' machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_hosts: Option<LoadHostsResult>,
    /// Why the scenario ended.
    pub ended: Ended,
}

/// A contender's latency, divided by the baseline's, from the fastest requests to the slowest ("shift function"). It is a diagnostic, never a
/// verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyShift {
    /// The baseline's name.
    pub baseline: String,
    /// The contender's name.
    pub contender: String,
    /// One entry per share of requests that enough requests lie beyond, ascending.
    pub points: Vec<ShiftPoint>,
}

/// The ratio of two latencies at one share of requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShiftPoint {
    /// The share of requests that are answered within the latency, 0 to 1: 0.99 is p99.
    pub share: f64,
    /// Contender divided by baseline: geometric mean over epochs.
    pub ratio: f64,
    /// Lower end of the 95 % interval over epochs, for this share alone; none with fewer than two epochs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// The Universal Scalability Law, fitted to one contender's rates over a sweep. It is a diagnostic, never a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// The contender's name.
    pub contender: String,
    /// Requests per second at axis value 1.
    pub lambda: f64,
    /// Contention: the share of the work that is serialized, 0 to 1.
    pub sigma: f64,
    /// Coherency: the cost of keeping each pair consistent.
    pub kappa: f64,
    /// The axis value with the highest fitted rate; none if the fitted rate never falls.
    pub peak_at: Option<f64>,
    /// Share of the variance that the fit explains.
    pub r2: Option<f64>,
    /// The fitted curve between the first and the last point: pairs of axis value and requests per second.
    #[serde(default)]
    pub curve: Vec<(f64, f64)>,
}

/// Scenarios that differ in one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepResult {
    /// The name that the scenarios share.
    pub name: String,
    /// The setting that differs.
    pub axis: Axis,
    /// Axis value and scenario name of each point, in plan order.
    pub points: Vec<(f64, String)>,
    /// One entry per contender with enough rates for a fit.
    pub fits: Vec<Fit>,
}

impl Report {
    /// Returns the scenario with this name.
    pub fn scenario(&self, name: &str) -> Option<&ScenarioResult> {
        self.scenarios.iter().find(|one| one.name == name)
    }

    /// Returns the contender with this name.
    pub fn contender(&self, name: &str) -> Option<&ContenderSummary> {
        self.contenders.iter().find(|one| one.name == name)
    }

    /// Returns the sweep that contains this scenario as a point.
    pub fn sweep_of(&self, scenario: &str) -> Option<&SweepResult> {
        self.sweeps.iter().find(|sweep| sweep.points.iter().any(|(_, name)| name == scenario))
    }

    /// Returns the method of the race.
    pub fn method(&self) -> &Method {
        &self.record.plan.method
    }

    /// Returns the contender that the scenario compares the others with; none if it compares no pairs.
    pub fn baseline(&self, scenario: &str) -> Option<&str> {
        let (one, _) = series::pairs(&self.record, scenario).into_iter().next()?;
        self.record.plan.contenders.get(one).map(|one| one.name.as_str())
    }

    /// Returns the comparisons of a scenario that conditions and conclusions are about: each contender with the baseline. A difference between the
    /// baseline and its control says nothing of a contender.
    pub fn against_baseline<'a>(&self, scenario: &'a ScenarioResult) -> Vec<&'a Comparison> {
        let baseline = self.baseline(&scenario.name);
        let control = self.record.plan.control().map(|one| one.name.as_str());
        let is_meant = |one: &&Comparison| {
            Some(one.baseline.as_str()) == baseline && Some(one.contender.as_str()) != control
        };
        scenario.comparisons.iter().filter(is_meant).collect()
    }

    /// Returns the resource limits of each contender in a scenario.
    pub fn limits(&self, scenario: &str) -> Option<&Limits> {
        self.record.plan.scenario(scenario).map(|plan| &plan.limits)
    }

    /// Returns the number of epochs behind a scenario's verdicts. `ScenarioResult::epochs` counts all measured epochs.
    pub fn counted(&self, scenario: &ScenarioResult) -> usize {
        let of_pairs = scenario.comparisons.first().map(|pair| pair.epochs);
        series::counted(&self.record, &scenario.name, of_pairs)
    }

    /// Returns the number of measured epochs that the verdicts of a scenario exclude.
    pub fn left_out(&self, scenario: &ScenarioResult) -> usize {
        scenario.epochs.saturating_sub(self.counted(scenario))
    }

    /// Returns the contenders that were not raced to the end, each with the reason and the remedy.
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
    /// Returns the results of one contender.
    pub fn result(&self, contender: &str) -> Option<&ContenderResult> {
        self.results.iter().find(|one| one.contender == contender)
    }

    /// Returns the ranking in a metric.
    pub fn ranking(&self, metric: Metric) -> Option<&Ranking> {
        self.rankings.iter().find(|one| one.metric == metric)
    }

    /// Returns the results in the order of a ranking of this scenario, best first.
    pub fn ranked<'a>(&'a self, ranking: &'a Ranking) -> impl Iterator<Item = &'a ContenderResult> {
        ranking.contenders.iter().filter_map(move |one| self.result(&one.contender))
    }

    /// Returns the results in the order of the scenario's first metric, best first.
    pub fn best_first(&self) -> Vec<&ContenderResult> {
        match self.rankings.first() {
            Some(first) => self.ranked(first).collect(),
            None => self.results.iter().collect(),
        }
    }

    /// Returns the comparison of a pair in a metric.
    pub fn pair(&self, metric: Metric, baseline: &str, contender: &str) -> Option<&Comparison> {
        let of_pair = |one: &&Comparison| {
            one.metric == metric && one.baseline == baseline && one.contender == contender
        };
        self.comparisons.iter().find(of_pair)
    }
}

impl Comparison {
    /// Returns the number of each epoch within the scenario, with its ratio.
    pub fn numbered_ratios(&self) -> impl Iterator<Item = (usize, f64)> {
        let number = move |at: usize| self.epoch_numbers.get(at).copied().unwrap_or(at + 1);
        self.epoch_ratios.iter().enumerate().map(move |(at, ratio)| (number(at), *ratio))
    }

    /// Returns the smallest ratio that the race could have detected, if its scenario has `ended` at a look. Before that the interval is provisional, or
    /// alpha is left for later looks: a ratio for the whole of alpha would contradict the interval.
    pub fn could_have_detected(&self, ended: Ended) -> Option<f64> {
        self.detectable_ratio.filter(|_| !self.provisional && ended != Ended::Unfinished)
    }
}

impl ContenderResult {
    /// Returns its value in a metric, whether or not the metric was compared, in the unit of the document.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let whole = |number: Option<u64>| number.map(|number| number as f64);
        match metric {
            Metric::Throughput => self.throughput_rps,
            Metric::Cpu => self.cpu_us_per_request,
            Metric::P50 => whole(self.latency_ns.p50),
            Metric::P90 => whole(self.latency_ns.p90),
            Metric::P99 => whole(self.latency_ns.p99),
            Metric::P999 => whole(self.latency_ns.p99_9),
            Metric::Memory => whole(self.rss_bytes),
            Metric::Peak => self.peak_rps,
            Metric::ColdStart => whole(self.cold_start_ns),
            Metric::Measure => self.measured,
        }
    }

    /// Returns its value in a metric that was compared.
    pub fn figure(&self, metric: Metric) -> Option<&Figure> {
        self.figures.iter().find(|one| one.metric == metric)
    }
}

impl Ranking {
    /// Returns a contender's letters; empty unless every pair was compared.
    pub fn letters(&self, contender: &str) -> &str {
        self.contenders.iter().find(|one| one.contender == contender).map_or("", |one| one.letters.as_str())
    }
}
