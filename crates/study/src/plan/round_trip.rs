//! Slices that are long enough for load from other machines.
//!
//! Owns: how long. Must not know: how a round trip is measured.

use std::time::Duration;

use deadheat_record::{Finding, Plan, ScenarioPlan, Slices};

use super::profiles::rounds;

/// A slice is at least this many times as long as what its order costs. A contender then is loaded for over 90 % of the time for which it is not frozen,
/// also if freezing, thawing and reading the machines take as long as a third of the order.
const TIMES_COST: u32 = 12;
/// Slices are lengthened in steps of this.
const STEP: Duration = Duration::from_millis(10);

/// Lengthens all slices of a plan that are short against the time that an order to the load hosts and its results take on their way. The number of rounds
/// falls, so that contenders are measured for as long as before where the fewest rounds allow it. Returns the finding that says so; none if all slices were
/// long enough.
///
/// Some slices stay as they are: those of a scenario without warm-up, which follow each other without a pause; and those whose rate changes over the slice.
pub fn lengthen_slices(plan: &mut Plan, order_cost: Duration) -> Option<Finding> {
    let needed = (order_cost * TIMES_COST).as_nanos().div_ceil(STEP.as_nanos()) * STEP.as_nanos();
    let needed_ns = u64::try_from(needed).unwrap_or(u64::MAX);
    let longer = |slices: Slices| Slices {
        slice_ns: needed_ns,
        rounds: rounds(Duration::from_nanos(slices.measured_ns()), Duration::from_nanos(needed_ns)),
    };
    let usual = Slices { slice_ns: plan.method.slice_ns, rounds: plan.method.rounds };
    let slices = |scenario: &ScenarioPlan| scenario.slices.unwrap_or(usual);
    let is_short = |scenario: &ScenarioPlan| {
        let fixed = !scenario.shape.is_load() || scenario.traffic.cold || scenario.traffic.stages.is_some();
        !fixed && slices(scenario).slice_ns < needed_ns
    };
    let short: Vec<bool> = plan.scenarios.iter().map(is_short).collect();
    let of_short = plan.scenarios.iter().zip(&short).filter(|(_, short)| **short);
    let shortest_ns = of_short.map(|(scenario, _)| slices(scenario).slice_ns).min()?;
    for (scenario, _) in plan.scenarios.iter_mut().zip(short).filter(|(_, short)| *short) {
        let now = slices(scenario);
        // In a search for a peak, the number of trials does not depend on their length.
        let is_search = scenario.shape.objective().is_some();
        scenario.slices = Some(if is_search { Slices { slice_ns: needed_ns, ..now } } else { longer(now) });
    }
    // The method has the slices of the first scenario that has any.
    if let Some(first) = plan.scenarios.iter().find_map(|one| one.slices) {
        (plan.method.slice_ns, plan.method.rounds) = (first.slice_ns, first.rounds);
    }
    let ms = |time: Duration| format!("{} ms", (time.as_secs_f64() * 1e4).round() / 10.0);
    Some(Finding::warn(
        "slices-lengthened",
        format!(
            "slices last {} and not {}: an order to the load hosts and its results take {} on their way",
            ms(Duration::from_nanos(needed_ns)),
            ms(Duration::from_nanos(shortest_ns)),
            ms(order_cost)
        ),
        "nothing has to be done; load hosts with a shorter round trip allow shorter slices",
    ))
}
