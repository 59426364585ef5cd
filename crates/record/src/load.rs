//! What `deadheat load` measured: schema `deadheat.load/1`, a public contract.
//!
//! Owns: the nouns of one lone load: its options, its results, its findings. Must not know: how it is measured, judged or shown.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EncodedHistogram, Finding, Outcomes, QUANTILES, Quantiles, Severity, beyond};

/// The schema of [`LoadRecord`]. Keys do not change within this number.
pub const LOAD_SCHEMA: &str = "deadheat.load/1";

/// One load: its options and its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadRecord {
    /// `deadheat.load/1`.
    pub schema: String,
    /// The version of deadheat that ran the load.
    pub version: String,
    /// When the load began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Seed of the arrivals and of the order of requests.
    pub seed: u64,
    /// The requested URL; with a file of requests, the server's origin.
    pub url: String,
    /// Where the server listened: `127.0.0.1:8080` or `unix:/run/server.sock`.
    pub address: String,
    /// The requests that were sent.
    pub sent: Sent,
    /// Closed or open.
    pub shape: LoadShape,
    /// Connections that were opened before the load began. A closed load uses only these.
    pub connections: u64,
    /// Maximum number of connections. An open load opens more, up to this number, when a request is due and no connection is free.
    pub max_connections: u64,
    /// Highest number of connections that were open at the same time.
    pub connections_used: u64,
    /// The requested rate in requests per second, averaged over the loaded time; open loads only.
    pub offered_rps: Option<f64>,
    /// The rate as it was given, such as `100..5000:10s`; open loads only.
    pub rate: Option<String>,
    /// Distribution of the due times at the given rate; open loads only.
    pub arrivals: Option<ArrivalsWord>,
    /// Configured end of the load, and timeouts.
    pub limits: LoadLimits,
    /// Time in which requests were started, in seconds: until the deadline or, with a number of requests, until the last one ended.
    pub duration_s: f64,
    /// Time from then until the last request in flight ended, in seconds.
    #[serde(default)]
    pub drain_s: f64,
    /// Requests that were due. Each is counted in exactly one of `outcomes`.
    pub requests: u64,
    /// Complete answers, right or wrong.
    pub completions: u64,
    /// Complete answers per second of `duration_s`, without those of the drain; null if there was none.
    pub throughput_rps: Option<f64>,
    /// For open loads: share of the due requests that the server kept up with, 0 to 1: the answered requests minus the growth of the backlog. Slow
    /// answers alone do not lower it.
    pub achieved_share: Option<f64>,
    /// From the intended time to the complete answer. For closed loads this is the latency at saturation.
    pub latency_ns: LoadTimes,
    /// From the sending of the request to the complete answer.
    pub service_ns: LoadTimes,
    /// From the intended time to the sending of the request.
    pub send_lag_ns: LoadTimes,
    /// Time spent waiting because no connection was free: the part of the send lag that the generator does not cause.
    pub wait_ns: LoadTimes,
    /// From the intended time until a connection handles the request, without the wait for a free connection: the part of the send lag that the
    /// generator causes.
    #[serde(default)]
    pub own_lag_ns: LoadTimes,
    /// Requests that waited because no connection was free.
    pub waited: u64,
    /// Number of times above one hour, which are recorded as one hour.
    pub clamped: u64,
    /// How the requests ended.
    pub outcomes: Outcomes,
    /// Complete answers by status.
    pub status: BTreeMap<u16, u64>,
    /// Bytes received, including heads.
    pub bytes_read: u64,
    /// Bytes sent, including heads.
    pub bytes_written: u64,
    /// Connections that were opened during the load, either in addition or to replace closed ones.
    pub reconnects: u64,
    /// Connections that the server closed regularly: it announced this in an answer, or no answer was outstanding.
    pub closed_by_server: u64,
    /// Connections that the generator closed because the server sent bytes that no request had asked for.
    #[serde(default)]
    pub unsolicited: u64,
    /// Requests that were sent a second time, because the server closed the connection before any byte of the answer and may not have read the
    /// request. Requests whose method must not be repeated, such as POST, are never sent again.
    pub retried: u64,
    /// Causes of failed attempts to open a connection while no request was waiting on it. If a request was waiting, the cause is in `faults`.
    #[serde(default)]
    pub unopened: Vec<LoadFault>,
    /// Check of Little's law, which every load obeys; null if nothing was answered.
    pub littles_law: Option<LittlesLaw>,
    /// Causes of requests that ended without a complete answer.
    pub faults: Vec<LoadFault>,
    /// The first answers with a wrong status or body.
    pub mismatches: Vec<LoadMismatch>,
    /// How answers were checked.
    pub checked: Checked,
    /// What the load cost the generator, and how busy its threads were.
    pub generator: Generator,
    /// The machines that the load came from, in the order in which they were named; absent if it came from the machine that wrote this record. All
    /// other values are those of the hosts together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<LoadHost>,
    /// By how much the first and the last of several load hosts began apart, in nanoseconds, as far as the machine that gave the orders can know it. It
    /// takes half a round trip for the order's way, and may be off by half the round trip of each host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew_ns: Option<u64>,
    /// Throughput of the generator against a server that does no work; null unless requested.
    pub ceiling: Option<Ceiling>,
    /// Whether the user interrupted the load.
    pub interrupted: bool,
    /// Whether the load stopped early because no more answers arrived.
    pub gave_up: bool,
    /// What weakens the numbers, most severe first.
    pub findings: Vec<Finding>,
    /// All latencies in nanoseconds: HdrHistogram V2, compressed, base64.
    pub hdr: EncodedHistogram,
}

