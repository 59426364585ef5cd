//! What a race leaves for another attempt at the same question.
//!
//! Owns when a race may be raced again, and with which error rate. All attempts together then make a false claim with at most the error rate of
//! the first. Must not know: whether this machine can continue the race.

use deadheat_record::{End, Record, Severity, VerdictWord};

use crate::error::AnalysisError;
use crate::judge::Judge;
use crate::report::{Comparison, Report};

/// What a race leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AlphaLeft {
    /// No new race may begin: a scenario ended with a verdict or has spent its alpha, and racing it again would be a second chance. If other scenarios
    /// are open, the race can only be continued.
    Nothing,
    /// The race is not over. If it cannot be continued, a new race may spend this error rate.
    OfAnOpenRace(f64),
    /// The race is over without a result that counts, for example because its measurement is invalid. A new race may spend this error rate.
    OfNoResult(f64),
}

/// Returns what a race leaves for another attempt.
///
/// A look that decides nothing has spent its part of alpha all the same, so a new race gets only what is left. A race that gates invalidated makes no
/// claim, and no gate depends on which of two versions was faster. So it has spent nothing.
///
/// # Errors
/// When the record is damaged, as for [`Report::of`].
pub fn alpha_left(record: &Record) -> Result<AlphaLeft, AnalysisError> {
    let report = Report::of(record)?;
    let method = &record.plan.method;
    let ends: Vec<Option<End>> = report.scenarios.iter().map(|one| record.end_of(&one.name)).collect();
    let is_over = ends.iter().all(Option::is_some);
    let is_spent = |end: &Option<End>| matches!(end, Some(End::Decided | End::Maximum | End::Budget));
    if is_over && has_no_valid_comparison(&report) {
        return Ok(AlphaLeft::OfNoResult(method.alpha));
    }
    // A scenario that has its verdict must not be raced again, and one race holds all scenarios.
    if ends.iter().any(is_spent) {
        return Ok(AlphaLeft::Nothing);
    }
    let mut spent: f64 = 0.0;
    for one in &record.plan.scenarios {
        let judge = Judge::new(&record.plan.method_of(one))?;
        let of_scenario = judge.spent(record, &one.name);
        spent = spent.max(of_scenario.map_err(|error| AnalysisError::of(&one.name, error))?);
    }
    let left = method.alpha * (1.0 - spent);
    Ok(match (left > 0.0, is_over) {
        (false, _) => AlphaLeft::Nothing,
        (true, true) => AlphaLeft::OfNoResult(left),
        (true, false) => AlphaLeft::OfAnOpenRace(left),
    })
}

/// Whether every comparison of the race is invalid, or nothing could be compared because of an invalid finding. Those with the control do not count:
/// they answer no question about a contender.
fn has_no_valid_comparison(report: &Report) -> bool {
    let control = report.record.plan.control().map(|one| one.name.as_str());
    let is_meant = |one: &&Comparison| {
        ![&one.baseline, &one.contender].map(|name| Some(name.as_str())).contains(&control)
    };
    let mut pairs = report.scenarios.iter().flat_map(|one| &one.comparisons).filter(is_meant).peekable();
    match pairs.peek() {
        Some(_) => pairs.all(|one| one.verdict == VerdictWord::Invalid),
        None => {
            report.scenarios.iter().flat_map(|one| &one.findings).any(|one| one.severity == Severity::Invalid)
        }
    }
}
