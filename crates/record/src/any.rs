//! A file that may be of a race or of a lone load.
//!
//! Owns telling the two apart. Must not know what is done with either.

use std::path::Path;

use serde_json::Value;

use crate::{LOAD_SCHEMA, LoadRecord, ReadError, Record, packed};

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyRecord {
    /// A race: a journal, or the document of `race --json`.
    Race(Box<Record>),
    /// A lone load: the document of `load --json`.
    Load(Box<LoadRecord>),
}

/// Reads a file of either kind.
///
/// # Errors
/// As [`crate::read`].
pub fn read_any(path: &Path) -> Result<AnyRecord, ReadError> {
    let bytes = packed::bytes(path)?;
    let value = serde_json::from_slice::<Value>(&bytes).ok();
    let is_load = |value: &Value| value.get("schema").and_then(Value::as_str) == Some(LOAD_SCHEMA);
    match value.filter(is_load) {
        Some(load) => serde_json::from_value(load)
            .map(|load| AnyRecord::Load(Box::new(load)))
            .map_err(|error| ReadError::NotARecord { path: path.into(), found: error.to_string() }),
        None => crate::read(path).map(|race| AnyRecord::Race(Box::new(race))),
    }
}
