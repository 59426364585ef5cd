//! Properties of all outcomes and histograms, and plans of older records.

use crate::fixture::{Race, Racer};
use deadheat_record::*;
use hdrhistogram::Histogram;
use proptest::prelude::*;

fn outcomes() -> impl Strategy<Value = Outcomes> {
    prop::array::uniform9(0..1_000_000_u64).prop_map(|n| Outcomes {
        ok: n[0],
        status: n[1],
        mismatch: n[2],
        connect: n[3],
        read: n[4],
        write: n[5],
        timeout: n[6],
        protocol: n[7],
        cut: n[8],
    })
}

fn histogram(values: &[u64]) -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap();
    values.iter().for_each(|value| histogram.record(*value).unwrap());
    histogram
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1..60_000_000_000_u64, 0..200)
}

proptest! {
    #[test]
    fn outcomes_are_counted_once_and_add_up(a in outcomes(), b in outcomes()) {
        let mut sum = a;
        sum.add(&b);
        prop_assert_eq!(sum.total(), a.total() + b.total());
        prop_assert_eq!(sum.failed(), a.failed() + b.failed());
        prop_assert_eq!(a.total() - a.failed(), a.ok);
        prop_assert_eq!(a.wrong(), a.status + a.mismatch);
        let mut other_way = b;
        other_way.add(&a);
        prop_assert_eq!(sum, other_way);
    }

    #[test]
    fn a_histogram_reads_back(values in values()) {
        let histogram = histogram(&values);
        prop_assert_eq!(EncodedHistogram::encode(&histogram).unwrap().decode().unwrap(), histogram);
    }

    #[test]
    fn merged_histograms_hold_what_one_would(parts in prop::collection::vec(values(), 1..5)) {
        let encoded: Vec<_> = parts.iter().map(|part| EncodedHistogram::encode(&histogram(part)).unwrap()).collect();
        let merged = EncodedHistogram::merge(&encoded).unwrap().unwrap();
        prop_assert_eq!(merged, histogram(&parts.concat()));
    }

    #[test]
    fn what_is_no_histogram_is_refused_and_never_panics(text in "[A-Za-z0-9+/]{0,40}={0,2}") {
        prop_assert!(EncodedHistogram(text).decode().is_err());
    }
}

#[test]
fn merging_nothing_is_nothing() {
    assert_eq!(EncodedHistogram::merge([]).unwrap(), None);
    assert_eq!(Quantiles::of(&histogram(&[])), Quantiles::default());
}

#[test]
fn a_percentile_needs_a_hundred_requests_beyond_it() {
    let count = |n| Quantiles::of(&histogram(&vec![1_000; n]));
    assert_eq!((count(199).p50, count(200).p50), (None, Some(1_000)));
    assert_eq!((count(9_999).p99, count(10_000).p99), (None, Some(1_000)));
    assert_eq!((count(99_999).p99_9, count(100_000).p99_9), (None, Some(1_000)));
    assert_eq!((count(1).min, count(1).max, count(1).mean), (Some(1_000), Some(1_000), Some(1_000)));
}

/// Older records have one metric for the whole plan, and no slices for each scenario.
#[test]
fn older_plans_have_the_methods_metric_and_slices() {
    let mut plan = serde_json::to_value(&two().record().plan).unwrap();
    plan["scenarios"][0]
        .as_object_mut()
        .unwrap()
        .retain(|key, _| ["name", "shape", "requests"].contains(&key.as_str()));
    plan["method"]["metric"] = "p99".into();
    let plan: Plan = serde_json::from_value(plan).unwrap();
    assert_eq!(plan.metrics(&plan.scenarios[0]), [Metric::P99]);
    assert_eq!(plan.slices(&plan.scenarios[0]), Slices { slice_ns: 100_000_000, rounds: 10 });
}

fn two() -> Race {
    Race::of(vec![Racer::new("node", 11_400.0), Racer::new("bun", 17_300.0)])
}
