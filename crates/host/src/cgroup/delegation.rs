//! Version 2 only: finding a place where groups can have controllers. A group that holds processes cannot pass its controllers on to
//! groups in it, and deadheat's own group holds deadheat. So deadheat moves into a group beside those of the contenders.
//!
//! Owns: finding that place, and restoring everything at the end. Must not know: what is limited, and why.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use deadheat_record::Limits;

use crate::cgroup::limits;
use crate::cgroup::{Cgroup, Hierarchy};

/// The file with the controllers that are enabled for the groups in a folder.
const ENABLED: &str = "cgroup.subtree_control";
/// The file with the processes of a group; writing a process number moves that process into the group.
const PROCESSES: &str = "cgroup.procs";

/// A folder in which groups with controllers can be made. Dropping it undoes the changes that this took.
#[derive(Debug)]
pub struct DelegatedGroup {
    base: PathBuf,
    _aside: Option<Aside>,
}

/// A process that was moved aside; dropping this moves it back.
#[derive(Debug)]
struct Aside {
    /// The group that the process came from.
    own: PathBuf,
    /// The group inside `own` that it is in now.
    group: PathBuf,
    /// Its process number.
    who: String,
    /// Controllers that were enabled because it moved.
    enabled: Vec<String>,
}

impl DelegatedGroup {
    /// Finds a place for groups with these controllers. `next_name` names each trial group. None with version 1, or if no group can be made.
    ///
    /// # Errors
    /// Why there is no such place.
    pub fn find(
        hierarchy: &Hierarchy,
        next_name: &dyn Fn() -> String,
        controllers: &[&str],
    ) -> io::Result<Option<Self>> {
        let Some((own, mount)) = hierarchy.of_version_2(&next_name()) else { return Ok(None) };
        let (who, name, trial) = (std::process::id(), next_name(), next_name());
        let works = |base: &Path| try_out(base.join(&trial));
        Self::near((own, mount), &who.to_string(), &format!("{name}-self"), controllers, &works).map(Some)
    }

    /// The folder in which to make groups.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// A [`DelegatedGroup`] near the group `own` of the process `who`, in the tree that is mounted at `mount`. `name` is an unused name for
    /// a group, and `works` tries a place.
    fn near(
        (own, mount): (&Path, &Path),
        who: &str,
        name: &str,
        controllers: &[&str],
        works: &dyn Fn(&Path) -> io::Result<()>,
    ) -> io::Result<Self> {
        let at_root = |root: &Path| {
            // This setting stays: by the end of this race other programs may rely on it.
            enable(root, controllers)?;
            works(root)?;
            Ok(Self { base: root.into(), _aside: None })
        };
        if is_root(own) {
            return at_root(own);
        }
        match Self::aside(own, who, name, controllers, works) {
            Err(refused) if is_root(mount) => at_root(mount).map_err(|_: io::Error| refused),
            done => done,
        }
    }

    fn aside(
        own: &Path,
        who: &str,
        name: &str,
        controllers: &[&str],
        works: &dyn Fn(&Path) -> io::Result<()>,
    ) -> io::Result<Self> {
        let group = own.join(name);
        fs::create_dir(&group).map_err(|error| limits::at(&group, error))?;
        // If anything fails from here on, dropping `aside` undoes what was done before.
        let mut aside = Aside { own: own.into(), group, who: who.into(), enabled: Vec::new() };
        limits::write(&aside.group.join(PROCESSES), who)?;
        aside.enabled = enable(own, controllers)?;
        works(own)?;
        Ok(Self { base: own.into(), _aside: Some(aside) })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // A group accepts no process while it passes controllers on.
        if !self.enabled.is_empty() {
            let _ = fs::write(self.own.join(ENABLED), signed('-', &self.enabled));
        }
        let _ = fs::write(self.own.join(PROCESSES), &self.who);
        let _ = fs::remove_dir(&self.group);
    }
}

/// Only the root of the whole tree has no type: only it may hold processes and still pass controllers on.
fn is_root(folder: &Path) -> bool {
    folder.join(ENABLED).exists() && !folder.join("cgroup.type").exists()
}

/// Enables controllers for the groups in a folder. Returns those that were not enabled before.
fn enable(base: &Path, controllers: &[&str]) -> io::Result<Vec<String>> {
    let words = |file: &str| -> Vec<String> {
        let text = fs::read_to_string(base.join(file)).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    };
    let (there, enabled) = (words("cgroup.controllers"), words(ENABLED));
    let among = |words: &[String], one: &str| words.iter().any(|word| word == one);
    if let Some(missing) = controllers.iter().find(|one| !among(&there, one)) {
        return Err(limits::missing(missing, base));
    }
    let new = controllers.iter().filter(|one| !among(&enabled, one));
    let new: Vec<String> = new.map(|one| (*one).to_owned()).collect();
    if new.is_empty() {
        return Ok(new);
    }
    match fs::write(base.join(ENABLED), signed('+', &new)) {
        Ok(()) => Ok(new),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Err(io::Error::new(
            error.kind(),
            format!("control group {} also contains other processes", base.display()),
        )),
        Err(error) => Err(limits::at(&base.join(ENABLED), error)),
    }
}

