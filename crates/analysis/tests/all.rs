//! All tests of what is derived from a record, as one program: linked once.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod attempts;
#[path = "../../record/tests/fixture/mod.rs"]
mod fixture;
mod judge;
mod race_gates;
mod report;
mod schema;
mod series;
