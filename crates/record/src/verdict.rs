//! The word of a verdict in records and documents.

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
    /// The difference is within the margin.
    Equivalent,
    /// The data supports none of the other verdicts.
    Inconclusive,
    /// A gate failed.
    Invalid,
}
