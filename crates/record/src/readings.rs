//! Counters of the kernel while a contender was loaded: those of the whole machine, and throttling.
//!
//! Owns: the readings as they are written to disk, and how readings of several slices add up. Must not know: where they are read, or what follows
//! from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often and for how long control groups paused their processes because a CPU quota was used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Throttling {
    /// Periods in which the quota was used up.
    pub periods: u64,
    /// Time for which processes were paused, summed over processors, in nanoseconds.
    pub ns: u64,
}

impl Throttling {
    /// The difference between this reading and an earlier one.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { periods: self.periods.saturating_sub(before.periods), ns: self.ns.saturating_sub(before.ns) }
    }

    /// The sum of two readings.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { periods: self.periods + other.periods, ns: self.ns + other.ns }
    }
}

/// Counters of the whole machine: absolute values, or the difference between two readings or over a contender's slices. A counter that the machine
/// does not have is absent, never 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostReading {
    /// Connections that found the accept queue of a listener full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_overflows: Option<u64>,
    /// Connections that a listener dropped for any reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_drops: Option<u64>,
    /// Retransmitted TCP segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_segments: Option<u64>,
    /// Pages read from swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_in_pages: Option<u64>,
    /// Pages written to swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_out_pages: Option<u64>,
    /// Time in which some task waited for a CPU (pressure stall information), in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure_ns: Option<u64>,
    /// Time in which some task waited for memory, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_pressure_ns: Option<u64>,
    /// Time in which some task waited for a disk, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_pressure_ns: Option<u64>,
    /// Throttling of the control groups that contain deadheat itself, and therefore both contenders and generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttling>,
}

impl HostReading {
    /// The difference between this reading and an earlier one. A value is absent if either of the two is.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub, Throttling::since)
    }

    /// The sum of two differences. A value is absent if either of the two is.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, |mine, theirs| mine + theirs, Throttling::plus)
    }

    fn with(
        &self,
        other: &Self,
        count: fn(u64, u64) -> u64,
        throttling: fn(Throttling, Throttling) -> Throttling,
    ) -> Self {
        let both = |mine: Option<u64>, theirs: Option<u64>| Some(count(mine?, theirs?));
        Self {
            listen_overflows: both(self.listen_overflows, other.listen_overflows),
            listen_drops: both(self.listen_drops, other.listen_drops),
            retransmitted_segments: both(self.retransmitted_segments, other.retransmitted_segments),
            swapped_in_pages: both(self.swapped_in_pages, other.swapped_in_pages),
            swapped_out_pages: both(self.swapped_out_pages, other.swapped_out_pages),
            cpu_pressure_ns: both(self.cpu_pressure_ns, other.cpu_pressure_ns),
            memory_pressure_ns: both(self.memory_pressure_ns, other.memory_pressure_ns),
            io_pressure_ns: both(self.io_pressure_ns, other.io_pressure_ns),
            throttled: self.throttled.zip(other.throttled).map(|(mine, theirs)| throttling(mine, theirs)),
        }
    }
}

/// Counters of a machine's network: absolute values, or the difference between two readings or over slices. A counter that could not be read is null.
/// The loopback is not included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkReading {
    /// TCP segments that the machine sent again.
    pub retransmitted_segments: Option<u64>,
    /// Packets that its interfaces received or sent.
    pub packets: Option<u64>,
    /// Packets that its interfaces dropped.
    pub dropped_packets: Option<u64>,
    /// Bytes that its interfaces received, heads of packets included.
    pub received_bytes: Option<u64>,
    /// Bytes that its interfaces sent.
    pub sent_bytes: Option<u64>,
    /// CPU time in which the kernel handled packets and other deferred interrupts (softirq), in nanoseconds, with the resolution of clock ticks.
    pub softirq_ns: Option<u64>,
    /// CPU time of all processors, busy or idle, in nanoseconds: what `softirq_ns` is a part of.
    pub processors_ns: Option<u64>,
}

impl NetworkReading {
    /// The difference between this reading and an earlier one. A value is null if it is in either of the two.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// The sum of two differences. A value is null if it is in either of the two.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, |mine, theirs| mine + theirs)
    }

    /// The share of all processors' time that softirq took, 0 to 1.
    pub fn softirq_share(&self) -> Option<f64> {
        let all_ns = self.processors_ns.filter(|ns| *ns > 0)?;
        Some(self.softirq_ns? as f64 / all_ns as f64)
    }

    /// The share of packets that interfaces dropped, 0 to 1; 0 if there were no packets.
    pub fn dropped_share(&self) -> Option<f64> {
        let (dropped, packets) = (self.dropped_packets?, self.packets?);
        Some(if dropped == 0 { 0.0 } else { dropped as f64 / (packets + dropped) as f64 })
    }

    fn with(&self, other: &Self, count: fn(u64, u64) -> u64) -> Self {
        let both = |mine: Option<u64>, theirs: Option<u64>| Some(count(mine?, theirs?));
        Self {
            retransmitted_segments: both(self.retransmitted_segments, other.retransmitted_segments),
            packets: both(self.packets, other.packets),
            dropped_packets: both(self.dropped_packets, other.dropped_packets),
            received_bytes: both(self.received_bytes, other.received_bytes),
            sent_bytes: both(self.sent_bytes, other.sent_bytes),
            softirq_ns: both(self.softirq_ns, other.softirq_ns),
            processors_ns: both(self.processors_ns, other.processors_ns),
        }
    }
}

/// Effect on a contender's rate when the generator does additional work for each request. There is none unless the generator limits the rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Handicap {
    /// Additional work for each request, in nanoseconds.
    pub added_ns: u64,
    /// Rate with the additional work divided by the rate without it.
    pub ratio: f64,
    /// Standard error of the logarithm of `ratio`.
    pub standard_error: f64,
    /// Number of pairs of slices that `ratio` is derived from.
    pub pairs: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_network_reading_need_both_of_their_parts() {
        let read = NetworkReading {
            packets: Some(999),
            dropped_packets: Some(1),
            softirq_ns: Some(5),
            processors_ns: Some(100),
            ..NetworkReading::default()
        };
        assert_eq!((read.dropped_share(), read.softirq_share()), (Some(0.001), Some(0.05)));
        assert_eq!(read.since(&read).dropped_share(), Some(0.0));
        assert_eq!(read.since(&read).softirq_share(), None, "no time has passed");
        assert_eq!(read.plus(&read).packets, Some(1_998));
        assert_eq!(read.plus(&NetworkReading::default()), NetworkReading::default());
    }

    #[test]
    fn readings_are_taken_apart_and_put_together_and_absence_stays() {
        let at = |n: u64| HostReading {
            listen_overflows: Some(n),
            throttled: Some(Throttling { periods: n, ns: n * 10 }),
            ..HostReading::default()
        };
        let one = at(7).since(&at(5));
        assert_eq!(one, at(2));
        assert_eq!(one.plus(&at(3)), at(5));
        assert_eq!(one.retransmitted_segments, None);
        assert_eq!(one.plus(&HostReading::default()), HostReading::default(), "unknown in a part, unknown");
        assert_eq!(at(1).since(&at(2)), at(0), "a counter that was reset");
    }
}
