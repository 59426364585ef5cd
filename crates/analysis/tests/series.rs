//! Tests of the values that analysis takes from a record: which rounds and epochs count, and which pairs it compares in which metrics.

use crate::fixture::{Race, Racer};
use deadheat_analysis::series::{self, Contest, Values};
use deadheat_record::{EncodedHistogram, Experiment, Metric, Record};
use hdrhistogram::Histogram;
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_pair_is_compared_once_and_the_baseline_is_its_baseline(
        racing in prop::sample::subsequence((0..7_usize).collect::<Vec<_>>(), 0..=7),
        baseline in 0..7_usize,
        all_pairs in any::<bool>(),
    ) {
        let racers = (0..7).map(|n| Racer::new(&format!("c{n}"), 1_000.0)).collect();
        let race = Race { epochs: 0, all_pairs, ..Race::of(racers) };
        let mut record = race.record();
        record.plan.method.baseline = format!("c{baseline}");
        record.out = (0..7).filter(|index| !racing.contains(index)).map(|index| format!("c{index}")).collect();
        let pairs = series::pairs(&record, &record.plan.scenarios[0].name);
        let n = racing.len();
        prop_assert_eq!(pairs.len(), if all_pairs { n * n.saturating_sub(1) / 2 } else { n.saturating_sub(1) });
        let mut unordered: Vec<_> = pairs.iter().map(|(a, b)| (a.min(b), a.max(b))).collect();
        unordered.sort_unstable();
        unordered.dedup();
        prop_assert_eq!(unordered.len(), pairs.len());
        prop_assert!(pairs.iter().all(|(a, b)| a != b && *b != baseline && racing.contains(a) && racing.contains(b)));
    }
}

#[test]
fn windows_of_a_slice_are_one_value() {
    let mut record = two().record();
    let whole = record.epochs[0].rounds[0].slices.iter().find(|slice| slice.contender == 1).unwrap().clone();
    let window = |elapsed_ms: u64, rate_per_s| deadheat_record::Slice {
        elapsed_ns: elapsed_ms * 1_000_000,
        rate_per_s,
        ..whole.clone()
    };
    let before = series::rates(&record.epochs[0], 1);
    let slices = &mut record.epochs[0].rounds[0].slices;
    slices.retain(|slice| slice.contender != 1);
    slices.extend([window(250, None), window(500, Some(100.0)), window(250, Some(600.0))]);
    let rates = series::rates(&record.epochs[0], 1);
    assert_eq!((rates[0], &rates[1..]), (200.0, &before[1..]), "their mean over time, beside other rounds");
    assert_eq!(series::rate_per_s(&record.epochs[0].rounds[0], 7), None);
    let paired =
        series::paired_epochs(&record, "closed-64", &series::contests(&record, "closed-64")).unwrap();
    assert_eq!((paired[0][0].contender[0], paired[0][0].contender.len()), (200.0, before.len()));
}

#[test]
fn dropped_rounds_are_left_out_for_both_sides_and_those_that_nobody_answered() {
    let mut record = Race { dropped_rounds: 2, ..two() }.record();
    assert!(series::rates_by_epoch(&record, "closed-64", 1).iter().all(|epoch| epoch.len() == 8));
    let slice = record.epochs[0].rounds[4].slices.iter_mut().find(|slice| slice.contender == 1).unwrap();
    slice.rate_per_s = None;
    let pairs = |record: &Record| {
        let throughput = contests(&[(0, 1)], Metric::Throughput);
        series::paired_epochs(record, "closed-64", &throughput).unwrap().remove(0)
    };
    let paired = pairs(&record);
    assert_eq!(paired.len(), 6);
    // A stall of one contender alone counts: its rate in that round is 0.
    assert_eq!((paired[0].baseline.len(), paired[0].contender.len()), (8, 8));
    assert_eq!((paired[0].contender[2], paired[0].resolution_ln), (0.0, 0.0));
    for slice in &mut record.epochs[0].rounds[4].slices {
        slice.rate_per_s = None;
    }
    let paired = pairs(&record);
    assert_eq!((paired[0].baseline.len(), paired[0].contender.len(), paired[1].baseline.len()), (7, 7, 8));
    let expected = series::rates(&record.epochs[0], 0);
    assert_eq!(paired[0].baseline, [&expected[..2], &expected[3..]].concat());
    let mut short = record.clone();
    short.plan.method.looks = vec![2, 4];
    assert_eq!(pairs(&short).len(), 6, "the judge refuses more epochs than the rules allow");
    short.out.push("gone".into());
    assert_eq!(pairs(&short).len(), 4, "no race has more epochs that count than its rules allow");
    // A contender without any answer in an epoch has no ratio, so the epoch counts for no pair.
    for slice in record.epochs[1].rounds.iter_mut().flat_map(|round| &mut round.slices) {
        if slice.contender == 1 {
            slice.rate_per_s = None;
        }
    }
    assert_eq!(pairs(&record).len(), 5);
}

