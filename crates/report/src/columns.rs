//! The columns that show each contender's figures, shared by terminal and Markdown.
//!
//! Owns: the figures of each kind of scenario, and their format. Must not know: how a table is laid out.

use deadheat_analysis::ContenderResult;
use deadheat_analysis::number::{amount, bytes, parts_ns, percent, seldom, three_digits, time_ns, whole};
use deadheat_record::{Experiment, Limits, Metric};

/// One column.
pub(crate) struct FigureColumn {
    pub(crate) title: &'static str,
    /// The heading above several titles.
    pub(crate) group: &'static str,
    /// If there is no room for all columns, those with the lowest numbers are dropped first.
    pub(crate) keep: u8,
    /// The metric that it shows.
    pub(crate) metric: Option<Metric>,
    cell: Cell,
}

enum Cell {
    Value(Metric),
    Other(fn(&ContenderResult) -> Option<String>),
}

impl FigureColumn {
    fn metric(metric: Metric, keep: u8) -> Self {
        let (title, cell) = (metric.row().column, Cell::Value(metric));
        Self { title, group: "", keep, metric: Some(metric), cell }
    }

    fn other(title: &'static str, keep: u8, cell: fn(&ContenderResult) -> Option<String>) -> Self {
        Self { title, group: "", keep, metric: None, cell: Cell::Other(cell) }
    }

    /// The cell of a contender; none if it was not measured.
    pub(crate) fn of(&self, result: &ContenderResult) -> Option<String> {
        match self.cell {
            Cell::Value(metric) => value(result, metric),
            Cell::Other(cell) => cell(result),
        }
    }
}

/// A contender's figure in a metric, with its unit.
pub(crate) fn value(result: &ContenderResult, metric: Metric) -> Option<String> {
    let unit = metric.row().unit;
    result.value(metric).map(|value| amount(unit, value / unit.scale()))
}

/// The columns of a scenario.
pub(crate) fn of(experiment: &Experiment) -> Vec<FigureColumn> {
    let saturated = if experiment.is_closed() { "at saturation" } else { "" };
    let (load, steady) = (experiment.is_load(), experiment.is_steady());
    let (open, starts) = (experiment.rate_per_s().is_some(), experiment.starts().is_some());
    let shown = [
        experiment.objective().map(|_| FigureColumn::metric(Metric::Peak, 9)),
        starts.then(|| FigureColumn::metric(Metric::ColdStart, 9)),
        starts.then(|| {
            FigureColumn::other("geometric mean", 0, |one| {
                Some(time_ns(one.figure(Metric::ColdStart)?.value))
            })
        }),
        starts.then(|| FigureColumn::other("95 % interval", 0, |one| interval(one, Metric::ColdStart))),
        starts.then(|| FigureColumn::other("starts", 0, |one| Some(whole(one.cold_starts_ns.len() as u64)))),
        experiment.measure().map(|_| FigureColumn::metric(Metric::Measure, 9)),
        experiment
            .measure()
            .map(|_| FigureColumn::other("95 % interval", 0, |one| interval(one, Metric::Measure))),
        steady.then(|| FigureColumn::metric(Metric::Throughput, 5)),
        open.then(|| FigureColumn::other("of offered", 7, kept_up)),
        steady.then(|| FigureColumn { group: saturated, ..FigureColumn::metric(Metric::P50, 4) }),
        steady.then(|| FigureColumn { group: saturated, ..FigureColumn::metric(Metric::P99, 8) }),
        load.then(|| FigureColumn::metric(Metric::Cpu, 6)),
        load.then(|| FigureColumn {
            group: "CPU time",
            ..FigureColumn::other("user + system", 1, user_and_system)
        }),
        load.then(|| FigureColumn::other("instructions/req", 0, |one| instructions(one, "instructions"))),
        load.then(|| {
            FigureColumn::other("user-mode instr./req", 0, |one| instructions(one, "instructions:u"))
        }),
        load.then(|| FigureColumn::other("switches/req", 0, |one| one.switches_per_request.map(seldom))),
        load.then(|| FigureColumn::metric(Metric::Memory, 3)),
        load.then(|| FigureColumn::metric(Metric::ColdStart, 2)),
        starts.then(|| FigureColumn::other("artefact", 2, |one| one.artefact_bytes.map(bytes))),
    ];
    shown.into_iter().flatten().collect()
}

/// Columns that show the effect of a CPU quota, most important first.
pub(crate) fn of_quota() -> Vec<FigureColumn> {
    vec![
        FigureColumn::other("processes", 8, |one| one.processes.map(|count| whole(count as u64))),
        FigureColumn::other("of quota", 7, |one| one.cpu_share.map(percent)),
        FigureColumn::other("throttled periods", 6, |one| one.throttled.map(|all| whole(all.periods))),
        FigureColumn::other("timeouts", 5, |one| Some(whole(one.outcomes.timeout))),
        FigureColumn::other("slowest", 4, |one| one.latency_ns.max.map(|ns| time_ns(ns as f64))),
        FigureColumn::other("received", 3, |one| {
            one.received_bytes_per_s.map(|rate| format!("{}/s", bytes(rate as u64)))
        }),
    ]
}

/// The limits of each contender, if they include a share of CPU time: `1 core and 512 MiB`.
pub(crate) fn quota(limits: &Limits) -> Option<String> {
    let cpus = limits.cpus?;
    let cores = if cpus > 1.0 { "cores" } else { "core" };
    let memory = limits.memory_bytes.map_or_else(String::new, |size| format!(" and {}", bytes(size)));
    Some(format!("{cpus} {cores}{memory}"))
}

/// The share of the offered requests that the contender kept up with.
fn kept_up(result: &ContenderResult) -> Option<String> {
    result.achieved_share.map(percent)
}

/// The two parts of the CPU time per request.
fn user_and_system(result: &ContenderResult) -> Option<String> {
    Some(parts_ns(result.user_us_per_request? * 1e3, result.system_us_per_request? * 1e3))
}

/// Instructions per request, if they were counted from this source.
fn instructions(result: &ContenderResult, source: &str) -> Option<String> {
    let counted = result.instructions_per_request;
    counted.filter(|_| result.instructions_source.as_deref() == Some(source)).map(three_digits)
}

/// The 95 % interval of a time over epochs. It is that of the geometric mean, not of the median.
fn interval(result: &ContenderResult, metric: Metric) -> Option<String> {
    let figure = result.figure(metric)?;
    Some(format!("{} to {}", time_ns(figure.low?), time_ns(figure.high?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_share_of_cpu_time_is_a_quota() {
        let limits = |cpus, memory_bytes| Limits { cpus, memory_bytes, ..Limits::default() };
        let said = |cpus, memory_bytes| quota(&limits(cpus, memory_bytes)).unwrap_or_default();
        assert_eq!(said(Some(1.0), None), "1 core");
        assert_eq!(said(Some(2.5), Some(512 << 20)), "2.5 cores and 512 MiB");
        assert_eq!([quota(&limits(None, Some(1))), quota(&Limits::default())], [None, None]);
    }
}