/// In the kernel's format: `+cpu +memory`.
fn signed(sign: char, controllers: &[String]) -> String {
    controllers.iter().map(|one| format!("{sign}{one}")).collect::<Vec<_>>().join(" ")
}

/// Whether a group in `folder` accepts a process.
fn try_out(folder: PathBuf) -> io::Result<()> {
    fs::create_dir(&folder).map_err(|error| limits::at(&folder, error))?;
    let group = Cgroup::V2 { folder };
    let tried = group.try_out();
    let _ = group.remove();
    tried
}

/// Checks that contenders can be held to `limits`, by making a group of that name with a process in it.
///
/// # Errors
/// The reason, with what to do.
pub fn check(hierarchy: &Hierarchy, name: &str, limits: &Limits, load_cpus: &[usize]) -> Result<(), String> {
    if let Some(cpu) = limits.cpuset.iter().find(|cpu| load_cpus.contains(cpu)) {
        return Err(format!(
            "`cpuset` gives contenders processor {cpu}, which the load generator runs on; choose other processors, or give the \
             generator others with --load-cpus"
        ));
    }
    if limits.need_groups() {
        let Some(group) = hierarchy.make_limited(name, limits)? else { return Ok(()) };
        let tried = group.try_out();
        let _ = group.remove();
        tried.map_err(|error| limits::not_here(&error.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A folder that looks like a group with processes, or like the root.
    fn group(folder: PathBuf, is_root: bool) -> PathBuf {
        fs::create_dir_all(&folder).unwrap();
        let files = ["cgroup.type", ENABLED, "cgroup.controllers", PROCESSES];
        for (file, text) in
            files.iter().zip(["domain", "", "cpuset cpu memory", "7"]).skip(usize::from(is_root))
        {
            fs::write(folder.join(file), text).unwrap();
        }
        folder
    }

    fn read(folder: &Path, file: &str) -> String {
        fs::read_to_string(folder.join(file)).unwrap()
    }

    const BOTH: [&str; 2] = ["cpu", "memory"];

    #[test]
    fn deadheat_goes_aside_and_comes_back() {
        let root = tempfile::tempdir().unwrap();
        let (mount, own) = (group(root.path().into(), true), group(root.path().join("scope"), false));
        let room = DelegatedGroup::near((&own, &mount), "7", "aside", &BOTH, &|_| Ok(())).unwrap();
        assert_eq!(room.base(), own);
        assert_eq!(
            (read(&own, "aside/cgroup.procs").as_str(), read(&own, ENABLED).as_str()),
            ("7", "+cpu +memory")
        );
        fs::write(own.join(PROCESSES), "").unwrap();
        drop(room);
        assert_eq!((read(&own, PROCESSES).as_str(), read(&own, ENABLED).as_str()), ("7", "-cpu -memory"));
        assert_eq!(read(&mount, ENABLED), "", "what is not needed is not touched");
    }

    #[test]
    fn where_that_does_not_help_it_is_undone_and_the_root_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let (mount, own) = (group(root.path().into(), true), group(root.path().join("session"), false));
        let works = |base: &Path| if base == own { Err(io::Error::other("refused")) } else { Ok(()) };
        let room = DelegatedGroup::near((&own, &mount), "7", "aside", &BOTH, &works).unwrap();
        assert_eq!(room.base(), mount);
        assert_eq!(
            (read(&own, ENABLED).as_str(), read(&mount, ENABLED).as_str()),
            ("-cpu -memory", "+cpu +memory")
        );
        drop(room);
        assert_eq!(read(&mount, ENABLED), "+cpu +memory", "others may rely on it");
        // The root of a container is not the root of the whole tree either.
        fs::write(mount.join("cgroup.type"), "domain").unwrap();
        let refused = DelegatedGroup::near((&own, &mount), "7", "again", &BOTH, &works).unwrap_err();
        assert_eq!(refused.to_string(), "refused");
    }

    #[test]
    fn at_the_root_nobody_needs_to_go_and_a_controller_that_is_not_there_is_named() {
        let root = tempfile::tempdir().unwrap();
        let mount = group(root.path().into(), true);
        fs::write(mount.join(ENABLED), "cpu pids").unwrap();
        let room = DelegatedGroup::near((&mount, &mount), "7", "aside", &BOTH, &|_| Ok(())).unwrap();
        assert_eq!((room.base(), read(&mount, ENABLED).as_str()), (mount.as_path(), "+memory"));
        assert!(!mount.join("aside").exists());
        let refused =
            DelegatedGroup::near((&mount, &mount), "7", "aside", &["hugetlb"], &|_| Ok(())).unwrap_err();
        assert!(refused.to_string().contains("the hugetlb controller"), "{refused}");
    }

    /// A real group with a process in it, below the root of the real tree; dropping it removes everything.
    struct Real {
        root: PathBuf,
        own: PathBuf,
        idle: Child,
        enabled: bool,
    }

    /// A rarely used controller that does not affect scheduling.
    const SPARE: &str = "hugetlb";

    impl Real {
        /// None if this process may not make such groups.
        fn make() -> Option<Self> {
            let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
            let root = mounts.lines().find_map(|line| {
                let fields: Vec<&str> = line.split(' ').collect();
                (*fields.get(2)? == "cgroup2").then(|| PathBuf::from(fields[1]))
            })?;
            let enabled = enable(&root, &[SPARE]).ok().filter(|_| is_root(&root))?;
            let own = root.join(format!("test-of-room-{}", std::process::id()));
            fs::create_dir(&own).ok()?;
            let idle = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            fs::write(own.join(PROCESSES), idle.id().to_string()).unwrap();
            Some(Self { root, own, idle, enabled: !enabled.is_empty() })
        }
    }

    impl Drop for Real {
        fn drop(&mut self) {
            drop(self.idle.stdin.take());
            let _ = self.idle.wait();
            let removed = fs::remove_dir(&self.own);
            if self.enabled {
                let _ = fs::write(self.root.join(ENABLED), format!("-{SPARE}"));
            }
            assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
        }
    }

    /// Checks with the kernel that a group with processes passes no controllers on, and that moving the process aside is enough.
    #[test]
    fn the_kernel_agrees() {
        let Some(real) = Real::make() else {
            eprintln!("SKIPPED: no groups of version 2 can be made here, or none with {SPARE}");
            return;
        };
        let (own, who) = (&real.own, real.idle.id().to_string());
        let busy = enable(own, &[SPARE]).unwrap_err();
        assert!(busy.to_string().contains("also contains other processes"), "{busy}");
        // As in a container: the root is not available.
        let near = (own.as_path(), own.as_path());
        let room =
            DelegatedGroup::near(near, &who, "aside", &[SPARE], &|base| try_out(base.join("trial"))).unwrap();
        assert_eq!((room.base(), read(own, ENABLED).trim()), (own.as_path(), SPARE));
        assert_eq!((read(own, PROCESSES).trim(), read(own, "aside/cgroup.procs").trim()), ("", who.as_str()));
        drop(room);
        assert_eq!((read(own, PROCESSES).trim(), read(own, ENABLED).trim()), (who.as_str(), ""));
        assert!(!own.join("aside").exists() && !own.join("trial").exists());
        // If the group holds another process too, moving aside does not help, and is undone.
        let mut other = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        fs::write(own.join(PROCESSES), other.id().to_string()).unwrap();
        let refused = DelegatedGroup::near(near, &who, "aside", &[SPARE], &|_| Ok(())).unwrap_err();
        assert!(refused.to_string().contains("also contains other processes"), "{refused}");
        assert!(read(own, PROCESSES).lines().any(|line| line == who) && !own.join("aside").exists());
        drop(other.stdin.take());
        other.wait().unwrap();
    }

    /// A group that accepts no process is useless even if its limits were set: here no file accepts one.
    #[test]
    fn a_group_is_tried_with_a_process() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("cg");
        fs::create_dir_all(&own).unwrap();
        let tree = Hierarchy::parse("cgroup2 /cg cgroup2 rw 0 0\n", "0::/\n", root.path());
        let group = crate::cgroup::Cgroup::V2 { folder: own.join("g") };
        assert!(group.try_out().unwrap_err().to_string().contains("g/cgroup.procs"));
        fs::create_dir(own.join("g")).unwrap();
        group.try_out().unwrap();
        assert!(fs::read_to_string(own.join("g/cgroup.procs")).unwrap().parse::<u32>().is_ok());
        assert_eq!(tree.of_version_2("h"), None, "nothing there can be frozen");
    }

    #[test]
    fn what_cannot_be_limited_is_said_with_what_to_do() {
        let nowhere = Hierarchy::parse("", "", Path::new("/nowhere"));
        let told = |limits: &Limits| check(&nowhere, "g", limits, &[1]);
        assert_eq!(told(&Limits::default()), Ok(()));
        assert!(
            told(&Limits { cpus: Some(0.5), ..Limits::default() })
                .unwrap_err()
                .contains("run deadheat as root")
        );
        let cores = |cpuset| Limits { cpuset, ..Limits::default() };
        assert_eq!(told(&cores(vec![0])), Ok(()));
        assert!(told(&cores(vec![0, 1])).unwrap_err().contains("processor 1, which the load generator"));
    }
}