#[test]
fn an_epoch_counts_for_all_pairs_or_for_none() {
    let mut record =
        Race { racers: vec![Racer::new("a", 1e4), Racer::new("b", 1e4), Racer::new("c", 1e4)], ..two() }
            .record();
    record.epochs[2].contenders.retain(|part| part.contender != 2);
    let paired =
        series::paired_epochs(&record, "closed-64", &contests(&[(0, 1), (0, 2)], Metric::Throughput))
            .unwrap();
    assert_eq!((paired[0].len(), paired[1].len()), (5, 5));
}

#[test]
fn metrics_of_a_whole_epoch_have_one_value() {
    for metric in [Metric::Cpu, Metric::P50, Metric::P99] {
        let record = Race { metrics: vec![metric], ..two() }.record();
        let paired = series::paired_epochs(&record, "closed-64", &contests(&[(0, 1)], metric)).unwrap();
        assert!(paired[0].iter().all(|epoch| epoch.baseline.len() == 1 && epoch.contender.len() == 1));
        let part = &record.epochs[0].contenders[0];
        let expected = match metric {
            Metric::Cpu => part.usage.cpu_ns as f64 / part.completions as f64,
            Metric::P50 => part.latency.decode().unwrap().value_at_quantile(0.5) as f64,
            _ => part.latency.decode().unwrap().value_at_quantile(0.99) as f64,
        };
        assert_eq!(paired[0][0].baseline, [expected]);
    }
}

#[test]
fn cpu_time_is_that_of_the_rounds_that_were_kept() {
    let mut record = Race { dropped_rounds: 2, metrics: vec![Metric::Cpu], ..two() }.record();
    for round in &mut record.epochs[0].rounds {
        for slice in &mut round.slices {
            // A disturbance of a round also costs CPU time.
            slice.cpu_ns = Some(slice.completions * if round.dropped.is_some() { 900_000 } else { 80_000 });
        }
    }
    let of = |record: &Record, number: usize| series::values(&record.epochs[number], 1, Metric::Cpu).unwrap();
    assert_eq!(of(&record, 0), Values::PerEpoch(Some(80_000.0)));
    let part = &record.epochs[1].contenders[1];
    let whole = part.usage.cpu_ns as f64 / part.completions as f64;
    assert_eq!(of(&record, 1), Values::PerEpoch(Some(whole)), "a record from before slices had theirs");
    record.epochs[0].rounds.iter_mut().for_each(|round| round.dropped = Some("steal 9 %".into()));
    assert_eq!(of(&record, 0), Values::PerEpoch(None));
}

#[test]
fn requests_without_an_answer_are_the_slowest() {
    let mut record = Race { metrics: vec![Metric::P99], ..two() }.record();
    let p99 = |record: &Record| match series::values(&record.epochs[0], 1, Metric::P99).unwrap() {
        Values::PerEpoch(Some(ns)) => ns as u64,
        other => panic!("{other:?}"),
    };
    let all = record.epochs[0].contenders[1].latency.decode().unwrap();
    assert_eq!(p99(&record), all.value_at_quantile(0.99));
    let lose = |record: &mut Record, share: f64| {
        let lost = (all.len() as f64 * share) as u64;
        record.epochs[0].contenders[1].outcomes.cut = lost;
        let own = |slice: &&mut deadheat_record::Slice| slice.contender == 1;
        record.epochs[0].rounds[0].slices.iter_mut().find(own).unwrap().failed = lost;
        assert_eq!(series::unanswered(&record.epochs[0], 1), lost);
    };
    lose(&mut record, 0.005);
    assert_eq!(p99(&record), all.value_at_quantile(0.99 * 1.005));
    assert!(p99(&record) > all.value_at_quantile(0.99));
    lose(&mut record, 0.02);
    assert_eq!(
        p99(&record),
        all.max(),
        "the percentile lies among the unanswered requests, beyond all known latencies"
    );
    record.epochs[0].rounds[0].dropped = Some("steal 9 %".into());
    assert_eq!(series::unanswered(&record.epochs[0], 1), 0);
    record.epochs[0].rounds[0].dropped = None;
    let outcomes = &mut record.epochs[0].contenders[1].outcomes;
    (outcomes.status, outcomes.cut) = (outcomes.cut, 0);
    assert_eq!(series::unanswered(&record.epochs[0], 1), 0, "a wrong answer is one");
}

