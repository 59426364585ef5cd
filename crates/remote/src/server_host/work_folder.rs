//! The folder on a server host in which everything is kept that a command there needs and writes.
//!
//! Owns: its place, what may be put into it, and removing it. Must not know: what the files are for.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::thread::JoinHandle;

use super::message::Entry;

/// The folder with the files that were sent, in the work folder.
pub const FILES: &str = "files";
/// The record, in the work folder.
pub const RECORD: &str = "record.jsonl";
/// Between the name of a folder that an earlier command left and a number: the folder is removed under this name. No work folder has it.
const ASIDE: &str = ".old-";

/// A folder of one command. Dropping it removes it with everything in it.
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
    /// Locked while the folder is in use. The lock ends with the process, however the process ends.
    _lock: File,
    /// The file whose bytes come next.
    open: Option<(String, File)>,
    /// Removes what earlier commands left.
    clearing: Option<JoinHandle<()>>,
}

impl WorkFolder {
    /// Makes an empty folder of this name in `parent`. What an earlier command of this name left there is removed, on a thread of its own:
    /// that may take longer than the other side waits for a sign of life.
    ///
    /// # Errors
    /// In words: a command of this name is still running, or the folder cannot be made.
    pub fn make(parent: &Path, name: &str) -> Result<Self, String> {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
            return Err("the work folder has no proper name".into());
        }
        let path = parent.join(name);
        let failed = |error: io::Error| format!("the folder {} cannot be made: {error}", path.display());
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
        if path.exists() {
            // The lock goes with the folder: whoever has it may remove it.
            let _lock = locked(&path)?;
            let mut places = (0..).map(|number: u32| parent.join(format!("{name}{ASIDE}{number}")));
            let free = places.find(|place| !place.exists()).unwrap_or_default();
            fs::rename(&path, free).map_err(failed)?;
        }
        let old = aside(&path);
        let clear = move || old.iter().for_each(|old| drop(remove(old)));
        let clearing = std::thread::Builder::new().name("clearing".into()).spawn(clear).map_err(failed)?;
        DirBuilder::new().mode(0o700).create(&path).map_err(failed)?;
        let lock = locked(&path)?;
        DirBuilder::new().mode(0o755).create(path.join(FILES)).map_err(failed)?;
        Ok(Self { path, _lock: lock, open: None, clearing: Some(clearing) })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores a piece of what was sent. Nothing is stored outside the folder.
    ///
    /// # Errors
    /// In words, with the path.
    pub fn put(&mut self, entry: &Entry) -> Result<(), String> {
        let failed = |path: &str, error: io::Error| {
            format!("{path} cannot be written to {}: {error}", self.path.display())
        };
        match entry {
            Entry::Folder { path } => {
                let place = self.place(path)?;
                DirBuilder::new().create(place).map_err(|error| failed(path, error))?;
            }
            Entry::File { path, executable } => {
                let place = self.place(path)?;
                let mode = if *executable { 0o755 } else { 0o644 };
                let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(place);
                let file = file.map_err(|error| failed(path, error))?;
                self.open = Some((path.clone(), file));
            }
            Entry::Record => {
                let file = OpenOptions::new().write(true).create_new(true).open(self.path.join(RECORD));
                self.open = Some((RECORD.into(), file.map_err(|error| failed(RECORD, error))?));
            }
            Entry::Bytes(bytes) => {
                let Some((path, file)) = &mut self.open else {
                    return Err("bytes came without a file".into());
                };
                file.write_all(bytes).map_err(|error| {
                    format!("{path} cannot be written to {}: {error}", self.path.display())
                })?;
            }
            Entry::Link { path, target } => {
                let place = self.place(path)?;
                symlink(target, place).map_err(|error| failed(path, error))?;
            }
        }
        Ok(())
    }

    /// Everything that was sent is there: the last file is closed.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Removes the folder. Returns why something of it is still there, if it is.
    pub fn remove(self) -> Option<String> {
        let path = self.path.clone();
        let removed = remove(&path);
        // Dropped after that, so that nobody else finds it unlocked.
        drop(self);
        removed.err().map(|error| format!("{} cannot be removed: {error}", path.display()))
    }

    /// Where a path is in the folder of sent files. None of the folders on the way there is a link.
    fn place(&self, path: &str) -> Result<PathBuf, String> {
        let outside = || format!("the path {path:?} is not inside the folder that was sent");
        let mut place = self.path.join(FILES);
        let mut parts = Path::new(path).components().peekable();
        if path.is_empty() || path.contains('\0') {
            return Err(outside());
        }
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else { return Err(outside()) };
            place.push(name);
            if parts.peek().is_some() && !fs::symlink_metadata(&place).is_ok_and(|found| found.is_dir()) {
                return Err(outside());
            }
        }
        Ok(place)
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let _ = remove(&self.path);
        // The process may end after this.
        let _ = self.clearing.take().map(JoinHandle::join);
    }
}