impl LoadRecord {
    /// Whether a finding makes the numbers invalid.
    pub fn is_invalid(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Invalid)
    }
}

/// Kind of load: what determines when requests are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoadShape {
    /// Closed load: each connection sent its next request after the answer to the one before.
    Closed,
    /// Open load: requests were due at a given rate, independent of the answers.
    Open,
}

/// Distribution of the due times at a given rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalsWord {
    /// Independent arrivals with exponential gaps.
    Poisson,
    /// Constant gaps.
    Constant,
    /// The gaps with which the requests were recorded.
    Recorded,
}

impl ArrivalsWord {
    /// The word that options and records use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Constant => "constant",
            Self::Recorded => "recorded",
        }
    }
}

/// The requests that were sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// The method; a request in a file of requests may set another.
    pub method: String,
    /// Number of different requests.
    pub distinct: u64,
    /// Order of the requests: `one`, `sequential`, `random`, `zipf EXPONENT` or `timing`.
    pub order: String,
}

/// Configured end of a load, and timeouts, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadLimits {
    /// No request started after this time.
    pub duration_s: Option<f64>,
    /// Maximum number of requests that were started.
    pub requests: Option<u64>,
    /// Length of the warm-up, which does not count.
    pub warmup_s: f64,
    /// Timeout of a request: from its start to the complete answer.
    pub timeout_s: f64,
    /// Timeout of an attempt to connect.
    pub connect_timeout_s: f64,
}

/// Times of one kind, in nanoseconds. p50 to p99 are null with less than one request beyond them. p99_9 and p99_99 are null with fewer than 100. If
/// p50 to p99 rest on fewer than 100 requests beyond them, there is a finding `few-samples`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadTimes {
    /// Lowest.
    pub min: Option<u64>,
    /// Mean.
    pub mean: Option<u64>,
    /// Median.
    pub p50: Option<u64>,
    /// 75th percentile.
    pub p75: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p99_9: Option<u64>,
    /// 99.99th percentile.
    pub p99_99: Option<u64>,
    /// Highest.
    pub max: Option<u64>,
}

impl LoadTimes {
    /// The table of a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let Quantiles { min, mean, p99_9, p99_99, max, .. } = Quantiles::of(histogram);
        let count = histogram.len() as f64;
        let at = |q: f64| (beyond(count, q) >= 1.0).then(|| histogram.value_at_quantile(q));
        // A percentile is the upper end of a step of the histogram. If the shortest time is 0, values in the first step are reported as 0.
        let first = if histogram.min() == 0 { histogram.highest_equivalent(0) } else { 0 };
        let read = |value: Option<u64>| value.map(|value| if value <= first { 0 } else { value });
        let [p50, p75, p90, p95, p99, ..] = QUANTILES.map(|(_, q)| read(at(q)));
        let (p99_9, p99_99) = (read(p99_9), read(p99_99));
        Self { min, mean, p50, p75, p90, p95, p99, p99_9, p99_99, max }
    }

    /// Names and values for display, from the lowest to the highest, without the mean.
    pub fn ascending(&self) -> [(&'static str, Option<u64>); 9] {
        [
            ("min", self.min),
            ("p50", self.p50),
            ("p75", self.p75),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p99.9", self.p99_9),
            ("p99.99", self.p99_99),
            ("max", self.max),
        ]
    }
}

