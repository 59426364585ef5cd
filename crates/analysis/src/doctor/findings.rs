//! What is wrong with a machine for measuring, and how to mend it.
//!
//! Owns the limits, messages and remedies. Must not know how findings are shown.
//!
//! | code | warns | unfit |
//! |---|---|---|
//! | `one-core` | | servers and generator would share a core |
//! | `shared-siblings` | servers and generator on threads of one core | |
//! | `cpu-quota` | deadheat's own control group has a quota | |
//! | `governor` | a governor other than `performance` | |
//! | `energy-preference` | the processor is to save energy | |
//! | `turbo` | frequencies above the nominal one | |
//! | `thermal-throttling` | a core was slowed down for its heat | |
//! | `battery` | no mains supply | |
//! | `virtual-machine` | there is a hypervisor | |
//! | `clock-source` | a clock that only the kernel can read, or over 200 ns a reading | |
//! | `memory-nodes` | the servers' cores span several | |
//! | `swap-in-use`, `little-memory` | any; under 512 MiB available, or allowed to deadheat's own control group | |
//! | `no-freezer` | idle servers are stopped by signals | |
//! | `processors-sleep` | idle processors cannot be kept awake, or `--cpu-latency any` lets them sleep | |
//! | `no-io-uring` | the generator must do with epoll | |
//! | `huge-pages` | the kernel gives huge pages to programs that did not ask for them | |
//! | `fixed-addresses` | programs have the same addresses at each start | |
//! | `numa-balancing` | the kernel moves memory between several nodes | |
//! | `open-files` | under 4,096 | under 128 |
//! | `few-ports` | under 10,000 | |
//! | `listen-backlog` | under 256 | |
//! | `steal` | over 1 % | over 5 % |
//! | `stalls` | a core stood still for over 0.5 % of the time | |
//! | `foreign-cpu` | over 2 % | over 10 % |
//! | `noise-floor` | 3 % takes over 30 epochs | 10 % does |
//! | `false-claim` | a server raced against itself was told apart | |
//! | `false-claims`, `plant-missed`, `plant-off`, `invalid-races` | the proof failed in part | too many false claims, or too few valid races |

use deadheat_record::{BusyProcess, CgroupKind, DoctorRecord, Finding, NoiseFloor, Severity, VerdictWord};

use super::proof;
use crate::number::{bytes, interval, percent, ratio, time_ns, whole};

/// Every code that this part gives; those of the race of a server with itself come to them.
pub const CODES: [&str; 31] = [
    "one-core",
    "shared-siblings",
    "cpu-quota",
    "governor",
    "energy-preference",
    "turbo",
    "thermal-throttling",
    "battery",
    "virtual-machine",
    "clock-source",
    "memory-nodes",
    "swap-in-use",
    "little-memory",
    "no-freezer",
    "processors-sleep",
    "no-io-uring",
    "huge-pages",
    "fixed-addresses",
    "numa-balancing",
    "open-files",
    "few-ports",
    "listen-backlog",
    "steal",
    "stalls",
    "foreign-cpu",
    "noise-floor",
    "false-claim",
    "false-claims",
    "plant-missed",
    "plant-off",
    "invalid-races",
];

const STEAL: (f64, f64) = (0.01, 0.05);
const FOREIGN: (f64, f64) = (0.02, 0.1);
/// Half of what lies beyond p99.
const STALLED: f64 = 0.005;
/// Clocks that are read without asking the kernel (by its vDSO) and tick at one pace. Those of KVM and Hyper-V are the processor's
/// own counter with a scale that the host gives.
const GOOD_CLOCKS: [&str; 7] = [
    "tsc",
    "arch_sys_counter",
    "riscv_clocksource",
    "timebase",
    "tod",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
];
const SLOW_CLOCK_NS: f64 = 200.0;
const LITTLE_MEMORY: u64 = 512 << 20;
const FEW_FILES: (u64, u64) = (4_096, 128);
const FEW_PORTS: u64 = 10_000;
const SHORT_BACKLOG: u64 = 256;
/// The most epochs of a race with `--profile full`.
const MOST_EPOCHS: usize = 30;
/// What the race of a server with itself says that is said here already, or that is no fault of the machine.
const NOT_PASSED_ON: [&str; 4] = ["few-epochs", "too-noisy", "not-pinned", "shared-cores"];

