//! A race as Markdown: for a pull request, a decision record, the summary of a workflow.
//!
//! Owns its order and columns. Must not know how numbers come about; names are escaped by those who own that.

use deadheat_record::{
    AuditRecord, Comparison, ContenderResult, Document, Finding, ScenarioResult, Severity, Shape,
};

use crate::audit;
use crate::comparison::{code, text};
use crate::number::{
    bytes, interval, percent, quantile, ratio, ratio_decimals, three_digits, time_ns, whole,
};
use crate::terminal::{metric_title, verdict};
use crate::text::plain;

/// The whole race.
pub fn markdown(document: &Document) -> String {
    race(document, None)
}

/// As [`markdown`], with an audit of the same study.
pub fn markdown_with_audit(document: &Document, audit: &AuditRecord) -> String {
    race(document, Some(audit))
}

fn race(document: &Document, audit: Option<&AuditRecord>) -> String {
    let plan = &document.record.plan;
    let title = plan.title.as_ref().map_or_else(|| code(&document.study), |title| text(title));
    let mut out = format!("## deadheat: {title}\n");
    if !document.complete {
        out += "\n**This race did not come to its planned end.**\n";
    }
    for scenario in &document.scenarios {
        out += &one_scenario(scenario);
    }
    out += &audit.map_or_else(String::new, published);
    out += &differences(document);
    out += &findings(&document.findings);
    out + &foot(document)
}

fn one_scenario(scenario: &ScenarioResult) -> String {
    let mut out = format!(
        "\n### {}\n\n{}; {} epochs\n\n",
        code(&scenario.name),
        shape(&scenario.shape),
        scenario.epochs
    );
    for (place, ranking) in scenario.rankings.iter().enumerate() {
        let headline = text(&ranking.headline);
        out += &match place {
            0 => format!("**{headline}**\n\n"),
            _ => format!("- {}: {headline}\n", ranking.metric.word()),
        };
    }
    if !scenario.results.is_empty() {
        out += &results(scenario);
    }
    if !scenario.comparisons.is_empty() {
        out += &comparisons(scenario);
    }
    if !scenario.collectors.is_empty() {
        out += &collectors(scenario);
    }
    out + &findings(&scenario.findings)
}

fn shape(shape: &Shape) -> String {
    let connections = whole(u64::from(shape.connections()));
    match shape {
        Shape::Closed { .. } => {
            format!("closed load, {connections} connections; latencies are at saturation")
        }
        Shape::Open { rate_per_s, .. } => {
            format!("open load, {} requests/s, at most {connections} connections", three_digits(*rate_per_s))
        }
        Shape::Peak { objective, .. } => format!(
            "highest rate with {} under {}, at most {connections} connections",
            quantile(objective.quantile),
            time_ns(objective.limit_ns as f64)
        ),
        Shape::Starts { starts } => format!("{starts} fresh starts of each, by turns"),
        Shape::Measure { measure } => format!("each contender's own `{}`, in fresh processes", code(measure)),
    }
}

