//! A race as the comment of a CI job: what a reviewer has to know, short enough to be read.
//!
//! Owns: what such a comment contains, in which order, and its limits. Must not know: services, where the comment goes, how numbers are computed.

use deadheat_analysis::number::{interval, percent, ratio_within, time_ns, whole};
use deadheat_analysis::{
    Comparison, Conclusion, ConclusionWord, ContenderResult, Ended, Report, ScenarioResult,
};
use deadheat_record::{Finding, Severity};
use serde_json::json;

use super::{described, said, shown, table};
use crate::ReportError;
use crate::comparison::{code, text};
use crate::text::{plain, shorten_end};

/// The files of [`ci`], in their order.
pub const CI_FILES: [&str; 2] = ["comment.md", "conclusion.json"];

/// A comment holds at most this many comparisons, and as many contenders. The page has all of them.
const MOST_ROWS: usize = 24;
/// And at most this many findings.
const MOST_FINDINGS: usize = 5;
/// The length of a check's title, in columns.
const TITLE: usize = 200;

/// The comment as Markdown, and the conclusion as JSON with `conclusion` (`success`, `failure` or `neutral`), `title` and `reason`.
///
/// # Errors
/// None in practice.
pub fn ci(report: &Report) -> Result<[String; 2], ReportError> {
    let conclusion = Conclusion::of(report);
    let short = |text: &str| shorten_end(&plain(text), TITLE, "…");
    let document = json!({
        "conclusion": conclusion.word.word(),
        "title": short(&headline(report)),
        "reason": short(&conclusion.reason),
    });
    Ok([comment(report, &conclusion), crate::json(&document)?])
}

/// The verdict of the first scenario in its first metric, as a sentence.
fn headline(report: &Report) -> String {
    let first = report.scenarios.first().and_then(|one| one.rankings.first());
    first.map_or_else(|| "nothing was measured".into(), |ranking| ranking.headline.clone())
}

fn comment(report: &Report, conclusion: &Conclusion) -> String {
    let sign = match conclusion.word {
        ConclusionWord::Success => "🟢",
        ConclusionWord::Failure => "🔴",
        ConclusionWord::Neutral => "⚪",
    };
    let mut out = format!("### {sign} deadheat: {}\n", text(&headline(report)));
    if conclusion.word != ConclusionWord::Success {
        out += &format!("\n**{}**: {}.\n", conclusion.word.word(), text(&conclusion.reason));
    }
    out += &comparisons(report);
    out += &costs(report);
    out += &findings(report);
    out + &foot(report)
}

/// The scenario's name, if there are several scenarios.
fn within<'a>(report: &Report, scenario: &'a ScenarioResult) -> Option<&'a str> {
    (report.scenarios.len() > 1).then_some(scenario.name.as_str())
}

