//! The tables of a race as CSV: results, comparisons, epochs, collectors.
//!
//! Owns: the columns, and the escaping of text that a spreadsheet would interpret as a formula. Must not know: files.

use deadheat_analysis::{CollectorResult, Comparison, ContenderResult, EpochFigures, Report};
use deadheat_record::{ContenderEpoch, Epoch};

use crate::ReportError;
use crate::text::plain;

/// The name of each table's file.
pub const FILES: [&str; 4] = ["results.csv", "comparisons.csv", "epochs.csv", "collectors.csv"];

const RESULTS: [&str; 37] = [
    "scenario",
    "contender",
    "letters",
    "throughput_rps",
    "offered_rps",
    "peak_rps",
    "latency_min_ns",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p75_ns",
    "latency_p90_ns",
    "latency_p95_ns",
    "latency_p99_ns",
    "latency_p99_9_ns",
    "latency_p99_99_ns",
    "latency_max_ns",
    "cpu_us_per_request",
    "user_us_per_request",
    "system_us_per_request",
    "instructions_per_request",
    "instructions_source",
    "switches_per_request",
    "involuntary_switches_per_request",
    "rss_bytes",
    "peak_rss_bytes",
    "cold_start_ns",
    "ok",
    "failed",
    "timeouts",
    "cpu_share",
    "processes",
    "throttled_periods",
    "throttled_ns",
    "received_bytes_per_s",
    "services_us_per_request",
    "measured",
    "artefact_bytes",
];

const COMPARISONS: [&str; 14] = [
    "scenario",
    "metric",
    "baseline",
    "contender",
    "ratio",
    "low",
    "high",
    "alpha",
    "verdict",
    "negligible",
    "provisional",
    "epochs",
    "sd_log_ratio",
    "detectable_ratio",
];

const EPOCHS: [&str; 10] = [
    "scenario",
    "contender",
    "epoch",
    "throughput_rps",
    "cpu_us_per_request",
    "rss_bytes",
    "peak_rss_bytes",
    "cold_start_ns",
    "measured",
    "left_out",
];

const COLLECTORS: [&str; 8] = [
    "scenario",
    "contender",
    "collector",
    "pauses",
    "pauses_per_s",
    "paused_ns_per_s",
    "longest_ns",
    "requests_per_s",
];

/// The four tables, in the order of [`FILES`]. An apostrophe is put before text that a spreadsheet would interpret as a formula.
///
/// # Errors
/// None in practice: it writes to memory.
pub fn csv(report: &Report) -> Result<[String; 4], ReportError> {
    let scenarios = || report.scenarios.iter();
    let results = scenarios().flat_map(|one| one.results.iter().map(|each| result(&one.name, each)));
    let comparisons =
        scenarios().flat_map(|one| one.comparisons.iter().map(|each| comparison(&one.name, each)));
    let epochs = scenarios().flat_map(|one| {
        let of = |each: &ContenderResult| {
            let (scenario, contender) = (&one.name, &each.contender);
            let seen = |epoch: &EpochFigures| seen(report, scenario, contender, epoch.epoch);
            let rows = each.epochs.iter().map(|epoch| in_epoch(scenario, contender, epoch, seen(epoch)));
            rows.collect::<Vec<_>>()
        };
        one.results.iter().flat_map(of).collect::<Vec<_>>()
    });
    let collectors = scenarios().flat_map(|one| one.collectors.iter().map(|each| collector(&one.name, each)));
    Ok([
        table(&RESULTS, results)?,
        table(&COMPARISONS, comparisons)?,
        table(&EPOCHS, epochs)?,
        table(&COLLECTORS, collectors)?,
    ])
}

fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Result<String, ReportError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns)?;
    for row in rows {
        writer.write_record(row)?;
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn result(scenario: &str, one: &ContenderResult) -> Vec<String> {
    let latency = &one.latency_ns;
    let times = [
        latency.min,
        latency.mean,
        latency.p50,
        latency.p75,
        latency.p90,
        latency.p95,
        latency.p99,
        latency.p99_9,
        latency.p99_99,
        latency.max,
    ];
    let mut row = vec![text(scenario), text(&one.contender), one.letters.clone()];
    row.extend([one.throughput_rps, one.offered_rps, one.peak_rps].map(number));
    row.extend(times.map(number));
    row.extend([one.cpu_us_per_request, one.user_us_per_request, one.system_us_per_request].map(number));
    row.extend([
        number(one.instructions_per_request),
        text(one.instructions_source.as_deref().unwrap_or_default()),
    ]);
    row.extend([one.switches_per_request, one.involuntary_switches_per_request].map(number));
    row.extend([one.rss_bytes, one.peak_rss_bytes, one.cold_start_ns].map(number));
    row.extend([one.outcomes.ok, one.outcomes.failed()].map(|count| count.to_string()));
    row.extend([one.outcomes.timeout.to_string(), number(one.cpu_share), number(one.processes)]);
    row.extend([one.throttled.map(|all| all.periods), one.throttled.map(|all| all.ns)].map(number));
    row.extend([one.received_bytes_per_s, one.services_us_per_request, one.measured].map(number));
    row.push(number(one.artefact_bytes));
    row
}

fn comparison(scenario: &str, one: &Comparison) -> Vec<String> {
    let mut row = vec![text(scenario), one.metric.word().into(), text(&one.baseline), text(&one.contender)];
    row.extend([one.ratio, one.low, one.high].map(number));
    row.extend([one.alpha.to_string(), one.verdict.word().into()]);
    row.extend([one.negligible.to_string(), one.provisional.to_string(), one.epochs.to_string()]);
    row.extend([one.sd_log_ratio, one.detectable_ratio].map(number));
    row
}

fn in_epoch(scenario: &str, contender: &str, one: &EpochFigures, seen: Option<Seen<'_>>) -> Vec<String> {
    let mut row = vec![text(scenario), text(contender), one.epoch.to_string()];
    row.extend([one.throughput_rps, one.cpu_us_per_request].map(number));
    row.extend([one.rss_bytes, one.peak_rss_bytes].map(number));
    row.push(number(Some(one.cold_start_ns).filter(|ns| *ns > 0)));
    row.push(number(seen.and_then(|(_, part)| part.measured)));
    row.push(number(seen.map(|(epoch, _)| epoch.is_disturbed())));
    row
}

/// An epoch of the record, and a contender's part of it.
type Seen<'a> = (&'a Epoch, &'a ContenderEpoch);

fn seen<'a>(report: &'a Report, scenario: &str, contender: &str, epoch: usize) -> Option<Seen<'a>> {
    let record = &report.record;
    let place = record.plan.index_of(contender)?;
    let epoch = record.epochs.iter().find(|one| one.scenario == scenario && one.number == epoch)?;
    Some((epoch, epoch.of(place)?))
}

fn collector(scenario: &str, one: &CollectorResult) -> Vec<String> {
    let mut row = vec![text(scenario), text(&one.contender), one.kind.word().into(), one.pauses.to_string()];
    row.extend([one.pauses_per_s, one.paused_ns_per_s].map(|value| value.to_string()));
    row.extend([one.longest_ns.to_string(), one.requests_per_s.to_string()]);
    row
}

fn number<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A name as text. Characters that control a terminal are escaped, including tabs and line ends.
fn text(name: &str) -> String {
    let name = plain(name);
    if name.starts_with(['=', '+', '-', '@']) { format!("'{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_formula_is_text() {
        assert_eq!([text("=1+1"), text("@x"), text("bun -1")], ["'=1+1", "'@x", "bun -1"]);
        assert_eq!([text("\t=1+1"), text("\u{1b}[31mbun\r\n")], ["\\t=1+1", "\\u{1b}[31mbun\\r\\n"]);
    }
}
