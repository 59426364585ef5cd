//! What `deadheat doctor` found: schema `deadheat.doctor/1`, a public contract.
//!
//! Owns the nouns of a machine's examination: what it is, what disturbs it, its ceiling, its noise floor, the proof. Must
//! not know how they are measured, judged or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Finding, Machine, Pinning, Severity, VerdictWord};

/// The schema of [`DoctorRecord`]. Keys are stable within the number.
pub const DOCTOR_SCHEMA: &str = "deadheat.doctor/1";

/// One examination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorRecord {
    /// `deadheat.doctor/1`.
    pub schema: String,
    /// The version of deadheat that looked.
    pub version: String,
    /// When it began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// How long it took, in seconds.
    pub took_s: f64,
    /// Every random order comes from it.
    pub seed: u64,
    /// How much was done.
    pub mode: DoctorMode,
    /// What the machine is.
    pub machine: Machine,
    /// Which cores would belong to whom in a race.
    pub pinning: Pinning,
    /// What disturbed it, watched for a while.
    pub noise: Noise,
    /// What the load generator reaches here; null when it could not be measured or was interrupted.
    pub ceiling: Option<DoctorCeiling>,
    /// A server raced against itself; null with `--quick`, and when it was interrupted before.
    pub floor: Option<NoiseFloor>,
    /// What can be told apart, by the noise floor; empty without one.
    pub resolution: Vec<Resolution>,
    /// The same in one sentence; null without a noise floor.
    pub sentence: Option<String>,
    /// Races whose outcome is known; null without `--full`.
    pub proof: Option<Proof>,
    /// What is wrong with the machine for measuring, the worst first, each with its remedy.
    pub findings: Vec<Finding>,
    /// Whether none of the findings makes measuring meaningless.
    pub fit: bool,
    /// Whether a person ended it before its time.
    pub interrupted: bool,
}

impl DoctorRecord {
    /// Whether a finding makes measuring meaningless.
    pub fn is_unfit(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Invalid)
    }
}

/// How much was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DoctorMode {
    /// Facts and the ceiling.
    Quick,
    /// The noise floor, too.
    Usual,
    /// The proof, too.
    Full,
}

/// What disturbs the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Noise {
    /// For so long it was watched, in seconds.
    pub seconds: f64,
    /// The logical processors that were watched.
    pub cpus: Vec<usize>,
    /// Share of their time that the hypervisor gave to others, 0 to 1, while each was kept busy for as long again: from a processor
    /// that sleeps nothing can be stolen.
    pub steal_share: f64,
    /// Share of that time for which the processor stood still that did so longest, 0 to 1: a real-time thread that was due there came late
    /// and had not been waiting for others, whether or not the kernel counts that as steal. Absent where such threads are not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_share: Option<f64>,
    /// The longest time for which a processor stood still, in nanoseconds; absent as `stalled_share`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_stall_ns: Option<u64>,
    /// Share of their time that other programs used, 0 to 1; null where it cannot be told.
    pub foreign_share: Option<f64>,
    /// The processes that used most, the busiest first; those under a hundredth of a core are left out.
    pub busiest: Vec<BusyProcess>,
    /// Share of the last ten seconds in which something waited for a processor, 0 to 1; null where the kernel does not say.
    pub cpu_pressure: Option<f64>,
    /// What it takes to read the clock, in nanoseconds.
    pub clock_read_ns: f64,
    /// How often a core was slowed down for its heat while doctor ran; null where the processor does not say.
    pub throttled: Option<u64>,
}

/// A process of somebody else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyProcess {
    /// Its number.
    pub pid: i32,
    /// Its name, as the kernel has it.
    pub name: String,
    /// CPU time by time, in cores.
    pub cores: f64,
}

/// What the load generator reaches against the built-in null server, each on its own cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorCeiling {
    /// Complete answers per second.
    pub throughput_rps: f64,
    /// Connections, each waiting for its answer.
    pub connections: u64,
    /// Worker threads of the generator.
    pub threads: u64,
    /// How it spoke to the operating system: `io_uring` or `epoll`.
    pub backend: String,
    /// CPU time of the generator per answer.
    pub cpu_us_per_request: f64,
    /// CPU time of the generator by what its threads could have had, 0 to 1: where it is well below 1, the null server was
    /// the limit, and the generator could do more.
    pub cpu_share: Option<f64>,
}

