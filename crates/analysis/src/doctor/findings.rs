//! What makes a machine unfit for measuring, and how to fix it.
//!
//! Owns the messages. Must not know how findings are shown.

use deadheat_record::{BusyProcess, CgroupKind, Clock, DoctorRecord, Finding, NoiseFloor, Severity};
use deadheat_stats::StoppingRules;

use super::proof;
use crate::gates::table::{self, By};
use crate::number::{bytes, interval, percent, ratio, time_ns, whole};

/// Clocks that can be read without a system call (through the vDSO) and that tick at a constant rate. Those of KVM and Hyper-V are the
/// processor's own counter, scaled by a factor from the host.
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
/// Findings of the race of a server against itself that this module reports already, or that are not the machine's fault.
const NOT_PASSED_ON: [&str; 4] = ["few-epochs", "too-noisy", "not-pinned", "shared-cores"];

/// All findings, in the order of the table; those that the examination itself noted come first.
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
                let message = format!("in the server's race against itself: {}", finding.message);
                all.push(Finding { message, ..finding.clone() });
            }
        }
    }
    all.extend(record.proof.iter().flat_map(proof::findings));
    all
}

/// Formats a list of processors as the kernel does: `0,2-4`.
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
    // If the load comes from other machines, the generator has no cores here.
    if pinning.server_cpus.is_empty() {
        let allowed = machine
            .details
            .allowed_cpus
            .as_ref()
            .map(|cpus| format!(" (logical processors {})", listed(cpus)));
        findings.push(table::ONE_CORE.finding(
            By::Doctor,
            Severity::Invalid,
            format!(
                "deadheat may use only one core{}: contenders and load generator would share it",
                allowed.unwrap_or_default()
            ),
        ));
    }
    let touches = |core: &[usize], cpus: &[usize]| core.iter().any(|cpu| cpus.contains(cpu));
    // Cores of other machines have the same numbers.
    let here = machine.siblings.iter().filter(|_| record.link.is_none());
    for core in here {
        if touches(core, &pinning.server_cpus) && touches(core, &pinning.load_cpus) {
            findings.push(table::SHARED_SIBLINGS.warning(
                By::Doctor,
                format!(
                    "logical processors {} are threads of one core, which servers and generator share: each slows the other down",
                    listed(core)
                ),
            ));
        }
    }
    if let Some(quota) = machine.details.cpu_quota {
        findings.push(table::CPU_QUOTA.warning(
            By::Doctor,
            format!(
                "deadheat's own control group has a quota of {quota:.2} cores: when that is used up, the kernel stops everything in the group"
            ),
        ));
    }
    if let Some(nodes) = machine.details.memory_nodes.as_ref().filter(|nodes| nodes.len() > 1) {
        let of_servers: Vec<&Vec<usize>> =
            nodes.iter().filter(|node| touches(node, &pinning.server_cpus)).collect();
        if let [first, _, ..] = of_servers[..] {
            findings.push(Finding {
                remedy: format!("keep them within one: --server-cpus with some of {}", listed(first)),
                ..table::MEMORY_NODES.warning(
                    By::Doctor,
                    format!(
                        "the servers' cores {} span {} memory nodes",
                        listed(&pinning.server_cpus),
                        of_servers.len()
                    ),
                )
            });
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
        findings.push(table::GOVERNOR.warning(
            By::Doctor,
            format!(
                "the frequency governor is {}: a core's speed depends on what ran before",
                others.join(", ")
            ),
        ));
    }
    if let Some(preference) = details.energy_preference.as_ref().filter(|word| *word != "performance") {
        findings.push(table::ENERGY_PREFERENCE.warning(
            By::Doctor,
            format!("the processor's energy preference is {preference}, not performance"),
        ));
    }
    if details.turbo == Some(true) {
        let switch = details.turbo_switch.as_deref().unwrap_or_default();
        let off = if switch.ends_with("no_turbo") { 1 } else { 0 };
        findings.push(Finding {
            remedy: format!("echo {off} | sudo tee {switch}"),
            ..table::TURBO.warning(
                By::Doctor,
                "turbo is on: how fast a core is depends on its heat and on what the other cores do",
            )
        });
    }
    let since = details.throttle_events.filter(|count| *count > 0);
    let while_here = record.noise.throttled.filter(|count| *count > 0);
    if while_here.or(since).is_some() {
        let when = while_here.map_or("since it was started", |_| "while doctor ran");
        let count = whole(while_here.or(since).unwrap_or(0));
        findings.push(
            table::THERMAL_THROTTLING.warning(
                By::Doctor,
                format!("the processor was too hot and slowed down {count} times {when}"),
            ),
        );
    }
    if details.on_battery == Some(true) {
        let message = "the machine runs on battery, so its speed may change at any time";
        findings.push(table::BATTERY.warning(By::Doctor, message));
    }
    findings
}

