//! What the machine is, as far as it could be read; what could not be read is absent, never guessed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which control groups could be used for contenders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CgroupKind {
    /// One tree per controller.
    V1,
    /// The unified tree.
    V2,
    /// None that this user may write to.
    None,
}

/// Which cores belong to whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pinning {
    /// Cores of the contenders; empty when nothing is pinned.
    pub server_cpus: Vec<usize>,
    /// Cores of the load generator; empty when nothing is pinned.
    pub load_cpus: Vec<usize>,
}

/// Facts about the machine at the start of the race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Logical processors online.
    pub cpus: usize,
    /// Sets of logical processors that share a core, as the kernel lists them.
    pub siblings: Vec<Vec<usize>>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Distribution.
    pub os: Option<String>,
    /// Hypervisor, where the processor says that there is one.
    pub hypervisor: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Load average over one minute.
    pub load_average: Option<f64>,
    /// Which control groups could be used.
    pub cgroup: CgroupKind,
}
