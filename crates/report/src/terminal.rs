//! The report on a terminal: the end of a race, and the differences that a parity check found.
//!
//! Owns: the order and the wording. It escapes text from outside once, before measuring or padding it. Must not know: how numbers are computed.

mod audit;
mod bar;
mod collector;
mod comparison;
mod edge;
mod findings;
mod ladder;
mod paragraph;
mod parity;
mod profile;
mod quota;
mod scenario;
mod sweep;
mod table;

use deadheat_analysis::number::{clock, percent};
use deadheat_analysis::{Report, accepting};

use crate::style::{Style, Tone};
use crate::text::{plain, wrap};

pub use audit::audit;
pub(crate) use bar::{Bar, DRAWN_FROM, bar};
pub use comparison::{comparison, conditions};
pub(crate) use edge::{behind, over};
pub(crate) use findings::lines as finding_lines;
pub(crate) use ladder::added;
pub(crate) use paragraph::{LABEL, indented, labelled};
pub use parity::parity;
pub(crate) use scenario::{counted, lasted, verdict_tone};

/// The whole report, each line at most as wide as the style says.
pub fn render(report: &Report, style: &Style) -> String {
    let mut lines = Vec::new();
    lines.extend(heading(report, style));
    for scenario in &report.scenarios {
        let name = &scenario.name;
        // A sweep takes the place of its first point.
        let sweep = report.sweep_of(name);
        let first = sweep.and_then(|sweep| sweep.points.first()).is_none_or(|(_, point)| point == name);
        if first {
            lines.push(String::new());
            lines.extend(match sweep {
                Some(sweep) => sweep::lines(report, sweep, style),
                None => scenario::lines(report, scenario, style),
            });
        }
    }
    for ladder in &report.ladders {
        lines.push(String::new());
        lines.extend(ladder::lines(ladder, style));
    }
    if !report.findings.is_empty() {
        lines.push(String::new());
        lines.extend(findings::lines(&report.findings, style));
    }
    let mut not_raced = report.not_raced().peekable();
    if not_raced.peek().is_some() {
        lines.push(String::new());
        lines.push(style.paint(Tone::Strong, "not raced"));
        for (name, why) in not_raced {
            lines.extend(indented(&format!("{}: {}", plain(name), plain(why)), 2, Tone::Plain, style));
        }
    }
    let mut text: String = lines.iter().map(|line| format!("{}\n", line.trim_end())).collect();
    if !report.record.differences.is_empty() {
        text.push('\n');
        text.push_str(&parity(&report.record.differences, style));
        if let Some(options) = accepting(&report.record) {
            // Never wrapped: it is there to be copied.
            text.push_str(&format!("to race them all the same, add:\n  {}\n", plain(&options)));
        }
    }
    text
}

fn heading(report: &Report, style: &Style) -> Vec<String> {
    let (plan, method) = (&report.record.plan, report.method());
    let title = plan.title.as_ref().map(|title| format!(": {}", plain(title))).unwrap_or_default();
    let state = if report.complete { "" } else { ", unfinished" };
    let margin = percent(method.margin);
    let host =
        plan.server_host.as_ref().map(|host| format!(", on {}", plain(&host.host))).unwrap_or_default();
    let begun = || report.record.epochs.iter().map(|epoch| epoch.started_unix_ms);
    let span = begun().max().zip(begun().min()).filter(|_| method.over_ns > 0);
    let over = span.map_or_else(String::new, |(last, first)| {
        format!(", epochs spread over {}", clock((last - first) / 1_000))
    });
    let about = format!(
        "{} profile, seed {}, margin {margin}, alpha {}{over}{host}{state}",
        plain(&method.profile),
        method.seed,
        method.alpha
    );
    let lines = [format!("{}{title}", plain(&report.study)), about];
    let wrapped = lines.iter().flat_map(|line| wrap(line, style.width));
    wrapped.map(|line| style.paint(Tone::Quiet, &line)).collect()
}
