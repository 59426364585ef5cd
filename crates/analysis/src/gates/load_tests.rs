//! Tests the gates of a lone load at and near their limits.

use deadheat_record::{Ceiling, LittlesLaw, LoadFault, LoadHost, LoadTimes, Outcomes, Severity};

use super::load_fixture::{closed, from_hosts, open, same};
use super::*;

/// The code and severity of each finding.
fn found(record: &LoadRecord) -> Vec<(String, Severity)> {
    findings(record).into_iter().map(|finding| (finding.code, finding.severity)).collect()
}

fn warns(code: &str) -> Vec<(String, Severity)> {
    vec![(code.into(), Severity::Warn)]
}

fn invalid(code: &str) -> Vec<(String, Severity)> {
    vec![(code.into(), Severity::Invalid)]
}

type Case = (&'static str, LoadRecord, Vec<(String, Severity)>);

fn with(record: LoadRecord, change: impl FnOnce(&mut LoadRecord)) -> LoadRecord {
    let mut record = record;
    change(&mut record);
    record
}

fn unopened(errno: i32) -> LoadRecord {
    let cause = std::io::Error::from_raw_os_error(errno).to_string();
    let fault = LoadFault { outcome: "connect".into(), cause, os_error: Some(errno), count: 3 };
    with(open(), |record| record.unopened = vec![fault])
}

fn lag(ns: u64) -> LoadRecord {
    with(open(), |record| {
        record.latency_ns.p50 = Some(1_000_000);
        record.send_lag_ns = LoadTimes::of(&same(ns, 20_000));
        record.own_lag_ns = record.send_lag_ns;
    })
}

fn outcomes(change: impl FnOnce(&mut Outcomes)) -> LoadRecord {
    with(closed(), |record| {
        change(&mut record.outcomes);
        record.outcomes.ok = 200_000 - record.outcomes.failed();
    })
}

fn busy(record: LoadRecord, share: f64) -> LoadRecord {
    with(record, |record| record.generator.cpu_share = Some(share))
}

fn little(record: LoadRecord, in_flight: f64, product: f64) -> LoadRecord {
    with(record, |record| {
        record.littles_law = Some(LittlesLaw { in_flight, throughput_times_latency: product });
    })
}

fn of_ceiling(share: f64) -> LoadRecord {
    with(closed(), |record| record.ceiling = Some(Ceiling { throughput_rps: 40_000.0, share: Some(share) }))
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = vec![("calm, closed", closed(), vec![]), ("calm, open", open(), vec![])];
    cases.extend(of_open());
    cases.extend(of_answers());
    cases.extend(of_generator());
    cases.extend(of_sums());
    cases.extend(of_hosts());
    cases
}

fn of_open() -> Vec<Case> {
    let exhausted =
        |waited, used| with(open(), |record| (record.waited, record.connections_used) = (waited, used));
    let achieved = |share| with(open(), |record| record.achieved_share = Some(share));
    vec![
        ("lag at 9 % of p50", lag(90_000), vec![]),
        ("lag at 11 %", lag(110_000), warns("send-lag")),
        ("lag at 49 %", lag(490_000), warns("send-lag")),
        ("lag at 51 %", lag(512_000), invalid("send-lag")),
        (
            "lag at 51 %, of few",
            with(lag(512_000), |r| (r.completions, r.own_lag_ns.p95) = (9_999, Some(1_000))),
            [warns("send-lag"), warns("few-samples")].concat(),
        ),
        (
            "lag at 51 % of one in twenty, of few",
            with(lag(512_000), |r| r.completions = 9_999),
            [invalid("send-lag"), warns("few-samples")].concat(),
        ),
        (
            "lag at 51 %, of a handful",
            with(lag(512_000), |r| r.completions = 199),
            [warns("send-lag"), warns("few-samples")].concat(),
        ),
        (
            "a lag that is a wait for a connection",
            with(lag(900_000), |r| r.own_lag_ns = open().own_lag_ns),
            vec![],
        ),
        ("a closed load has no lag", with(lag(900_000), |r| r.shape = LoadShape::Closed), vec![]),
        (
            "lag within the grain",
            with(lag(900), |r| (r.latency_ns, r.service_ns) = (r.send_lag_ns, r.send_lag_ns)),
            vec![],
        ),
        ("kept up with 99.6 %", achieved(0.996), vec![]),
        ("kept up with 99.4 %", achieved(0.994), warns("offered-not-achieved")),
        ("kept up with 98.1 %", achieved(0.981), warns("offered-not-achieved")),
        ("kept up with 97.9 %", achieved(0.979), invalid("offered-not-achieved")),
        ("a closed load offers nothing", with(achieved(0.5), |r| r.shape = LoadShape::Closed), vec![]),
        ("waited, but more connections could come", exhausted(5, 100), vec![]),
        ("waited, and all were in use", exhausted(5, 1024), warns("connections-exhausted")),
        ("all in use, but none waited", exhausted(0, 1024), vec![]),
    ]
}

fn of_answers() -> Vec<Case> {
    vec![
        ("one timeout", outcomes(|o| o.timeout = 1), warns("errors")),
        ("0.1 % failed", outcomes(|o| (o.read, o.cut) = (100, 100)), warns("errors")),
        ("more failed", outcomes(|o| (o.read, o.cut) = (100, 101)), invalid("errors")),
        ("one status", outcomes(|o| o.status = 1), warns("status")),
        ("statuses", outcomes(|o| o.status = 201), invalid("status")),
        ("one mismatch", outcomes(|o| o.mismatch = 1), warns("mismatch")),
        ("mismatches", outcomes(|o| o.mismatch = 201), invalid("mismatch")),
        ("given up", with(closed(), |r| r.gave_up = true), invalid("gave-up")),
        ("1 % closed", with(closed(), |r| r.closed_by_server = 2_000), vec![]),
        ("more closed", with(closed(), |r| r.closed_by_server = 2_001), warns("closed-by-server")),
        ("unsolicited, few", with(closed(), |r| r.unsolicited = 1), warns("unsolicited")),
        ("unsolicited", with(closed(), |r| r.unsolicited = 300), invalid("unsolicited")),
        ("unopened", unopened(111), warns("connections-failed")),
        ("repeated", with(closed(), |r| r.retried = 1), warns("retried")),
        ("clamped", with(closed(), |r| r.clamped = 1), warns("clamped")),
        ("9,999 answers", with(closed(), |r| r.completions = 9_999), warns("few-samples")),
        ("10,000 answers", with(closed(), |r| r.completions = 10_000), vec![]),
    ]
}

fn of_generator() -> Vec<Case> {
    // The mean wait per wake-up, as a share of the median latency.
    let waking = |record, of_median: f64| {
        with(record, |record| {
            let mean_ns = record.latency_ns.p50.map(|p50| (p50 as f64 * of_median) as u64);
            (record.generator.run_delay_share, record.generator.run_delay_mean_ns) = (Some(0.06), mean_ns);
        })
    };
    let delayed = |share| with(closed(), |record| record.generator.run_delay_share = share);
    vec![
        ("70 % busy", busy(closed(), 0.70), vec![]),
        ("71 % busy", busy(closed(), 0.71), warns("generator-saturated")),
        ("86 % busy", busy(closed(), 0.86), invalid("generator-saturated")),
        ("71 % busy, open", busy(open(), 0.71), warns("generator-saturated")),
        ("86 % busy, open", busy(open(), 0.86), invalid("generator-saturated")),
        ("1 % delayed", delayed(Some(0.01)), vec![]),
        ("2 % delayed", delayed(Some(0.02)), warns("run-delay")),
        ("6 % delayed", delayed(Some(0.06)), invalid("run-delay")),
        ("6 % in many wakings, open", waking(open(), 0.1), vec![]),
        ("6 % in some wakings, open", waking(open(), 0.15), warns("run-delay")),
        ("6 % in few wakings, open", waking(open(), 1.0), invalid("run-delay")),
        ("6 % in many wakings", waking(closed(), 0.1), invalid("run-delay")),
        ("delay not known", delayed(None), vec![]),
        ("a short load", with(busy(delayed(Some(0.5)), 1.2), |r| r.duration_s = 0.099), vec![]),
        ("half the ceiling", of_ceiling(0.5), vec![]),
        ("over half the ceiling", of_ceiling(0.51), warns("ceiling")),
        ("near the ceiling", of_ceiling(0.71), invalid("ceiling")),
    ]
}

fn of_sums() -> Vec<Case> {
    let times = |change: fn(&mut LoadRecord)| with(closed(), change);
    vec![
        ("Little within 2 %", little(closed(), 64.0, 62.8), vec![]),
        ("Little beyond 2 %", little(closed(), 64.0, 62.6), invalid("littles-law")),
        ("Little within 5 %, open", little(open(), 64.0, 61.0), vec![]),
        ("Little beyond 5 %, open", little(open(), 64.0, 67.3), invalid("littles-law")),
        ("p90 above p95", times(|r| r.latency_ns.p90 = Some(u64::MAX)), invalid("percentiles")),
        ("of the lag, too", times(|r| r.send_lag_ns.min = Some(u64::MAX)), invalid("percentiles")),
        (
            "latency below service",
            times(|r| {
                r.latency_ns.p50 = r.latency_ns.p50.map(|ns| ns / 2);
                r.latency_ns.min = Some(0);
                r.service_ns.min = Some(0);
            }),
            invalid("percentiles"),
        ),
    ]
}

fn of_hosts() -> Vec<Case> {
    let second = |change: fn(&mut LoadHost)| with(from_hosts(), |record| change(&mut record.hosts[1]));
    vec![
        ("two hosts", from_hosts(), vec![]),
        ("a host 20 % slower", second(|host| host.throughput_rps = Some(8_001.0)), vec![]),
        ("a host 21 % slower", second(|host| host.throughput_rps = Some(7_900.0)), warns("hosts-differ")),
        ("a host lost", second(|host| host.lost = Some("load host b was lost".into())), invalid("host-lost")),
    ]
}

#[test]
fn each_gate_has_its_limits() {
    for (name, record, wanted) in cases() {
        assert_eq!(found(&record), wanted, "{name}");
    }
}

#[test]
fn every_code_is_reached_and_none_else() {
    let nothing = with(closed(), |record| (record.completions, record.gave_up) = (0, true));
    let all = cases().into_iter().map(|(_, record, _)| record).chain([nothing]);
    let codes: std::collections::BTreeSet<String> =
        all.flat_map(|record| found(&record)).map(|(code, _)| code).collect();
    let wanted: std::collections::BTreeSet<String> = table::codes(By::Load).map(str::to_owned).collect();
    assert_eq!(codes, wanted);
}

#[test]
fn without_answers_only_that_is_said() {
    let record = with(closed(), |record| {
        record.completions = 0;
        record.requests = 7;
        record.outcomes = Outcomes { connect: 7, ..Outcomes::default() };
    });
    let findings = findings(&record);
    assert_eq!(findings.len(), 2);
    assert_eq!(findings[0].message, "none of 7 requests was answered");
    assert_eq!(findings[1].message, "7 of 7 requests got no complete answer: connect 7 (limit 0.10 %)");
}

#[test]
fn those_that_take_the_numbers_away_come_first() {
    let record = with(closed(), |record| {
        record.outcomes.timeout = 1;
        record.generator.run_delay_share = Some(0.5);
    });
    let wanted = [("run-delay".to_owned(), Severity::Invalid), ("errors".to_owned(), Severity::Warn)];
    assert_eq!(found(&record), wanted);
}

#[test]
fn connections_that_failed_say_why_and_what_helps() {
    for (errno, remedy) in
        [(24, "ulimit -n"), (23, "fs.file-max"), (99, "ip_local_port_range"), (111, "server")]
    {
        let [finding] = findings(&unopened(errno)).try_into().unwrap();
        assert!(finding.message.contains(&format!("os error {errno}")), "{}", finding.message);
        assert!(finding.remedy.contains(remedy), "{}", finding.remedy);
    }
}

#[test]
fn what_helps_follows_from_the_number_of_the_error_and_not_from_its_words() {
    for (os_error, remedy) in [(Some(24), "ulimit -n"), (None, "server")] {
        for cause in ["zu viele offene Dateien", "the server's page says (os error 24)"] {
            let fault = LoadFault { outcome: "connect".into(), cause: cause.into(), os_error, count: 3 };
            let [finding] =
                findings(&with(open(), |record| record.unopened = vec![fault])).try_into().unwrap();
            assert!(finding.remedy.contains(remedy), "{cause}: {}", finding.remedy);
        }
    }
}

/// The message of the finding with this code.
fn message(record: &LoadRecord, code: &str) -> String {
    findings(record).into_iter().find(|one| one.code == code).map(|one| one.message).unwrap_or_default()
}

#[test]
fn a_lost_host_makes_the_load_invalid_whatever_is_left() {
    let lost = with(from_hosts(), |record| {
        record.hosts[1].lost = Some("the load host b:2222 was lost: killed".into());
        record.hosts[1].reported_when_lost = Some(1_234);
        record.hosts[1].throughput_rps = None;
    });
    assert_eq!(found(&lost), invalid("host-lost"));
    assert!(message(&lost, "host-lost").ends_with("killed; it had reported 1,234 answers until then"));
    let all = with(lost, |record| record.completions = 0);
    assert!(found(&all).contains(&invalid("host-lost")[0]));
}

#[test]
fn hosts_of_different_rates_are_told() {
    assert_eq!(found(&from_hosts()), []);
    let slower =
        |share: f64| with(from_hosts(), |record| record.hosts[1].throughput_rps = Some(9_997.0 * share));
    assert_eq!(found(&slower(0.81)), []);
    assert_eq!(found(&slower(0.79)), warns("hosts-differ"));
    assert!(message(&slower(0.79), "hosts-differ").contains("load host b:2222 for each connection is 21"));
    // With half of the connections, half of the rate is as much.
    let half = with(slower(0.5), |record| record.hosts[1].connections = 16);
    assert_eq!(found(&half), []);
}

#[test]
fn one_busy_host_is_enough() {
    let busy = with(from_hosts(), |record| record.hosts[1].cpu_share = Some(0.9));
    assert_eq!(found(&busy), invalid("generator-saturated"));
    assert!(message(&busy, "generator-saturated").contains("the generator on b:2222 was busy"));
    let waiting = with(from_hosts(), |record| record.hosts[0].run_delay_share = Some(0.02));
    assert_eq!(found(&waiting), warns("run-delay"));
}
