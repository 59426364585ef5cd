//! The JSON document of a race, as `race --json` writes it.

use deadheat_analysis::Report;

use crate::ReportError;

/// The document as pretty-printed JSON, with a final newline.
///
/// # Errors
/// None in practice: every document can be written as JSON.
pub fn json(report: &Report) -> Result<String, ReportError> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}
