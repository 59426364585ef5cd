//! An examination of a machine: how it is shown.
//!
//! Owns what `deadheat doctor` prints. Must not know how numbers come about.

mod summary;

pub use summary::{announcement, race_line, summary};
