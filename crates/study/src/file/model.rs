//! The content of a study as pure data. Names and references to them carry their place in the file.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use deadheat_record as record;
use toml::Spanned;

/// A whole, checked study: every reference in it resolves.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Default: the name of the folder.
    pub name: String,
    /// A title of one line.
    pub title: Option<String>,
    /// Whether the study comes from a file or from the command line.
    pub source: record::Source,
    /// The absolute path of the folder of `study.toml`. For commands of the command line: the folder in which they run.
    pub folder: PathBuf,
    /// How to create the data that contenders serve.
    pub dataset: Option<Dataset>,
    /// Programs that contenders need and that are not raced.
    pub services: Vec<Service>,
    /// The contenders; at least one.
    pub contenders: Vec<Contender>,
    /// The contract; at least one.
    pub probes: Vec<Probe>,
    /// The loads. If empty: one closed load of 64 connections over all probes.
    pub scenarios: Vec<Scenario>,
    /// Whether this machine is like the one of the published figures. If so, an audit also compares absolute figures.
    pub machine_matches: bool,
    /// Published numbers.
    pub claims: Vec<Claim>,
    /// External load generators that an audit measures.
    pub generators: Vec<Generator>,
    /// The machines of a race; contenders run on one of them at most. If empty: this machine.
    pub hosts: Vec<Host>,
}

/// A machine that takes part in a race.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// How ssh reaches it: `ssh://user@host:22`.
    pub ssh: Spanned<String>,
    /// What it does.
    pub runs: Runs,
    /// Where the load hosts reach the contenders on it. `None`: at the address of its name.
    pub address: Option<Ipv4Addr>,
    /// The cores of the contenders, such as `0,2-4`. `None`: as deadheat chooses.
    pub cpus: Option<String>,
}

/// What a machine does in a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// It runs all contenders and services.
    Contenders,
    /// It sends load.
    Load,
}

impl Runs {
    /// Its word in a study.
    pub fn word(self) -> &'static str {
        match self {
            Self::Contenders => "contenders",
            Self::Load => "load",
        }
    }
}

/// A file that is created once and that all contenders then serve.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Runs in the study's folder and writes `{output}`.
    pub command: Spanned<String>,
    /// Absolute paths of the input files. If their contents change, the dataset is created again.
    pub inputs: Vec<PathBuf>,
    /// The name of the file in the work folder.
    pub output: Spanned<String>,
    /// Whether to keep the file in memory instead.
    pub tmpfs: bool,
}

/// A program that contenders need and that is not raced.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Unique; letters, digits, `_` and `-`.
    pub name: Spanned<String>,
    /// A shell command.
    pub command: Spanned<String>,
    /// The absolute path of the folder in which the command runs.
    pub folder: PathBuf,
    /// Variables added to the environment.
    pub env: BTreeMap<String, Spanned<String>>,
    /// Where it listens.
    pub listen: Spanned<record::Listen>,
    /// A shell command that succeeds once it is ready.
    pub ready: Option<Spanned<String>>,
    /// A shell command that brings its data back to the same state before each epoch.
    pub reset: Option<Spanned<String>>,
    /// How to stop it.
    pub ending: record::Ending,
}

/// One implementation in the race.
#[derive(Debug, Clone, PartialEq)]
pub struct Contender {
    /// Unique.
    pub name: Spanned<String>,
    /// A shell command.
    pub command: Spanned<String>,
    /// The absolute path of the folder in which all its commands run.
    pub folder: PathBuf,
    /// Variables added to the environment.
    pub env: BTreeMap<String, Spanned<String>>,
    /// Requirements. If one is not met, the contender is skipped.
    pub needs: Vec<Need>,
    /// A shell command that prints the version in its first line.
    pub version: Option<Spanned<String>>,
    /// A shell command that runs once before each race.
    pub build: Option<Spanned<String>>,
    /// The image that `build` makes and `command` runs, if deadheat makes it from a `containerfile`.
    pub image: Option<BuiltImage>,
    /// Commands, by name, that measure something inside the contender's runtime and print it.
    pub measures: BTreeMap<String, Spanned<String>>,
    /// Absolute paths of the files and folders that make up a deployment.
    pub artefacts: Vec<PathBuf>,
    /// The garbage collector, if the study declares it.
    pub collector: Option<Collector>,
    /// Whether the contender cannot use TLS. If so, it is left out of scenarios over TLS.
    pub plain_http_only: bool,
    /// The revision that it was checked out from, in a race of two revisions. No study file says this.
    pub revision: Option<record::Revision>,
    /// Names of services that must be ready first.
    pub services: Vec<Spanned<String>>,
    /// Where it listens.
    pub listen: Spanned<record::Listen>,
}

/// An image that deadheat makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltImage {
    /// Its name, which is a part of its contender's commands.
    pub name: String,
    /// The absolute path of its Containerfile, which is a part of the build.
    pub file: PathBuf,
    /// The shell command that makes it.
    pub build: String,
}

/// A garbage collector, and how to make it write its log.
#[derive(Debug, Clone, PartialEq)]
pub struct Collector {
    /// Which collector.
    pub kind: record::CollectorKind,
    /// Variables added to the environment to turn the log on.
    pub env: BTreeMap<String, Spanned<String>>,
}

/// A requirement of a contender or a generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What it is.
    pub kind: NeedKind,
    /// What to do if it is missing.
    pub remedy: String,
}

