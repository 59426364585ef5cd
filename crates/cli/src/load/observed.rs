//! Converts the engine's tally to the record.
//!
//! Owns: that conversion. This module does not judge or round anything. Must not know: how the record is shown or written.

use std::time::Duration;

use deadheat_load::{BodyRule, Cause, Expectation, Fault, Mismatch, Outcome, StatusRule, Tally, nanos};
use deadheat_record::{
    ArrivalsWord, Ceiling, EncodedHistogram, Generator, HistogramError, LOAD_SCHEMA, LittlesLaw, LoadFault,
    LoadHost, LoadLimits, LoadMismatch, LoadRecord, LoadShape, LoadTimes, RoundTrips, Sent,
};
use deadheat_runner::outcomes;

use super::checks::Checks;
use super::plan::{LoadPlan, Shape};
use super::run::{Connected, Loaded, LoadedHost};
use super::wire::Wire;

/// The record of a load that began at `started_unix_ms`, without its findings.
///
/// # Errors
/// The histogram cannot be encoded.
pub(crate) fn record(
    plan: &LoadPlan,
    server: &Connected,
    checks: &Checks,
    loaded: &Loaded,
    ceiling_rps: Option<f64>,
    started_unix_ms: u64,
) -> Result<LoadRecord, HistogramError> {
    let tally = &loaded.tally;
    let throughput_rps = tally.throughput_per_s();
    let offered = Offered::of(plan, loaded);
    let sent = sent(plan);
    let times = [&tally.latency, &tally.service, &tally.send_lag, &tally.wait, &tally.own_lag];
    let [latency_ns, service_ns, send_lag_ns, wait_ns, own_lag_ns] =
        times.map(|times| LoadTimes::of(times.histogram()));
    Ok(LoadRecord {
        schema: LOAD_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_ms,
        seed: plan.seed,
        url: url(plan, &sent),
        address: server.address.to_string(),
        sent,
        shape: if offered.rate.is_some() { LoadShape::Open } else { LoadShape::Closed },
        connections: plan.connections as u64,
        max_connections: plan.max_connections as u64,
        connections_used: tally.connections as u64,
        offered_rps: offered.rps,
        rate: offered.rate,
        arrivals: offered.arrivals,
        limits: limits(plan),
        duration_s: tally.loading_ns as f64 / 1e9,
        drain_s: tally.elapsed_ns.saturating_sub(tally.loading_ns) as f64 / 1e9,
        requests: tally.due,
        completions: tally.completions,
        throughput_rps,
        achieved_share: tally.achieved_share(),
        latency_ns,
        service_ns,
        send_lag_ns,
        wait_ns,
        own_lag_ns,
        waited: tally.waited,
        clamped: times.iter().map(|times| times.clamped()).max().unwrap_or(0),
        outcomes: outcomes(tally),
        status: tally.status.iter().collect(),
        bytes_read: tally.bytes_read,
        bytes_written: tally.bytes_written,
        reconnects: tally.reconnects,
        closed_by_server: tally.closed_by_server,
        unsolicited: tally.unsolicited,
        retried: tally.retried,
        unopened: tally.unopened.iter().map(fault).collect(),
        littles_law: littles_law(tally),
        faults: tally.faults.iter().map(fault).collect(),
        mismatches: tally.mismatches.iter().map(|one| mismatch(one, &plan.wires.all)).collect(),
        checked: checks.checked.clone(),
        generator: generator(plan, loaded),
        hosts: loaded.hosts.iter().map(host).collect(),
        start_skew_ns: loaded.start_skew.map(nanos),
        ceiling: ceiling_rps.map(|throughput_rps_there| Ceiling {
            throughput_rps: throughput_rps_there,
            share: throughput_rps.map(|here| here / throughput_rps_there),
        }),
        interrupted: loaded.interrupted,
        gave_up: tally.gave_up,
        findings: Vec::new(),
        hdr: EncodedHistogram::encode(tally.latency.histogram())?,
    })
}

/// The URL of the requests. It includes the path if there is only one.
fn url(plan: &LoadPlan, sent: &Sent) -> String {
    let path = if sent.distinct > 1 { "" } else { &plan.wires.all[0].path };
    plan.target.origin() + path
}

fn littles_law(tally: &Tally) -> Option<LittlesLaw> {
    let (in_flight, throughput_times_latency) = tally.littles_law()?;
    Some(LittlesLaw { in_flight, throughput_times_latency })
}

/// A summary of the requests.
fn sent(plan: &LoadPlan) -> Sent {
    let wires = &plan.wires;
    Sent {
        method: if wires.all.len() > 1 { wires.method.clone() } else { wires.all[0].method.clone() },
        distinct: wires.all.len() as u64,
        order: wires.order.words(),
    }
}

/// Values that only open loads have.
#[derive(Default)]
struct Offered {
    rate: Option<String>,
    arrivals: Option<ArrivalsWord>,
    rps: Option<f64>,
}

impl Offered {
    fn of(plan: &LoadPlan, loaded: &Loaded) -> Self {
        let (rate, arrivals) = match &plan.shape {
            Shape::Closed => return Self::default(),
            Shape::Open { text, poisson: true, .. } => (text.clone(), ArrivalsWord::Poisson),
            Shape::Open { text, .. } => (text.clone(), ArrivalsWord::Constant),
            Shape::Recorded { speed: 1.0, .. } => ("as recorded".into(), ArrivalsWord::Recorded),
            Shape::Recorded { speed, .. } => {
                (format!("{speed} times as fast as recorded"), ArrivalsWord::Recorded)
            }
        };
        let tally = &loaded.tally;
        let ended_early = loaded.interrupted || loaded.hosts.iter().any(|host| host.slice.result.is_err());
        // The event that ended the load determines the period of the offered rate.
        let over = match plan.duration {
            Some(duration) if !ended_early && Some(tally.due) != plan.requests => duration,
            _ if ended_early => Duration::from_nanos(tally.loading_ns),
            _ => Duration::from_nanos(last_due_ns(plan, tally.due)),
        };
        Self {
            rate: Some(rate),
            arrivals: Some(arrivals),
            rps: Some(plan.pacer(false).mean_over(over.as_secs_f64())),
        }
    }
}

