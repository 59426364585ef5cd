//! The machine's facts. Facts that cannot be read are absent.
//!
//! Owns: which facts there are, read below a root folder that tests replace by a fake tree. Must not know: which of them
//! is a fault.

mod details;
#[cfg(test)]
mod fakes;
mod tree;

use std::path::Path;

pub use deadheat_record::Clock;
use deadheat_record::{CgroupKind, Machine};
use rustix::fs::{Access, access};

use crate::affinity::cpu_list;
use crate::cgroup::Hierarchy;
use crate::monitor::noise::clock_read_ns;
use crate::process::run::RunId;
use tree::Tree;

/// Makers and models in the firmware of virtual machines, each by the beginning of its name. If the maker also builds real machines,
/// the model decides.
const VIRTUAL: [(&str, &str); 16] = [
    ("QEMU", ""),
    ("KVM", ""),
    ("VMware", ""),
    ("Xen", ""),
    ("OpenStack", ""),
    ("Amazon EC2", ""),
    ("Parallels", ""),
    ("innotek GmbH", ""),
    ("DigitalOcean", ""),
    ("Hetzner", "vServer"),
    ("Google", "Google Compute Engine"),
    ("Microsoft Corporation", "Virtual Machine"),
    ("Apple Inc.", "Apple Virtualization"),
    ("", "KVM"),
    ("", "OpenStack"),
    ("", "VirtualBox"),
];

/// Reads the machine's facts from `/proc`, `/sys` and `/etc` below `root`, and tests whether a control group can be made.
pub fn machine(root: &Path, hierarchy: &Hierarchy, run: &RunId) -> Machine {
    let writable = |folder: &Path| access(folder, Access::WRITE_OK).is_ok();
    Machine {
        cgroup: hierarchy.kind(&run.next_group()),
        details: details::details(&Tree { root, writable: &writable }),
        ..facts(&Tree { root, writable: &writable })
    }
}

/// How often a core was throttled because of heat since the machine started; none if the processor does not report it.
pub fn throttle_events() -> Option<u64> {
    details::throttle_events(&Tree { root: Path::new("/"), writable: &|_| false })
}

fn facts(tree: &Tree<'_>) -> Machine {
    let cpuinfo = tree.text("proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| tree.field("proc/cpuinfo", name);
    let hypervisor = is_virtual(tree)
        .then(|| tree.text("sys/class/dmi/id/sys_vendor").unwrap_or_else(|| "a virtual machine".into()));
    Machine {
        cpu_model: field("model name").or_else(|| arm_model(tree)),
        cpus: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
        siblings: siblings(tree.root),
        memory_bytes: tree.kib("proc/meminfo", "MemTotal"),
        kernel: tree.text("proc/sys/kernel/osrelease"),
        os: tree.text("etc/os-release").and_then(|text| {
            let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
            Some(name.trim_matches('"').to_owned())
        }),
        hypervisor,
        clock_source: clock_source(tree),
        governor: tree.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        load_average: tree.text("proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
        cgroup: CgroupKind::None,
        details: deadheat_record::MachineDetails::default(),
    }
}

/// ARM processors have numbers instead of a name; these are the first processor's.
fn arm_model(tree: &Tree<'_>) -> Option<String> {
    let field = |name: &str| tree.field("proc/cpuinfo", name);
    Some(format!("ARM implementer {} part {}", field("CPU implementer")?, field("CPU part")?))
}

/// This machine's clock.
pub fn clock() -> Clock {
    let tree = Tree { root: Path::new("/"), writable: &|_| false };
    let sources = details::clock_sources(&tree).unwrap_or_default();
    Clock { source: clock_source(&tree), sources, read_ns: clock_read_ns() }
}

fn clock_source(tree: &Tree<'_>) -> Option<String> {
    tree.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// Only x86 processors report virtualization; on others the kernel or the firmware does.
fn is_virtual(tree: &Tree<'_>) -> bool {
    let flags = tree.field("proc/cpuinfo", "flags").unwrap_or_default();
    flags.split(' ').any(|flag| flag == "hypervisor")
        || tree.exists("sys/hypervisor/type")
        || is_virtual_model(tree)
}

fn is_virtual_model(tree: &Tree<'_>) -> bool {
    let word = |name: &str| tree.text(&format!("sys/class/dmi/id/{name}")).unwrap_or_default();
    let (maker, model) = (word("sys_vendor"), word("product_name"));
    // Clouds that also rent whole machines call them for example `m6g.metal`.
    let is_whole = model.contains("metal");
    !is_whole && VIRTUAL.iter().any(|(by, what)| maker.starts_with(by) && model.starts_with(what))
}

/// Whether this is a virtual machine, according to its processors, the kernel or the firmware.
pub fn virtual_here() -> bool {
    is_virtual(&Tree { root: Path::new("/"), writable: &|_| false })
}

/// The logical processors of each core, from the kernel's lists below `root`; empty if there are none.
pub fn siblings(root: &Path) -> Vec<Vec<usize>> {
    let tree = Tree { root, writable: &|_| false };
    let mut sets: Vec<Vec<usize>> = tree
        .numbered("sys/devices/system/cpu", "cpu")
        .into_iter()
        .filter_map(|(_, folder)| std::fs::read_to_string(folder.join("topology/thread_siblings_list")).ok())
        .filter_map(|list| cpu_list(&list))
        .collect();
    sets.sort();
    sets.dedup();
    sets
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
