//! Matches the contenders of two records.

use deadheat_record::Record;

use super::options::CompareOptions;
use crate::report::Report;

/// One contender, as an index into the old plan's contenders and one into the new plan's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) old: usize,
    pub(super) new: usize,
}

/// The name in the old record of the contender that is called `new` in the new record.
pub(super) fn old_name<'a>(asked: &'a CompareOptions, new: &'a str) -> &'a str {
    asked.map.iter().find(|(_, now)| now == new).map_or(new, |(then, _)| then)
}

pub(super) fn names(record: &Record) -> Vec<String> {
    record.plan.contenders.iter().map(|one| one.name.clone()).collect()
}

pub(super) fn scenario_names(record: &Record) -> Vec<String> {
    record.plan.scenarios.iter().map(|one| one.name.clone()).collect()
}

/// Both records with the report derived from each.
pub(super) struct Both<'a> {
    pub(super) old: &'a Record,
    pub(super) new: &'a Record,
    pub(super) old_report: Report,
    pub(super) new_report: Report,
    /// The contenders that are in both records, whether chosen or not, in the new plan's order.
    pub(super) matches: Vec<Match>,
    /// The reference, if there is one. It is one of the matches.
    pub(super) reference: Option<Match>,
}
