//! What `deadheat doctor` found: schema `deadheat.doctor/1`, a public contract.
//!
//! Owns: the nouns of a machine's examination: its facts, its disturbances, its ceiling, its noise floor, the proof. Must not know: how they are
//! measured, judged or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Finding, LinkBandwidth, Machine, Pinning, VerdictWord};

/// The schema of [`DoctorRecord`]. Keys do not change within this number.
pub const DOCTOR_SCHEMA: &str = "deadheat.doctor/1";

/// One examination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorRecord {
    /// `deadheat.doctor/1`.
    pub schema: String,
    /// The version of deadheat that ran.
    pub version: String,
    /// Start, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Time taken, in seconds.
    pub took_s: f64,
    /// Seed of every random order.
    pub seed: u64,
    /// The extent of the examination.
    pub mode: DoctorMode,
    /// Facts about the machine.
    pub machine: Machine,
    /// How a race would divide the cores.
    pub pinning: Pinning,
    /// Disturbances observed over a short time.
    pub noise: Noise,
    /// Throughput of the load generator on this machine; null when it could not be measured or the run was interrupted.
    pub ceiling: Option<DoctorCeiling>,
    /// The network between the load hosts and this machine; absent if the load comes from this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<DoctorLink>,
    /// Result of a race of a server against itself; null with `--quick`, and when the run was interrupted before it.
    pub floor: Option<NoiseFloor>,
    /// What a race needs to detect given differences, according to the noise floor; empty if there is none or it is invalid.
    pub resolution: Vec<Resolution>,
    /// `resolution` as one sentence; null without a noise floor.
    pub sentence: Option<String>,
    /// Results of races with a known correct outcome; null without `--full`.
    pub proof: Option<Proof>,
    /// What makes the machine less suitable for measurements, most severe first, each with its remedy.
    pub findings: Vec<Finding>,
    /// Whether the machine is fit: no finding makes measurements meaningless.
    pub fit: bool,
    /// Whether the user interrupted the run, or an error ended it: the results are those so far.
    pub interrupted: bool,
}

/// The extent of the examination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DoctorMode {
    /// Facts and the ceiling.
    Quick,
    /// Facts, the ceiling and the noise floor.
    Usual,
    /// Facts, the ceiling, the noise floor and the proof.
    Full,
}

/// Disturbances of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Noise {
    /// Length of the observation, in seconds.
    pub seconds: f64,
    /// The logical processors that were observed.
    pub cpus: Vec<usize>,
    /// Share of the processors' time that the hypervisor gave to other guests, 0 to 1. deadheat keeps each processor busy for another `seconds` to
    /// measure it, because no time can be stolen from a sleeping processor.
    pub steal_share: f64,
    /// Share of that time for which a processor stood still, 0 to 1, for the processor that stood still longest. Measured by a real-time thread that
    /// woke up late although no other thread on the processor delayed it, whether or not the kernel counts this as steal. Absent if real-time threads
    /// are not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_share: Option<f64>,
    /// The longest time for which a processor stood still, in nanoseconds; absent if `stalled_share` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_stall_ns: Option<u64>,
    /// Share of the processors' time that other programs used, 0 to 1; null if it could not be measured.
    pub foreign_share: Option<f64>,
    /// The processes that used most CPU time, busiest first. Processes below 1 % of a core are left out.
    pub busiest: Vec<BusyProcess>,
    /// Share of the last ten seconds in which a task waited for a processor, 0 to 1; null if the kernel does not report it.
    pub cpu_pressure: Option<f64>,
    /// Time to read the clock once, in nanoseconds.
    pub clock_read_ns: f64,
    /// How often a core was throttled because of heat while doctor ran; null if the processor does not report it.
    pub throttled: Option<u64>,
}

/// A process that does not belong to deadheat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyProcess {
    /// Process id.
    pub pid: i32,
    /// Process name, as the kernel reports it.
    pub name: String,
    /// CPU time divided by elapsed time, in cores.
    pub cores: f64,
}

/// Throughput of the load generator against the built-in null server, each on its own cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorCeiling {
    /// Complete answers per second.
    pub throughput_rps: f64,
    /// Number of connections. Each one waits for its answer before it sends again.
    pub connections: u64,
    /// Worker threads of the generator.
    pub threads: u64,
    /// Interface to the operating system: `io_uring` or `epoll`; `auto` if load hosts chose it.
    pub backend: String,
    /// CPU time of the generator per answer, in microseconds.
    pub cpu_us_per_request: f64,
    /// CPU time of the generator divided by the time available to its threads, 0 to 1. Well below 1, the null server was the limit, and the generator
    /// could do more.
    pub cpu_share: Option<f64>,
}

/// The network between load hosts and the machine of the servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorLink {
    /// Round trips of each load host, in the order in which they were named.
    pub hosts: Vec<DoctorLinkHost>,
    /// What the load hosts can receive from this machine per second.
    pub bandwidth: LinkBandwidth,
}

