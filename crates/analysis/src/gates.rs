//! Gates: checks of generator, machine and answers that warn about a number or invalidate it.
//!
//! [`table`] has each gate's code, limits and remedies; [`race`] and [`load`] read the numbers. Must not know how findings are shown.

pub mod load;
pub mod race;
pub(crate) mod reading;
pub mod table;
