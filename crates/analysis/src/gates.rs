//! Gates: checks of generator, machine and answers, which weaken a number or take it away.
//!
//! Owns the limits, messages and remedies of races in [`race`] and of lone loads in [`load`]. Must not know how findings are shown.

pub mod load;
pub mod race;
