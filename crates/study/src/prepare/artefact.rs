//! Measures the size of each contender's deployment: the files that the study lists, after the build.

use std::fs;
use std::path::Path;

use deadheat_record::Plan;

use crate::file::Study;

/// The depth to which folders are searched.
const DEPTH: usize = 64;

/// Adds the sizes to the plan; no size for a contender with a missing file.
pub(super) fn all(study: &Study, plan: &mut Plan) {
    for planned in &mut plan.contenders {
        let named = study.contender(&planned.name);
        let files = named.map_or(&[][..], |one| &one.artefacts);
        let sizes: Option<Vec<u64>> = files.iter().map(|path| size(path, DEPTH)).collect();
        planned.artefact_bytes = sizes.filter(|sizes| !sizes.is_empty()).map(|sizes| sizes.iter().sum());
    }
}

/// The bytes of a file, or of all files in a folder. Follows links listed in the study; other links count as 0.
fn size(path: &Path, depth: usize) -> Option<u64> {
    let about = fs::metadata(path).ok()?;
    if !about.is_dir() {
        return Some(about.len());
    }
    let mut sum = 0;
    for entry in fs::read_dir(path).ok()? {
        let entry = entry.ok()?;
        if depth > 0 && !entry.file_type().ok()?.is_symlink() {
            sum += size(&entry.path(), depth - 1)?;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("dist/inner")).unwrap();
        fs::write(at("dist/a"), [0; 1_000]).unwrap();
        fs::write(at("dist/inner/b"), [0; 24]).unwrap();
        std::os::unix::fs::symlink(at("dist/a"), at("dist/inner/again")).unwrap();
        std::os::unix::fs::symlink(at("dist/a"), at("link")).unwrap();
        assert_eq!(
            [size(&at("dist"), 9), size(&at("dist/a"), 9), size(&at("link"), 9)],
            [Some(1_024), Some(1_000), Some(1_000)]
        );
        assert_eq!(size(&at("absent"), 9), None);
    }
}
