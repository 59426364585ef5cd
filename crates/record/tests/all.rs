//! All tests of records, as one program: linked once.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod any;
mod doctor;
mod doctor_fixture;
mod fixture;
mod journal;
mod load;
mod load_fixture;
mod schema;
mod values;
