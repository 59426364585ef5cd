//! The JSON document of a race: the View's results beside the whole record.
//!
//! Owns which part of the View goes where in the public contract. Must not know files.

use deadheat_record::{Difference, Document, ParitySummary, Record, SCHEMA};

use super::view;
use crate::AnalysisError;

/// The document of schema `deadheat.record/1`.
///
/// # Errors
/// As [`view`].
pub fn document(record: &Record) -> Result<Document, AnalysisError> {
    let view = view(record)?;
    Ok(Document {
        schema: SCHEMA.into(),
        study: view.study,
        seed: view.seed,
        machine: view.machine,
        contenders: view.contenders,
        parity: view.differences.iter().map(parity).collect(),
        scenarios: view.scenarios.into_iter().map(|scenario| scenario.result).collect(),
        sweeps: view.sweeps,
        ladders: view.ladders,
        findings: view.findings,
        complete: view.complete,
        reproduce: view.reproduce,
        conditions: Vec::new(),
        record: record.clone(),
    })
}

fn parity(one: &Difference) -> ParitySummary {
    ParitySummary {
        contender: one.contender.clone(),
        probe: one.probe.clone(),
        path: one.path.clone(),
        expected: one.expected.clone(),
        got: one.got.clone(),
    }
}
