//! Writes a comparison of two records.
//!
//! Owns: its words and its Markdown page. Must not know: how the comparison was made.

mod markdown;
mod words;

pub use markdown::markdown;
pub(crate) use markdown::{code, text};
pub(crate) use words::{label, outcome, quotient, sentence, shape, value};
