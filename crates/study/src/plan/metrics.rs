//! Chooses the metrics of a scenario (typed, else from the study, else the default of its shape), and checks whether an epoch has enough requests
//! and slices for them.

use std::time::Duration;

use deadheat_record::{BEYOND, Experiment, Metric, Slices};

use super::profiles::MOST_ROUNDS;
use crate::choices::UsageError;
use crate::file::shown;

/// The metrics of a scenario, the most important first.
///
/// # Errors
/// None of the typed metrics allows a comparison under this load.
pub(super) fn metrics(
    scenario: &str,
    shape: &Experiment,
    typed: &[Metric],
    asked: &[Metric],
) -> Result<Vec<Metric>, UsageError> {
    // A scenario without a load has only one metric, whatever was typed for the others.
    let (typed, asked) = if shape.is_load() { (typed, asked) } else { (&[][..], &[][..]) };
    let mut metrics: Vec<Metric> = Vec::new();
    for metric in [typed, asked].into_iter().find(|list| !list.is_empty()).unwrap_or(shape.usual_metrics()) {
        if !metrics.contains(metric) {
            metrics.push(*metric);
        }
    }
    if shape.objective().is_some() && metrics != [Metric::Peak] {
        let problem = format!(
            "--metric: scenario `{}` looks for the peak rate and compares nothing else",
            shown(scenario)
        );
        return Err(UsageError::new(problem, "choose other scenarios with --scenario, or give a --rate"));
    }
    if metrics.contains(&Metric::Throughput) && shape.rate_per_s().is_some() {
        let problem = format!(
            "--metric throughput: scenario `{}` loads all contenders at the same rate, so their throughput is the same",
            shown(scenario)
        );
        let remedy = "compare p50, p99 or cpu at a rate; throughput without --rate (choose with --scenario)";
        return Err(UsageError::new(problem, remedy));
    }
    Ok(metrics)
}

/// An error if the rate is too low to ever compare a metric: a percentile needs requests beyond it.
pub(crate) fn in_reach(
    scenario: &str,
    shape: &Experiment,
    metrics: &[Metric],
    slices: Option<Slices>,
) -> Result<(), UsageError> {
    let (Some(rate_per_s), Some(slices)) = (shape.rate_per_s(), slices) else { return Ok(()) };
    let beyond = |metric: &Metric| shape.requests_beyond(slices, *metric).unwrap_or(f64::INFINITY);
    let lowest = metrics.iter().map(|metric| (beyond(metric), metric)).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((most, metric)) = lowest.filter(|(most, _)| *most < BEYOND) else { return Ok(()) };
    let problem = format!(
        "scenario `{}`: at {rate_per_s} requests/s, an epoch has only {most:.0} requests beyond {}, but needs {BEYOND}",
        shown(scenario),
        metric.word()
    );
    let needed_s = slices.measured_ns() as f64 / 1e9 * BEYOND / most;
    Err(UsageError::new(
        problem,
        format!("use --measure {:.0}s or longer, a higher --rate, or another --metric", needed_s.ceil()),
    ))
}

/// An error if the typed duration needs more slices than an epoch may have.
pub(super) fn in_room(
    scenario: &str,
    typed: Option<Duration>,
    slices: Option<Slices>,
    staged: bool,
) -> Result<(), UsageError> {
    let (Some(typed), Some(slices)) = (typed, slices) else { return Ok(()) };
    let slice = Duration::from_nanos(slices.slice_ns);
    let most = slice * MOST_ROUNDS as u32;
    // Rounding may add one slice, which is not an error.
    if u64::from(slices.rounds) < MOST_ROUNDS || typed <= most + slice {
        return Ok(());
    }
    let problem = format!(
        "scenario `{}`: --measure {typed:?} is more than {MOST_ROUNDS} slices of {slice:?}, and an epoch has no more",
        shown(scenario)
    );
    let longer_ms = typed.as_millis().div_ceil(u128::from(MOST_ROUNDS));
    // With stages, a slice always has the length of all stages, so `--slice` cannot change it.
    let longer = if staged { String::new() } else { format!(", or longer slices: --slice {longer_ms}ms") };
    Err(UsageError::new(problem, format!("use --measure {}ms or shorter{longer}", most.as_millis())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_than_an_epoch_can_be_is_refused() {
        let told = |typed, slice_ns, rounds| {
            in_room("s", Some(Duration::from_secs(typed)), Some(Slices { slice_ns, rounds }), false).err()
        };
        assert_eq!(
            (told(20, 100_000_000, 200), told(3, 100_000_000, 30), told(60, 1_000_000_000, 60)),
            (None, None, None)
        );
        let error = told(60, 100_000_000, 200).unwrap();
        assert_eq!(
            error.problem,
            "scenario `s`: --measure 60s is more than 200 slices of 100ms, and an epoch has no more"
        );
        assert_eq!(error.remedy, "use --measure 20000ms or shorter, or longer slices: --slice 300ms");
        assert_eq!(in_room("s", None, Some(Slices { slice_ns: 1, rounds: 200 }), false), Ok(()));
    }

    const CLOSED: Experiment = Experiment::Closed { connections: 8 };

    fn open(rate_per_s: f64) -> Experiment {
        Experiment::Open { connections: 8, rate_per_s, poisson: true }
    }

    #[test]
    fn what_is_typed_comes_before_what_is_asked_and_what_is_usual() {
        let of = |shape: &Experiment, typed: &[Metric], asked: &[Metric]| {
            metrics("s", shape, typed, asked).unwrap()
        };
        assert_eq!(of(&CLOSED, &[], &[]), [Metric::Throughput]);
        assert_eq!(of(&open(10.0), &[], &[]), [Metric::P50, Metric::P99]);
        assert_eq!(of(&open(10.0), &[], &[Metric::Cpu]), [Metric::Cpu]);
        let typed = [Metric::P99, Metric::Cpu, Metric::P99];
        assert_eq!(of(&open(10.0), &typed, &[Metric::Cpu]), [Metric::P99, Metric::Cpu]);
        let error = metrics("s", &open(10.0), &[Metric::Throughput], &[]).unwrap_err();
        assert!(error.problem.contains("scenario `s`"), "{error}");
    }

    #[test]
    fn a_rate_at_which_nothing_can_be_compared_is_refused() {
        let slices = Slices { slice_ns: 1_000_000_000, rounds: 4 };
        let told = |rate, metrics: &[Metric]| in_reach("s", &open(rate), metrics, Some(slices)).err();
        assert_eq!(told(100.0, &[Metric::P99, Metric::P50]), None);
        assert_eq!(told(1.0, &[Metric::P99, Metric::Cpu]), None);
        let error = told(100.0, &[Metric::P99]).unwrap();
        assert!(
            error.problem.contains("4 requests beyond p99") && error.remedy.contains("--measure 100s"),
            "{error}"
        );
        assert!(told(10.0, &[Metric::P99, Metric::P50]).unwrap().problem.contains("20 requests beyond p50"));
    }
}
