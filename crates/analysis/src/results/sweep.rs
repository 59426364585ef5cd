//! Combines scenarios that differ in one setting.
//!
//! Owns: which scenarios belong to a sweep, and the law fitted to their rates.

use deadheat_record::{Axis, Record, Unit};
use deadheat_stats::{Usl, usl};

use crate::report::{Fit, ScenarioResult, SweepResult};

/// The sweeps of a record, in plan order.
pub(crate) fn all(record: &Record, scenarios: &[ScenarioResult]) -> Vec<SweepResult> {
    let mut sweeps: Vec<SweepResult> = Vec::new();
    for plan in &record.plan.scenarios {
        let Some(point) = &plan.sweep else { continue };
        let entry = (point.value, plan.name.clone());
        match sweeps.iter_mut().find(|sweep| sweep.name == point.of && sweep.axis == point.axis) {
            Some(sweep) => sweep.points.push(entry),
            None => sweeps.push(SweepResult {
                name: point.of.clone(),
                axis: point.axis,
                points: vec![entry],
                fits: Vec::new(),
            }),
        }
    }
    for sweep in &mut sweeps {
        let names = record.plan.contenders.iter().map(|one| one.name.as_str());
        sweep.fits = names.filter_map(|name| fit(sweep, scenarios, name)).collect();
    }
    sweeps
}

/// Fits the law to a contender's rates, without those that a finding invalidates: a generator at its limit would look like contention. None
/// if the law does not apply or there are too few points.
fn fit(sweep: &SweepResult, scenarios: &[ScenarioResult], contender: &str) -> Option<Fit> {
    if matches!(sweep.axis, Axis::LinkRate | Axis::LinkDelay) {
        return None;
    }
    let rate = |(value, name): &(f64, String)| {
        let scenario = scenarios.iter().find(|one| one.name == *name)?;
        let result = scenario.result(contender)?;
        let figure = result.figures.iter().find(|figure| figure.metric.row().unit == Unit::Rate)?;
        let taken = scenario.findings.iter().any(|one| one.takes(contender, Some(figure.metric)));
        (!taken).then_some((*value, figure.value))
    };
    // The law is of whole users or processors.
    let points: Vec<(f64, f64)> = sweep.points.iter().filter_map(rate).filter(|(n, _)| *n >= 1.0).collect();
    let law = usl::fit(&points).ok()?;
    Some(Fit {
        contender: contender.to_owned(),
        lambda: law.lambda,
        sigma: law.sigma,
        kappa: law.kappa,
        peak_at: law.peak_n(),
        r2: law.r2,
        curve: curve(&law, &points),
    })
}

/// The number of steps of a law's curve between the first and the last point.
const STEPS: i32 = 40;

/// The law at equal steps of the logarithm of the axis.
fn curve(law: &Usl, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let first = points.iter().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let last = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let at = |step: i32| first * (last / first).powf(f64::from(step) / f64::from(STEPS));
    (0..=STEPS).map(|step| (at(step), law.throughput(at(step)))).collect()
}
