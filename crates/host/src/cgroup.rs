//! A contender's control group: make, enter, freeze, read, empty and remove it, in version 1 and version 2.
//!
//! Owns: the paths and files of both versions, below a root folder that tests replace by a fake tree.
//! Must not know: what runs in the group, and why it is frozen.

pub mod delegation;
pub mod limits;
pub mod throttle;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use deadheat_record::{CgroupKind, Limits};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

/// How long a group may take to freeze. A thread must run to stop. On busy cores, or under a quota, it may wait for that.
const FREEZE_PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait for a group of version 1 to freeze before thawing and freezing it again; this repeats. Almost every group freezes faster.
const ASK_AGAIN: Duration = Duration::from_micros(700);
/// Where systemd makes the groups of system services, and of containers if an engine asks for this place.
pub const SYSTEM: &str = "system.slice";

/// Where this process may make groups, according to the mounts and its own membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Version 1: this process's own folder in the freezer tree.
    freezer: Option<PathBuf>,
    /// Version 1: this process's own folder in the cpuacct tree.
    cpuacct: Option<PathBuf>,
    /// Version 2: this process's own folder in the unified tree, or another folder for new groups.
    unified: Option<PathBuf>,
    /// Version 2: where that tree is mounted.
    mount: Option<PathBuf>,
    /// Version 1: the root of the whole cpuacct tree, if the mount shows the whole tree.
    machine: Option<PathBuf>,
    /// Version 1: this process's own folder in the cpu tree, and in the memory tree.
    cpu: Option<PathBuf>,
    memory: Option<PathBuf>,
    /// Version 1: where engines make the groups of containers.
    containers: Option<ContainerPlaces>,
    /// The mount of the tree in which CPU quotas are set, and its controller's name in a membership.
    quotas: Option<(PathBuf, &'static str)>,
}

/// Version 1: where engines make the groups of containers. That is the same place in each tree, and this process may be elsewhere in some.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ContainerPlaces {
    /// This process's place in the freezer tree, below its root.
    place: PathBuf,
    /// The folders of that place in all trees, each with the options of its mount, among them its controllers.
    folders: Vec<(PathBuf, String)>,
}

impl ContainerPlaces {
    /// The folder of that place in a controller's tree, made if it is not there, as the engine would.
    fn of(&self, controller: &str) -> Option<PathBuf> {
        let has = |options: &str| options.split(',').any(|option| option == controller);
        let (folder, _) = self.folders.iter().find(|(_, options)| has(options))?;
        fs::create_dir_all(folder).ok()?;
        Some(folder.clone())
    }
}

