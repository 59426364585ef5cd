//! The gates of a lone load, one function each: a reading of the record, its limits, what is said and what to do.
//!
//! Owns the limits. Must not know how findings are shown. All limits but those of `connections-exhausted`,
//! `closed-by-server` and `few-samples` are those of the project's method, section 6 (gates) and 5 (Little's law).
//!
//! | code | warns | invalid |
//! |---|---|---|
//! | `send-lag` | open: p99 of the lag that is the generator's over 10 % of the median latency | over 50 % at the highest of p99, p95, p90, p75, p50 that has 100 requests beyond it |
//! | `offered-not-achieved` | open: under 99.5 % of what was due was kept up with | under 98 % |
//! | `generator-saturated` | the generator used over 70 % of its time on a CPU (loads from 100 ms on) | over 85 % |
//! | `run-delay` | it waited for a CPU over 1 % of the time (loads from 100 ms on); open: beyond a tenth of the median latency at each waking | over 5 % |
//! | `ceiling` | over 50 % of what the generator reaches against a null server | over 70 % |
//! | `littles-law` | | in flight and throughput x latency differ by over 2 % (closed), 5 % (open) |
//! | `percentiles` | | a higher percentile is lower than a lower one, or latency below service |
//! | `errors`, `status`, `mismatch`, `unsolicited` | any | over 0.1 % of the requests |
//! | `nothing-measured` | | no answer at all |
//! | `gave-up` | | no answer came any more |
//! | `connections-exhausted` | open: any request waited, and there could be no more connections | |
//! | `connections-failed` | any attempt to open a connection failed that no request stood on | |
//! | `few-samples` | under 100 requests beyond the 99th percentile | |
//! | `closed-by-server` | the server closed over 1 % of the connections after an answer | |
//! | `retried` | any request was sent a second time | |
//! | `clamped` | a time above one hour | |

use deadheat_record::{BEYOND, Finding, LoadRecord, LoadShape, LoadTimes, beyond};

use crate::number::{percent, three_digits, time_ns, whole};

/// Every code that [`findings`] gives.
pub const CODES: [&str; 19] = [
    "nothing-measured",
    "gave-up",
    "send-lag",
    "offered-not-achieved",
    "generator-saturated",
    "run-delay",
    "ceiling",
    "littles-law",
    "percentiles",
    "errors",
    "status",
    "mismatch",
    "unsolicited",
    "connections-exhausted",
    "connections-failed",
    "few-samples",
    "closed-by-server",
    "retried",
    "clamped",
];

/// Where a reading begins to warn, and where it takes the number away.
struct Limits {
    warn: f64,
    invalid: f64,
}

const SEND_LAG: Limits = Limits { warn: 0.10, invalid: 0.50 };
/// Of what was due: the share that was not kept up with.
const NOT_ACHIEVED: Limits = Limits { warn: 0.005, invalid: 0.02 };
const GENERATOR: Limits = Limits { warn: 0.70, invalid: 0.85 };
const RUN_DELAY: Limits = Limits { warn: 0.01, invalid: 0.05 };
const CEILING: Limits = Limits { warn: 0.50, invalid: 0.70 };
const WRONG: Limits = Limits { warn: 0.0, invalid: 0.001 };
const LITTLE_CLOSED: Limits = Limits { warn: 0.02, invalid: 0.02 };
const LITTLE_OPEN: Limits = Limits { warn: 0.05, invalid: 0.05 };
/// As for a contender in a race.
const CLOSED: Limits = Limits { warn: 0.01, invalid: f64::INFINITY };

/// The process has as many open files as it may have.
const EMFILE: i32 = 24;
/// All processes together have as many open files as there may be.
const ENFILE: i32 = 23;
/// No port is free.
const EADDRNOTAVAIL: i32 = 99;

/// A lag up to this is the grain of the histograms, whose steps are 512 ns at the bottom, whatever the latency.
const GRAIN_NS: f64 = 1_024.0;
/// Over less time than this, in seconds, shares of CPU time are the grain of the scheduler and the start of threads.
const LEAST_S: f64 = 0.1;
/// Times are kept with three digits, so that a higher percentile of sums may read lower by one step of the histogram.
const STEP: f64 = 0.002;

impl Limits {
    /// A finding if the reading is over a limit.
    fn judge(&self, code: &str, reading: f64, message: String, remedy: &str) -> Option<Finding> {
        if reading > self.invalid {
            Some(Finding::invalid(code, format!("{message} (limit {})", percent(self.invalid)), remedy))
        } else if reading > self.warn && self.warn > 0.0 {
            Some(Finding::warn(code, format!("{message} (limit {})", percent(self.warn)), remedy))
        } else if reading > self.warn {
            Some(Finding::warn(code, message, remedy))
        } else {
            None
        }
    }
}

