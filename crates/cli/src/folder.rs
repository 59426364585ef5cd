//! A temporary folder of this process, which leaves nothing behind, however the process ends.
//!
//! Owns: its place, and removing it. Must not know: what is in it.

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use deadheat_study::plan::Places;

/// A folder for this process only, which is removed with its contents at the end. After an immediate exit by a second Ctrl-C, the next process
/// removes it.
pub(crate) struct Folder {
    path: PathBuf,
    /// Locked while the folder is in use. The lock ends with the process, however the process ends.
    _lock: File,
    is_kept: bool,
}

impl Folder {
    /// Creates the folder, and removes the folders of processes that have ended and had the same purpose. `purpose` is one word.
    ///
    /// # Errors
    /// An operation of the system fails.
    pub(crate) fn make(purpose: &str) -> std::io::Result<Self> {
        let places = Places::of_process();
        let prefix = format!("deadheat-{}-{purpose}-", places.user);
        let path = places.temporary.join(format!("{prefix}{}", places.process));
        // Left by an earlier process with the same number.
        let _ = fs::remove_dir_all(&path);
        remove_left(&places.temporary, &prefix, places.user);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = File::open(&path)?;
        // If the file system has no locks, the number of the process must suffice.
        let _ = lock.try_lock();
        Ok(Self { path, _lock: lock, is_kept: false })
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the folder after the end of this process, until the next process of the same purpose, because a message names a file in it.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }
}

/// Removes folders of `user` that are named `prefix` plus the number of an ended process and that are not locked. The lock matters because the
/// process may still run under another number, in another namespace.
fn remove_left(temporary: &Path, prefix: &str, user: u32) {
    let is_left = |path: &Path| {
        let process = path.file_name()?.to_str()?.strip_prefix(prefix)?.parse::<u32>().ok()?;
        let facts = fs::symlink_metadata(path).ok()?;
        let ended = !Path::new("/proc").join(process.to_string()).exists();
        let ours = facts.is_dir() && facts.uid() == user;
        (ended && ours && File::open(path).ok()?.try_lock().is_ok()).then_some(())
    };
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| is_left(path).is_some()) {
        // The next process removes what is left.
        let _ = fs::remove_dir_all(path);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ended_processes_of_ones_own_left_is_removed() {
        let here = tempfile::tempdir().unwrap();
        let user = fs::metadata(here.path()).unwrap().uid();
        // No process has such a high number: the kernel's limit is 4,194,304.
        let own = std::process::id().to_string();
        let names =
            ["doctor-999999990", "doctor-999999991", &format!("doctor-{own}"), "doctor-x", "other-999999992"];
        for name in names {
            fs::create_dir_all(here.path().join(name).join("logs")).unwrap();
        }
        fs::write(here.path().join("doctor-999999993"), "a file").unwrap();
        let locked = File::open(here.path().join(names[1])).unwrap();
        locked.try_lock().unwrap();
        let left = || names.map(|name| here.path().join(name).exists());
        remove_left(here.path(), "doctor-", user + 1);
        assert_eq!(left(), [true; 5], "another user's");
        remove_left(here.path(), "doctor-", user);
        assert_eq!(left(), [false, true, true, true, true]);
        assert!(here.path().join("doctor-999999993").exists());
    }
}
