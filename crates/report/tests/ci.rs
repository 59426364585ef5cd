//! The comment and the conclusion for a CI job.

use crate::fixture::{Race, Racer};
use deadheat_analysis::Report;
use deadheat_analysis::compare::{Condition, ConditionKind, FailIf, race_conditions};
use deadheat_record::{End, Finding, Record};
use deadheat_report::{CI_FILES, ci};
use serde_json::Value;

fn race(head: f64, epochs: usize, end: Option<End>) -> Race {
    let racers = vec![Racer::new("main", 10_000.0), Racer { cpu_share: 0.9, ..Racer::new("branch", head) }];
    Race { epochs, end, all_pairs: false, ..Race::of(racers) }
}

fn written(record: &Record) -> [String; 2] {
    let claim = ConditionKind::Slower(0.03_f64.ln_1p());
    let condition =
        FailIf { text: "slower by 3%".into(), metric: None, condition: Condition { claim, maybe: false } };
    let mut report = Report::of(record).unwrap();
    report.conditions = race_conditions(&report, &[condition]);
    ci(&report).unwrap()
}

#[test]
fn a_comment_says_what_a_reviewer_has_to_know() {
    assert_eq!(CI_FILES, ["comment.md", "conclusion.json"]);
    let decided = written(&race(9_000.0, 10, Some(End::Decided)).record());
    insta::assert_snapshot!(decided.join("\n"));
    let mut record = Race { noise: (0.2, 0.02), ..race(9_900.0, 6, None) }.record();
    record.resumed_unix_ms = vec![1, 2];
    record.findings.push((None, Finding::warn("noisy", "something", "do something")));
    insta::assert_snapshot!(written(&record).join("\n"));
}

#[test]
fn a_comment_stays_short() {
    let racers = (0..60).map(|n| Racer::new(&format!("contender-{n}"), 10_000.0 + f64::from(n)));
    let record = Race { all_pairs: false, epochs: 6, rounds: 4, ..Race::of(racers.collect()) }.record();
    let [comment, _] = written(&record);
    assert!(comment.len() < 20_000 && comment.contains("The page has 35 more comparisons."), "{comment}");
}

#[test]
fn hostile_names_are_data() {
    let bad = "\u{1b}[31m|`<img src=x onerror=alert(1)>@all #1 [a](http://b.c)\n::set-env name=A::b\n<!-- deadheat: x -->\u{202e}";
    let mut record = race(9_000.0, 10, Some(End::Decided)).record();
    record.plan.contenders[1].name = bad.into();
    record.plan.scenarios[0].name = bad.into();
    record.epochs.iter_mut().for_each(|epoch| epoch.scenario = bad.into());
    record.pilots.iter_mut().for_each(|pilot| pilot.scenario = bad.into());
    record.findings.push((None, Finding::invalid(bad, bad, bad).about(bad)));
    record.ended = vec![(bad.into(), End::Decided)];
    record.machine.cpu_model = Some(bad.into());
    record.version = bad.into();
    let [comment, conclusion] = written(&record);
    for text in [&comment, &conclusion] {
        assert!(!text.contains(|one: char| one != '\n' && (one.is_control() || one == '\u{202e}')), "{text}");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("::")), "{text}");
    }
    for part in ["<img", "<!--", "@all", "](", "http://"] {
        assert!(!comment.contains(part), "{part}: {comment}");
    }
    for line in comment.lines().filter(|line| line.starts_with('|')) {
        assert!([3, 7].contains(&line.matches('|').count()), "{line}");
    }
    let read: Value = serde_json::from_str(&conclusion).unwrap();
    assert_eq!(read["conclusion"], "neutral");
    assert!(read["title"].as_str().unwrap().chars().count() <= 200);
}
