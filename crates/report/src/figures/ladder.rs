//! A ladder: the time that each part of the work adds to a request, with the parts placed end to end.
//!
//! Owns: this figure. Must not know: how the parts are computed.

use deadheat_analysis::number::time_ns;
use deadheat_analysis::{Climb, LadderResult, LadderStep};

use super::axis::tick;
use super::model::{Axis, Bar, Cell, Color, Drawing, Figure, Group, Key, Row, Section, Table};
use super::{Scope, values};
use crate::terminal::added;

/// For each ladder, the parts of each contender's request.
pub(super) fn parts(scope: &Scope<'_>) -> Vec<Figure> {
    scope.report.ladders.iter().filter(|one| !one.contenders.is_empty()).map(figure).collect()
}

fn figure(ladder: &LadderResult) -> Figure {
    let groups =
        vec![Group { title: None, rows: ladder.contenders.iter().map(|climb| row(ladder, climb)).collect() }];
    let format = |us: f64| tick(&time_ns(us * 1e3));
    let x = Axis::from_zero(values(&groups), (1.0, 6.0), "time per request; longer bars are slower", format);
    let cells = |climb: &Climb| {
        let contender = climb.contender.clone();
        let cells = move |step: &LadderStep| {
            let whole = Cell::number(Some(step.time_us), |us| time_ns(us * 1e3));
            let adds = Cell::Number(added(step), Some(step.added_us));
            vec![Cell::text(&contender), Cell::text(&step.scenario), whole, adds]
        };
        climb.steps.iter().map(cells).collect::<Vec<_>>()
    };
    let columns = ["contender", "rung", "#per request", "#adds"];
    let title = format!("{}: parts of a request", ladder.name);
    let table = Table::new(title.clone(), &columns, ladder.contenders.iter().flat_map(cells));
    let key = |(place, name): (usize, &String)| Key { label: name.clone(), color: Color::Series(place) };
    Figure {
        note: falling(ladder)
            + "Each part is what a rung adds to the one before; at the right, the time on the last rung, which is the inverse of its rate.",
        legend: ladder.rungs.iter().enumerate().map(key).collect(),
        ..Figure::new(
            ("ladder", Section::Ladder),
            ladder.name.clone(),
            title,
            Drawing::rows(x, groups),
            table,
        )
    }
}

/// The steps of a climb. Each starts where the one before ends.
fn row(ladder: &LadderResult, climb: &Climb) -> Row {
    let mut end_us = 0.0;
    let bar = |step: &LadderStep| {
        let place = ladder.rungs.iter().position(|name| *name == step.scenario).unwrap_or(0);
        let from = end_us;
        end_us += step.added_us;
        let said = format!("{}: {}", step.scenario, added(step));
        Bar { from, to: end_us, color: Color::Series(place), hollow: false, said }
    };
    let is_whole = climb.steps.len() == ladder.rungs.len();
    let whole = climb.steps.last().filter(|_| is_whole).map(|step| time_ns(step.time_us * 1e3));
    Row {
        aside: whole.unwrap_or_else(|| "–".into()),
        bars: climb.steps.iter().map(bar).collect(),
        ..Row::new(&climb.contender, Color::Neutral)
    }
}

/// A note on rungs that are faster than the one before, although that one asks less of a server.
fn falling(ladder: &LadderResult) -> String {
    let (mut all, mut some) = (String::new(), Vec::new());
    for rung in &ladder.rungs {
        let falls = |one: &&Climb| one.steps.iter().any(|step| step.scenario == *rung && step.faster);
        let falling: Vec<&Climb> = ladder.contenders.iter().filter(falls).collect();
        if falling.len() > 2 && falling.len() == ladder.contenders.len() {
            all += &format!(
                "{rung}: every contender is faster than on the rung before, although that rung asks less of it. The machine was slower then: race the ladder again, alone. "
            );
        } else {
            some.extend(falling.iter().map(|one| format!("{rung} of {}", one.contender)));
        }
    }
    if !some.is_empty() {
        all += &format!(
            "{}: faster than the rung before, so it adds nothing, and the parts add up to more than the whole. ",
            some.join(", ")
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ladder of three rungs. `faster` says for each contender on which rungs it is faster than on the one before.
    fn ladder(faster: [[bool; 3]; 3]) -> LadderResult {
        let rungs = ["nothing", "json", "steady"].map(str::to_owned).to_vec();
        let step = |(scenario, faster): (&String, bool)| LadderStep {
            scenario: scenario.clone(),
            time_us: 10.0,
            added_us: 1.0,
            faster,
        };
        let climb = |(name, faster): (&str, [bool; 3])| Climb {
            contender: name.into(),
            steps: rungs.iter().zip(faster).map(step).collect(),
        };
        let contenders = ["node", "bun", "go"].into_iter().zip(faster).map(climb).collect();
        LadderResult { name: "request".into(), rungs, contenders }
    }

    #[test]
    fn a_rung_on_which_all_are_faster_says_that_the_machine_was_slower_before() {
        let (never, last) = ([false; 3], [false, false, true]);
        assert_eq!(falling(&ladder([never; 3])), "");
        let some = falling(&ladder([never, never, [false, true, false]]));
        assert!(some.starts_with("json of go: faster than the rung before"), "{some}");
        let all = falling(&ladder([last, last, [false, true, true]]));
        assert!(all.starts_with("steady: every contender is faster than on the rung before"), "{all}");
        assert!(all.contains(" json of go: faster"), "{all}");
    }
}