impl Hierarchy {
    /// Reads the mounts and this process's membership (`/proc/self/mounts`, `/proc/self/cgroup`).
    pub fn detect() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::parse(&read("/proc/self/mounts"), &read("/proc/self/cgroup"), Path::new("/"))
    }

    /// As [`Self::detect`], from the given texts, with the mount points below `root`.
    pub fn parse(mounts: &str, membership: &str, root: &Path) -> Self {
        let mount = |kind: &str, option: Option<&str>| -> Option<PathBuf> {
            mounts.lines().find_map(|line| {
                let fields: Vec<&str> = line.split(' ').collect();
                let fits = fields.len() > 3
                    && fields[2] == kind
                    && option.is_none_or(|name| fields[3].split(',').any(|one| one == name));
                fits.then(|| root.join(fields[1].trim_start_matches('/')))
            })
        };
        // Only the root of the whole tree has this file: in a container, the mount is a folder deep inside the tree.
        let whole = |mount: &PathBuf| mount.join("release_agent").exists();
        let below = |mount: Option<PathBuf>, controller: &str| {
            mount.map(|mount| inside(&mount, membership, controller))
        };
        let unified = mount("cgroup2", None);
        let quotas = mount("cgroup", Some("cpu")).map(|mount| (mount, "cpu"));
        Self {
            freezer: below(mount("cgroup", Some("freezer")), "freezer"),
            cpuacct: below(mount("cgroup", Some("cpuacct")), "cpuacct"),
            unified: below(unified.clone(), ""),
            mount: unified.clone(),
            machine: mount("cgroup", Some("cpuacct")).filter(whole),
            cpu: below(mount("cgroup", Some("cpu")), "cpu"),
            memory: below(mount("cgroup", Some("memory")), "memory"),
            containers: places_of_containers(mounts, membership, root),
            quotas: quotas.or_else(|| unified.map(|mount| (mount, ""))),
        }
    }

    /// The same hierarchy, but with groups of version 2 made in another folder.
    #[must_use]
    pub fn based(&self, folder: &Path) -> Self {
        Self { unified: Some(folder.into()), ..self.clone() }
    }

    /// The same hierarchy, but with groups of version 1 made where an engine makes those of containers. Only there do a group's limits and readings include a
    /// container's.
    #[must_use]
    pub fn of_containers(&self) -> Self {
        let Some(places) = &self.containers else { return self.clone() };
        let of = |controller: &str| places.of(controller);
        Self {
            freezer: of("freezer"),
            cpuacct: of("cpuacct"),
            cpu: of("cpu"),
            memory: of("memory"),
            ..self.clone()
        }
    }

    /// This process's own folder in the unified tree, and the mount of that tree. None unless groups are made there, which this tests with
    /// a group of that name.
    pub fn of_version_2(&self, name: &str) -> Option<(&Path, &Path)> {
        let folders = self.unified.as_deref().zip(self.mount.as_deref());
        folders.filter(|_| self.kind(name) == CgroupKind::V2)
    }

    /// The folders in which a CPU quota may apply to a process of this membership (`/proc/PID/cgroup`): its own and those above it, up to
    /// the mount.
    pub fn quota_groups(&self, membership: &str) -> Vec<PathBuf> {
        let Some((mount, controller)) = &self.quotas else { return Vec::new() };
        let own = inside(mount, membership, controller);
        own.ancestors().take_while(|folder| folder.starts_with(mount)).map(Path::to_path_buf).collect()
    }

    /// The folder of the group by which the kernel schedules a process of this membership (`/proc/PID/cgroup`): its own, or in version 2
    /// the nearest one above that has a weight. None if nothing is mounted.
    pub fn scheduled_in(&self, membership: &str) -> Option<PathBuf> {
        let (mount, controller) = self.quotas.as_ref()?;
        let own = inside(mount, membership, controller);
        let weighed = |folder: &&Path| !controller.is_empty() || folder.join("cpu.weight").exists();
        let above = own.ancestors().take_while(|folder| folder.starts_with(mount));
        Some(above.into_iter().find(weighed).unwrap_or(mount).to_path_buf())
    }

    /// Makes a group called `name`: in version 1 if freezer and cpuacct are available, otherwise in version 2.
    /// None if neither is writable.
    pub fn make(&self, name: &str) -> Option<Cgroup> {
        let v1 = self.freezer.as_ref().zip(self.cpuacct.as_ref()).and_then(|(freezer, cpuacct)| {
            let (freezer, cpuacct) = (freezer.join(name), cpuacct.join(name));
            fs::create_dir(&freezer).ok()?;
            if fs::create_dir(&cpuacct).is_err() {
                let _ = fs::remove_dir(&freezer);
                return None;
            }
            Some(Cgroup::V1 { freezer, cpuacct, more: Vec::new() })
        });
        v1.or_else(|| {
            let folder = self.unified.as_ref()?.join(name);
            fs::create_dir(&folder).ok()?;
            if folder.join("cgroup.freeze").exists() {
                Some(Cgroup::V2 { folder })
            } else {
                let _ = fs::remove_dir(&folder);
                None
            }
        })
    }

    /// The version of the groups that can be made, which this tests with a group of that name.
    pub fn kind(&self, name: &str) -> CgroupKind {
        let Some(group) = self.make(name) else { return CgroupKind::None };
        let _ = group.remove();
        group.kind()
    }

    /// As [`Self::make`], and also sets `limits` on the group.
    ///
    /// # Errors
    /// When the limits need groups and cannot be set: the reason in words with the remedy. Nothing is left behind.
    pub fn make_limited(&self, name: &str, limits: &Limits) -> Result<Option<Cgroup>, String> {
        let Some(mut group) = self.make(name) else {
            return if limits.need_groups() {
                Err(limits::not_here("deadheat cannot create a control group"))
            } else {
                Ok(None)
            };
        };
        let set = match &mut group {
            Cgroup::V1 { cpuacct, more, .. } => limits::set_v1(self.trees(), name, cpuacct, more, limits),
            Cgroup::V2 { folder } => limits::set_v2(folder, limits),
        };
        match set {
            Ok(()) => Ok(Some(group)),
            Err(error) => {
                let _ = group.remove();
                Err(limits::not_here(&error.to_string()))
            }
        }
    }

    /// Version 1: this process's own folders in the cpu tree and the memory tree.
    fn trees(&self) -> (Option<&Path>, Option<&Path>) {
        (self.cpu.as_deref(), self.memory.as_deref())
    }

    /// Folders of groups whose name begins with `prefix`, in all trees.
    pub fn folders_named(&self, prefix: &str) -> Vec<PathBuf> {
        let trees = [&self.freezer, &self.cpuacct, &self.unified, &self.mount, &self.cpu, &self.memory];
        let of_containers =
            self.containers.iter().flat_map(|places| &places.folders).map(|(folder, _)| folder);
        let trees = trees.into_iter().flatten().chain(of_containers);
        let entries = trees.filter_map(|tree| fs::read_dir(tree).ok()).flatten().flatten();
        let mut found: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
            .map(|entry| entry.path())
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// The place of the group of that name below the root of its tree, if [`Self::of_containers`] made it: below it, an engine can put a container's groups.
    pub fn place_of(&self, group: &Cgroup, name: &str) -> Option<PathBuf> {
        match group {
            Cgroup::V1 { .. } => Some(self.containers.as_ref()?.place.join(name)),
            Cgroup::V2 { folder } => Some(folder.strip_prefix(self.mount.as_ref()?).ok()?.to_owned()),
        }
    }

    /// Removes the group of that name from every tree, with what engines made below it. Groups with processes stay.
    pub fn remove_of_containers(&self, name: &str) {
        let named = self.folders_named(name).into_iter().filter(|folder| folder.ends_with(name));
        named.for_each(|folder| drop(remove_tree(&folder)));
    }

    /// Thaws a group that was left frozen by a killed keeper, so that pending signals reach its processes.
    pub fn thaw_abandoned(folder: &Path) {
        for folder in folders_below(folder) {
            for (file, word) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
                if folder.join(file).exists() {
                    let _ = fs::write(folder.join(file), word);
                }
            }
        }
    }

    /// CPU time in nanoseconds that everything on the machine has used, by processor; none if no group counts this for the whole machine.
    /// (The root of version 2 counts all processors together, in the clock ticks of `/proc/stat`.)
    pub fn machine_cpu_ns(&self) -> Option<Vec<u64>> {
        let text = fs::read_to_string(self.machine.as_ref()?.join("cpuacct.usage_percpu")).ok()?;
        Some(text.split_whitespace().filter_map(|word| word.parse().ok()).collect())
    }
}

