//! Derives a report from a record. Nothing else derives values from records.
//!
//! Owns: the values of a metric in a record, the verdicts on them, the results of each contender, the gates, the comparison of two records,
//! the audit of published values, and the conclusions about an examined machine. Must not know: how anything was measured, flags, files, and
//! how anything is shown. The running race and the later report both use the judge in this crate.
#![warn(missing_docs)]

mod attempt;
pub mod audit;
pub mod compare;
mod conclusion;
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

pub use attempt::{AlphaLeft, alpha_left};
pub use conclusion::{Conclusion, ConclusionWord};
pub use condition::{ConditionPlace, ConditionResult};
pub use derive::accepting;
pub use error::AnalysisError;
pub use report::{
    CalledGain, Climb, CollectorResult, Comparison, ContenderResult, ContenderSummary, EdgeCache, EdgeUser,
    Ended, EpochFigures, EpochReadings, Figure, Fit, FunctionGain, Gains, GateReading, GateWord,
    LadderResult, LadderStep, LatencyShift, LinkUse, LoadHostResult, LoadHostsResult, MachineReadings,
    ParitySummary, ProfileResult, Ranked, Ranking, Report, ScenarioResult, ShiftPoint, SweepResult,
};
pub use results::profile::{Call, calls};
