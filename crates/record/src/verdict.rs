//! The word of a verdict, as records and documents have it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The five verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerdictWord {
    /// Better than the baseline.
    Faster,
    /// Worse than the baseline.
    Slower,
    /// Within the margin.
    Equivalent,
    /// Not told apart.
    Inconclusive,
    /// A gate failed.
    Invalid,
}
