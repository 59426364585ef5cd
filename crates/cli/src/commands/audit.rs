//! `deadheat audit`: compares a study's published figures with each other and with this machine.

use deadheat_analysis::Report;
use deadheat_analysis::audit::{add_generator, add_race, published_connections, self_test};
use deadheat_host::clock::unix_ms;
use deadheat_record::{AuditRecord, Claim, Finding};
use deadheat_report::{audit as report, terminal};

use super::Failure;
use super::output::{apart, keep_for_data, write, write_json};
use super::race::writable;
use crate::audit::{Place, measure};
use crate::console::{Console, lines_plain};
use crate::flags::{AuditFlags, Output};
use crate::interrupt::{INTERRUPTED, Interrupt};
use deadheat_study::choices::UsageError;
use deadheat_study::file::{self as study, Study};
use deadheat_study::plan::{Places, Topology};
use deadheat_study::prepare;

const INVALID: u8 = 3;

/// Audits the claims of a study. The exit status is that of the race, and at least 1 if a published figure is contradicted. If the race fails, the
/// rest of the audit is shown before the error.
pub(crate) fn audit(flags: &AuditFlags, console: &mut Console) -> Result<u8, Failure> {
    let outputs = [("--json", flags.json.as_ref()), ("--markdown", flags.markdown.as_ref())];
    apart(flags.record.as_deref(), &outputs)?;
    for (option, to) in outputs {
        if let Some(Output::File(path)) = to {
            writable(path, option)?;
        }
    }
    keep_for_data(outputs, console)?;
    flags.choices_count()?;
    let study = study::load(&flags.study)?;
    let mut audit = published(&study)?;
    // Read before the race, which pins this thread to some of the cores.
    let topology = Topology::of_machine();
    let (mut status, mut failed) = (0, None);
    if !flags.self_test {
        match against_race(flags, &mut audit, console) {
            Ok(of_race) => status = of_race,
            // If the user gave a record, it is input and its error ends the audit. If a race failed, the earlier parts of the audit are still
            // valid.
            Err(failure) if flags.record.is_some() => return Err(failure),
            Err(failure) => {
                audit.findings.push(race_failed(&failure));
                failed = Some(failure);
            }
        }
        if !flags.no_generators
            && failed.is_none()
            && status != INTERRUPTED
            && generators(flags, &study, &topology, &mut audit, console)?
        {
            status = INTERRUPTED;
        }
    }
    console.result(&terminal::audit(&audit, &console.output));
    write_json(flags.json.as_ref(), &audit, console)?;
    if let Some(to) = &flags.markdown {
        write(to, "--markdown", &report::markdown(&audit), console)?;
    }
    match failed {
        Some(failure) => Err(failure),
        None => Ok(status.max(u8::from(audit.contradicts()))),
    }
}

/// Compares the claims with the given record, or with a race that runs now. Returns the status of the race (0 for a given record), and at least 3
/// if the race or record is invalid.
fn against_race(flags: &AuditFlags, audit: &mut AuditRecord, console: &mut Console) -> Result<u8, Failure> {
    let (status, record, path) = match &flags.record {
        Some(path) => (0, deadheat_record::read(path)?, path.clone()),
        None if flags.no_race => return Ok(0),
        None => super::race::run(&flags.race(), console)?,
    };
    let report = Report::of(&record)?;
    add_race(audit, &path.display().to_string(), &report)?;
    Ok(if super::race::is_invalid(&report) { status.max(INVALID) } else { status })
}

/// The finding for a failed race. The audit continues without it.
fn race_failed(failure: &Failure) -> Finding {
    let whole = failure.to_string();
    let first = whole.lines().next().unwrap_or_default();
    let message = format!("the race failed, so the claims were not compared with this machine: {first}");
    Finding::warn("race-failed", message, "fix that, or give a record of the study with --record")
}

/// Runs the study's generators against the null server. Returns whether the user interrupted it.
fn generators(
    flags: &AuditFlags,
    study: &Study,
    topology: &Topology,
    audit: &mut AuditRecord,
    console: &Console,
) -> Result<bool, Failure> {
    if study.generators.is_empty() {
        return Ok(false);
    }
    let machine = &flags.choices.machine;
    let (pinning, findings) = topology.divide(machine.server_cpus.as_ref(), machine.load_cpus.as_ref())?;
    audit.findings.extend(findings);
    let work = Places::of_process().work(study);
    prepare::make_work(&work)?;
    let interrupt = Interrupt::listen()?;
    let place = Place {
        pinning: &pinning,
        folder: &study.folder,
        work: &work,
        connections: published_connections(&audit.claims).unwrap_or(study::CONNECTIONS),
        stopped: &|| interrupt.asked(),
    };
    for generator in &study.generators {
        if interrupt.asked() {
            break;
        }
        console.note(&lines_plain(&format!("generator {}: against a null server", generator.name.get_ref())));
        add_generator(audit, measure(generator, &place));
    }
    Ok(interrupt.asked())
}

/// Compares the claims with each other.
fn published(study: &Study) -> Result<AuditRecord, UsageError> {
    let claims: Vec<Claim> = study.claims.iter().map(study::Claim::published).collect();
    if claims.is_empty() {
        let problem = format!("the study {} lists no published figures", study.name);
        let remedy = "add them to study.toml: [[claim]] with source, contender, metric and value";
        return Err(UsageError::new(problem, remedy));
    }
    let audit = self_test(&study.name, study.title.as_deref(), unix_ms(), &claims);
    Ok(AuditRecord { machine_matches: study.machine_matches, ..audit })
}
