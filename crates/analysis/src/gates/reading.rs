//! A gate's reading, and the finding that follows from it.

use deadheat_record::{Finding, Metric, Outcomes, Severity};

use super::table::{By, Gate};
use crate::number::{percent, whole};
use crate::report::GateReading;

/// The number of requests without a complete answer, and their number by kind: `connect 3, read 1`.
pub(super) fn unanswered_by_kind(outcomes: &Outcomes) -> (u64, String) {
    let kinds = [
        ("connect", outcomes.connect),
        ("read", outcomes.read),
        ("write", outcomes.write),
        ("timeout", outcomes.timeout),
        ("protocol", outcomes.protocol),
        ("cut", outcomes.cut),
    ];
    let seen = kinds.iter().filter(|(_, n)| *n > 0).map(|(kind, n)| format!("{kind} {}", whole(*n)));
    (outcomes.unanswered(), seen.collect::<Vec<_>>().join(", "))
}

/// A value that a gate read, even if it is within its limits.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(super) gate: &'static Gate,
    pub(super) by: By,
    /// How much it weakens the number; none if it is within its limits.
    pub(super) severity: Option<Severity>,
    pub(super) contender: Option<String>,
    /// The metrics that it weakens; empty for all of them.
    pub(super) metrics: Vec<Metric>,
    pub(super) message: String,
    pub(super) remedy: &'static str,
    /// The limit that it exceeds, if a single number decides.
    pub(super) limit: Option<f64>,
}

impl Reading {
    pub(super) fn about(self, contender: &str) -> Self {
        Self { contender: Some(contender.into()), ..self }
    }

    /// Sets the remedy of this case; the cases are in the order of the table.
    pub(super) fn case(self, case: usize) -> Self {
        Self { remedy: self.gate.remedy(self.by, case), ..self }
    }

    /// The same reading without any severity, however high it is.
    pub(super) fn harmless(self) -> Self {
        Self { severity: None, limit: None, ..self }
    }

    /// Adds the limit to the message, if the reading exceeds one.
    pub(super) fn with_limit(self) -> Self {
        let limit = self.limit.map_or_else(String::new, |limit| format!(" (limit {})", percent(limit)));
        Self { message: self.message + &limit, ..self }
    }

    pub(super) fn finding(&self) -> Option<Finding> {
        Some(Finding {
            code: self.gate.code.into(),
            severity: self.severity?,
            contender: self.contender.clone(),
            metrics: self.metrics.clone(),
            message: self.message.clone(),
            remedy: self.remedy.into(),
        })
    }

    /// Converts it to the form in the document.
    pub(crate) fn shown(self) -> GateReading {
        GateReading {
            code: self.gate.code.into(),
            contender: self.contender,
            state: self.severity.into(),
            reading: self.message,
        }
    }
}
