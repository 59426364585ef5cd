//! Tests of what an attempt leaves for the next one, and of what a CI job concludes.

use crate::fixture::{Race, Racer, joined};
use deadheat_analysis::compare::{Condition, ConditionKind, FailIf, race_conditions};
use deadheat_analysis::{AlphaLeft, Conclusion, ConclusionWord, Report, alpha_left};
use deadheat_record::{
    Difference, End, Experiment, Finding, Metric, Objective, PeakEnd, PeakSeen, Record, ScenarioPlan,
};

/// Of looks at 6, 10, 15, 20, 25 and 30 epochs, under an alpha of 0.025.
fn race(rate: f64, epochs: usize, end: Option<End>) -> Record {
    let racers = vec![Racer::new("base", 10_000.0), Racer::new("head", rate)];
    Race { epochs, end, all_pairs: false, ..Race::of(racers) }.record()
}

fn slower_by(percent: f64) -> FailIf {
    let claim = ConditionKind::Slower((percent / 100.0).ln_1p());
    FailIf {
        text: format!("slower by {percent}%"),
        metric: None,
        condition: Condition { claim, maybe: false },
    }
}

fn concluded(record: &Record, conditions: &[FailIf]) -> (ConclusionWord, String) {
    let mut report = Report::of(record).unwrap();
    report.conditions = race_conditions(&report, conditions);
    let Conclusion { word, reason } = Conclusion::of(&report);
    (word, reason)
}

#[test]
fn a_look_that_decides_nothing_has_spent_its_part_of_alpha() {
    for (epochs, spent) in [(0, 0.0), (5, 0.0), (6, 0.04), (9, 0.04), (10, 1.0 / 9.0), (29, 25.0 / 36.0)] {
        let AlphaLeft::OfAnOpenRace(left) = alpha_left(&race(9_990.0, epochs, None)).unwrap() else {
            panic!("{epochs} epochs are an open race");
        };
        assert!((left - 0.025 * (1.0 - spent)).abs() < 1e-12, "{epochs} epochs leave {left}");
    }
}

#[test]
fn a_race_with_a_result_leaves_nothing() {
    for (epochs, end) in [(6, End::Decided), (30, End::Maximum), (7, End::Budget)] {
        assert_eq!(alpha_left(&race(9_000.0, epochs, Some(end))).unwrap(), AlphaLeft::Nothing, "{end:?}");
    }
}

#[test]
fn a_race_with_one_of_two_results_can_only_be_continued() {
    let mut record = race(11_000.0, 20, Some(End::Decided));
    let second = ScenarioPlan { name: "second".into(), ..record.plan.scenarios[0].clone() };
    record.plan.scenarios.push(second);
    assert_eq!(alpha_left(&record).unwrap(), AlphaLeft::Nothing);
    let (word, reason) = concluded(&record, &[]);
    assert_eq!(word, ConclusionWord::Neutral);
    assert!(reason.contains("run the job again, on a machine like the first one,"), "{reason}");
}

#[test]
fn a_race_without_a_result_may_be_raced_again() {
    let mut invalid = race(9_000.0, 6, Some(End::Decided));
    invalid.findings.push((None, Finding::invalid("test", "x", "y")));
    assert_eq!(alpha_left(&invalid).unwrap(), AlphaLeft::OfNoResult(0.025), "it claims nothing");
    assert_eq!(alpha_left(&race(9_000.0, 0, Some(End::Stopped))).unwrap(), AlphaLeft::OfNoResult(0.025));
    // Its looks have had their chance to claim something.
    let AlphaLeft::OfNoResult(left) = alpha_left(&race(9_990.0, 10, Some(End::Stopped))).unwrap() else {
        panic!()
    };
    assert!((left - 0.025 * 8.0 / 9.0).abs() < 1e-12, "{left}");
}

/// With a control, as in CI: its valid comparison says nothing of head.
#[test]
fn a_valid_control_does_not_keep_an_invalid_race_from_being_raced_again() {
    let racers = ["base", "head", "control"].map(|name| Racer::new(name, 10_000.0)).to_vec();
    let mut record = Race { all_pairs: false, ..Race::of(racers) }.record();
    record.plan.contenders[2].control = true;
    assert_eq!(alpha_left(&record).unwrap(), AlphaLeft::Nothing);
    let about_head = Finding::invalid("test", "x", "y").about("head");
    record.findings.push((Some("closed-64".into()), about_head));
    assert_eq!(alpha_left(&record).unwrap(), AlphaLeft::OfNoResult(0.025));

    // Head dies: nothing is invalid, and the looks had their chance.
    record.findings.clear();
    record.out = vec!["head".into()];
    assert_eq!(alpha_left(&record).unwrap(), AlphaLeft::Nothing);
    let report = Report::of(&record).unwrap();
    assert_eq!(report.scenarios[0].rankings[0].headline, "no other contender to compare with");
}

#[test]
fn a_contender_that_dies_gives_no_alpha_back() {
    let mut record = race(9_990.0, 10, Some(End::Stopped));
    record.out = vec![record.plan.contenders[1].name.clone()];
    let AlphaLeft::OfNoResult(left) = alpha_left(&record).unwrap() else { panic!() };
    assert!((left - 0.025 * 8.0 / 9.0).abs() < 1e-12, "{left}");
}

/// The attempts of a job are looks of one race or share its alpha, whatever order of machines they meet.
#[test]
fn all_attempts_together_spend_alpha_once() {
    let (mut alpha, mut spent) = (0.025, 0.0);
    for epochs in [6, 10, 25, 6, 15] {
        let mut record = race(9_990.0, epochs, None);
        record.plan.method.alpha = alpha;
        let AlphaLeft::OfAnOpenRace(left) = alpha_left(&record).unwrap() else { panic!() };
        spent += alpha - left;
        alpha = left;
    }
    assert!(alpha > 0.0 && (spent + alpha - 0.025).abs() < 1e-12, "{spent} and {alpha}");
}

