//! The comparison of two records: its schema, and that either kind of record is known again.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod load_fixture;

use std::path::Path;

use deadheat_record::{AnyRecord, ReadError, read_any};
use load_fixture::closed;

#[test]
fn the_committed_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/compare-1.schema.json");
    let made = deadheat_record::compare_schema_json().unwrap();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "{} differs from the types; if the change keeps every key's meaning, rewrite it with \
         UPDATE_SCHEMA=1 cargo test -p deadheat-record, else raise the schema's number",
        path.display()
    );
}

#[test]
fn races_and_loads_are_told_apart() {
    let race = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/example.json");
    assert!(matches!(read_any(&race).unwrap(), AnyRecord::Race(record) if record.epochs.len() == 6));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.json");
    std::fs::write(&path, serde_json::to_string(&closed()).unwrap()).unwrap();
    assert_eq!(read_any(&path).unwrap(), AnyRecord::Load(Box::new(closed())));
    std::fs::write(&path, r#"{"schema": "deadheat.load/1"}"#).unwrap();
    assert!(matches!(read_any(&path), Err(ReadError::NotARecord { .. })));
    std::fs::write(&path, r#"{"schema": "deadheat.load/2"}"#).unwrap();
    assert!(matches!(read_any(&path), Err(ReadError::Schema { found, .. }) if found == "deadheat.load/2"));
    assert!(matches!(read_any(&folder.path().join("absent")), Err(ReadError::Io { .. })));
}
