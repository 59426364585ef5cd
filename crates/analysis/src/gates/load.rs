//! The gates of a lone load, one function each: each takes a reading of the record and describes it.
//!
//! Must not know limits and remedies (the table owns them), nor how findings are shown.

use deadheat_record::{BEYOND, Finding, LoadHost, LoadRecord, LoadShape, LoadTimes, Severity, beyond};

use super::reading::{Reading, unanswered_by_kind};
use super::table::{self, By};
use crate::number::{count, percent, three_digits, time_ns, whole};

/// The process has reached its limit of open files.
const EMFILE: i32 = 24;
/// The system has reached its limit of open files.
const ENFILE: i32 = 23;
/// No port is free.
const EADDRNOTAVAIL: i32 = 99;

/// Over less time than this, in seconds, shares of CPU time show only the scheduler's resolution and the start of threads.
const LEAST_S: f64 = 0.1;
/// Times are kept with three digits, so a sum may read lower by one histogram step than a part of it.
const STEP: f64 = 0.002;

/// Findings on a load, as far as its record shows; those that invalidate the values come first.
pub fn findings(record: &LoadRecord) -> Vec<Finding> {
    if record.completions == 0 {
        let gates = [host_lost(record), nothing_measured(record), gave_up(record), errors(record)];
        return gates.into_iter().flatten().filter_map(|gate| gate.with_limit().finding()).collect();
    }
    let gates = [
        host_lost(record),
        gave_up(record),
        errors(record),
        status(record),
        mismatch(record),
        unsolicited(record),
        offered_not_achieved(record),
        connections_exhausted(record),
        connections_failed(record),
        send_lag(record),
        generator_saturated(record),
        run_delay(record),
        ceiling(record),
        hosts_differ(record),
        littles_law(record),
        percentiles(record),
        few_samples(record),
        closed_by_server(record),
        retried(record),
        clamped(record),
    ];
    let read = gates.into_iter().flatten();
    let mut findings: Vec<Finding> = read.filter_map(|gate| gate.with_limit().finding()).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn is_open(record: &LoadRecord) -> bool {
    record.shape == LoadShape::Open
}

fn host_lost(record: &LoadRecord) -> Option<Reading> {
    let host = record.hosts.iter().find(|host| host.lost.is_some())?;
    let reported = match host.reported_when_lost {
        Some(answers) if answers > 0 => format!("; it had reported {} answers until then", whole(answers)),
        _ => String::new(),
    };
    let message = format!("{}{reported}", host.lost.as_deref().unwrap_or_default());
    Some(table::HOST_LOST.say(By::Load, Some(Severity::Invalid), message))
}

/// The slowest load host against the fastest one. A closed load is divided over connections, an open one over threads.
fn hosts_differ(record: &LoadRecord) -> Option<Reading> {
    let parts = |host: &LoadHost| if is_open(record) { host.threads } else { host.connections };
    let rate = |host: &LoadHost| host.throughput_rps.unwrap_or(0.0) / parts(host).max(1) as f64;
    let there = || record.hosts.iter().filter(|host| host.lost.is_none()).map(|host| (host, rate(host)));
    let (slowest, low) = there().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (fastest, high) = there().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, high)| *high > 0.0)?;
    let below = 1.0 - low / high;
    Some(table::HOSTS_DIFFER.read(
        By::Load,
        below,
        format!(
            "the rate of load host {} for each {} is {} below that of {}",
            slowest.name,
            if is_open(record) { "thread" } else { "connection" },
            percent(below),
            fastest.name
        ),
    ))
}

/// The highest share of all load hosts, with the host's name; without load hosts, that of this machine.
fn worst_host(
    record: &LoadRecord,
    whole: Option<f64>,
    share: impl Fn(&LoadHost) -> Option<f64>,
) -> Option<(f64, String)> {
    let hosts = record.hosts.iter().filter_map(|host| Some((share(host)?, format!(" on {}", host.name))));
    let worst = hosts.max_by(|a, b| a.0.total_cmp(&b.0));
    worst.or(whole.map(|share| (share, String::new())))
}