/// Little's law: requests in flight = throughput x mean latency. The left side is counted over `duration_s`, as requests start and end. The right
/// side is `throughput_rps` times the mean of `latency_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LittlesLaw {
    /// Mean number of requests in flight over time, as counted.
    pub in_flight: f64,
    /// Throughput times mean latency.
    pub throughput_times_latency: f64,
}

/// A cause of requests that ended without a complete answer, or of connections that could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFault {
    /// The outcome that counts these requests; `connect` for connections.
    pub outcome: String,
    /// The cause, in words.
    pub cause: String,
    /// The operating system's error number (`errno`); absent if the cause is not an operating system error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_error: Option<i32>,
    /// Number of occurrences.
    pub count: u64,
}

/// An answer that differs from the expected one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadMismatch {
    /// Method and path of the request.
    pub request: String,
    /// What was expected, in words.
    pub expected: String,
    /// The status of the answer.
    pub status: u16,
    /// Length of the body, in bytes.
    pub length: u64,
    /// The end of the body, at most 1 KiB. Bytes that are not UTF-8 are replaced.
    pub body: String,
}

/// How answers were checked: the accepted statuses, and the number of different requests for each way to check a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// The accepted status codes, such as `200-399`. Requests of a file may set their own.
    pub status: String,
    /// Requests whose body had to be identical to the one before the load.
    pub same: u64,
    /// Requests whose body had to be as long as the one before the load.
    pub length: u64,
    /// Requests whose body was not checked.
    pub any: u64,
    /// Why bodies were checked in this way, in words.
    pub why: String,
}

/// What a load cost the generator, and how busy its threads were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// Worker threads.
    pub threads: u64,
    /// The CPUs that the workers were pinned to, in turn; empty if they were not pinned.
    pub cpus: Vec<u64>,
    /// Interface to the operating system: `io_uring` or `epoll`.
    pub backend: String,
    /// CPU time per complete answer in microseconds, without polling for due times and answers; null if there was none.
    pub cpu_us_per_request: Option<f64>,
    /// CPU time of the workers divided by their wall time, without polling, 0 to 1.
    pub cpu_share: Option<f64>,
    /// Share of the workers' wall time spent polling for due times and answers, 0 to 1.
    pub spin_share: Option<f64>,
    /// Share of the workers' wall time in which they were runnable and waited for a CPU, 0 to 1; null if the kernel does not report it.
    pub run_delay_share: Option<f64>,
    /// Mean length of such a wait each time that a worker was scheduled, in nanoseconds.
    #[serde(default)]
    pub run_delay_mean_ns: Option<u64>,
}

/// One of the machines that a load came from. The numbers of a lost host are 0 or null, and the load's own values do not contain it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadHost {
    /// The host as it was named, without `ssh://`.
    pub name: String,
    /// Connections that it opened before the load began.
    pub connections: u64,
    /// Maximum number of its connections.
    pub max_connections: u64,
    /// Its worker threads. Each takes every n-th request, n being the threads of all hosts.
    pub threads: u64,
    /// Interface to the operating system: `io_uring` or `epoll`.
    pub backend: String,
    /// Requests that were due there.
    pub requests: u64,
    /// Complete answers, right or wrong.
    pub completions: u64,
    /// Complete answers per second, as for the whole load.
    pub throughput_rps: Option<f64>,
    /// CPU time of its workers divided by their wall time, without polling, 0 to 1.
    pub cpu_share: Option<f64>,
    /// Share of its workers' wall time in which they were runnable and waited for a CPU, 0 to 1; null if the kernel does not report it.
    pub run_delay_share: Option<f64>,
    /// How long a message to the host and its answer took.
    pub round_trip_ns: RoundTrips,
    /// How much later than ordered it began, by its own clock, in nanoseconds; null if it was lost.
    pub start_delay_ns: Option<u64>,
    /// Why it was lost, in words; null if it was not.
    pub lost: Option<String>,
    /// Complete answers that it had reported when it was lost, warm-up included; null if it was not.
    pub reported_when_lost: Option<u64>,
}

/// Round trips between the machine that gives the orders and a load host, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrips {
    /// How many were measured.
    pub count: u64,
    /// Median.
    pub p50: Option<u64>,
    /// 99th percentile; of fewer than 100 round trips, the longest.
    pub p99: Option<u64>,
}

/// Throughput of the generator against the built-in null server, on the same CPUs and connections, just before the load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// Complete answers per second against the null server.
    pub throughput_rps: f64,
    /// This load's throughput as a share of it.
    pub share: Option<f64>,
}
