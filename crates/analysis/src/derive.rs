//! Derives a [`Report`] from a record, in the right order.
//!
//! Owns that order, the rankings of contenders and the reasons why a contender was not raced. Must not know terminals, pages or files.

mod acceptance;
mod headline;
mod reproduce;

pub use acceptance::accepting;

use deadheat_record::{Difference, End, Finding, Metric, Record, SCHEMA, ScenarioPlan};
use deadheat_stats::Progress;

use crate::error::AnalysisError;
use crate::gates::race as gates;
use crate::gates::reading::Reading;
use crate::judge::{Judge, Judged};
use crate::report::{
    Comparison, ContenderResult, ContenderSummary, ParitySummary, Ranked, Ranking, Report, ScenarioResult,
};
use crate::results::{self, collector, comparisons, edge, ladder, load_hosts, profile, shift, sweep};

impl Report {
    /// Derives everything that follows from a record.
    ///
    /// # Errors
    /// When the record is damaged: it has an unreadable histogram, invalid rules, or more epochs than its rules allow.
    pub fn of(record: &Record) -> Result<Self, AnalysisError> {
        let judge = Judge::new(&record.plan.method)?;
        let findings = gates::of_race(record);
        let scenarios = record.plan.scenarios.iter();
        let scenarios: Vec<ScenarioResult> = scenarios
            .map(|scenario| scenario_result(record, scenario, &judge, &findings))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            schema: SCHEMA.into(),
            study: record.plan.study.clone(),
            seed: record.plan.method.seed,
            machine: record.machine.clone(),
            contenders: contenders(record),
            parity: record.differences.iter().map(parity).collect(),
            sweeps: sweep::all(record, &scenarios),
            ladders: ladder::all(record, &scenarios),
            scenarios,
            findings,
            complete: record.done,
            reproduce: reproduce::command(&record.plan),
            conditions: Vec::new(),
            record: record.clone(),
        })
    }
}

fn parity(one: &Difference) -> ParitySummary {
    ParitySummary {
        contender: one.contender.clone(),
        probe: one.probe.clone(),
        path: one.path.clone(),
        expected: one.expected.clone(),
        got: one.got.clone(),
    }
}

fn scenario_result(
    record: &Record,
    scenario: &ScenarioPlan,
    judge: &Judge,
    race_findings: &[Finding],
) -> Result<ScenarioResult, AnalysisError> {
    let name = &scenario.name;
    let damaged = |source| AnalysisError::Histogram { scenario: name.clone(), source };
    let mut results = results::of(record, name).map_err(damaged)?;
    let judged = judged(record, scenario, judge)?;
    let (findings, readings) = gates::of_scenario(record, scenario, &results, &judged);
    let invalid = |contender: &str, metric: Metric| {
        findings.iter().chain(race_findings).any(|one| one.takes(contender, Some(metric)))
    };
    let comparisons = comparisons::all(record, &judged, &invalid);
    let metrics = record.plan.metrics(scenario).into_iter();
    let rankings: Vec<Ranking> = metrics.map(|metric| ranking(metric, &results, &comparisons)).collect();
    if let Some(first) = rankings.first() {
        for result in &mut results {
            result.letters = first.letters(&result.contender).into();
        }
    }
    let mut result = ScenarioResult {
        name: name.clone(),
        shape: scenario.shape.clone(),
        epochs: record.epochs_of(name).count(),
        rankings,
        results,
        comparisons,
        findings,
        gates: readings.into_iter().map(Reading::shown).collect(),
        latency_shifts: shift::of(record, scenario).map_err(damaged)?,
        edge_cache: edge::of(record, scenario).map_err(damaged)?,
        collectors: collector::of(record, name),
        profiles: profile::of(record, name),
        gains: profile::gains(record, name),
        load_hosts: load_hosts::of(record, scenario).map_err(damaged)?,
        ended: record.end_of(name).into(),
    };
    let margin = record.plan.method.margin;
    let baseline = record.plan.method.baseline.as_str();
    let races = result.results.iter().any(|one| one.contender == baseline);
    let control = record.plan.control().filter(|_| races).map(|one| one.name.as_str());
    let revisions = record.plan.contenders.iter().any(|one| one.revision.is_some());
    let wording = headline::Wording { margin, control, revisions, ended: result.ended };
    let said = |one: &Ranking| headline::of(&result, one, wording, race_findings);
    let headlines: Vec<String> = result.rankings.iter().map(said).collect();
    for (ranking, headline) in result.rankings.iter_mut().zip(headlines) {
        ranking.headline = headline;
    }
    Ok(result)
}

/// The judgement of a scenario: by `judge`, which has the method of the race, or by a judge for the scenario's own looks if it has such.
fn judged(record: &Record, scenario: &ScenarioPlan, judge: &Judge) -> Result<Judged, AnalysisError> {
    let name = &scenario.name;
    let own = scenario.shape.starts().map(|_| Judge::new(&record.plan.method_of(scenario))).transpose()?;
    let progress = match record.end_of(name) {
        Some(End::Maximum | End::Budget | End::Stopped | End::Unavailable) => Progress::Ended,
        // Its own verdicts ended it. Where these rules leave a pair open, an older record gets no last look for that.
        Some(End::Decided) | None => Progress::Interrupted,
    };
    own.as_ref().unwrap_or(judge).ask(record, name, progress).map_err(|error| AnalysisError::of(name, error))
}

/// The ranking in one metric. The headline comes later, because it needs the whole scenario.
fn ranking(metric: Metric, results: &[ContenderResult], comparisons: &[Comparison]) -> Ranking {
    let in_metric: Vec<&Comparison> = comparisons.iter().filter(|one| one.metric == metric).collect();
    let order = results::order(results, metric, &in_metric);
    let letters = comparisons::letters(results, &order, &in_metric);
    let ranked = |index: &usize| Ranked {
        contender: results[*index].contender.clone(),
        letters: letters[*index].clone(),
    };
    Ranking { metric, contenders: order.iter().map(ranked).collect(), headline: String::new() }
}

/// All contenders in the plan, and those that were left out of it.
fn contenders(record: &Record) -> Vec<ContenderSummary> {
    let raced = record.plan.contenders.iter().map(|one| ContenderSummary {
        name: one.name.clone(),
        version: one.version.clone(),
        command: one.command.clone(),
        status: if record.out.contains(&one.name) { out_reason(record, &one.name) } else { "raced".into() },
    });
    let skipped = record.plan.skipped.iter().map(|(name, why)| ContenderSummary {
        name: name.clone(),
        version: None,
        command: String::new(),
        status: why.clone(),
    });
    raced.chain(skipped).collect()
}

fn out_reason(record: &Record, name: &str) -> String {
    let first = record.plan.scenarios.first().map(|scenario| &scenario.name);
    let later = record.out_in.iter().find(|(one, scenario)| one == name && Some(scenario) != first);
    let from = later.map_or_else(String::new, |(_, scenario)| format!("from scenario {scenario} on: "));
    from + &match record.differences.iter().filter(|one| one.contender == name).count() {
        0 => "excluded from the race; its findings say why".into(),
        1 => "answers differently in 1 place; make it answer like the others".into(),
        n => format!("answers differently in {n} places; make it answer like the others"),
    }
}
