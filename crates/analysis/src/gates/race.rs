//! The gates of a race on generator, machine and answers, as far as they follow from the record.
//!
//! Owns the readings, and collects what the epochs noted. Must not know limits and remedies (the table owns them), nor how findings are
//! shown. A gate reads nothing but the record, so that a later report has the same findings.

mod generator;
mod link;
mod metrics;
mod scenario;
mod scene;

use deadheat_record::{Epoch, Finding, Record, ScenarioPlan};

use super::reading::Reading;
use crate::judge::Judged;
use crate::report::ContenderResult;
use scene::Scene;

/// Findings that are not about one scenario: those that the race noted and those that follow from the plan.
pub(crate) fn of_race(record: &Record) -> Vec<Finding> {
    let noted = record.findings.iter().filter(|(scenario, _)| scenario.is_none()).map(|(_, one)| one.clone());
    merged(noted.map(|one| (None, one)).chain(scenario::not_pinned(record).map(|one| (None, one))).collect())
}

/// Findings on one scenario (those that the race and its epochs noted, and those that follow from the values), and what the gates read.
pub(crate) fn of_scenario(
    record: &Record,
    plan: &ScenarioPlan,
    results: &[ContenderResult],
    judged: &Judged,
) -> (Vec<Finding>, Vec<Reading>) {
    let epochs: Vec<&Epoch> = record.epochs_of(&plan.name).collect();
    let noted = record.findings.iter().filter(|(scenario, _)| scenario.as_ref() == Some(&plan.name));
    let in_epochs =
        epochs.iter().flat_map(|epoch| epoch.findings.iter().map(|one| (Some(epoch.number), one.clone())));
    let mut all: Vec<(Option<usize>, Finding)> =
        noted.map(|(_, one)| (None, one.clone())).chain(in_epochs).collect();
    let scene = Scene { record, plan, epochs, results, judged };
    let readings = scenario::all(&scene);
    let derived = readings.iter().filter_map(Reading::finding).chain(metrics::unavailable(&scene));
    all.extend(derived.map(|one| (None, one)));
    (merged(all), readings)
}

/// At most this number of different messages is shown for one code and one contender.
const MOST_ALIKE: usize = 3;

/// Merges equal findings on the same contender into one, with the number of epochs that had it; the worst first. If a code has too many
/// messages, the last one shown says how many more there are.
fn merged(all: Vec<(Option<usize>, Finding)>) -> Vec<Finding> {
    let mut groups: Vec<(Finding, Vec<usize>)> = Vec::new();
    for (epoch, finding) in all {
        match groups.iter_mut().find(|(one, _)| *one == finding) {
            Some((_, epochs)) => epochs.extend(epoch),
            None => groups.push((finding, epoch.into_iter().collect())),
        }
    }
    let mut findings: Vec<Finding> = Vec::new();
    let mut more: Vec<usize> = Vec::new();
    for (finding, epochs) in groups {
        let alike = |one: &Finding| {
            (&one.code, one.severity, &one.contender) == (&finding.code, finding.severity, &finding.contender)
        };
        match findings.iter().rposition(alike) {
            Some(last) if findings.iter().filter(|one| alike(one)).count() >= MOST_ALIKE => more[last] += 1,
            _ => {
                findings.push(in_epochs(finding, epochs));
                more.push(0);
            }
        }
    }
    for (finding, more) in findings.iter_mut().zip(more).filter(|(_, more)| *more > 0) {
        finding.message += &format!(" (and {more} more of this kind in the record)");
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn in_epochs(mut finding: Finding, mut epochs: Vec<usize>) -> Finding {
    epochs.sort_unstable();
    epochs.dedup();
    finding.message += &match epochs[..] {
        [] => String::new(),
        [one] => format!(" (epoch {one})"),
        [first, .., last] => format!(" (in {} epochs, {first} to {last})", epochs.len()),
    };
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_complaint_is_made_once_and_the_worst_comes_first() {
        let warn = Finding::warn("steal", "2 % stolen", "wait");
        let invalid = Finding::invalid("steal", "9 % stolen", "wait");
        let all = vec![
            (Some(1), warn.clone()),
            (Some(4), warn.clone()),
            (None, invalid),
            (Some(2), warn.about("bun")),
        ];
        let merged = merged(all);
        let shown: Vec<&str> = merged.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(shown, ["9 % stolen", "2 % stolen (in 2 epochs, 1 to 4)", "2 % stolen (epoch 2)"]);
    }

    #[test]
    fn different_messages_stay_and_many_are_counted() {
        let left = |pid: usize| (None, Finding::warn("leftover-process", format!("process {pid}"), "end it"));
        let other = (None, Finding::warn("leftover-cgroup", "group g", "remove it"));
        let all: Vec<_> = (1..=5).map(left).chain([other, left(1)]).collect();
        let shown: Vec<String> = merged(all).into_iter().map(|finding| finding.message).collect();
        assert_eq!(
            shown,
            ["process 1", "process 2", "process 3 (and 2 more of this kind in the record)", "group g"]
        );
    }
}