fn nothing_measured(record: &LoadRecord) -> Option<Reading> {
    let message = match record.requests {
        0 => "no request was due during the load".to_owned(),
        due => format!("none of {} was answered", count(due, "request")),
    };
    Some(table::NOTHING_MEASURED.say(By::Load, Some(Severity::Invalid), message))
}

fn gave_up(record: &LoadRecord) -> Option<Reading> {
    record.gave_up.then(|| {
        table::GAVE_UP.say(
            By::Load,
            Some(Severity::Invalid),
            "answers stopped, so deadheat ended the load before it had sent all requests",
        )
    })
}

fn errors(record: &LoadRecord) -> Option<Reading> {
    let (failed, kinds) = unanswered_by_kind(&record.outcomes);
    Some(table::ERRORS.read(
        By::Load,
        failed as f64 / record.requests.max(1) as f64,
        format!("{} of {} requests got no complete answer: {kinds}", whole(failed), whole(record.requests)),
    ))
}

fn status(record: &LoadRecord) -> Option<Reading> {
    let wrong = record.outcomes.status;
    Some(table::STATUS.read(
        By::Load,
        wrong as f64 / record.requests.max(1) as f64,
        format!(
            "{} of {} requests were answered with a status other than {}",
            whole(wrong),
            whole(record.requests),
            record.checked.status
        ),
    ))
}

fn mismatch(record: &LoadRecord) -> Option<Reading> {
    let wrong = record.outcomes.mismatch;
    Some(table::MISMATCH.read(
        By::Load,
        wrong as f64 / record.requests.max(1) as f64,
        format!(
            "{} of {} requests were answered with another body than before the load",
            whole(wrong),
            whole(record.requests)
        ),
    ))
}

fn unsolicited(record: &LoadRecord) -> Option<Reading> {
    Some(table::UNSOLICITED.read(
        By::Load,
        record.unsolicited as f64 / record.requests.max(1) as f64,
        format!(
            "deadheat closed {} because the server sent data that no request asked for",
            count(record.unsolicited, "connection")
        ),
    ))
}

fn offered_not_achieved(record: &LoadRecord) -> Option<Reading> {
    let share = record.achieved_share.filter(|_| is_open(record))?;
    let (offered, achieved) = (record.offered_rps?, record.throughput_rps?);
    let severity = table::OFFERED_NOT_ACHIEVED.severity(1.0 - share);
    let message = format!(
        "the server kept up with {} of the requests that were due (limit {}): {}/s due, {}/s answered",
        percent(share.min(1.0)),
        percent(1.0 - table::OFFERED_NOT_ACHIEVED.limit(severity)),
        three_digits(offered),
        three_digits(achieved)
    );
    Some(table::OFFERED_NOT_ACHIEVED.say(By::Load, severity, message))
}

fn connections_exhausted(record: &LoadRecord) -> Option<Reading> {
    let exhausted = is_open(record) && record.waited > 0 && record.connections_used >= record.max_connections;
    exhausted.then(|| {
        let longest = record.wait_ns.max.map(|ns| format!(", up to {}", time_ns(ns as f64)));
        table::CONNECTIONS_EXHAUSTED.say(
            By::Load,
            Some(Severity::Warn),
            format!(
                "{} waited for a connection{}: {} busy",
                count(record.waited, "request"),
                longest.unwrap_or_default(),
                match record.max_connections {
                    1 => "the only one was".to_owned(),
                    all => format!("all {} were", whole(all)),
                }
            ),
        )
    })
}

fn connections_failed(record: &LoadRecord) -> Option<Reading> {
    let worst = record.unopened.iter().max_by_key(|fault| fault.count)?;
    let failed: u64 = record.unopened.iter().map(|fault| fault.count).sum();
    let case = match worst.os_error {
        Some(EMFILE) => 1,
        Some(ENFILE) => 2,
        Some(EADDRNOTAVAIL) => 3,
        _ => 0,
    };
    let message = format!(
        "failed attempts to open a connection: {}, most of them because: {}; connections open at most: {}",
        whole(failed),
        worst.cause,
        whole(record.connections_used)
    );
    Some(table::CONNECTIONS_FAILED.say(By::Load, Some(Severity::Warn), message).case(case))
}

