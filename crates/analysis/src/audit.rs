//! Audits published values: for consistency, against the ceiling of the generator that measured them, and against this machine.
//!
//! Owns everything that is derived from a study's claims. Must not know how anything is run or shown.

mod ceiling;
mod figures;
mod here;
mod own;

use deadheat_record::{AUDIT_SCHEMA, AuditRecord, Claim, GeneratorAudit};

pub use figures::published_connections;
pub use here::add_race;

/// Checks the claims for consistency with each other: an audit that runs nothing.
pub fn self_test(study: &str, title: Option<&str>, started_unix_ms: u64, claims: &[Claim]) -> AuditRecord {
    AuditRecord {
        schema: AUDIT_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_ms,
        study: study.into(),
        title: title.map(Into::into),
        machine_matches: false,
        claims: claims.to_vec(),
        checks: own::checks(claims),
        generators: Vec::new(),
        here: Vec::new(),
        record: None,
        machine: None,
        findings: Vec::new(),
    }
}

/// Adds what a generator reached, and the conclusion for the published throughputs.
pub fn add_generator(audit: &mut AuditRecord, measured: GeneratorAudit) {
    let concluded = ceiling::concluded(measured, &audit.claims);
    audit.generators.push(concluded);
}