/// Version 1: the place of this process below the root of the freezer tree, and the folders of that place in all mounted trees.
fn places_of_containers(mounts: &str, membership: &str, root: &Path) -> Option<ContainerPlaces> {
    let tree = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, place, "cgroup" | "cgroup2", options, ..] = fields[..] else { return None };
        Some((root.join(place.trim_start_matches('/')), options.to_owned()))
    };
    let trees: Vec<(PathBuf, String)> = mounts.lines().filter_map(tree).collect();
    let (freezer, _) = trees.iter().find(|(_, options)| options.split(',').any(|one| one == "freezer"))?;
    let own = inside(freezer, membership, "freezer");
    let place = own.strip_prefix(freezer).ok()?.to_owned();
    let folders = trees.into_iter().map(|(tree, options)| (tree.join(&place), options)).collect();
    Some(ContainerPlaces { place, folders })
}

/// The folder below `mount` that a membership names for a controller; the controller "" means the unified tree.
pub(crate) fn inside(mount: &Path, membership: &str, controller: &str) -> PathBuf {
    let mut lines =
        membership.lines().filter_map(|line| line.splitn(3, ':').collect::<Vec<_>>().try_into().ok());
    let own = lines
        .find(|[id, controllers, _]: &[&str; 3]| match controller {
            "" => *id == "0" && controllers.is_empty(),
            name => controllers.split(',').any(|one| one == name),
        })
        .map_or("", |[_, _, path]| path.trim_start_matches('/'));
    let path = mount.join(own);
    // In a container, the membership may name a folder that is not mounted here.
    if path.is_dir() { path } else { mount.into() }
}

