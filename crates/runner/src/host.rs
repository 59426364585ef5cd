//! The machine's facts. What cannot be read is absent.

use std::fs;
use std::path::Path;

use deadheat_record::{CgroupKind, Machine};

use crate::cgroup::Hierarchy;
use crate::run::RunId;

/// Reads the machine's facts from `/proc`, `/sys` and `/etc` below `root`; tries whether a control group can be made.
pub fn machine(root: &Path, hierarchy: &Hierarchy, run: &RunId) -> Machine {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_owned());
    let cpuinfo = read("proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let value =
            |line: &str| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim().to_owned());
        cpuinfo.lines().find_map(value)
    };
    let has_flag = |name: &str| field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == name));
    let hypervisor = has_flag("hypervisor").then(|| {
        read("sys/class/dmi/id/sys_vendor")
            .filter(|vendor| !vendor.is_empty())
            .unwrap_or_else(|| "a virtual machine".into())
    });
    Machine {
        cpu_model: field("model name"),
        cpus: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
        siblings: siblings(root),
        memory_bytes: read("proc/meminfo").and_then(|text| {
            let kib =
                text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?;
            Some(kib.trim().parse::<u64>().ok()? * 1024)
        }),
        kernel: read("proc/sys/kernel/osrelease"),
        os: read("etc/os-release").and_then(|text| {
            let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
            Some(name.trim_matches('"').to_owned())
        }),
        hypervisor,
        clock_source: read("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        governor: read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        load_average: read("proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
        cgroup: cgroup_kind(hierarchy, run),
    }
}

fn siblings(root: &Path) -> Vec<Vec<usize>> {
    let Ok(entries) = fs::read_dir(root.join("sys/devices/system/cpu")) else { return Vec::new() };
    let mut sets: Vec<Vec<usize>> = entries
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("topology/thread_siblings_list")).ok())
        .map(|list| cpu_list(list.trim()))
        .collect();
    sets.sort();
    sets.dedup();
    sets
}

/// Processors of a list such as `0,2-3`.
fn cpu_list(text: &str) -> Vec<usize> {
    text.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
        })
        .flatten()
        .collect()
}

fn cgroup_kind(hierarchy: &Hierarchy, run: &RunId) -> CgroupKind {
    let Some(group) = hierarchy.make(&run.next_group()) else { return CgroupKind::None };
    let kind = group.kind();
    let _ = group.remove();
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_from_the_files_and_absence_is_absence() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "proc/cpuinfo",
            "processor : 0\nmodel name\t: Fast One\nflags\t\t: fpu hypervisor\n\nprocessor : 1\n",
        );
        write("proc/meminfo", "MemTotal:       2048 kB\n");
        write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n");
        write("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-1\n");
        let none = Hierarchy::parse("", "", root.path());
        let machine = machine(root.path(), &none, &RunId::current());
        assert_eq!(machine.cpu_model.as_deref(), Some("Fast One"));
        assert_eq!((machine.cpus, machine.memory_bytes), (2, Some(2_097_152)));
        assert_eq!(machine.siblings, [[0, 1]]);
        assert_eq!(machine.hypervisor.as_deref(), Some("a virtual machine"));
        assert_eq!((machine.governor, machine.kernel, machine.cgroup), (None, None, CgroupKind::None));
    }
}
