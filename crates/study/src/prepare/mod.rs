//! What must be done once before contenders start: needs are looked for, the dataset and the builds are made,
//! versions are asked. Where a race goes on, only versions are, again.
//!
//! Owns: commands that run to their end, and what is cached of them. Must not know: servers, load, the method.

mod artefact;
mod build;
mod dataset;
mod needs;
mod version;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use deadheat_record::{Finding, Plan};
use thiserror::Error;

use crate::file::Study;

pub use needs::{Skipped, missing, unmet};
pub use version::Changed;

/// Told what is being done, a line each.
pub type Progress<'p> = &'p mut dyn FnMut(&str);

/// Why contenders cannot be started.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The work folder cannot be made or written to.
    #[error("cannot use the work folder {}: {source}\n  make it writable, or move the study to where you can write", path.display())]
    Work {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else's folder lies where the work folder belongs.
    #[error("the work folder {} belongs to another user\n  remove it, or move the study to a shorter path", .0.display())]
    Foreign(PathBuf),
    /// A file that decides about the dataset cannot be read.
    #[error("cannot read {}: {source}\n  it is an input of [dataset]", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The dataset's command or a build did not succeed.
    #[error("{what} failed: `{command}` {ended}{tail}\n  {remedy}")]
    Failed {
        /// What was being made.
        what: String,
        /// The command as it was run.
        command: String,
        /// How it ended, in words.
        ended: String,
        /// Its last lines, ready to be shown.
        tail: String,
        /// What to do.
        remedy: String,
    },
}

/// Makes the work folder, the dataset and the builds, and asks for versions, which go into the plan.
///
/// # Errors
/// When the work folder, the dataset or a build cannot be made. A version that cannot be told is a finding.
pub fn prepare(study: &Study, plan: &mut Plan, progress: Progress<'_>) -> Result<Vec<Finding>, PrepareError> {
    make_work(&plan.work)?;
    dataset::make(study, plan, progress)?;
    build::all(study, plan, progress)?;
    artefact::all(study, plan);
    Ok(version::all(study, plan))
}

/// Asks again for the versions that the plan has, and gives those that are others by now. Contenders that are `out` are not
/// asked, since nobody races them any more.
///
/// # Errors
/// When the work folder cannot be made, where commands write. A version that cannot be told is told to `progress`.
pub fn changed_versions(
    study: &Study,
    plan: &Plan,
    out: &[String],
    progress: Progress<'_>,
) -> Result<Vec<Changed>, PrepareError> {
    make_work(&plan.work)?;
    Ok(version::changed(study, plan, out, progress))
}

/// A study's own folder is made as usual, since a database may run as another user; one below `/tmp`, where anybody
/// could have put a folder of that name before, is this user's alone.
pub fn make_work(work: &Path) -> Result<(), PrepareError> {
    let failed = |source| PrepareError::Work { path: work.to_owned(), source };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    if work.starts_with("/tmp") {
        builder.mode(0o700);
    }
    builder.create(work).map_err(failed)?;
    let owner = fs::symlink_metadata(work).map_err(failed)?.uid();
    if work.starts_with("/tmp") && owner != rustix::process::geteuid().as_raw() {
        return Err(PrepareError::Foreign(work.to_owned()));
    }
    builder.create(work.join("logs")).map_err(failed)
}

#[cfg(test)]
mod tests;
