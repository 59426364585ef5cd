//! The output after a lone load, as golden files.

use std::collections::BTreeMap;

use crate::load_fixture::{calm, closed, from_hosts, host, open, same};
use deadheat_analysis::gates::load::findings;
use deadheat_record::*;
use deadheat_report::{Style, load};

const NARROW: Style = Style { color: false, width: 80, unicode: true };
const WIDE: Style = Style { width: 160, ..NARROW };

/// The output at both widths, with the record's findings. At every width, no line is too wide.
fn both(mut record: LoadRecord) -> String {
    record.findings = findings(&record);
    for width in [60, 70, 80, 100, 119, 120, 160, 200] {
        for unicode in [true, false] {
            let text = load::summary(&record, &Style { color: false, width, unicode });
            for line in text.lines() {
                assert!(unicode_width::UnicodeWidthStr::width(line) <= width, "{width}: {line:?}");
                assert!(!line.ends_with(' '), "{line:?}");
            }
            assert!(unicode || text.is_ascii(), "{text}");
        }
    }
    format!("{}{}\n{}", load::summary(&record, &NARROW), "=".repeat(80), load::summary(&record, &WIDE))
}

#[test]
fn a_calm_closed_load() {
    insta::assert_snapshot!(both(closed()));
}

#[test]
fn a_calm_open_load() {
    insta::assert_snapshot!(both(open()));
}

#[test]
fn a_load_from_two_hosts() {
    insta::assert_snapshot!(both(from_hosts()));
}

#[test]
fn a_load_host_that_was_lost() {
    let lost = LoadHost {
        requests: 0,
        completions: 0,
        throughput_rps: None,
        start_delay_ns: None,
        lost: Some("the load host b was lost: \u{1b}[2Jnothing was heard from it for 10 s".into()),
        reported_when_lost: Some(45_678),
        ..host("b")
    };
    insta::assert_snapshot!(both(LoadRecord {
        hosts: vec![host("a"), lost],
        start_skew_ns: None,
        ..from_hosts()
    }));
}

#[test]
fn an_open_load_that_was_too_much() {
    let latency = calm(9_000);
    let record = LoadRecord {
        rate: Some("100..4000:10s".into()),
        arrivals: Some(ArrivalsWord::Constant),
        completions: 9_000,
        requests: 9_100,
        max_connections: 66,
        waited: 4_000,
        wait_ns: LoadTimes::of(&calm(9_000)),
        achieved_share: Some(0.81),
        throughput_rps: Some(1_623.0),
        latency_ns: LoadTimes::of(&latency),
        outcomes: Outcomes {
            ok: 8_900,
            status: 50,
            mismatch: 50,
            timeout: 90,
            read: 10,
            ..Outcomes::default()
        },
        status: BTreeMap::from([(200, 8_950), (503, 50)]),
        faults: vec![
            LoadFault { outcome: "timeout".into(), cause: "time was up".into(), os_error: None, count: 90 },
            LoadFault {
                outcome: "read".into(),
                cause: "Connection reset by peer (os error 104)".into(),
                os_error: Some(104),
                count: 10,
            },
        ],
        mismatches: vec![
            LoadMismatch {
                request: "GET /items?limit=20".into(),
                expected: "status 200-399".into(),
                status: 503,
                length: 31,
                body: "\u{1b}]0;owned\u{7}<b>too much</b>\r\n".into(),
            },
            LoadMismatch {
                request: "GET /items?limit=20".into(),
                expected: "the same body of 245 bytes".into(),
                status: 200,
                length: 2_000,
                body: "x".repeat(1_000),
            },
        ],
        ceiling: Some(Ceiling { throughput_rps: 312_000.0, share: Some(0.0052) }),
        interrupted: true,
        retried: 3,
        closed_by_server: 3,
        generator: Generator {
            cpus: vec![0, 1],
            threads: 2,
            run_delay_share: Some(0.031),
            ..open().generator
        },
        hdr: EncodedHistogram::encode(&latency).unwrap(),
        ..open()
    };
    insta::assert_snapshot!(both(record));
}

#[test]
fn a_handful_of_requests() {
    let latency = same(3_200_000, 20);
    let record = LoadRecord {
        sent: Sent { method: "GET".into(), distinct: 3, order: "zipf 1.1".into() },
        limits: LoadLimits { duration_s: None, requests: Some(20), warmup_s: 0.5, ..closed().limits },
        requests: 20,
        completions: 20,
        duration_s: 0.0213,
        latency_ns: LoadTimes::of(&latency),
        service_ns: LoadTimes::of(&latency),
        outcomes: Outcomes { ok: 20, ..Outcomes::default() },
        status: BTreeMap::from([(200, 12), (204, 8)]),
        checked: Checked { same: 1, length: 1, any: 1, why: String::new(), ..closed().checked },
        hdr: EncodedHistogram::encode(&latency).unwrap(),
        ..closed()
    };
    insta::assert_snapshot!(both(record));
}

#[test]
fn no_answer_at_all() {
    let none = LoadTimes::default();
    let record = LoadRecord {
        requests: 64,
        completions: 0,
        throughput_rps: None,
        latency_ns: none,
        service_ns: none,
        send_lag_ns: none,
        wait_ns: none,
        outcomes: Outcomes { timeout: 64, ..Outcomes::default() },
        status: BTreeMap::new(),
        littles_law: None,
        faults: vec![LoadFault {
            outcome: "timeout".into(),
            cause: "time was up".into(),
            os_error: None,
            count: 64,
        }],
        hdr: EncodedHistogram::encode(&crate::load_fixture::empty()).unwrap(),
        ..closed()
    };
    insta::assert_snapshot!(both(record));
}

#[test]
fn colour_is_only_where_it_may_be() {
    let mut record = open();
    record.outcomes.timeout = 1;
    record.findings = findings(&record);
    let text = load::summary(&record, &Style { color: true, ..NARROW });
    assert!(text.contains("\u{1b}[1m1,999/s") || text.contains("\u{1b}[1m2,000/s"), "{text}");
    assert!(text.contains("\u{1b}[35mwarning\u{1b}[0m"), "{text}");
}
