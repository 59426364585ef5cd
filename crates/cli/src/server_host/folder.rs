//! The content of a folder, as it is sent to another machine.
//!
//! Owns: what is sent and what is left out. Must not know: how it is sent, what a race is.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use deadheat_remote::server_host::message::Entry;
use deadheat_report::plain;
use deadheat_study::choices::UsageError;
use deadheat_study::file as study;
use ignore::{DirEntry, WalkBuilder};

/// The largest content, in bytes, and the most files, folders and links. More is a mistake, such as a folder of downloads.
const MOST_BYTES: u64 = 1 << 30;
const MOST_ENTRIES: usize = 100_000;
/// Bytes of a file that are sent at a time.
const PIECE: usize = 64 * 1024;
/// How many names are shown.
const SHOWN: usize = 4;

/// A folder that is sent.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Its path.
    path: PathBuf,
    /// Its name, which it also has on the other machine.
    name: String,
    content: Vec<Item>,
    files: usize,
    bytes: u64,
    left_out: Vec<String>,
}

/// Something in the folder, with its path in it.
#[derive(Debug, PartialEq, Eq)]
struct Item {
    path: String,
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Folder,
    File { executable: bool },
    Link { target: String },
}

impl Folder {
    /// Reads what is in the folder, without the files' bytes. With `ignored`, files that git ignores are included.
    ///
    /// # Errors
    /// The folder cannot be read, or is too large, or is no folder of a project.
    pub(crate) fn read(path: &Path, ignored: bool) -> Result<Self, UsageError> {
        let unreadable = |error: &dyn std::fmt::Display| {
            UsageError::new(
                format!("cannot send {}: {error}", path.display()),
                "make it readable, or name another folder with --send",
            )
        };
        let path = fs::canonicalize(path).map_err(|error| unreadable(&error))?;
        let home = std::env::var_os("HOME").and_then(|home| fs::canonicalize(home).ok());
        let (Some(name), false) = (path.file_name(), home.as_deref() == Some(&*path)) else {
            return Err(UsageError::new(
                format!("deadheat does not send {} as a whole: it is no folder of a project", path.display()),
                "run it in the folder of your servers, or name that folder with --send",
            ));
        };
        let name = utf8(Path::new(name))?;
        let mut folder = Self { path, name, content: Vec::new(), files: 0, bytes: 0, left_out: Vec::new() };
        let mut kept = BTreeSet::new();
        let walk = WalkBuilder::new(&folder.path)
            .standard_filters(!ignored)
            .ignore(false)
            .hidden(false)
            .require_git(false)
            .follow_links(false)
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .filter_entry(|entry| !is_own(entry.path()))
            .build();
        for entry in walk {
            let entry = entry.map_err(|error| unreadable(&error))?;
            if entry.depth() > 0 {
                folder.add(&entry, &mut kept)?;
            }
        }
        if !ignored {
            folder.left_out = left_out(&folder.path, &kept);
        }
        // No file is written by way of a link if links come last.
        folder.content.sort_by_key(|item| matches!(item.kind, Kind::Link { .. }));
        Ok(folder)
    }

    fn add(&mut self, entry: &DirEntry, kept: &mut BTreeSet<PathBuf>) -> Result<(), UsageError> {
        let place = entry.path().strip_prefix(&self.path).unwrap_or(entry.path());
        kept.insert(entry.path().to_owned());
        let Some(kind) = entry.file_type() else { return Ok(()) };
        let kind = if kind.is_dir() {
            Kind::Folder
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            Kind::Link { target: utf8(&target)? }
        } else if kind.is_file() {
            let facts = entry.metadata().map_err(|error| {
                UsageError::new(
                    format!("cannot send {}: {error}", entry.path().display()),
                    "make it readable",
                )
            })?;
            self.files += 1;
            self.bytes += facts.len();
            Kind::File { executable: facts.permissions().mode() & 0o100 != 0 }
        } else {
            // Sockets, pipes and devices have no content.
            return Ok(());
        };
        self.content.push(Item { path: utf8(place)?, kind });
        if self.bytes > MOST_BYTES || self.content.len() > MOST_ENTRIES {
            return Err(UsageError::new(
                format!(
                    "the folder {} is too large to be sent: at most 1 GiB in {MOST_ENTRIES} files; {} makes it so",
                    self.path.display(),
                    self.largest()
                ),
                "tell git to ignore what need not be sent, or name a smaller folder with --send",
            ));
        }
        Ok(())
    }

    /// The entry of the folder that has the most bytes, of those that were seen.
    fn largest(&self) -> String {
        let mut sums: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
        for item in &self.content {
            let size = fs::symlink_metadata(self.path.join(&item.path)).map_or(0, |facts| facts.len());
            *sums.entry(item.path.split('/').next().unwrap_or_default()).or_default() += size;
        }
        sums.into_iter().max_by_key(|(_, size)| *size).map(|(name, _)| name.to_owned()).unwrap_or_default()
    }

    /// Its path on this machine.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its name, here and there.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What is sent, in words.
    pub(crate) fn summary(&self) -> String {
        let files = if self.files == 1 { "file" } else { "files" };
        let size = match self.bytes {
            bytes if bytes < 1_000 => format!("{bytes} B"),
            bytes if bytes < 1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
            bytes => format!("{:.1} MB", bytes as f64 / 1e6),
        };
        let sent = format!("{}: {} {files}, {size}", self.path.display(), self.files);
        let shown: Vec<String> = self.left_out.iter().take(SHOWN).map(|name| plain(name)).collect();
        match self.left_out.len() {
            0 => sent,
            count if count > SHOWN => format!(
                "{sent}; not what git ignores: {} and {} more (--send-ignored sends them)",
                shown.join(", "),
                count - SHOWN
            ),
            _ => format!("{sent}; not what git ignores: {} (--send-ignored sends it)", shown.join(", ")),
        }
    }

