//! What a race will do, resolved from flags and study, with nothing left to look up. A record contains the whole plan, so that a race can be resumed
//! from the record alone.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Capture, Claim, Collector, Experiment, Link, Metric, Objective, Pinning, RequestLog, Rung, Slices,
    SweepPoint, ValuePlace, ValuesFile, Why,
};

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
    /// The study's folder for generated files: dataset, sockets, generated configuration.
    pub work: PathBuf,
    /// File of the dataset, if the study has one. Contenders get it as `DATASET` and `{dataset}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<PathBuf>,
    /// Services: programs that contenders need and that are not raced.
    #[serde(default)]
    pub services: Vec<Service>,
    /// The contenders, in the order given.
    pub contenders: Vec<Contender>,
    /// Contenders that were skipped, with the reason and the remedy.
    #[serde(default)]
    pub skipped: Vec<(String, String)>,
    /// The contract: requests, and what every contender must answer to them.
    pub probes: Vec<Probe>,
    /// The scenarios, raced one after the other.
    pub scenarios: Vec<ScenarioPlan>,
    /// How to measure and decide.
    pub method: Method,
    /// How the cores are divided between contenders and load generator.
    pub pinning: Pinning,
    /// Published numbers that the study lists.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Share of requests that an edge cache answers, 0 to 1, if it was given instead of the study's value. It is used by the model of the latency
    /// that users see behind the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_hit_rate: Option<f64>,
    /// Command-line options that override the study. Absent in older records, and if commands were raced: then the plan has one scenario, which
    /// contains them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub typed: Typed,
    /// The machines from which the load comes; absent if it comes from the machine on which the contenders run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_from: Option<LoadFrom>,
    /// The machine on which the contenders run; absent if it is the one on which the command was typed. All paths in the plan are on that machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_host: Option<ServerHost>,
}

/// The machine on which the contenders run, and what was sent there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerHost {
    /// The machine, as the command line names it: `ssh://user@host`.
    pub host: String,
    /// Name of the machine on which the command was typed.
    pub control: String,
    /// The folder on that machine whose content was sent.
    pub sent: PathBuf,
    /// Whether files that git ignores were sent as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sent_ignored: bool,
    /// Path of the study in that folder; absent if commands were raced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<PathBuf>,
    /// The command that ran once for each contender before the race, if commands were raced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
}

/// Machines from which the load comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFrom {
    /// The machines, as the command line names them: `ssh://user@host`. At least one.
    pub hosts: Vec<String>,
    /// The address of the contenders' machine at which these machines reach it. Contenders get it as `HOST`.
    pub server_address: Ipv4Addr,
}

impl Plan {
    /// Cores of the load generator on the machine on which the contenders run. They are those of `pinning`, which are on the load hosts if there are any.
    pub fn load_cpus_here(&self) -> &[usize] {
        if self.load_from.is_some() { &[] } else { &self.pinning.load_cpus }
    }

    /// The name of the plan if commands were raced. With the process id, it also ends the name of their work folder.
    pub const AD_HOC: &str = "ad-hoc";

    /// The index of the contender of that name.
    pub fn index_of(&self, contender: &str) -> Option<usize> {
        self.contenders.iter().position(|one| one.name == contender)
    }

    /// The contender that is the baseline once more, if there is one.
    pub fn control(&self) -> Option<&Contender> {
        self.contenders.iter().find(|one| one.control)
    }

    /// Whether commands were raced instead of a study. A study can have the same name, but the name of its work folder differs.
    pub fn is_ad_hoc(&self) -> bool {
        let folder = self.work.file_name().unwrap_or_default().to_string_lossy();
        let has_number = folder.rsplit_once('-').is_some_and(|(name, _)| name.ends_with(Self::AD_HOC));
        self.study == Self::AD_HOC && has_number
    }
}

/// Command-line options of load and method that override the study's scenarios. The scenarios already include them. They are stored so that the same
/// command can be repeated. An option is absent if it was not given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Typed {
    /// Number of connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Objective of a peak search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
    /// Metrics to compare, most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Length of a slice, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// Time for which each contender is measured in an epoch, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_ns: Option<u64>,
}

/// Where a contender or service listens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Listen {
    /// A free TCP port of the loopback interface, chosen again at each start: `PORT` and `{port}`.
    #[default]
    FreePort,
    /// A fixed TCP port of the loopback interface, for a contender whose port cannot be configured.
    Port(u16),
    /// A unix socket in the work folder: `SOCKET` and `{socket}`. deadheat chooses its name.
    Socket,
}

