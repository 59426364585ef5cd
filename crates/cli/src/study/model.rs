//! What a study says, as pure data. Names and what refers to them carry their place in the file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deadheat_record as record;
use toml::Spanned;

/// A whole study, checked: every reference in it leads somewhere.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Study {
    /// The folder's name unless told.
    pub(crate) name: String,
    /// One line about it.
    pub(crate) title: Option<String>,
    /// Whether it was written down or typed.
    pub(crate) source: record::Source,
    /// Absolute; where `study.toml` lies, or where commands that were typed run.
    pub(crate) folder: PathBuf,
    /// How the data that contenders serve is made.
    pub(crate) dataset: Option<Dataset>,
    /// Programs that contenders need and that are not raced.
    pub(crate) services: Vec<Service>,
    /// Who is raced; at least one.
    pub(crate) contenders: Vec<Contender>,
    /// The contract; at least one.
    pub(crate) probes: Vec<Probe>,
    /// The loads; none stands for one closed load of 64 connections over all probes.
    pub(crate) scenarios: Vec<Scenario>,
    /// Whether the machine is as the one that was published: then an audit compares figures as they are, too.
    pub(crate) machine_matches: bool,
    /// Published numbers.
    pub(crate) claims: Vec<Claim>,
    /// External load generators that an audit measures.
    pub(crate) generators: Vec<Generator>,
}

/// A file that is made once and then served by all contenders.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dataset {
    /// Run in the study's folder; writes `{output}`.
    pub(crate) command: Spanned<String>,
    /// Files whose contents decide whether it must be made anew, absolute.
    pub(crate) inputs: Vec<PathBuf>,
    /// Its name in the work folder.
    pub(crate) output: Spanned<String>,
    /// Whether it is kept in memory instead.
    pub(crate) tmpfs: bool,
}

/// A program that contenders need and that is not raced.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Service {
    /// Unique; letters, digits, `_` and `-`.
    pub(crate) name: Spanned<String>,
    /// A shell command.
    pub(crate) command: Spanned<String>,
    /// Absolute; where the command runs.
    pub(crate) folder: PathBuf,
    /// Added to the environment.
    pub(crate) env: BTreeMap<String, Spanned<String>>,
    /// Where it listens.
    pub(crate) listen: Spanned<record::Listen>,
    /// A shell command that succeeds once it is ready.
    pub(crate) ready: Option<Spanned<String>>,
    /// How it is ended.
    pub(crate) ending: record::Ending,
}

/// One implementation that is raced.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Contender {
    /// Unique.
    pub(crate) name: Spanned<String>,
    /// A shell command.
    pub(crate) command: Spanned<String>,
    /// Absolute; where all its commands run.
    pub(crate) folder: PathBuf,
    /// Added to the environment.
    pub(crate) env: BTreeMap<String, Spanned<String>>,
    /// What must be there, or else it is left out.
    pub(crate) needs: Vec<Need>,
    /// Prints its version in the first line.
    pub(crate) version: Option<Spanned<String>>,
    /// Run once before each race.
    pub(crate) build: Option<Spanned<String>>,
    /// Commands that measure something inside its runtime and print it, by name.
    pub(crate) measures: BTreeMap<String, Spanned<String>>,
    /// Files and folders that it is deployed as, absolute.
    pub(crate) artefacts: Vec<PathBuf>,
    /// Whose garbage collector it has, where that is told.
    pub(crate) collector: Option<Collector>,
    /// Whether it cannot speak TLS, so that it is left out of scenarios over it.
    pub(crate) plain_http_only: bool,
    /// Names of services that must be up first.
    pub(crate) services: Vec<Spanned<String>>,
    /// Where it listens.
    pub(crate) listen: Spanned<record::Listen>,
}

/// A garbage collector, and how it is made to log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Collector {
    /// Whose it is.
    pub(crate) kind: record::CollectorKind,
    /// Added to the environment where it is to log.
    pub(crate) env: BTreeMap<String, Spanned<String>>,
}

/// Something that a contender cannot run without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    /// What it is.
    pub(crate) kind: NeedKind,
    /// What to do where it is missing.
    pub(crate) remedy: String,
}

