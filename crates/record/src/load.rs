//! What `deadheat load` measured: schema `deadheat.load/1`, a public contract.
//!
//! Owns the nouns of one lone load: what was asked, what came of it, what weakens it. Must not know how it is measured,
//! judged or shown.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EncodedHistogram, Finding, Outcomes, Quantiles, Severity};

/// The schema of [`LoadRecord`]. Keys are stable within the number.
pub const LOAD_SCHEMA: &str = "deadheat.load/1";

/// One load: what was asked and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadRecord {
    /// `deadheat.load/1`.
    pub schema: String,
    /// The version of deadheat that measured.
    pub version: String,
    /// When the load began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Arrivals and the order of requests come from it.
    pub seed: u64,
    /// What was requested; with a file of requests, the server's origin.
    pub url: String,
    /// Where the server listened: `127.0.0.1:8080` or `unix:/run/server.sock`.
    pub address: String,
    /// Which requests were sent.
    pub sent: Sent,
    /// Closed or open.
    pub shape: LoadShape,
    /// Connections that were opened before the load began; a closed load keeps to them.
    pub connections: u64,
    /// An open load opened more when requests were due and none was free, up to this many.
    pub max_connections: u64,
    /// The most connections that were open at the same time.
    pub connections_used: u64,
    /// The rate that was asked for, in requests per second, on average over the time that was loaded; open loads only.
    pub offered_rps: Option<f64>,
    /// The rate as it was asked for, such as `100..5000:10s`; open loads only.
    pub rate: Option<String>,
    /// How the due times lay within the rate; open loads only.
    pub arrivals: Option<ArrivalsWord>,
    /// When it was to end, and how long anything could take.
    pub limits: LoadLimits,
    /// How long requests were begun, in seconds: until the deadline or, with a number of requests, until the last was settled.
    pub duration_s: f64,
    /// How long after that the last one that was in flight was settled, in seconds.
    #[serde(default)]
    pub drain_s: f64,
    /// Requests that were due. Each ended in exactly one of the outcomes.
    pub requests: u64,
    /// Complete answers, right or wrong.
    pub completions: u64,
    /// Complete answers per second of `duration_s`, those of the drain left out; null if there was none.
    pub throughput_rps: Option<f64>,
    /// Open loads: the share of the requests that were due which the server kept up with, 0 to 1: those that were
    /// answered, less those by which the backlog grew. Answers that are only slow do not lower it.
    pub achieved_share: Option<f64>,
    /// From the intended time to the complete answer. Closed loads: at saturation.
    pub latency_ns: LoadTimes,
    /// From sending to the complete answer.
    pub service_ns: LoadTimes,
    /// From the intended time to sending.
    pub send_lag_ns: LoadTimes,
    /// Waiting because no connection was free: the part of the send lag that is not the generator's fault.
    pub wait_ns: LoadTimes,
    /// From the intended time to being taken up by a connection, without the wait for one: the generator's own lag.
    #[serde(default)]
    pub own_lag_ns: LoadTimes,
    /// Requests that waited because no connection was free.
    pub waited: u64,
    /// Times above one hour, recorded as one hour.
    pub clamped: u64,
    /// How the requests ended.
    pub outcomes: Outcomes,
    /// Complete answers by status.
    pub status: BTreeMap<u16, u64>,
    /// Bytes that came in, heads included.
    pub bytes_read: u64,
    /// Bytes that went out, heads included.
    pub bytes_written: u64,
    /// Connections that were opened while the load ran, more of them or anew.
    pub reconnects: u64,
    /// Connections that the server closed without fault: announced in an answer, or while none was owed.
    pub closed_by_server: u64,
    /// Connections closed by the generator, because bytes came on them that no request had asked for.
    #[serde(default)]
    pub unsolicited: u64,
    /// Requests sent a second time, because the server closed the connection under them, before any byte of an answer, and
    /// may have done so before it read them. Never those of methods that must not be repeated, such as POST.
    pub retried: u64,
    /// Why attempts to open a connection failed while no request stood on it; where one did, it is among the `faults`.
    #[serde(default)]
    pub unopened: Vec<LoadFault>,
    /// Little's law, which every load obeys; null if nothing was answered.
    pub littles_law: Option<LittlesLaw>,
    /// Why requests ended without a complete answer.
    pub faults: Vec<LoadFault>,
    /// The first answers with the wrong status or body.
    pub mismatches: Vec<LoadMismatch>,
    /// What answers were checked against.
    pub checked: Checked,
    /// What the load cost the generator.
    pub generator: Generator,
    /// What the generator reaches against a server that does nothing; null unless it was asked for.
    pub ceiling: Option<Ceiling>,
    /// Whether a person ended it before its time.
    pub interrupted: bool,
    /// Whether it was given up because no answer came any more.
    pub gave_up: bool,
    /// What weakens the numbers, the worst first.
    pub findings: Vec<Finding>,
    /// All latencies in nanoseconds: HdrHistogram V2, compressed, base64.
    pub hdr: EncodedHistogram,
}

impl LoadRecord {
    /// Whether a finding takes the numbers away.
    pub fn is_invalid(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Invalid)
    }
}