/// A server raced against itself: what differs is noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseFloor {
    /// What was raced: a shell command.
    pub command: String,
    /// Whether it was the built-in server; a runtime with a compiler and a collector is noisier.
    pub built_in: bool,
    /// Epochs that were measured.
    pub epochs: usize,
    /// Mean time of an epoch, in seconds.
    pub epoch_s: f64,
    /// Complete answers per second.
    pub throughput_rps: Option<f64>,
    /// CPU time of the server per answer.
    pub cpu_us_per_request: Option<f64>,
    /// One over the other: 1 but for noise.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// What a race would have said: `equivalent` or `inconclusive`, else it was a false claim.
    pub verdict: VerdictWord,
    /// Two-sided error rate of that race.
    pub alpha: f64,
    /// Standard deviation of the log ratio between epochs; null with fewer than two.
    pub sd_log_ratio: Option<f64>,
    /// Where its true value lies with 90 % confidence.
    pub sd_range: Option<(f64, f64)>,
    /// How the idle server was kept still: `freezer` or `signals`.
    pub stilled_by: String,
    /// What the race itself complained of.
    pub findings: Vec<Finding>,
}

/// What it takes to tell a difference apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resolution {
    /// The difference, such as 0.03.
    pub difference: f64,
    /// Epochs that are needed to notice it with a chance of 90 %; null for over a million.
    pub epochs: Option<usize>,
    /// How long that takes, in minutes.
    pub minutes: Option<f64>,
}

/// Races whose outcome is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Races planned for each row.
    pub races: usize,
    /// The longest that all of it could take, in seconds, as said at its beginning.
    pub most_s: f64,
    /// Ratios within 1 +- margin count as equivalent.
    pub margin: f64,
    /// Two-sided error rate of each race.
    pub alpha: f64,
    /// What was planted, and what came of it.
    pub rows: Vec<ProofRow>,
    /// Every race that was finished, in the order in which they ran.
    pub results: Vec<ProofRace>,
}

/// One kind of race: a server against itself, or against one that does a known amount of work more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofRow {
    /// Such as `A/A` or `3 % more work`.
    pub name: String,
    /// The work of the contender over that of the baseline, as asked for.
    pub asked_ratio: f64,
    /// The plant; null for a server against itself.
    pub plant: Option<Plant>,
    /// CPU time per answer of the contender over that of the baseline, median of the races; null where it was not read.
    pub true_ratio: Option<f64>,
    /// Races that were finished.
    pub races: usize,
    /// How many of them said `faster`.
    pub faster: usize,
    /// How many said `slower`.
    pub slower: usize,
    /// How many said `equivalent`.
    pub equivalent: usize,
    /// How many said `inconclusive`.
    pub inconclusive: usize,
    /// How many were invalid.
    pub invalid: usize,
    /// Median time to `faster`, `slower` or `equivalent`, in seconds; null if no race came to one.
    pub median_verdict_s: Option<f64>,
}

/// Work that was planted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plant {
    /// What an answer of the baseline costs on its core, in nanoseconds: one over its throughput at saturation.
    pub cost_ns: f64,
    /// What one step of the work takes, in nanoseconds.
    pub step_ns: f64,
    /// Steps of each answer of the baseline.
    pub baseline_steps: u64,
    /// Steps of each answer of the contender.
    pub contender_steps: u64,
    /// What an answer of the contender costs over one of the baseline, both loaded by turns before the races.
    pub checked_ratio: Option<f64>,
    /// Standard error of that.
    pub checked_error: Option<f64>,
}

/// One race of the proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofRace {
    /// Its row.
    pub row: usize,
    /// Its seed.
    pub seed: u64,
    /// What it said of the contender.
    pub verdict: VerdictWord,
    /// Contender over baseline, throughput.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Epochs that it took.
    pub epochs: usize,
    /// How long it took, in seconds.
    pub took_s: f64,
    /// CPU time per answer of the contender over that of the baseline.
    pub cpu_ratio: Option<f64>,
    /// Codes of what it complained of.
    pub codes: Vec<String>,
}

/// The JSON Schema of [`DoctorRecord`], pretty-printed.
///
/// # Errors
/// None in practice: the schema is made from the types.
pub fn doctor_schema_json() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(DoctorRecord))?;
    text.push('\n');
    Ok(text)
}