/// One contender's group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cgroup {
    /// Version 1: one folder per controller.
    V1 {
        /// In the freezer tree.
        freezer: PathBuf,
        /// In the cpuacct tree.
        cpuacct: PathBuf,
        /// In other trees, for limits.
        #[serde(default)]
        more: Vec<PathBuf>,
    },
    /// Version 2.
    V2 {
        /// In the unified tree.
        folder: PathBuf,
    },
}

impl Cgroup {
    /// The version of the group.
    pub fn kind(&self) -> CgroupKind {
        match self {
            Self::V1 { .. } => CgroupKind::V1,
            Self::V2 { .. } => CgroupKind::V2,
        }
    }

    /// The source of its CPU time.
    pub fn cpu_source(&self) -> &'static str {
        match self {
            Self::V1 { .. } => "cpuacct",
            Self::V2 { .. } => "cpu.stat",
        }
    }

    fn folders(&self) -> Vec<&Path> {
        match self {
            Self::V1 { freezer, cpuacct, more } => {
                [freezer, cpuacct].into_iter().chain(more).map(PathBuf::as_path).collect()
            }
            Self::V2 { folder } => vec![folder],
        }
    }

    fn main_folder(&self) -> &Path {
        match self {
            Self::V1 { freezer, .. } => freezer,
            Self::V2 { folder } => folder,
        }
    }

    /// Moves the calling process into the group.
    pub fn enter(&self) -> io::Result<()> {
        self.take_in("0")
    }

    fn take_in(&self, process: &str) -> io::Result<()> {
        self.folders().into_iter().try_for_each(|folder| limits::write(&folder.join("cgroup.procs"), process))
    }

    /// Checks that the group accepts processes, with an idle process that is ended afterwards.
    ///
    /// # Errors
    /// When the group refuses the process, as in version 2 if the group above contains processes itself.
    pub fn try_out(&self) -> io::Result<()> {
        let mut idle = Command::new("/bin/sh");
        idle.args(["-c", "read -r end"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut idle = idle.spawn()?;
        let taken = self.take_in(&idle.id().to_string());
        drop(idle.stdin.take());
        idle.wait()?;
        taken
    }

    /// Processes in the group.
    pub fn processes(&self) -> Vec<Pid> {
        processes_in(self.main_folder())
    }

    /// Processes in the group and in those below it.
    pub fn processes_below(&self) -> Vec<Pid> {
        processes_below(self.main_folder())
    }

    /// Version 2: the group in this one for the processes of an engine that puts a container's group in this one too, which may then hold no process itself.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn for_engine(&self) -> io::Result<Self> {
        let Self::V2 { folder } = self else { return Ok(self.clone()) };
        let folder = folder.join("engine");
        fs::create_dir(&folder).map_err(|error| limits::at(&folder, error))?;
        Ok(Self::V2 { folder })
    }

    /// Whether groups in this one can hold processes to processors.
    pub fn has_cpuset(&self) -> bool {
        let Self::V2 { folder } = self else { return true };
        let there = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
        there.split_whitespace().any(|controller| controller == "cpuset")
    }

    /// The group of the container that an engine runs for a command in this group: in this group, or where systemd makes it for the ID in the file. None
    /// before it is there.
    pub fn of_container(&self, id_file: &Path) -> Option<Self> {
        self.of_container_below().or_else(|| {
            let id = fs::read_to_string(id_file).ok().filter(|id| is_id(id))?;
            let Self::V2 { folder } = self else { return None };
            let root = folder.ancestors().take_while(|one| one.join("cgroup.procs").exists()).last()?;
            let folder = root.join(SYSTEM).join(format!("docker-{id}.scope"));
            folder.is_dir().then_some(Self::V2 { folder })
        })
    }

    fn of_container_below(&self) -> Option<Self> {
        // Podman makes a group for itself too. In version 2, the name of that group depends on podman's version.
        let is_containers = |name: &str| match self {
            Self::V1 { .. } => !name.contains("conmon"),
            Self::V2 { .. } => name.starts_with("libpod-payload") || is_id(name),
        };
        let entries = fs::read_dir(self.main_folder()).ok()?.flatten();
        let name = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.file_name())
            .find(|name| is_containers(&name.to_string_lossy()))?;
        match self {
            Self::V1 { freezer, cpuacct, .. } => {
                let (freezer, cpuacct) = (freezer.join(&name), cpuacct.join(&name));
                cpuacct.is_dir().then_some(Self::V1 { freezer, cpuacct, more: Vec::new() })
            }
            Self::V2 { folder } => Some(Self::V2 { folder: folder.join(name) }),
        }
    }

    /// Stops every thread in the group, and returns when all threads have stopped.
    ///
    /// # Errors
    /// When the group is not writable, or has not stopped within twenty seconds.
    pub fn freeze(&self) -> io::Result<()> {
        self.switch(true)
    }

    /// Lets the group run again.
    ///
    /// # Errors
    /// When the group is not writable.
    pub fn thaw(&self) -> io::Result<()> {
        self.switch(false)
    }

    fn switch(&self, frozen: bool) -> io::Result<()> {
        let (file, word, wanted) = match (self, frozen) {
            (Self::V1 { .. }, true) => ("freezer.state", "FROZEN", "FROZEN"),
            (Self::V1 { .. }, false) => ("freezer.state", "THAWED", "THAWED"),
            (Self::V2 { .. }, true) => ("cgroup.freeze", "1", "frozen 1"),
            (Self::V2 { .. }, false) => ("cgroup.freeze", "0", "frozen 0"),
        };
        let folder = self.main_folder();
        fs::write(folder.join(file), word)?;
        let state = match self {
            Self::V1 { .. } => folder.join("freezer.state"),
            Self::V2 { .. } => folder.join("cgroup.events"),
        };
        let start = Instant::now();
        let (mut asked, mut patience) = (start, ASK_AGAIN);
        while !fs::read_to_string(&state)?.lines().any(|line| line.trim() == wanted) {
            // A process that forks at the wrong moment keeps version 1 from finishing: thaw it for an instant, and freeze it again. Each
            // time wait for longer, because threads on busy cores may need that long to stop.
            if frozen && matches!(self, Self::V1 { .. }) && asked.elapsed() > patience {
                (asked, patience) = (Instant::now(), patience * 2);
                fs::write(folder.join(file), "THAWED")?;
                fs::write(folder.join(file), word)?;
            }
            if start.elapsed() > FREEZE_PATIENCE {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("{}: not {wanted}", state.display()),
                ));
            }
            if start.elapsed() > Duration::from_millis(1) {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        Ok(())
    }

    /// CPU time that the group has used, including ended processes, in nanoseconds.
    pub fn cpu_ns(&self) -> Option<u64> {
        match self {
            Self::V1 { cpuacct, .. } => {
                fs::read_to_string(cpuacct.join("cpuacct.usage")).ok()?.trim().parse().ok()
            }
            Self::V2 { folder } => stat_ns(&fs::read_to_string(folder.join("cpu.stat")).ok()?, "usage_usec "),
        }
    }

    /// That CPU time split into user mode and kernel, in nanoseconds; none if the group does not report it.
    pub fn cpu_split(&self) -> Option<(u64, u64)> {
        match self {
            Self::V1 { cpuacct, .. } => {
                let part = |name: &str| -> Option<u64> {
                    fs::read_to_string(cpuacct.join(name)).ok()?.trim().parse().ok()
                };
                Some((part("cpuacct.usage_user")?, part("cpuacct.usage_sys")?))
            }
            Self::V2 { folder } => {
                let text = fs::read_to_string(folder.join("cpu.stat")).ok()?;
                Some((stat_ns(&text, "user_usec ")?, stat_ns(&text, "system_usec ")?))
            }
        }
    }

    /// Kills every process in the group at once if the kernel supports it (version 2); the caller also sends signals.
    pub fn kill(&self) {
        if let Self::V2 { folder } = self {
            let _ = fs::write(folder.join("cgroup.kill"), "1");
        }
    }

    /// Removes the group, which must be empty.
    ///
    /// # Errors
    /// When a process is still in it.
    pub fn remove(&self) -> io::Result<()> {
        self.folders().into_iter().try_for_each(|folder| match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        })
    }
}

