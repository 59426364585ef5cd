//! What `deadheat audit --json` writes: schema `deadheat.audit/1`, a public contract.
//!
//! Owns the nouns of an audit: published figures held against each other, against the ceiling of their own generator, and
//! against this machine. Must not know how any of it is computed, measured or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Claim, Finding, Machine};

/// The schema of [`AuditRecord`]. Keys are stable within the number.
pub const AUDIT_SCHEMA: &str = "deadheat.audit/1";

/// An audit of what a study's article published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    /// `deadheat.audit/1`.
    pub schema: String,
    /// The version of deadheat that audited.
    pub version: String,
    /// When it began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The study's name.
    pub study: String,
    /// One line about the study.
    pub title: Option<String>,
    /// Whether the study says that this machine matches the published one: then figures are compared as they are, too.
    #[serde(default)]
    pub machine_matches: bool,
    /// What was published, as the study lists it.
    pub claims: Vec<Claim>,
    /// The figures against each other; nothing was run for it.
    pub checks: Vec<PublishedCheck>,
    /// What the published generators reach here against a server that does nothing; empty when none was run.
    pub generators: Vec<GeneratorAudit>,
    /// This machine's figures for each claim; empty when there is no race to take them from.
    pub here: Vec<ClaimHere>,
    /// The race that `here` was taken from: its file.
    pub record: Option<String>,
    /// Where it was run; null when nothing was.
    pub machine: Option<Machine>,
    /// What weakens the whole.
    pub findings: Vec<Finding>,
}

impl AuditRecord {
    /// Whether a published figure is contradicted: by another one, by its generator's ceiling, or by this machine.
    pub fn contradicts(&self) -> bool {
        self.checks.iter().any(|one| one.outcome == CheckOutcome::Contradicts)
            || self.generators.iter().any(|one| !one.beyond.is_empty())
            || self.here.iter().any(|one| one.verdict == ClaimVerdict::Contradicted)
    }
}

/// What was held against what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckKind {
    /// Throughput times mean latency against the connections.
    LittlesLaw,
    /// The length of a run against the warm-up that the source itself reports.
    RunLength,
    /// Percentiles, mean and extremes against each other.
    Order,
    /// A ratio in the text against the figures that it is made of.
    Ratio,
    /// Connections that failed against those that were stated.
    ConnectErrors,
    /// Requests against throughput times duration.
    Requests,
    /// Requests that timed out, and are in no latency.
    Timeouts,
    /// A variation of runs that is stated, against the runs.
    Spread,
}

/// What came of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckOutcome {
    /// The figures can be of one and the same run.
    Sound,
    /// A figure says less than it seems to.
    Weakened,
    /// The figures exclude each other, or what they are said to be of.
    Contradicts,
    /// A figure is missing that it would take.
    Untestable,
}

/// One check of published figures against each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedCheck {
    /// What was held against what.
    pub kind: CheckKind,
    /// The published run; null where there is only one.
    pub row: Option<String>,
    /// The contender; null where it is about none.
    pub contender: Option<String>,
    /// What came of it.
    pub outcome: CheckOutcome,
    /// What follows from the figures: requests in flight, seconds of a run, a ratio.
    pub found: Option<f64>,
    /// What it should have been: connections, seconds of warm-up, the ratio that was stated.
    pub expected: Option<f64>,
    /// The same in a sentence.
    pub text: String,
}

/// A published generator against the built-in null server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorAudit {
    /// Its name in the study.
    pub name: String,
    /// How it was started: a shell command, placeholders replaced.
    pub command: String,
    /// Whether the published figures were measured with such a one; else it only stands beside them.
    pub published: bool,
    /// Connections that it was told to open.
    pub connections: u32,
    /// How long each run was to last, in seconds.
    pub duration_s: f64,
    /// Cores that it ran on; empty for all.
    pub cpus: Vec<usize>,
    /// Answers per second of each run, in time order.
    pub runs_rps: Vec<f64>,
    /// Geometric mean of the runs; null when it could not be measured.
    pub throughput_rps: Option<f64>,
    /// Lower end of its 95 % interval over runs; null with fewer than two.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Share of its cores' time that the server used while it ran, in the mean over runs; null where that is not known. Near 1 the server
    /// was the limit, and the generator may reach more.
    #[serde(default)]
    pub server_share: Option<f64>,
    /// Why it was not measured, with what to do; null when it was.
    pub skipped: Option<String>,
    /// Published throughputs that lie beyond the interval, also for as many threads as were published: indices of claims; empty where
    /// nothing was published with it.
    pub beyond: Vec<usize>,
    /// What follows, in a sentence.
    pub text: String,
}

/// What this machine says of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// The published ratio lies within this machine's interval, widened by the margin.
    Reproduced,
    /// It lies outside, in the same direction, or this machine tells no difference.
    NotReproduced,
    /// This machine tells a difference the other way.
    Contradicted,
    /// It cannot be tested here.
    NotTestable,
}

/// A claim, and this machine's figure for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimHere {
    /// Indices of the claims that it is made of: the contender's and the baseline's, or the ratio's own.
    pub claims: Vec<usize>,
    /// The metric, as the study names it.
    pub metric: String,
    /// The published run.
    pub row: Option<String>,
    /// Whom it is about.
    pub contender: Option<String>,
    /// With whom it is compared.
    pub baseline: Option<String>,
    /// The scenario of this machine's race.
    pub scenario: Option<String>,
    /// The scenario of what it is divided by, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_scenario: Option<String>,
    /// The published figure or ratio: from, to.
    pub published: Option<(f64, f64)>,
    /// This machine's.
    pub here: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What it comes to.
    pub verdict: ClaimVerdict,
    /// Why it cannot be tested, or what should be known beside the verdict.
    pub note: Option<String>,
}

/// The JSON Schema of [`AuditRecord`], pretty-printed.
///
/// # Errors
/// None in practice: the schema is made from the types.
pub fn audit_schema_json() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(AuditRecord))?;
    text.push('\n');
    Ok(text)
}