/// What a contender needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NeedKind {
    /// A file or folder, absolute.
    File(PathBuf),
    /// A program: a name that is looked up in PATH, or a path from the contender's folder.
    Program(String),
}

/// One request and what every contender must answer to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Probe {
    /// Where its name stands (or the path that stands for it).
    pub(crate) name: Spanned<String>,
    /// The whole contract, under the same name.
    pub(crate) contract: record::Probe,
}

/// One load.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scenario {
    /// Unique.
    pub(crate) name: Spanned<String>,
    /// Closed or open.
    pub(crate) shape: record::Shape,
    /// What is requested; none stands for all probes under load, each with weight 1.
    pub(crate) requests: Option<Vec<Spanned<record::Share>>>,
    /// What each contender is held to.
    pub(crate) limits: record::Limits,
    /// What is compared, what matters most first; empty for what its shape suggests.
    pub(crate) metrics: Vec<record::Metric>,
    /// Values of one setting, each of which makes a scenario.
    pub(crate) sweep: Option<Sweep>,
    /// The ladder that it is a rung of.
    pub(crate) ladder: Option<record::Rung>,
    /// What its load has beside its shape.
    pub(crate) traffic: record::Traffic,
}

/// One setting of a scenario in several values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sweep {
    /// Which setting.
    pub(crate) axis: record::Axis,
    /// Its values, each once, as written; whole but for a quota.
    pub(crate) values: Vec<f64>,
}

/// A load generator of somebody else.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Generator {
    /// Unique.
    pub(crate) name: Spanned<String>,
    /// A shell command; `{url}`, `{port}`, `{connections}` and `{duration}` (seconds) are replaced.
    pub(crate) command: Spanned<String>,
    /// Absolute; where the command runs.
    pub(crate) folder: PathBuf,
    /// What must be there, or else it is left out.
    pub(crate) needs: Vec<Need>,
    /// How its throughput is read from what it prints.
    pub(crate) reads: Reads,
    /// How many connections; none for as many as were published.
    pub(crate) connections: Option<u32>,
    /// How long one run lasts, in seconds.
    pub(crate) duration_s: f64,
    /// Bytes in the body of the null server's answers.
    pub(crate) body_bytes: u32,
    /// Whether the published figures were measured with such a one; else it only stands beside them.
    pub(crate) published: bool,
}

/// How a generator tells its throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Its last line is a JSON object with `throughput_rps`.
    Json,
    /// A line `Requests/sec: N`, as wrk and oha print it.
    Text,
}

/// A published number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    /// Where it was published.
    pub(crate) source: String,
    /// The contender that it is about; none where it is about none of them.
    pub(crate) contender: Option<Spanned<String>>,
    /// What the contender is compared with, for ratios.
    pub(crate) baseline: Option<Spanned<String>>,
    /// Which of several published runs it belongs to.
    pub(crate) row: Option<String>,
    /// What it measures: `throughput_rps`, `latency_p99_ms`; or a setting: `connections`, `duration_s`.
    pub(crate) metric: String,
    /// The number or range.
    pub(crate) figure: Figure,
    /// Its unit, where the metric's name does not tell.
    pub(crate) unit: Option<String>,
    /// Where it can be tested here.
    pub(crate) scenario: Option<Spanned<String>>,
    /// Of a ratio of that scenario to another: the other.
    pub(crate) baseline_scenario: Option<Spanned<String>>,
    /// What the reader should know beside it.
    pub(crate) note: Option<String>,
}

/// What was published.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Figure {
    /// One number, and half a unit of its last digit as it was written.
    Value(f64, f64),
    /// From, to.
    Range(f64, f64),
}

impl Study {
    /// Probes that scenarios may load contenders with.
    pub(crate) fn probes_under_load(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter().filter(|probe| probe.contract.under_load)
    }
}

impl Claim {
    /// The claim as records have it.
    pub(crate) fn published(&self) -> record::Claim {
        let name = |name: &Option<Spanned<String>>| name.as_ref().map(|name| name.get_ref().clone());
        let (value, half_digit, low, high) = match self.figure {
            Figure::Value(value, half) => (Some(value), half, None, None),
            Figure::Range(low, high) => (None, 0.0, Some(low), Some(high)),
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
