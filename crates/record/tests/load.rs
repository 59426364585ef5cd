//! The record of a lone load fits its schema. Which of its times exist depends on the number of requests.

use crate::load_fixture::{calm, closed, empty, open, same};
use deadheat_record::{Finding, LOAD_SCHEMA, LoadFault, LoadMismatch, LoadRecord, LoadTimes};
use serde_json::{Value, json};

fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(include_str!("../schema/load-1.schema.json")).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn records_fit_the_schema_and_read_back() {
    let mut full = open();
    full.findings.push(Finding::warn("errors", "1 of 20,000 requests failed", "look"));
    full.faults.push(LoadFault { outcome: "read".into(), cause: "closed".into(), os_error: None, count: 1 });
    full.mismatches.push(LoadMismatch {
        request: "GET /".into(),
        expected: "status 200-399".into(),
        status: 500,
        length: 3,
        body: "\u{1b}[2J".into(),
    });
    for record in [closed(), open(), full] {
        let value = serde_json::to_value(&record).unwrap();
        let errors: Vec<String> = validator().iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(serde_json::from_value::<LoadRecord>(value).unwrap(), record);
    }
}

#[test]
fn what_others_depend_on_is_there() {
    let value = serde_json::to_value(open()).unwrap();
    assert_eq!(value["schema"], LOAD_SCHEMA);
    let keys = "url shape connections offered_rps arrivals duration_s requests throughput_rps latency_ns/min \
                latency_ns/mean latency_ns/p50 latency_ns/p75 latency_ns/p90 latency_ns/p95 latency_ns/p99 \
                latency_ns/p99_9 latency_ns/p99_99 latency_ns/max service_ns/p50 send_lag_ns/p99 outcomes/ok \
                outcomes/status outcomes/mismatch outcomes/connect outcomes/read outcomes/write outcomes/timeout \
                outcomes/protocol outcomes/cut status/200 bytes_read bytes_written generator/threads \
                generator/cpu_us_per_request generator/cpu_share generator/backend generator/run_delay_share \
                findings hdr";
    for key in keys.split_whitespace() {
        assert!(value.pointer(&format!("/{key}")).is_some(), "{key}");
    }
    assert_eq!((&value["shape"], &value["arrivals"]), (&json!("open"), &json!("poisson")));
    let closed = serde_json::to_value(closed()).unwrap();
    assert_eq!(
        (&closed["shape"], &closed["offered_rps"], &closed["arrivals"]),
        (&json!("closed"), &Value::Null, &Value::Null)
    );
}

#[test]
fn a_wrong_type_does_not_fit_the_schema() {
    for (pointer, wrong) in [
        ("/shape", json!("half-open")),
        ("/requests", json!(-1)),
        ("/latency_ns/p50", json!(0.5)),
        ("/throughput_rps", json!("fast")),
        ("/hdr", json!(null)),
    ] {
        let mut value = serde_json::to_value(closed()).unwrap();
        *value.pointer_mut(pointer).unwrap() = wrong;
        assert!(!validator().is_valid(&value), "{pointer}");
    }
}

#[test]
fn few_requests_have_few_percentiles() {
    let shown = |count: u64| {
        let times = LoadTimes::of(&calm(count)).ascending();
        times.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(0), "");
    assert_eq!(shown(1), "min max");
    assert_eq!(shown(2), "min p50 max");
    assert_eq!(shown(99), "min p50 p75 p90 p95 max");
    assert_eq!(shown(100), "min p50 p75 p90 p95 p99 max");
    assert_eq!(shown(99_999), "min p50 p75 p90 p95 p99 max");
    assert_eq!(shown(100_000), "min p50 p75 p90 p95 p99 p99.9 max");
    assert_eq!(shown(1_000_000), "min p50 p75 p90 p95 p99 p99.9 p99.99 max");
    assert_eq!(LoadTimes::of(&empty()), LoadTimes::default());
    let mut mostly_none = same(0, 200);
    mostly_none.record(5_000_000).unwrap();
    let times = LoadTimes::of(&mostly_none);
    assert_eq!((times.min, times.p50, times.p99, times.max > Some(0)), (Some(0), Some(0), Some(0), true));
    assert_eq!(LoadTimes::of(&same(300, 200)).max, Some(511), "what is known of a time below the first step");
    assert_eq!(LoadTimes::of(&same(5_000_000, 100)).p99, LoadTimes::of(&same(5_000_000, 100)).p50);
}
