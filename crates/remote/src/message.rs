//! What the two sides of a channel say to each other.
//!
//! Owns: the messages, their version, and the first line of each side. Must not know: how they travel.
//!
//! Each side first writes one line of text, which any version can read; the controlling side begins. Only when both versions are the
//! same do frames follow. Times in messages are lengths of time, never moments: the clocks of two machines are not compared.

use std::time::Duration;

use deadheat_host::facts::Clock;
use deadheat_host::monitor::NetworkReading;
use deadheat_load::{
    Address, Answer, Backend, NoAnswer, Progress, RecordedTimes, SessionConfig, SliceOrder, Tally,
    TlsSettings,
};
use serde::{Deserialize, Serialize};

/// The version of the messages. It changes with any change of them or of what they contain.
pub const PROTOCOL: u32 = 7;

/// The beginning of an agent's first line.
const AGENT: &str = "deadheat agent ";
/// The beginning of the first line of the side that gives orders.
const CONTROL: &str = "deadheat control ";

/// What the controlling side asks for.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Answer with a [`Reply::Pong`] of this number. It is sent all the time and shows that this side is alive.
    Ping(u64),
    /// Find out whether something listens at an address.
    Reach {
        /// The address.
        address: Address,
        /// How long the attempt may take.
        timeout: Duration,
    },
    /// Send these requests at the same moment, each on a connection of its own.
    Ask {
        /// The requests.
        asked: Vec<Asked>,
        /// How long each answer may take.
        timeout: Duration,
        /// The longest body, in bytes.
        max_body: usize,
    },
    /// Open the connections of a session.
    Open {
        /// A number for the session, chosen by the controlling side.
        session: u32,
        /// Its settings.
        config: Box<SessionConfig>,
    },
    /// Run a slice. Under recorded timing, its times are those of [`Order::Times`].
    Slice {
        /// The session.
        session: u32,
        /// What to do.
        order: SliceOrder,
        /// When to start, counted from the arrival of this order.
        start_in: Duration,
        /// Whether what happens to the machine counts from here.
        afresh: bool,
    },
    /// Add this much work to each request.
    Handicap {
        /// The session.
        session: u32,
        /// The work, as time.
        handicap: Duration,
    },
    /// End the current slice of a session and all later ones.
    Stop {
        /// The session.
        session: u32,
    },
    /// Close a session's connections.
    Close {
        /// The session.
        session: u32,
    },
    /// From now on, watch what other programs and the hypervisor do to these CPUs, or to all if none is named.
    Watch {
        /// The CPUs.
        cpus: Vec<usize>,
        /// Whether to watch for how long they stand still.
        stalls: bool,
    },
    /// Keep the times at which clients sent recorded requests, for all later slices of a session. They can be large: an order to start must not wait
    /// behind them, or the hosts would start apart.
    Times {
        /// The session.
        session: u32,
        /// The times.
        times: RecordedTimes,
    },
}

/// One request of [`Order::Ask`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Asked {
    /// Where to.
    pub address: Address,
    /// Whether and how the connection is encrypted.
    pub tls: Option<TlsSettings>,
    /// The bytes of the request.
    pub bytes: Vec<u8>,
    /// Whether it is a HEAD request.
    pub head: bool,
}

/// What an agent says of its machine when it begins to watch it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Watching {
    /// What it cannot see.
    pub unseen: Vec<Unseen>,
    /// The clock with which it measures.
    pub clock: Clock,
}

/// What an agent cannot see of its machine, as a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// The finding's code.
    pub code: String,
    /// What cannot be seen.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// What other programs and the hypervisor did to the watched CPUs of an agent's machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Share of the time that the hypervisor took, 0 to 1, since the last order that began afresh.
    pub steal_share: f64,
    /// Share of the time that other programs used since then; none if it cannot be read.
    pub foreign_share: Option<f64>,
    /// How far the share of other programs may be off, because of the clock's resolution.
    pub foreign_off: f64,
    /// For which share of this slice the CPU that stood still the longest did; none if nobody watches.
    pub stalled_share: Option<f64>,
    /// What the kernel counted of the network during this slice.
    pub network: NetworkReading,
}

/// What an agent answers. Each order but `Handicap`, `Stop` and `Close` has one reply, and they come in order; only a
/// pong may come at any time.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The agent is alive.
    Pong {
        /// The number of the ping.
        number: u64,
        /// The session that was last asked to run a slice, and what has happened in it.
        progress: Option<(u32, Progress)>,
    },
    /// Whether something listens at the address; with the reason if not.
    Reached(Result<(), String>),
    /// The answers to requests, in the same order, or why there are none.
    Answered(Vec<Result<Answer, NoAnswer>>),
    /// The session is open.
    Opened {
        /// The interface to the operating system that it uses.
        backend: Backend,
        /// Its workers.
        workers: usize,
    },
    /// The slice is over.
    Done {
        /// Its results.
        tally: Box<Tally>,
        /// How much later than ordered it began.
        late: Duration,
        /// What happened to the machine, if it is watched.
        seen: Option<Seen>,
    },
    /// The order failed.
    Failed {
        /// The reason.
        reason: String,
        /// Whether the agent or its machine is the reason, and not the server.
        own: bool,
    },
    /// The CPUs are watched.
    Watching(Watching),
    /// The times are there.
    Kept,
}

/// The first line that an agent writes.
pub fn agent_line(version: &str) -> String {
    format!("{AGENT}{PROTOCOL} {version}\n")
}

/// The first line that the controlling side writes. It names the time without any message after which the agent ends.
pub fn control_line(version: &str, deadline: Duration) -> String {
    format!("{CONTROL}{PROTOCOL} {version} {}\n", deadline.as_millis())
}

/// Protocol and version in an agent's first line, such as `3 0.1.0`; `None` for any other line.
pub fn agent_version(line: &str) -> Option<&str> {
    line.strip_prefix(AGENT)
}

/// Protocol and version in the first line of the controlling side, and its deadline; `None` for any other line.
pub fn control_version(line: &str) -> Option<(&str, Duration)> {
    let (version, deadline) = line.strip_prefix(CONTROL)?.rsplit_once(' ')?;
    Some((version, Duration::from_millis(deadline.parse().ok()?)))
}

/// Protocol and version of this side, as both lines write them.
pub fn own_version(version: &str) -> String {
    format!("{PROTOCOL} {version}")
}

impl Reply {
    /// The agent or its machine could not do it.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), own: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_are_read_as_they_are_written() {
        assert_eq!(agent_version(agent_line("0.1.0").trim_end()), Some(own_version("0.1.0").as_str()));
        let line = control_line("0.1.0", Duration::from_secs(2));
        let read = control_version(line.trim_end());
        assert_eq!(read, Some((own_version("0.1.0").as_str(), Duration::from_secs(2))));
        for line in ["", "deadheat", "deadheat control 1 0.1.0", "Welcome to Ubuntu", "deadheat agen"] {
            assert_eq!((control_version(line), agent_version(line)), (None, None), "{line}");
        }
    }
}
