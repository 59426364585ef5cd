//! Holds a race at a known place, with a contender that does not start again until the test lets it.
//!
//! A test that interrupts a race "in the middle" must not guess when that is. A held contender waits at its start, so that the race
//! waits for it, however fast or slow the machine is.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::invocation::Running;
use crate::kit::Kit;
use crate::server::quote;

/// A contender that waits at one of its starts, and at all later ones, until the test calls [`Hold::let_go`].
#[derive(Debug)]
pub struct Hold {
    folder: PathBuf,
}

impl Hold {
    pub(crate) fn new(kit: &Kit) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = kit.path().join(format!("hold-{number}"));
        std::fs::create_dir(&folder).expect("a folder for what is held");
        Self { folder }
    }

    /// The command line of `server`, which waits at start number `start` (counted from 1) and at all later ones. A race starts a contender
    /// once for its pilot, and once for each epoch.
    pub fn at_start(&self, start: usize, server: &str) -> String {
        let folder = quote(self.folder.to_str().expect("a temporary folder whose path is UTF-8"));
        format!(
            "echo >> {folder}/starts; if [ $(wc -l < {folder}/starts) -ge {start} ]; then touch {folder}/reached; \
             while [ ! -e {folder}/go ]; do sleep 0.02; done; fi; exec {server}"
        )
    }

    /// Waits until the run has reached the start at which the contender waits.
    ///
    /// # Panics
    /// As [`Running::wait_for`].
    pub fn wait(&self, running: &mut Running) {
        running.wait_for("the contender that is held", || self.folder.join("reached").exists());
    }

    /// Lets the contender start, now and at all later starts.
    ///
    /// # Panics
    /// When it cannot write the file that lets the contender start.
    pub fn let_go(&self) {
        std::fs::write(self.folder.join("go"), "").expect("the file that lets the contender go");
    }
}
