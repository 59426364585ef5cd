//! All tests of the numbers but the simulations, as one program: linked once.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod judgements;
mod power;
mod reference;
