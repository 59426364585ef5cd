//! The folders of revisions: `CACHE/deadheat/git/REPOSITORY/KEY`, with the revision's files in `tree` and the contender's `{work}` in `work`.
//!
//! A key has the same length for every revision, because the length of a path changes the memory layout of a process. It is the same whenever
//! the same commit is built in the same way, so that a kept build finds all paths as they were. Only one race of a repository runs at a time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use deadheat_record::{Finding, Plan, Revision};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};

use super::repository::Repository;
use super::{GitError, Side, io_at, make_folder};
use crate::plan::{Places, mark};
use crate::prepare::Progress;

/// The number of builds of a repository that are kept.
const KEPT: usize = 6;
/// How long the objects of uncommitted changes are kept, so that a race that was interrupted can go on.
const OBJECTS_KEPT: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// The file that a running race holds locked.
const LOCK: &str = "lock";
/// The folder of kept builds.
const BUILDS: &str = "builds";
/// The build that is just being kept.
const PARTIAL: &str = "partial";
/// The folder with the objects of uncommitted changes.
const OBJECTS: &str = "objects";

/// Variables that choose compilers and how they compile.
const TOOLS: [&str; 14] = [
    "PATH",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "CARGO_TARGET_DIR",
    "GOFLAGS",
    "GOTOOLCHAIN",
    "CGO_ENABLED",
    "NODE_ENV",
    "JAVA_HOME",
];

/// The name of a checkout: 16 letters and digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    /// The key of a commit that is built with this command in this folder and environment, from the dataset with this key, with these tools.
    pub(super) fn of(
        commit: &str,
        folder: &Path,
        build: Option<&str>,
        env: &BTreeMap<&str, &str>,
        dataset: Option<&str>,
    ) -> Self {
        let mut digest = Sha256::new();
        for part in
            [commit.as_bytes(), folder.as_os_str().as_encoded_bytes(), build.unwrap_or_default().as_bytes()]
        {
            digest.update(part);
            digest.update([0]);
        }
        let tools = TOOLS.iter().map(|name| std::env::var_os(name).unwrap_or_default());
        for tool in tools {
            digest.update(tool.as_encoded_bytes());
            digest.update([0]);
        }
        for text in env.iter().flat_map(|(name, value)| [*name, *value]).chain(dataset) {
            digest.update(text.as_bytes());
            digest.update([0]);
        }
        Self(crate::hex(&digest.finalize()[..8]))
    }
}

/// A checkout of this race.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) path: PathBuf,
    /// Whether it is a copy of a kept build.
    pub(super) restored: bool,
}

/// The checkouts of a race. They are removed when this is dropped.
#[derive(Debug)]
pub struct Checkouts {
    root: PathBuf,
    made: Vec<Made>,
    /// Held as long as this lives.
    _lock: Lock,
}

impl Checkouts {
    /// The checkouts of the repository at `top`, with those removed that an earlier race left behind.
    pub(super) fn open(places: &Places, top: &Path, progress: Progress<'_>) -> Result<Self, GitError> {
        Self::at(folder(places).join(mark(top)), top, progress)
    }

    fn at(root: PathBuf, top: &Path, progress: Progress<'_>) -> Result<Self, GitError> {
        // It may be below `/tmp`, where other users must not be able to change what is started.
        DirBuilder::new().recursive(true).mode(0o700).create(&root).map_err(io_at(&root))?;
        for part in [root.parent(), Some(&root)].into_iter().flatten() {
            if fs::symlink_metadata(part).map_err(io_at(part))?.uid() != rustix::process::geteuid().as_raw() {
                return Err(GitError::Foreign(part.to_owned()));
            }
        }
        let lock = Lock::take(&root).map_err(io_at(&root))?.ok_or_else(|| GitError::Busy(top.to_owned()))?;
        for finding in sweep(&root) {
            progress(&format!("note: {}", finding.message));
        }
        Ok(Self { root, made: Vec::new(), _lock: lock })
    }

    /// Where objects of uncommitted changes are.
    pub(super) fn objects(&self) -> PathBuf {
        self.root.join(OBJECTS)
    }

