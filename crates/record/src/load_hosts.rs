//! What was observed of the machines that the load came from, and of the network to them.
//!
//! Owns: these observations as they are written to disk. Must not know: how they are made, or what follows from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EncodedHistogram, ExternalReading, NetworkReading};

/// The load hosts during the rounds of an epoch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadHostsEpoch {
    /// One entry per load host, in the order of the plan.
    pub hosts: Vec<LoadHostEpoch>,
    /// For each slice: the time between the first and the last start of a load host, in nanoseconds, as far as round trips show it. Absent with one
    /// load host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew_ns: Option<EncodedHistogram>,
}

/// One load host during the rounds of an epoch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadHostEpoch {
    /// The host as the plan names it, without `ssh://`.
    pub name: String,
    /// Its connections to each contender.
    pub connections: u64,
    /// Round trips between deadheat and the host's agent, in nanoseconds; absent if none was measured in these rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ns: Option<EncodedHistogram>,
    /// For each slice: how much later than ordered the host began, by its own clock, in nanoseconds.
    pub start_delay_ns: EncodedHistogram,
    /// Disturbance of the host by other programs and its hypervisor: mean over the rounds.
    pub external: ExternalReading,
    /// The largest share of a slice for which one of its cores stood still, 0 to 1; absent if deadheat does not watch for this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_share: Option<f64>,
}

/// What one load host did in the slices of a contender in an epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadHostShare {
    /// Requests that were due there.
    pub requests: u64,
    /// Complete answers, right or wrong.
    pub completions: u64,
    /// Bytes of answers received.
    pub bytes_read: u64,
    /// Bytes of requests sent.
    pub bytes_written: u64,
    /// Loaded time: the sum of its slices' times from the first request to the last answer, in nanoseconds.
    pub loaded_ns: u64,
    /// Counters of the host's network during these slices.
    pub network: NetworkReading,
}

impl LoadHostShare {
    /// The sum of this share and that of other slices.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            completions: self.completions + other.completions,
            bytes_read: self.bytes_read + other.bytes_read,
            bytes_written: self.bytes_written + other.bytes_written,
            loaded_ns: self.loaded_ns + other.loaded_ns,
            network: self.network.plus(&other.network),
        }
    }
}

/// How many bytes per second the load hosts received from a server on the contenders' machine that only sends large answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkBandwidth {
    /// Each load host alone, in the order of the plan.
    pub hosts: Vec<Bandwidth>,
    /// All load hosts at the same time; with one load host, the same as that host alone.
    pub together: Bandwidth,
}

/// A bandwidth, counted in two ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bandwidth {
    /// Bytes of answers per second, as the load generator receives them.
    pub payload_bytes_per_s: f64,
    /// Bytes per second that the network interfaces received, heads of packets included; null if they could not be read.
    pub interface_bytes_per_s: Option<f64>,
}

impl Bandwidth {
    /// The sum of two bandwidths. The interfaces' is null if it is in either of the two.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            payload_bytes_per_s: self.payload_bytes_per_s + other.payload_bytes_per_s,
            interface_bytes_per_s: self
                .interface_bytes_per_s
                .zip(other.interface_bytes_per_s)
                .map(|(mine, theirs)| mine + theirs),
        }
    }
}
