//! An audit as a Markdown page for documentation.
//!
//! Owns: the headings and the tables' columns. Must not know: how any figure was computed.

use std::fmt::Write as _;

use deadheat_record::{AuditRecord, CheckOutcome, ClaimHere, ClaimVerdict, PublishedCheck};

use super::words::{
    check_word, expected, found, headline, here_interval, outcome_word, place, published, scenarios,
    verdict_word,
};
use crate::comparison::{code, text};
use crate::markdown::{finding, table};

/// The whole audit.
pub fn markdown(audit: &AuditRecord) -> String {
    let mut out = format!("# Audit: {}\n", text(&audit.study));
    if let Some(title) = &audit.title {
        let _ = write!(out, "\n{}\n", text(title));
    }
    let _ = write!(out, "\n{}.\n", text(&headline(audit)));
    out += &checks(audit);
    out += &generators(audit);
    out += &here(audit);
    if !audit.findings.is_empty() {
        out += "\n## Findings\n\n";
        audit.findings.iter().for_each(|one| out += &finding(one));
    }
    let _ = write!(out, "\n<sub>Made by `deadheat audit` {}.</sub>\n", text(&audit.version));
    out
}

fn checks(audit: &AuditRecord) -> String {
    if audit.checks.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n## The figures against each other\n\n");
    for one in audit.checks.iter().filter(|one| one.outcome != CheckOutcome::Sound) {
        let place = place(one.row.as_deref(), one.contender.as_deref(), &code);
        let word = outcome_word(one.outcome);
        let _ = writeln!(out, "- **{word}** {place}: {}", text(&one.text));
    }
    let titles = ["run", "contender", "check", "found", "stated", "outcome"];
    let name = |name: &Option<String>| name.as_deref().map_or_else(String::new, code);
    let row = |one: &PublishedCheck| {
        vec![
            name(&one.row),
            name(&one.contender),
            check_word(one.kind).into(),
            found(one),
            expected(one),
            match one.outcome {
                CheckOutcome::Contradicts => format!("**{}**", outcome_word(one.outcome)),
                other => outcome_word(other).into(),
            },
        ]
    };
    out + &table(&titles, "---|---|---|--:|--:|---", audit.checks.iter().map(row))
}

fn generators(audit: &AuditRecord) -> String {
    if audit.generators.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n## The published generators against a server that does nothing\n\n");
    for one in &audit.generators {
        let _ = writeln!(out, "- {}: {}\n  {}", code(&one.name), text(&one.text), code(&one.command));
    }
    out
}

fn here(audit: &AuditRecord) -> String {
    if audit.here.is_empty() {
        return String::new();
    }
    format!("\n## On this machine\n\n{}", claims(audit))
}

/// The claims compared with this machine: a table, then the claims that cannot be tested. Empty if no claim was compared.
pub(crate) fn claims(audit: &AuditRecord) -> String {
    if audit.here.is_empty() {
        return String::new();
    }
    let is_tested = |one: &&ClaimHere| one.verdict != ClaimVerdict::NotTestable;
    let row = |one: &ClaimHere| {
        let name = |name: &Option<String>| name.as_deref().map_or_else(String::new, code);
        let who = [&one.contender, &one.baseline].map(name);
        let who: Vec<String> = who.into_iter().filter(|name| !name.is_empty()).collect();
        let verdict = match one.verdict {
            ClaimVerdict::Contradicted => format!("**{}**", verdict_word(one.verdict)),
            other => verdict_word(other).into(),
        };
        vec![
            code(&one.metric),
            name(&one.row),
            who.join(" / "),
            scenarios(one, &code),
            published(one),
            here_interval(one),
            verdict,
        ]
    };
    let titles = ["metric", "run", "ratio", "scenario", "published", "here", "verdict"];
    let rows = audit.here.iter().filter(is_tested).map(row);
    let table = table(&titles, "---|---|---|---|--:|--:|---", rows);
    table.trim_start().to_owned()
        + &notes(audit, "Notes", &|one| is_tested(&one))
        + &notes(audit, "Not testable here", &|one| !is_tested(&one))
}

/// The notes on some of the claims, as a list.
fn notes(audit: &AuditRecord, title: &str, of: &dyn Fn(&ClaimHere) -> bool) -> String {
    let some = audit.here.iter().filter(|one| of(one));
    let lines: Vec<String> = some
        .filter_map(|one| {
            let place = place(one.row.as_deref(), one.contender.as_deref(), &code);
            Some(format!("- {} {place}: {}\n", code(&one.metric), text(one.note.as_deref()?)))
        })
        .collect();
    if lines.is_empty() { String::new() } else { format!("\n{title}:\n\n{}", lines.concat()) }
}
