//! A link: the network that deadheat makes between load and contenders, as slow and as private as real ones.
//!
//! Owns: what a link is, and what was measured of it. Must not know: how it is made.

use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Plan;

/// What a scenario asks of the network between load and contenders. Rate, delay, jitter and loss apply in each direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Bits per second, the headers of packets included; absent: not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<u64>,
    /// How long a packet is on its way, in nanoseconds.
    #[serde(default)]
    pub delay_ns: u64,
    /// By how much the delay of a packet differs from `delay_ns` at most, in nanoseconds. All differences up to this one are equally frequent.
    #[serde(default)]
    pub jitter_ns: u64,
    /// The share of packets that are lost, 0 to 1.
    #[serde(default)]
    pub loss: f64,
    /// What encrypts the packets; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<Tunnel>,
}

/// What encrypts the packets of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tunnel {
    /// WireGuard, by the kernel or by a program.
    Wireguard,
}

impl Tunnel {
    /// The word that studies and records use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Wireguard => "wireguard",
        }
    }
}

impl Link {
    /// Where contenders listen in a race with links.
    pub const SERVERS: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);

    /// Whether packets are lost or on their way for a time. The kernel needs another module for this than for a rate.
    pub fn delays_or_loses(&self) -> bool {
        self.delay_ns > 0 || self.jitter_ns > 0 || self.loss > 0.0
    }
}

/// What was measured of a link before contenders were asked over it. Pairs are: towards the contenders, and back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkReading {
    /// The median round trip of one byte without rate, delay, jitter and loss, in nanoseconds.
    pub plain_round_trip_ns: u64,
    /// The median round trip of one byte, in nanoseconds.
    pub round_trip_ns: u64,
    /// How many round trips this is the median of.
    pub round_trips: u64,
    /// Bits per second that arrive when more is sent, the headers of packets included; absent if the link has no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<(u64, u64)>,
    /// Packets that were sent to count losses.
    pub sent: (u64, u64),
    /// How many of them did not arrive.
    pub lost: (u64, u64),
    /// The program that encrypts the packets, with its version, or "the kernel"; absent without a tunnel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<String>,
}

impl LinkReading {
    /// How long a packet is on its way because of the link, in nanoseconds: half of what the link adds to a round trip.
    pub fn delay_ns(&self) -> f64 {
        (self.round_trip_ns as f64 - self.plain_round_trip_ns as f64) / 2.0
    }
}

/// What was measured of a scenario's link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioLink {
    /// The scenario's name.
    pub scenario: String,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// What was measured.
    #[serde(flatten)]
    pub reading: LinkReading,
}

impl Plan {
    /// The address at which contenders are asked to listen: that of `--server-address`, or that of the links' servers. None if nothing tells them.
    pub fn server_address(&self) -> Option<Ipv4Addr> {
        let linked = || self.has_links().then_some(Link::SERVERS);
        self.load_from.as_ref().map(|from| from.server_address).or_else(linked)
    }

    /// Whether any scenario has a link. Then all contenders run in a network of their own.
    pub fn has_links(&self) -> bool {
        self.scenarios.iter().any(|scenario| scenario.link.is_some())
    }
}
