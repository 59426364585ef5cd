//! The files of a machine below a root folder, which tests replace by a fake tree.
//!
//! Owns: reading files as text and numbers. Must not know: which files there are.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of one machine.
pub(super) struct Tree<'a> {
    /// `/`, or the root of a fake tree.
    pub(super) root: &'a Path,
    /// Whether this process may make folders in a folder.
    pub(super) writable: &'a dyn Fn(&Path) -> bool,
}

impl Tree<'_> {
    /// A file's text without surrounding white space; none if the file cannot be read or is empty.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(path)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The number in a file that holds one number.
    pub(super) fn number<N: std::str::FromStr>(&self, path: &str) -> Option<N> {
        self.text(path)?.parse().ok()
    }

    /// The value after a name in a file with lines such as `MemTotal: 5 kB`.
    pub(super) fn field(&self, path: &str, name: &str) -> Option<String> {
        let text = self.text(path)?;
        let value =
            |line: &str| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim().to_owned());
        text.lines().find_map(value)
    }

    /// A size in kB after a name, converted to bytes.
    pub(super) fn kib(&self, path: &str, name: &str) -> Option<u64> {
        let value = self.field(path, name)?;
        Some(value.strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    }

    /// A folder's entries whose names are `name` and a number, sorted by number.
    pub(super) fn numbered(&self, folder: &str, name: &str) -> Vec<(usize, PathBuf)> {
        let Ok(entries) = fs::read_dir(self.path(folder)) else { return Vec::new() };
        let number = |entry: &fs::DirEntry| entry.file_name().to_str()?.strip_prefix(name)?.parse().ok();
        let mut found: Vec<(usize, PathBuf)> =
            entries.flatten().filter_map(|entry| Some((number(&entry)?, entry.path()))).collect();
        found.sort();
        found
    }

    /// Whether this file or folder exists.
    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The path below the root.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}
