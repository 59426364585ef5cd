//! Other machines: an agent on each of them, the channel to it, sessions of load that several agents carry together, and races that
//! run on another machine.
//!
//! Owns: the channel's frames and messages, how an agent gets to its machine, and how a load is divided and its tallies
//! merged, and how a race gets to the machine of its contenders. Must not know: studies, contenders, records, how anything is shown.
//!
//! deadheat starts `ssh`, and `ssh` starts `deadheat agent` on the other machine. Orders and replies travel over the
//! standard input and output of that one process. Nothing listens on a port. The agent ends with its channel: when its
//! input ends, or when it has heard nothing for the deadline. In a Kubernetes cluster, the API server takes ssh's place
//! ([`kubernetes`]).
//!
//! The crate `openssh` is not used: it needs an async runtime and keeps a master connection with files of its own, and
//! all that is needed here is one child process with its standard input and output.

#![warn(missing_docs)]

mod agent;
mod channel;
mod error;
pub mod frame;
mod hosts;
mod input;
pub mod kubernetes;
mod link;
pub mod message;
pub mod server_host;
mod session;
mod ssh;
mod writer;

pub use agent::{AGENT_COMMAND, AgentEnd, ONLY_OPTION, serve};
pub use channel::{Patience, Traffic};
pub use error::RemoteError;
pub use hosts::{HostWork, LoadHosts, Work};
pub use link::{HostCommand, Link, LinkEnd, Reach};
pub use session::{HostSlice, Part, RemoteSession, divide, merge, start_skew};
pub use ssh::{Program, SSH_VARIABLE, SshTarget, SshTargetError};