/// When requests were due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoadShape {
    /// Each connection sent its next request when it had its answer.
    Closed,
    /// Requests were due at a rate, whatever the answers did.
    Open,
}

/// How due times lay within the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalsWord {
    /// Independent of each other, with exponential gaps.
    Poisson,
    /// Evenly.
    Constant,
}

impl ArrivalsWord {
    /// The word, as it is typed and read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Constant => "constant",
        }
    }
}

/// Which requests were sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// The method unless a request of the file named another.
    pub method: String,
    /// Different requests.
    pub distinct: u64,
    /// In which order they came: `one`, `sequential`, `random` or `zipf EXPONENT`.
    pub order: String,
}

/// When a load was to end, and how long anything could take, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadLimits {
    /// No request was begun later than this.
    pub duration_s: Option<f64>,
    /// No more requests were begun.
    pub requests: Option<u64>,
    /// Load before, which does not count.
    pub warmup_s: f64,
    /// From taking up a request to its complete answer.
    pub timeout_s: f64,
    /// An attempt to connect.
    pub connect_timeout_s: f64,
}

/// Times of one kind, in nanoseconds. p50 to p99 are null with less than one request beyond them, p99_9 and p99_99 with
/// fewer than 100; where p50 to p99 rest on fewer than 100, the finding `few-samples` says so.
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
        let beyond = |q: f64| histogram.len() as f64 * (1.0 - q);
        // The small allowance is for 1 - 0.99, which is not exactly 0.01.
        let at = |q: f64| (beyond(q) >= 1.0 - 1e-6).then(|| histogram.value_at_quantile(q));
        // A percentile is the end of a step of the histogram; where the shortest time is 0, its first step is read as 0.
        let first = if histogram.min() == 0 { histogram.highest_equivalent(0) } else { 0 };
        let read = |value: Option<u64>| value.map(|value| if value <= first { 0 } else { value });
        let [p50, p75, p90, p95, p99] = [0.5, 0.75, 0.9, 0.95, 0.99].map(|q| read(at(q)));
        let (p99_9, p99_99) = (read(p99_9), read(p99_99));
        Self { min, mean, p50, p75, p90, p95, p99, p99_9, p99_99, max }
    }

    /// Names as they are read and values, from the lowest to the highest; the mean is not among them.
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

/// Little's law: requests in flight = throughput x mean latency. The left side is counted as requests are begun and end, over
/// `duration_s`; the right side is `throughput_rps` times the mean of `latency_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LittlesLaw {
    /// Mean number of requests in flight, counted over time.
    pub in_flight: f64,
    /// Throughput times mean latency.
    pub throughput_times_latency: f64,
}

/// A reason for which requests ended without a complete answer, or connections could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFault {
    /// The outcome that they were counted as; `connect` for connections.
    pub outcome: String,
    /// Why, in words.
    pub cause: String,
    /// The operating system's number of the error, as in `errno`; absent where the cause is none of its errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_error: Option<i32>,
    /// How many.
    pub count: u64,
}

/// An answer that was not the expected one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadMismatch {
    /// Method and path of the request.
    pub request: String,
    /// What was expected, in words.
    pub expected: String,
    /// The status that came.
    pub status: u16,
    /// Bytes of the body that came.
    pub length: u64,
    /// The last piece of that body, at most 1 KiB; what is not UTF-8 is replaced.
    pub body: String,
}

/// What answers were checked against: the number of different requests by how their bodies were checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// The status codes that were right, such as `200-399`; requests of a file may name their own.
    pub status: String,
    /// Requests whose bodies had to be the very same as before the load.
    pub same: u64,
    /// Requests whose bodies had to be as long as before the load.
    pub length: u64,
    /// Requests whose bodies could be anything.
    pub any: u64,
    /// Why it was so, in words.
    pub why: String,
}

/// What a load cost the generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// Worker threads.
    pub threads: u64,
    /// The CPUs that they were tied to, in turn; empty if they were not.
    pub cpus: Vec<u64>,
    /// How it spoke to the operating system: `io_uring` or `epoll`.
    pub backend: String,
    /// CPU time per complete answer, without only looking out for due times and answers; null if there was none.
    pub cpu_us_per_request: Option<f64>,
    /// CPU time of the workers by their wall time, without looking out, 0 to 1.
    pub cpu_share: Option<f64>,
    /// Wall time that the workers spent only looking out for due times and answers, 0 to 1.
    pub spin_share: Option<f64>,
    /// Wall time that the workers waited for a CPU though they could have run, 0 to 1; null where the kernel does not say.
    pub run_delay_share: Option<f64>,
    /// How long a worker so waited on average each time that it came to run, in nanoseconds.
    #[serde(default)]
    pub run_delay_mean_ns: Option<u64>,
}

/// What the generator reaches against the built-in null server, on the same CPUs and connections, just before the load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// Complete answers per second there.
    pub throughput_rps: f64,
    /// This load's throughput as a share of it.
    pub share: Option<f64>,
}

/// The JSON Schema of [`LoadRecord`], pretty-printed.
///
/// # Errors
/// None in practice: the schema is made from the types.
pub fn load_schema_json() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(LoadRecord))?;
    text.push('\n');
    Ok(text)
}
