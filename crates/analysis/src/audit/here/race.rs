//! The race that tests the claims, and its contenders.

use deadheat_record::Claim;

use crate::report::Report;

/// A race on this machine, and the published claims.
pub(super) struct Race<'a> {
    pub(super) report: &'a Report,
    pub(super) claims: &'a [Claim],
}

/// One of the two sides of a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Side<'c> {
    pub(super) contender: &'c str,
    pub(super) scenario: &'c str,
}

impl Race<'_> {
    /// The reason why a contender has no values in a scenario.
    pub(super) fn missing(&self, side: Side<'_>) -> Option<String> {
        if self.index(side).is_some() {
            return None;
        }
        let name = side.contender;
        let told = self.report.not_raced().find(|(one, _)| *one == name);
        let why = told.map_or_else(String::new, |(_, why)| format!(": {why}"));
        Some(format!("{name} was not raced{why}"))
    }

    pub(super) fn index(&self, side: Side<'_>) -> Option<usize> {
        let of = |index: &usize| self.report.record.plan.contenders[*index].name == side.contender;
        self.report.record.racing(side.scenario).into_iter().find(of)
    }
}
