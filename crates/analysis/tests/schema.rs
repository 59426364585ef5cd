//! Tests of the public contracts of a race and of a comparison: the committed JSON Schemas match the Rust types, and the schema of a
//! race accepts the example and rejects wrong types.

use std::path::{Path, PathBuf};

use deadheat_analysis::Report;
use deadheat_analysis::compare::CompareDocument;
use schemars::schema_for;
use serde_json::{Value, json};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../record").join(name)
}

fn example() -> Value {
    serde_json::from_slice(&std::fs::read(file("tests/fixtures/example.json")).unwrap()).unwrap()
}

fn validator() -> jsonschema::Validator {
    let schema: Value =
        serde_json::from_str(include_str!("../../record/schema/record-1.schema.json")).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    for (name, made) in [("record", schema_for!(Report)), ("compare", schema_for!(CompareDocument))] {
        let path = file(&format!("schema/{name}-1.schema.json"));
        let made = serde_json::to_string_pretty(&made).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == made,
            "{} differs from the types; if the change keeps every key's meaning, rewrite it with \
             UPDATE_SCHEMA=1 cargo test -p deadheat-analysis, else raise the schema's number",
            path.display()
        );
    }
}

#[test]
fn the_example_document_fits_the_schema() {
    let errors: Vec<String> = validator().iter_errors(&example()).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn a_wrong_type_does_not_fit_the_schema() {
    let validator = validator();
    for (pointer, wrong) in [
        ("/seed", json!("42")),
        ("/machine/cpus", json!(-1)),
        ("/scenarios/0/comparisons/0/verdict", json!("winner")),
        ("/scenarios/0/results/0/throughput_rps", json!("fast")),
        ("/record/epochs/0/rounds/0/slices/0/completions", json!(1.5)),
    ] {
        let mut document = example();
        *document.pointer_mut(pointer).unwrap() = wrong;
        assert!(!validator.is_valid(&document), "{pointer}");
    }
    let mut document = example();
    document.as_object_mut().unwrap().remove("scenarios");
    assert!(!validator.is_valid(&document));
}
