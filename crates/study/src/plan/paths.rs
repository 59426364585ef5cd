//! Where a race keeps its files: the work folder, and the path of the record.

use std::path::{Path, PathBuf};

use deadheat_record::{Plan, Source};
use jiff::Zoned;
use sha2::{Digest, Sha256};

use crate::file::Study;

/// The longest path of a work folder, in bytes: the path of a unix socket in it must be shorter than the kernel's limit of 108 bytes.
const WORK_LENGTH: usize = 80;

/// The parts of the environment that decide where files are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// `XDG_CACHE_HOME`, else `~/.cache`. `None` if neither is available.
    pub cache: Option<PathBuf>,
    /// The folder for temporary files; a short path.
    pub temporary: PathBuf,
    /// A folder whose files are in memory, if there is one.
    pub memory: Option<PathBuf>,
    /// The id of this user.
    pub user: u32,
    /// The id of this process.
    pub process: u32,
}

impl Places {
    /// Reads the environment of this process.
    pub fn of_process() -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        Self {
            cache: variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache"))),
            temporary: "/tmp".into(),
            memory: Some(PathBuf::from("/dev/shm")).filter(|path| path.is_dir()),
            user: rustix::process::getuid().as_raw(),
            process: std::process::id(),
        }
    }

    /// The work folder: `work` next to the study's file, or a folder in the cache for commands of the command line. If that path is too long for
    /// unix sockets: a folder below `/tmp` that stays the same for the same study and user.
    pub fn work(&self, study: &Study) -> PathBuf {
        if study.source == Source::AdHoc {
            let name = format!("{}-{}", Plan::AD_HOC, self.process);
            let cached = self.cache.as_ref().map(|cache| cache.join("deadheat").join(&name));
            let short = || self.temporary.join(format!("deadheat-{}-{name}", self.user));
            return cached.filter(|path| fits(path)).unwrap_or_else(short);
        }
        let beside = study.folder.join("work");
        if fits(&beside) {
            beside
        } else {
            self.temporary.join(format!("deadheat-{}-{}", self.user, mark(&study.folder)))
        }
    }

    /// The path of the dataset's file: in the work folder, or in memory if the study asks for it and the machine has such a folder. The file stays
    /// there for the next race.
    pub fn dataset(&self, study: &Study, work: &Path) -> Option<PathBuf> {
        let dataset = study.dataset.as_ref()?;
        let memory = self.memory.as_ref().filter(|_| dataset.tmpfs);
        let folder =
            memory.map(|memory| memory.join(format!("deadheat-{}-{}", self.user, mark(&study.folder))));
        Some(folder.as_deref().unwrap_or(work).join(dataset.output.get_ref()))
    }
}

fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= WORK_LENGTH
}

/// Eight letters derived from a path.
pub(crate) fn mark(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    crate::hex(&digest[..4])
}

/// The default of `--record`: `deadheat-records/NAME-YYYYMMDD-HHMMSS.jsonl`.
pub fn record_path(study: &str, now: &Zoned) -> PathBuf {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = study.chars().map(plain).collect();
    Path::new("deadheat-records").join(format!("{name}-{}.jsonl", now.strftime("%Y%m%d-%H%M%S")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ad_hoc::AdHoc;

    fn places(cache: &str) -> Places {
        Places { cache: Some(cache.into()), temporary: "/tmp".into(), memory: None, user: 1000, process: 77 }
    }

    fn ad_hoc(folder: &str) -> Study {
        let ad_hoc = AdHoc {
            commands: vec!["a".into(), "b".into()],
            path: "/".into(),
            method: "GET".into(),
            ..AdHoc::default()
        };
        super::super::study_of(&ad_hoc, Path::new(folder)).unwrap()
    }

    #[test]
    fn work_folders_leave_room_for_sockets() {
        let long = format!("/{}", "x".repeat(90));
        let study = |folder: &str| Study { source: Source::Study(folder.into()), ..ad_hoc(folder) };
        for (study, cache, work) in [
            (ad_hoc("/here"), "/home/a/.cache", "/home/a/.cache/deadheat/ad-hoc-77"),
            (ad_hoc("/here"), long.as_str(), "/tmp/deadheat-1000-ad-hoc-77"),
            (study("/s/trending"), "/c", "/s/trending/work"),
        ] {
            assert_eq!(places(cache).work(&study), Path::new(work));
        }
        let (first, other) =
            (places("/c").work(&study(&long)), places("/c").work(&study(&format!("{long}y"))));
        assert!(first.to_string_lossy().starts_with("/tmp/deadheat-1000-") && fits(&first), "{first:?}");
        assert_eq!(first, places("/other").work(&study(&long)), "the same study keeps its folder");
        assert_ne!(first, other);
    }

    #[test]
    fn a_dataset_is_in_memory_where_the_study_says_so() {
        let dataset = |tmpfs| crate::file::Dataset {
            command: toml::Spanned::new(0..0, "make".into()),
            inputs: Vec::new(),
            output: toml::Spanned::new(0..0, "d.db".into()),
            tmpfs,
        };
        let here = Places { memory: Some("/dev/shm".into()), ..places("/c") };
        let path = |tmpfs, places: &Places| {
            let study = Study { dataset: Some(dataset(tmpfs)), ..ad_hoc("/s") };
            places.dataset(&study, Path::new("/s/work")).unwrap().display().to_string()
        };
        assert_eq!(path(false, &here), "/s/work/d.db");
        assert_eq!(path(true, &places("/c")), "/s/work/d.db", "there is no such place");
        assert!(
            path(true, &here).starts_with("/dev/shm/deadheat-1000-") && path(true, &here).ends_with("/d.db")
        );
    }

    #[test]
    fn records_are_named_after_study_and_time() {
        let now = jiff::civil::date(2025, 3, 4).at(5, 6, 7, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        assert_eq!(record_path("a b/c", &now), Path::new("deadheat-records/a-b-c-20250304-050607.jsonl"));
    }
}
