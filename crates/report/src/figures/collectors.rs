//! How long garbage collectors stopped each contender.
//!
//! Owns: this figure. Must not know: how a log is read.

use deadheat_analysis::CollectorResult;
use deadheat_analysis::number::{three_digits, time_ns, whole};
use deadheat_record::Pauses;

use super::axis::ends;
use super::model::{Axis, Cell, Dot, Drawing, Figure, Row, Rows, Section, Table};
use super::{Scope, Set};

/// The pauses of each scenario, one dot for each pause that was logged individually. If there were no pauses, only a table.
pub(super) fn pauses(scope: &Scope<'_>) -> Vec<Figure> {
    scope.each(|one| one.collectors.len()).iter().map(|set| figure(scope, set)).collect()
}

fn figure(scope: &Scope<'_>, set: &Set<'_>) -> Figure {
    let scenario = set.scenarios[0];
    let passes = &scope.report.record.collectors;
    let logged = |one: &CollectorResult| {
        let own =
            passes.iter().find(|pass| pass.scenario == scenario.name && pass.contender == one.contender);
        own.map(|pass| &pass.pauses)
    };
    let all = || scenario.collectors.iter().map(|one| (one, logged(one)));
    let without: Vec<String> = all()
        .filter_map(|(one, pauses)| Some((one, pauses?.omitted)))
        .filter(|(_, omitted)| *omitted > 0)
        .map(|(one, omitted)| format!("{} of {}", whole(omitted), one.contender))
        .collect();
    let omitted = if without.is_empty() {
        String::new()
    } else {
        let named = without.join(", ");
        format!(
            " Not drawn: {named}, because the log has only their sum, or because they come after the first 1,000."
        )
    };
    let groups = set.groups(|_| all().map(|(one, pauses)| row(scope, one, pauses)).collect());
    let drawing = ends(super::values(&groups)).map(|(low, high)| {
        // Make the axis wide enough for round ticks even if all pauses are nearly equal.
        let middle = (low * high).sqrt();
        let x = Axis::of_times(
            [low.min(middle / 2.5), high.max(middle * 2.5)],
            1.08,
            "length of a pause; shorter is better",
        );
        Drawing::Rows(Rows { x, band: None, rule: None, groups })
    });
    Figure {
        kind: "collectors",
        section: Section::Collectors,
        subject: scenario.name.clone(),
        title: set.title("Every pause"),
        note: format!("One dot for each pause, the first at the top; the line is the longest.{omitted}"),
        legend: Vec::new(),
        drawing,
        says: Vec::new(),
        table: Table::new(
            set.title("Collector pauses"),
            &[
                "contender",
                "collector",
                "#pauses",
                "#pauses per second",
                "#paused per second",
                "#longest",
                "#requests/s, logging on",
            ],
            scenario.collectors.iter().map(cells),
        ),
    }
}

fn row(scope: &Scope<'_>, one: &CollectorResult, pauses: Option<&Pauses>) -> Row {
    let each = pauses.into_iter().flat_map(|pauses| &pauses.each_ns).filter(|ns| **ns > 0);
    let dot = |ns: &u64| Dot::new(*ns as f64, time_ns(*ns as f64));
    let longest = one.longest_ns as f64;
    Row {
        aside: if one.pauses == 0 {
            "no pause".into()
        } else {
            format!("{} per second", time_ns(one.paused_ns_per_s))
        },
        each: "pause",
        dots: each.map(dot).collect(),
        mark: (longest > 0.0).then(|| Dot::new(longest, format!("longest: {}", time_ns(longest)))),
        ..Row::new(&one.contender, scope.color(&one.contender))
    }
}

fn cells(one: &CollectorResult) -> Vec<Cell> {
    vec![
        Cell::text(&one.contender),
        Cell::text(one.kind.word()),
        Cell::number(Some(one.pauses as f64), |_| whole(one.pauses)),
        Cell::number(Some(one.pauses_per_s), three_digits),
        Cell::number(Some(one.paused_ns_per_s), time_ns),
        Cell::number(Some(one.longest_ns as f64), time_ns),
        Cell::number(Some(one.requests_per_s), three_digits),
    ]
}
