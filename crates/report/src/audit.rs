//! Writes an audit of published figures.
//!
//! Owns: its words, its Markdown page and its JSON. Must not know: how the audit was made.

mod markdown;
mod words;

use deadheat_record::AuditRecord;

use crate::ReportError;

pub(crate) use markdown::claims;
pub use markdown::markdown;
pub(crate) use words::{
    check_word, expected, found, headline, here_interval, outcome_word, place, published, scenarios,
    verdict_word,
};

/// The audit as pretty-printed JSON, with a final newline.
///
/// # Errors
/// None in practice: every number in it is finite.
pub fn json(audit: &AuditRecord) -> Result<String, ReportError> {
    Ok(serde_json::to_string_pretty(audit)? + "\n")
}
