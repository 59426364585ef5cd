//! `deadheat report`: shows a record again, or writes it in another format.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use deadheat_analysis::Report;
use deadheat_analysis::compare::race_conditions;
use deadheat_record::{AnyRecord, AuditRecord, LoadRecord, Record, read_any, read_audit};
use deadheat_report::{BENCHMARK_FILES, CI_FILES, CSV_FILES, terminal};

use super::compare::{askable, status_of};
use super::output::{apart, failed, write, write_json};
use super::{Failure, write_atomically};
use crate::console::Console;
use crate::flags::ReportFlags;
use deadheat_study::choices::UsageError;

/// Shows a record, or writes it as requested.
pub(crate) fn report(flags: &ReportFlags, console: &mut Console) -> Result<u8, Failure> {
    apart([flags.record.as_path()], &flags.outputs())?;
    if flags.to_standard()? {
        console.keep_output_for_data();
    }
    match read_any(&flags.record)? {
        AnyRecord::Race(mut record) => {
            record.plan.edge_hit_rate = flags.hit_rate.or(record.plan.edge_hit_rate);
            race(flags, &record, console)
        }
        AnyRecord::Load(record) => load(flags, &record, console).map(|()| 0),
    }
}

fn load(flags: &ReportFlags, record: &LoadRecord, console: &Console) -> Result<(), Failure> {
    if let Some(option) = flags.of_races_only() {
        let problem = format!("{option}: {} is the record of a load, not of a race", flags.record.display());
        return Err(UsageError::new(problem, "leave it out, or report the record of a race").into());
    }
    if !flags.writes() {
        console.result(&deadheat_report::load::summary(record, &console.output));
    }
    write_json(flags.json.as_ref(), record, console)
}

/// The audit to show with a record. It must be of the same study.
fn audit_of(flags: &ReportFlags, record: &Record) -> Result<Option<AuditRecord>, Failure> {
    let Some(path) = flags.shown_audit()? else { return Ok(None) };
    let audit = read_audit(path)?;
    let (audited, raced) = (&audit.study, &record.plan.study);
    if audited != raced {
        let (path, record) = (path.display(), flags.record.display());
        let problem =
            format!("--audit {path}: this audit is of the study {audited}, but {record} is of {raced}");
        let remedy = format!("audit {raced}: deadheat audit STUDY --record {record} --json {path}");
        return Err(UsageError::new(problem, remedy).into());
    }
    Ok(Some(audit))
}

/// Shows or writes a race. Returns the exit status: that of the conditions.
fn race(flags: &ReportFlags, record: &Record, console: &Console) -> Result<u8, Failure> {
    let audit = audit_of(flags, record)?;
    askable(&record.plan, &flags.fail_if)?;
    let mut report = Report::of(record)?;
    report.conditions = race_conditions(&report, &flags.fail_if);
    // A contender that was excluded fails a race, and so it fails a condition about it.
    let failed = !report.conditions.is_empty() && !record.out.is_empty();
    let status = status_of(&report.conditions).max(u8::from(failed));
    if !flags.writes() {
        console.result(&terminal::render(&report, &console.output));
        if let Some(audit) = &audit {
            console.result(&format!("\n{}", terminal::audit(audit, &console.output)));
        }
        console.result(&terminal::conditions(&report.conditions, &console.output));
        return Ok(status);
    }
    write_json(flags.json.as_ref(), &report, console)?;
    if let Some(to) = &flags.html {
        write(to, "--html", &deadheat_report::html(&report, audit.as_ref())?, console)?;
    }
    if let Some(to) = &flags.markdown {
        write(to, "--markdown", &deadheat_report::markdown(&report, audit.as_ref()), console)?;
    }
    if let Some(to) = &flags.bencher {
        write(to, "--bencher", &deadheat_report::bencher(&report)?, console)?;
    }
    if let Some(folder) = &flags.csv {
        fill(folder, "--csv", CSV_FILES.iter().zip(deadheat_report::csv(&report)?))?;
    }
    if let Some(folder) = &flags.svg {
        fill(folder, "--svg", deadheat_report::svg(&report)?)?;
    }
    if let Some(folder) = &flags.benchmark_action {
        let texts = deadheat_report::benchmark_action(&report)?;
        fill(folder, "--benchmark-action", BENCHMARK_FILES.iter().zip(texts))?;
    }
    if let Some(folder) = &flags.ci {
        fill(folder, "--ci", CI_FILES.iter().zip(deadheat_report::ci(&report)?))?;
    }
    Ok(status)
}

/// Writes files into a folder. Creates the folder if necessary.
fn fill<N: AsRef<OsStr>>(
    folder: &Path,
    option: &'static str,
    files: impl IntoIterator<Item = (N, String)>,
) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(failed(folder, option))?;
    for (name, text) in files {
        let path = folder.join(name.as_ref());
        write_atomically(&path, &text).map_err(failed(&path, option))?;
    }
    Ok(())
}
