//! The JSON document of a race, as `race --json` writes it.

use deadheat_analysis::Report;

use crate::ReportError;

/// The document as pretty-printed JSON with a last line end.
///
/// # Errors
/// None in practice: everything in a document can be written as JSON.
pub fn json(report: &Report) -> Result<String, ReportError> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}
