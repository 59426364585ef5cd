//! Documents as JSON: of a race, a comparison, an audit, and for other programs.

use serde::Serialize;

use crate::ReportError;

/// The document as pretty-printed JSON, with a final newline.
///
/// # Errors
/// None in practice: every document can be written as JSON.
pub fn json(document: &impl Serialize) -> Result<String, ReportError> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}
