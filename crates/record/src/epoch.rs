//! What was observed: the pilot, epochs, rounds, slices. Raw, in time order, nothing dropped.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{EncodedHistogram, Finding, Handicap, HostReading, PeakSeen, Throttling, Trial};

/// How the requests that were due ended; every request ends in exactly one of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// Answered as expected.
    pub ok: u64,
    /// Answered with another status.
    pub status: u64,
    /// Answered with another body.
    pub mismatch: u64,
    /// No connection.
    pub connect: u64,
    /// The connection broke while the answer was read.
    pub read: u64,
    /// The connection broke while the request was written.
    pub write: u64,
    /// No answer in time.
    pub timeout: u64,
    /// An answer that is not HTTP.
    pub protocol: u64,
    /// Unanswered when the slice ended.
    pub cut: u64,
}

impl Outcomes {
    /// All requests that were due.
    pub fn total(&self) -> u64 {
        self.ok + self.failed()
    }

    /// All that did not end as expected.
    pub fn failed(&self) -> u64 {
        self.wrong() + self.connect + self.read + self.write + self.timeout + self.protocol + self.cut
    }

    /// Complete answers that were not the expected ones.
    pub fn wrong(&self) -> u64 {
        self.status + self.mismatch
    }

    /// Adds what another stretch of load counted.
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

/// One contender's load in the discarded pilot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PilotContender {
    /// Who.
    pub contender: String,
    /// Completions per second in each window, in time order.
    pub window_rates_per_s: Vec<f64>,
    /// Where the MSER-5 cut lies, in nanoseconds from the first request; none when there were too few windows.
    pub cut_ns: Option<u64>,
    /// What more work of the generator on each request does to the rate; none for open loads, and where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handicap: Option<Handicap>,
    /// Instructions that the tree retired per completion in the pilot's second half, where the processor counts them. The counter is
    /// not there in the epochs, since it costs a little at every switch between threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_per_request: Option<f64>,
    /// What was counted: `instructions`, or `instructions:u` where those of the kernel are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_source: Option<String>,
}

/// The discarded pilot of a scenario and the warm-up length found by it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pilot {
    /// The scenario that it was for.
    pub scenario: String,
    /// Length of a window.
    pub window_ns: u64,
    /// One entry per contender.
    pub contenders: Vec<PilotContender>,
    /// The warm-up that every contender gets in every epoch.
    pub warmup_ns: u64,
    /// Answers per second that the generator reached on the contenders' cores against a server that does nothing, just before
    /// the pilot; none where that could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_rps: Option<f64>,
    /// The ceilings of the sessions that went on with the scenario, in time order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later_ceilings: Vec<LaterCeiling>,
}

/// What the generator reached when a race was continued: the machine may be another by then.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaterCeiling {
    /// When it was measured, in milliseconds since 1970; it holds for the epochs that were started from then on.
    pub unix_ms: u64,
    /// As [`Pilot::ceiling_rps`].
    pub ceiling_rps: Option<f64>,
}

impl Pilot {
    /// The ceiling of the session in which an epoch was started at `unix_ms`.
    pub fn ceiling_at(&self, unix_ms: u64) -> Option<f64> {
        let later = self.later_ceilings.iter().rev().find(|one| one.unix_ms <= unix_ms);
        later.map_or(self.ceiling_rps, |one| one.ceiling_rps)
    }
}

/// A short stretch of load on one contender while the others are frozen; where nothing was warmed up, and each connection waits
/// for its answer, a window of it: those of a contender follow each other without a rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slice {
    /// Index into the plan's contenders.
    pub contender: usize,
    /// Start, from the start of the epoch.
    pub start_ns: u64,
    /// From the first request to the last answer of the drain.
    pub elapsed_ns: u64,
    /// Completions per second: under a closed load between the first and the last completion that count; under an open one over the time
    /// of loading, less what the contender fell behind by. None when nothing was answered.
    pub rate_per_s: Option<f64>,
    /// All completions, drain included.
    pub completions: u64,
    /// CPU time of the contender's whole process tree, from before it was let run until it was frozen again. None for windows of a
    /// slice, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// CPU time of the generator's threads, `load_spin_ns` included.
    pub load_cpu_ns: u64,
    /// The part of it in which they had nothing to do and waited for the next due time or answer without sleeping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_spin_ns: Option<u64>,
    /// Time that the generator's threads were runnable and did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_run_delay_ns: Option<u64>,
    /// How often the generator's threads came to run on a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_runs: Option<u64>,
    /// Requests that did not end as expected.
    pub failed: u64,
    /// The share of its time for which one of our cores stood still, that one which did so longest, 0 to 1: a real-time thread that was
    /// due there came late and had not been waiting for others, whether or not the kernel counts that as steal. None where no
    /// percentile is compared, where there are no cores of their own, and where such threads are not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_share: Option<f64>,
    /// What was tried, where a peak is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
}

/// What the machine did to our cores during a round, read from outside the contenders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalReading {
    /// Share of the round in which the hypervisor ran something else on our cores, 0 to 1.
    pub steal_share: f64,
    /// Share of their time that processes other than ours used of the servers' cores or of the generator's, whichever it is more of,
    /// 0 to 1; of all our cores' together where neither side has its own, where the clock cannot tell the sides apart, and in rounds
    /// of starts and of commands. None where it cannot be told. A little below 0 where clocks of different precision cross.
    pub foreign_share: Option<f64>,
}

