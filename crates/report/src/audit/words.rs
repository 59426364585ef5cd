//! The words of an audit: outcomes, verdicts, figures and where they belong.
//!
//! Owns: the wording that the terminal and Markdown share. Must not know: either of them. It does not escape text from outside.

use deadheat_analysis::number::{count, exact, interval, interval_of, percent, three_digits};
use deadheat_record::{AuditRecord, CheckKind, CheckOutcome, ClaimHere, ClaimVerdict, PublishedCheck};

pub(crate) fn check_word(kind: CheckKind) -> &'static str {
    match kind {
        CheckKind::LittlesLaw => "Little's law",
        CheckKind::RunLength => "length of run",
        CheckKind::Order => "order",
        CheckKind::Ratio => "stated ratio",
        CheckKind::ConnectErrors => "connect errors",
        CheckKind::Requests => "requests",
        CheckKind::Timeouts => "timeouts",
        CheckKind::Spread => "spread of runs",
    }
}

pub(crate) fn outcome_word(outcome: CheckOutcome) -> &'static str {
    match outcome {
        CheckOutcome::Sound => "sound",
        CheckOutcome::Weakened => "weakened",
        CheckOutcome::Contradicts => "contradicts",
        CheckOutcome::Untestable => "not testable",
    }
}

pub(crate) fn verdict_word(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Reproduced => "reproduced",
        ClaimVerdict::NotReproduced => "not reproduced",
        ClaimVerdict::Contradicted => "contradicted",
        ClaimVerdict::NotTestable => "not testable here",
    }
}

/// `500 connections, node`; `shown` escapes text from outside.
pub(crate) fn place(row: Option<&str>, contender: Option<&str>, shown: &dyn Fn(&str) -> String) -> String {
    [row, contender].into_iter().flatten().map(shown).collect::<Vec<_>>().join(", ")
}

/// The value derived from the figures, with its unit.
pub(crate) fn found(check: &PublishedCheck) -> String {
    let shown = |value| match check.kind {
        CheckKind::Spread => percent(value),
        kind => with_unit(kind, three_digits(value), "in flight"),
    };
    check.found.map_or_else(String::new, shown)
}

/// The expected value, with its unit.
pub(crate) fn expected(check: &PublishedCheck) -> String {
    let shown = |value| match check.kind {
        CheckKind::Spread => percent(value),
        kind => with_unit(kind, expected_digits(value), "connections"),
    };
    check.expected.map_or_else(String::new, shown)
}

/// A stated value is shown as published; a computed one is rounded.
fn expected_digits(value: f64) -> String {
    if value.fract() == 0.0 { exact(value) } else { three_digits(value) }
}

fn with_unit(kind: CheckKind, number: String, counted: &str) -> String {
    match kind {
        CheckKind::LittlesLaw => format!("{number} {counted}"),
        CheckKind::RunLength => format!("{number} s"),
        CheckKind::ConnectErrors if counted == "in flight" => format!("{number} failed"),
        CheckKind::ConnectErrors => format!("{number} {counted}"),
        CheckKind::Order
        | CheckKind::Ratio
        | CheckKind::Requests
        | CheckKind::Timeouts
        | CheckKind::Spread => number,
    }
}

/// The number of figures by outcome, in one sentence.
pub(crate) fn headline(audit: &AuditRecord) -> String {
    let checks = |outcome| audit.checks.iter().filter(|one| one.outcome == outcome).count();
    let mut parts = vec![format!(
        "{}, {} against each other: {}",
        count(audit.claims.len() as u64, "published figure"),
        count(audit.checks.len() as u64, "check"),
        counted(&[
            (checks(CheckOutcome::Contradicts), "contradictory"),
            (checks(CheckOutcome::Weakened), "weakened"),
            (checks(CheckOutcome::Untestable), "not testable"),
            (checks(CheckOutcome::Sound), "sound"),
        ])
    )];
    if !audit.here.is_empty() {
        let here = |verdict| audit.here.iter().filter(|one| one.verdict == verdict).count();
        let told = counted(&[
            (here(ClaimVerdict::Reproduced), "reproduced"),
            (here(ClaimVerdict::NotReproduced), "not reproduced"),
            (here(ClaimVerdict::Contradicted), "contradicted"),
            (here(ClaimVerdict::NotTestable), "not testable"),
        ]);
        parts.push(format!("on this machine: {told}"));
    }
    parts.join("; ")
}

fn counted(all: &[(usize, &str)]) -> String {
    let some: Vec<String> =
        all.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    if some.is_empty() { "none".into() } else { some.join(", ") }
}

/// The scenario. For a ratio of two scenarios, both: `prepare-per-request / lookup`. `shown` escapes text from outside.
pub(crate) fn scenarios(one: &ClaimHere, shown: &dyn Fn(&str) -> String) -> String {
    let both = [&one.scenario, &one.baseline_scenario];
    both.into_iter().flatten().map(|name| shown(name)).collect::<Vec<_>>().join(" / ")
}

/// A range of what a claim is about: of a ratio if it has a baseline, otherwise of a plain value.
fn range(one: &ClaimHere, low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) if one.baseline.is_none() => interval_of(low, high),
        _ => interval(low, high),
    }
}

/// The published figure or ratio: `1.39`, `0.55 to 0.60`.
pub(crate) fn published(one: &ClaimHere) -> String {
    let Some((low, high)) = one.published else { return String::new() };
    // A range that rounding alone explains is shown as one figure.
    if high - low < 0.03 * high {
        three_digits(f64::midpoint(low, high))
    } else {
        range(one, Some(low), Some(high))
    }
}

/// This machine's figure or ratio with its interval.
pub(crate) fn here_interval(one: &ClaimHere) -> String {
    let Some(here) = one.here else { return String::new() };
    if one.low.is_none() && one.high.is_none() {
        return three_digits(here);
    }
    format!("{} ({})", three_digits(here), range(one, one.low, one.high))
}
