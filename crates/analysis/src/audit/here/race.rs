//! The race that claims are held against, and who took part in it.

use deadheat_record::Claim;

use crate::report::Report;

/// A race of this machine, and what was published.
pub(super) struct Race<'a> {
    pub(super) report: &'a Report,
    pub(super) claims: &'a [Claim],
}

/// One of the two that a ratio is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Side<'c> {
    pub(super) contender: &'c str,
    pub(super) scenario: &'c str,
}

impl Race<'_> {
    /// Why a contender has no figures in a scenario.
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