    /// Hands the whole content to `put`, piece by piece. Reads a file only when its turn has come.
    ///
    /// # Errors
    /// Those of `put`, and a file that cannot be read.
    pub(crate) fn send<E: From<UsageError>>(
        &self,
        put: &mut dyn FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        put(Entry::Folder { path: self.name.clone() })?;
        for Item { path, kind } in &self.content {
            let there = format!("{}/{path}", self.name);
            match kind {
                Kind::Folder => put(Entry::Folder { path: there })?,
                Kind::Link { target } => put(Entry::Link { path: there, target: target.clone() })?,
                Kind::File { executable } => {
                    put(Entry::File { path: there, executable: *executable })?;
                    send_file(&self.path.join(path), put)?;
                }
            }
        }
        Ok(())
    }
}

/// Hands the bytes of a file to `put`.
///
/// # Errors
/// Those of `put`, and that it cannot be read.
pub(crate) fn send_file<E: From<UsageError>>(
    path: &Path,
    put: &mut dyn FnMut(Entry) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |error: std::io::Error| {
        UsageError::new(format!("cannot send {}: {error}", path.display()), "make it readable, or remove it")
    };
    let mut file = File::open(path).map_err(failed)?;
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).map_err(failed)? {
            0 => return Ok(()),
            count => put(Entry::Bytes(piece[..count].to_vec()))?,
        }
    }
}

/// Whether this is a folder of git or of deadheat itself, which is never sent: the repository, records, and what deadheat makes for a study.
fn is_own(path: &Path) -> bool {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(".git" | "deadheat-records") => true,
        Some("work") => path.with_file_name(study::FILE_NAME).is_file(),
        _ => false,
    }
}

/// What is in the folder and not in `kept`. Of a folder that is left out, nothing below it is named.
fn left_out(root: &Path, kept: &BTreeSet<PathBuf>) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if is_own(&path) {
                continue;
            }
            if !kept.contains(&path) {
                found.push(path.strip_prefix(root).unwrap_or(&path).display().to_string());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

fn utf8(path: &Path) -> Result<String, UsageError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let problem = format!("cannot send {}: its name is not UTF-8", path.display());
        UsageError::new(problem, "rename it, or tell git to ignore it")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn paths(folder: &Folder) -> Vec<&str> {
        folder.content.iter().map(|item| item.path.as_str()).collect()
    }

    #[test]
    fn what_git_ignores_is_left_out_and_named() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("mine");
        write(&root, ".gitignore", "node_modules\n*.tmp\n");
        write(&root, "study.toml", "x");
        write(&root, "node/server.mjs", "y");
        write(&root, "node/node_modules/a/index.js", "z");
        write(&root, "node/b.tmp", "z");
        write(&root, ".hidden/c", "z");
        for own in [".git/config", "work/dataset.db", "deadheat-records/r.jsonl"] {
            write(&root, own, "z");
        }
        write(&root, "node/work/kept", "beside no study");
        let folder = Folder::read(&root, false).unwrap();
        let sent = [
            ".gitignore",
            ".hidden",
            ".hidden/c",
            "node",
            "node/server.mjs",
            "node/work",
            "node/work/kept",
            "study.toml",
        ];
        assert_eq!(paths(&folder), sent);
        assert_eq!((folder.name(), folder.files), ("mine", 5));
        assert_eq!(folder.left_out, ["node/b.tmp", "node/node_modules"]);
        assert!(
            folder
                .summary()
                .ends_with("git ignores: node/b.tmp, node/node_modules (--send-ignored sends it)")
        );
        let all = Folder::read(&root, true).unwrap();
        assert!(paths(&all).contains(&"node/node_modules/a/index.js") && all.left_out.is_empty());
        assert!(!paths(&all).iter().any(|path| path.starts_with(".git/") || path.starts_with("work")));
    }

    #[test]
    fn links_come_last_and_are_not_followed() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("mine");
        write(outer.path(), "secret", "outside");
        write(&root, "z", "inside");
        symlink("../secret", root.join("a")).unwrap();
        symlink(outer.path(), root.join("b")).unwrap();
        let _socket = UnixListener::bind(root.join("c.sock")).unwrap();
        let folder = Folder::read(&root, false).unwrap();
        assert_eq!(paths(&folder), ["z", "a", "b"]);
        let mut sent = Vec::new();
        folder
            .send::<UsageError>(&mut |entry| {
                sent.push(entry);
                Ok(())
            })
            .unwrap();
        assert_eq!(
            sent,
            [
                Entry::Folder { path: "mine".into() },
                Entry::File { path: "mine/z".into(), executable: false },
                Entry::Bytes(b"inside".into()),
                Entry::Link { path: "mine/a".into(), target: "../secret".into() },
                Entry::Link { path: "mine/b".into(), target: outer.path().display().to_string() },
            ]
        );
    }

    #[test]
    fn a_folder_that_is_too_large_names_what_makes_it_so() {
        let outer = tempfile::tempdir().unwrap();
        write(outer.path(), "small", "x");
        fs::create_dir(outer.path().join("models")).unwrap();
        // Sparse: it needs no room.
        File::create(outer.path().join("models/large")).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let error = Folder::read(outer.path(), false).unwrap_err();
        assert!(
            error.problem.contains("at most 1 GiB") && error.problem.ends_with("models makes it so"),
            "{error}"
        );
        assert!(Folder::read(Path::new("/"), false).unwrap_err().problem.contains("no folder of a project"));
        assert!(
            Folder::read(Path::new("/no/such"), false).unwrap_err().problem.contains("cannot send /no/such")
        );
    }
}
