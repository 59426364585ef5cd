//! The measurements of `deadheat doctor`: the generator's ceiling, a server against itself, and races with a known outcome.
//!
//! Owns: the choice of these servers and races. Must not know: conclusions and how to show them (the report does both).

mod arena;
mod floor;
mod profiles;
mod proof;
mod saturated;

pub(crate) use arena::Arena;
pub(crate) use floor::{Contenders, noise_floor};
pub(crate) use profiles::profiles;
pub(crate) use proof::{Prover, built_in_rows, own_row};
pub(crate) use saturated::{ceiling, over_link};