    /// Checks a revision out, or copies its kept build.
    pub(super) fn make(
        &mut self,
        repository: &Repository,
        side: &Side,
        key: &Key,
        builds: bool,
    ) -> Result<Made, GitError> {
        let (path, kept) = (self.root.join(&key.0), self.root.join(BUILDS).join(&key.0));
        let restored = builds && kept.is_dir();
        // From here on, it is removed at the end.
        let made = Made { path, restored };
        self.made.push(made.clone());
        if restored {
            copy(&kept, &made.path)?;
            let now = File::open(&kept).and_then(|folder| folder.set_modified(SystemTime::now()));
            now.map_err(io_at(&kept))?;
        } else {
            make_folder(&made.path.join("work"))?;
            let revision = (side.contender(), side.commit.as_str());
            let more = self.objects();
            let tree = made.path.join("tree");
            repository.check_out(
                (&revision.0, revision.1),
                Some(&more).filter(|path| path.is_dir()).map(PathBuf::as_path),
                &tree,
            )?;
        }
        Ok(made)
    }

    /// The checkouts of a race that goes on, as they were when it began.
    ///
    /// # Errors
    /// A revision or its build is gone, or another race of the repository runs.
    pub fn again(plan: &Plan, places: &Places, progress: Progress<'_>) -> Result<Option<Self>, GitError> {
        // The control starts from the baseline's checkout.
        let own = plan.contenders.iter().filter(|one| !one.control);
        let revisions: Vec<&Revision> = own.filter_map(|one| one.revision.as_ref()).collect();
        let Some(first) = revisions.first() else { return Ok(None) };
        let root = folder(places).join(mark(&first.repository));
        if let Some(other) = revisions.iter().find(|one| one.checkout.parent() != Some(&root)) {
            return Err(GitError::Elsewhere(other.checkout.clone()));
        }
        let mut checkouts = Self::at(root, &first.repository, progress)?;
        let repository = Repository::around(&first.repository)?;
        for one in revisions {
            let name = one.checkout.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let side = Side {
                name: one.name.clone(),
                commit: one.commit.clone(),
                subject: one.subject.clone(),
                uncommitted: one.uncommitted,
            };
            let made = checkouts.make(&repository, &side, &Key(name), one.build.is_some())?;
            if one.build.is_some() && !made.restored {
                return Err(GitError::NotKept(side.contender()));
            }
        }
        Ok(Some(checkouts))
    }

    /// Whether these are the checkouts of a plan.
    pub fn are_of(&self, plan: &Plan) -> bool {
        let mut revisions = plan.contenders.iter().filter_map(|one| one.revision.as_ref());
        revisions.all(|one| self.made.iter().any(|made| made.path == one.checkout))
    }

    /// Keeps the builds of this race for the next one; those of `unbuilt` contenders failed. What cannot be kept is built again then.
    pub fn keep_builds(&self, plan: &Plan, unbuilt: &[&str], progress: Progress<'_>) {
        let built = plan.contenders.iter().filter(|one| !unbuilt.contains(&one.name.as_str()));
        for revision in built.filter_map(|one| one.revision.as_ref()).filter(|one| one.build.is_some()) {
            let fresh = |one: &&Made| one.path == revision.checkout && !one.restored;
            let Some(made) = self.made.iter().find(fresh) else { continue };
            if let Err(error) = self.keep(&made.path) {
                let _ = remove(&self.root.join(BUILDS).join(PARTIAL));
                progress(&format!(
                    "note: the build of {} is not kept for the next race: {error}",
                    revision.name
                ));
            }
        }
        forget_old(&self.root.join(BUILDS));
    }

    /// Keeps the build in the checkout at `path`. Returns where.
    pub(super) fn keep(&self, path: &Path) -> Result<PathBuf, GitError> {
        let builds = self.root.join(BUILDS);
        make_folder(&builds)?;
        let name = path.file_name().unwrap_or_default();
        let (partial, kept) = (builds.join(PARTIAL), builds.join(name));
        remove(&partial).map_err(io_at(&partial))?;
        copy(path, &partial)?;
        remove(&kept).map_err(io_at(&kept))?;
        fs::rename(&partial, &kept).map_err(io_at(&kept))?;
        Ok(kept)
    }