#[test]
fn under_an_open_load_the_pace_is_what_is_done_per_second_of_cpu_time() {
    let mut record = two().record();
    assert_eq!(series::paces(&record, "closed-64", 1), series::rates_by_epoch(&record, "closed-64", 1));
    for slice in record.epochs[0].rounds.iter_mut().flat_map(|round| &mut round.slices) {
        slice.cpu_ns = Some(slice.completions * 50_000);
    }
    assert_eq!(series::paces(&record, "closed-64", 1), series::rates_by_epoch(&record, "closed-64", 1));
    record.plan.scenarios[0].shape = Experiment::Open { connections: 64, rate_per_s: 9_000.0, poisson: true };
    let paces = series::paces(&record, "closed-64", 1);
    assert!(paces[0].iter().all(|pace| (pace - 20_000.0).abs() < 1e-6), "{paces:?}");
    assert!(paces[1..].iter().all(Vec::is_empty), "older records do not tell");
}

#[test]
fn every_pair_is_compared_in_every_metric() {
    let racers = ["a", "b", "c"].map(|name| Racer::new(name, 20_000.0)).to_vec();
    let race = Race { racers, metrics: vec![Metric::P50, Metric::P99, Metric::Cpu], ..two() };
    let record = race.record();
    let contests = series::contests(&record, "closed-64");
    assert_eq!(contests.len(), 9);
    assert!(
        contests.chunks(3).all(|of_metric| of_metric.iter().all(|one| one.metric == of_metric[0].metric))
    );
    let together = series::paired_epochs(&record, "closed-64", &contests).unwrap();
    let alone = |one: &Contest| series::paired_epochs(&record, "closed-64", &[*one]).unwrap().remove(0);
    assert_eq!(together, contests.iter().map(alone).collect::<Vec<_>>());
}

#[test]
fn a_percentile_that_too_few_requests_lie_beyond_is_not_compared() {
    let asked = vec![Metric::P99, Metric::P50];
    let slow =
        Race { racers: vec![Racer::new("a", 9_000.0), Racer::new("b", 20_000.0)], metrics: asked, ..two() };
    let record = slow.record();
    let (p99, p50) = ((Metric::P99, false), (Metric::P50, true));
    assert_eq!(
        series::metrics(&record, "closed-64"),
        [p99, p50],
        "9,000 requests have 90 beyond the 99th percentile"
    );
    assert_eq!(series::contests(&record, "closed-64"), contests(&[(0, 1)], Metric::P50));
    let mut disturbed = Race { racers: two().racers, ..slow.clone() }.record();
    let of_two = series::contests(&disturbed, "closed-64");
    assert_eq!(
        (of_two.len(), series::paired_epochs(&disturbed, "closed-64", &of_two).unwrap()[0].len()),
        (2, 6)
    );
    disturbed.epochs[0].contenders[1].latency =
        EncodedHistogram::encode(&histogram(&[1_000; 4_999])).unwrap();
    assert_eq!(
        series::contests(&disturbed, "closed-64"),
        of_two,
        "rounds that were left out take no metric away"
    );
    assert_eq!(
        series::paired_epochs(&disturbed, "closed-64", &of_two).unwrap()[0].len(),
        5,
        "but their epoch"
    );
    let before = Race { epochs: 0, ..slow }.record();
    assert!(series::metrics(&before, "closed-64").iter().all(|(_, can)| *can));
}

fn contests(pairs: &[(usize, usize)], metric: Metric) -> Vec<Contest> {
    pairs.iter().map(|&(baseline, contender)| Contest { baseline, contender, metric }).collect()
}

fn histogram(values: &[u64]) -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap();
    values.iter().for_each(|value| histogram.record(*value).unwrap());
    histogram
}

fn two() -> Race {
    Race::of(vec![Racer::new("node", 11_400.0), Racer::new("bun", 17_300.0)])
}
