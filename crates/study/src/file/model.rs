//! What a study says, as pure data. Names and what refers to them carry their place in the file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deadheat_record as record;
use toml::Spanned;

/// A whole study, checked: every reference in it leads somewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// The folder's name unless told.
    pub name: String,
    /// One line about it.
    pub title: Option<String>,
    /// Whether it was written down or typed.
    pub source: record::Source,
    /// Absolute; where `study.toml` lies, or where commands that were typed run.
    pub folder: PathBuf,
    /// How the data that contenders serve is made.
    pub dataset: Option<Dataset>,
    /// Programs that contenders need and that are not raced.
    pub services: Vec<Service>,
    /// Who is raced; at least one.
    pub contenders: Vec<Contender>,
    /// The contract; at least one.
    pub probes: Vec<Probe>,
    /// The loads; none stands for one closed load of 64 connections over all probes.
    pub scenarios: Vec<Scenario>,
    /// Whether the machine is as the one that was published: then an audit compares figures as they are, too.
    pub machine_matches: bool,
    /// Published numbers.
    pub claims: Vec<Claim>,
    /// External load generators that an audit measures.
    pub generators: Vec<Generator>,
}

/// A file that is made once and then served by all contenders.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Run in the study's folder; writes `{output}`.
    pub command: Spanned<String>,
    /// Files whose contents decide whether it must be made anew, absolute.
    pub inputs: Vec<PathBuf>,
    /// Its name in the work folder.
    pub output: Spanned<String>,
    /// Whether it is kept in memory instead.
    pub tmpfs: bool,
}

/// A program that contenders need and that is not raced.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Unique; letters, digits, `_` and `-`.
    pub name: Spanned<String>,
    /// A shell command.
    pub command: Spanned<String>,
    /// Absolute; where the command runs.
    pub folder: PathBuf,
    /// Added to the environment.
    pub env: BTreeMap<String, Spanned<String>>,
    /// Where it listens.
    pub listen: Spanned<record::Listen>,
    /// A shell command that succeeds once it is ready.
    pub ready: Option<Spanned<String>>,
    /// How it is ended.
    pub ending: record::Ending,
}

/// One implementation that is raced.
#[derive(Debug, Clone, PartialEq)]
pub struct Contender {
    /// Unique.
    pub name: Spanned<String>,
    /// A shell command.
    pub command: Spanned<String>,
    /// Absolute; where all its commands run.
    pub folder: PathBuf,
    /// Added to the environment.
    pub env: BTreeMap<String, Spanned<String>>,
    /// What must be there, or else it is left out.
    pub needs: Vec<Need>,
    /// Prints its version in the first line.
    pub version: Option<Spanned<String>>,
    /// Run once before each race.
    pub build: Option<Spanned<String>>,
    /// Commands that measure something inside its runtime and print it, by name.
    pub measures: BTreeMap<String, Spanned<String>>,
    /// Files and folders that it is deployed as, absolute.
    pub artefacts: Vec<PathBuf>,
    /// Whose garbage collector it has, where that is told.
    pub collector: Option<Collector>,
    /// Whether it cannot speak TLS, so that it is left out of scenarios over it.
    pub plain_http_only: bool,
    /// Names of services that must be up first.
    pub services: Vec<Spanned<String>>,
    /// Where it listens.
    pub listen: Spanned<record::Listen>,
}

/// A garbage collector, and how it is made to log.
#[derive(Debug, Clone, PartialEq)]
pub struct Collector {
    /// Whose it is.
    pub kind: record::CollectorKind,
    /// Added to the environment where it is to log.
    pub env: BTreeMap<String, Spanned<String>>,
}

/// Something that a contender cannot run without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What it is.
    pub kind: NeedKind,
    /// What to do where it is missing.
    pub remedy: String,
}

/// What a contender needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NeedKind {
    /// A file or folder, absolute.
    File(PathBuf),
    /// A program: a name that is looked up in PATH, or a path from the contender's folder.
    Program(String),
}

/// One request and what every contender must answer to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Where its name stands (or the path that stands for it).
    pub name: Spanned<String>,
    /// The whole contract, under the same name.
    pub contract: record::Probe,
}

/// One load.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Unique.
    pub name: Spanned<String>,
    /// Closed or open.
    pub shape: record::Experiment,
    /// What is requested; none stands for all probes under load, each with weight 1.
    pub requests: Option<Vec<Spanned<record::Share>>>,
    /// What each contender is held to.
    pub limits: record::Limits,
    /// What is compared, what matters most first; empty for what its shape suggests.
    pub metrics: Vec<record::Metric>,
    /// Values of one setting, each of which makes a scenario.
    pub sweep: Option<Sweep>,
    /// The ladder that it is a rung of.
    pub ladder: Option<record::Rung>,
    /// What its load has beside its shape.
    pub traffic: record::Traffic,
}

/// One setting of a scenario in several values.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// Which setting.
    pub axis: record::Axis,
    /// Its values, each once, as written; whole but for a quota.
    pub values: Vec<f64>,
}

/// A load generator of somebody else.
#[derive(Debug, Clone, PartialEq)]
pub struct Generator {
    /// Unique.
    pub name: Spanned<String>,
    /// A shell command; `{url}`, `{port}`, `{connections}` and `{duration}` (seconds) are replaced.
    pub command: Spanned<String>,
    /// Absolute; where the command runs.
    pub folder: PathBuf,
    /// What must be there, or else it is left out.
    pub needs: Vec<Need>,
    /// How its throughput is read from what it prints.
    pub reads: Reads,
    /// How many connections; none for as many as were published.
    pub connections: Option<u32>,
    /// How long one run lasts, in seconds.
    pub duration_s: f64,
    /// Bytes in the body of the null server's answers.
    pub body_bytes: u32,
    /// Whether the published figures were measured with such a one; else it only stands beside them.
    pub published: bool,
}

/// How a generator tells its throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Its last line is a JSON object with `throughput_rps`.
    Json,
    /// A line `Requests/sec: N`, as wrk and oha print it.
    Text,
}

/// A published number.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Where it was published.
    pub source: String,
    /// The contender that it is about; none where it is about none of them.
    pub contender: Option<Spanned<String>>,
    /// What the contender is compared with, for ratios.
    pub baseline: Option<Spanned<String>>,
    /// Which of several published runs it belongs to.
    pub row: Option<String>,
    /// What it measures: `throughput_rps`, `latency_p99_ms`; or a setting: `connections`, `duration_s`.
    pub metric: String,
    /// The number or range.
    pub figure: PublishedValue,
    /// Its unit, where the metric's name does not tell.
    pub unit: Option<String>,
    /// Where it can be tested here.
    pub scenario: Option<Spanned<String>>,
    /// Of a ratio of that scenario to another: the other.
    pub baseline_scenario: Option<Spanned<String>>,
    /// What the reader should know beside it.
    pub note: Option<String>,
}

/// What was published.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PublishedValue {
    /// One number, and half a unit of its last digit as it was written.
    Value(f64, f64),
    /// From, to.
    Range(f64, f64),
}

impl Study {
    /// Probes that scenarios may load contenders with.
    pub fn probes_under_load(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter().filter(|probe| probe.contract.under_load)
    }
}

impl Claim {
    /// The claim as records have it.
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