fn results(scenario: &ScenarioResult) -> String {
    let peak = matches!(scenario.shape, Shape::Peak { .. });
    let rate = if peak { "peak/s" } else { "req/s" };
    let mut out = format!(
        "\n| contender | {rate} | p50 | p99 | CPU/req | switches/req | memory | cold start |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    let names = scenario.rankings.first().map(|ranking| &ranking.contenders);
    let place = |one: &ContenderResult| {
        names.and_then(|all| all.iter().position(|other| other.contender == one.contender))
    };
    let mut sorted: Vec<&ContenderResult> = scenario.results.iter().collect();
    sorted.sort_by_key(|one| place(one).unwrap_or(usize::MAX));
    let latency = |ns: Option<u64>| shown(ns.map(|ns| time_ns(ns as f64)));
    for one in sorted {
        let row = [
            code(&one.contender),
            shown(if peak { one.peak_rps } else { one.throughput_rps }.map(three_digits)),
            latency(one.latency_ns.p50),
            latency(one.latency_ns.p99),
            shown(cpu(one)),
            shown(switches(one)),
            shown(one.rss_bytes.map(bytes)),
            latency(one.cold_start_ns),
        ];
        out += &format!("| {} |\n", row.join(" | "));
    }
    out
}

/// CPU time per request, with its two parts where they are known.
fn cpu(one: &ContenderResult) -> Option<String> {
    let time = |us: f64| time_ns(us * 1e3);
    let parts = one.user_us_per_request.zip(one.system_us_per_request);
    let parts = parts.map(|(user, system)| format!(" ({} user, {} system)", time(user), time(system)));
    Some(time(one.cpu_us_per_request?) + &parts.unwrap_or_default())
}

/// Context switches per request, with those that were involuntary.
fn switches(one: &ContenderResult) -> Option<String> {
    let (all, involuntary) = (one.switches_per_request?, one.involuntary_switches_per_request?);
    Some(format!("{} ({} involuntary)", three_digits(all), three_digits(involuntary)))
}

/// From so many pairs on, only those with the baseline in the first metric stand open.
const FOLDED_FROM: usize = 13;

fn comparisons(scenario: &ScenarioResult) -> String {
    let all = &scenario.comparisons;
    let first = all.first().map(|one| (one.metric, &one.baseline));
    let open = |one: &&Comparison| all.len() < FOLDED_FROM || first == Some((one.metric, &one.baseline));
    let (open, folded): (Vec<_>, Vec<_>) = all.iter().partition(open);
    let mut out = pairs(&open);
    if !folded.is_empty() {
        let count = folded.len();
        out += &format!(
            "\n<details><summary>{count} more comparisons</summary>\n{}\n</details>\n",
            pairs(&folded)
        );
    }
    out
}

fn pairs(comparisons: &[&Comparison]) -> String {
    let mut out = String::from("\n| pair | metric | ratio | interval | verdict |\n|---|---|--:|---|---|\n");
    for one in comparisons {
        let row = [
            format!("{} / {}", code(&one.contender), code(&one.baseline)),
            metric_title(one.metric).into(),
            shown(one.ratio.map(|value| ratio(value, ratio_decimals(one.low, one.high)))),
            interval(one.low, one.high),
            said(one),
        ];
        out += &format!("| {} |\n", row.join(" | "));
    }
    out
}

fn collectors(scenario: &ScenarioResult) -> String {
    let mut out = String::from(
        "\nPauses of garbage collectors, from a diagnostic pass of its own with their logging on:\n\n\
         | contender | collector | pauses/s | paused/s | longest |\n|---|---|--:|--:|--:|\n",
    );
    for one in &scenario.collectors {
        let row = [
            code(&one.contender),
            one.kind.word().into(),
            three_digits(one.pauses_per_s),
            time_ns(one.paused_ns_per_s),
            time_ns(one.longest_ns as f64),
        ];
        out += &format!("| {} |\n", row.join(" | "));
    }
    out
}

fn said(one: &Comparison) -> String {
    let aside = match (one.negligible, one.provisional) {
        (true, _) => ", negligible",
        (_, true) => ", provisional",
        _ => "",
    };
    format!("{}{aside}", verdict(one.verdict).0)
}

/// What was published, and what this machine says of it.
fn published(audit: &AuditRecord) -> String {
    let source = match &audit.record {
        Some(file) => format!("its figures are from {}", code(file)),
        None => "nothing was held against this machine".into(),
    };
    format!(
        "\n### Published claims\n\n{}; {source}.\n\n{}",
        text(&audit::headline(audit)),
        audit::claims(audit)
    )
}

fn differences(document: &Document) -> String {
    if document.parity.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "\n### Parity\n\n| contender | probe | where | expected | got |\n|---|---|---|---|---|\n",
    );
    for one in &document.parity {
        let row = [&one.contender, &one.probe, &one.path, &one.expected, &one.got].map(|each| code(each));
        out += &format!("| {} |\n", row.join(" | "));
    }
    out
}

fn findings(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n");
    for one in findings {
        let word = match one.severity {
            Severity::Invalid => "**invalid**",
            Severity::Warn => "warning",
        };
        let who = one.contender.as_ref().map_or_else(String::new, |who| format!("{}: ", code(who)));
        out +=
            &format!("- {word} {}: {who}{} → {}\n", code(&one.code), text(&one.message), text(&one.remedy));
    }
    out
}

fn foot(document: &Document) -> String {
    let method = &document.record.plan.method;
    let machine = &document.machine;
    let cpu = machine.cpu_model.as_ref().map_or_else(String::new, |model| format!("{}, ", text(model)));
    format!(
        "\n<sub>Ratios are of epochs (fresh starts of every contender), at alpha {} for the whole race, margin {}; {cpu}{} logical \
         CPUs; deadheat {}.</sub>\n\n<details><summary>Reproduce this</summary>\n\n{}\n</details>\n",
        method.alpha,
        percent(method.margin),
        machine.cpus,
        text(&document.record.version),
        fenced(&document.reproduce)
    )
}

/// As a block of code that nothing in it can end.
fn fenced(command: &str) -> String {
    let command = plain(command);
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