/// What is wrong with a machine's clock. `name` is how the message calls it.
fn clock(name: &str, clock: &Clock) -> Option<Finding> {
    let source = clock.source.as_ref()?;
    let good = GOOD_CLOCKS.contains(&source.as_str());
    if good && clock.read_ns <= SLOW_CLOCK_NS {
        return None;
    }
    let remedy = if clock.sources.iter().any(|one| one == "tsc") && !good {
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
    } else {
        "the kernel does not trust the processor's clock: see `dmesg | grep -i tsc`, and boot with tsc=reliable if you know better"
    };
    let time = time_ns(clock.read_ns);
    let message = format!("{name} is {source}, and takes {time} to read: short latencies are less exact");
    Some(Finding { remedy: remedy.into(), ..table::CLOCK_SOURCE.warning(By::Doctor, message) })
}

fn platform(record: &DoctorRecord) -> Vec<Finding> {
    let (machine, details) = (&record.machine, &record.machine.details);
    let mut findings = Vec::new();
    if let Some(vendor) = &machine.hypervisor {
        findings.push(table::VIRTUAL_MACHINE.warning(
            By::Doctor,
            format!("this is {}: its cores may be threads that others share", virtual_machine(vendor)),
        ));
    }
    let own = Clock {
        source: machine.clock_source.clone(),
        sources: details.clock_sources.clone().unwrap_or_default(),
        read_ns: record.noise.clock_read_ns,
    };
    findings.extend(clock("the clock", &own));
    for host in record.link.iter().flat_map(|link| &link.hosts) {
        let of = format!("the clock of load host {}", host.name);
        findings.extend(host.clock.as_ref().and_then(|found| clock(&of, found)));
    }
    if let Some(used) = details.swap_used_bytes.filter(|used| *used > 0) {
        findings.push(table::SWAP_IN_USE.warning(
            By::Doctor,
            format!("{} of swap is in use: memory that was swapped out is slow at its next use", bytes(used)),
        ));
    }
    if let Some(available) = details.memory_available_bytes.filter(|available| *available < LITTLE_MEMORY) {
        let message = format!("only {} of memory is available", bytes(available));
        findings.push(table::LITTLE_MEMORY.warning(By::Doctor, message));
    }
    if machine.cgroup == CgroupKind::None {
        findings.push(table::NO_FREEZER.warning(
            By::Doctor,
            "deadheat cannot create a control group: it pauses idle contenders by signals, which cost each of their threads CPU time, and cannot set quotas",
        ));
    }
    if details.io_uring == Some(false) {
        let remedy = match details.io_uring_disabled {
            Some(1..) => "sudo sysctl -w kernel.io_uring_disabled=0",
            _ => "allow io_uring in the container's seccomp profile, or use Linux 6.1 or later",
        };
        let message = "io_uring is not available here: the generator uses epoll, which has a lower ceiling";
        findings.push(Finding { remedy: remedy.into(), ..table::NO_IO_URING.warning(By::Doctor, message) });
    }
    findings
}

/// How the kernel lays out and moves the memory of programs. Mitigations and microcode are reported but not judged: they are not faults, and
/// matter only when two machines are compared.
fn memory(record: &DoctorRecord) -> Vec<Finding> {
    let details = &record.machine.details;
    let mut findings = Vec::new();
    if details.transparent_huge_pages.as_deref() == Some("always") {
        findings.push(table::HUGE_PAGES.warning(
            By::Doctor,
            "the kernel gives huge pages to programs that did not ask for them, at a time of its choice: a contender's memory and latency depend on how many it got so far",
        ));
    }
    if details.address_randomization == Some(0) {
        findings.push(table::FIXED_ADDRESSES.warning(
            By::Doctor,
            "a program has the same addresses at each start: their effect on its speed is the same in every epoch, and no \
             interval covers it",
        ));
    }
    let nodes = details.memory_nodes.as_ref().map_or(1, Vec::len);
    if details.numa_balancing.is_some_and(|mode| mode > 0) && nodes > 1 {
        findings.push(table::NUMA_BALANCING.warning(By::Doctor, format!("the kernel moves memory between {nodes} memory nodes while servers run, and interrupts them for it")));
    }
    findings
}

/// The kind of virtual machine, if known.
pub fn virtual_machine(vendor: &str) -> String {
    let unknown = vendor == "a virtual machine";
    if unknown { vendor.into() } else { format!("a virtual machine ({vendor})") }
}