/// When request number `due` was due, in nanoseconds after the start.
fn last_due_ns(plan: &LoadPlan, due: u64) -> u64 {
    let last = due.checked_sub(1).and_then(|skip| usize::try_from(skip).ok());
    plan.pacer(false).due_times().zip(last).and_then(|(mut times, last)| times.nth(last)).unwrap_or(0)
}

fn limits(plan: &LoadPlan) -> LoadLimits {
    LoadLimits {
        duration_s: plan.duration.map(|duration| duration.as_secs_f64()),
        requests: plan.requests,
        warmup_s: plan.warmup.as_secs_f64(),
        timeout_s: plan.timeout.as_secs_f64(),
        connect_timeout_s: plan.connect_timeout.as_secs_f64(),
    }
}

fn fault(fault: &Fault) -> LoadFault {
    let outcome = match fault.outcome {
        Outcome::Ok => "ok",
        Outcome::Status => "status",
        Outcome::Mismatch => "mismatch",
        Outcome::Connect => "connect",
        Outcome::Read => "read",
        Outcome::Write => "write",
        Outcome::Timeout => "timeout",
        Outcome::Protocol => "protocol",
        Outcome::Cut => "cut",
    };
    let os_error = match fault.cause {
        Cause::System(number) => Some(number),
        Cause::Answer(_) | Cause::Closed | Cause::Time | Cause::Tls(_) => None,
    };
    LoadFault { outcome: outcome.into(), cause: fault.cause.to_string(), os_error, count: fault.count }
}

fn mismatch(one: &Mismatch, wires: &[Wire]) -> LoadMismatch {
    let request = wires.get(one.request as usize);
    LoadMismatch {
        request: request.map_or_else(String::new, |wire| format!("{} {}", wire.method, wire.path)),
        expected: expected(&one.expected, one.status),
        status: one.status,
        length: one.length,
        body: String::from_utf8_lossy(&one.body).into_owned(),
    }
}

/// The expectation that the answer did not meet.
fn expected(expected: &Expectation, status: u16) -> String {
    if !expected.status.admits(status) {
        return match expected.status {
            StatusRule::Set(set) => format!("status {set}"),
            StatusRule::Exact(code) => format!("status {code}"),
            StatusRule::Any => "any status".into(),
        };
    }
    match expected.body {
        BodyRule::Any => "any body".into(),
        BodyRule::Length(length) => format!("a body of {length} bytes"),
        BodyRule::Digest { length, .. } => format!("the same body of {length} bytes as before the load"),
    }
}

/// What one load host did. A lost one has no numbers but those that are known here.
fn host(one: &LoadedHost) -> LoadHost {
    let (nothing, tally) = (Tally::default(), one.slice.result.as_ref());
    let lost = tally.err().map(ToString::to_string);
    let tally = tally.unwrap_or(&nothing);
    LoadHost {
        name: one.name.clone(),
        connections: one.part.connections as u64,
        max_connections: one.part.max_connections as u64,
        threads: one.part.threads as u64,
        backend: one.backend.into(),
        requests: tally.due,
        completions: tally.completions,
        throughput_rps: tally.throughput_per_s(),
        cpu_share: tally.cpu_share(),
        run_delay_share: tally.run_delay_ns.and_then(|ns| of_wall(tally, ns)),
        round_trip_ns: RoundTrips {
            count: one.round_trips.count(),
            p50: one.round_trips.quantile_ns(0.5),
            p99: one.round_trips.quantile_ns(0.99),
        },
        start_delay_ns: lost.is_none().then(|| nanos(one.slice.late)),
        reported_when_lost: lost.as_ref().map(|_| one.slice.last_report),
        lost,
    }
}

/// A part of the workers' wall time.
fn of_wall(tally: &Tally, ns: u64) -> Option<f64> {
    (tally.wall_ns > 0).then(|| ns as f64 / tally.wall_ns as f64)
}

fn generator(plan: &LoadPlan, loaded: &Loaded) -> Generator {
    let tally = &loaded.tally;
    let of_wall = |ns: u64| of_wall(tally, ns);
    let busy_ns = tally.cpu_ns.saturating_sub(tally.spin_ns);
    Generator {
        threads: loaded.workers as u64,
        cpus: plan.cpus.iter().map(|cpu| *cpu as u64).collect(),
        backend: loaded.backend.clone(),
        cpu_us_per_request: (tally.completions > 0).then(|| busy_ns as f64 / 1e3 / tally.completions as f64),
        cpu_share: tally.cpu_share(),
        spin_share: of_wall(tally.spin_ns),
        run_delay_share: tally.run_delay_ns.and_then(of_wall),
        run_delay_mean_ns: tally.run_delay_ns.zip(tally.runs).and_then(|(ns, runs)| ns.checked_div(runs)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_keeps_its_number() {
        let kept = |cause| fault(&Fault { outcome: Outcome::Connect, cause, count: 3 });
        let files = kept(Cause::System(24));
        assert_eq!((files.outcome.as_str(), files.os_error, files.count), ("connect", Some(24), 3));
        assert_eq!(kept(Cause::Time).os_error, None);
    }
}
