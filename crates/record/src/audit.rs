//! What `deadheat audit --json` writes: schema `deadheat.audit/1`, a public contract.
//!
//! Owns: the nouns of an audit, which compares published figures with each other, with the ceiling of their generator, and with this machine. Must
//! not know: how any of this is computed, measured or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Claim, Finding, Machine};

/// The schema of [`AuditRecord`]. Keys do not change within this number.
pub const AUDIT_SCHEMA: &str = "deadheat.audit/1";

/// An audit of the figures that a study's article published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    /// `deadheat.audit/1`.
    pub schema: String,
    /// The version of deadheat that ran the audit.
    pub version: String,
    /// Start of the audit, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The study's name.
    pub study: String,
    /// One line about the study.
    pub title: Option<String>,
    /// Whether the study declares that this machine matches the published one. If so, absolute figures are compared too.
    #[serde(default)]
    pub machine_matches: bool,
    /// The published figures, as the study lists them.
    pub claims: Vec<Claim>,
    /// Checks of the published figures against each other. Nothing is run for them.
    pub checks: Vec<PublishedCheck>,
    /// Results of the published generators on this machine against a server that does no work; empty when none was run.
    pub generators: Vec<GeneratorAudit>,
    /// This machine's figure for each claim; empty when there is no race to take the figures from.
    pub here: Vec<ClaimHere>,
    /// File of the race that `here` was taken from.
    pub record: Option<String>,
    /// The machine that was measured; null when nothing was run.
    pub machine: Option<Machine>,
    /// Findings that weaken the audit as a whole.
    pub findings: Vec<Finding>,
}

impl AuditRecord {
    /// Whether a published figure is contradicted by another one, by the ceiling of its generator, or by this machine.
    pub fn contradicts(&self) -> bool {
        self.checks.iter().any(|one| one.outcome == CheckOutcome::Contradicts)
            || self.generators.iter().any(|one| !one.beyond.is_empty())
            || self.here.iter().any(|one| one.verdict == ClaimVerdict::Contradicted)
    }
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckKind {
    /// Throughput times mean latency, compared with the number of connections.
    LittlesLaw,
    /// The length of a run, compared with the warm-up that the source itself reports.
    RunLength,
    /// Percentiles, mean and extremes, compared with each other.
    Order,
    /// A ratio in the text, compared with the figures that it is derived from.
    Ratio,
    /// The number of failed connections, compared with the stated number of connections.
    ConnectErrors,
    /// The number of requests, compared with throughput times duration.
    Requests,
    /// Requests that timed out and therefore appear in no latency figure.
    Timeouts,
    /// A stated variation between runs, compared with the runs.
    Spread,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckOutcome {
    /// The figures are consistent: they can come from the same run.
    Sound,
    /// A figure means less than it appears to.
    Weakened,
    /// The figures contradict each other, or contradict what the source says they describe.
    Contradicts,
    /// The check needs a figure that was not published.
    Untestable,
}

/// One check of published figures against each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedCheck {
    /// What is compared.
    pub kind: CheckKind,
    /// The published run; null if there is only one.
    pub row: Option<String>,
    /// The contender; null if the check is about no single contender.
    pub contender: Option<String>,
    /// The outcome of the check.
    pub outcome: CheckOutcome,
    /// The value derived from the figures: requests in flight, seconds of a run, or a ratio.
    pub found: Option<f64>,
    /// The value that it is compared with: connections, seconds of warm-up, or the stated ratio.
    pub expected: Option<f64>,
    /// The result as a sentence.
    pub text: String,
}

/// A published generator, measured against the built-in null server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorAudit {
    /// Name of the generator in the study.
    pub name: String,
    /// The shell command that started it, with placeholders replaced.
    pub command: String,
    /// Whether the published figures were measured with this generator. If false, it is included only for comparison.
    pub published: bool,
    /// Number of connections that it was configured to open.
    pub connections: u32,
    /// Configured length of each run, in seconds.
    pub duration_s: f64,
    /// Cores that it ran on; empty for all.
    pub cpus: Vec<usize>,
    /// Answers per second of each run, in time order.
    pub runs_rps: Vec<f64>,
    /// Geometric mean of the runs, in answers per second; null when it could not be measured.
    pub throughput_rps: Option<f64>,
    /// Lower end of the 95 % confidence interval over runs; null with fewer than two runs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Mean share of the server's cores that the server used during the runs, 0 to 1; null if unknown. Near 1, the server was the limit, and the
    /// generator may be able to reach more.
    #[serde(default)]
    pub server_share: Option<f64>,
    /// Why the generator was not measured, and what to do about it; null when it was measured.
    pub skipped: Option<String>,
    /// Indices of the claims whose published throughput lies above the interval, even after the interval is scaled up to the published number of
    /// threads. Empty if nothing was published with this generator.
    pub beyond: Vec<usize>,
    /// The conclusion, as a sentence.
    pub text: String,
}

/// The verdict of this machine on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// The published ratio lies within this machine's interval, widened by the margin.
    Reproduced,
    /// The published ratio lies outside this interval, and this machine finds a difference in the same direction or no difference.
    NotReproduced,
    /// This machine finds a difference in the opposite direction.
    Contradicted,
    /// The claim cannot be tested on this machine.
    NotTestable,
}

/// A claim with this machine's figure for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimHere {
    /// Indices of the claims that are compared: those of the contender and of the baseline, or the one of the published ratio.
    pub claims: Vec<usize>,
    /// The metric, as the study names it.
    pub metric: String,
    /// The published run.
    pub row: Option<String>,
    /// The contender that the claim is about.
    pub contender: Option<String>,
    /// The contender that it is compared with.
    pub baseline: Option<String>,
    /// The scenario of the race on this machine.
    pub scenario: Option<String>,
    /// The scenario of the divisor, if it is a different scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_scenario: Option<String>,
    /// The published figure or ratio, as a range: from, to.
    pub published: Option<(f64, f64)>,
    /// The figure or ratio on this machine.
    pub here: Option<f64>,
    /// Lower end of the interval of `here`.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The verdict on the claim.
    pub verdict: ClaimVerdict,
    /// Why the claim cannot be tested, or what to know about the verdict.
    pub note: Option<String>,
}
