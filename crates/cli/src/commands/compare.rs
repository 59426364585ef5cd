//! `deadheat compare`: compares two records and checks whether the new one is worse.

use std::path::Path;

use deadheat_analysis::ConditionResult;
use deadheat_analysis::Report;
use deadheat_analysis::compare::CompareDocument;
use deadheat_analysis::compare::{self, CompareError, FailIf, Named};
use deadheat_record::{AnyRecord, BEYOND, Metric, Plan, ScenarioPlan, read_any};
use deadheat_report::{comparison, terminal};

use super::Failure;
use super::output::{apart, keep_for_data, write, write_json};
use crate::console::Console;
use crate::flags::CompareFlags;
use deadheat_study::choices::UsageError;
use deadheat_study::plan::ROOM;

/// Compares two records and shows the result.
pub(crate) fn compare(flags: &CompareFlags, console: &mut Console) -> Result<u8, Failure> {
    let outputs = [("--json", flags.json.as_ref()), ("--markdown", flags.markdown.as_ref())];
    apart([flags.old.as_path(), &flags.new], &outputs)?;
    keep_for_data(outputs, console)?;
    let document = compared(flags)?;
    console.result(&terminal::comparison(&document, &console.output));
    write_json(flags.json.as_ref(), &document, console)?;
    if let Some(to) = &flags.markdown {
        write(to, "--markdown", &comparison::markdown(&document), console)?;
    }
    Ok(if document.is_invalid() { 3 } else { status_of(&document.conditions) })
}

fn compared(flags: &CompareFlags) -> Result<CompareDocument, Failure> {
    let shown = |path: &Path| path.display().to_string();
    let (old, new) = (read_any(&flags.old)?, read_any(&flags.new)?);
    let files = (shown(&flags.old), shown(&flags.new));
    match (&old, &new) {
        (AnyRecord::Race(old), AnyRecord::Race(new)) => {
            let old = Named { file: files.0, record: old.as_ref() };
            let new = Named { file: files.1, record: new.as_ref() };
            Ok(compare::races(&old, &new, &flags.asked()).map_err(|error| refused(error, flags))?)
        }
        (AnyRecord::Load(old), AnyRecord::Load(new)) => {
            if let Some(option) = flags.of_races_only() {
                let problem =
                    format!("{option}: two loads are one run each, so there is no interval and no verdict");
                let remedy =
                    "race both revisions: deadheat race 'OLD COMMAND' 'NEW COMMAND' --fail-if 'slower by 3%'";
                return Err(UsageError::new(problem, remedy).into());
            }
            let old = Named { file: files.0, record: old.as_ref() };
            let new = Named { file: files.1, record: new.as_ref() };
            Ok(compare::loads(&old, &new))
        }
        _ => {
            let problem =
                format!("{} and {}: one is the record of a race, the other of a load", files.0, files.1);
            Err(UsageError::new(problem, "compare two races, or two loads").into())
        }
    }
}

fn refused(error: CompareError, flags: &CompareFlags) -> Failure {
    let remedy = match &error {
        CompareError::Report { .. } | CompareError::Out { .. } => {
            "race it again, or compare with another record"
        }
        CompareError::Unknown { option: "--fail-if", .. } if !flags.metric.is_empty() => {
            "leave out --metric, or add this metric to it"
        }
        CompareError::Unknown { .. } => "choose one of these",
        CompareError::Nothing { what: "contender", .. } => "name the pairs with --map OLD=NEW",
        CompareError::Twice { .. } => "name it once: each contender is compared with one of the old record",
        CompareError::OnlyReference { .. } => "name another contender, or leave out --contender",
        CompareError::Nothing { .. } => "race the same scenarios in both",
    };
    UsageError::new(error.to_string(), remedy).into()
}

/// Checks before a race that it will compare the metrics that the conditions name.
pub(super) fn askable(plan: &Plan, conditions: &[FailIf]) -> Result<(), UsageError> {
    let mut compared: Vec<Metric> = Vec::new();
    for metric in plan.scenarios.iter().flat_map(|one| plan.metrics(one)) {
        if !compared.contains(&metric) {
            compared.push(metric);
        }
    }
    let missing = |one: &FailIf| one.metric.filter(|metric| !compared.contains(metric));
    let Some((condition, metric)) = conditions.iter().find_map(|one| Some((one, missing(one)?))) else {
        return Ok(());
    };
    let (word, there): (_, Vec<&str>) = (metric.word(), compared.iter().map(|one| one.word()).collect());
    let problem = format!(
        "--fail-if '{}': this race does not compare {word}; it compares {}",
        condition.text,
        there.join(", ")
    );
    let can_ask =
        Metric::OF_LOADS.contains(&metric) && plan.scenarios.iter().any(|one| one.shape.is_steady());
    let remedy = match can_ask {
        true => format!("race with --metric {word}, or leave the metric out"),
        false => "name one of these in the condition, or leave the metric out".into(),
    };
    Err(UsageError::new(problem, remedy))
}

/// Checks that the planned rates and lengths give enough requests for the percentiles in the conditions, or for all metrics of the race if a
/// condition names none. At this point, the plan can still be changed.
pub(super) fn reachable(plan: &Plan, conditions: &[FailIf]) -> Result<(), UsageError> {
    for condition in conditions {
        let meant = |metric: &Metric| condition.metric.is_none_or(|named| named == *metric);
        for scenario in &plan.scenarios {
            for metric in plan.metrics(scenario).into_iter().filter(meant) {
                enough_beyond(plan, scenario, metric, condition)?;
            }
        }
    }
    Ok(())
}

fn enough_beyond(
    plan: &Plan,
    scenario: &ScenarioPlan,
    metric: Metric,
    condition: &FailIf,
) -> Result<(), UsageError> {
    let slices = plan.slices(scenario);
    let beyond = scenario.shape.requests_beyond(slices, metric);
    let Some(beyond) = beyond.filter(|beyond| *beyond < BEYOND) else { return Ok(()) };
    let (word, measured_s) = (metric.word(), slices.measured_ns() as f64 / 1e9);
    let problem = format!(
        "--fail-if '{}': {word} needs {BEYOND} requests beyond it in each epoch, but scenario {} will have only {beyond:.0}, because it measures each contender for {measured_s} s",
        condition.text, scenario.name
    );
    let or_else = match condition.metric {
        Some(_) => "name a lower percentile",
        None => "name a metric in the condition, as in 'p50 slower by 10%'",
    };
    let remedy = format!(
        "measure for {:.0} s with --measure, raise the rate, or {or_else}",
        (ROOM * measured_s * BEYOND / beyond).ceil()
    );
    Err(UsageError::new(problem, remedy))
}

/// Evaluates the conditions for a race and shows the results.
pub(super) fn told(report: &Report, conditions: &[FailIf], console: &Console) -> Vec<ConditionResult> {
    let results = compare::race_conditions(report, conditions);
    console.result(&terminal::conditions(&results, &console.output));
    results
}

/// The exit status of conditions: 3 if a comparison that one is about has no valid result, else 1 if one of them holds, else 0.
pub(super) fn status_of(results: &[ConditionResult]) -> u8 {
    if results.iter().any(|one| !one.unknown.is_empty()) {
        return 3;
    }
    u8::from(results.iter().any(|one| one.holds))
}
