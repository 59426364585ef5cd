//! Expands a sweep into scenarios, one for each value.

use deadheat_record::{Axis, Experiment, Finding, Limits, Link, ScenarioPlan, SweepPoint};

use crate::choices::{LoadChoices, UsageError};
use crate::file::{Sweep, shown};

/// The points of a sweep of `scenario`, in the order of its values. `cores` are the contenders' cores. A sweep over cores uses the first of them.
/// Points with more cores, or with a larger quota, than there are cores are left out with a finding.
///
/// # Errors
/// The setting that the sweep varies was also typed.
pub(super) fn points(
    scenario: &ScenarioPlan,
    sweep: &Sweep,
    load: &LoadChoices,
    cores: &[usize],
    findings: &mut Vec<Finding>,
) -> Result<Vec<ScenarioPlan>, UsageError> {
    let axis = sweep.axis.word();
    if sweep.axis == Axis::Connections && load.connections.is_some() {
        let problem = format!("--connections: scenario `{}` sweeps over {axis}", shown(&scenario.name));
        return Err(UsageError::new(
            problem,
            "leave the option out, or choose other scenarios with --scenario",
        ));
    }
    let point = |value: &f64| ScenarioPlan {
        name: format!("{}/{axis}={value}", scenario.name),
        shape: shape(&scenario.shape, sweep.axis, *value),
        limits: limits(&scenario.limits, sweep.axis, *value, cores),
        link: link(scenario.link, sweep.axis, *value),
        sweep: Some(SweepPoint { of: scenario.name.clone(), axis: sweep.axis, value: *value }),
        ..scenario.clone()
    };
    let values = within(sweep, cores);
    if values.len() < sweep.values.len() {
        findings.push(fewer_cores(&scenario.name, cores.len()));
    }
    Ok(values.iter().map(point).collect())
}

/// The values for which the machine has enough cores. If there is none: all cores.
fn within(sweep: &Sweep, cores: &[usize]) -> Vec<f64> {
    let is_of_cores = matches!(sweep.axis, Axis::Cores | Axis::Cpus);
    // A check runs nothing under a limit, so any value will do.
    if !is_of_cores || cores.is_empty() {
        return sweep.values.clone();
    }
    let count = cores.len() as f64;
    let fit: Vec<f64> = sweep.values.iter().copied().filter(|value| *value <= count).collect();
    if fit.is_empty() { vec![count] } else { fit }
}

fn fewer_cores(scenario: &str, count: usize) -> Finding {
    let message = format!(
        "{}: contenders have only {count} {} here, so larger values of its sweep are left out",
        shown(scenario),
        if count == 1 { "core" } else { "cores" }
    );
    Finding::warn(
        "fewer-cores",
        message,
        "give them more with --server-cpus, or use a machine with more cores",
    )
}

fn shape(shape: &Experiment, axis: Axis, value: f64) -> Experiment {
    match axis {
        Axis::Connections => shape.clone().with_connections(value as u32),
        Axis::Cores | Axis::Cpus | Axis::LinkRate | Axis::LinkDelay => shape.clone(),
    }
}

fn limits(limits: &Limits, axis: Axis, value: f64, cores: &[usize]) -> Limits {
    match axis {
        Axis::Connections | Axis::LinkRate | Axis::LinkDelay => limits.clone(),
        Axis::Cores => {
            let mut cpuset: Vec<usize> = cores.iter().copied().take(value as usize).collect();
            cpuset.sort_unstable();
            Limits { cpuset, ..limits.clone() }
        }
        Axis::Cpus => Limits { cpus: Some(value), ..limits.clone() },
    }
}

fn link(link: Option<Link>, axis: Axis, value: f64) -> Option<Link> {
    let other = link.unwrap_or_default();
    match axis {
        Axis::Connections | Axis::Cores | Axis::Cpus => link,
        Axis::LinkRate => Some(Link { rate_bits_per_s: Some((value * 1e6).round() as u64), ..other }),
        Axis::LinkDelay => Some(Link { delay_ns: (value * 1e6).round() as u64, ..other }),
    }
}
