//! Fake file trees of other kinds of machines, and what is read from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use deadheat_record::{CgroupKind, Machine, MachineDetails};

use super::tree::Tree;
use super::{details, facts};

/// Writes the files of a listing: a path, two spaces, the text with `|` for line breaks.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.replace('|', "\n") + "\n").unwrap();
    }
    root
}

fn read(root: &Path, writable: &dyn Fn(&Path) -> bool) -> Machine {
    let tree = Tree { root, writable };
    Machine { details: details::details(&tree), ..facts(&tree) }
}

const CPU: &str = "sys/devices/system/cpu";

#[test]
fn a_laptop_with_two_threads_per_core_that_saves_power() {
    let mut files = vec![
        (
            "proc/cpuinfo".to_owned(),
            "processor : 0|model name : Laptop CPU|flags : fpu ht||processor : 1||processor : 2||processor : 3",
        ),
        (
            "proc/meminfo".into(),
            "MemTotal: 16000 kB|MemAvailable: 9000 kB|SwapTotal: 2000 kB|SwapFree: 500 kB",
        ),
        ("proc/self/status".into(), "Name: deadheat|Cpus_allowed_list:\t0-3"),
        (
            "proc/self/limits".into(),
            "Limit  Soft Limit  Hard Limit  Units|Max open files            1024                 524288               files",
        ),
        ("proc/self/mounts".into(), "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0"),
        ("proc/self/cgroup".into(), "0::/user.slice/user@1000.service/app"),
        ("sys/fs/cgroup/user.slice/user@1000.service/app/cgroup.controllers".into(), "cpu memory pids"),
        ("proc/sys/net/ipv4/ip_local_port_range".into(), "32768\t60999"),
        ("proc/sys/net/core/somaxconn".into(), "4096"),
        ("proc/sys/kernel/io_uring_disabled".into(), "0"),
        ("proc/sys/kernel/perf_event_paranoid".into(), "4"),
        ("proc/pressure/cpu".into(), "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"),
        ("sys/kernel/mm/transparent_hugepage/enabled".into(), "always [madvise] never"),
        ("proc/sys/kernel/randomize_va_space".into(), "2"),
        ("proc/sys/kernel/numa_balancing".into(), "0"),
        (format!("{CPU}/cpu0/microcode/version"), "0xf6"),
        (format!("{CPU}/vulnerabilities/meltdown"), "Not affected"),
        (format!("{CPU}/vulnerabilities/spectre_v2"), "Mitigation: Retpolines; IBPB: conditional"),
        ("sys/bus/event_source/devices/cpu_core/type".into(), "4"),
        (format!("{CPU}/intel_pstate/no_turbo"), "0"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource".into(), "hpet"),
        ("sys/devices/system/clocksource/clocksource0/available_clocksource".into(), "tsc hpet acpi_pm "),
        ("sys/class/power_supply/BAT0/type".into(), "Battery"),
        ("sys/class/power_supply/BAT0/status".into(), "Discharging"),
        ("sys/class/power_supply/AC/type".into(), "Mains"),
        ("sys/class/power_supply/AC/online".into(), "0"),
    ];
    for (cpu, siblings, governor) in
        [(0, "0,2", "powersave"), (1, "1,3", "performance"), (2, "0,2", "powersave"), (3, "1,3", "powersave")]
    {
        files.push((format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"), siblings));
        files.push((format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor"), governor));
        files.push((
            format!("{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count"),
            if cpu == 1 { "17" } else { "3" },
        ));
    }
    files.push((format!("{CPU}/cpu0/cpufreq/scaling_driver"), "intel_pstate"));
    files.push((format!("{CPU}/cpu0/cpufreq/energy_performance_preference"), "balance_power"));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let root = tree(&files);
    let machine = read(root.path(), &|_| true);
    assert_eq!((machine.cpus, machine.siblings.clone()), (4, vec![vec![0, 2], vec![1, 3]]));
    assert_eq!((machine.hypervisor, machine.clock_source.as_deref()), (None, Some("hpet")));
    let found = machine.details;
    let governors = BTreeMap::from([("performance".into(), vec![1]), ("powersave".into(), vec![0, 2, 3])]);
    assert_eq!((found.governors, found.frequency_driver.as_deref()), (Some(governors), Some("intel_pstate")));
    assert_eq!((found.energy_preference.as_deref(), found.turbo), (Some("balance_power"), Some(true)));
    assert_eq!(found.turbo_switch.as_deref(), Some("/sys/devices/system/cpu/intel_pstate/no_turbo"));
    assert_eq!((found.throttle_events, found.on_battery), (Some(17), Some(true)));
    assert_eq!((found.swap_bytes, found.swap_used_bytes), (Some(2_048_000), Some(1_536_000)));
    assert_eq!((found.open_files, found.open_files_most), (Some(1024), Some(524_288)));
    assert_eq!((found.ports, found.listen_backlog), (Some((32_768, 60_999)), Some(4096)));
    assert_eq!((found.cgroup_versions, found.cpu_quota), (Some(vec![2]), None));
    assert_eq!(found.cgroup_controllers.unwrap(), ["cpu", "freezer", "memory", "pids"]);
    assert_eq!((found.io_uring_disabled, found.perf_event_paranoid), (Some(0), Some(4)));
    assert_eq!((found.hardware_counters, found.pressure), (Some(true), Some(true)));
    assert_eq!(found.allowed_cpus, Some(vec![0, 1, 2, 3]));
    assert_eq!(found.clock_sources.unwrap(), ["tsc", "hpet", "acpi_pm"]);
    assert_eq!(found.transparent_huge_pages.as_deref(), Some("madvise"));
    assert_eq!((found.address_randomization, found.numa_balancing), (Some(2), Some(0)));
    assert_eq!(found.microcode.as_deref(), Some("0xf6"), "of the processor, where it has a file");
    let mitigations =
        [("meltdown", "Not affected"), ("spectre_v2", "Mitigation: Retpolines; IBPB: conditional")];
    let mitigations = mitigations.map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(found.mitigations, Some(BTreeMap::from(mitigations)));
}

#[test]
fn a_server_with_two_sockets_that_runs_at_full_speed() {
    let root = tree(&[
        ("proc/cpuinfo", "processor : 0|microcode : 0x1000065|flags : fpu||processor : 1|"),
        ("proc/meminfo", "MemTotal: 100 kB|SwapTotal: 0 kB|SwapFree: 0 kB"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never"),
        ("proc/sys/kernel/randomize_va_space", "0"),
        ("proc/sys/kernel/numa_balancing", "1"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance"),
        ("sys/devices/system/cpu/cpufreq/boost", "0"),
        ("sys/devices/system/node/node0/cpulist", "0"),
        ("sys/devices/system/node/node1/cpulist", "1"),
        ("sys/class/power_supply/hid-mouse/type", "Battery"),
        ("sys/class/power_supply/hid-mouse/scope", "Device"),
        ("sys/class/power_supply/hid-mouse/status", "Discharging"),
        ("proc/self/limits", "Max open files            unlimited            unlimited            files"),
    ]);
    let machine = read(root.path(), &|_| true);
    let found = machine.details;
    assert_eq!(found.governors, Some(BTreeMap::from([("performance".into(), vec![0, 1])])));
    assert_eq!((found.turbo, found.memory_nodes), (Some(false), Some(vec![vec![0], vec![1]])));
    assert_eq!((found.swap_bytes, found.swap_used_bytes), (Some(0), Some(0)));
    assert_eq!((found.on_battery, found.throttle_events), (None, None), "a mouse feeds no machine");
    assert_eq!(found.open_files, Some(u64::MAX));
    assert_eq!(found.pressure, Some(false));
    assert_eq!(found.transparent_huge_pages.as_deref(), Some("always"));
    assert_eq!((found.address_randomization, found.numa_balancing), (Some(0), Some(1)));
    assert_eq!((found.microcode.as_deref(), found.mitigations), (Some("0x1000065"), None));
}

#[test]
fn a_container_that_may_write_to_no_group_and_has_a_quota() {
    let files = [
        ("proc/cpuinfo", "processor : 0|flags : fpu hypervisor||processor : 1|"),
        ("sys/class/dmi/id/sys_vendor", "Example Cloud"),
        ("proc/self/status", "Cpus_allowed_list: 1"),
        (
            "proc/self/mounts",
            "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup ro,cpu,cpuacct 0 0|cgroup /sys/fs/cgroup/freezer cgroup ro,freezer 0 0|cgroup /sys/fs/cgroup/systemd cgroup ro,name=systemd 0 0|cgroup2 /sys/fs/cgroup/unified cgroup2 ro 0 0",
        ),
        ("proc/self/cgroup", "3:freezer:/docker/abc|2:cpu,cpuacct:/docker/abc|0::/docker/abc"),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000"),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000"),
        ("sys/fs/cgroup/freezer/tasks", ""),
        ("sys/bus/event_source/devices/software/type", "1"),
    ];
    let root = tree(&files);
    let machine = read(root.path(), &|_| false);
    assert_eq!(machine.hypervisor.as_deref(), Some("Example Cloud"));
    let found = machine.details;
    assert_eq!((found.cgroup_versions, found.cgroup_controllers), (Some(vec![1, 2]), Some(vec![])));
    assert_eq!((found.cpu_quota, found.allowed_cpus), (Some(1.5), Some(vec![1])));
    assert_eq!((found.hardware_counters, found.governors), (Some(false), None));
    // The same machine, with permission to write.
    let found = read(root.path(), &|folder| folder.ends_with("freezer")).details;
    assert_eq!(found.cgroup_controllers.unwrap(), ["freezer"]);
}

/// On processors other than x86, `/proc/cpuinfo` has neither a name nor a hypervisor flag.
#[test]
fn an_arm_machine_says_by_its_firmware_whether_it_is_virtual() {
    let cpu = "processor : 0|Features : fp asimd|CPU implementer : 0x41|CPU part : 0xd0c";
    let seen = |maker: &str, model: &str| {
        let files = [
            ("proc/cpuinfo", cpu),
            ("sys/class/dmi/id/sys_vendor", maker),
            ("sys/class/dmi/id/product_name", model),
        ];
        read(tree(&files).path(), &|_| true)
    };
    let machine = seen("Amazon EC2", "m6g.large");
    assert_eq!(machine.cpu_model.as_deref(), Some("ARM implementer 0x41 part 0xd0c"));
    assert_eq!((machine.cpus, machine.hypervisor.as_deref()), (1, Some("Amazon EC2")));
    for (maker, model) in [
        ("QEMU", "QEMU Virtual Machine"),
        ("Google", "Google Compute Engine"),
        ("Microsoft Corporation", "Virtual Machine"),
        ("Red Hat", "KVM"),
    ] {
        assert_eq!(seen(maker, model).hypervisor.as_deref(), Some(maker), "{model}");
    }
    for (maker, model) in [
        ("Amazon EC2", "m6g.metal"),
        ("Google", "Eve"),
        ("Microsoft Corporation", "Surface Pro"),
        ("Ampere", "Altra"),
    ] {
        assert_eq!(seen(maker, model).hypervisor, None, "{maker} {model}");
    }
    let root = tree(&[("proc/cpuinfo", cpu), ("sys/hypervisor/type", "xen")]);
    assert_eq!(read(root.path(), &|_| true).hypervisor.as_deref(), Some("a virtual machine"));
}

#[test]
fn what_the_own_group_may_have_bounds_the_memory_that_is_available() {
    let meminfo = ("proc/meminfo", "MemTotal: 16000000 kB|MemAvailable: 9000000 kB");
    let available = |files: &[(&str, &str)]| {
        let files: Vec<(&str, &str)> = [meminfo].into_iter().chain(files.iter().copied()).collect();
        read(tree(&files).path(), &|_| true).details.memory_available_bytes
    };
    let all = Some(9_000_000 * 1024);
    assert_eq!(available(&[]), all);
    let (mounts, own) =
        (("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0"), ("proc/self/cgroup", "0::/a/b"));
    let second = |above: &str, own_limit: &str| {
        let limits = [("sys/fs/cgroup/a/memory.max", above), ("sys/fs/cgroup/a/b/memory.max", own_limit)];
        available(&[mounts, own, limits[0], limits[1]])
    };
    assert_eq!(second("max", "268435456"), Some(256 << 20));
    assert_eq!(second("134217728", "268435456"), Some(128 << 20), "the group above binds, too");
    assert_eq!(second("max", "max"), all);
    let first = |limit: &str| {
        available(&[
            ("proc/self/mounts", "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0"),
            ("proc/self/cgroup", "2:memory:/docker/abc|1:pids:/docker/abc"),
            ("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", limit),
        ])
    };
    assert_eq!(first("536870912"), Some(512 << 20));
    assert_eq!(first("9223372036854771712"), all, "no limit");
}

#[test]
fn a_quota_of_version_2_binds_from_above() {
    let root = tree(&[
        ("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0"),
        ("proc/self/cgroup", "0::/a/b"),
        ("sys/fs/cgroup/a/cpu.max", "50000 100000"),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000"),
    ]);
    assert_eq!(read(root.path(), &|_| true).details.cpu_quota, Some(0.5));
}

#[test]
fn of_an_empty_tree_nothing_is_known() {
    let root = tree(&[]);
    let machine = read(root.path(), &|_| true);
    assert_eq!(machine.details, MachineDetails::default());
    assert_eq!((machine.cpus, machine.cgroup), (0, CgroupKind::None));
}
