//! Writes requested data to files or to standard output. Data on standard output excludes all other output there.
//!
//! Owns: the destinations. Must not know: the data.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{Failure, write_atomically};
use crate::console::Console;
use crate::flags::Output;
use deadheat_study::choices::UsageError;

/// Reserves standard output for the one of two outputs that needs it.
///
/// # Errors
/// Both outputs need it.
pub(crate) fn keep_for_data(
    outputs: [(&str, Option<&Output>); 2],
    console: &mut Console,
) -> Result<(), UsageError> {
    let [first, second] = outputs.map(|(_, to)| to == Some(&Output::Standard));
    if first && second {
        let problem = format!("{} and {} both go to standard output", outputs[0].0, outputs[1].0);
        return Err(UsageError::new(problem, "give one of them a file"));
    }
    if first || second {
        console.keep_output_for_data();
    }
    Ok(())
}

/// Checks that no output would replace an input or another output.
///
/// # Errors
/// The first output that would.
pub(super) fn apart<'p>(
    inputs: impl IntoIterator<Item = &'p Path>,
    outputs: &[(&str, Option<&Output>)],
) -> Result<(), UsageError> {
    let place = |path: &Path| {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let new = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(new)
    };
    let record = |path: &Path| format!("the record {}", path.display());
    let mut taken: Vec<(PathBuf, String)> =
        inputs.into_iter().filter_map(|path| Some((place(path)?, record(path)))).collect();
    for (option, to) in outputs {
        let Some(Output::File(path)) = to else { continue };
        // Pipes, devices and the summary of a workflow are not replaced.
        let is_kept = path.metadata().is_ok_and(|found| !found.is_file()) || is_summary(path);
        let Some(at) = place(path).filter(|_| !is_kept) else { continue };
        if let Some((_, other)) = taken.iter().find(|(known, _)| *known == at) {
            let problem = format!("{option} {} would replace {other}", path.display());
            return Err(UsageError::new(problem, "name another file"));
        }
        taken.push((at, format!("what {option} writes")));
    }
    Ok(())
}

/// Writes a text to the destination of `option`. Replaces a file; only the summary of a workflow is appended to.
///
/// # Errors
/// The text cannot be written.
pub(super) fn write(to: &Output, option: &'static str, text: &str, console: &Console) -> Result<(), Failure> {
    match to {
        Output::Standard => {
            console.data(text);
            Ok(())
        }
        Output::File(path) => {
            let written = if is_summary(path) { append(path, text) } else { write_atomically(path, text) };
            written.map_err(failed(path, option))
        }
    }
}

/// Writes data for another program to the destination of `--json`, if there is one.
///
/// # Errors
/// The data cannot be written.
pub(super) fn write_json(
    to: Option<&Output>,
    document: &impl serde::Serialize,
    console: &Console,
) -> Result<(), Failure> {
    let Some(to) = to else { return Ok(()) };
    write(to, "--json", &deadheat_report::json(document)?, console)
}

/// Whether this is the file that a GitHub workflow shows. Other steps of the workflow may write to it, too.
fn is_summary(path: &Path) -> bool {
    std::env::var_os("GITHUB_STEP_SUMMARY").is_some_and(|summary| !summary.is_empty() && summary == path)
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
}

/// The error for a file that could not be written.
pub(super) fn failed(path: &Path, option: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |source| Failure::File { path: path.into(), option, source }
}
