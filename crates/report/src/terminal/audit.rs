//! An audit on a terminal: sentences about what is not sound, then tables of everything.
//!
//! Owns: the order and the columns. It escapes text from outside once.

use deadheat_record::{AuditRecord, CheckOutcome, ClaimHere, ClaimVerdict, PublishedCheck};

use super::findings::lines as finding_lines;
use super::paragraph::indented;
use super::table::{self, Cell, Column};
use crate::audit::{
    check_word, expected, found, headline, here_interval, outcome_word, place, published, scenarios,
    verdict_word,
};
use crate::style::{Style, Tone};
use crate::text::{plain, wrap};

/// The whole audit, each line at most as wide as the style says.
pub fn audit(audit: &AuditRecord, style: &Style) -> String {
    let title = audit.title.as_ref().map(|title| format!(": {}", plain(title))).unwrap_or_default();
    let about = format!("{}{title}", plain(&audit.study));
    let mut lines: Vec<String> =
        wrap(&about, style.width).iter().map(|line| style.paint(Tone::Quiet, line)).collect();
    lines.extend(indented(&headline(audit), 0, Tone::Strong, style));
    let told = [CheckOutcome::Contradicts, CheckOutcome::Weakened, CheckOutcome::Untestable];
    let told: Vec<Vec<String>> = told.into_iter().map(|outcome| sentences(audit, outcome, style)).collect();
    if told.iter().any(|lines| !lines.is_empty()) {
        lines.push(String::new());
        lines.extend(told.into_iter().flatten());
    }
    if !audit.checks.is_empty() {
        lines.push(String::new());
        lines.extend(table::lines(check_columns(&audit.checks), 1, 2, style));
    }
    lines.extend(generators(audit, style));
    lines.extend(here(audit, style));
    if !audit.findings.is_empty() {
        lines.push(String::new());
        lines.extend(finding_lines(&audit.findings, style));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn outcome_tone(outcome: CheckOutcome) -> Tone {
    match outcome {
        CheckOutcome::Sound => Tone::Plain,
        CheckOutcome::Weakened => Tone::Caution,
        CheckOutcome::Contradicts => Tone::Alarm,
        CheckOutcome::Untestable => Tone::Quiet,
    }
}

fn sentences(audit: &AuditRecord, outcome: CheckOutcome, style: &Style) -> Vec<String> {
    let of = audit.checks.iter().filter(|one| one.outcome == outcome);
    of.flat_map(|one| {
        let word = outcome_word(outcome);
        let place = place(one.row.as_deref(), one.contender.as_deref(), &plain);
        let text = format!("{word}: {place}: {}: {}", check_word(one.kind), plain(&one.text));
        toned(&text, word, outcome_tone(outcome), style)
    })
    .collect()
}

fn toned(text: &str, word: &str, tone: Tone, style: &Style) -> Vec<String> {
    let mut lines = indented(text, 2, Tone::Plain, style);
    if let Some(first) = lines.first_mut() {
        *first = first.replacen(word, &style.paint(tone, word), 1);
    }
    lines
}

fn check_columns(checks: &[PublishedCheck]) -> Vec<Column> {
    let outcome = |one: &PublishedCheck| Cell {
        text: outcome_word(one.outcome).into(),
        tone: outcome_tone(one.outcome),
    };
    vec![
        Column::of(checks, "run", Some(5), true, |one| plain(one.row.as_deref().unwrap_or_default())),
        Column::of(checks, "contender", None, true, |one| {
            plain(one.contender.as_deref().unwrap_or_default())
        }),
        Column::of(checks, "check", None, true, |one| check_word(one.kind)),
        Column::of(checks, "found", Some(9), false, found),
        Column::of(checks, "stated", Some(8), false, expected),
        Column::of(checks, "outcome", None, true, outcome),
    ]
}

fn generators(audit: &AuditRecord, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &audit.generators {
        lines.push(String::new());
        let tone = if one.beyond.is_empty() { Tone::Plain } else { Tone::Strong };
        lines.extend(indented(
            &format!("generator {}: {}", plain(&one.name), plain(&one.text)),
            0,
            tone,
            style,
        ));
        lines.extend(indented(&plain(&one.command), 2, Tone::Quiet, style));
    }
    lines
}

fn here(audit: &AuditRecord, style: &Style) -> Vec<String> {
    if audit.here.is_empty() {
        return Vec::new();
    }
    let file = audit.record.as_ref().map(|file| format!(", by {}", plain(file))).unwrap_or_default();
    let mut lines = vec![String::new(), style.paint(Tone::Strong, &format!("on this machine{file}"))];
    let tested: Vec<&ClaimHere> =
        audit.here.iter().filter(|one| one.verdict != ClaimVerdict::NotTestable).collect();
    if !tested.is_empty() {
        lines.extend(table::lines(here_columns(&tested), 1, 2, style));
    }
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for one in audit.here.iter().filter(|one| one.note.is_some()) {
        let note = one.note.as_deref().unwrap_or_default();
        let who = place(one.row.as_deref(), one.contender.as_deref(), &plain);
        let named = format!("{} ({})", plain(&one.metric), if who.is_empty() { "all".into() } else { who });
        match notes.iter_mut().find(|(known, _)| *known == note) {
            Some((_, all)) => all.push(named),
            None => notes.push((note, vec![named])),
        }
    }
    for (note, of) in notes {
        lines.extend(indented(&format!("{}: {}", plain(note), of.join(", ")), 2, Tone::Quiet, style));
    }
    lines
}

fn here_columns(all: &[&ClaimHere]) -> Vec<Column> {
    let verdict = |one: &&ClaimHere| Cell {
        text: verdict_word(one.verdict).into(),
        tone: match one.verdict {
            ClaimVerdict::Reproduced => Tone::Good,
            ClaimVerdict::NotReproduced => Tone::Caution,
            ClaimVerdict::Contradicted => Tone::Alarm,
            ClaimVerdict::NotTestable => Tone::Quiet,
        },
    };
    let who = |one: &&ClaimHere| {
        let name = |name: &Option<String>| plain(name.as_deref().unwrap_or_default());
        if one.baseline.is_some() {
            format!("{} / {}", name(&one.contender), name(&one.baseline))
        } else {
            name(&one.contender)
        }
    };
    vec![
        Column::of(all, "metric", None, true, |one| plain(&one.metric)),
        Column::of(all, "ratio", None, true, who),
        Column::of(all, "scenario", Some(4), true, |one| scenarios(one, &plain)),
        Column::of(all, "published", None, false, |one| published(one)),
        Column::of(all, "here", None, false, |one| here_interval(one)),
        Column::of(all, "verdict", None, true, verdict),
    ]
}
