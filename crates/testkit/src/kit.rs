//! The environment of one test: a temporary folder, the path of the binary, and an environment variable that marks
//! every process the test starts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use crate::bed::Bed;
use crate::hold::Hold;
use crate::invocation::Invocation;
use crate::processes::{Process, kill_all_with_env, processes_with_env};
use crate::race::Race;
use crate::wait::wait_until;

/// The environment variable that marks a kit's processes.
pub(crate) const MARK: &str = "DEADHEAT_TESTKIT_MARK";

/// A value for [`MARK`] that no other kit on this machine has.
pub(crate) fn new_mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let time = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    format!("{}-{}-{time}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A temporary folder and a binary to run in it. Dropping the kit kills every process that was started from it and
/// removes the folder.
#[derive(Debug)]
pub struct Kit {
    binary: PathBuf,
    mark: String,
    folder: TempDir,
    captures: TempDir,
}

impl Kit {
    /// A new, empty folder for the binary at this path: in tests, `env!("CARGO_BIN_EXE_deadheat")`.
    ///
    /// # Panics
    /// When it cannot create a temporary folder.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        let folder = || tempfile::Builder::new().prefix("deadheat-test-").tempdir();
        Self {
            binary: binary.into(),
            mark: new_mark(),
            folder: folder().expect("a temporary folder"),
            captures: folder().expect("a temporary folder"),
        }
    }

    /// The folder: the working directory of everything that the kit starts.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file below the folder, with the folders it needs, and returns its path.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).unwrap_or_else(|error| panic!("{}: {error}", parent.display()));
        }
        std::fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// The text of a file below the folder.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn read(&self, name: impl AsRef<Path>) -> String {
        let path = self.path().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The binary with these arguments, not yet started.
    pub fn deadheat<I, A>(&self, arguments: I) -> Invocation<'_>
    where
        I: IntoIterator<Item = A>,
        A: AsRef<OsStr>,
    {
        Invocation::new(self, Command::new(&self.binary)).args(arguments)
    }

    /// The binary with these arguments where the control commands of a bed run ([`Bed::inside`]), not yet started.
    pub fn deadheat_inside<I, A>(&self, bed: &Bed, arguments: I) -> Invocation<'_>
    where
        I: IntoIterator<Item = A>,
        A: AsRef<OsStr>,
    {
        Invocation::new(self, bed.inside(&self.binary)).args(arguments)
    }

    /// Another command, not yet started: for instance one that runs the binary as another user.
    pub fn command(&self, command: Command) -> Invocation<'_> {
        Invocation::new(self, command)
    }

    /// A race of commands, not yet started.
    pub fn race(&self) -> Race<'_> {
        Race::new(self)
    }

    /// A contender that waits for the test; see [`Hold`].
    ///
    /// # Panics
    /// When it cannot create the folder.
    pub fn hold(&self) -> Hold {
        Hold::new(self)
    }

    /// The environment variable that marks the processes of this kit, as key and value.
    pub fn mark(&self) -> (&'static str, &str) {
        (MARK, &self.mark)
    }

    /// The living processes that this kit started, directly or through other processes.
    pub fn leftovers(&self) -> Vec<Process> {
        processes_with_env(MARK, &self.mark)
    }

    /// Fails when a process of this kit still lives after five seconds. On a busy machine a process may need time to end.
    ///
    /// # Panics
    /// With a list of the processes that are left.
    pub fn assert_nothing_left(&self) {
        if !wait_until(Duration::from_secs(5), || self.leftovers().is_empty()) {
            let left: Vec<String> = self.leftovers().iter().map(ToString::to_string).collect();
            panic!("processes are left behind:\n{}", left.join("\n"));
        }
    }

    /// Where the output of runs is captured: outside the folder, which belongs to the test.
    pub(crate) fn captures(&self) -> &Path {
        self.captures.path()
    }
}

impl Drop for Kit {
    fn drop(&mut self) {
        kill_all_with_env(MARK, &self.mark);
    }
}