/// A kind of requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NeedKind {
    /// A file or folder, as an absolute path.
    File(PathBuf),
    /// A program: a name to look up in PATH, or a path relative to the contender's folder.
    Program(String),
}

/// One request and the answer that every contender must give.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// The name (or the path that is used as the name) with its place in the file.
    pub name: Spanned<String>,
    /// The whole contract, under the same name.
    pub contract: record::Probe,
    /// Whether it has `requests_from`. If the file cannot be used, the contract has no log.
    pub from_log: bool,
    /// Whether it has `values_from`. If the file cannot be used, the contract has no file of values.
    pub from_rows: bool,
    /// What of the recorded requests is not sent, in words; none if everything is.
    pub left_out: Option<String>,
}

/// The recorded requests of a probe, and what follows from them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RecordedProbe {
    /// The method of the first request.
    pub(super) method: String,
    /// The path of the first request.
    pub(super) path: String,
    /// The statuses that answers may have, if the probe does not say.
    pub(super) status: record::StatusRule,
    /// What is not sent, in words; none if everything is.
    pub(super) left_out: Option<String>,
    /// The file.
    pub(super) log: record::RequestLog,
}

/// One load.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Unique.
    pub name: Spanned<String>,
    /// Closed or open.
    pub shape: record::Experiment,
    /// The requests. `None`: all probes under load, each with weight 1.
    pub requests: Option<Vec<Spanned<record::Share>>>,
    /// Limits that apply to each contender.
    pub limits: record::Limits,
    /// The metrics to compare, the most important first. If empty: the default metrics of the shape.
    pub metrics: Vec<record::Metric>,
    /// The network between load and contenders.
    pub link: Option<record::Link>,
    /// Several values of one setting. Each makes a scenario.
    pub sweep: Option<Sweep>,
    /// The ladder to which this scenario belongs, and its rung.
    pub ladder: Option<record::Rung>,
    /// Further settings of the load.
    pub traffic: record::Traffic,
}

/// Several values of one setting of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// Which setting.
    pub axis: record::Axis,
    /// The values as written, without duplicates. They are whole numbers except for a quota.
    pub values: Vec<f64>,
}

/// An external load generator.
#[derive(Debug, Clone, PartialEq)]
pub struct Generator {
    /// Unique.
    pub name: Spanned<String>,
    /// A shell command. `{url}`, `{port}`, `{connections}` and `{duration}` (seconds) are replaced.
    pub command: Spanned<String>,
    /// The absolute path of the folder in which the command runs.
    pub folder: PathBuf,
    /// Requirements. If one is not met, the generator is skipped.
    pub needs: Vec<Need>,
    /// How to find the throughput in its output.
    pub reads: Reads,
    /// The number of connections. `None`: as many as were published.
    pub connections: Option<u32>,
    /// The duration of one run, in seconds.
    pub duration_s: f64,
    /// The size of the body of the null server's answers, in bytes.
    pub body_bytes: u32,
    /// Whether the published figures were measured with this kind of generator. If not, it serves only for comparison.
    pub published: bool,
}

/// How a generator reports its throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// The last line is a JSON object with `throughput_rps`.
    Json,
    /// A line `Requests/sec: N`, as wrk and oha print it.
    Text,
}

/// A published number.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Where it was published.
    pub source: String,
    /// The contender of the claim. `None` if the claim concerns no contender of this study.
    pub contender: Option<Spanned<String>>,
    /// The baseline contender, for ratios.
    pub baseline: Option<Spanned<String>>,
    /// The published run to which the claim belongs, if there are several.
    pub row: Option<String>,
    /// The metric, such as `throughput_rps` or `latency_p99_ms`; or a setting: `connections`, `duration_s`.
    pub metric: String,
    /// The number or range.
    pub figure: PublishedValue,
    /// The unit, if the metric's name does not contain it.
    pub unit: Option<String>,
    /// The scenario that can test the claim here.
    pub scenario: Option<Spanned<String>>,
    /// For a ratio between two scenarios: the baseline scenario.
    pub baseline_scenario: Option<Spanned<String>>,
    /// A note for the reader.
    pub note: Option<String>,
}

/// A published value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PublishedValue {
    /// One number, and half a unit of its last written digit.
    Value(f64, f64),
    /// Lower and upper end.
    Range(f64, f64),
}

impl Study {
    /// The contender of this name.
    pub fn contender(&self, name: &str) -> Option<&Contender> {
        self.contenders.iter().find(|one| one.name.get_ref() == name)
    }

    /// The probes that scenarios may use for load.
    pub fn probes_under_load(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter().filter(|probe| probe.contract.under_load)
    }
}

impl Claim {
    /// The claim in the form of a record.
    pub fn published(&self) -> record::Claim {
        let name = |name: &Option<Spanned<String>>| name.as_ref().map(|name| name.get_ref().clone());
        let (value, half_digit, low, high) = match self.figure {
            PublishedValue::Value(value, half) => (Some(value), half, None, None),
            PublishedValue::Range(low, high) => (None, 0.0, Some(low), Some(high)),
        };
        record::Claim {
            source: self.source.clone(),
            contender: name(&self.contender),
            baseline: name(&self.baseline),
            row: self.row.clone(),
            metric: self.metric.clone(),
            value,
            half_digit,
            low,
            high,
            unit: self.unit.clone(),
            scenario: name(&self.scenario),
            baseline_scenario: name(&self.baseline_scenario),
            note: self.note.clone(),
        }
    }
}
