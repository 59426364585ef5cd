//! Observations: the pilot, epochs, rounds, slices. They are raw and in time order. Nothing is dropped.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    EncodedHistogram, Finding, Handicap, HostReading, LinkBandwidth, LoadHostShare, LoadHostsEpoch,
    NetworkReading, PeakSeen, Throttling, Trial,
};

/// How the due requests ended. Every request is counted in exactly one of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// Answered as expected.
    pub ok: u64,
    /// Answered with another status.
    pub status: u64,
    /// Answered with another body.
    pub mismatch: u64,
    /// A connection could not be opened.
    pub connect: u64,
    /// The connection broke while the answer was read.
    pub read: u64,
    /// The connection broke while the request was written.
    pub write: u64,
    /// No answer within the timeout.
    pub timeout: u64,
    /// An answer that is not HTTP.
    pub protocol: u64,
    /// Unanswered at the end of the slice.
    pub cut: u64,
}

impl Outcomes {
    /// All due requests.
    pub fn total(&self) -> u64 {
        self.ok + self.failed()
    }

    /// All requests that did not end as expected.
    pub fn failed(&self) -> u64 {
        self.wrong() + self.unanswered()
    }

    /// Requests that got no complete answer.
    pub fn unanswered(&self) -> u64 {
        self.connect + self.read + self.write + self.timeout + self.protocol + self.cut
    }

    /// Complete answers that differ from the expected ones.
    pub fn wrong(&self) -> u64 {
        self.status + self.mismatch
    }

    /// Adds the counts of another period of load.
    pub fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        self.status += other.status;
        self.mismatch += other.mismatch;
        self.connect += other.connect;
        self.read += other.read;
        self.write += other.write;
        self.timeout += other.timeout;
        self.protocol += other.protocol;
        self.cut += other.cut;
    }
}

/// Observations of one contender in the discarded pilot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PilotContender {
    /// The contender's name.
    pub contender: String,
    /// Completions per second in each window, in time order.
    pub window_rates_per_s: Vec<f64>,
    /// End of the warm-up by MSER-5, or half of the pilot if the rate climbs after that, in nanoseconds; null if there were too few windows.
    pub cut_ns: Option<u64>,
    /// Effect on the rate when the generator does additional work for each request; absent for open loads, and if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handicap: Option<Handicap>,
    /// Instructions that the process tree retired per completion in the second half of the pilot; absent if the processor does not count them. The
    /// counter is not used in epochs, because it adds a small cost to every switch between threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_per_request: Option<f64>,
    /// What was counted: `instructions`, or `instructions:u` if those of the kernel are excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_source: Option<String>,
}

/// The discarded pilot of a scenario, and the warm-up length that it found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pilot {
    /// The scenario's name.
    pub scenario: String,
    /// Length of a window, in nanoseconds.
    pub window_ns: u64,
    /// One entry per contender.
    pub contenders: Vec<PilotContender>,
    /// Length of the warm-up of every contender in every epoch, in nanoseconds.
    pub warmup_ns: u64,
    /// Answers per second that the generator reached just before the pilot against a server that does no work, on the contenders' cores; absent if it
    /// could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_rps: Option<f64>,
    /// Bandwidth between the load hosts and the contenders' machine, measured at the same time; absent if the load comes from this machine, or if it
    /// could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkBandwidth>,
    /// The ceilings measured by sessions that continued the scenario, in time order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later_ceilings: Vec<LaterCeiling>,
}

/// The generator's ceiling at the time when a race was continued. It is measured again because the machine may have changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaterCeiling {
    /// Time of the measurement, in milliseconds since 1970. The value applies to epochs that start after it.
    pub unix_ms: u64,
    /// The ceiling, as in [`Pilot::ceiling_rps`].
    pub ceiling_rps: Option<f64>,
    /// The bandwidth, as in [`Pilot::link`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkBandwidth>,
}

impl Pilot {
    /// The ceiling of the session that started an epoch at `unix_ms`.
    pub fn ceiling_at(&self, unix_ms: u64) -> Option<f64> {
        self.later(unix_ms).map_or(self.ceiling_rps, |one| one.ceiling_rps)
    }

    /// The bandwidth in the session that started an epoch at `unix_ms`.
    pub fn link_at(&self, unix_ms: u64) -> Option<&LinkBandwidth> {
        self.later(unix_ms).map_or(self.link.as_ref(), |one| one.link.as_ref())
    }

    fn later(&self, unix_ms: u64) -> Option<&LaterCeiling> {
        self.later_ceilings.iter().rev().find(|one| one.unix_ms <= unix_ms)
    }
}