/// All of them, in the order of the table; what the examination noted itself comes first.
pub(super) fn of(record: &DoctorRecord) -> Vec<Finding> {
    let known = |one: &&Finding| one.code.starts_with("leftover-") || one.code == "processors-sleep";
    let noted: Vec<Finding> = record.findings.iter().filter(known).cloned().collect();
    let groups = [
        cores(record),
        frequency(record),
        platform(record),
        memory(record),
        limits(record),
        disturbance(record),
    ];
    let mut all: Vec<Finding> = noted.into_iter().chain(groups.into_iter().flatten()).collect();
    if let Some(floor) = &record.floor {
        all.extend(of_floor(record, floor));
        for finding in floor.findings.iter().filter(|one| !NOT_PASSED_ON.contains(&one.code.as_str())) {
            let worse = |one: &Finding| one.code == finding.code && one.severity >= finding.severity;
            if !all.iter().any(worse) {
                let message = format!("in the race with itself: {}", finding.message);
                all.push(Finding { message, ..finding.clone() });
            }
        }
    }
    all.extend(record.proof.iter().flat_map(proof::findings));
    all
}

/// `0,2-4`, as the kernel writes it.
pub fn listed(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let part = |(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

fn cores(record: &DoctorRecord) -> Vec<Finding> {
    let (machine, pinning) = (&record.machine, &record.pinning);
    let mut findings = Vec::new();
    if pinning.server_cpus.is_empty() || pinning.load_cpus.is_empty() {
        let allowed = machine
            .details
            .allowed_cpus
            .as_ref()
            .map(|cpus| format!(" (logical processors {})", listed(cpus)));
        findings.push(Finding::invalid(
            "one-core",
            format!(
                "one core only{}: servers and load generator would share it",
                allowed.unwrap_or_default()
            ),
            "use a machine, or allow deadheat (taskset, cpuset), with two whole cores or more",
        ));
    }
    let touches = |core: &[usize], cpus: &[usize]| core.iter().any(|cpu| cpus.contains(cpu));
    for core in &machine.siblings {
        if touches(core, &pinning.server_cpus) && touches(core, &pinning.load_cpus) {
            findings.push(Finding::warn(
                "shared-siblings",
                format!("logical processors {} are threads of one core, which servers and generator share", listed(core)),
                "give whole cores to --server-cpus and --load-cpus, or: echo off | sudo tee /sys/devices/system/cpu/smt/control",
            ));
        }
    }
    if let Some(quota) = machine.details.cpu_quota {
        findings.push(Finding::warn(
            "cpu-quota",
            format!(
                "deadheat's own control group may use {quota:.2} cores: beyond, everything in it stands still"
            ),
            "lift the quota (docker run without --cpus; a pod without a CPU limit)",
        ));
    }
    if let Some(nodes) = machine.details.memory_nodes.as_ref().filter(|nodes| nodes.len() > 1) {
        let of_servers: Vec<&Vec<usize>> =
            nodes.iter().filter(|node| touches(node, &pinning.server_cpus)).collect();
        if let [first, _, ..] = of_servers[..] {
            findings.push(Finding::warn(
                "memory-nodes",
                format!(
                    "the servers' cores {} span {} memory nodes",
                    listed(&pinning.server_cpus),
                    of_servers.len()
                ),
                format!("keep them within one: --server-cpus with some of {}", listed(first)),
            ));
        }
    }
    findings
}

fn frequency(record: &DoctorRecord) -> Vec<Finding> {
    let details = &record.machine.details;
    let mut findings = Vec::new();
    let others = details.governors.iter().flatten().filter(|(name, _)| *name != "performance");
    let others: Vec<String> = others.map(|(name, cpus)| format!("{name} on {}", listed(cpus))).collect();
    if !others.is_empty() {
        findings.push(Finding::warn(
            "governor",
            format!(
                "the frequency governor is {}: a core's speed depends on what ran before",
                others.join(", ")
            ),
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        ));
    }
    if let Some(preference) = details.energy_preference.as_ref().filter(|word| *word != "performance") {
        findings.push(Finding::warn(
            "energy-preference",
            format!("the processor is told to prefer {preference}"),
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
        ));
    }
    if details.turbo == Some(true) {
        let switch = details.turbo_switch.as_deref().unwrap_or_default();
        let off = if switch.ends_with("no_turbo") { 1 } else { 0 };
        findings.push(Finding::warn(
            "turbo",
            "turbo is on: how fast a core is depends on its heat and on what the other cores do",
            format!("echo {off} | sudo tee {switch}"),
        ));
    }
    let since = details.throttle_events.filter(|count| *count > 0);
    let while_here = record.noise.throttled.filter(|count| *count > 0);
    if while_here.or(since).is_some() {
        let when = while_here.map_or("since it was started", |_| "while doctor ran");
        let count = whole(while_here.or(since).unwrap_or(0));
        findings.push(Finding::warn(
            "thermal-throttling",
            format!("the processor was slowed down for its heat {count} times {when}"),
            "let it cool down, clear its fans, or lower its highest frequency so that it can be kept",
        ));
    }
    if details.on_battery == Some(true) {
        let message = "the machine runs on its battery and saves power as it likes";
        findings.push(Finding::warn("battery", message, "connect it to the mains"));
    }
    findings
}

fn platform(record: &DoctorRecord) -> Vec<Finding> {
    let (machine, details) = (&record.machine, &record.machine.details);
    let mut findings = Vec::new();
    if let Some(vendor) = &machine.hypervisor {
        findings.push(Finding::warn(
            "virtual-machine",
            format!("this is {}: its cores may be threads that others share", virtual_machine(vendor)),
            "measure ratios here, not absolute figures; for those use bare metal, or a dedicated host with pinned cores",
        ));
    }
    if let Some(source) = &machine.clock_source {
        let good = GOOD_CLOCKS.contains(&source.as_str());
        let read = record.noise.clock_read_ns;
        if !good || read > SLOW_CLOCK_NS {
            let tsc = details.clock_sources.iter().flatten().any(|one| one == "tsc");
            let remedy = match (tsc, good) {
                (true, false) => {
                    "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
                }
                _ => {
                    "the kernel does not trust the processor's clock here: see `dmesg | grep -i tsc`, and boot with tsc=reliable if you know better"
                }
            };
            let message = format!("the clock is {source}, and takes {} to read", time_ns(read));
            findings.push(Finding::warn("clock-source", message, remedy));
        }
    }
    if let Some(used) = details.swap_used_bytes.filter(|used| *used > 0) {
        findings.push(Finding::warn(
            "swap-in-use",
            format!(
                "{} of swap are in use: what was swapped out is slow when it is touched again",
                bytes(used)
            ),
            "stop what needs so much memory, then: sudo swapoff -a",
        ));
    }
    if let Some(available) = details.memory_available_bytes.filter(|available| *available < LITTLE_MEMORY) {
        let message = format!("only {} of memory are available", bytes(available));
        findings.push(Finding::warn("little-memory", message, "stop what needs it, or use a larger machine"));
    }
    if machine.cgroup == CgroupKind::None {
        findings.push(Finding::warn(
            "no-freezer",
            "no control group can be made: idle servers are stopped by signals, and quotas cannot be set",
            "run as root, or in a group of your own: systemd-run --user --scope -p Delegate=yes deadheat ...",
        ));
    }
    if details.io_uring == Some(false) {
        let remedy = match details.io_uring_disabled {
            Some(1..) => "sudo sysctl -w kernel.io_uring_disabled=0",
            _ => "allow io_uring in the container's seccomp profile, or use Linux 6.1 or later",
        };
        let message = "io_uring cannot be used: the generator does with epoll, at a lower ceiling";
        findings.push(Finding::warn("no-io-uring", message, remedy));
    }
    findings
}

/// How the kernel lays out the memory of programs, and moves it. Mitigations and microcode are shown and not judged: they are no fault,
/// and matter where two machines are compared.
fn memory(record: &DoctorRecord) -> Vec<Finding> {
    let details = &record.machine.details;
    let mut findings = Vec::new();
    if details.transparent_huge_pages.as_deref() == Some("always") {
        findings.push(Finding::warn(
            "huge-pages",
            "the kernel makes huge pages for programs that did not ask for them, at times of its own: a server's memory and \
             latency depend on how far it has come",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ));
    }
    if details.address_randomization == Some(0) {
        findings.push(Finding::warn(
            "fixed-addresses",
            "a program has the same addresses at each start: what they do to its speed is in every epoch alike, and no interval \
             covers it",
            "sudo sysctl -w kernel.randomize_va_space=2",
        ));
    }
    let nodes = details.memory_nodes.as_ref().map_or(1, Vec::len);
    if details.numa_balancing.is_some_and(|mode| mode > 0) && nodes > 1 {
        findings.push(Finding::warn(
            "numa-balancing",
            format!("the kernel moves memory between {nodes} memory nodes while servers run, and interrupts them for it"),
            "sudo sysctl -w kernel.numa_balancing=0",
        ));
    }
    findings
}

/// The kind of it, where it is known.
pub fn virtual_machine(vendor: &str) -> String {
    let unknown = vendor == "a virtual machine";
    if unknown { vendor.into() } else { format!("a virtual machine ({vendor})") }
}

fn limits(record: &DoctorRecord) -> Vec<Finding> {
    let details = &record.machine.details;
    let mut findings = Vec::new();
    if let Some(files) = details.open_files_most.filter(|files| *files < FEW_FILES.0) {
        let message =
            format!("a process may have {} open files: so many connections at the most", whole(files));
        let remedy = "raise the hard limit: nofile in /etc/security/limits.conf, LimitNOFILE= of the service, or docker run --ulimit nofile=65536";
        findings.push(graded("open-files", files < FEW_FILES.1, message, remedy));
    }
    if let Some((first, last)) = details.ports {
        let count = u64::from(last.saturating_sub(first)) + 1;
        if count < FEW_PORTS {
            findings.push(Finding::warn(
                "few-ports",
                format!("connections are given only {} ports, {first} to {last}", whole(count)),
                "sudo sysctl -w net.ipv4.ip_local_port_range='10240 65535'",
            ));
        }
    }
    if let Some(backlog) = details.listen_backlog.filter(|backlog| *backlog < SHORT_BACKLOG) {
        findings.push(Finding::warn(
            "listen-backlog",
            format!("only {} connections can wait to be accepted", whole(backlog)),
            "sudo sysctl -w net.core.somaxconn=4096",
        ));
    }
    findings
}

fn disturbance(record: &DoctorRecord) -> Vec<Finding> {
    let noise = &record.noise;
    let mut findings = Vec::new();
    if noise.steal_share > STEAL.0 {
        findings.push(graded(
            "steal",
            noise.steal_share > STEAL.1,
            format!("the hypervisor gave {} of our cores' time to others", percent(noise.steal_share)),
            "wait for a quieter hour, or use a machine whose cores nobody else has",
        ));
    }
    if let Some(share) = noise.stalled_share.filter(|share| *share > STALLED) {
        let longest = noise
            .longest_stall_ns
            .map_or_else(String::new, |ns| format!(", {} at the longest", time_ns(ns as f64)));
        findings.push(Finding::warn(
            "stalls",
            format!("a core stood still for {} of the time{longest}: high percentiles may be the machine's", percent(share)),
            "use a machine whose processor time is not rationed, or compare throughput; rounds with long stalls are left out",
        ));
    }
    if let Some(share) = noise.foreign_share.filter(|share| *share > FOREIGN.0) {
        let named = named(&noise.busiest);
        let who = if named.is_empty() { String::new() } else { format!("; the busiest: {named}") };
        let pids: Vec<String> = noise.busiest.iter().map(|one| one.pid.to_string()).collect();
        let which =
            if pids.is_empty() { "it".into() } else { format!("what you can spare of {}", pids.join(", ")) };
        findings.push(graded(
            "foreign-cpu",
            share > FOREIGN.1,
            format!("other programs use {} of our cores' time{who}", percent(share)),
            format!("stop {which}, or wait until it is done"),
        ));
    }
    findings
}

/// `node (4711) 1.93 cores, ...`.
pub fn named(busiest: &[BusyProcess]) -> String {
    let one = |one: &BusyProcess| format!("{} ({}) {:.2} cores", one.name, one.pid, one.cores);
    busiest.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn of_floor(record: &DoctorRecord, floor: &NoiseFloor) -> Vec<Finding> {
    let mut findings = Vec::new();
    let takes = |difference: f64| {
        let one = record.resolution.iter().find(|one| one.difference == difference)?;
        Some(
            one.epochs
                .filter(|epochs| *epochs <= MOST_EPOCHS)
                .is_none()
                .then(|| one.epochs.map_or_else(|| "over a million".into(), |epochs| whole(epochs as u64))),
        )
    };
    let remedy = "quieten the machine by the other findings; race longer (--epochs 6..200 --budget 45m); look again with doctor";
    let said = |epochs: &str, what: &str| {
        format!("a server differs from itself so much that {what} takes {epochs} epochs")
    };
    match (takes(0.1).flatten(), takes(0.03).flatten()) {
        (Some(epochs), _) => findings.push(Finding::invalid("noise-floor", said(&epochs, "10 %"), remedy)),
        (None, Some(epochs)) => findings.push(Finding::warn("noise-floor", said(&epochs, "3 %"), remedy)),
        (None, None) => {}
    }
    if matches!(floor.verdict, VerdictWord::Faster | VerdictWord::Slower) {
        let ends = interval(floor.low, floor.high);
        let shown = floor.ratio.map_or_else(|| "?".into(), |value| ratio(value, 3));
        findings.push(Finding::warn(
            "false-claim",
            format!("a server raced against itself was told apart: {shown} ({ends})"),
            format!("that happens in up to {} of races; look again, or prove it with --full", percent(0.05)),
        ));
    }
    findings
}

fn graded(code: &str, invalid: bool, message: impl Into<String>, remedy: impl Into<String>) -> Finding {
    let severity = if invalid { Severity::Invalid } else { Severity::Warn };
    Finding { severity, ..Finding::warn(code, message, remedy) }
}
