//! The machines that the load of a scenario came from, as a report shows them.

use deadheat_record::RoundTrips;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the machines of a scenario did whose load came from load hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadHostsResult {
    /// One entry per load host, in the order of the plan.
    pub hosts: Vec<LoadHostResult>,
    /// What was read of the contenders' machine. Its steal, other programs and stalls are null, because the record has those of the most disturbed
    /// machine.
    pub servers: MachineReadings,
    /// Time between the first and the last start of a load host in a slice, 99th percentile over slices, in nanoseconds. With fewer than 100 slices, the
    /// longest. Null with one load host.
    pub start_skew_p99_ns: Option<u64>,
    /// The highest use of the network, with its contender and its epoch. Null if no bandwidth was measured.
    pub link: Option<LinkUse>,
    /// Loaded time as a share of the time for which contenders were not frozen, 0 to 1. The rest is what orders and results took on their way.
    pub duty: Option<f64>,
}

/// One load host in a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadHostResult {
    /// Its name.
    pub name: String,
    /// Its connections to each contender.
    pub connections: u64,
    /// Its share of the requests that were due, 0 to 1.
    pub requests_share: Option<f64>,
    /// Round trips between deadheat and the host's agent during the rounds.
    pub round_trip_ns: RoundTrips,
    /// How much later than ordered it began a slice, 99th percentile over slices, in nanoseconds. With fewer than 100 slices, the longest.
    pub start_delay_p99_ns: Option<u64>,
    /// What was read there, over all epochs.
    pub readings: MachineReadings,
    /// What was read there in each epoch, in time order.
    pub epochs: Vec<EpochReadings>,
}

/// What was read of a machine in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpochReadings {
    /// The number of the epoch within the scenario, from 1.
    pub epoch: usize,
    /// What was read.
    pub readings: MachineReadings,
}

/// What was read of a machine while contenders were loaded. A value that could not be read is null.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineReadings {
    /// Share of the time that the hypervisor took, 0 to 1: mean over rounds.
    pub steal_share: Option<f64>,
    /// Share of the time that other programs used, 0 to 1: mean over rounds.
    pub foreign_share: Option<f64>,
    /// The largest share of a slice for which one core stood still, 0 to 1.
    pub stalled_share: Option<f64>,
    /// Share of the time of all processors in which the kernel handled packets and other deferred interrupts (softirq), 0 to 1.
    pub softirq_share: Option<f64>,
    /// TCP segments that the machine sent again.
    pub retransmitted_segments: Option<u64>,
    /// Packets that its network interfaces dropped.
    pub dropped_packets: Option<u64>,
}

/// How much of a network's bandwidth a contender's load used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkUse {
    /// The contender.
    pub contender: String,
    /// The number of the epoch.
    pub epoch: usize,
    /// The load host; null for all of them together.
    pub host: Option<String>,
    /// Bytes per second in the direction that carried more.
    pub bytes_per_s: f64,
    /// The measured bandwidth, in bytes per second.
    pub bandwidth_bytes_per_s: f64,
    /// The first as a share of the second.
    pub share: f64,
}
