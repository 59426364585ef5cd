//! What will be done: resolved from flags and study, with nothing left to look up. A record holds it whole, so that
//! a race can be resumed from the record alone.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Claim, Collector, Experiment, Metric, Objective, Pinning, Rung, Slices, SweepPoint};

/// Everything that a race does, decided before it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The study's name; `ad-hoc` for commands given on the command line.
    pub study: String,
    /// One line about the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The folder that holds `study.toml`; the current folder for commands given on the command line.
    pub folder: PathBuf,
    /// The study's own folder for what it makes: dataset, sockets, generated configuration.
    pub work: PathBuf,
    /// The dataset's file, where the study has one; handed to contenders as `DATASET` and `{dataset}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<PathBuf>,
    /// Programs that contenders need and that are not raced.
    #[serde(default)]
    pub services: Vec<Service>,
    /// Who is raced, in the order given.
    pub contenders: Vec<Contender>,
    /// Contenders that were left out, with the reason and the remedy.
    #[serde(default)]
    pub skipped: Vec<(String, String)>,
    /// The contract: requests and what every contender must answer to them.
    pub probes: Vec<Probe>,
    /// The loads, raced one after the other.
    pub scenarios: Vec<ScenarioPlan>,
    /// How to measure and decide.
    pub method: Method,
    /// Which cores belong to whom.
    pub pinning: Pinning,
    /// Published numbers that the study lists.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Share of the requests that an edge cache answers, instead of the study's: for the model of what users see behind one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_hit_rate: Option<f64>,
    /// What was typed beside the study. Absent in older records, and where commands were raced: their one scenario says it.
    #[serde(default, skip_serializing_if = "Typed::is_nothing")]
    pub typed: Typed,
}

impl Plan {
    /// The name of the plan where commands were raced. With the number of the process, it also ends the name of their work folder.
    pub const AD_HOC: &str = "ad-hoc";

    /// Whether commands were raced and not a study. A study can have the same name, but its work folder has another.
    pub fn is_ad_hoc(&self) -> bool {
        let folder = self.work.file_name().unwrap_or_default().to_string_lossy();
        let has_number = folder.rsplit_once('-').is_some_and(|(name, _)| name.ends_with(Self::AD_HOC));
        self.study == Self::AD_HOC && has_number
    }
}

/// Options of load and method that were typed instead of what a study's scenarios say. The scenarios have them already: they are
/// kept so that the same can be typed again. What is absent was not typed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Typed {
    /// Number of connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// What must hold at a peak that is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
    /// What is compared, what matters most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Length of a slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// How long each contender is measured in an epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_ns: Option<u64>,
}

impl Typed {
    /// Whether nothing was typed.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a contender or service listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Listen {
    /// A free TCP port of the loopback, chosen anew at every start: `PORT` and `{port}`.
    FreePort,
    /// A TCP port of the loopback that the contender cannot be told.
    Port(u16),
    /// A unix socket in the work folder, chosen by the runner: `SOCKET` and `{socket}`.
    Socket,
}

/// One implementation that is raced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contender {
    /// Unique within the plan.
    pub name: String,
    /// A shell command; `{port}`, `{socket}`, `{dataset}`, `{work}` and `{study}` are replaced at each start, in a race over TLS
    /// also `{cert}` and `{key}`.
    pub command: String,
    /// The folder in which the command runs.
    pub folder: PathBuf,
    /// Added to the environment, with the same replacements.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it listens.
    pub listen: Listen,
    /// Names of services that must be up before it starts.
    #[serde(default)]
    pub services: Vec<String>,
    /// What its version command printed, first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Commands that measure something inside its runtime and print one JSON line with `value` and `unit`, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, String>,
    /// Size of the files that it is deployed as, in bytes, where the study names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artefact_bytes: Option<u64>,
    /// Its garbage collector, where the study names it: what a diagnostic pass logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collector: Option<Collector>,
    /// Whether it speaks plain HTTP only, so that it is not raced in scenarios over TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_http_only: bool,
}

