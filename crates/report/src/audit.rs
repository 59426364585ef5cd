//! Published figures, audited: against each other, against the ceiling of their own generator, against this machine.
//!
//! Owns what is derived from a study's claims, and how an audit is shown. Must not know how anything is run.

mod figures;
mod markdown;
mod own;
mod words;

use deadheat_record::{AUDIT_SCHEMA, AuditRecord, Claim};

use crate::ReportError;

pub use markdown::markdown;
pub(crate) use words::{
    check_word, expected, found, headline, here_interval, outcome_word, place, published, verdict_word,
};

/// The claims held against each other: an audit for which nothing is run.
pub fn self_test(study: &str, title: Option<&str>, started_unix_ms: u64, claims: &[Claim]) -> AuditRecord {
    AuditRecord {
        schema: AUDIT_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_ms,
        study: study.into(),
        title: title.map(Into::into),
        claims: claims.to_vec(),
        checks: own::checks(claims),
        generators: Vec::new(),
        here: Vec::new(),
        record: None,
        machine: None,
        findings: Vec::new(),
    }
}

/// The audit as pretty-printed JSON with a last line end.
///
/// # Errors
/// None in practice: every number in it is finite.
pub fn json(audit: &AuditRecord) -> Result<String, ReportError> {
    Ok(serde_json::to_string_pretty(audit)? + "\n")
}