fn processes_in(folder: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).filter_map(Pid::from_raw).collect()
}

/// Processes in a group's folder and in those below it.
pub fn processes_below(folder: &Path) -> Vec<Pid> {
    folders_below(folder).iter().flat_map(|folder| processes_in(folder)).collect()
}

/// Whether this is the ID of a container, which engines have in the names of groups.
fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|c| c.is_ascii_hexdigit())
}

/// Processes in the groups that an engine made below this folder: those of a container, and the engine's own that watches it.
pub fn processes_of_engines(folder: &Path) -> Vec<Pid> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_engines = |name: &str| name.starts_with("libpod-") || name == "conmon" || is_id(name);
    let theirs = entries.filter(|entry| is_engines(&entry.file_name().to_string_lossy()));
    theirs.flat_map(|entry| processes_below(&entry.path())).collect()
}

/// A folder and all below it, each before those inside it.
fn folders_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let inner = inner.flat_map(|entry| folders_below(&entry.path()));
    std::iter::once(folder.to_path_buf()).chain(inner).collect()
}

/// Removes a group and those below it, if all are empty.
///
/// # Errors
/// When a process is still in one of them.
pub fn remove_tree(folder: &Path) -> io::Result<()> {
    remove_below(folder);
    fs::remove_dir(folder)
}