/// Each contender against the baseline, with the smallest difference that this race could have found.
fn comparisons(report: &Report) -> String {
    let rows: Vec<Vec<String>> = report
        .scenarios
        .iter()
        .flat_map(|scenario| {
            let against = report.against_baseline(scenario).into_iter();
            against.map(move |one| row(one, scenario.ended, within(report, scenario)))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let titles = ["", "metric", "ratio", "interval", "verdict", "could have seen"];
    let more = match rows.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("\nThe page has {more} more comparisons.\n"),
    };
    table(&titles, "---|---|--:|---|---|--:", rows.into_iter().take(MOST_ROWS)) + &more
}

fn row(one: &Comparison, ended: Ended, scenario: Option<&str>) -> Vec<String> {
    let of = scenario.map_or_else(String::new, |name| format!(" in {}", code(name)));
    vec![
        format!("{} / {}{of}", code(&one.contender), code(&one.baseline)),
        one.metric.row().column.into(),
        shown(one.ratio.map(|value| ratio_within(value, one.low, one.high))),
        shown(one.low.or(one.high).map(|_| interval(one.low, one.high))),
        said(one),
        shown(one.could_have_detected(ended).map(|seen| percent(seen - 1.0))),
    ]
}

/// The CPU time per request of each contender.
fn costs(report: &Report) -> String {
    let rows: Vec<Vec<String>> = report
        .scenarios
        .iter()
        .flat_map(|scenario| {
            let base = report.baseline(&scenario.name).and_then(|name| scenario.result(name));
            let base = base.and_then(|one| Some((one.contender.as_str(), one.cpu_us_per_request?)));
            scenario.results.iter().filter_map(move |one| cost(one, base, within(report, scenario)))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    table(&["", "CPU time per request"], "---|--:", rows.into_iter().take(MOST_ROWS))
}

/// `base`: the baseline's name and CPU time per request, in microseconds.
fn cost(one: &ContenderResult, base: Option<(&str, f64)>, scenario: Option<&str>) -> Option<Vec<String>> {
    let us = one.cpu_us_per_request?;
    let of = scenario.map_or_else(String::new, |name| format!(" in {}", code(name)));
    let more = base.filter(|(name, base_us)| *name != one.contender && *base_us > 0.0);
    let more = more.map_or_else(String::new, |(_, base_us)| {
        let change = us / base_us - 1.0;
        let sign = if change < 0.0 { "−" } else { "+" };
        match percent(change.abs()) {
            over if over.starts_with("over ") => format!(" ({over} more)"),
            share => format!(" ({sign}{share})"),
        }
    });
    Some(vec![format!("{}{of}", code(&one.contender)), time_ns(us * 1e3) + &more])
}

/// The findings that invalidate something, with their remedies, and the number of the others.
fn findings(report: &Report) -> String {
    let mut all: Vec<(Option<&String>, &Finding)> = Vec::new();
    for scenario in &report.scenarios {
        all.extend(scenario.findings.iter().map(|one| (Some(&scenario.name), one)));
    }
    all.extend(report.findings.iter().map(|one| (None, one)));
    let invalid: Vec<_> = all.iter().filter(|(_, one)| one.severity == Severity::Invalid).collect();
    let mut out = if invalid.is_empty() { String::new() } else { "\n".into() };
    for (scenario, one) in invalid.iter().take(MOST_FINDINGS) {
        let scenario = scenario.filter(|_| report.scenarios.len() > 1);
        let of = [scenario, one.contender.as_ref()].into_iter().flatten().map(|name| code(name) + ": ");
        let of = of.collect::<String>();
        out += &format!("- {}: {of}{} → {}\n", code(&one.code), text(&one.message), text(&one.remedy));
    }
    let others = all.len() - invalid.len().min(MOST_FINDINGS);
    if others > 0 {
        let are = if others == 1 {
            "1 more finding is".into()
        } else {
            format!("{} more findings are", whole(others as u64))
        };
        out += &format!("\n{are} on the page.\n");
    }
    out
}

/// How much was raced, under which error rate, and on which machine.
fn foot(report: &Report) -> String {
    let method = report.method();
    let epochs = |one: &ScenarioResult| {
        let plan = report.record.plan.scenario(&one.name);
        let looks =
            plan.map_or_else(|| method.looks.clone(), |plan| report.record.plan.method_of(plan).looks);
        format!("{} of at most {}", report.counted(one), looks.last().copied().unwrap_or(0))
    };
    let epochs: Vec<String> = report.scenarios.iter().map(epochs).collect();
    let sessions = report.record.resumed_unix_ms.len();
    let continued = match sessions {
        0 => String::new(),
        1 => ", continued once".into(),
        n => format!(", continued {n} times"),
    };
    format!(
        "\n<sub>{} epochs{continued}; alpha {} over all looks; margin {}; {}; deadheat {}</sub>\n",
        epochs.join(", "),
        method.alpha,
        percent(method.margin),
        text(&described(report)),
        text(&report.record.version)
    )
}
