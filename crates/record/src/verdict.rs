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

impl VerdictWord {
    /// All verdicts.
    pub const ALL: [Self; 5] =
        [Self::Faster, Self::Slower, Self::Equivalent, Self::Inconclusive, Self::Invalid];

    /// The word that records and documents use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
            Self::Invalid => "invalid",
        }
    }

    /// Whether a difference was found: faster or slower.
    pub fn tells_apart(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_what_records_contain() {
        for one in VerdictWord::ALL {
            assert_eq!(serde_json::to_value(one).unwrap(), one.word());
        }
    }
}