/// The lag that the generator itself caused. Waiting for a connection and connecting are the server's doing.
fn send_lag(record: &LoadRecord) -> Option<Reading> {
    let (own, p50) = (record.own_lag_ns.p99? as f64, record.latency_ns.p50?);
    if !is_open(record) || own <= table::GRAIN_NS {
        return None;
    }
    let share = own / p50.max(1) as f64;
    let firm_ns = firm_ns(&record.own_lag_ns, record.completions);
    let firm = firm_ns > table::GRAIN_NS && firm_ns / p50.max(1) as f64 > table::SEND_LAG.invalid;
    let severity = table::SEND_LAG.severity(share).map(|most| if firm { most } else { Severity::Warn });
    Some(table::SEND_LAG.over(
        By::Load,
        severity,
        format!(
            "the 99th percentile of the generator's own send lag is {}, {} of the median latency of {}",
            time_ns(own),
            percent(share),
            time_ns(p50 as f64)
        ),
    ))
}

/// The 99th percentile, or the highest lower one that has [`BEYOND`] requests beyond it: a handful of requests must not invalidate a number.
/// 0 if no percentile has that.
fn firm_ns(times: &LoadTimes, requests: u64) -> f64 {
    let all = [(0.99, times.p99), (0.95, times.p95), (0.9, times.p90), (0.75, times.p75), (0.5, times.p50)];
    let firm = all.iter().find(|(at, _)| beyond(requests as f64, *at) >= BEYOND);
    firm.and_then(|(_, ns)| *ns).map_or(0.0, |ns| ns as f64)
}

fn generator_saturated(record: &LoadRecord) -> Option<Reading> {
    let (share, on) = worst_host(record, record.generator.cpu_share, |host| host.cpu_share)
        .filter(|_| record.duration_s >= LEAST_S)?;
    let (limit, case) = match is_open(record) {
        true => ("latencies include its own delays", 0),
        false => ("it may be the limit, and not the server", 1),
    };
    let message = format!("the generator{on} was busy for {} of its time; {limit}", percent(share));
    Some(table::GENERATOR_SATURATED.read(By::Load, share, message).case(case))
}

/// Under an open load a delay costs latency. As in a race, each wake-up may take as long as a send lag may.
fn run_delay(record: &LoadRecord) -> Option<Reading> {
    let (share, on) = worst_host(record, record.generator.run_delay_share, |host| host.run_delay_share)
        .filter(|_| record.duration_s >= LEAST_S)?;
    let waking = record.generator.run_delay_mean_ns.zip(record.latency_ns.p50).filter(|_| is_open(record));
    let beyond = |(mean_ns, p50): (u64, u64)| {
        (1.0 - table::SEND_LAG.warn * p50 as f64 / (mean_ns as f64).max(1.0)).max(0.0)
    };
    let share = share * waking.map_or(1.0, beyond);
    let beyond =
        if waking.is_some() { ", not counting a tenth of the median latency at each wake-up" } else { "" };
    Some(table::RUN_DELAY.read(
        By::Load,
        share,
        format!("the generator{on} waited for a CPU for {} of its time{beyond}", percent(share)),
    ))
}

fn ceiling(record: &LoadRecord) -> Option<Reading> {
    let ceiling = record.ceiling?;
    let share = ceiling.share?;
    Some(table::CEILING.read(
        By::Load,
        share,
        format!(
            "{} of the {}/s that the generator reaches against a server that does nothing",
            percent(share),
            three_digits(ceiling.throughput_rps)
        ),
    ))
}

