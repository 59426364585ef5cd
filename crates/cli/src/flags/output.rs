//! Where output is written.

use std::path::PathBuf;

/// Where output is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Output {
    /// `-`: nothing else is written there then.
    Standard,
    /// A file.
    File(PathBuf),
}

impl Output {
    /// `-` is standard output.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Ok(if text == "-" { Self::Standard } else { Self::File(text.into()) })
    }
}
