//! `deadheat audit`: a study's published figures, against each other and against this machine.

use deadheat_record::{AuditRecord, Claim, Record};
use deadheat_report::{audit as report, terminal};
use deadheat_runner::unix_ms;

use super::Failure;
use super::output::{keep_for_data, write};
use crate::audit::{Place, measure};
use crate::console::{Console, lines_plain};
use crate::flags::{AuditFlags, UsageError};
use crate::interrupt::Interrupt;
use crate::plan::{Places, Topology};
use crate::prepare;
use crate::study::{self, Study};

const INTERRUPTED: u8 = 130;

/// Audits what a study lists. Exit status 1 when something published is contradicted.
pub(crate) fn audit(flags: &AuditFlags, console: &mut Console) -> Result<u8, Failure> {
    keep_for_data([("--json", flags.json.as_ref()), ("--markdown", flags.markdown.as_ref())], console)?;
    let study = study::load(&flags.study)?;
    let mut audit = published(&study)?;
    let mut interrupted = false;
    if !flags.self_test {
        let record = raced(flags, console)?;
        interrupted = record.as_ref().is_some_and(|(_, record)| !record.done) && flags.record.is_none();
        if let Some((file, record)) = &record {
            report::add_race(&mut audit, file, record, &deadheat_report::view(record)?)?;
        }
        if !flags.no_generators && !interrupted {
            interrupted = generators(flags, &study, &mut audit, console)?;
        }
    }
    console.result(&terminal::audit(&audit, &console.output));
    if let Some(to) = &flags.json {
        write(to, "--json", &report::json(&audit)?, console)?;
    }
    if let Some(to) = &flags.markdown {
        write(to, "--markdown", &report::markdown(&audit), console)?;
    }
    Ok(if interrupted { INTERRUPTED } else { u8::from(audit.contradicts()) })
}

/// The record that is given, else that of a race that is run now; none where there shall be none.
fn raced(flags: &AuditFlags, console: &mut Console) -> Result<Option<(String, Record)>, Failure> {
    if let Some(path) = &flags.record {
        return Ok(Some((path.display().to_string(), deadheat_record::read(path)?)));
    }
    if flags.no_race {
        return Ok(None);
    }
    let flags = flags.race();
    let (_, record, path) = super::race::run(&flags, console)?;
    Ok(Some((path.display().to_string(), record)))
}

/// Runs the study's generators against the null server; whether a person ended it.
fn generators(
    flags: &AuditFlags,
    study: &Study,
    audit: &mut AuditRecord,
    console: &Console,
) -> Result<bool, Failure> {
    if study.generators.is_empty() {
        return Ok(false);
    }
    let machine = &flags.choices.machine;
    let (pinning, findings) =
        Topology::of_machine().divide(machine.server_cpus.as_ref(), machine.load_cpus.as_ref())?;
    audit.findings.extend(findings);
    let work = Places::of_process().work(study);
    prepare::make_work(&work)?;
    let interrupt = Interrupt::listen()?;
    let place = Place {
        pinning: &pinning,
        folder: &study.folder,
        work: &work,
        connections: report::published_connections(&audit.claims).unwrap_or(study::CONNECTIONS),
        stopped: &|| interrupt.asked(),
    };
    for generator in &study.generators {
        if interrupt.asked() {
            break;
        }
        console.note(&lines_plain(&format!("generator {}: against a null server", generator.name.get_ref())));
        report::add_generator(audit, measure(generator, &place));
    }
    Ok(interrupt.asked())
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
