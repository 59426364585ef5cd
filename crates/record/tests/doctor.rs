//! The record of an examination fits its schema and reads back.

use crate::doctor_fixture::{calm, laptop, with_floor, with_proof};
use deadheat_record::{DOCTOR_SCHEMA, DoctorRecord, Finding};
use serde_json::{Value, json};

fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(include_str!("../schema/doctor-1.schema.json")).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn records_fit_the_schema_and_read_back() {
    let mut found = laptop();
    found.findings.push(Finding::invalid("foreign-cpu", "31 %", "stop it"));
    for record in [calm(), with_floor(0.01), found, with_proof()] {
        let value = serde_json::to_value(&record).unwrap();
        let errors: Vec<String> = validator().iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(serde_json::from_value::<DoctorRecord>(value).unwrap(), record);
    }
}

#[test]
fn facts_stand_beside_those_of_a_race_and_what_is_absent_is_left_out() {
    let value = serde_json::to_value(calm()).unwrap();
    assert_eq!(value["schema"], DOCTOR_SCHEMA);
    assert_eq!((&value["machine"]["cpus"], &value["machine"]["turbo"]), (&json!(8), &json!(false)));
    assert!(value["machine"].get("on_battery").is_none(), "{value}");
}

#[test]
fn a_wrong_type_does_not_fit_the_schema() {
    for (pointer, wrong) in [
        ("/mode", json!("slow")),
        ("/machine/turbo", json!("yes")),
        ("/noise/steal_share", json!("none")),
        ("/proof/results/0/verdict", json!("winner")),
    ] {
        let mut value = serde_json::to_value(with_proof()).unwrap();
        *value.pointer_mut(pointer).unwrap() = wrong;
        assert!(!validator().is_valid(&value), "{pointer}");
    }
}
