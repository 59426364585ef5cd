//! What the machine is, as far as it could be read; what could not be read is absent, never guessed.

use std::collections::BTreeMap;

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
    /// Hypervisor, where the processor, the kernel or the firmware says that there is one.
    pub hypervisor: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Load average over one minute.
    pub load_average: Option<f64>,
    /// Which control groups could be used.
    pub cgroup: CgroupKind,
    /// Everything else; records of earlier versions have none of it.
    #[serde(flatten)]
    pub details: MachineDetails,
}

/// What else a measurement can hang on. All of it is absent where it could not be read or does not exist.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MachineDetails {
    /// Logical processors that deadheat may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_cpus: Option<Vec<usize>>,
    /// CPU time that deadheat's own control group may use, in cores; absent without a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<f64>,
    /// What sets the processors' frequency: `intel_pstate`, `amd-pstate-epp`, `acpi-cpufreq`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_driver: Option<String>,
    /// Every frequency governor in use, with its logical processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governors: Option<BTreeMap<String, Vec<usize>>>,
    /// What the processor is to prefer where it chooses its frequency itself: `performance`, `balance_power`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_preference: Option<String>,
    /// Whether frequencies above the nominal one are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turbo: Option<bool>,
    /// The file by which that is switched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turbo_switch: Option<String>,
    /// How often a core was slowed down for its heat since the machine started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle_events: Option<u64>,
    /// Whether no mains supply feeds the machine; absent where there is no battery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_battery: Option<bool>,
    /// Clock sources that the kernel could use instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_sources: Option<Vec<String>>,
    /// Logical processors of each memory node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_nodes: Option<Vec<Vec<usize>>>,
    /// Memory that could be had without swapping, in bytes: no more than the own control group may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_available_bytes: Option<u64>,
    /// Swap space in bytes; 0 without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_bytes: Option<u64>,
    /// Swap space in use, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_used_bytes: Option<u64>,
    /// Versions of control groups that are mounted: 1, 2 or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup_versions: Option<Vec<u8>>,
    /// Controllers below whose own folder deadheat may make groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup_controllers: Option<Vec<String>>,
    /// Whether io_uring can be used; absent where it was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_uring: Option<bool>,
    /// `kernel.io_uring_disabled`: 0 for everybody, 1 for some, 2 for nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_uring_disabled: Option<u8>,
    /// Whether the processor's counters (cycles, instructions) are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_counters: Option<bool>,
    /// `kernel.perf_event_paranoid`: who may read counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub perf_event_paranoid: Option<i8>,
    /// Whether the kernel tells how long work had to wait (`/proc/pressure`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<bool>,
    /// Open files that one process may have; deadheat raises it to `open_files_most`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// To how many that may be raised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files_most: Option<u64>,
    /// First and last port that connections are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<(u16, u16)>,
    /// `net.core.somaxconn`: connections that can wait to be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen_backlog: Option<u64>,
    /// For which memory the kernel uses huge pages by itself: `always`, `madvise` (where a program asks for it) or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_huge_pages: Option<String>,
    /// `kernel.randomize_va_space`: how far each start of a program has addresses of its own. 0 not at all, 1 all but the heap, 2 all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_randomization: Option<u8>,
    /// What the kernel does about each known vulnerability of the processor, in its own words, by the vulnerability's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mitigations: Option<BTreeMap<String, String>>,
    /// Version of the processor's microcode, as the kernel writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microcode: Option<String>,
    /// `kernel.numa_balancing`: whether the kernel moves memory towards the processors that use it. 0 not at all, 1 between memory nodes,
    /// 2 between fast and slow memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_balancing: Option<u8>,
}