/// A program that contenders need and that is not raced, such as a database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Service {
    /// Unique within the plan. Its port reaches contenders as `{NAME.port}` and `NAME_PORT`, a socket likewise.
    pub name: String,
    /// A shell command with the same replacements as a contender's.
    pub command: String,
    /// The folder in which the command runs.
    pub folder: PathBuf,
    /// Added to the environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it listens; it is ready when it accepts a connection there.
    pub listen: Listen,
    /// A shell command that succeeds once it is ready; asked as soon as it accepts a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// How it is ended.
    #[serde(default, skip_serializing_if = "Ending::is_usual")]
    pub ending: Ending,
}

/// How a service is ended: it is asked, and killed if it still runs when its grace is over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    /// A shell command that asks it to end; without one, a signal does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The signal: `TERM` (also where none is named), `INT`, `QUIT`, `HUP`, `USR1` or `USR2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// How long it may take; as long as contenders may where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ns: Option<u64>,
}

impl Ending {
    /// Whether it is that of contenders.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// Which statuses an answer may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusRule {
    /// Any from 200 to 299.
    Success,
    /// Exactly one of these.
    OneOf(Vec<u16>),
}

impl StatusRule {
    /// The statuses that are right where a contract names none. A redirect is not among them: its body is not what was asked for.
    pub const SUCCESS: RangeInclusive<u16> = 200..=299;

    /// Whether the rule allows `status`.
    pub fn allows(&self, status: u16) -> bool {
        match self {
            Self::Success => Self::SUCCESS.contains(&status),
            Self::OneOf(list) => list.contains(&status),
        }
    }
}

/// One request and what every contender must answer to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Unique within the plan.
    pub name: String,
    /// Request method.
    pub method: String,
    /// Request target: path and query.
    pub path: String,
    /// All request targets where the probe stands for many; `path` is the first of them. Empty where it is the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Request headers.
    #[serde(default)]
    pub request_headers: BTreeMap<String, String>,
    /// Request body.
    #[serde(default)]
    pub request_body: String,
    /// Which statuses the contract allows.
    pub status: StatusRule,
    /// Answer headers that the contract fixes: lower-case name and exact value.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Answer headers that must agree between contenders, lower-case.
    #[serde(default)]
    pub agree_headers: Vec<String>,
    /// Rules for the answer's body.
    pub body: BodyRule,
    /// Whether scenarios may load contenders with it.
    pub under_load: bool,
}

/// How bodies are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BodyRule {
    /// Values that the contract demands, by JSON path.
    #[serde(default)]
    pub json: Vec<JsonRule>,
    /// JSON paths whose value may differ, each with the pattern that it must match.
    #[serde(default)]
    pub volatile: Vec<Volatile>,
    /// The whole body that the contract demands, compared by structure where it is JSON, else by bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// Whether contenders' bodies are compared with each other.
    pub agree: bool,
}

/// A value that the contract demands at a JSON path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JsonRule {
    /// Such as `$.items[0].id`; `[*]` stands for every element.
    pub path: String,
    /// The value.
    pub value: serde_json::Value,
}

/// A JSON path whose value may differ from answer to answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Volatile {
    /// Such as `$.token`; `[*]` stands for every element.
    pub path: String,
    /// A regular expression that the value's text must match.
    pub pattern: String,
    /// A regular expression that the value's text must not match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<String>,
    /// Whether contenders that are asked at the same moment must give the same value.
    #[serde(default)]
    pub agree: bool,
    /// Whether each contender has one value of its own, which it gives in every answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// One probe's share of a scenario's requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// The probe's name.
    pub probe: String,
    /// Its weight among the scenario's requests.
    pub weight: u32,
}

/// One load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioPlan {
    /// Unique within the plan.
    pub name: String,
    /// Closed or open.
    pub shape: Experiment,
    /// What is requested.
    pub requests: Vec<Share>,
    /// What each contender is held to.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// What is compared, what matters most first. Empty in older records, where it is the method's metric.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// Slices of its own; without them they are the method's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
    /// The sweep that it is a point of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepPoint>,
    /// The ladder that it is a rung of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Rung>,
    /// What its load has beside its shape.
    #[serde(default, skip_serializing_if = "Traffic::is_plain")]
    pub traffic: Traffic,
}

