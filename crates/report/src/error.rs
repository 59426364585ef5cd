//! Why a report could not be written.

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The document could not be written as JSON.
    #[error("the report could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A table could not be written as CSV.
    #[error("the report could not be written as CSV: {0}")]
    Csv(#[from] csv::Error),
    /// A figure could not be drawn.
    #[error("the figure {figure} could not be drawn: {problem}")]
    Figure {
        /// The figure's file.
        figure: String,
        /// What went wrong.
        problem: String,
    },
}