/// A short period of load on one contender while the others are frozen. In a scenario without warm-up in which each connection waits for its answer,
/// a slice is one window of such a period, and the windows of a contender follow each other without a pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slice {
    /// Index into the plan's contenders.
    pub contender: usize,
    /// Start, in nanoseconds from the start of the epoch.
    pub start_ns: u64,
    /// Time from the first request to the last answer of the drain, in nanoseconds.
    pub elapsed_ns: u64,
    /// Completions per second; null when nothing was answered. For a closed load: between the first and the last completion that count. For an open
    /// load: over the loaded time, minus the growth of the backlog.
    pub rate_per_s: Option<f64>,
    /// All completions, drain included.
    pub completions: u64,
    /// CPU time of the contender's whole process tree, in nanoseconds, from just before it was unfrozen until it was frozen again. Absent for windows
    /// of a slice, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// CPU time of the generator's threads, including `load_spin_ns`, in nanoseconds.
    pub load_cpu_ns: u64,
    /// The part of `load_cpu_ns` in which the threads were idle and polled for the next due time or answer instead of sleeping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_spin_ns: Option<u64>,
    /// Time that the generator's threads were runnable and did not run, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_run_delay_ns: Option<u64>,
    /// How often the generator's threads were scheduled on a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_runs: Option<u64>,
    /// Requests that did not end as expected.
    pub failed: u64,
    /// Share of the slice for which one of our cores stood still, 0 to 1, for the core that stood still longest. Measured by a real-time thread that
    /// woke up late although no other thread on the core delayed it, whether or not the kernel counts this as steal. Absent if no percentile is
    /// compared, if the two sides do not have separate cores, and if real-time threads are not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_share: Option<f64>,
    /// The trial, in a peak search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
}

/// Disturbance of our cores by the rest of the machine during a round, read from outside the contenders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalReading {
    /// Share of the round in which the hypervisor ran something else on our cores, 0 to 1.
    pub steal_share: f64,
    /// Share of time that processes other than ours used of the servers' cores or of the generator's cores, whichever is larger, 0 to 1. It covers
    /// all our cores together in three cases: neither side has separate cores, the clock cannot distinguish the sides, or the round consists of
    /// starts or of commands. Null if it could not be measured. It can be slightly below 0, because it combines clocks of different precision.
    pub foreign_share: Option<f64>,
}

/// One slice for every contender, in the order in which they ran. In a peak search: for every contender whose search is not finished. If slices are
/// divided into windows, these windows together are one slice of their contender: see [`Round::rate_per_s`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// The slices, in the order in which they ran.
    pub slices: Vec<Slice>,
    /// Disturbance of the machine during the round.
    pub external: ExternalReading,
    /// Why the round is excluded for all contenders. The reason is always an external signal, never a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
}

/// A contender's memory at one moment of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPoint {
    /// Time from the start of the epoch, in nanoseconds.
    pub at_ns: u64,
    /// Proportional set size, summed over the process tree.
    pub pss_bytes: u64,
}

/// Resource usage of a contender's whole process tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// CPU time over the slices, in nanoseconds.
    pub cpu_ns: u64,
    /// Source of the CPU time: `cpuacct`, `cpu.stat` or `clock` (the CPU-time clocks of its processes; before, `schedstat`, the counters of its threads).
    pub cpu_source: String,
    /// CPU time in user mode, in nanoseconds; absent if the kernel does not report it. It is less precise than `cpu_ns`: the kernel attributes each
    /// tick of its clock (1 to 10 ms) to the mode in which the tick occurs, so the share from n ticks has a standard error of up to 1 / (2 sqrt n).
    /// `cpuacct` reports the raw ticks, so the two parts may not add up to `cpu_ns`. `cpu.stat` reports them scaled to the total. Without a control
    /// group they are scaled too, in units of clock ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_ns: Option<u64>,
    /// CPU time in the kernel, in nanoseconds, with the same limits as `user_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_ns: Option<u64>,
    /// How often its threads gave up their CPU over the slices because they waited for something. This includes one switch for each thread and slice
    /// that freezing causes. Switches of threads that ended between two readings are lost. Absent if no thread could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// How often its threads lost their CPU to other threads over the slices, with the same limits as `voluntary_switches`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// CPU time of the study's services over the slices, on the same cores, in nanoseconds; absent without services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services_cpu_ns: Option<u64>,
    /// Proportional set size after the last round, summed over the process tree.
    pub pss_bytes: Option<u64>,
    /// Highest value of this sum that was observed in the epoch.
    pub peak_pss_bytes: Option<u64>,
    /// This sum before the first round, between rounds, and after the last round, in time order: at most 64 values. With many rounds, it is read
    /// after every second round, every fourth, and so on. Empty if it may not be read, and in scenarios without a load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryPoint>,
    /// Processes in the tree after the last round.
    pub processes: usize,
}

