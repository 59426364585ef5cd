//! A comparison of two records on a terminal.
//!
//! Owns: the order, the columns, and which of them matter most. It escapes text from outside once.

use deadheat_analysis::compare::{Change, CompareDocument, ComparedKind, ComparedScenario};
use deadheat_analysis::number::percent;
use deadheat_analysis::{ConditionPlace, ConditionResult};

use super::findings::lines as finding_lines;
use super::paragraph::indented;
use super::scenario::verdict;
use super::table::{self, Cell, Column};
use crate::comparison::{label, quotient, sentence, shape, value};
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
    let column = |title: &str, keep: Option<u8>, left: bool, cell: &dyn Fn(usize, &Change) -> Cell| Column {
        group: "",
        title: title.into(),
        left,
        keep,
        cells: scenario.changes.iter().enumerate().map(|(at, one)| cell(at, one)).collect(),
    };
    let said = |text: String| Cell { text: style.spell(&text), tone: Tone::Plain };
    // Show a name once for all its metrics.
    let first = |at: usize, one: &Change| at == 0 || scenario.changes[at - 1].contender != one.contender;
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
        column("contender", None, true, &|at, one| Cell {
            text: if first(at, one) { plain(&one.contender) } else { String::new() },
            tone: Tone::Plain,
        }),
        column("metric", None, true, &|_, one| said(label(one.metric, &scenario.shape))),
        column("old", Some(8), false, &|_, one| said(value(one.metric, one.old))),
        column("new", Some(9), false, &|_, one| said(value(one.metric, one.new))),
        column(&quotients, None, true, &|_, one| said(quotient(one))),
        column("verdict", None, true, &|_, one| {
            let (text, tone) = verdict(one.verdict);
            Cell { text: text.into(), tone: if one.negligible { Tone::Plain } else { tone } }
        }),
        column("epochs", Some(3), true, &|_, one| said(format!("{}, {}", one.old_epochs, one.new_epochs))),
        column("version", Some(1), true, &|at, one| Cell {
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
        let (said, tone) = match one.holds {
            true => (format!("holds: {}", places(&one.of)), Tone::Alarm),
            false if one.is_unknown() => {
                (format!("unknown, because it was not compared: {}", places(&one.unknown)), Tone::Alarm)
            }
            false => ("does not hold".into(), Tone::Plain),
        };
        lines.extend(indented(&format!("fail if '{}': {said}", plain(&one.condition)), 0, tone, style));
    }
    lines
}

/// `api in closed-64 (p99)`, and others.
fn places(all: &[ConditionPlace]) -> String {
    let one = |place: &ConditionPlace| {
        format!("{} in {} ({})", plain(&place.contender), plain(&place.scenario), place.metric.word())
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}
