//! A sweep as scenarios: one for each of its values.

use deadheat_record::{Axis, ScenarioPlan, Shape, SweepPoint};

use crate::flags::{LoadChoices, UsageError};
use crate::study::{Sweep, shown};

/// The points of a sweep of `scenario`, in the order of its values.
///
/// # Errors
/// When the setting that it goes over was typed.
pub(super) fn points(
    scenario: &ScenarioPlan,
    sweep: &Sweep,
    load: &LoadChoices,
) -> Result<Vec<ScenarioPlan>, UsageError> {
    let axis = sweep.axis.word();
    if sweep.axis == Axis::Connections && load.connections.is_some() {
        let problem = format!("--connections: scenario `{}` sweeps over {axis}", shown(&scenario.name));
        return Err(UsageError::new(
            problem,
            "leave the option out, or choose other scenarios with --scenario",
        ));
    }
    let point = |value: &u32| ScenarioPlan {
        name: format!("{}/{axis}={value}", scenario.name),
        shape: with_connections(&scenario.shape, *value),
        sweep: Some(SweepPoint { of: scenario.name.clone(), axis: sweep.axis, value: f64::from(*value) }),
        ..scenario.clone()
    };
    Ok(sweep.values.iter().map(point).collect())
}

fn with_connections(shape: &Shape, connections: u32) -> Shape {
    match shape {
        Shape::Closed { .. } => Shape::Closed { connections },
        Shape::Open { rate_per_s, poisson, .. } => {
            Shape::Open { connections, rate_per_s: *rate_per_s, poisson: *poisson }
        }
        Shape::Peak { objective, .. } => Shape::Peak { connections, objective: *objective },
        Shape::Starts { .. } | Shape::Measure { .. } => shape.clone(),
    }
}
