//! Where output is written, and metrics as words.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use deadheat_record::Metric;

/// A metric that a record can have.
pub(super) fn metric() -> impl TypedValueParser<Value = Metric> {
    let words = PossibleValuesParser::new(Metric::EVERY.map(Metric::word));
    words.try_map(|word| Metric::of_word(&word).ok_or("there is no such metric"))
}

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