/// What weakens a load's numbers, as far as its record says: those that take them away first.
pub fn findings(record: &LoadRecord) -> Vec<Finding> {
    if record.completions == 0 {
        return [nothing_measured(record), gave_up(record), errors(record)].into_iter().flatten().collect();
    }
    let gates = [
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
        littles_law(record),
        percentiles(record),
        few_samples(record),
        closed_by_server(record),
        retried(record),
        clamped(record),
    ];
    let mut findings: Vec<Finding> = gates.into_iter().flatten().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn is_open(record: &LoadRecord) -> bool {
    record.shape == LoadShape::Open
}

fn nothing_measured(record: &LoadRecord) -> Option<Finding> {
    let message = match record.requests {
        0 => "no request was due in the time that was loaded".to_owned(),
        due => format!("none of {} requests was answered", whole(due)),
    };
    let remedy = "ask the server once by hand, and load it for longer";
    Some(Finding::invalid("nothing-measured", message, remedy))
}

fn gave_up(record: &LoadRecord) -> Option<Finding> {
    record.gave_up.then(|| {
        Finding::invalid(
            "gave-up",
            "no answer came any more, and the load was ended before its number of requests",
            "look at the server; --timeout says how long a request is waited for",
        )
    })
}

fn errors(record: &LoadRecord) -> Option<Finding> {
    let outcomes = &record.outcomes;
    let kinds = [
        ("connect", outcomes.connect),
        ("read", outcomes.read),
        ("write", outcomes.write),
        ("timeout", outcomes.timeout),
        ("protocol", outcomes.protocol),
        ("cut", outcomes.cut),
    ];
    let failed: u64 = kinds.iter().map(|(_, count)| count).sum();
    let seen: Vec<String> =
        kinds.iter().filter(|(_, n)| *n > 0).map(|(kind, n)| format!("{kind} {}", whole(*n))).collect();
    WRONG.judge(
        "errors",
        failed as f64 / record.requests.max(1) as f64,
        format!(
            "{} of {} requests got no complete answer: {}",
            whole(failed),
            whole(record.requests),
            seen.join(", ")
        ),
        "look into the server's log; lower the rate or the number of connections until all are answered",
    )
}

fn status(record: &LoadRecord) -> Option<Finding> {
    let wrong = record.outcomes.status;
    WRONG.judge(
        "status",
        wrong as f64 / record.requests.max(1) as f64,
        format!(
            "{} of {} requests were answered with a status other than {}",
            whole(wrong),
            whole(record.requests),
            record.checked.status
        ),
        "if that status is right, say so with --expect-status; else look into the server's log",
    )
}

fn mismatch(record: &LoadRecord) -> Option<Finding> {
    let wrong = record.outcomes.mismatch;
    WRONG.judge(
        "mismatch",
        wrong as f64 / record.requests.max(1) as f64,
        format!(
            "{} of {} requests were answered with another body than before the load",
            whole(wrong),
            whole(record.requests)
        ),
        "if bodies may differ, say so with --expect length or --expect any; else find out what changes under load",
    )
}

fn unsolicited(record: &LoadRecord) -> Option<Finding> {
    WRONG.judge(
        "unsolicited",
        record.unsolicited as f64 / record.requests.max(1) as f64,
        format!(
            "{} connections were closed because the server sent what no request had asked for",
            whole(record.unsolicited)
        ),
        "find out what the server sends after its answers: if it comes under the next request, it is taken for its answer",
    )
}

fn offered_not_achieved(record: &LoadRecord) -> Option<Finding> {
    let share = record.achieved_share.filter(|_| is_open(record))?;
    let (offered, achieved) = (record.offered_rps?, record.throughput_rps?);
    let missed = 1.0 - share;
    let limit = if missed > NOT_ACHIEVED.invalid { NOT_ACHIEVED.invalid } else { NOT_ACHIEVED.warn };
    let message = format!(
        "{} of what was due was kept up with (limit {}): {}/s asked for, {}/s answered",
        percent(share.min(1.0)),
        percent(1.0 - limit),
        three_digits(offered),
        three_digits(achieved)
    );
    let remedy = "lower --rate; the server, or what it waits for, cannot do more";
    if missed > NOT_ACHIEVED.invalid {
        Some(Finding::invalid("offered-not-achieved", message, remedy))
    } else {
        (missed > NOT_ACHIEVED.warn).then(|| Finding::warn("offered-not-achieved", message, remedy))
    }
}

fn connections_exhausted(record: &LoadRecord) -> Option<Finding> {
    let exhausted = is_open(record) && record.waited > 0 && record.connections_used >= record.max_connections;
    exhausted.then(|| {
        let longest = record.wait_ns.max.map(|ns| format!(", up to {}", time_ns(ns as f64)));
        Finding::warn(
            "connections-exhausted",
            format!(
                "{} requests waited for a connection{}: all {} were busy",
                whole(record.waited),
                longest.unwrap_or_default(),
                whole(record.max_connections)
            ),
            "allow more with --max-connections, or lower --rate; the wait is part of the latency",
        )
    })
}

fn connections_failed(record: &LoadRecord) -> Option<Finding> {
    let worst = record.unopened.iter().max_by_key(|fault| fault.count)?;
    let failed: u64 = record.unopened.iter().map(|fault| fault.count).sum();
    let remedy = match worst.os_error {
        Some(EMFILE) => "allow this process more open files (ulimit -n), or lower --max-connections",
        Some(ENFILE) => "allow this machine more open files (fs.file-max), or lower --max-connections",
        Some(EADDRNOTAVAIL) => {
            "give this machine more ports (net.ipv4.ip_local_port_range), or lower --max-connections"
        }
        _ => "let the server take more connections at a time, or lower --max-connections",
    };
    Some(Finding::warn(
        "connections-failed",
        format!(
            "{} attempts to open a connection failed, most of them because: {}; {} were open at the most",
            whole(failed),
            worst.cause,
            whole(record.connections_used)
        ),
        remedy,
    ))
}

/// The lag that the generator itself caused: waiting for a connection and connecting are the server's doing.
fn send_lag(record: &LoadRecord) -> Option<Finding> {
    let (own, p50) = (record.own_lag_ns.p99? as f64, record.latency_ns.p50?);
    if !is_open(record) || own <= GRAIN_NS {
        return None;
    }
    let share = own / p50.max(1) as f64;
    let firm_ns = firm_ns(&record.own_lag_ns, record.completions);
    let firm = firm_ns > GRAIN_NS && firm_ns / p50.max(1) as f64 > SEND_LAG.invalid;
    let limits = if firm { SEND_LAG } else { Limits { invalid: f64::INFINITY, ..SEND_LAG } };
    limits.judge(
        "send-lag",
        share,
        format!(
            "the 99th percentile of the generator's own send lag is {}, {} of the median latency of {}",
            time_ns(own),
            percent(share),
            time_ns(p50 as f64)
        ),
        "give the generator CPUs of its own with --cpus, more threads with -t, or lower --rate",
    )
}

/// The 99th percentile, or the highest below that has [`BEYOND`] requests beyond it: what rests on a handful takes nothing away. 0 where
/// none has.
fn firm_ns(times: &LoadTimes, requests: u64) -> f64 {
    let all = [(0.99, times.p99), (0.95, times.p95), (0.9, times.p90), (0.75, times.p75), (0.5, times.p50)];
    let firm = all.iter().find(|(at, _)| beyond(requests as f64, *at) >= BEYOND);
    firm.and_then(|(_, ns)| *ns).map_or(0.0, |ns| ns as f64)
}

fn generator_saturated(record: &LoadRecord) -> Option<Finding> {
    let share = record.generator.cpu_share.filter(|_| record.duration_s >= LEAST_S)?;
    let (limit, remedy) = if is_open(record) {
        (
            "latencies hold its own delays",
            "give it more threads with -t and CPUs of their own with --cpus, or lower --rate",
        )
    } else {
        (
            "it may be the limit, and not the server",
            "give it more threads with -t and CPUs of their own with --cpus, or compare with --ceiling",
        )
    };
    GENERATOR.judge(
        "generator-saturated",
        share,
        format!("the generator was busy for {} of its time; {limit}", percent(share)),
        remedy,
    )
}

/// Under an open load a delay costs latency, and may be at each waking what a send lag may be: as for a race.
fn run_delay(record: &LoadRecord) -> Option<Finding> {
    let share = record.generator.run_delay_share.filter(|_| record.duration_s >= LEAST_S)?;
    let waking = record.generator.run_delay_mean_ns.zip(record.latency_ns.p50).filter(|_| is_open(record));
    let beyond =
        |(mean_ns, p50): (u64, u64)| (1.0 - SEND_LAG.warn * p50 as f64 / (mean_ns as f64).max(1.0)).max(0.0);
    let share = share * waking.map_or(1.0, beyond);
    let beyond = if waking.is_some() { ", beyond a tenth of the median latency at each waking" } else { "" };
    RUN_DELAY.judge(
        "run-delay",
        share,
        format!("the generator waited for a CPU for {} of its time{beyond}", percent(share)),
        "give generator and server CPUs of their own: --cpus here, taskset for the server",
    )
}

fn ceiling(record: &LoadRecord) -> Option<Finding> {
    let ceiling = record.ceiling?;
    let share = ceiling.share?;
    CEILING.judge(
        "ceiling",
        share,
        format!(
            "{} of the {}/s that the generator reaches against a server that does nothing",
            percent(share),
            three_digits(ceiling.throughput_rps)
        ),
        "give the generator more threads with -t and CPUs of their own with --cpus",
    )
}

fn littles_law(record: &LoadRecord) -> Option<Finding> {
    let law = record.littles_law?;
    let apart = (law.in_flight - law.throughput_times_latency).abs() / law.in_flight.max(f64::MIN_POSITIVE);
    // Requests in flight at the end are on one side only.
    let in_time = record.throughput_rps? * record.duration_s;
    let drained = (record.completions as f64 - in_time).max(0.0) / record.completions.max(1) as f64;
    let slow_end = record.drain_s / record.duration_s.max(f64::MIN_POSITIVE);
    let apart = (apart - drained - slow_end).max(0.0);
    let limits = if is_open(record) { LITTLE_OPEN } else { LITTLE_CLOSED };
    limits.judge(
        "littles-law",
        apart,
        format!(
            "{} requests in flight on average, but throughput times latency is {}: {} apart",
            three_digits(law.in_flight),
            three_digits(law.throughput_times_latency),
            percent(apart)
        ),
        "this is a defect of deadheat: report it with the JSON of this load",
    )
}

fn percentiles(record: &LoadRecord) -> Option<Finding> {
    let kinds = [
        ("latency", &record.latency_ns),
        ("service", &record.service_ns),
        ("send lag", &record.send_lag_ns),
        ("wait", &record.wait_ns),
    ];
    let wrong = kinds.iter().find_map(|(name, times)| falling(times).map(|what| format!("{name}: {what}")));
    wrong.or_else(|| below(&record.latency_ns, &record.service_ns)).map(|what| {
        let remedy = "this is a defect of deadheat: report it with the JSON of this load";
        Finding::invalid("percentiles", format!("percentiles contradict each other: {what}"), remedy)
    })
}

/// The first percentile that is lower than the one before it.
fn falling(times: &LoadTimes) -> Option<String> {
    let known: Vec<(&str, u64)> =
        times.ascending().iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
    let pair = known.windows(2).find(|pair| pair[1].1 < pair[0].1)?;
    Some(format!("{} is {} ns, and {} is {} ns", pair[0].0, pair[0].1, pair[1].0, pair[1].1))
}

/// The first percentile of latency that lies below that of service, of which latency is made.
fn below(latency: &LoadTimes, service: &LoadTimes) -> Option<String> {
    let pairs = latency.ascending().into_iter().zip(service.ascending());
    let mut known = pairs.filter_map(|((name, a), (_, b))| Some((name, a?, b?)));
    let (name, a, b) = known.find(|(_, a, b)| (*a as f64) < *b as f64 * (1.0 - STEP) - GRAIN_NS)?;
    Some(format!("{name} of the latency is {a} ns, and of the service {b} ns"))
}

fn few_samples(record: &LoadRecord) -> Option<Finding> {
    let count = record.completions as f64;
    let weak: Vec<&str> = [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)]
        .iter()
        .filter(|(_, q)| beyond(count, *q) < BEYOND)
        .map(|(name, _)| *name)
        .collect();
    let first = weak.first()?;
    let which = if weak.len() == 1 { format!("{first} rests") } else { format!("{first} and above rest") };
    Some(Finding::warn(
        "few-samples",
        format!("{} answers: {which} on fewer than {BEYOND} requests beyond", whole(record.completions)),
        "load for longer with -d, or send more requests with -n",
    ))
}

fn closed_by_server(record: &LoadRecord) -> Option<Finding> {
    let share = record.closed_by_server as f64 / record.completions.max(1) as f64;
    CLOSED.judge(
        "closed-by-server",
        share,
        format!(
            "the server closed {} connections while {} requests were answered",
            whole(record.closed_by_server),
            whole(record.completions)
        ),
        "connecting is part of what is measured; if that is not wanted, let the server keep connections alive",
    )
}

fn retried(record: &LoadRecord) -> Option<Finding> {
    (record.retried > 0).then(|| {
        Finding::warn(
            "retried",
            format!(
                "{} requests were sent a second time, because the server closed the connection under them",
                whole(record.retried)
            ),
            "look into the server's log whether it dropped them; if not, let it announce the end of a connection with \
             Connection: close and keep idle ones open for longer",
        )
    })
}

fn clamped(record: &LoadRecord) -> Option<Finding> {
    (record.clamped > 0).then(|| {
        Finding::warn(
            "clamped",
            format!("{} times were above one hour and count as one hour", whole(record.clamped)),
            "lower --timeout",
        )
    })
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "../../../record/tests/load_fixture/mod.rs"]
mod load_fixture;
