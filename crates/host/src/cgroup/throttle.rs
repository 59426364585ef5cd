//! Throttling by CPU quotas, as counted by the control groups of a process.
//!
//! Owns: which groups count, and their `cpu.stat`, in version 1 and 2. Must not know: where a quota comes from.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use deadheat_record::Throttling;
use rustix::process::Pid;

use crate::cgroup::Hierarchy;

/// Control groups whose throttling is added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups(Vec<PathBuf>);

impl Groups {
    /// The groups with these folders.
    #[cfg(test)]
    pub fn of(folders: Vec<PathBuf>) -> Self {
        Self(folders)
    }

    /// The groups of this process, up to the root of the tree.
    pub fn own(hierarchy: &Hierarchy) -> Self {
        Self(hierarchy.quota_groups(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default()))
    }

    /// The groups of any of `processes`, without the groups of this process.
    pub fn of_others(hierarchy: &Hierarchy, processes: &[Pid]) -> Self {
        let own: BTreeSet<PathBuf> = Self::own(hierarchy).0.into_iter().collect();
        let membership =
            |pid: &Pid| fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero())).ok();
        let all: BTreeSet<PathBuf> =
            processes.iter().filter_map(membership).flat_map(|text| hierarchy.quota_groups(&text)).collect();
        Self(all.difference(&own).cloned().collect())
    }

    /// The sum over all groups; none if no group counts throttling.
    pub fn read(&self) -> Option<Throttling> {
        let each =
            self.0.iter().filter_map(|folder| parse(&fs::read_to_string(folder.join("cpu.stat")).ok()?));
        each.reduce(Throttling::plus)
    }
}

/// Version 1 has `throttled_time` in nanoseconds, version 2 `throttled_usec`; a group without a quota has neither.
fn parse(text: &str) -> Option<Throttling> {
    let value = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    };
    let ns = value("throttled_time").or_else(|| Some(value("throttled_usec")? * 1000))?;
    Some(Throttling { periods: value("nr_throttled")?, ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let one = "nr_periods 40\nnr_throttled 12\nthrottled_time 3400000\nnr_bursts 0\n";
        assert_eq!(parse(one), Some(Throttling { periods: 12, ns: 3_400_000 }));
        let two =
            "usage_usec 5\nuser_usec 5\nsystem_usec 0\nnr_periods 4\nnr_throttled 3\nthrottled_usec 77\n";
        assert_eq!(parse(two), Some(Throttling { periods: 3, ns: 77_000 }));
        assert_eq!(parse("usage_usec 5\nuser_usec 5\nsystem_usec 0\n"), None, "no quota is counted here");
    }

    #[test]
    fn groups_of_a_process_reach_up_to_the_root() {
        let root = tempfile::tempdir().unwrap();
        for (folder, throttled) in [("cg", None), ("cg/user", Some(2)), ("cg/user/job", Some(5))] {
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            let quota = throttled.map_or(String::new(), |n| format!("nr_throttled {n}\nthrottled_usec 1\n"));
            fs::write(folder.join("cpu.stat"), format!("usage_usec 1\n{quota}")).unwrap();
        }
        let tree = Hierarchy::parse("cgroup2 /cg cgroup2 rw 0 0\n", "0::/user\n", root.path());
        let throttled = |membership: &str| Groups(tree.quota_groups(membership)).read();
        assert_eq!(throttled("0::/user/job\n"), Some(Throttling { periods: 7, ns: 2_000 }));
        assert_eq!(throttled("0::/\n"), None);
        assert_eq!(throttled("0::/not/mounted/here\n"), None, "what is mounted is looked at");
    }

    #[test]
    fn this_process_is_no_other() {
        let all = [rustix::process::getpid()];
        assert_eq!(Groups::of_others(&Hierarchy::detect(), &all), Groups::default());
    }
}
