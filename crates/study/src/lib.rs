//! Turns a study and the options of the command line into a plan: `study.toml`, typed choices, profiles and defaults.
//!
//! Owns: the format of studies and complaints about mistakes, the choices, how both become a `record::Plan`, and what to prepare before a race:
//! needs, dataset, builds, versions. Reads recorded traffic and rows of values, and drafts studies. Must not know: the order of a race, statistics, reports.
#![warn(missing_docs)]

pub mod choices;
pub mod draft;
pub mod file;
pub mod git;
pub mod plan;
pub mod prepare;
pub mod rows;
pub mod traffic;
pub mod values;

/// A file that cannot be used, with its path.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", file.display())]
pub struct FileError<E: std::error::Error + 'static> {
    /// The file.
    pub file: std::path::PathBuf,
    /// Why.
    pub source: E,
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
