//! Finds control groups by name, on version 1 (a tree for each controller) and version 2 (one tree).

use std::path::{Path, PathBuf};

/// All control groups under `/sys/fs/cgroup`, at any depth and of any controller, whose last path component starts with
/// `prefix`; sorted. Empty on a system without control groups.
pub fn leftover_cgroups(prefix: &str) -> Vec<PathBuf> {
    cgroups_under(Path::new("/sys/fs/cgroup"), prefix)
}

/// Does the same as [`leftover_cgroups`] in the tree at `root`. It skips folders that vanish or cannot be read. It does not follow
/// symbolic links (`cpu` to `cpu,cpuacct` on version 1), so that it lists each group once.
pub fn cgroups_under(root: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(prefix) {
                    found.push(entry.path());
                }
                folders.push(entry.path());
            }
        }
    }
    found.sort();
    found
}