/// One contender's part of an epoch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContenderEpoch {
    /// Index into the plan's contenders.
    pub contender: usize,
    /// Time from passing its command to the shell until its first complete answer that meets the contract, according to the first probe, in
    /// nanoseconds. Its resolution is 0.5 %, and not finer than about 0.3 ms. In records of earlier versions, it starts some milliseconds earlier,
    /// when the contender's keeper process starts, and ends at the first answer of any kind.
    pub cold_start_ns: u64,
    /// The `{seed}` of its build before this epoch, 1 to 2^31 - 1; absent if it is built once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_seed: Option<u32>,
    /// Requests answered in the warm-up.
    pub warmup_requests: u64,
    /// Length of the warm-up, in nanoseconds.
    pub warmup_ns: u64,
    /// Completions over the rounds.
    pub completions: u64,
    /// Loaded time over the rounds: the sum of `elapsed_ns` of the slices.
    pub loaded_ns: u64,
    /// How the requests ended.
    pub outcomes: Outcomes,
    /// Answers by status.
    #[serde(deserialize_with = "by_status")]
    pub status: BTreeMap<u16, u64>,
    /// Connections opened again within slices.
    pub reconnects: u64,
    /// Answers after which the contender closed the connection.
    pub closed_by_server: u64,
    /// Bytes of answers received in the rounds, including heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_read: Option<u64>,
    /// Latency from the intended time, over the rounds that count.
    pub latency: EncodedHistogram,
    /// Time from intended to sent, for the same requests; absent for closed loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lag: Option<EncodedHistogram>,
    /// Time that requests waited because no connection was free, which is part of the send lag; absent for closed loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<EncodedHistogram>,
    /// The part of the send lag that the generator causes: the time from when a request is due and a connection is free until the generator handles
    /// it; absent for closed loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_lag: Option<EncodedHistogram>,
    /// Requests in flight, integrated over time (number times nanoseconds), for the requests in `latency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_ns: Option<u64>,
    /// Resource usage of the process tree.
    pub usage: Usage,
    /// Counters of the whole machine during the contender's slices.
    #[serde(default)]
    pub host: HostReading,
    /// Throttling over the rounds of the control groups that contain the contender and not deadheat; absent if no such group counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttling>,
    /// What each load host did, in the order of the plan; empty if the load comes from this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_hosts: Vec<LoadHostShare>,
    /// Counters of this machine's network during the contender's slices; absent if the load comes from this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkReading>,
    /// Time over the rounds for which the contender was not frozen, in nanoseconds. The time beyond `loaded_ns` is what orders and results took on their
    /// way. Absent if the load comes from this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awake_ns: Option<u64>,
    /// Result of the peak search; absent in other scenarios. A peak search keeps no latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<PeakSeen>,
    /// The value that its own command measured, in scenarios that compare it; in nanoseconds if it is a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// One unit of the last digit that the command printed, in the unit of `measured`: the resolution of the value. Absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_step: Option<f64>,
    /// The contender's log file.
    pub log: std::path::PathBuf,
}

/// A fresh start of every contender: the unit of replication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Epoch {
    /// The scenario's name.
    pub scenario: String,
    /// From 1, within the scenario.
    pub number: usize,
    /// Start in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Total time of the epoch, in nanoseconds.
    pub took_ns: u64,
    /// One entry per contender, in plan order.
    pub contenders: Vec<ContenderEpoch>,
    /// The rounds, in time order. Every second round runs in the reverse order of the one before.
    pub rounds: Vec<Round>,
    /// The load hosts during the rounds; absent if the load comes from this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_hosts: Option<LoadHostsEpoch>,
    /// Findings about this epoch alone.
    pub findings: Vec<Finding>,
}

impl Epoch {
    /// A contender's part of the epoch.
    pub fn of(&self, contender: usize) -> Option<&ContenderEpoch> {
        self.contenders.iter().find(|part| part.contender == contender)
    }

    /// Whether every round was excluded.
    pub fn is_disturbed(&self) -> bool {
        !self.rounds.is_empty() && self.rounds.iter().all(|round| round.dropped.is_some())
    }
}

impl Difference {
    /// Two bodies are compared until this many differences are found.
    pub const MOST: usize = 20;
}

/// One difference between a contender's answer and the expected answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The contender's name.
    pub contender: String,
    /// The name of the probe.
    pub probe: String,
    /// Place of the difference: `status`, `header cache-control`, a JSON path, `body`.
    pub path: String,
    /// What the contract requires, or what the other contenders answer.
    pub expected: String,
    /// What the contender answered.
    pub got: String,
    /// `contract`, or the contender whose answer is the reference.
    pub against: String,
    /// When it was observed: `before`, `epoch N` or `under load`.
    pub when: String,
}

/// Reads keys as text and parses them. A journal line is an internally tagged enum, for which serde passes on map keys as the strings of the JSON,
/// and then refuses them as numbers.
fn by_status<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u16, u64>, D::Error> {
    let text = BTreeMap::<String, u64>::deserialize(from)?;
    let number = |(key, count): (String, u64)| match key.parse() {
        Ok(status) => Ok((status, count)),
        Err(_) => Err(serde::de::Error::custom(format!("{key} is not an HTTP status"))),
    };
    text.into_iter().map(number).collect()
}