/// What earlier commands left in the place of this folder, and is not removed yet.
fn aside(path: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let begin = format!("{}{ASIDE}", name.display());
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let old = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&begin));
    old.map(|entry| entry.path()).collect()
}

/// Removes a folder, also if something in it has become read-only.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path);
            fs::remove_dir_all(path)
        }
        // Something was added while it was removed.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => fs::remove_dir_all(path),
        other => other,
    }
}

/// Folders that a package manager has made read-only can be removed only after this.
fn make_writable(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}

/// The lock of a folder.
fn locked(path: &Path) -> Result<File, String> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(format!(
            "another command that was sent from the same folder is still running there, in {}",
            path.display()
        )),
        // If the file system has no locks, two such commands at a time are the user's affair.
        _ => Ok(file),
    }
}

/// Removes the work folder of a command whose agent has ended, and what earlier commands left, unless another agent uses it again.
pub(crate) fn remove_abandoned(path: &Path) {
    if let Ok(_lock) = locked(path) {
        let _ = remove(path);
        aside(path).iter().for_each(|old| drop(remove(old)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, executable: bool) -> Entry {
        Entry::File { path: path.into(), executable }
    }

    #[test]
    fn files_folders_and_links_are_stored_as_they_were() {
        let home = tempfile::tempdir().unwrap();
        let mut folder = WorkFolder::make(&home.path().join("races"), "ab12").unwrap();
        for entry in [
            Entry::Folder { path: "bin".into() },
            file("bin/server", true),
            Entry::Bytes(b"one ".into()),
            Entry::Bytes(b"two".into()),
            file("empty", false),
            Entry::Record,
            Entry::Bytes(b"{}\n".into()),
            Entry::Link { path: "bin/link".into(), target: "/no/such/place".into() },
        ] {
            folder.put(&entry).unwrap();
        }
        let files = folder.path().join(FILES);
        assert_eq!(fs::read_to_string(files.join("bin/server")).unwrap(), "one two");
        let mode = |name: &str| fs::metadata(files.join(name)).unwrap().permissions().mode() & 0o111;
        assert!(mode("bin/server") != 0 && mode("empty") == 0);
        assert_eq!(fs::read_to_string(folder.path().join(RECORD)).unwrap(), "{}\n");
        assert_eq!(fs::read_link(files.join("bin/link")).unwrap(), Path::new("/no/such/place"));
        let own = fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777;
        assert_eq!(own, 0o700);
        assert_eq!(folder.remove(), None);
        assert_eq!(fs::read_dir(home.path().join("races")).unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_stored_outside_the_folder() {
        let home = tempfile::tempdir().unwrap();
        let mut folder = WorkFolder::make(home.path(), "a").unwrap();
        folder.put(&Entry::Link { path: "away".into(), target: home.path().display().to_string() }).unwrap();
        for path in ["", "../x", "/etc/x", "a/../../x", "away/x", "missing/x", "./../x", "a\0b"] {
            let problem = folder.put(&file(path, false)).unwrap_err();
            assert!(problem.contains("is not inside the folder that was sent"), "{path:?}: {problem}");
        }
        // A file does not replace a link, and so does not write to where it leads.
        fs::write(home.path().join("victim"), "kept").unwrap();
        let target = home.path().join("victim").display().to_string();
        folder.put(&Entry::Link { path: "link".into(), target }).unwrap();
        folder.put(&file("link", false)).unwrap_err();
        assert_eq!(fs::read_to_string(home.path().join("victim")).unwrap(), "kept");
        assert!(WorkFolder::make(home.path(), "../b").is_err() && WorkFolder::make(home.path(), "").is_err());
    }

    #[test]
    fn a_folder_is_used_by_one_command_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let first = WorkFolder::make(home.path(), "a").unwrap();
        let problem = WorkFolder::make(home.path(), "a").unwrap_err();
        assert!(problem.contains("is still running there"), "{problem}");
        remove_abandoned(first.path());
        assert!(first.path().exists(), "it is in use");
        drop(first);
        // As after `kill -9`: the folder is still there, and nobody has its lock.
        let left = home.path().join("a");
        fs::create_dir_all(left.join("files/old")).unwrap();
        fs::set_permissions(left.join("files"), fs::Permissions::from_mode(0o500)).unwrap();
        let second = WorkFolder::make(home.path(), "a").unwrap();
        assert_eq!(fs::read_dir(second.path().join(FILES)).unwrap().count(), 0, "what was left is removed");
        drop(second);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "also from its place aside");
        fs::create_dir(&left).unwrap();
        remove_abandoned(&left);
        assert!(!left.exists());
    }

    #[test]
    fn what_was_set_aside_and_not_removed_goes_with_the_next_folder() {
        let home = tempfile::tempdir().unwrap();
        for name in ["a", "a.old-0", "a.old-1", "ab.old-0"] {
            fs::create_dir_all(home.path().join(name).join("files/old")).unwrap();
        }
        let folder = WorkFolder::make(home.path(), "a").unwrap();
        assert_eq!(folder.remove(), None);
        let left = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["ab.old-0"]);
    }
}
