//! Facts about the machine. What could not be read is absent, never guessed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The control groups that were available for contenders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CgroupKind {
    /// Version 1: one tree per controller.
    V1,
    /// Version 2: the unified tree.
    V2,
    /// No control group that this user may write to.
    None,
}

/// How the cores are divided between contenders and load generator.
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
    /// Hypervisor, if the processor, the kernel or the firmware reports one.
    pub hypervisor: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Load average over one minute.
    pub load_average: Option<f64>,
    /// The control groups that were available for contenders.
    pub cgroup: CgroupKind,
    /// Other facts; empty in records of earlier versions.
    #[serde(flatten)]
    pub details: MachineDetails,
}

/// Other facts that a measurement can depend on. Each is absent if it could not be read or does not exist.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MachineDetails {
    /// Logical processors that deadheat may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_cpus: Option<Vec<usize>>,
    /// CPU time that deadheat's own control group may use, in cores; absent without a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<f64>,
    /// Driver that sets the processors' frequency: `intel_pstate`, `amd-pstate-epp`, `acpi-cpufreq`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_driver: Option<String>,
    /// Every frequency governor in use, with its logical processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governors: Option<BTreeMap<String, Vec<usize>>>,
    /// Energy preference for processors that choose their frequency themselves: `performance`, `balance_power`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_preference: Option<String>,
    /// Whether frequencies above the nominal one are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turbo: Option<bool>,
    /// The file that switches `turbo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turbo_switch: Option<String>,
    /// How often a core was throttled because of heat since the machine started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle_events: Option<u64>,
    /// Whether the machine runs on battery; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_battery: Option<bool>,
    /// Clock sources that the kernel could use instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_sources: Option<Vec<String>>,
    /// Logical processors of each memory node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_nodes: Option<Vec<Vec<usize>>>,
    /// Memory available without swapping, in bytes, limited by deadheat's own control group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_available_bytes: Option<u64>,
    /// Swap space in bytes; 0 without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_bytes: Option<u64>,
    /// Swap space in use, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_used_bytes: Option<u64>,
    /// Mounted versions of control groups: 1, 2 or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup_versions: Option<Vec<u8>>,
    /// Controllers in which deadheat may create groups below its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup_controllers: Option<Vec<String>>,
    /// Whether io_uring can be used; absent if it was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_uring: Option<bool>,
    /// `kernel.io_uring_disabled`: 0 enables io_uring for all processes, 1 for privileged ones and one group, 2 disables it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_uring_disabled: Option<u8>,
    /// Whether the processor's counters (cycles, instructions) are available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_counters: Option<bool>,
    /// `kernel.perf_event_paranoid`: which users may read counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub perf_event_paranoid: Option<i8>,
    /// Whether the kernel reports how long tasks had to wait (`/proc/pressure`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<bool>,
    /// Limit of open files for one process; deadheat raises it to `open_files_most`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Highest value that `open_files` can be raised to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files_most: Option<u64>,
    /// First and last port that the kernel assigns to outgoing connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<(u16, u16)>,
    /// `net.core.somaxconn`: connections that can wait to be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen_backlog: Option<u64>,
    /// Memory for which the kernel uses huge pages automatically: `always`, `madvise` (only if a program requests it) or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_huge_pages: Option<String>,
    /// `kernel.randomize_va_space`: how much of a program's address space is randomized at each start. 0: nothing; 1: all but the heap; 2:
    /// everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_randomization: Option<u8>,
    /// The kernel's mitigation of each known vulnerability of the processor, in the kernel's words, by name of the vulnerability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mitigations: Option<BTreeMap<String, String>>,
    /// Version of the processor's microcode, as the kernel writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microcode: Option<String>,
    /// `kernel.numa_balancing`: whether the kernel moves memory closer to the processors that use it. 0: no; 1: between memory nodes; 2: between fast
    /// and slow memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_balancing: Option<u8>,
}