/// One slice for every contender, in the order in which they ran; where a peak is looked for, for those whose search
/// goes on. Where slices are cut into windows, these are one slice of their contender: [`Round::rate_per_s`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// In the order in which they ran.
    pub slices: Vec<Slice>,
    /// What the machine did meanwhile.
    pub external: ExternalReading,
    /// Why the whole round is left out for all contenders; only ever an external signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
}

/// A contender's memory at one moment of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPoint {
    /// From the start of the epoch.
    pub at_ns: u64,
    /// Proportional set size summed over the tree.
    pub pss_bytes: u64,
}

/// What a contender's whole process tree used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// CPU time over the slices.
    pub cpu_ns: u64,
    /// Where the CPU time was read: `cpuacct`, `cpu.stat` or `schedstat`.
    pub cpu_source: String,
    /// The part of the CPU time that was spent in user mode; none where the kernel does not tell. It is less precise than the
    /// whole: the kernel gives each tick of its clock (1 to 10 ms) to the mode that the tick meets, so that of n ticks the share
    /// has a standard error of up to 1 / (2 sqrt n). `cpuacct` has the ticks as they fell, so that both parts need not add up to
    /// `cpu_ns`; `cpu.stat` has them scaled to the whole; without a group they are scaled too, in clock ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_ns: Option<u64>,
    /// The part of the CPU time that was spent in the kernel, as `user_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_ns: Option<u64>,
    /// How often its threads gave up their CPU over the slices, because they waited for something. Those that freezing takes are
    /// among them, one for each thread and slice; those of threads that ended in between are lost. None where no thread could
    /// be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// How often its threads lost their CPU to others over the slices, as `voluntary_switches`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// CPU time of the study's services over the slices, on the same cores; none without services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services_cpu_ns: Option<u64>,
    /// Proportional set size summed over the tree, after the last round.
    pub pss_bytes: Option<u64>,
    /// Highest sum of proportional set sizes seen in the epoch.
    pub peak_pss_bytes: Option<u64>,
    /// The sum of proportional set sizes before the first round, between rounds (of many rounds after every second, every fourth
    /// and so on) and after the last, in time order: at the most 64. Empty where it may not be read, and without a load.
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
    /// From when its command was handed to the shell to its first complete answer that met the contract, as the first probe has it.
    /// It is known to half a percent, and no finer than about 0.3 ms. Records of versions before have the first answer of any kind,
    /// from when its keeper was started, some milliseconds earlier.
    pub cold_start_ns: u64,
    /// Requests answered in the warm-up.
    pub warmup_requests: u64,
    /// Time that the warm-up took.
    pub warmup_ns: u64,
    /// Completions over the rounds.
    pub completions: u64,
    /// Busy time over the rounds: the slices' elapsed times added up.
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
    /// Bytes of answers that came over its connections in the rounds, heads included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_read: Option<u64>,
    /// Latency from the intended time, of the rounds that were kept.
    pub latency: EncodedHistogram,
    /// From intended to sent, of the same requests; none for closed loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lag: Option<EncodedHistogram>,
    /// How long requests waited because no connection was free, which is part of the send lag; none for closed loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<EncodedHistogram>,
    /// The part of the send lag that is the generator's own: from when a request was due, and a connection free, until it was
    /// taken up; none for closed loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_lag: Option<EncodedHistogram>,
    /// Requests in flight, integrated over time: their number times nanoseconds, of the requests that `latency` has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_ns: Option<u64>,
    /// What the process tree used.
    pub usage: Usage,
    /// What the whole machine counted during its slices.
    #[serde(default)]
    pub host: HostReading,
    /// Throttling of the control groups that hold the contender and not deadheat, over the rounds; none where no group counts
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttling>,
    /// The peak rate, where one was looked for; latencies are not kept then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<PeakSeen>,
    /// What its own command measured, where that is what is compared; in nanoseconds where it is a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// One unit of the last digit that the command printed of it, in the unit of `measured`: what is finer, nobody knows. None in
    /// records of before.
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
    /// How long it took as a whole.
    pub took_ns: u64,
    /// One entry per contender, in plan order.
    pub contenders: Vec<ContenderEpoch>,
    /// In time order; every other round runs in the mirrored order of the one before.
    pub rounds: Vec<Round>,
    /// What was seen in this epoch alone.
    pub findings: Vec<Finding>,
}

impl Epoch {
    /// A contender's part of the epoch.
    pub fn of(&self, contender: usize) -> Option<&ContenderEpoch> {
        self.contenders.iter().find(|part| part.contender == contender)
    }

    /// Whether every round was left out.
    pub fn is_disturbed(&self) -> bool {
        !self.rounds.is_empty() && self.rounds.iter().all(|round| round.dropped.is_some())
    }
}

/// One difference between what a contender answered and what it should have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Who.
    pub contender: String,
    /// The probe that was asked.
    pub probe: String,
    /// Where: `status`, `header cache-control`, a JSON path, `body`.
    pub path: String,
    /// What the contract demands or what the other contenders answer.
    pub expected: String,
    /// What was answered.
    pub got: String,
    /// `contract`, or the contender whose answer was the measure.
    pub against: String,
    /// `before`, `epoch N` or `under load`.
    pub when: String,
}

/// Reads keys as text: a journal's line is an internally tagged enum, and serde hands such an enum's map keys on as the
/// strings that JSON has, which are then refused as numbers.
fn by_status<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u16, u64>, D::Error> {
    let text = BTreeMap::<String, u64>::deserialize(from)?;
    let number = |(key, count): (String, u64)| match key.parse() {
        Ok(status) => Ok((status, count)),
        Err(_) => Err(serde::de::Error::custom(format!("{key} is not an HTTP status"))),
    };
    text.into_iter().map(number).collect()
}