fn limits(record: &DoctorRecord) -> Vec<Finding> {
    let details = &record.machine.details;
    let mut findings = Vec::new();
    if let Some(files) = details.open_files_most.filter(|files| *files < FEW_FILES.0) {
        let message = format!(
            "a process may have only {} open files, which limits the number of connections",
            whole(files)
        );
        findings.push(table::OPEN_FILES.finding(
            By::Doctor,
            if files < FEW_FILES.1 { Severity::Invalid } else { Severity::Warn },
            message,
        ));
    }
    if let Some((first, last)) = details.ports {
        let count = u64::from(last.saturating_sub(first)) + 1;
        if count < FEW_PORTS {
            findings.push(table::FEW_PORTS.warning(
                By::Doctor,
                format!("only {} ports are available for connections: {first} to {last}", whole(count)),
            ));
        }
    }
    if let Some(backlog) = details.listen_backlog.filter(|backlog| *backlog < SHORT_BACKLOG) {
        findings.push(
            table::LISTEN_BACKLOG
                .warning(By::Doctor, format!("only {} connections can wait to be accepted", whole(backlog))),
        );
    }
    findings
}

fn disturbance(record: &DoctorRecord) -> Vec<Finding> {
    let noise = &record.noise;
    let mut findings = Vec::new();
    if noise.steal_share > table::STEAL.warn {
        findings.push(table::STEAL.finding(
            By::Doctor,
            if noise.steal_share > table::STEAL.invalid { Severity::Invalid } else { Severity::Warn },
            format!(
                "the hypervisor gave {} of the time of deadheat's cores to others",
                percent(noise.steal_share)
            ),
        ));
    }
    if let Some(share) = noise.stalled_share.filter(|share| *share > table::STALLS.warn) {
        let longest = noise
            .longest_stall_ns
            .map_or_else(String::new, |ns| format!(", at most {} at a time", time_ns(ns as f64)));
        findings.push(table::STALLS.warning(
            By::Doctor,
            format!(
                "a core stood still for {} of the time{longest}: the machine may cause high percentiles",
                percent(share)
            ),
        ));
    }
    if let Some(share) = noise.foreign_share.filter(|share| *share > table::FOREIGN_CPU.warn) {
        let named = named(&noise.busiest);
        let busiest = if named.is_empty() { String::new() } else { format!("; the busiest: {named}") };
        let pids: Vec<String> = noise.busiest.iter().map(|one| one.pid.to_string()).collect();
        let which =
            if pids.is_empty() { "it".into() } else { format!("what you can spare of {}", pids.join(", ")) };
        findings.push(Finding {
            remedy: format!("stop {which}, or wait until it is done"),
            ..table::FOREIGN_CPU.finding(
                By::Doctor,
                if share > table::FOREIGN_CPU.invalid { Severity::Invalid } else { Severity::Warn },
                format!("other programs use {} of the time of deadheat's cores{busiest}", percent(share)),
            )
        });
    }
    findings
}

/// Formats the busiest processes: `node (4711) 1.93 cores, ...`.
pub fn named(busiest: &[BusyProcess]) -> String {
    let one = |one: &BusyProcess| format!("{} ({}) {:.2} cores", one.name, one.pid, one.cores);
    busiest.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn of_floor(record: &DoctorRecord, floor: &NoiseFloor) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A race with `--profile full` ends there.
    let most = StoppingRules::default().max_epochs;
    let takes = |difference: f64| {
        let one = record.resolution.iter().find(|one| one.difference == difference)?;
        Some(
            one.epochs
                .filter(|epochs| *epochs <= most)
                .is_none()
                .then(|| one.epochs.map_or_else(|| "over a million".into(), |epochs| whole(epochs as u64))),
        )
    };
    let said = |epochs: &str, what: &str| {
        format!("epochs of the same server vary so much that a race needs {epochs} epochs to detect {what}")
    };
    match (takes(0.1).flatten(), takes(0.03).flatten()) {
        (Some(epochs), _) => {
            findings.push(table::NOISE_FLOOR.finding(By::Doctor, Severity::Invalid, said(&epochs, "10 %")))
        }
        (None, Some(epochs)) => findings.push(table::NOISE_FLOOR.warning(By::Doctor, said(&epochs, "3 %"))),
        (None, None) => {}
    }
    if floor.verdict.tells_apart() {
        let ends = interval(floor.low, floor.high);
        let shown = floor.ratio.map_or_else(|| "?".into(), |value| ratio(value, 3));
        findings.push(table::FALSE_CLAIM.warning(
            By::Doctor,
            format!("the race of a server against itself found a difference: {shown} ({ends})"),
        ));
    }
    findings
}
