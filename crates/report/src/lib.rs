//! Turns a report into output: the terminal, the live race, JSON, the page, Markdown, CSV, figures, and files for services that track results over
//! time.
//!
//! Owns: how things are written. Must not know: how anything was measured or derived, flags, files. Renderers format what `deadheat-analysis` derived
//! and compute nothing.
#![warn(missing_docs)]

pub mod audit;
mod columns;
pub mod comparison;
pub mod doctor;
mod error;
mod figures;
mod html;
mod json;
pub mod live;
pub mod load;
mod load_hosts;
mod markdown;
mod profile;
mod style;
mod svg;
mod sweep;
mod tables;
pub mod terminal;
mod text;
mod trackers;
mod transport;

pub use error::ReportError;
pub use html::html;
pub use json::json;
pub use markdown::{CI_FILES, ci, markdown};
pub use style::Style;
pub use svg::svg;
pub use tables::{FILES as CSV_FILES, csv};
pub use text::plain;
pub use trackers::{BENCHMARK_FILES, bencher, benchmark_action};
