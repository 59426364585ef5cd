//! The limits that a scenario sets on its contenders, as files of control groups: CPU quota and memory, version 1 and 2.
//!
//! Owns: those files, and the check that limits can be set at all. Must not know: which contender is limited, and why.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use deadheat_record::Limits;

/// The period of a quota, in microseconds: short, so that a slice holds many whole periods.
const PERIOD_US: u64 = 10_000;
/// The kernel accepts no quota below a millisecond; smaller shares get a longer period.
const LEAST_QUOTA_US: u64 = 1_000;

/// Sets limits on a group of version 1: makes groups called `name` in this process's own folders of the trees, and adds them to `more`.
/// If cpu and cpuacct are one tree, the group already exists.
///
/// # Errors
/// When a tree is missing, or a file cannot be written.
pub fn set_v1(
    (cpu, memory): (Option<&Path>, Option<&Path>),
    name: &str,
    cpuacct: &Path,
    more: &mut Vec<PathBuf>,
    limits: &Limits,
) -> io::Result<()> {
    let mut folder_in = |tree: Option<&Path>, controller: &str| -> io::Result<PathBuf> {
        let nowhere = || io::Error::other(format!("the {controller} controller is not available here"));
        let tree = tree.ok_or_else(nowhere)?;
        let folder = tree.join(name);
        if folder != cpuacct {
            fs::create_dir(&folder).map_err(|error| at(&folder, error))?;
            more.push(folder.clone());
        }
        Ok(folder)
    };
    if let Some(cpus) = limits.cpus {
        let (folder, (quota_us, period_us)) = (folder_in(cpu, "cpu")?, quota(cpus));
        // The period comes first: the kernel refuses a quota that is out of proportion to the current period.
        write(&folder.join("cpu.cfs_period_us"), &period_us.to_string())?;
        write(&folder.join("cpu.cfs_quota_us"), &quota_us.to_string())?;
    }
    if let Some(bytes) = limits.memory_bytes {
        let folder = folder_in(memory, "memory")?;
        write(&folder.join("memory.limit_in_bytes"), &bytes.to_string())?;
    }
    Ok(())
}

/// Sets limits on a group of version 2. The controllers must be enabled in the group above: see [`crate::cgroup::delegation`].
///
/// # Errors
/// When a controller is not enabled there, or a file cannot be written.
pub fn set_v2(folder: &Path, limits: &Limits) -> io::Result<()> {
    let enabled = |controller: &str, file: &str| {
        let path = folder.join(file);
        if path.exists() { Ok(path) } else { Err(missing(controller, folder.parent().unwrap_or(folder))) }
    };
    if let Some(cpus) = limits.cpus {
        let (quota_us, period_us) = quota(cpus);
        write(&enabled("cpu", "cpu.max")?, &format!("{quota_us} {period_us}"))?;
    }
    if let Some(bytes) = limits.memory_bytes {
        write(&enabled("memory", "memory.max")?, &bytes.to_string())?;
    }
    Ok(())
}

/// The controllers that these limits need.
pub fn controllers<'a>(all: impl Iterator<Item = &'a Limits> + Clone) -> Vec<&'static str> {
    let cpu = all.clone().any(|limits| limits.cpus.is_some()).then_some("cpu");
    let memory = all.clone().any(|limits| limits.memory_bytes.is_some()).then_some("memory");
    cpu.into_iter().chain(memory).collect()
}

/// Quota and period in microseconds.
fn quota(cpus: f64) -> (u64, u64) {
    let period_us = PERIOD_US.max((LEAST_QUOTA_US as f64 / cpus).ceil() as u64);
    ((cpus * period_us as f64).round() as u64, period_us)
}

/// Writes a file of a group.
///
/// # Errors
/// The error with the path of the file.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text).map_err(|error| at(path, error))
}

/// Adds the path to an error.
pub fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The error for a controller of version 2 that a group does not have.
pub fn missing(controller: &str, group: &Path) -> io::Error {
    io::Error::other(format!(
        "the {controller} controller is not available in control group {}",
        group.display()
    ))
}

