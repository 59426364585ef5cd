//! A comparison of two records on a terminal.
//!
//! Owns: the order, the columns, and which of them matter most. It escapes text from outside once.

use deadheat_analysis::ConditionResult;
use deadheat_analysis::compare::{Change, CompareDocument, ComparedKind, ComparedScenario};
use deadheat_analysis::number::percent;

use super::findings::lines as finding_lines;
use super::paragraph::indented;
use super::scenario::verdict_cell;
use super::table::{self, Cell, Column};
use crate::comparison::{label, outcome, quotient, sentence, shape, value};
use crate::style::{Style, Tone};
use crate::text::{plain, shorten_end, wrap};

/// Maximum number of changes that get a sentence. With more, there is only the table.
const MOST_SENTENCES: usize = 6;

/// The whole comparison, each line at most as wide as the style says.
pub fn comparison(document: &CompareDocument, style: &Style) -> String {
    let mut lines = heading(document, style);
    for scenario in &document.scenarios {
        lines.push(String::new());
        lines.extend(scenario_lines(document, scenario, style));
    }
    if !document.findings.is_empty() {
        lines.push(String::new());
        lines.extend(finding_lines(&document.findings, style));
    }
    lines.extend(condition_lines(&document.conditions, style));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The results of the conditions, with an empty line before them; empty without conditions.
pub fn conditions(results: &[ConditionResult], style: &Style) -> String {
    condition_lines(results, style).iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn heading(document: &CompareDocument, style: &Style) -> Vec<String> {
    let files = format!("{} against {}", plain(&document.new.file), plain(&document.old.file));
    let mut all = vec![files];
    if document.kind == ComparedKind::Races {
        let how = document
            .reference
            .as_ref()
            .map_or_else(|| "measured apart".into(), |one| format!("each epoch divided by {}", plain(one)));
        all.push(format!("{how}, margin {}, alpha {}", percent(document.margin), document.alpha));
    }
    all.iter().flat_map(|line| wrap(line, style.width)).map(|line| style.paint(Tone::Quiet, &line)).collect()
}

fn scenario_lines(document: &CompareDocument, scenario: &ComparedScenario, style: &Style) -> Vec<String> {
    let about = format!("{}: {}", plain(&scenario.name), shape(&scenario.shape));
    let mut lines = indented(&about, 0, Tone::Quiet, style);
    let asked: Vec<&Change> = scenario.changes.iter().filter(|one| one.asked).collect();
    if document.kind == ComparedKind::Loads {
        lines.extend(indented("one run each: no interval, no verdict", 0, Tone::Strong, style));
    } else if asked.len() <= MOST_SENTENCES {
        for one in asked {
            let said = sentence(one, document.margin, document.reference.as_deref(), &plain);
            lines.extend(indented(&said, 0, Tone::Strong, style));
        }
    }
    lines.push(String::new());
    if scenario.changes.is_empty() {
        lines.extend(indented("no contender to compare", 0, Tone::Plain, style));
    } else {
        lines.extend(table::lines(columns(document, scenario, style), 0, 2, style));
    }
    if !scenario.findings.is_empty() {
        lines.push(String::new());
        lines.extend(finding_lines(&scenario.findings, style));
    }
    lines
}

fn columns(document: &CompareDocument, scenario: &ComparedScenario, style: &Style) -> Vec<Column> {
    let changes = &scenario.changes;
    // Show a name once for all its metrics.
    let first = |at: usize, one: &Change| at == 0 || changes[at - 1].contender != one.contender;
    let versions = |one: &Change| match (&one.old_version, &one.new_version) {
        (Some(old), Some(new)) if old != new => format!("{} -> {}", plain(old), plain(new)),
        (_, Some(new)) => plain(new),
        _ => String::new(),
    };
    let quotients = document.reference.as_ref().map_or_else(
        || "new/old".into(),
        |one| format!("new/old by {}", shorten_end(&plain(one), 14, &style.spell("…"))),
    );
    vec![
        Column::of(changes.iter().enumerate(), "contender", None, true, |(at, one)| {
            if first(at, one) { plain(&one.contender) } else { String::new() }
        }),
        Column::of(changes, "metric", None, true, |one| label(one.metric, &scenario.shape)),
        Column::of(changes, "old", Some(8), false, |one| value(one.metric, one.old)),
        Column::of(changes, "new", Some(9), false, |one| value(one.metric, one.new)),
        Column::of(changes, quotients, None, true, quotient),
        Column::of(changes, "verdict", None, true, |one| verdict_cell(one.verdict, one.negligible, false)),
        Column::of(changes, "epochs", Some(3), true, |one| format!("{}, {}", one.old_epochs, one.new_epochs)),
        Column::of(changes.iter().enumerate(), "version", Some(1), true, |(at, one)| Cell {
            text: if first(at, one) { versions(one) } else { String::new() },
            tone: Tone::Quiet,
        }),
    ]
}

fn condition_lines(results: &[ConditionResult], style: &Style) -> Vec<String> {
    if results.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    for one in results {
        let (word, rest) = outcome(one, &plain);
        let tone = if one.holds || one.is_unknown() { Tone::Alarm } else { Tone::Plain };
        lines.extend(indented(&format!("fail if '{}': {word}{rest}", plain(&one.condition)), 0, tone, style));
    }
    lines
}
