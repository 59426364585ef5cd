//! A gate's or parity check's complaint: a value with a stable code, stored beside what it weakens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Metric;

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
    /// The metrics that it weakens; all of them where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
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
        Self {
            code: code.into(),
            severity,
            contender: None,
            metrics: Vec::new(),
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    /// Whether it takes a contender's figure away; with no metric any figure that is of none, as memory.
    pub fn takes(&self, contender: &str, metric: Option<Metric>) -> bool {
        let about = self.contender.as_deref().is_none_or(|who| who == contender);
        self.severity == Severity::Invalid && about && self.is_of(metric)
    }

    /// Whether it is about figures of a metric; with none, about any that is of no metric.
    pub fn is_of(&self, metric: Option<Metric>) -> bool {
        self.metrics.is_empty() || metric.is_some_and(|metric| self.metrics.contains(&metric))
    }

    /// The same complaint about one contender.
    #[must_use]
    pub fn about(mut self, contender: &str) -> Self {
        self.contender = Some(contender.into());
        self
    }
}
