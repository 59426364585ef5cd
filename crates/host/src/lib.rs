//! One machine: its processes, its control groups, its facts, and what disturbs it while others are measured on it.
//!
//! Owns: everything that starts, freezes, watches or ends a process, and everything that is read below `/proc` and `/sys`.
//! Must not know: studies, the order of a race, statistics, reports.
#![warn(missing_docs)]

#[cfg(not(target_os = "linux"))]
compile_error!("deadheat runs on Linux only");

pub mod affinity;
pub mod cgroup;
pub mod clock;
pub mod command;
pub mod facts;
pub mod link;
pub mod monitor;
pub mod open_files;
pub mod process;
pub mod usage;

mod local;

use std::io;
use std::time::Duration;

use deadheat_record::{Finding, Plan};

use cgroup::delegation::DelegatedGroup;
use command::{Ran, ShellCommand};
pub use local::LocalHost;
use monitor::Monitor;
use monitor::awake::Awake;
use process::profile::ProfileError;
use process::{Process, ProcessSpec, StartError};

/// The operations that a race needs on the machine of its contenders.
pub trait Host {
    /// Starts a process; returns as soon as its first process runs.
    ///
    /// # Errors
    /// When a fixed port is already in use or the process cannot be created.
    fn start(&self, spec: &ProcessSpec<'_>) -> Result<Box<dyn Process>, StartError>;

    /// Runs a command to its end, at most for `limit`, on the processors `cpus`; an empty list means those of the calling thread. Everything that it started ends with it, and also when deadheat ends in any way.
    ///
    /// # Errors
    /// When it cannot be started.
    fn run(
        &self,
        name: &str,
        command: &ShellCommand,
        cpus: &[usize],
        limit: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Ran, StartError>;

    /// Pins the calling thread, and the threads that it starts from now on, to these processors; an empty list means all.
    ///
    /// # Errors
    /// The system's error.
    fn pin(&self, cpus: &[usize]) -> io::Result<()>;

    /// Keeps idle processors awake for as long as the value lives: see [`Awake::hold`].
    ///
    /// # Errors
    /// The system's error.
    fn keep_awake(&self, latency_us: u32, cpus: &[usize]) -> io::Result<Awake>;

    /// Prepares control groups for the limits of the plan's scenarios and for containers, for as long as the value lives.
    ///
    /// # Errors
    /// The scenario whose limits cannot be set, and why.
    fn hold_to_limits(&self, plan: &Plan) -> Result<Option<DelegatedGroup>, LimitsError>;

    /// Monitors the processors `cpus`; those in `generator` belong to the load generator.
    fn monitor(&self, cpus: &[usize], generator: &[usize]) -> Monitor;

    /// Whether stacks of processes can be sampled.
    ///
    /// # Errors
    /// The reason if they cannot.
    fn can_profile(&self) -> Result<(), ProfileError>;

    /// The processes that could not be ended since the last call.
    fn take_left_behind(&self) -> Vec<Finding>;
}

/// Why a scenario's limits cannot be set on its contenders.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("scenario {scenario}: {reason}")]
pub struct LimitsError {
    /// The scenario.
    pub scenario: String,
    /// The reason, with what to do.
    pub reason: String,
}
