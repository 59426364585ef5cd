//! Two records to one comparison: what the new one says against the old one.
//!
//! Owns what is asked of a comparison, why it can be refused, and who is matched with whom. Must not know flags or how
//! it is shown; `stats` does the arithmetic.
//!
//! The epochs of two records are not paired: they are compared by Welch's t on the logs of their levels, at a level that
//! the contenders of a scenario share by Holm's step-down, each metric on its own. With a reference, a contender that is
//! the same in both records, each epoch is first divided by what the reference did in it.

mod comparability;
mod conditions;
mod document;
mod epochs;
mod loads;
mod matched;
mod options;
mod races;

pub use comparability::other_machine;
pub use conditions::of_race as race_conditions;
/// What a [`FailIf`] holds.
pub use deadheat_stats::{Condition, ConditionKind};
pub use document::{
    COMPARE_SCHEMA, Change, CompareDocument, ComparedKind, ComparedRecord, ComparedScenario,
    compare_schema_json,
};
pub use loads::loads;
pub use options::{CompareError, CompareOptions, FailIf, Named};
pub use races::races;
