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

/// Lengthens all slices of a plan that are short against the time that an order to the load hosts and its results take on their way. Returns the finding
/// that says so; none if all slices were long enough.
pub fn lengthen_slices(plan: &mut Plan, order_cost: Duration) -> Option<Finding> {
    let (needed, shortest) = lengthen(plan, &|_| order_cost)?;
    Some(Finding::warn(
        "slices-lengthened",
        format!(
            "slices last {} and not {}: an order to the load hosts and its results take {} on their way",
            ms(needed),
            ms(shortest),
            ms(order_cost)
        ),
        "nothing has to be done; load hosts with a shorter round trip allow shorter slices",
    ))
}

/// Lengthens the slices of scenarios with a link that are short against a round trip over it. Returns the finding that says so; none if all slices
/// were long enough.
pub(super) fn lengthen_for_links(plan: &mut Plan) -> Option<Finding> {
    let round_trip = |scenario: &ScenarioPlan| {
        let link = scenario.link.unwrap_or_default();
        Duration::from_nanos(2 * (link.delay_ns + link.jitter_ns))
    };
    let (needed, shortest) = lengthen(plan, &round_trip)?;
    Some(Finding::warn(
        "slices-lengthened",
        format!(
            "slices last up to {} and not {}: at the end of a slice, answers are still on their way over the link",
            ms(needed),
            ms(shortest)
        ),
        "nothing has to be done; a link with a shorter delay allows shorter slices",
    ))
}

/// Makes each slice long enough for what a slice costs in its scenario. The number of rounds falls, so that contenders are measured for as long as before
/// where the fewest rounds allow it. Returns the longest slice that this made, and the shortest that there was; none if all were long enough.
///
/// Some slices stay as they are: those of a scenario without warm-up, which follow each other without a pause; and those whose rate changes over the slice.
fn lengthen(plan: &mut Plan, cost: &dyn Fn(&ScenarioPlan) -> Duration) -> Option<(Duration, Duration)> {
    let usual = Slices { slice_ns: plan.method.slice_ns, rounds: plan.method.rounds };
    let mut changed: Option<(u64, u64)> = None;
    for scenario in &mut plan.scenarios {
        let needed = (cost(scenario) * TIMES_COST).as_nanos().div_ceil(STEP.as_nanos()) * STEP.as_nanos();
        let needed_ns = u64::try_from(needed).unwrap_or(u64::MAX);
        let now = scenario.slices.unwrap_or(usual);
        let fixed = !scenario.shape.is_load() || scenario.traffic.cold || scenario.traffic.stages.is_some();
        if fixed || now.slice_ns >= needed_ns {
            continue;
        }
        // In a search for a peak, the number of trials does not depend on their length.
        let rounds = match scenario.shape.objective() {
            Some(_) => now.rounds,
            None => rounds(Duration::from_nanos(now.measured_ns()), Duration::from_nanos(needed_ns)),
        };
        scenario.slices = Some(Slices { slice_ns: needed_ns, rounds });
        let (longest, shortest) = changed.unwrap_or((0, u64::MAX));
        changed = Some((longest.max(needed_ns), shortest.min(now.slice_ns)));
    }
    let (longest, shortest) = changed?;
    // The method has the slices of the first scenario that has any.
    if let Some(first) = plan.scenarios.iter().find_map(|one| one.slices) {
        (plan.method.slice_ns, plan.method.rounds) = (first.slice_ns, first.rounds);
    }
    Some((Duration::from_nanos(longest), Duration::from_nanos(shortest)))
}

fn ms(time: Duration) -> String {
    format!("{} ms", (time.as_secs_f64() * 1e4).round() / 10.0)
}
