//! All tests of the outputs, as one program: linked once.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod asset;
mod audit;
mod audit_here;
mod ci;
mod comparison;
mod doctor;
#[path = "../../record/tests/doctor_fixture/mod.rs"]
mod doctor_fixture;
mod figures;
#[path = "../../record/tests/fixture/mod.rs"]
mod fixture;
mod live;
mod load;
#[path = "../../record/tests/load_fixture/mod.rs"]
mod load_fixture;
mod markdown;
mod outputs;
mod replay;
mod terminal;
