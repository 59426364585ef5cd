//! A gate's or parity check's complaint: a value with a stable code, stored beside what it weakens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a finding weakens the number beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The number stands, with this said beside it.
    Warn,
    /// The number does not measure what it claims to: no verdict is given from it.
    Invalid,
}

/// One complaint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable, kebab-case: `not-server-bound`, `mismatch`, `steal`.
    pub code: String,
    /// How much it weakens the number.
    pub severity: Severity,
    /// The contender that it is about; none when it is about the race or the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contender: Option<String>,
    /// What was read, with its figure and the limit.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl Finding {
    /// A complaint that leaves the number standing.
    pub fn warn(code: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(code, Severity::Warn, message, remedy)
    }

    /// A complaint that takes the number away.
    pub fn invalid(code: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(code, Severity::Invalid, message, remedy)
    }

    fn new(code: &str, severity: Severity, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code: code.into(), severity, contender: None, message: message.into(), remedy: remedy.into() }
    }

    /// The same complaint about one contender.
    #[must_use]
    pub fn about(mut self, contender: &str) -> Self {
        self.contender = Some(contender.into());
        self
    }
}
