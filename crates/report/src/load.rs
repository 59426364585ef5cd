//! Shows a lone load: its numbers while it runs and at its end.
//!
//! Owns: the output of `deadheat load`. Must not know: how it was measured, flags or files.

mod chart;
pub mod live;
mod summary;

pub use summary::summary;

#[cfg(test)]
#[path = "../../record/tests/load_fixture/mod.rs"]
mod load_fixture;