    /// Ends without removing anything, as a killed race does.
    #[cfg(test)]
    pub(super) fn forget(mut self) {
        self.made.clear();
    }
}

impl Drop for Checkouts {
    fn drop(&mut self) {
        for made in &self.made {
            let _ = remove(&made.path);
        }
    }
}

/// Removes the checkouts that races left behind which no longer run. Returns a finding for each.
pub fn remove_leftovers(places: &Places) -> Vec<Finding> {
    let Ok(roots) = fs::read_dir(folder(places)) else { return Vec::new() };
    let mut findings = Vec::new();
    for root in roots.flatten().map(|entry| entry.path()) {
        if let Ok(Some(_lock)) = Lock::take(&root) {
            findings.extend(sweep(&root));
        }
    }
    findings
}

/// Removes what is only needed while a race runs, from a folder that this process has locked.
fn sweep(root: &Path) -> Vec<Finding> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let mut findings = Vec::new();
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if name == LOCK || name == BUILDS {
            continue;
        }
        if name == OBJECTS {
            let age =
                entry.metadata().and_then(|one| one.modified()).ok().and_then(|then| then.elapsed().ok());
            if age.is_some_and(|age| age > OBJECTS_KEPT) {
                let _ = remove(&path);
            }
            continue;
        }
        let what = format!("an earlier race left the work tree {} behind", path.display());
        findings.push(match remove(&path) {
            Ok(()) => Finding::warn(
                "leftover-work-tree",
                format!("{what}; deadheat removed it"),
                "nothing to do; it happens when deadheat is killed",
            ),
            Err(error) => Finding::warn(
                "leftover-work-tree",
                format!("{what}, and it cannot be removed: {error}"),
                format!("remove it: rm -r {}", path.display()),
            ),
        });
    }
    let _ = remove(&root.join(BUILDS).join(PARTIAL));
    findings
}

/// Where the checkouts of all repositories are.
fn folder(places: &Places) -> PathBuf {
    match &places.cache {
        Some(cache) => cache.join("deadheat").join("git"),
        None => places.temporary.join(format!("deadheat-{}-git", places.user)),
    }
}

/// The lock on a repository's folder.
#[derive(Debug)]
struct Lock(File);

impl Lock {
    /// Takes it; none if another process has it.
    fn take(root: &Path) -> io::Result<Option<Self>> {
        let file = File::options().create(true).truncate(false).write(true).open(root.join(LOCK))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that is just being started may still share the open file, so closing it is not enough.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Copies a folder with everything that belongs to it, sharing the blocks where the file system can.
fn copy(from: &Path, to: &Path) -> Result<(), GitError> {
    let mut copy = Command::new("cp");
    copy.args(["--archive", "--reflink=auto", "--no-target-directory", "--"]).args([from, to]);
    let output = copy.stdin(Stdio::null()).output().map_err(io_at(to))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("cp failed").to_owned();
    Err(io_at(to)(io::Error::other(said)))
}

/// Removes a file or a folder with everything in it, also folders that are read-only. It is no error if there is none.
fn remove(path: &Path) -> io::Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?.file_type(),
    };
    if !kind.is_dir() {
        return fs::remove_file(path);
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let mut chmod = Command::new("chmod");
            chmod.args(["-R", "u+rwX", "--"]).arg(path).stdin(Stdio::null()).stderr(Stdio::null());
            chmod.status()?;
            fs::remove_dir_all(path)
        }
        other => other,
    }
}

/// Removes all kept builds but the ones used last.
fn forget_old(builds: &Path) {
    let Ok(entries) = fs::read_dir(builds) else { return };
    let mut all: Vec<(SystemTime, OsString)> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.file_name())))
        .collect();
    all.sort();
    for (_, name) in all.iter().rev().skip(KEPT) {
        let _ = remove(&builds.join(name));
    }
}
