//! The runs of an audit: published generators against a server that does nothing.
//!
//! Owns: the course of these runs, and how to read the throughput. Must not know: claims, conclusions from a figure.

mod generator;
mod output;

pub(crate) use generator::{Place, measure};