/// Round trips of a load host: latencies of small requests to a server that does nothing, one after the other over one connection, in nanoseconds by
/// the clock of the load host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorLinkHost {
    /// The host, without `ssh://`.
    pub name: String,
    /// Number of round trips.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// 99 % were at most this long.
    pub p99_ns: u64,
    /// The clock with which it measures latencies; none in records of older versions.
    #[serde(default)]
    pub clock: Option<Clock>,
}

/// A machine's clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// What the kernel reads it from, such as `tsc`; none if unknown.
    pub source: Option<String>,
    /// What the kernel could read it from.
    pub sources: Vec<String>,
    /// The time of one reading, in nanoseconds.
    pub read_ns: f64,
}

/// Result of a race of a server against itself. Any difference is noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseFloor {
    /// The shell command of the server.
    pub command: String,
    /// Whether it was the built-in server. A runtime with a compiler and a garbage collector is noisier.
    pub built_in: bool,
    /// Epochs that were measured.
    pub epochs: usize,
    /// Mean time of an epoch, in seconds.
    pub epoch_s: f64,
    /// Complete answers per second.
    pub throughput_rps: Option<f64>,
    /// CPU time of the server per answer, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Ratio of the two throughputs: 1 except for noise.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// The verdict of the race. Anything but `equivalent` or `inconclusive` is a false verdict.
    pub verdict: VerdictWord,
    /// Two-sided error rate of this race.
    pub alpha: f64,
    /// Standard deviation of the log ratio between epochs; null with fewer than two.
    pub sd_log_ratio: Option<f64>,
    /// 90 % confidence interval of the true standard deviation.
    pub sd_range: Option<(f64, f64)>,
    /// How deadheat kept the idle server from running: `freezer` or `signals`.
    pub stilled_by: String,
    /// Findings of the race itself.
    pub findings: Vec<Finding>,
}

/// What a race needs to detect a given difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resolution {
    /// The relative difference, such as 0.03.
    pub difference: f64,
    /// Epochs needed to detect it with a probability of 90 %; null for more than a million.
    pub epochs: Option<usize>,
    /// Time that these epochs take, in minutes.
    pub minutes: Option<f64>,
}

/// Races with a known correct outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Races planned for each row.
    pub races: usize,
    /// Longest time that all races can take, in seconds, as announced at the start.
    pub most_s: f64,
    /// Ratios within 1 +- margin count as equivalent.
    pub margin: f64,
    /// Two-sided error rate of each race.
    pub alpha: f64,
    /// One entry for each kind of race, with the verdicts that it got.
    pub rows: Vec<ProofRow>,
    /// Every finished race, in the order in which they ran.
    pub results: Vec<ProofRace>,
}

/// One kind of race: a server against itself, or against one that does a known amount of additional work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofRow {
    /// Name, such as `A/A` or `3 % more work`.
    pub name: String,
    /// Requested ratio of the contender's work to the baseline's.
    pub asked_ratio: f64,
    /// The added work; null for a server against itself.
    pub plant: Option<Plant>,
    /// Ratio of the contender's CPU time per answer to the baseline's, median over the races; null if it was not measured.
    pub true_ratio: Option<f64>,
    /// Number of finished races.
    pub races: usize,
    /// Number of races with the verdict `faster`.
    pub faster: usize,
    /// Number of races with the verdict `slower`.
    pub slower: usize,
    /// Number of races with the verdict `equivalent`.
    pub equivalent: usize,
    /// Number of races with the verdict `inconclusive`.
    pub inconclusive: usize,
    /// Number of invalid races.
    pub invalid: usize,
    /// Median time to the verdict `faster`, `slower` or `equivalent`, in seconds; null if no race reached one.
    pub median_verdict_s: Option<f64>,
}

/// Work that deadheat adds to the servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plant {
    /// Cost of one answer of the baseline on its core, in nanoseconds: 1 divided by its throughput at saturation.
    pub cost_ns: f64,
    /// Time of one step of the work, in nanoseconds.
    pub step_ns: f64,
    /// Steps that the baseline executes for each answer.
    pub baseline_steps: u64,
    /// Steps that the contender executes for each answer.
    pub contender_steps: u64,
    /// Ratio of the cost of a contender's answer to that of a baseline's answer, measured before the races with alternating load on both.
    pub checked_ratio: Option<f64>,
    /// Standard error of `checked_ratio`.
    pub checked_error: Option<f64>,
}

/// One race of the proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofRace {
    /// Index of its row.
    pub row: usize,
    /// Seed of the race.
    pub seed: u64,
    /// The verdict on the contender.
    pub verdict: VerdictWord,
    /// Ratio of the contender's throughput to the baseline's.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Epochs that were measured.
    pub epochs: usize,
    /// Time taken, in seconds.
    pub took_s: f64,
    /// Ratio of the contender's CPU time per answer to the baseline's.
    pub cpu_ratio: Option<f64>,
    /// Codes of the findings of the race.
    pub codes: Vec<String>,
}
