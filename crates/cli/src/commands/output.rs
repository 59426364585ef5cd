//! Data that is asked for beside what the terminal shows: in files, or on standard output, where then nothing else is written.
//!
//! Owns the ways there. Must not know what is written.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use super::{Failure, write_atomically};
use crate::console::Console;
use crate::flags::Output;
use deadheat_study::choices::UsageError;

/// Keeps standard output for the one of two that is asked for there.
///
/// # Errors
/// When both are.
pub(super) fn keep_for_data(
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

/// Writes one text where it was asked for with `option`. A file is replaced; only the summary of a workflow is appended to.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write(to: &Output, option: &'static str, text: &str, console: &Console) -> Result<(), Failure> {
    match to {
        Output::Standard => Ok(console.data(text)?),
        Output::File(path) => {
            let written = if is_summary(path) { append(path, text) } else { write_atomically(path, text) };
            written.map_err(failed(path, option))
        }
    }
}

/// The file that a workflow of GitHub shows; others of its steps may write to it, too.
fn is_summary(path: &Path) -> bool {
    std::env::var_os("GITHUB_STEP_SUMMARY").is_some_and(|summary| !summary.is_empty() && summary == path)
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
}

/// What is said of a file that could not be written.
pub(super) fn failed(path: &Path, option: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |source| Failure::File { path: path.into(), option, source }
}
