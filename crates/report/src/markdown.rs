//! A race as Markdown: for a pull request, a decision record, the summary of a workflow.
//!
//! Owns: the order and the form of its tables. Must not know: how numbers are computed. The modules that write names escape them.

mod comment;
mod ladder;
mod profile;
mod scenario;
mod sweep;

use deadheat_analysis::number::{percent, three_digits, time_ns};
use deadheat_analysis::{CollectorResult, Comparison, Ended, ParitySummary, Report, ScenarioResult};
use deadheat_record::{AuditRecord, Finding, Severity};

use crate::audit;
use crate::comparison::{code, text};
use crate::terminal;
use crate::text::{plain, verdict};

pub use comment::{CI_FILES, ci};

/// The whole race, with an audit of the same study if there is one.
pub fn markdown(report: &Report, audit: Option<&AuditRecord>) -> String {
    let plan = &report.record.plan;
    let title = plan.title.as_ref().map_or_else(|| code(&report.study), |title| text(title));
    let mut out = format!("## deadheat: {title}\n");
    if !report.complete {
        out += "\n**This race is incomplete.**\n";
    }
    for one in &report.scenarios {
        // A sweep takes the place of its first point.
        out += &match report.sweep_of(&one.name) {
            None => scenario::section(report, one),
            Some(all) if all.points.first().is_some_and(|(_, first)| *first == one.name) => {
                sweep::section(report, all)
            }
            Some(_) => String::new(),
        };
    }
    report.ladders.iter().for_each(|one| out += &ladder::section(one));
    out += &audit.map_or_else(String::new, published);
    out += &differences(report);
    out += &findings(&report.findings);
    out + &foot(report)
}

/// The number of epochs that count, the number left out, and why the scenario ended if its rules did not end it.
fn lasted(report: &Report, scenario: &ScenarioResult) -> String {
    match scenario.ended {
        Ended::Decided | Ended::Maximum | Ended::Budget => terminal::counted(report, scenario),
        Ended::Stopped | Ended::Unavailable | Ended::Unfinished => terminal::lasted(report, scenario),
    }
}

/// A table, with an empty line before it; `rules` is the line below the titles.
pub(crate) fn table(titles: &[&str], rules: &str, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut out = format!("\n| {} |\n|{rules}|\n", titles.join(" | "));
    rows.into_iter().for_each(|row| out += &format!("| {} |\n", row.join(" | ")));
    out
}

/// The results of diagnostic passes. With an axis, its values are next to the contenders.
fn collectors(all: &[(String, &CollectorResult)], axis: &str) -> String {
    if all.is_empty() {
        return String::new();
    }
    let titles = [axis, "contender", "collector", "pauses/s", "paused/s", "longest"];
    let row = |(value, one): &(String, &CollectorResult)| {
        let cells = [
            value.clone(),
            code(&one.contender),
            one.kind.word().into(),
            three_digits(one.pauses_per_s),
            time_ns(one.paused_ns_per_s),
            time_ns(one.longest_ns as f64),
        ];
        cells.into_iter().skip(usize::from(axis.is_empty())).collect()
    };
    let (titles, rules) = if axis.is_empty() {
        (&titles[1..], "---|---|--:|--:|--:")
    } else {
        (&titles[..], "--:|---|---|--:|--:|--:")
    };
    format!(
        "\nPauses of garbage collectors, from a separate diagnostic pass with their logging on:\n{}",
        table(titles, rules, all.iter().map(row))
    )
}

fn said(one: &Comparison) -> String {
    verdict(one.verdict, one.negligible, one.provisional)
}

/// The published figures, with this machine's results for them.
fn published(audit: &AuditRecord) -> String {
    let source = match &audit.record {
        Some(file) => format!("its figures are from {}", code(file)),
        None => "the claims were not compared with this machine".into(),
    };
    format!(
        "\n### Published claims\n\n{}; {source}.\n\n{}",
        text(&audit::headline(audit)),
        audit::claims(audit)
    )
}

fn differences(report: &Report) -> String {
    if report.parity.is_empty() {
        return String::new();
    }
    let titles = ["contender", "probe", "where", "expected", "got"];
    let row = |one: &ParitySummary| {
        [&one.contender, &one.probe, &one.path, &one.expected, &one.got].map(|each| code(each)).into()
    };
    format!("\n### Parity\n{}", table(&titles, "---|---|---|---|---", report.parity.iter().map(row)))
}

fn findings(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    String::from("\n") + &findings.iter().map(finding).collect::<String>()
}

/// A finding as an item of a list.
pub(crate) fn finding(one: &Finding) -> String {
    let word = match one.severity {
        Severity::Invalid => "**invalid**",
        Severity::Warn => "warning",
    };
    let who = one.contender.as_ref().map_or_else(String::new, |who| format!("{}: ", code(who)));
    format!("- {word} {}: {who}{} → {}\n", code(&one.code), text(&one.message), text(&one.remedy))
}

fn foot(report: &Report) -> String {
    let method = &report.record.plan.method;
    format!(
        "\n<sub>Ratios are of epochs (fresh starts of every contender), at alpha {} for each scenario, margin {}; {}; {}; deadheat \
         {}.</sub>\n\n<details><summary>Reproduce this</summary>\n\n{}\n</details>\n",
        method.alpha,
        percent(method.margin),
        begun(report.record.started_unix_ms),
        text(&described(report)),
        text(&report.record.version),
        fenced(&report.reproduce)
    )
}

/// The processor, its number of cores, the hypervisor and the operating system, as far as they are available, and the server host, if
/// there was one.
fn described(report: &Report) -> String {
    let machine = &report.machine;
    let cpus = format!("{} logical CPUs", machine.cpus);
    let host = report.record.plan.server_host.as_ref().map(|host| host.host.clone());
    let known = [machine.cpu_model.clone(), Some(cpus), machine.hypervisor.clone(), machine.os.clone(), host];
    known.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn begun(unix_ms: u64) -> String {
    let moment = i64::try_from(unix_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    moment.map_or_else(
        || "at an unknown time".into(),
        |moment| moment.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

/// A block of code that nothing in the text can end.
fn fenced(command: &str) -> String {
    // A line break is a part of the command, and everything else that is no text stays harmless.
    let command = command.split('\n').map(plain).collect::<Vec<_>>().join("\n");
    let longest = command.split(|one| one != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}sh\n{command}\n{fence}\n")
}

fn shown(value: Option<String>) -> String {
    value.unwrap_or_else(|| "–".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        assert_eq!(fenced("a ```` b"), "`````sh\na ```` b\n`````\n");
    }
}
