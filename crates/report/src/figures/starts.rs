//! Cold starts: every fresh start of scenarios that compare starts, and the starts of epochs.
//!
//! Owns: which starts go into which figure. Must not know: how readiness is determined.

use deadheat_analysis::number::time_ns;
use deadheat_analysis::{ContenderResult, ScenarioResult};

use super::axis::tick;
use super::costs::Cost;
use super::model::{Axis, Cell, Dot, Drawing, Figure, Row, Section, Table};
use super::{Scope, values};

const NOTE: &str =
    "One dot for each fresh start, the first at the top; the line is the median. Further right is slower.";
const LABEL: &str = "from its command to the first right answer; lower is better";

fn any(scenario: &ScenarioResult) -> bool {
    scenario.results.iter().any(|one| !one.cold_starts_ns.is_empty())
}

/// Every start in scenarios that compare fresh starts.
pub(super) fn fresh(scope: &Scope<'_>) -> Vec<Figure> {
    let sets = scope.each(|one| if any(one) { one.results.len() } else { 0 });
    let figure = |set: &super::Set<'_>| {
        let row = |one: &ContenderResult| {
            let dots = one.cold_starts_ns.iter().map(|ns| {
                let ns = *ns as f64;
                Dot::new(ns, time_ns(ns))
            });
            let median = one.cold_start_ns.map(|ns| ns as f64);
            Row {
                aside: median.map(time_ns).unwrap_or_default(),
                each: "start",
                dots: dots.collect(),
                mark: median.map(|ns| Dot::new(ns, format!("median: {}", time_ns(ns)))),
                ..Row::new(&one.contender, scope.color(&one.contender))
            }
        };
        let started = |one: &&ContenderResult| !one.cold_starts_ns.is_empty();
        let groups = set.groups(|one| one.results.iter().filter(started).map(row).collect());
        let results = set.scenarios.iter().flat_map(|one| &one.results);
        let cells = results.flat_map(|one| {
            one.cold_starts_ns.iter().enumerate().map(|(at, ns)| {
                vec![Cell::text(&one.contender), Cell::count(at + 1), Cell::number(Some(*ns as f64), time_ns)]
            })
        });
        let x = Axis::from_zero(values(&groups), (1e6, 7.0), LABEL, |ns| tick(&time_ns(ns)));
        let table = Table::new("Cold start: every fresh start", &["contender", "#start", "#time"], cells);
        let (title, drawing) = (set.title("Every fresh start"), Drawing::rows(x, groups));
        let figure = Figure::new(("cold-start", Section::ColdStart), set.subject(), title, drawing, table);
        Figure { note: NOTE.into(), ..figure }
    };
    sets.iter().map(figure).collect()
}

/// The starts of the epochs of all other scenarios.
pub(super) fn of_epochs(scope: &Scope<'_>) -> Vec<Figure> {
    let cost = Cost {
        kind: "cold-start",
        section: Section::ColdStart,
        title: "Cold start",
        note: "Every epoch starts every contender afresh, next to the others: one dot for each epoch, and the line is their median. Further right is slower.",
        label: LABEL,
        parts: &[("cold start", "#ns", false, |one| Some(one.cold_start_ns as f64))],
        whole: |one| one.cold_start_ns.map(|ns| ns as f64),
        show: time_ns,
        unit: 1e6,
    };
    cost.figures(scope, |scenario| !any(scenario))
}
