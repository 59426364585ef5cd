//! Published figures, audited: against each other, against the ceiling of their own generator, against this machine.
//!
//! Owns what is derived from a study's claims. Must not know how anything is run or shown.

mod ceiling;
mod figures;
mod here;
mod own;

use deadheat_record::{AUDIT_SCHEMA, AuditRecord, Claim, GeneratorAudit};

pub use here::add_race;

/// The claims held against each other: an audit for which nothing is run.
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

/// Adds what a generator reached, and what follows for the published throughputs.
pub fn add_generator(audit: &mut AuditRecord, measured: GeneratorAudit) {
    let concluded = ceiling::concluded(measured, &audit.claims);
    audit.generators.push(concluded);
}

/// How many connections were published; none where it is not said, or differs between runs.
pub fn published_connections(claims: &[Claim]) -> Option<u32> {
    published_count(claims, "connections")
}

/// How many there were in every published run; none where it is not said, or differs between runs.
fn published_count(claims: &[Claim], metric: &str) -> Option<u32> {
    let mut all = claims.iter().filter(|one| one.metric == metric).filter_map(|one| one.value);
    let first = all.next()?;
    all.all(|other| other == first).then_some(first as u32).filter(|count| *count > 0)
}
