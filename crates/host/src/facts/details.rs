//! Other facts that can affect a measurement: frequency, heat, memory, control groups, limits.
//!
//! Owns: where each fact is read. Must not know: which of them is a fault (the report decides that).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use deadheat_record::MachineDetails;

use super::tree::Tree;
use crate::affinity::cpu_list;
use crate::cgroup::inside;

const CPU: &str = "sys/devices/system/cpu";

/// All details that can be read.
pub(super) fn details(tree: &Tree<'_>) -> MachineDetails {
    let status = |name| tree.field("proc/self/status", name);
    let (turbo, turbo_switch) = turbo(tree).unzip();
    let (swap, free) = (tree.kib("proc/meminfo", "SwapTotal"), tree.kib("proc/meminfo", "SwapFree"));
    let open_files = open_files(tree);
    let groups = Groups::read(tree);
    MachineDetails {
        allowed_cpus: status("Cpus_allowed_list").and_then(|list| cpu_list(&list)),
        cpu_quota: groups.cpu_quota(),
        frequency_driver: tree.text(&format!("{CPU}/cpu0/cpufreq/scaling_driver")),
        governors: governors(tree),
        energy_preference: tree.text(&format!("{CPU}/cpu0/cpufreq/energy_performance_preference")),
        turbo,
        turbo_switch,
        throttle_events: throttle_events(tree),
        on_battery: on_battery(tree),
        clock_sources: clock_sources(tree),
        memory_nodes: memory_nodes(tree),
        memory_available_bytes: tree
            .kib("proc/meminfo", "MemAvailable")
            .map(|bytes| groups.memory_limit().map_or(bytes, |limit| limit.min(bytes))),
        swap_bytes: swap,
        swap_used_bytes: swap.zip(free).map(|(swap, free)| swap.saturating_sub(free)),
        cgroup_versions: groups.versions(),
        cgroup_controllers: groups.controllers(),
        io_uring: None,
        io_uring_disabled: tree.number("proc/sys/kernel/io_uring_disabled"),
        hardware_counters: hardware_counters(tree),
        perf_event_paranoid: tree.number("proc/sys/kernel/perf_event_paranoid"),
        pressure: tree.exists("proc/self").then(|| tree.text("proc/pressure/cpu").is_some()),
        open_files: open_files.map(|(soft, _)| soft),
        open_files_most: open_files.map(|(_, hard)| hard),
        ports: ports(tree),
        listen_backlog: tree.number("proc/sys/net/core/somaxconn"),
        transparent_huge_pages: chosen(tree, "sys/kernel/mm/transparent_hugepage/enabled"),
        address_randomization: tree.number("proc/sys/kernel/randomize_va_space"),
        mitigations: mitigations(tree),
        microcode: tree
            .text(&format!("{CPU}/cpu0/microcode/version"))
            .or_else(|| tree.field("proc/cpuinfo", "microcode")),
        numa_balancing: tree.number("proc/sys/kernel/numa_balancing"),
    }
}

/// The bracketed word in a file that lists all choices: `always [madvise] never`.
fn chosen(tree: &Tree<'_>, path: &str) -> Option<String> {
    let text = tree.text(path)?;
    let word = |word: &str| Some(word.strip_prefix('[')?.strip_suffix(']')?.to_owned());
    text.split_whitespace().find_map(word)
}

/// The mitigation of each vulnerability that the kernel knows, one file for each.
fn mitigations(tree: &Tree<'_>) -> Option<BTreeMap<String, String>> {
    let folder = format!("{CPU}/vulnerabilities");
    let names = fs::read_dir(tree.path(&folder)).ok()?.flatten();
    let one = |name: String| Some((name.clone(), tree.text(&format!("{folder}/{name}"))?));
    let all: BTreeMap<String, String> =
        names.filter_map(|entry| entry.file_name().into_string().ok()).filter_map(one).collect();
    (!all.is_empty()).then_some(all)
}