/// What a load has beside its shape.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// The requests are drawn with a popularity that falls with their place in the list, from 1, to the power of minus this;
    /// without it each comes in turn, or by weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zipf: Option<f64>,
    /// Of an open load: the rate over the time of each slice, as `deadheat load --rate` writes it. The shape's rate is its mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<String>,
    /// Nothing is warmed up: what is measured are a contender's first seconds under load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cold: bool,
    /// Contenders are asked over TLS, in a scenario without a load too. Their certificate is made for the race.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
}

impl Traffic {
    /// Whether there is nothing to be said of it.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What a scenario holds each of its contenders to, by control groups: what it does not name is not limited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// CPU time that its whole tree may use, in cores: a quota over periods of 10 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// The cores that it asks for, where contenders have fewer here and the quota was scaled down to those: the scenario says nothing
    /// about so many cores then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_cpus: Option<f64>,
    /// Cores that it may run on, instead of those of all contenders; empty for those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpuset: Vec<usize>,
    /// Memory that its whole tree may use, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether control groups are needed: cores alone can be given without any.
    pub fn need_groups(&self) -> bool {
        self.cpus.is_some() || self.memory_bytes.is_some()
    }

    /// How many cores' CPU time a contender may use that otherwise has so many cores; none where it is not known.
    pub fn cores(&self, of_all: usize) -> Option<f64> {
        let cores = if self.cpuset.is_empty() { of_all } else { self.cpuset.len() };
        let cores = (cores > 0).then_some(cores as f64);
        match (cores, self.cpus) {
            (Some(cores), Some(quota)) => Some(cores.min(quota)),
            (cores, quota) => quota.or(cores),
        }
    }
}

/// How to measure and decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Method {
    /// `quick` or `full`.
    pub profile: String,
    /// Every random order comes from it.
    pub seed: u64,
    /// What is compared where a scenario does not say it.
    pub metric: Metric,
    /// The contender that the others are compared with.
    pub baseline: String,
    /// Whether every pair is compared, or each contender with the baseline only.
    pub all_pairs: bool,
    /// Two-sided error rate of each scenario.
    pub alpha: f64,
    /// Ratios within 1 +- margin count as equivalent, for example 0.03.
    pub margin: f64,
    /// Numbers of epochs after which it is asked whether the race is decided; the last is the maximum.
    pub looks: Vec<usize>,
    /// Length of a slice where a scenario does not say it.
    pub slice_ns: u64,
    /// The first part of each slice that is left out.
    pub settle_ns: u64,
    /// Rounds per epoch where a scenario does not say it, even.
    pub rounds: u32,
    /// How long each contender is loaded in the pilot; 0 when the warm-up was chosen and no pilot runs.
    pub pilot_ns: u64,
    /// Shortest and longest warm-up.
    pub warmup_ns: (u64, u64),
    /// Every warm-up answers at least so many requests.
    pub warmup_requests: u64,
    /// How long each contender is loaded once more after the warm-ups of all, since it was frozen meanwhile; 0 for not at all, as in
    /// records from before it was done. Never longer than the warm-up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wake_ns: u64,
    /// The longest time that an idle processor of the contenders may take to wake up, in microseconds. 0: it never sleeps, because a
    /// thread at idle priority runs on it (in records from before 2026-11-24: `/dev/cpu_dma_latency` was held with 0 for all processors).
    /// Null: it sleeps as it likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_latency_us: Option<u32>,
    /// No epoch starts that would end after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// How long each contender whose collector is known is loaded in a diagnostic pass after a scenario; 0 for no such pass.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub collectors_ns: u64,
    /// A contender must answer its first probe within this time.
    pub ready_ns: u64,
    /// A request unanswered for so long is a timeout.
    pub timeout_ns: u64,
}

impl Method {
    /// `ready_ns` where none was typed.
    pub const READY_NS: u64 = 30_000_000_000;
    /// `timeout_ns` where none was typed.
    pub const TIMEOUT_NS: u64 = 10_000_000_000;
    /// The most epochs that can be asked for.
    pub const MOST_EPOCHS: usize = 200;
}

/// A study's requests, or one that was typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A folder with a `study.toml`.
    Study(PathBuf),
    /// Commands on the command line.
    AdHoc,
}

/// Whether there is nothing to be written.
fn is_zero(ns: &u64) -> bool {
    *ns == 0
}
