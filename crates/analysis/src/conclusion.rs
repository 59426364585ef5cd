//! What a CI job concludes from a race: success, failure or neutral.
//!
//! Owns which verdicts and conditions lead to which conclusion, and the sentence that says why. Must not know: services, colours, exit statuses.

use deadheat_record::{Severity, VerdictWord};

use crate::condition::{ConditionPlace, ConditionResult};
use crate::report::{Comparison, Ended, Report, ScenarioResult};

/// The conclusion, in the words of GitHub's check runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConclusionWord {
    /// No contender is slower than the baseline by more than the margin.
    Success,
    /// A condition of `--fail-if` holds, or a contender could not be raced to the end.
    Failure,
    /// The race does not answer the question.
    Neutral,
}

impl ConclusionWord {
    /// `success`, `failure` or `neutral`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Neutral => "neutral",
        }
    }
}

/// A conclusion and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// The conclusion.
    pub word: ConclusionWord,
    /// Why, as one sentence without a final full stop; contains names unescaped.
    pub reason: String,
}

impl Conclusion {
    /// Concludes from the verdicts against the baseline and from the results of [`Report::conditions`].
    pub fn of(report: &Report) -> Self {
        if let Some(reason) = not_raced(report) {
            return Self { word: ConclusionWord::Failure, reason };
        }
        if let Some(held) = report.conditions.iter().find(|one| one.holds) {
            return Self { word: ConclusionWord::Failure, reason: holds(held, report.scenarios.len()) };
        }
        match open(report) {
            Some(reason) => Self { word: ConclusionWord::Neutral, reason },
            None => Self { word: ConclusionWord::Success, reason: good(report).into() },
        }
    }
}

/// Why a race is good in which no contender is slower by more than the margin.
fn good(report: &Report) -> &'static str {
    let mut all = report.scenarios.iter().flat_map(|scenario| report.against_baseline(scenario));
    match all.any(|one| one.verdict == VerdictWord::Slower) {
        true => "every comparison is faster, equivalent or slower within the margin",
        false => "every comparison is faster or equivalent",
    }
}

/// The first contender that was excluded from the race.
fn not_raced(report: &Report) -> Option<String> {
    let out = report.record.out.first()?;
    let why = report.contender(out).map_or("excluded from the race", |one| one.status.as_str());
    Some(format!("{out} was not raced to the end: {why}"))
}

fn holds(one: &ConditionResult, scenarios: usize) -> String {
    let place = |at: &ConditionPlace| match scenarios {
        1 => format!("{} in {}", at.contender, at.metric.word()),
        _ => format!("{} in {} ({})", at.contender, at.scenario, at.metric.word()),
    };
    let places: Vec<String> = one.of.iter().map(place).collect();
    format!("`{}` holds for {}", one.condition, places.join(", "))
}

/// Why the race does not answer the question; none if it does.
fn open(report: &Report) -> Option<String> {
    let comparisons: Vec<&Comparison> =
        report.scenarios.iter().flat_map(|scenario| report.against_baseline(scenario)).collect();
    if comparisons.is_empty() || comparisons.iter().any(|one| one.verdict == VerdictWord::Invalid) {
        return Some(format!("the measurement is invalid{}", because(report)));
    }
    if let Some(reason) = report.scenarios.iter().find_map(|scenario| not_compared(report, scenario)) {
        return Some(reason);
    }
    if let Some(unknown) = report.conditions.iter().find(|one| one.is_unknown()) {
        return Some(format!("the race cannot tell whether `{}` holds", unknown.condition));
    }
    let is_open = |one: &&ScenarioResult| {
        report.against_baseline(one).iter().any(|pair| pair.verdict == VerdictWord::Inconclusive)
    };
    if let Some(undecided) = report.scenarios.iter().find(is_open) {
        let any = |ends: &[Ended]| report.scenarios.iter().any(|one| ends.contains(&one.ended));
        if any(&[Ended::Unfinished]) {
            // Elsewhere, no new race may begin: it would race the scenarios again that are over.
            let is_partly_over = any(&[Ended::Decided, Ended::Maximum, Ended::Budget]);
            let place = if is_partly_over { ", on a machine like the first one," } else { "" };
            return Some(format!("not decided yet; run the job again{place} to continue this race"));
        }
        let why = match undecided.ended {
            Ended::Maximum => "has used all its epochs",
            Ended::Budget => "has used up its time budget",
            _ => "has ended",
        };
        return Some(format!(
            "the race {why} and cannot decide; running the job again shows the same result"
        ));
    }
    let slower = comparisons.iter().find(|one| one.verdict == VerdictWord::Slower && !one.negligible)?;
    let metric = slower.metric.word();
    Some(match report.conditions.is_empty() {
        true => {
            format!("{} is slower in {metric}, and no condition of --fail-if was given", slower.contender)
        }
        false => format!("{} is slower in {metric}, but no condition of --fail-if holds", slower.contender),
    })
}

/// Why a scenario compared nothing; none if it compared something, or if no finding says why.
fn not_compared(report: &Report, scenario: &ScenarioResult) -> Option<String> {
    let invalid = scenario.findings.iter().find(|one| one.severity == Severity::Invalid)?;
    let is_empty = report.against_baseline(scenario).is_empty();
    is_empty.then(|| format!("{} was not compared: {}", scenario.name, invalid.message))
}

/// The message of the first finding that invalidates something.
fn because(report: &Report) -> String {
    let all = report.scenarios.iter().flat_map(|one| &one.findings).chain(&report.findings);
    let first = all.into_iter().find(|one| one.severity == Severity::Invalid);
    first.map_or_else(String::new, |one| match &one.contender {
        Some(contender) => format!(": {contender}: {}", one.message),
        None => format!(": {}", one.message),
    })
}
