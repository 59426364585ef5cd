//! What a gate read, and what comes of it.

use deadheat_record::{Finding, Metric, Severity};

use super::table::{By, Gate};
use crate::number::percent;
use crate::report::GateReading;

/// What a gate read, also where the reading is within its limits.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(super) gate: &'static Gate,
    pub(super) by: By,
    /// How much it weakens the number; none where it is within its limits.
    pub(super) severity: Option<Severity>,
    pub(super) contender: Option<String>,
    /// The metrics that it weakens; all of them where none is named.
    pub(super) metrics: Vec<Metric>,
    pub(super) message: String,
    pub(super) remedy: &'static str,
    /// The limit that it is over, where one number decides.
    pub(super) limit: Option<f64>,
}

impl Reading {
    pub(super) fn about(self, contender: &str) -> Self {
        Self { contender: Some(contender.into()), ..self }
    }

    /// With the remedy of that case: the table has them in this order.
    pub(super) fn case(self, case: usize) -> Self {
        Self { remedy: self.gate.remedy(self.by, case), ..self }
    }

    /// The same reading where it weakens nothing, however high.
    pub(super) fn harmless(self) -> Self {
        Self { severity: None, limit: None, ..self }
    }

    /// With the limit in its message, where it is over one.
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

    /// As the document has it.
    pub(crate) fn shown(self) -> GateReading {
        GateReading {
            code: self.gate.code.into(),
            contender: self.contender,
            state: self.severity.into(),
            reading: self.message,
        }
    }
}
