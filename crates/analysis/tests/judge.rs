//! A running race and its later report give the same verdicts for the same epochs.

use crate::fixture::{Race, Racer};
use deadheat_analysis::Report;
use deadheat_analysis::judge::{Judge, word};
use deadheat_record::{Experiment, Metric, Record, VerdictWord};
use deadheat_stats::{Next, Progress};

const SCENARIO: &str = "closed-64";

/// Unfinished races, each with 12 epochs or as many as its rules allow.
fn races() -> Vec<(&'static str, Record)> {
    let two = |rate| vec![Racer::new("node", 11_400.0), Racer::new("bun", rate)];
    let race = |racers| Race { epochs: 12, end: None, ..Race::of(racers) };
    let three = [two(17_300.0), vec![Racer::new("go", 17_350.0)]].concat();
    let metrics = vec![Metric::Throughput, Metric::Cpu, Metric::P50, Metric::P99];
    let mut starts =
        Race { shape: Experiment::Starts { starts: 10 }, epochs: 10, ..race(two(11_400.0)) }.record();
    starts.plan.scenarios[0].metrics = vec![Metric::ColdStart];
    vec![
        ("apart", race(two(17_300.0)).record()),
        ("alike", race(two(11_410.0)).record()),
        ("noisy", Race { noise: (0.08, 0.02), ..race(two(11_700.0)) }.record()),
        ("three in four metrics", Race { metrics, ..race(three) }.record()),
        ("fresh starts", starts),
        ("no other contender to compare with", race(vec![Racer::new("node", 11_400.0)]).record()),
    ]
}

#[test]
fn a_race_and_its_report_are_told_the_same() {
    let mut told = Vec::new();
    for (name, whole) in races() {
        let scenario = whole.plan.scenario(SCENARIO).unwrap();
        let judge = Judge::new(&whole.plan.method_of(scenario)).unwrap();
        for epochs in 0..=whole.epochs.len() {
            let mut record = whole.clone();
            record.epochs.truncate(epochs);
            let judged = judge.ask(&record, SCENARIO, Progress::Running).unwrap();
            let reported = Report::of(&record).unwrap().scenarios.remove(0).comparisons;
            let pairs = judged.judgement.iter().flat_map(|all| &all.pairs);
            let raced: Vec<_> =
                pairs.map(|one| (word(one.verdict), one.ratio, one.low, one.high, one.epochs)).collect();
            let shown: Vec<_> =
                reported.iter().map(|one| (one.verdict, one.ratio, one.low, one.high, one.epochs)).collect();
            assert_eq!(raced, shown, "{name}, {epochs} epochs");
            assert_eq!(judged.decision().is_some(), epochs > 0 && !reported.is_empty(), "{name}, {epochs}");
            if judged.decision().is_some_and(|judgement| judgement.next == Next::Decided) {
                assert!(reported.iter().all(|one| one.verdict != VerdictWord::Inconclusive), "{name}");
            }
            told.extend(reported.iter().map(|one| one.verdict));
        }
    }
    // The races must cover every verdict, or the comparison above does not test it.
    use VerdictWord::{Equivalent, Faster, Inconclusive};
    assert!([Equivalent, Faster, Inconclusive].iter().all(|word| told.contains(word)), "{told:?}");
}
