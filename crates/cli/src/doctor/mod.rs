//! What `deadheat doctor` measures: the generator's ceiling, a server against itself, and races whose outcome is known.
//!
//! Owns: which servers and races these are. Must not know: what follows from them, or how it is shown (the report does).

mod arena;
mod floor;
mod profiles;
mod proof;
mod saturated;

pub(crate) use arena::{Arena, Folder};
pub(crate) use floor::{Contenders, noise_floor};
pub(crate) use profiles::profiles;
pub(crate) use proof::{Prover, built_in_rows, own_row};
pub(crate) use saturated::ceiling;
