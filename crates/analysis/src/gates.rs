//! Gates: checks of generator, machine and answers, which weaken a number or take it away.
//!
//! [`table`] says what each gate is called, what its limits are and what helps; [`race`] and [`load`] read the numbers. Must not know how
//! findings are shown.

pub mod load;
pub mod race;
pub(crate) mod reading;
pub mod table;
