//! Compares two records: the new one with the old one.
//!
//! Owns the options of a comparison, its errors, and the matching of contenders. Must not know flags or how it is shown; `stats` does the
//! arithmetic.
//!
//! The epochs of two records are not paired. Welch's t compares the logs of their levels; the contenders of a scenario share the error rate
//! by Holm's step-down, separately for each metric. With a reference (a contender that is the same in both records), each epoch is first
//! divided by the reference's value in that epoch.

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
/// The meaning of a [`FailIf`].
pub use deadheat_stats::{Condition, ConditionKind};
pub use document::{COMPARE_SCHEMA, Change, CompareDocument, ComparedKind, ComparedRecord, ComparedScenario};
pub use loads::loads;
pub use options::{CompareError, CompareOptions, FailIf, Named};
pub use races::races;
