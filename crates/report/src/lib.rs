//! Record to one [`View`], and the View to what is read: the terminal, the live race, the JSON document.
//!
//! Owns: what is derived from a record (results, comparisons, letters, findings, the headline) and how it is written
//! down. Must not know: how anything was measured, flags, files. Renderers format what the View holds and compute
//! nothing.
#![warn(missing_docs)]

pub mod audit;
mod compare;
pub mod comparison;
pub mod doctor;
mod document;
mod edge;
mod findings;
mod headline;
pub mod live;
pub mod load;
mod number;
mod results;
mod style;
mod sweep;
pub mod terminal;
mod text;
mod view;

pub use compare::rules;
pub use document::{document, json};
pub use findings::CODES;
pub use style::Style;
pub use text::plain;
pub use view::{MetricView, ReportError, ScenarioView, View, view};
