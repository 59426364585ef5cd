//! Findings: what a gate or a parity check complains about. A finding has a stable code and is stored next to the value that it weakens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Metric;

/// How much a finding weakens the number that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The number remains valid, with this warning.
    Warn,
    /// The number does not measure what it claims to, so there is no verdict.
    Invalid,
}

/// One complaint of a gate or a parity check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable code in kebab-case: `not-server-bound`, `mismatch`, `steal`.
    pub code: String,
    /// How much it weakens the number.
    pub severity: Severity,
    /// The contender that the finding is about; absent if it is about the race or the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contender: Option<String>,
    /// The metrics that it weakens. If empty, it weakens all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// What was observed, with its value and the limit.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl Finding {
    /// Makes a finding that leaves the number valid.
    pub fn warn(code: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(code, Severity::Warn, message, remedy)
    }

    /// Makes a finding that makes the number invalid.
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

    /// Whether the finding makes a contender's figure invalid. With no metric: a figure that belongs to no metric, such as memory.
    pub fn takes(&self, contender: &str, metric: Option<Metric>) -> bool {
        let about = self.contender.as_deref().is_none_or(|who| who == contender);
        self.severity == Severity::Invalid && about && self.is_of(metric)
    }

    /// Whether the finding is about figures of a metric. With no metric: about figures that belong to no metric.
    pub fn is_of(&self, metric: Option<Metric>) -> bool {
        self.metrics.is_empty() || metric.is_some_and(|metric| self.metrics.contains(&metric))
    }

    /// The same finding, about one contender.
    #[must_use]
    pub fn about(mut self, contender: &str) -> Self {
        self.contender = Some(contender.into());
        self
    }
}
