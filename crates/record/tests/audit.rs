//! The audit's schema.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::Path;

#[test]
fn the_committed_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/audit-1.schema.json");
    let made = deadheat_record::audit_schema_json().unwrap();
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
