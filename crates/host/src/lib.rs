//! One machine: its processes, its control groups, its facts, and what disturbs it while others are measured on it.
//!
//! Owns: everything that starts, freezes, watches or ends a process, and everything that is read below `/proc` and `/sys`.
//! Must not know: studies, the order of a race, statistics, reports.
#![warn(missing_docs)]

pub mod affinity;
pub mod cgroup;
pub mod clock;
pub mod command;
pub mod facts;
pub mod monitor;
pub mod open_files;
pub mod process;
pub mod usage;

mod local;

use std::io;

use deadheat_record::{Finding, Plan};

use cgroup::delegation::DelegatedGroup;
pub use local::LocalHost;
use monitor::Monitor;
use monitor::awake::Awake;
use process::{Process, ProcessSpec, StartError};

/// What a race asks of the machine that its contenders run on.
pub trait Host {
    /// Starts a process; returns as soon as its first process runs.
    ///
    /// # Errors
    /// When a fixed port is taken or the process cannot be made.
    fn start(&self, spec: &ProcessSpec<'_>) -> Result<Box<dyn Process>, StartError>;

    /// Ties the calling thread, and those that it starts from now on, to these processors; all where there are none.
    ///
    /// # Errors
    /// What the system says.
    fn pin(&self, cpus: &[usize]) -> io::Result<()>;

    /// Keeps idle processors awake for as long as the value lives: see [`Awake::hold`].
    ///
    /// # Errors
    /// What the system says.
    fn keep_awake(&self, latency_us: u32, cpus: &[usize]) -> io::Result<Awake>;

    /// Sees to it that contenders can be held to what the plan's scenarios limit them to, for as long as the value lives.
    ///
    /// # Errors
    /// Which scenario's limits cannot be set, and why.
    fn hold_to_limits(&self, plan: &Plan) -> Result<Option<DelegatedGroup>, LimitsError>;

    /// Reads `cpus` of the machine, of which `generator` are those of the load generator.
    fn monitor(&self, cpus: &[usize], generator: &[usize]) -> Monitor;

    /// What could not be ended since the last call.
    fn take_left_behind(&self) -> Vec<Finding>;
}

/// Why contenders cannot be held to a scenario's limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("scenario {scenario}: {reason}")]
pub struct LimitsError {
    /// The scenario.
    pub scenario: String,
    /// Why, with what to do.
    pub reason: String,
}