/// One implementation that is raced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contender {
    /// Unique within the plan.
    pub name: String,
    /// A shell command. deadheat replaces `{port}`, `{socket}`, `{dataset}`, `{work}` and `{study}` at each start, and in a race over TLS also
    /// `{cert}` and `{key}`.
    pub command: String,
    /// The folder in which the command runs.
    pub folder: PathBuf,
    /// Variables that are added to the environment, with the same replacements.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it listens.
    pub listen: Listen,
    /// Names of services that must be up before it starts.
    #[serde(default)]
    pub services: Vec<String>,
    /// First line of the output of its version command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Commands, by name, that measure something inside the contender's runtime and print one JSON line with `value` and `unit`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, String>,
    /// Total size of the files that make up its deployment, in bytes, if the study names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artefact_bytes: Option<u64>,
    /// Its garbage collector, if the study declares it. A diagnostic pass logs its pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collector: Option<Collector>,
    /// The container that its command runs; absent if it runs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// Its build, if it runs again before each epoch, with another seed for the layout of its code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<Rebuild>,
    /// Whether it speaks plain HTTP only. If so, it does not race in scenarios over TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_http_only: bool,
    /// The revision from which it was built, in a race of two revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Whether it is the control: the baseline once more, which shows how much identical code differs in this race.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control: bool,
}

/// A build that runs again before each epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rebuild {
    /// The shell command. deadheat replaces `{seed}`, and `{dataset}`, `{work}` and `{study}` as in the contender's command.
    pub command: String,
    /// The longest time that it may take, in nanoseconds.
    pub limit_ns: u64,
}

impl Rebuild {
    /// Default of `limit_ns`.
    pub const LIMIT_NS: u64 = 900_000_000_000;
}

/// A container as a contender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Container {
    /// The name of the image.
    pub image: String,
    /// The digest of the image's configuration, which names all of its layers.
    pub id: String,
    /// The engine with its version.
    pub engine: String,
    /// The program that the engine starts containers with, and its version; absent if the engine does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
}

/// A revision of a git repository. The race checks it out into a new folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// The revision as it was given, such as `main` or `HEAD~1`.
    pub name: String,
    /// The full hash of its commit. With uncommitted changes: of a commit that deadheat made of them, which is in no branch.
    pub commit: String,
    /// The first line of the commit's message.
    pub subject: String,
    /// Whether it is the working tree with changes that were not committed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncommitted: bool,
    /// The top folder of the repository.
    pub repository: PathBuf,
    /// The folder that deadheat made for this revision. The contender's folder is below its folder `tree`.
    pub checkout: PathBuf,
    /// The study's folder in the checkout: `{study}`.
    pub folder: PathBuf,
    /// The contender's name in the study.
    pub contender: String,
    /// The command that built it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
}

impl Revision {
    /// The contender's own folder for generated files: `{work}`.
    pub fn work(&self) -> PathBuf {
        self.checkout.join("work")
    }
}

/// A program that contenders need and that is not raced, such as a database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Service {
    /// Name, unique within the plan. Contenders get its port as `{NAME.port}` and `NAME_PORT`, and a socket likewise.
    pub name: String,
    /// A shell command with the same replacements as a contender's.
    pub command: String,
    /// The folder in which the command runs.
    pub folder: PathBuf,
    /// Variables that are added to the environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it listens. It is ready when it accepts a connection there.
    pub listen: Listen,
    /// A shell command that succeeds when the service is ready. deadheat runs it as soon as the service accepts a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// A shell command that runs before each epoch, while the service is up and no contender is, and brings its data back to the same state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
    /// How deadheat stops it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ending: Ending,
}

/// How deadheat stops a service: it requests the stop, and kills the service if it still runs after the grace period.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    /// A shell command that requests the stop; without one, deadheat sends a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The signal: `TERM`, `INT`, `QUIT`, `HUP`, `USR1` or `USR2`; default: `TERM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Grace period in nanoseconds; default: that of contenders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ns: Option<u64>,
}

/// The statuses that an answer may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusRule {
    /// Any from 200 to 299.
    Success,
    /// Exactly one of these.
    OneOf(Vec<u16>),
    /// Any within one of these ranges, both ends included.
    Within(Vec<(u16, u16)>),
}

impl StatusRule {
    /// The accepted statuses if a contract names none. Redirects are not included, because their body is not the requested one.
    pub const SUCCESS: RangeInclusive<u16> = 200..=299;

