//! `deadheat compare`: two records, and whether the new one is worse.

use std::path::Path;

use deadheat_record::{AnyRecord, CompareDocument, ConditionResult, Plan, read_any};
use deadheat_report::comparison::{self, CompareError, FailIf, Named};
use deadheat_report::terminal;

use super::Failure;
use super::output::{keep_for_data, write};
use crate::console::Console;
use crate::flags::{CompareFlags, UsageError};

/// Compares two records, and shows what came of it.
pub(crate) fn compare(flags: &CompareFlags, console: &mut Console) -> Result<u8, Failure> {
    keep_for_data([("--json", flags.json.as_ref()), ("--markdown", flags.markdown.as_ref())], console)?;
    let document = compared(flags)?;
    console.result(&terminal::comparison(&document, &console.output));
    if let Some(to) = &flags.json {
        write(to, "--json", &comparison::json(&document)?, console)?;
    }
    if let Some(to) = &flags.markdown {
        write(to, "--markdown", &comparison::markdown(&document), console)?;
    }
    Ok(if document.is_invalid() { 3 } else { u8::from(document.conditions.iter().any(|one| one.holds)) })
}

fn compared(flags: &CompareFlags) -> Result<CompareDocument, Failure> {
    let shown = |path: &Path| path.display().to_string();
    let (old, new) = (read_any(&flags.old)?, read_any(&flags.new)?);
    let files = (shown(&flags.old), shown(&flags.new));
    match (&old, &new) {
        (AnyRecord::Race(old), AnyRecord::Race(new)) => {
            let old = Named { file: files.0, record: old.as_ref() };
            let new = Named { file: files.1, record: new.as_ref() };
            Ok(comparison::races(&old, &new, &flags.asked()).map_err(refused)?)
        }
        (AnyRecord::Load(old), AnyRecord::Load(new)) => {
            if let Some(option) = flags.of_races_only() {
                let problem =
                    format!("{option}: two loads are one run each, and nothing can be told from them");
                let remedy =
                    "race both revisions: deadheat race 'OLD COMMAND' 'NEW COMMAND' --fail-if 'slower by 3%'";
                return Err(UsageError::new(problem, remedy).into());
            }
            let old = Named { file: files.0, record: old.as_ref() };
            let new = Named { file: files.1, record: new.as_ref() };
            Ok(comparison::loads(&old, &new))
        }
        _ => {
            let problem = format!("{} and {}: one is of a race and the other of a load", files.0, files.1);
            Err(UsageError::new(problem, "compare two races, or two loads").into())
        }
    }
}

fn refused(error: CompareError) -> Failure {
    let remedy = match &error {
        CompareError::Report { .. } => "race it again, or compare with another record",
        CompareError::Unknown { option: "--fail-if", .. } => {
            "leave out --metric, or name this metric in it, too"
        }
        CompareError::Unknown { .. } => "choose one of these",
        CompareError::Nothing { what: "contender", .. } => "say who is who with --map OLD=NEW",
        CompareError::Nothing { .. } => "race the same scenarios in both",
    };
    UsageError::new(error.to_string(), remedy).into()
}

/// Whether the race that is planned will compare what the conditions speak of: better known before it than after it.
pub(super) fn askable(plan: &Plan, conditions: &[FailIf]) -> Result<(), UsageError> {
    let compared: Vec<_> =
        plan.scenarios.iter().flat_map(|one| comparison::asked_metrics(plan, &one.name)).collect();
    let named = conditions.iter().filter_map(|one| Some((one, one.metric?)));
    for (condition, metric) in named {
        if !compared.contains(&metric) {
            let word = comparison::metric_word(metric);
            let problem = format!("--fail-if '{}': this race does not compare {word}", condition.text);
            return Err(UsageError::new(
                problem,
                format!("race with --metric {word}, or leave the metric out"),
            ));
        }
    }
    Ok(())
}

/// What the conditions say of a race, shown; whether one of them holds.
pub(super) fn told(view: &deadheat_report::View, conditions: &[FailIf], console: &Console) -> bool {
    let results: Vec<ConditionResult> = comparison::race_conditions(view, conditions);
    console.result(&terminal::conditions(&results, &console.output));
    results.iter().any(|one| one.holds)
}