/// Why limits cannot be set here, with what to do. A user's own systemd manager has the cpu controller only if systemd, or a setting
/// of `user@.service`, delegates it; the system's manager has all controllers.
pub fn not_here(reason: &str) -> String {
    format!(
        "`cpus` and `memory` cannot be set on contenders ({reason}); run deadheat as root in a control group of its own: \
         sudo systemd-run --scope -p Delegate=yes deadheat race ...; without root, where users may limit CPU time: \
         systemd-run --user --scope -p Delegate=yes deadheat race ..."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half_a_core() -> Limits {
        Limits { cpus: Some(0.5), memory_bytes: Some(64 << 20), ..Limits::default() }
    }

    #[test]
    fn quotas_have_short_periods_and_are_never_too_small_for_the_kernel() {
        assert_eq!([0.5, 1.0, 2.5].map(quota), [(5_000, 10_000), (10_000, 10_000), (25_000, 10_000)]);
        assert_eq!(quota(0.01), (1_000, 100_000));
        assert!(quota(0.03).0 >= LEAST_QUOTA_US);
    }

    #[test]
    fn version_2_over_a_fake_tree() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("own/g");
        fs::create_dir_all(&folder).unwrap();
        let refused = set_v2(&folder, &half_a_core()).unwrap_err().to_string();
        assert!(refused.contains("the cpu controller"), "{refused}");
        assert!(refused.contains(&folder.parent().unwrap().display().to_string()), "{refused}");
        for file in ["cpu.max", "memory.max"] {
            fs::write(folder.join(file), "max").unwrap();
        }
        set_v2(&folder, &half_a_core()).unwrap();
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!((read("cpu.max").as_str(), read("memory.max").as_str()), ("5000 10000", "67108864"));
    }

    #[test]
    fn version_1_over_a_fake_tree() {
        let root = tempfile::tempdir().unwrap();
        let tree = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(&path).unwrap();
            path
        };
        let (cpu, memory, cpuacct) = (tree("cpu"), tree("memory"), tree("cpuacct").join("g"));
        let mut more = Vec::new();
        let trees = (Some(cpu.as_path()), Some(memory.as_path()));
        set_v1(trees, "g", &cpuacct, &mut more, &half_a_core()).unwrap();
        assert_eq!(more, [cpu.join("g"), memory.join("g")]);
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(cpu.join("g/cpu.cfs_quota_us")), "5000");
        assert_eq!(read(cpu.join("g/cpu.cfs_period_us")), "10000");
        assert_eq!(read(memory.join("g/memory.limit_in_bytes")), "67108864");
        let mut none = Vec::new();
        fs::create_dir_all(cpu.join("one")).unwrap();
        let one_tree = Limits { memory_bytes: None, ..half_a_core() };
        set_v1(trees, "one", &cpu.join("one"), &mut none, &one_tree).unwrap();
        assert_eq!(none, Vec::<PathBuf>::new(), "cpu and cpuacct are one tree: the group is there");
        let error = set_v1((None, None), "g", &cpuacct, &mut none, &half_a_core()).unwrap_err();
        assert!(error.to_string().contains("the cpu controller"), "{error}");
    }

    #[test]
    fn what_is_asked_for_decides_which_controllers_are_needed() {
        let cpu = Limits { memory_bytes: None, ..half_a_core() };
        let memory = Limits { cpus: None, ..half_a_core() };
        let of = |all: &[&Limits]| controllers(all.iter().copied());
        assert_eq!(of(&[&Limits::default(), &memory, &cpu]), ["cpu", "memory"]);
        assert_eq!((of(&[&cpu]), of(&[&memory])), (vec!["cpu"], vec!["memory"]));
        assert_eq!(of(&[&Limits { cpuset: vec![0], ..Limits::default() }]), Vec::<&str>::new());
    }
}
