//! Decides where the conditions of `--fail-if` hold.
//!
//! Owns which comparisons a condition applies to: every contender in every scenario, in the metric that it names, otherwise in the metrics
//! that the race was about. Owns also which of these could not be compared. `stats` decides when a condition holds.

use deadheat_record::{Metric, VerdictWord};
use deadheat_stats::Compared;
use deadheat_stats::interval::LogInterval;

use super::document::{Change, ComparedScenario};
use super::options::FailIf;
use crate::condition::{ConditionPlace, ConditionResult};
use crate::judge::{direction, verdict as verdict_of};
use crate::report::{Comparison, Report, ScenarioResult};
use crate::series;

/// Applies the conditions to a comparison of two records.
pub(super) fn of(scenarios: &[ComparedScenario], conditions: &[FailIf]) -> Vec<ConditionResult> {
    let places: Vec<Place<'_>> = scenarios
        .iter()
        .flat_map(|scenario| scenario.changes.iter().map(|one| of_change(&scenario.name, one)))
        .collect();
    let mut results = all(&places, conditions);
    for (result, condition) in results.iter_mut().zip(conditions) {
        let named = condition.metric;
        let is_meant = |one: &Change| named.is_none_or(|metric| one.metric == metric);
        let mut changes = scenarios.iter().flat_map(|scenario| &scenario.changes);
        // If a race was about the metric, the condition applies only there; otherwise to all comparisons in it.
        let some_asked = changes.any(|one| is_meant(one) && one.asked);
        let speaks = |one: &Change| is_meant(one) && (one.asked || named.is_some() && !some_asked);
        let taken = |one: &Change| one.verdict == VerdictWord::Invalid;
        let lacks = |one: &&Change| speaks(one) && (one.old.is_none() || one.new.is_none() || taken(one));
        for scenario in scenarios {
            let place = |one: &Change| ConditionPlace {
                scenario: scenario.name.clone(),
                contender: one.contender.clone(),
                metric: one.metric,
            };
            result.unknown.extend(scenario.changes.iter().filter(lacks).map(place));
        }
    }
    results
}

/// Applies the conditions to a race: to every contender against the baseline. The result is unknown where the condition's metric could not be
/// compared or its comparison is invalid or empty; if the condition names none, this counts for any metric that the race was about.
pub fn of_race(report: &Report, conditions: &[FailIf]) -> Vec<ConditionResult> {
    let mut places = Vec::new();
    for scenario in &report.scenarios {
        let comparisons = report.against_baseline(scenario).into_iter();
        places.extend(comparisons.map(|one| of_comparison(&scenario.name, one)));
    }
    let mut results = all(&places, conditions);
    for (result, condition) in results.iter_mut().zip(conditions) {
        let of_scenario = |scenario: &ScenarioResult| {
            let mut unknown = not_compared(report, &scenario.name, condition.metric);
            unknown.extend(without_result(report, scenario, condition.metric));
            unknown
        };
        result.unknown = report.scenarios.iter().flat_map(of_scenario).collect();
    }
    results
}

/// The places where a scenario was to compare the metric (or, if none is named, any of its metrics) and could not.
fn not_compared(report: &Report, name: &str, named: Option<Metric>) -> Vec<ConditionPlace> {
    let (record, baseline) = (&report.record, report.baseline(name));
    let racing = record.racing(name).into_iter().map(|index| &record.plan.contenders[index]);
    let racing = racing.filter(|one| !one.control).map(|one| &one.name);
    let others: Vec<&String> = racing.filter(|one| Some(one.as_str()) != baseline).collect();
    let missing = series::metrics(record, name).into_iter().filter(|(_, can)| !can).map(|(metric, _)| metric);
    let missing = missing.filter(|metric| named.is_none_or(|one| one == *metric));
    let place = |metric: Metric, contender: &String| ConditionPlace {
        scenario: name.into(),
        contender: contender.clone(),
        metric,
    };
    missing.flat_map(|metric| others.iter().map(move |contender| place(metric, contender))).collect()
}

/// The comparisons of a scenario in the metric (or, if none is named, in any) that are invalid or have no ratio.
fn without_result(report: &Report, scenario: &ScenarioResult, named: Option<Metric>) -> Vec<ConditionPlace> {
    let is_meant = |one: &&Comparison| {
        let lacks = one.verdict == VerdictWord::Invalid || one.ratio.is_none();
        lacks && named.is_none_or(|metric| metric == one.metric)
    };
    let place = |one: &Comparison| ConditionPlace {
        scenario: scenario.name.clone(),
        contender: one.contender.clone(),
        metric: one.metric,
    };
    report.against_baseline(scenario).into_iter().filter(is_meant).map(place).collect()
}

/// One comparison, with its scenario, contender and metric.
struct Place<'a> {
    scenario: &'a str,
    contender: &'a str,
    metric: Metric,
    asked: bool,
    compared: Compared,
}

fn all(places: &[Place<'_>], conditions: &[FailIf]) -> Vec<ConditionResult> {
    let result = |one: &FailIf| {
        let speaks = |place: &&Place<'_>| match one.metric {
            Some(metric) => place.metric == metric,
            None => place.asked,
        };
        let held = places.iter().filter(speaks).filter(|place| one.condition.holds(&place.compared));
        let of: Vec<ConditionPlace> = held
            .map(|place| ConditionPlace {
                scenario: place.scenario.into(),
                contender: place.contender.into(),
                metric: place.metric,
            })
            .collect();
        ConditionResult { condition: one.text.clone(), holds: !of.is_empty(), of, unknown: Vec::new() }
    };
    conditions.iter().map(result).collect()
}

fn of_change<'a>(scenario: &'a str, one: &'a Change) -> Place<'a> {
    let compared = compared(one.verdict, one.negligible, (one.low, one.high), one.more_is_better);
    Place { scenario, contender: &one.contender, metric: one.metric, asked: one.asked, compared }
}

fn of_comparison<'a>(scenario: &'a str, one: &'a Comparison) -> Place<'a> {
    // Between looks, no alpha covers the interval, so that no condition may rest on it.
    let ends = if one.provisional { (None, None) } else { (one.low, one.high) };
    let compared = compared(one.verdict, one.negligible, ends, one.metric.more_is_better());
    Place { scenario, contender: &one.contender, metric: one.metric, asked: true, compared }
}

fn compared(
    word: VerdictWord,
    negligible: bool,
    ends: (Option<f64>, Option<f64>),
    more_is_better: bool,
) -> Compared {
    // A missing upper end beside an existing lower one is too large for a float.
    let interval =
        ends.0.map(|low| LogInterval { low: low.ln(), high: ends.1.map_or(f64::INFINITY, f64::ln) });
    Compared { verdict: verdict_of(word), negligible, interval, direction: direction(more_is_better) }
}
