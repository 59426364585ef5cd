//! Shows the examination of a machine.
//!
//! Owns: the output of `deadheat doctor`. Must not know: how numbers are computed.

mod summary;

pub use summary::{announcement, race_line, summary};
