//! `deadheat audit`: a study's published figures, against each other and against this machine.

use deadheat_record::{AuditRecord, Claim};
use deadheat_report::{audit as report, terminal};
use deadheat_runner::unix_ms;

use super::Failure;
use super::compare::write;
use crate::console::Console;
use crate::flags::{AuditFlags, Output, UsageError};
use crate::study::{self, Study};

/// Audits what a study lists. Exit status 1 when something published is contradicted.
pub(crate) fn audit(flags: &AuditFlags, console: &mut Console) -> Result<u8, Failure> {
    let standard = [&flags.json, &flags.markdown].map(|to| *to == Some(Output::Standard));
    if standard == [true, true] {
        let problem = "--json and --markdown both go to standard output";
        return Err(UsageError::new(problem, "give one of them a file").into());
    }
    if standard.contains(&true) {
        console.keep_output_for_data();
    }
    let study = study::load(&flags.study)?;
    let audit = published(&study)?;
    console.result(&terminal::audit(&audit, &console.output));
    write(flags.json.as_ref(), "--json", &report::json(&audit)?, console)?;
    write(flags.markdown.as_ref(), "--markdown", &report::markdown(&audit), console)?;
    Ok(u8::from(audit.contradicts()))
}

/// The claims against each other.
fn published(study: &Study) -> Result<AuditRecord, UsageError> {
    let claims: Vec<Claim> = study.claims.iter().map(study::Claim::published).collect();
    if claims.is_empty() {
        let problem = format!("the study {} lists no published figures", study.name);
        let remedy = "add them to study.toml: [[claim]] with source, contender, metric and value";
        return Err(UsageError::new(problem, remedy));
    }
    Ok(report::self_test(&study.name, study.title.as_deref(), unix_ms(), &claims))
}
