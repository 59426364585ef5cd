//! The reader recognizes records of races and records of loads.

use std::path::Path;

use crate::load_fixture::closed;
use deadheat_record::{AnyRecord, ReadError, read_any};

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