fn littles_law(record: &LoadRecord) -> Option<Reading> {
    let law = record.littles_law?;
    let apart = (law.in_flight - law.throughput_times_latency).abs() / law.in_flight.max(f64::MIN_POSITIVE);
    // Requests still in flight at the end are counted on one side only.
    let in_time = record.throughput_rps? * record.duration_s;
    let drained = (record.completions as f64 - in_time).max(0.0) / record.completions.max(1) as f64;
    let slow_end = record.drain_s / record.duration_s.max(f64::MIN_POSITIVE);
    let apart = (apart - drained - slow_end).max(0.0);
    let limit = if is_open(record) { table::LITTLE_OPEN } else { table::LITTLES_LAW.invalid };
    let severity = (apart > limit).then_some(Severity::Invalid);
    Some(table::LITTLES_LAW.say(
        By::Load,
        severity,
        format!(
            "{} requests in flight on average, but throughput times latency is {}: {} apart (limit {})",
            three_digits(law.in_flight),
            three_digits(law.throughput_times_latency),
            percent(apart),
            percent(limit)
        ),
    ))
}

fn percentiles(record: &LoadRecord) -> Option<Reading> {
    let kinds = [
        ("latency", &record.latency_ns),
        ("service", &record.service_ns),
        ("send lag", &record.send_lag_ns),
        ("wait", &record.wait_ns),
    ];
    let wrong = kinds.iter().find_map(|(name, times)| falling(times).map(|what| format!("{name}: {what}")));
    wrong.or_else(|| below(&record.latency_ns, &record.service_ns)).map(|what| {
        let message = format!("percentiles contradict each other: {what}");
        table::PERCENTILES.say(By::Load, Some(Severity::Invalid), message)
    })
}

/// The first percentile that is lower than the one before it.
fn falling(times: &LoadTimes) -> Option<String> {
    let known: Vec<(&str, u64)> =
        times.ascending().iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
    let pair = known.windows(2).find(|pair| pair[1].1 < pair[0].1)?;
    Some(format!("{} is {} ns, and {} is {} ns", pair[0].0, pair[0].1, pair[1].0, pair[1].1))
}

/// The first percentile that is lower for latency than for service, although latency includes service.
fn below(latency: &LoadTimes, service: &LoadTimes) -> Option<String> {
    let pairs = latency.ascending().into_iter().zip(service.ascending());
    let mut known = pairs.filter_map(|((name, a), (_, b))| Some((name, a?, b?)));
    let (name, a, b) = known.find(|(_, a, b)| (*a as f64) < *b as f64 * (1.0 - STEP) - table::GRAIN_NS)?;
    Some(format!("{name} of the latency is {a} ns, and of the service {b} ns"))
}

fn few_samples(record: &LoadRecord) -> Option<Reading> {
    let answers = record.completions as f64;
    let weak: Vec<&str> = [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)]
        .iter()
        .filter(|(_, q)| beyond(answers, *q) < BEYOND)
        .map(|(name, _)| *name)
        .collect();
    let first = weak.first()?;
    let above = if weak.len() == 1 { "" } else { " and above" };
    Some(table::FEW_SAMPLES.say(
        By::Load,
        Some(Severity::Warn),
        format!(
            "{} {} too few for {first}{above}: a percentile needs {BEYOND} requests beyond it",
            count(record.completions, "answer"),
            if record.completions == 1 { "is" } else { "are" }
        ),
    ))
}

fn closed_by_server(record: &LoadRecord) -> Option<Reading> {
    let share = record.closed_by_server as f64 / record.completions.max(1) as f64;
    Some(table::CLOSED_BY_SERVER.read(
        By::Load,
        share,
        format!(
            "the server closed {} and answered {}",
            count(record.closed_by_server, "connection"),
            count(record.completions, "request")
        ),
    ))
}

fn retried(record: &LoadRecord) -> Option<Reading> {
    (record.retried > 0).then(|| {
        table::RETRIED.say(
            By::Load,
            Some(Severity::Warn),
            format!(
                "deadheat sent {} a second time, because the server closed the connection",
                count(record.retried, "request")
            ),
        )
    })
}

fn clamped(record: &LoadRecord) -> Option<Reading> {
    (record.clamped > 0).then(|| {
        table::CLAMPED.say(
            By::Load,
            Some(Severity::Warn),
            format!("{} measured times were above one hour and count as one hour", whole(record.clamped)),
        )
    })
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "../../../record/tests/load_fixture/mod.rs"]
mod load_fixture;