fn governors(tree: &Tree<'_>) -> Option<BTreeMap<String, Vec<usize>>> {
    let mut all: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (cpu, folder) in tree.numbered(CPU, "cpu") {
        if let Ok(governor) = fs::read_to_string(folder.join("cpufreq/scaling_governor")) {
            all.entry(governor.trim().to_owned()).or_default().push(cpu);
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Whether turbo is on, and the file with its switch: the two drivers use opposite values.
fn turbo(tree: &Tree<'_>) -> Option<(bool, String)> {
    let switch = |name: &str, on: &str| {
        let path = format!("{CPU}/{name}");
        Some((tree.text(&path)? == on, format!("/{path}")))
    };
    switch("intel_pstate/no_turbo", "0").or_else(|| switch("cpufreq/boost", "1"))
}

/// How often cores and packages were throttled since the machine started.
pub(super) fn throttle_events(tree: &Tree<'_>) -> Option<u64> {
    let count = |folder: PathBuf| -> Option<u64> {
        let one = |name| {
            fs::read_to_string(folder.join("thermal_throttle").join(name)).ok()?.trim().parse::<u64>().ok()
        };
        // Each processor of a package repeats the package's count, so that the maximum is about right.
        Some(one("core_throttle_count")?.max(one("package_throttle_count").unwrap_or(0)))
    };
    tree.numbered(CPU, "cpu").into_iter().filter_map(|(_, folder)| count(folder)).max()
}

/// None if no battery could power the machine; that of a mouse does not count.
fn on_battery(tree: &Tree<'_>) -> Option<bool> {
    let supplies: Vec<PathBuf> =
        fs::read_dir(tree.path("sys/class/power_supply")).ok()?.flatten().map(|entry| entry.path()).collect();
    let says = |supply: &PathBuf, file: &str, word: &str| {
        fs::read_to_string(supply.join(file)).is_ok_and(|text| text.trim() == word)
    };
    let battery = |one: &PathBuf| says(one, "type", "Battery") && !says(one, "scope", "Device");
    let discharging = |one: &PathBuf| battery(one) && says(one, "status", "Discharging");
    supplies.iter().any(battery).then(|| {
        let fed = supplies.iter().any(|one| !battery(one) && says(one, "online", "1"));
        !fed && supplies.iter().any(discharging)
    })
}

fn memory_nodes(tree: &Tree<'_>) -> Option<Vec<Vec<usize>>> {
    let nodes: Vec<Vec<usize>> = tree
        .numbered("sys/devices/system/node", "node")
        .into_iter()
        .filter_map(|(_, folder)| fs::read_to_string(folder.join("cpulist")).ok())
        // A node of memory alone has none.
        .map(|list| cpu_list(&list).unwrap_or_default())
        .collect();
    (!nodes.is_empty()).then_some(nodes)
}

/// True if the kernel lists the processor's own counters as a source of events.
fn hardware_counters(tree: &Tree<'_>) -> Option<bool> {
    let sources: Vec<String> = fs::read_dir(tree.path("sys/bus/event_source/devices"))
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let is_cpu = |name: &String| name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv");
    Some(sources.iter().any(is_cpu))
}

/// `Max open files            1024                 524288               files`.
fn open_files(tree: &Tree<'_>) -> Option<(u64, u64)> {
    let text = tree.text("proc/self/limits")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let limit = |word: &str| if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() };
    let mut words = line.split_whitespace();
    Some((limit(words.next()?)?, limit(words.next()?)?))
}

/// What the kernel could read its clock from.
pub(super) fn clock_sources(tree: &Tree<'_>) -> Option<Vec<String>> {
    let names = tree.text("sys/devices/system/clocksource/clocksource0/available_clocksource")?;
    Some(names.split_whitespace().map(str::to_owned).collect())
}

fn ports(tree: &Tree<'_>) -> Option<(u16, u16)> {
    let text = tree.text("proc/sys/net/ipv4/ip_local_port_range")?;
    let mut words = text.split_whitespace().map(str::parse);
    Some((words.next()?.ok()?, words.next()?.ok()?))
}

/// This process's own folders in the control group trees.
struct Groups<'a> {
    tree: &'a Tree<'a>,
    /// Version, the controllers of the mounted tree, and the folder.
    own: Vec<(u8, Vec<String>, PathBuf)>,
}

impl<'a> Groups<'a> {
    fn read(tree: &'a Tree<'a>) -> Self {
        let (mounts, membership) = (tree.text("proc/self/mounts"), tree.text("proc/self/cgroup"));
        let (mounts, membership) = (mounts.unwrap_or_default(), membership.unwrap_or_default());
        let folder = |mount: &str, controller: &str| inside(&tree.path(mount), &membership, controller);
        let own = mounts.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            match fields[..] {
                [_, mount, "cgroup2", ..] => Some((2, Vec::new(), folder(mount, ""))),
                [_, mount, "cgroup", options, ..] => {
                    let known = ["cpu", "cpuacct", "cpuset", "freezer", "memory", "pids", "blkio"];
                    let controllers: Vec<String> =
                        options.split(',').filter(|one| known.contains(one)).map(str::to_owned).collect();
                    let first = controllers.first()?.clone();
                    Some((1, controllers, folder(mount, &first)))
                }
                _ => None,
            }
        });
        Self { tree, own: own.collect() }
    }

    fn versions(&self) -> Option<Vec<u8>> {
        let mut versions: Vec<u8> = self.own.iter().map(|(version, ..)| *version).collect();
        versions.sort_unstable();
        versions.dedup();
        self.tree.exists("proc/self/mounts").then_some(versions)
    }

    /// In version 2, the controllers of the process's own folder, and freezing, which is always available.
    fn controllers(&self) -> Option<Vec<String>> {
        let writable = self.own.iter().filter(|(_, _, folder)| (self.tree.writable)(folder));
        let mut all: Vec<String> = writable
            .flat_map(|(version, controllers, folder)| match version {
                2 => {
                    let text = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
                    text.split_whitespace().chain(["freezer"]).map(str::to_owned).collect()
                }
                _ => controllers.clone(),
            })
            .collect();
        all.sort();
        all.dedup();
        self.tree.exists("proc/self/mounts").then_some(all)
    }

    /// The lowest CPU quota of the process's own group and those above it, in cores.
    fn cpu_quota(&self) -> Option<f64> {
        self.upwards("cpu", quota).into_iter().reduce(f64::min)
    }

    /// The lowest memory limit of the process's own group and those above it, in bytes; more than all memory if there is no limit.
    fn memory_limit(&self) -> Option<u64> {
        self.upwards("memory", memory_limit).into_iter().min()
    }

    /// The values of one controller in the process's own group and in those above it.
    fn upwards<N>(&self, controller: &str, read: impl Fn(u8, &Path) -> Option<N>) -> Vec<N> {
        let mut found = Vec::new();
        for (version, controllers, folder) in &self.own {
            if *version == 2 || controllers.iter().any(|one| one == controller) {
                let inside = folder.ancestors().take_while(|path| path.starts_with(self.tree.root));
                found.extend(inside.filter_map(|path| read(*version, path)));
            }
        }
        found
    }
}

/// The limit of one folder, in bytes.
fn memory_limit(version: u8, folder: &Path) -> Option<u64> {
    let name = if version == 2 { "memory.max" } else { "memory.limit_in_bytes" };
    // Version 2 writes `max` if there is no limit.
    fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
}

/// The quota of one folder, in cores.
fn quota(version: u8, folder: &Path) -> Option<f64> {
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let (quota, period) = match version {
        2 => {
            let text = text("cpu.max")?;
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        }
        _ => (text("cpu.cfs_quota_us")?, text("cpu.cfs_period_us")?),
    };
    let (quota, period) = (quota.trim().parse::<f64>().ok()?, period.trim().parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}