#[test]
fn faster_and_equivalent_are_green_and_slower_is_red_beyond_the_threshold() {
    let decided = |rate: f64| race(rate, 20, Some(End::Decided));
    let three = [slower_by(3.0)];
    assert_eq!(concluded(&decided(11_000.0), &three).0, ConclusionWord::Success);
    assert_eq!(concluded(&decided(10_001.0), &three).0, ConclusionWord::Success);
    let (word, reason) = concluded(&decided(9_000.0), &three);
    assert_eq!(
        (word, reason.as_str()),
        (ConclusionWord::Failure, "`slower by 3%` holds for head in throughput")
    );
    let (word, reason) = concluded(&decided(9_000.0), &[slower_by(20.0)]);
    assert_eq!(word, ConclusionWord::Neutral);
    assert_eq!(reason, "head is slower in throughput, but no condition of --fail-if holds");
    let (word, reason) = concluded(&decided(9_000.0), &[]);
    assert_eq!(word, ConclusionWord::Neutral);
    assert!(reason.contains("no condition"), "{reason}");
}

#[test]
fn what_does_not_answer_is_neutral_with_the_reason() {
    let open = |end| Race {
        noise: (0.2, 0.02),
        end,
        epochs: 6,
        ..Race::of(vec![Racer::new("base", 1e4), Racer::new("head", 9_900.0)])
    };
    let (word, reason) = concluded(&open(None).record(), &[slower_by(3.0)]);
    assert_eq!(
        (word, reason.as_str()),
        (ConclusionWord::Neutral, "not decided yet; run the job again to continue this race")
    );
    let (word, reason) = concluded(&open(Some(End::Budget)).record(), &[slower_by(3.0)]);
    assert_eq!(word, ConclusionWord::Neutral);
    assert!(reason.contains("used up its time budget") && reason.contains("the same result"), "{reason}");
    let (_, reason) = concluded(&open(Some(End::Maximum)).record(), &[slower_by(3.0)]);
    assert!(reason.contains("used all its epochs") && reason.contains("the same result"), "{reason}");
    let mut invalid = race(9_000.0, 20, Some(End::Decided));
    invalid.findings.push((None, Finding::invalid("test", "the machine was busy", "y")));
    let (word, reason) = concluded(&invalid, &[slower_by(3.0)]);
    assert_eq!(
        (word, reason.as_str()),
        (ConclusionWord::Neutral, "the measurement is invalid: the machine was busy")
    );
}

#[test]
fn a_green_race_says_that_a_contender_is_slower_within_the_margin() {
    let racers = vec![Racer::new("base", 10_000.0), Racer::new("head", 9_850.0)];
    let race = Race { noise: (0.001, 0.001), all_pairs: false, ..Race::of(racers) };
    let (word, reason) = concluded(&race.record(), &[slower_by(3.0)]);
    assert_eq!(
        (word, reason.as_str()),
        (ConclusionWord::Success, "every comparison is faster, equivalent or slower within the margin")
    );
    let (_, reason) = concluded(&self::race(11_000.0, 20, Some(End::Decided)), &[slower_by(3.0)]);
    assert_eq!(reason, "every comparison is faster or equivalent");
}

/// Other scenarios do not answer for one that compared nothing.
#[test]
fn a_scenario_that_compared_nothing_is_neutral() {
    let objective = Objective { quantile: 0.99, limit_ns: 10_000_000 };
    let shape = Experiment::Peak { connections: 64, objective };
    let racers = vec![Racer::new("base", 10_000.0), Racer::new("head", 11_000.0)];
    let end = Some(End::Unavailable);
    let metrics = vec![Metric::Peak];
    let mut peak = Race { shape, metrics, epochs: 1, end, all_pairs: false, ..Race::of(racers) }.record();
    let below =
        PeakSeen { end: PeakEnd::Below, rate_per_s: 100.0, low_per_s: None, high_per_s: None, trials: 5 };
    peak.epochs[0].contenders.iter_mut().for_each(|part| part.peak = Some(below));
    let steady = race(11_000.0, 20, Some(End::Decided));
    assert_eq!(concluded(&steady, &[]).0, ConclusionWord::Success);
    let both = joined([("steady".to_owned(), steady), ("peak".to_owned(), peak)]);
    let (word, reason) = concluded(&both, &[]);
    assert_eq!(word, ConclusionWord::Neutral);
    assert!(reason.starts_with("peak was not compared: "), "{reason}");
}

#[test]
fn a_contender_that_answers_differently_is_red() {
    let mut record = race(9_000.0, 0, Some(End::Stopped));
    record.differences = vec![Difference {
        contender: "head".into(),
        probe: "item".into(),
        path: "status".into(),
        expected: "200".into(),
        got: "500".into(),
        against: "base".into(),
        when: "before".into(),
    }];
    record.out = vec!["head".into()];
    let (word, reason) = concluded(&record, &[slower_by(3.0)]);
    assert_eq!(word, ConclusionWord::Failure);
    assert!(reason.starts_with("head was not raced to the end: answers differently in 1 place"), "{reason}");
}

/// Between looks, no alpha covers an interval.
#[test]
fn a_condition_holds_only_at_a_look() {
    let paused = |epochs: usize| concluded(&race(8_000.0, epochs, None), &[slower_by(3.0)]).0;
    assert_eq!(
        [paused(5), paused(6), paused(7)],
        [ConclusionWord::Neutral, ConclusionWord::Failure, ConclusionWord::Neutral]
    );
}
