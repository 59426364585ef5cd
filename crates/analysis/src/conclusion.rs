//! What a CI job concludes from a race: success, failure or neutral.
//!
//! Owns which verdicts and conditions lead to which conclusion, and the sentence that says why. Must not know: services, colours, exit statuses.

use deadheat_record::{Severity, VerdictWord};

use crate::condition::ConditionResult;
use crate::report::{Comparison, Ended, Report};

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
            return Self { word: ConclusionWord::Failure, reason: holds(held) };
        }
        match open(report) {
            Some(reason) => Self { word: ConclusionWord::Neutral, reason },
            None => Self {
                word: ConclusionWord::Success,
                reason: "every comparison is faster or equivalent".into(),
            },
        }
    }
}

/// The first contender that was excluded from the race.
fn not_raced(report: &Report) -> Option<String> {
    let out = report.record.out.first()?;
    let why = report.contender(out).map_or("excluded from the race", |one| one.status.as_str());
    Some(format!("{out} was not raced to the end: {why}"))
}

fn holds(one: &ConditionResult) -> String {
    let places: Vec<String> =
        one.of.iter().map(|at| format!("{} in {}", at.contender, at.metric.word())).collect();
    format!("`{}` holds for {}", one.condition, places.join(", "))
}

/// Why the race does not answer the question; none if it does.
fn open(report: &Report) -> Option<String> {
    let comparisons: Vec<&Comparison> =
        report.scenarios.iter().flat_map(|scenario| report.against_baseline(scenario)).collect();
    let with = |verdict: VerdictWord| comparisons.iter().find(|one| one.verdict == verdict);
    if comparisons.is_empty() || with(VerdictWord::Invalid).is_some() {
        return Some(format!("the measurement is invalid{}", because(report)));
    }
    if let Some(unknown) = report.conditions.iter().find(|one| one.is_unknown()) {
        return Some(format!("the race cannot tell whether `{}` holds", unknown.condition));
    }
    if with(VerdictWord::Inconclusive).is_some() {
        let is_paused = report.scenarios.iter().any(|one| one.ended == Ended::Unfinished);
        return Some(match is_paused {
            true => "not decided yet; run the job again to continue this race".into(),
            false => "the race has used all its epochs and cannot decide; running the job again shows the same result".into(),
        });
    }
    let slower = comparisons.iter().find(|one| one.verdict == VerdictWord::Slower && !one.negligible)?;
    let metric = slower.metric.word();
    Some(match report.conditions.is_empty() {
        true => {
            format!("{} is slower in {metric}, and no condition of --fail-if was given", slower.contender)
        }
        false => format!(
            "{} is slower in {metric}, but not certainly by as much as --fail-if says",
            slower.contender
        ),
    })
}

/// The message of the first finding that invalidates something.
fn because(report: &Report) -> String {
    let all = report.scenarios.iter().flat_map(|one| &one.findings).chain(&report.findings);
    let first = all.filter(|one| one.severity == Severity::Invalid).map(|one| one.message.as_str()).next();
    first.map_or_else(String::new, |message| format!(": {message}"))
}
