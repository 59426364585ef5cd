//! Writes a comparison of two records.
//!
//! Owns: its words, its Markdown page and its JSON. Must not know: how the comparison was made.

mod markdown;
mod words;

use deadheat_analysis::compare::CompareDocument;

use crate::ReportError;

pub use markdown::markdown;
pub(crate) use markdown::{code, text};
pub(crate) use words::{label, quotient, sentence, shape, value};

/// The comparison as pretty-printed JSON, with a final newline.
///
/// # Errors
/// None in practice: every number in it is finite.
pub fn json(document: &CompareDocument) -> Result<String, ReportError> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}
