//! Data that is asked for beside what the terminal shows: in files, or on standard output, where then nothing else is written.
//!
//! Owns the ways there. Must not know what is written.

use std::io;
use std::path::Path;

use super::{Failure, write_atomically};
use crate::console::Console;
use crate::flags::{Output, UsageError};

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

/// Writes one text where it was asked for with `option`.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write(to: &Output, option: &'static str, text: &str, console: &Console) -> Result<(), Failure> {
    match to {
        Output::Standard => Ok(console.data(text)?),
        Output::File(path) => write_atomically(path, text).map_err(failed(path, option)),
    }
}

/// What is said of a file that could not be written.
pub(super) fn failed(path: &Path, option: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |source| Failure::File { path: path.into(), option, source }
}
