//! What an audit runs: published generators against a server that does nothing.
//!
//! Owns: their course and how their throughput is read. Must not know: claims, what follows from a figure.

mod generator;
mod output;

pub(crate) use generator::{Place, measure};
