//! Record to one [`View`], and the View to what is read: the terminal, the live race, the JSON document, and from that
//! document the page, Markdown, CSV, figures and what services read that keep figures over time.
//!
//! Owns: what is derived from a record (results, comparisons, letters, findings, the headline) and how it is written
//! down. Must not know: how anything was measured, flags, files. Renderers format what the View holds and compute
//! nothing.
#![warn(missing_docs)]

pub mod audit;
mod collector;
mod compare;
pub mod comparison;
pub mod doctor;
mod document;
mod edge;
mod findings;
mod headline;
mod html;
mod ladder;
pub mod live;
pub mod load;
mod markdown;
mod number;
mod quota;
mod reproduce;
mod results;
mod style;
mod svg;
mod sweep;
mod tables;
pub mod terminal;
mod text;
mod trackers;
mod transport;
mod view;

pub use compare::rules;
pub use document::{document, json};
pub use findings::CODES;
pub use html::{html, html_with_audit};
pub use markdown::{markdown, markdown_with_audit};
pub use style::Style;
pub use svg::svg;
pub use tables::{FILES as CSV_FILES, csv};
pub use text::plain;
pub use trackers::{BENCHMARK_FILES, bencher, benchmark_action};
pub use view::{MetricView, ReportError, ScenarioView, View, view};
