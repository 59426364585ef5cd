//! Reads a file that holds either a race or a lone load, and a file that holds an audit.
//!
//! Owns: how to recognize each kind of file. Must not know: what is done with it.

use std::path::Path;

use serde_json::Value;

use crate::journal::read_unpacked;
use crate::{AUDIT_SCHEMA, AuditRecord, LOAD_SCHEMA, LoadRecord, ReadError, Record, packed};

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyRecord {
    /// A race: a journal, the document of `race --json`, or the page of `race --html`.
    Race(Box<Record>),
    /// A lone load: the document of `load --json`.
    Load(Box<LoadRecord>),
}

/// Reads a file of either kind.
///
/// # Errors
/// The same as for [`crate::read`].
pub fn read_any(path: &Path) -> Result<AnyRecord, ReadError> {
    let bytes = packed::bytes(path)?;
    let value = serde_json::from_slice::<Value>(&bytes).ok();
    let is_load = |value: &Value| value.get("schema").and_then(Value::as_str) == Some(LOAD_SCHEMA);
    match value {
        Some(load) if is_load(&load) => serde_json::from_value(load)
            .map(|load| AnyRecord::Load(Box::new(load)))
            .map_err(|error| ReadError::NotARecord { path: path.into(), found: error.to_string() }),
        value => read_unpacked(path, &bytes, value).map(|race| AnyRecord::Race(Box::new(race))),
    }
}

/// Reads what `deadheat audit --json` wrote.
///
/// # Errors
/// When the file cannot be read or does not hold an audit.
pub fn read_audit(path: &Path) -> Result<AuditRecord, ReadError> {
    let bytes = packed::bytes(path)?;
    let refused = |found: String| ReadError::NotAnAudit { path: path.into(), found };
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| refused(error.to_string()))?;
    match value.get("schema").and_then(Value::as_str) {
        Some(AUDIT_SCHEMA) => serde_json::from_value(value).map_err(|error| refused(error.to_string())),
        Some(other) => Err(refused(format!("its schema is {other}"))),
        None => Err(refused("it names no schema".into())),
    }
}
