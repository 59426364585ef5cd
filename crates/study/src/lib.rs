//! From what a person wrote and typed to a plan: `study.toml`, choices of the command line, profiles and defaults.
//!
//! Owns: the format of studies and its mistakes, what may be chosen, how both become a `record::Plan`, and what is prepared before a
//! race: needs, dataset, builds, versions. Must not know: the order of a race, statistics, reports.
#![warn(missing_docs)]

pub mod choices;
pub mod file;
pub mod plan;
pub mod prepare;
pub mod values;
