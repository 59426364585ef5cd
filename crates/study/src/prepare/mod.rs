//! Prepares a race once before contenders start: checks needs, creates the dataset, runs builds, asks for versions. A resumed race asks only for
//! versions.
//!
//! Owns: commands that run to completion, and what is cached of their results. Must not know: servers, load, the method.

mod artefact;
mod build;
mod container;
mod dataset;
mod needs;
mod version;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use deadheat_host::command::{Ran, ShellCommand};
use deadheat_host::process::StartError;
use deadheat_record::{Finding, Plan, Rebuild};
use thiserror::Error;

use crate::file::Study;

pub(crate) use dataset::key as dataset_key;
pub use needs::{Skipped, missing, unmet};
pub use version::Changed;

/// Receives a line for each step of the preparation.
pub type Progress<'p> = &'p mut dyn FnMut(&str);

/// Runs a command under this name to its end, at most for this time.
pub type RunCommand<'r> = &'r dyn Fn(&str, &ShellCommand, Duration) -> Result<Ran, StartError>;

/// The longest time that a build may take, unless the user sets another.
pub const BUILD_LIMIT: Duration = Duration::from_nanos(Rebuild::LIMIT_NS);

/// Why contenders cannot start.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The user interrupted a command.
    #[error("interrupted; nothing was measured yet")]
    Interrupted,
    /// The work folder cannot be created or written to.
    #[error("cannot use the work folder {}: {source}\n  make it writable, or move the study to where you can write", path.display())]
    Work {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path of the work folder is a folder of another user.
    #[error("the work folder {} belongs to another user\n  remove it, or move the study to a shorter path", .0.display())]
    Foreign(PathBuf),
    /// An input file of the dataset cannot be read.
    #[error("cannot read {}: {source}\n  make it readable, or correct `inputs` of [dataset]", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The dataset's command or a build failed.
    #[error("{what} failed: `{command}` {ended}{tail}\n  {remedy}")]
    Failed {
        /// What the command should have made.
        what: String,
        /// The command as it was run.
        command: String,
        /// How it ended, in words.
        ended: String,
        /// The last lines of its output, ready for display.
        tail: String,
        /// What to do.
        remedy: String,
    },
}

/// What the preparation found.
#[derive(Debug, Default)]
pub struct Prepared {
    /// Complaints about versions.
    pub findings: Vec<Finding>,
    /// Contenders of a revision that could not be built: their name, and why.
    pub unbuilt: Vec<(String, PrepareError)>,
}

/// Creates the work folder and the dataset, runs the builds, and adds the versions to the plan.
///
/// # Errors
/// The work folder, the dataset or a build of the study itself cannot be made. An unknown version is only a finding.
pub fn prepare(
    study: &Study,
    plan: &mut Plan,
    run: RunCommand<'_>,
    build_limit: Duration,
    progress: Progress<'_>,
) -> Result<Prepared, PrepareError> {
    make_work(&plan.work)?;
    dataset::make(study, plan, run, progress)?;
    let unbuilt = build::all(study, plan, run, build_limit, progress)?;
    artefact::all(study, plan);
    let findings = version::all(study, plan);
    let names: Vec<String> = unbuilt.iter().map(|(name, _)| name.clone()).collect();
    container::all(plan, &names)?;
    let baseline = plan.contenders.iter().find(|one| one.name == plan.method.baseline);
    let same = baseline.map(|one| (one.version.clone(), one.artefact_bytes)).unwrap_or_default();
    for control in plan.contenders.iter_mut().filter(|one| one.control) {
        (control.version, control.artefact_bytes) = same.clone();
    }
    Ok(Prepared { findings, unbuilt })
}

/// Asks again for the versions in the plan and returns those that changed. Skips contenders that are `out`, because they are no longer raced.
///
/// # Errors
/// The work folder, where commands write, cannot be created. An unknown version is only reported to `progress`.
pub fn changed_versions(
    study: &Study,
    plan: &Plan,
    out: &[String],
    progress: Progress<'_>,
) -> Result<Vec<Changed>, PrepareError> {
    make_work(&plan.work)?;
    let mut changed = version::changed(study, plan, out, progress);
    changed.extend(container::changed(plan, out));
    Ok(changed)
}

/// Creates the work folder. A folder next to the study gets the usual permissions, because a database may run as another user. A folder below
/// `/tmp`, where any user could have created one with this name, must belong to this user alone. Git ignores what is in a new folder next to a study.
pub fn make_work(work: &Path) -> Result<(), PrepareError> {
    let failed = |source| PrepareError::Work { path: work.to_owned(), source };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    if work.starts_with("/tmp") {
        builder.mode(0o700);
    }
    let is_new = !work.exists() && work.with_file_name(crate::file::FILE_NAME).is_file();
    builder.create(work).map_err(failed)?;
    if is_new {
        let _ = fs::write(work.join(".gitignore"), "*\n");
    }
    let owner = fs::symlink_metadata(work).map_err(failed)?.uid();
    if work.starts_with("/tmp") && owner != rustix::process::geteuid().as_raw() {
        return Err(PrepareError::Foreign(work.to_owned()));
    }
    builder.create(work.join("logs")).map_err(failed)
}

#[cfg(test)]
mod tests;
