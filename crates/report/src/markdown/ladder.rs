//! A ladder in Markdown: what each rung adds to a request of each contender.
//!
//! Owns: its table. Must not know: how the parts are computed.

use std::iter::once;

use deadheat_analysis::number::time_ns;
use deadheat_analysis::{Climb, LadderResult};

use super::{shown, table};
use crate::comparison::code;
use crate::terminal::added;

/// A line for each contender, a column for each rung.
pub(super) fn section(ladder: &LadderResult) -> String {
    let rungs: Vec<String> = ladder.rungs.iter().map(|name| code(name)).collect();
    let titles: Vec<&str> =
        once("contender").chain(rungs.iter().map(String::as_str)).chain(once("per request")).collect();
    let row = |climb: &Climb| {
        let steps = (0..rungs.len()).map(|at| shown(climb.steps.get(at).map(added)));
        let whole = climb.steps.last().filter(|_| climb.steps.len() == rungs.len());
        let whole = shown(whole.map(|step| time_ns(step.time_us * 1e3)));
        once(code(&climb.contender)).chain(steps).chain(once(whole)).collect()
    };
    let rules = format!("---{}", "|--:".repeat(rungs.len() + 1));
    format!(
        "\n### Ladder {}\n\nTime per request (1 / requests/s): that of the first rung, and what each rung adds to the one before.\n{}",
        code(&ladder.name),
        table(&titles, &rules, ladder.contenders.iter().map(row))
    )
}