/// Removes the empty groups below a folder.
fn remove_below(folder: &Path) {
    for inner in folders_below(folder).iter().skip(1).rev() {
        let _ = fs::remove_dir(inner);
    }
}

/// A time from version 2's `cpu.stat`, which is in microseconds, converted to nanoseconds.
fn stat_ns(text: &str, name: &str) -> Option<u64> {
    let micros: u64 = text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()?;
    Some(micros * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_MOUNTS: &str = "cgroup /c/cpuacct,cpu cgroup rw,relatime,cpuacct,cpu 0 0\n\
        cgroup /c/freezer cgroup rw,freezer 0 0\ncgroup2 /c/unified cgroup2 rw 0 0\n";

    #[test]
    fn version_1_is_found_with_its_own_folder() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("c/freezer/job")).unwrap();
        fs::create_dir_all(root.path().join("c/cpuacct,cpu")).unwrap();
        let found =
            Hierarchy::parse(V1_MOUNTS, "6:freezer:/job\n2:cpu,cpuacct:/elsewhere\n0::/\n", root.path());
        assert_eq!(found.freezer, Some(root.path().join("c/freezer/job")));
        assert_eq!(found.cpuacct, Some(root.path().join("c/cpuacct,cpu")), "falls back to the mount");
    }

    #[test]
    fn the_group_of_a_container_is_told_apart_from_its_engines() {
        let root = tempfile::tempdir().unwrap();
        let make = |path: &str| fs::create_dir_all(root.path().join(path)).unwrap();
        // Version 1, as podman with runc makes it.
        let (freezer, cpuacct) = (root.path().join("freezer/g"), root.path().join("cpuacct/g"));
        make("freezer/g/conmon");
        make("cpuacct/g/conmon");
        let group = Cgroup::V1 { freezer: freezer.clone(), cpuacct: cpuacct.clone(), more: Vec::new() };
        assert_eq!(group.of_container(Path::new("/no/file")), None, "the container is not there yet");
        make("freezer/g/libpod-7");
        assert_eq!(group.of_container(Path::new("/no/file")), None, "nor in all trees");
        make("cpuacct/g/libpod-7");
        let inner = group.of_container(Path::new("/no/file")).unwrap();
        let expected = Cgroup::V1 {
            freezer: freezer.join("libpod-7"),
            cpuacct: cpuacct.join("libpod-7"),
            more: Vec::new(),
        };
        assert_eq!(inner, expected);
        fs::write(freezer.join("cgroup.procs"), "10\n").unwrap();
        fs::write(freezer.join("libpod-7/cgroup.procs"), "11\n12\n").unwrap();
        assert_eq!((group.processes_below().len(), inner.processes().len()), (3, 2));
        fs::write(freezer.join("conmon/cgroup.procs"), "13\n").unwrap();
        let theirs: Vec<i32> =
            processes_of_engines(&freezer).iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        assert_eq!(theirs.len(), 3, "{theirs:?}");
        assert!(!theirs.contains(&10), "a contender's process is named and left");

        // Version 2, as podman divides a group.
        make("unified/g/runtime");
        let folder = root.path().join("unified/g");
        let group = Cgroup::V2 { folder: folder.clone() };
        assert_eq!(group.of_container(Path::new("/no/file")), None, "podman's own group");
        make("unified/g/libpod-payload-7");
        assert_eq!(
            group.of_container(Path::new("/no/file")),
            Some(Cgroup::V2 { folder: folder.join("libpod-payload-7") })
        );
        let found = Hierarchy::parse("cgroup2 /unified cgroup2 rw 0 0\n", "0::/\n", root.path());
        assert_eq!(found.place_of(&group, "g"), Some("g".into()));
        found.remove_of_containers("g");
        assert!(!folder.exists());

        // Version 2, as Docker does: in the group, or in systemd's.
        make("unified/user/h");
        let group = Cgroup::V2 { folder: root.path().join("unified/user/h") };
        let engine = group.for_engine().unwrap();
        let id = "0123456789abcdef".repeat(4);
        let id_file = root.path().join("id");
        fs::write(&id_file, &id).unwrap();
        assert_eq!(group.of_container(&id_file), None, "only the engine");
        make(&format!("unified/system.slice/docker-{id}.scope"));
        for folder in ["unified", "unified/user", "unified/user/h"] {
            fs::write(root.path().join(folder).join("cgroup.procs"), "").unwrap();
        }
        let folder = root.path().join(format!("unified/system.slice/docker-{id}.scope"));
        assert_eq!(group.of_container(&id_file), Some(Cgroup::V2 { folder }));
        fs::write(&id_file, "../../..").unwrap();
        assert_eq!(group.of_container(&id_file), None, "no ID");
        make(&format!("unified/user/h/{id}"));
        let Cgroup::V2 { folder } = &group else { unreachable!() };
        assert_eq!(group.of_container(&id_file), Some(Cgroup::V2 { folder: folder.join(&id) }));
        assert_eq!((engine.kind(), folder.join("engine").is_dir()), (CgroupKind::V2, true));
    }

    #[test]
    fn containers_are_put_at_the_same_place_in_every_tree() {
        let mounts = "cgroup /c/memory cgroup rw,memory 0 0\ncgroup /c/freezer cgroup rw,freezer 0 0\ntmpfs /c tmpfs rw 0 0\n";
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("c/freezer/job")).unwrap();
        let found = Hierarchy::parse(mounts, "6:freezer:/job\n4:memory:/elsewhere\n", root.path());
        let group = Cgroup::V1 { freezer: "/f".into(), cpuacct: "/c".into(), more: Vec::new() };
        assert_eq!(found.memory, Some(root.path().join("c/memory")), "the named folder is not there");
        assert_eq!(found.of_containers().memory, Some(root.path().join("c/memory/job")));
        assert_eq!(found.of_containers().cpu, None);
        assert_eq!(found.place_of(&group, "deadheat-1-2-3"), Some("job/deadheat-1-2-3".into()));
        for name in ["deadheat-1-2-3/conmon", "deadheat-1-2-30"] {
            fs::create_dir_all(root.path().join("c/memory/job").join(name)).unwrap();
        }
        found.remove_of_containers("deadheat-1-2-3");
        let left: Vec<_> =
            found.folders_named("deadheat-").iter().map(|one| one.file_name().unwrap().to_owned()).collect();
        assert_eq!(left, ["deadheat-1-2-30"], "also where this process is elsewhere, and no other group");
    }

    #[test]
    fn version_2_over_a_fake_tree() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("cg/user.slice");
        fs::create_dir_all(&own).unwrap();
        let found = Hierarchy::parse("cgroup2 /cg cgroup2 rw 0 0\n", "0::/user.slice\n", root.path());
        assert!(found.make("deadheat-1-a").is_none(), "a folder without cgroup.freeze is no group");
        assert!(!own.join("deadheat-1-a").exists(), "and is not left behind");
        let group = Cgroup::V2 { folder: own.join("g") };
        fs::create_dir(own.join("g")).unwrap();
        fs::write(own.join("g/cgroup.events"), "populated 1\nfrozen 1\n").unwrap();
        group.freeze().unwrap();
        assert_eq!(fs::read_to_string(own.join("g/cgroup.freeze")).unwrap(), "1");
        fs::write(own.join("g/cpu.stat"), "usage_usec 1500\nuser_usec 1000\n").unwrap();
        assert_eq!(group.cpu_split(), None, "one part alone is none");
        fs::write(own.join("g/cpu.stat"), "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnr_periods 0\n")
            .unwrap();
        assert_eq!(group.cpu_split(), Some((1_000_000, 500_000)));
        assert_eq!(group.cpu_ns(), Some(1_500_000));
        fs::write(own.join("g/cgroup.procs"), "12\n13\n").unwrap();
        assert_eq!(group.processes().len(), 2);
        group.enter().unwrap();
        assert_eq!(fs::read_to_string(own.join("g/cgroup.procs")).unwrap(), "0");
        assert_eq!(group.kind(), CgroupKind::V2);
    }

    #[test]
    fn version_1_tells_user_mode_and_kernel_apart() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = root.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        let (freezer, cpuacct) = (folder("freezer/g"), folder("cpuacct/g"));
        let group = Cgroup::V1 { freezer, cpuacct: cpuacct.clone(), more: vec![] };
        fs::write(cpuacct.join("cpuacct.usage"), "1500000\n").unwrap();
        fs::write(cpuacct.join("cpuacct.stat"), "user 0\nsystem 0\n").unwrap();
        assert_eq!(
            (group.cpu_ns(), group.cpu_split()),
            (Some(1_500_000), None),
            "clock ticks are too coarse"
        );
        fs::write(cpuacct.join("cpuacct.usage_user"), "900000\n").unwrap();
        fs::write(cpuacct.join("cpuacct.usage_sys"), "580000\n").unwrap();
        assert_eq!(group.cpu_split(), Some((900_000, 580_000)), "as they are: they need not add up");
    }

    #[test]
    fn a_machine_without_groups_says_so() {
        let root = tempfile::tempdir().unwrap();
        let none = Hierarchy::parse("tmpfs /tmp tmpfs rw 0 0\n", "", root.path());
        assert!(none.make("deadheat-1-a").is_none());
        assert_eq!(none.machine_cpu_ns(), None);
    }

    #[test]
    fn machine_cpu_time_is_that_of_the_whole_tree_by_processor() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("c/cpuacct,cpu");
        fs::create_dir_all(tree.join("user.slice")).unwrap();
        fs::write(tree.join("cpuacct.usage_percpu"), "10 20 30 \n").unwrap();
        fs::write(tree.join("user.slice/cpuacct.usage_percpu"), "1 2 3 \n").unwrap();
        let detect = || Hierarchy::parse(V1_MOUNTS, "2:cpu,cpuacct:/user.slice\n", root.path());
        assert_eq!(detect().machine_cpu_ns(), None, "what is mounted may be a part only");
        fs::write(tree.join("release_agent"), "").unwrap();
        assert_eq!(detect().machine_cpu_ns(), Some(vec![10, 20, 30]), "not our own folder's");
    }
}
