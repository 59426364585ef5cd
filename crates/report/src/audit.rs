//! Writes an audit of published figures.
//!
//! Owns: its words and its Markdown page. Must not know: how the audit was made.

mod markdown;
mod words;

pub(crate) use markdown::claims;
pub use markdown::markdown;
pub(crate) use words::{
    check_word, expected, found, headline, here_interval, outcome_word, place, published, scenarios,
    verdict_word,
};
