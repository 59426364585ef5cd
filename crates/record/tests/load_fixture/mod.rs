//! The record of a lone load with all its fields. Each test changes the fields that it is about.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test program uses its own part; a fixture that fails is a failure"
)]

use std::collections::BTreeMap;

use deadheat_record::*;
use hdrhistogram::Histogram;

/// Latencies of a calm server: most near 1 ms, one in a hundred above 3 ms, the highest 48 ms.
pub fn calm(count: u64) -> Histogram<u64> {
    let mut histogram = empty();
    for k in 0..count {
        let place = (k as f64 + 0.5) / count as f64;
        let ns = 1_000_000.0 * (1.0 - place).powf(-0.25) * (0.4 + 0.6 * place);
        histogram.record(ns as u64).unwrap();
    }
    histogram
}

/// An empty histogram with the engine's bounds.
pub fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3).unwrap()
}

/// A histogram of `count` equal times.
pub fn same(ns: u64, count: u64) -> Histogram<u64> {
    let mut histogram = empty();
    histogram.record_n(ns, count).unwrap();
    histogram
}

fn limits() -> LoadLimits {
    LoadLimits {
        duration_s: Some(10.0),
        requests: None,
        warmup_s: 0.0,
        timeout_s: 10.0,
        connect_timeout_s: 10.0,
    }
}

/// A closed load of 64 connections for ten seconds, without findings.
pub fn closed() -> LoadRecord {
    let latency = calm(200_000);
    LoadRecord {
        schema: LOAD_SCHEMA.into(),
        version: "0.1.0".into(),
        started_unix_ms: 1_790_000_000_000,
        seed: 42,
        url: "http://127.0.0.1:8080/items?limit=20".into(),
        address: "127.0.0.1:8080".into(),
        sent: Sent { method: "GET".into(), distinct: 1, order: "one".into() },
        shape: LoadShape::Closed,
        connections: 64,
        max_connections: 64,
        connections_used: 64,
        offered_rps: None,
        rate: None,
        arrivals: None,
        limits: limits(),
        duration_s: 10.0,
        drain_s: 0.003,
        requests: 200_000,
        completions: 200_000,
        throughput_rps: Some(19_994.0),
        achieved_share: None,
        latency_ns: LoadTimes::of(&latency),
        service_ns: LoadTimes::of(&latency),
        send_lag_ns: LoadTimes::of(&same(0, 200_000)),
        wait_ns: LoadTimes::of(&same(0, 200_000)),
        own_lag_ns: LoadTimes::of(&same(0, 200_000)),
        waited: 0,
        clamped: 0,
        outcomes: Outcomes { ok: 200_000, ..Outcomes::default() },
        status: BTreeMap::from([(200, 200_000)]),
        bytes_read: 61_200_000,
        bytes_written: 19_800_000,
        reconnects: 0,
        closed_by_server: 0,
        unsolicited: 0,
        retried: 0,
        unopened: vec![],
        littles_law: Some(LittlesLaw { in_flight: 63.98, throughput_times_latency: 63.97 }),
        faults: vec![],
        mismatches: vec![],
        checked: Checked {
            status: "200-399".into(),
            same: 1,
            length: 0,
            any: 0,
            why: "two answers before the load were the same".into(),
        },
        generator: Generator {
            threads: 1,
            cpus: vec![],
            backend: "io_uring".into(),
            cpu_us_per_request: Some(1.62),
            cpu_share: Some(0.324),
            spin_share: Some(0.0),
            run_delay_share: Some(0.002),
            run_delay_mean_ns: Some(3_000),
        },
        hosts: vec![],
        start_skew_ns: None,
        ceiling: None,
        interrupted: false,
        gave_up: false,
        findings: vec![],
        hdr: EncodedHistogram::encode(&latency).unwrap(),
    }
}

/// What the load host of this name did, alike for each.
pub fn host(name: &str) -> LoadHost {
    LoadHost {
        name: name.into(),
        connections: 32,
        max_connections: 32,
        threads: 1,
        backend: "io_uring".into(),
        requests: 100_000,
        completions: 100_000,
        throughput_rps: Some(9_997.0),
        cpu_share: Some(0.324),
        run_delay_share: Some(0.002),
        round_trip_ns: RoundTrips { count: 70, p50: Some(210_000), p99: Some(890_000) },
        start_delay_ns: Some(61_000),
        lost: None,
        reported_when_lost: None,
    }
}

/// The closed load, from two hosts.
pub fn from_hosts() -> LoadRecord {
    let generator = Generator { threads: 2, ..closed().generator };
    LoadRecord {
        hosts: vec![host("me@a"), host("b:2222")],
        start_skew_ns: Some(84_000),
        generator,
        ..closed()
    }
}

/// An open load of 2,000 requests per second for ten seconds, without findings.
pub fn open() -> LoadRecord {
    let latency = calm(20_000);
    LoadRecord {
        shape: LoadShape::Open,
        max_connections: 1024,
        connections_used: 66,
        offered_rps: Some(2000.0),
        rate: Some("2000".into()),
        arrivals: Some(ArrivalsWord::Poisson),
        requests: 20_000,
        completions: 20_000,
        throughput_rps: Some(1_999.4),
        achieved_share: Some(0.9997),
        latency_ns: LoadTimes::of(&latency),
        service_ns: LoadTimes::of(&latency),
        send_lag_ns: LoadTimes::of(&same(4_000, 20_000)),
        own_lag_ns: LoadTimes::of(&same(4_000, 20_000)),
        wait_ns: LoadTimes::of(&same(0, 20_000)),
        outcomes: Outcomes { ok: 20_000, ..Outcomes::default() },
        status: BTreeMap::from([(200, 20_000)]),
        bytes_read: 6_120_000,
        bytes_written: 1_980_000,
        littles_law: Some(LittlesLaw { in_flight: 2.41, throughput_times_latency: 2.41 }),
        generator: Generator { cpu_share: Some(0.041), spin_share: Some(0.12), ..closed().generator },
        hdr: EncodedHistogram::encode(&latency).unwrap(),
        ..closed()
    }
}
