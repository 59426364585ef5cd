//! Creates the dataset once. Keeps it until its command or one of its inputs changes, and never exposes an incomplete file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deadheat_record::Plan;
use sha2::{Digest, Sha256};

use super::{PrepareError, Progress, RunCommand};
use crate::file::{Dataset, Study};
use deadheat_host::command::{self, Ran, ShellCommand};

/// Files that SQLite leaves next to a database. Stale ones would damage a new database.
const SIDE_FILES: [&str; 3] = ["-wal", "-shm", "-journal"];

pub(super) fn make(
    study: &Study,
    plan: &Plan,
    runs: RunCommand<'_>,
    progress: Progress<'_>,
) -> Result<(), PrepareError> {
    let (Some(dataset), Some(output)) = (&study.dataset, &plan.dataset) else { return Ok(()) };
    let key = key(dataset)?;
    let key_file = with_suffix(output, ".key");
    if output.exists() && fs::read_to_string(&key_file).is_ok_and(|kept| kept == key) {
        return Ok(());
    }
    progress(&format!("making the dataset {} ...", dataset.output.get_ref()));
    let work = |source| PrepareError::Work { path: plan.work.clone(), source };
    let fresh = fresh_name(output);
    fs::create_dir_all(output.parent().unwrap_or(&plan.work)).map_err(work)?;
    remove_with_side_files(&fresh).map_err(work)?;
    run(study, dataset, plan, &fresh, runs)?;
    remove(&key_file).map_err(work)?;
    remove_with_side_files(output).map_err(work)?;
    fs::rename(&fresh, output).map_err(work)?;
    let fresh_key = with_suffix(&fresh, ".key");
    fs::write(&fresh_key, key).and_then(|()| fs::rename(&fresh_key, &key_file)).map_err(work)
}

fn run(
    study: &Study,
    dataset: &Dataset,
    plan: &Plan,
    fresh: &Path,
    runs: RunCommand<'_>,
) -> Result<(), PrepareError> {
    let mut values = command::values(plan);
    values.remove("dataset");
    values.insert("output".into(), fresh.display().to_string());
    let log = plan.work.join("logs/dataset.log");
    let order = ShellCommand::new(dataset.command.get_ref(), &study.folder, [], &values, log);
    let failed = |ended: String, remedy: String| PrepareError::Failed {
        what: format!("the dataset {}", dataset.output.get_ref()),
        command: order.shown(),
        ended,
        tail: order.tail(),
        remedy,
    };
    let again = || {
        format!(
            "fix the command of [dataset] in {}, then try again",
            study.folder.join("study.toml").display()
        )
    };
    // Data may take as long as it takes.
    match runs("the dataset", &order, Duration::MAX) {
        Err(error) => Err(failed(format!("could not be run: {error}"), again())),
        Ok(Ran::Interrupted) => {
            let _ = remove_with_side_files(fresh);
            Err(PrepareError::Interrupted)
        }
        Ok(Ran::Ended(status)) if !status.success() => {
            let _ = remove_with_side_files(fresh);
            Err(failed(format!("ended with {}", command::in_words(status)), again()))
        }
        Ok(_) if !fresh.exists() => {
            let remedy = "the command must write its result to {output} (also in the variable OUTPUT)";
            Err(failed("succeeded, but did not write its output".into(), remedy.into()))
        }
        Ok(_) => Ok(()),
    }
}

/// A digest of what the dataset depends on: its command and the contents of its inputs.
pub(crate) fn key(dataset: &Dataset) -> Result<String, PrepareError> {
    let mut digest = Sha256::new();
    digest.update(dataset.command.get_ref());
    for path in &dataset.inputs {
        let bytes = fs::read(path).map_err(|source| PrepareError::Input { path: path.clone(), source })?;
        digest.update([0]);
        digest.update(Sha256::digest(&bytes));
    }
    Ok(crate::hex(&digest.finalize()))
}

/// A temporary path next to the output with the same extension, because some programs depend on the extension.
fn fresh_name(output: &Path) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!("new-{}-{name}", std::process::id()))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

fn remove_with_side_files(path: &Path) -> io::Result<()> {
    SIDE_FILES.iter().try_for_each(|suffix| remove(&with_suffix(path, suffix)))?;
    remove(path)
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
