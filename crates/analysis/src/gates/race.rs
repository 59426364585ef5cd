//! What weakens a race's numbers, as far as it follows from the record: gates on generator, machine and answers.
//!
//! Owns the limits of these gates, their messages and remedies, and the gathering of what the epochs noticed. Must not
//! know how findings are shown. What a gate says follows from the record alone, so that a report made later says the
//! same.
//!
//! | code | warns | invalid |
//! |---|---|---|
//! | `not-pinned` | contenders and generator share their cores: a contender that answers slowly pays for waking the generator | |
//! | `few-epochs` | fewer epochs that count than the first look takes | |
//! | `not-server-bound` | closed load, the contender and its services used under 90 % of its cores | |
//! | `generator-saturated` | generator over 70 % of its threads' time, and no closed load held the contender at its limit | over 85 % |
//! | `mismatch` | any answer that is not the expected one | over 0.1 % |
//! | `errors` | any request without an answer | over 0.1 %; a percentile: more of an epoch without an answer than lie beyond it |
//! | `steal` | over 1 % of the rounds' time, those among them that were left out | over 5 % |
//! | `stalls` | open load and peaks: a core stood still for a share of the contender's time over half of what lies beyond the highest percentile | |
//! | `foreign-cpu` | over 2 % of the rounds' time on the servers' cores or on the generator's, those among them that were left out | over 10 % |
//! | `dropped-rounds` | | over 20 % of the rounds |
//! | `no-steady-state` | | from four epochs on: the rate, or under an open load what is done per second of CPU time, climbs by over 1 % within epochs |
//! | `too-noisy` | the margin would take over twice the most epochs | |
//! | `no-keep-alive` | the contender closed over 1 % of its connections after an answer, and no request asked for that | |
//! | `intermittent-slow-slices` | trimmed and total ratio differ | |
//! | `serial-correlation` | from ten epochs on: the epochs' ratios follow each other, beyond 2 standard errors | |
//! | `send-lag` | open load: p99 of the lag that is the generator's over 10 % of the median latency | over 50 %, with 100 requests beyond it; p99 stands while it is under 50 % of that |
//! | `offered-not-achieved` | open load: under 99.5 % of what was due was kept up with | under 98 % |
//! | `littles-law` | | in flight and throughput x latency differ in an epoch by over 2 % (closed), 5 % (open) |
//! | `run-delay` | the generator waited for a CPU over 1 % of the time, and no closed load held the contender at its limit; open load: beyond a tenth of the median latency at each waking | over 5 % |
//! | `ceiling` | the rate, or the peak rate that a search found, is over 50 % of what the generator reaches against a null server in the same session | over 70 % |
//! | `handicap` | closed load: over 1 % slower, beyond 2 standard errors, when the generator works 2 us longer on each request | |
//! | `throttled` | a CPU quota that nobody asked for held the contender or deadheat back | deadheat for over 5 % of the load |
//! | `frozen-by-signal` | open load, CPU time compared: signals, not control groups, freeze contenders, and slices are shorter than 1 s | |
//! | `listen-overflows`, `retransmits`, `swap` | any | |
//! | `peak-not-found` | a contender's search for its peak was given up in a later epoch, which is left out | in the first, or in any epoch its peak lay outside what is tried, or beyond what the generator can do |
//! | `metric-unavailable` | a percentile has under 100 requests beyond it in an epoch | no metric is left |

mod generator;
mod metrics;
mod scenario;
mod scene;

use deadheat_record::{Epoch, Finding, Record, ScenarioPlan};

use crate::judge::Judged;
use crate::report::ContenderResult;
use scene::Scene;

pub(crate) use scene::Reading;

/// Every code that these gates give; the race may notice more.
pub const CODES: [&str; 28] = [
    "not-pinned",
    "few-epochs",
    "not-server-bound",
    "generator-saturated",
    "mismatch",
    "errors",
    "steal",
    "stalls",
    "foreign-cpu",
    "dropped-rounds",
    "no-steady-state",
    "too-noisy",
    "no-keep-alive",
    "intermittent-slow-slices",
    "serial-correlation",
    "send-lag",
    "offered-not-achieved",
    "littles-law",
    "run-delay",
    "ceiling",
    "handicap",
    "throttled",
    "frozen-by-signal",
    "listen-overflows",
    "retransmits",
    "swap",
    "metric-unavailable",
    "peak-not-found",
];

/// Findings that are not about one scenario: those that the race noted, and those that follow from the plan.
pub(crate) fn of_race(record: &Record) -> Vec<Finding> {
    let noted = record.findings.iter().filter(|(scenario, _)| scenario.is_none()).map(|(_, one)| one.clone());
    merged(noted.map(|one| (None, one)).chain(scenario::not_pinned(record).map(|one| (None, one))).collect())
}

/// Findings about one scenario: those that the race and its epochs noted, and those that follow from the figures; and
/// what the gates read.
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

/// At most so many different messages of one code about one contender are shown.
const MOST_ALIKE: usize = 3;

/// The same complaint about the same contender once, with the number of epochs in which it was made; the worst first.
/// Where one complaint has many messages, the last one shown says how many more there are.
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