    /// Whether the rule allows `status`.
    pub fn allows(&self, status: u16) -> bool {
        match self {
            Self::Success => Self::SUCCESS.contains(&status),
            Self::OneOf(list) => list.contains(&status),
            Self::Within(ranges) => ranges.iter().any(|(from, to)| (*from..=*to).contains(&status)),
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
    /// All request targets if the probe stands for several; `path` is the first of them. Empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The recorded requests that the probe stands for, if there are any. Then `method` and `path` are those of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<RequestLog>,
    /// The file whose rows fill in the request, if there is one: then the probe stands for one request per row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<ValuesFile>,
    /// The values that deadheat takes from each contender's answer, by name. In later probes, `{name}` stands for the value. The values
    /// themselves are not in the record.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capture: BTreeMap<String, Capture>,
    /// Request headers.
    #[serde(default)]
    pub request_headers: BTreeMap<String, String>,
    /// Request body.
    #[serde(default)]
    pub request_body: String,
    /// The statuses that the contract allows.
    pub status: StatusRule,
    /// Answer headers that the contract fixes: name in lower case, and exact value.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Answer headers that must be the same for all contenders, in lower case.
    #[serde(default)]
    pub agree_headers: Vec<String>,
    /// Rules for the answer's body.
    pub body: BodyRule,
    /// Whether scenarios may use it as load.
    pub under_load: bool,
}

impl Probe {
    /// The headers in which contenders must agree unless a study says otherwise, in lower case.
    pub const AGREE_HEADERS: &[&str] = &["content-type"];

    /// Where placeholders in the body of the request stand.
    pub fn body_place(&self) -> ValuePlace {
        let mut headers = self.request_headers.iter();
        let kind = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        ValuePlace::of_body(kind.map(|(_, value)| value.as_str()), &self.request_body)
    }

    /// The headers of [`Self::AGREE_HEADERS`] in which contenders need not agree here.
    pub fn headers_that_may_differ(&self) -> impl Iterator<Item = &'static str> {
        Self::AGREE_HEADERS.iter().copied().filter(|name| !self.agree_headers.iter().any(|one| one == name))
    }
}

/// Rules for the body of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BodyRule {
    /// Values that the contract requires, by JSON path.
    #[serde(default)]
    pub json: Vec<JsonRule>,
    /// JSON paths whose value may vary, each with the pattern that it must match.
    #[serde(default)]
    pub volatile: Vec<Volatile>,
    /// The whole body that the contract requires. It is compared by structure if it is JSON, otherwise by bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// Whether contenders' bodies are compared with each other.
    pub agree: bool,
    /// JSON paths that no comparison of answers looks at; `$` stands for the whole body, whether it is JSON or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// A value that the contract requires at a JSON path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JsonRule {
    /// JSON path, such as `$.items[0].id`; `[*]` stands for every element.
    pub path: String,
    /// The value.
    pub value: serde_json::Value,
}

/// A JSON path whose value may vary from answer to answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Volatile {
    /// JSON path, such as `$.token`; `[*]` stands for every element.
    pub path: String,
    /// A regular expression that the value's text must match.
    pub pattern: String,
    /// A regular expression that the value's text must not match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<String>,
    /// Whether contenders must give the same value when deadheat asks them at the same moment.
    #[serde(default)]
    pub agree: bool,
    /// Whether each contender has a value that is constant in its answers but may differ from that of other contenders.
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

/// One scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioPlan {
    /// Unique within the plan.
    pub name: String,
    /// The experiment: closed or open load, peak search, starts, or measure.
    pub shape: Experiment,
    /// The requests, by probe.
    pub requests: Vec<Share>,
    /// Resource limits of each contender.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// Metrics to compare, most important first. Empty in older records, which use the method's metric.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// How its epochs are divided into slices; default: the method's values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
    /// The sweep that contains the scenario as a point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepPoint>,
    /// The ladder that contains the scenario as a rung.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Rung>,
    /// Further properties of its load.
    #[serde(default, skip_serializing_if = "is_default")]
    pub traffic: Traffic,
    /// The network between load and contenders; absent: that of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

/// Further properties of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Exponent of a Zipf distribution: the popularity of a request is its position in the list (from 1) to the power of minus this. Without it,
    /// requests are sent in turn, or by weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zipf: Option<f64>,
    /// For an open load: the rate over the time of each slice, in the syntax of `deadheat load --rate`. The rate in `shape` is its mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<String>,
    /// Whether there is no warm-up, so that a contender's first seconds under load are measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cold: bool,
    /// The order of recorded requests. Default: as they were recorded, one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Whether contenders are accessed over TLS, also in scenarios without a load. deadheat makes their certificate for the race.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
}

