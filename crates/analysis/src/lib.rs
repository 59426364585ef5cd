//! Record -> Report: the only place that derives anything from a record.
//!
//! Owns: the values that a record holds of a metric, the verdicts on them, the figures of each contender, the gates, the comparison of
//! two records, the audit of published figures, and what an examined machine can tell apart. Must not know: how anything was measured,
//! flags, files, and how anything is shown. Whoever decides during a race and whoever reports afterwards ask the same judge here.
#![warn(missing_docs)]

pub mod audit;
mod average;
pub mod compare;
mod condition;
mod derive;
pub mod doctor;
mod error;
pub mod experiment;
pub mod gates;
pub mod judge;
pub mod number;
mod report;
mod results;
pub mod series;

pub use condition::{ConditionPlace, ConditionResult};
pub use error::AnalysisError;
pub use report::{
    Climb, CollectorResult, Comparison, ContenderResult, ContenderSummary, EdgeCache, EdgeUser, Ended,
    EpochFigures, Figure, Fit, GateReading, GateWord, LadderResult, LadderStep, ParitySummary, Ranked,
    Ranking, Report, ScenarioResult, SweepResult, schema_json,
};
