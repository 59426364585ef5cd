//! The committed JSON Schemas, which are public contracts, match the types.

use std::path::{Path, PathBuf};

use deadheat_record::{AuditRecord, DoctorRecord, LoadRecord};
use schemars::schema_for;
use serde_json::Value;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn example() -> Value {
    serde_json::from_slice(&std::fs::read(file("tests/fixtures/example.json")).unwrap()).unwrap()
}

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    for (name, made) in [
        ("load", schema_for!(LoadRecord)),
        ("doctor", schema_for!(DoctorRecord)),
        ("audit", schema_for!(AuditRecord)),
    ] {
        let path = file(&format!("schema/{name}-1.schema.json"));
        let made = serde_json::to_string_pretty(&made).unwrap() + "\n";
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
}

#[test]
fn the_example_document_reads_and_holds_what_the_contract_names() {
    let record = deadheat_record::read(&file("tests/fixtures/example.json")).unwrap();
    assert_eq!(record.epochs.len(), 6);
    let example = example();
    for pointer in [
        "/study",
        "/seed",
        "/machine/cpus",
        "/contenders/0/version",
        "/parity",
        "/scenarios/0/results/0/latency_ns/p50",
        "/scenarios/0/results/0/outcomes/ok",
        "/scenarios/0/comparisons/0/detectable_ratio",
        "/scenarios/0/findings",
    ] {
        assert!(example.pointer(pointer).is_some(), "{pointer}");
    }
}