/// How recorded requests are sent again, other than one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replay {
    /// In a random order, each as often as it was recorded.
    Random,
    /// When they were recorded: an open load, whose mean rate is in `shape`.
    Timing {
        /// How many times as fast as recorded.
        speed: f64,
    },
}

impl Traffic {
    /// How many times as fast as recorded the requests are due; none if they have no recorded timing.
    pub fn speed(&self) -> Option<f64> {
        match self.replay {
            Some(Replay::Timing { speed }) => Some(speed),
            Some(Replay::Random) | None => None,
        }
    }
}

/// Resource limits that a scenario sets for each contender with control groups. Absent values are not limited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// CPU time that the contender's process tree may use, in cores: a quota over periods of 10 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// The requested number of cores, if contenders have fewer on this machine and `cpus` was scaled down. The scenario then does not predict results
    /// for the requested number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_cpus: Option<f64>,
    /// Cores that the contender may run on, instead of those of all contenders; empty for those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpuset: Vec<usize>,
    /// Memory that the contender's process tree may use, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// Whether control groups are needed. Assigning cores alone works without them.
    pub fn need_groups(&self) -> bool {
        self.cpus.is_some() || self.memory_bytes.is_some()
    }

    /// CPU time that a contender may use, in cores, if there are `of_all` cores for all contenders; none if unknown.
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
    /// Seed of every random order.
    pub seed: u64,
    /// The metric to compare if a scenario names none.
    pub metric: Metric,
    /// The contender that the others are compared with.
    pub baseline: String,
    /// Whether every pair is compared, or only each contender with the baseline.
    pub all_pairs: bool,
    /// Two-sided error rate of each scenario.
    pub alpha: f64,
    /// Ratios this close to 1 count as equivalent, for example 0.03.
    pub margin: f64,
    /// Numbers of epochs after which deadheat checks whether the race is decided. The last one is the maximum.
    pub looks: Vec<usize>,
    /// Length of a slice in nanoseconds, if a scenario does not set it.
    pub slice_ns: u64,
    /// Length of the first part of each slice that is excluded, in nanoseconds.
    pub settle_ns: u64,
    /// Rounds per epoch, an even number, if a scenario does not set it.
    pub rounds: u32,
    /// Length of the load on each contender in the pilot, in nanoseconds; 0 if the warm-up was given, so that no pilot runs.
    pub pilot_ns: u64,
    /// Shortest and longest warm-up, in nanoseconds.
    pub warmup_ns: (u64, u64),
    /// Minimum number of requests that each warm-up answers.
    pub warmup_requests: u64,
    /// Length of an additional load on each contender after all warm-ups, in nanoseconds, because it was frozen during the warm-ups of the others. It
    /// is never longer than the warm-up. 0: there is none, as in records of versions without this step.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wake_ns: u64,
    /// Longest time that an idle processor of the contenders may take to wake up, in microseconds. 0: it never sleeps, because a thread at idle
    /// priority runs on it (in records from before 2026-11-24: `/dev/cpu_dma_latency` was set to 0 for all processors). Absent: not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_latency_us: Option<u32>,
    /// Time budget in nanoseconds. deadheat starts no epoch that would end after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// Time over which the epochs of each scenario are spread evenly, up to the last one, in nanoseconds; 0: they follow each other.
    #[serde(default, skip_serializing_if = "is_default")]
    pub over_ns: u64,
    /// Length of the load in the diagnostic pass after a scenario, in nanoseconds, for each contender with a declared garbage collector; 0 for no
    /// such pass.
    #[serde(default, skip_serializing_if = "is_default")]
    pub collectors_ns: u64,
    /// When a pass samples where contenders spend CPU time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub why: Why,
    /// Time within which a contender must answer its first probe, in nanoseconds.
    pub ready_ns: u64,
    /// Timeout of a request, in nanoseconds.
    pub timeout_ns: u64,
}

impl Method {
    /// Default of `ready_ns`.
    pub const READY_NS: u64 = 30_000_000_000;
    /// Default of `timeout_ns`.
    pub const TIMEOUT_NS: u64 = 10_000_000_000;
    /// The largest number of epochs that can be requested.
    pub const MOST_EPOCHS: usize = 200;
}

/// What is raced: a study or commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A folder with a `study.toml`.
    Study(PathBuf),
    /// Commands on the command line.
    AdHoc,
}

/// Whether a value is the default of its type, so that it is not written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
