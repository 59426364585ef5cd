//! What `report` can be told.
//!
//! Owns: its options and which of them make no sense together. Must not know what is written.

use std::path::{Path, PathBuf};

use clap::Args;
use deadheat_analysis::compare::FailIf;

use super::Output;
use super::fail_if::fail_if;
use deadheat_study::choices::UsageError;
use deadheat_study::values;

const REPORT_HELP: &str = "\
Examples:
  deadheat report trending.jsonl
  deadheat report trending.jsonl --html trending.html
  deadheat report trending.jsonl --html trending.html --audit trending-audit.json
  deadheat report trending.jsonl --ci out/ --fail-if 'slower by 3%'
  deadheat report trending.jsonl --markdown \"$GITHUB_STEP_SUMMARY\" --benchmark-action bench/

Without an option that writes, it shows the report in the terminal. A file that exists is replaced, except the one that \
GITHUB_STEP_SUMMARY names: Markdown is appended to it. For the record of a load, only the summary and --json are available.";

/// Options of `report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_HELP)]
pub(crate) struct ReportFlags {
    /// The journal that a race wrote, its page, or the JSON of a race or a load
    #[arg(value_name = "RECORD")]
    pub(crate) record: PathBuf,
    /// Write one HTML page with the results and the record; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse)]
    pub(crate) html: Option<Output>,
    /// Write Markdown, for a pull request or a decision record; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse)]
    pub(crate) markdown: Option<Output>,
    /// Write the record with its results as JSON; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse)]
    pub(crate) json: Option<Output>,
    /// Write results.csv, comparisons.csv, epochs.csv and collectors.csv into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) csv: Option<PathBuf>,
    /// Write each figure of the page as an SVG file on white into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
    /// Write Bencher Metric Format (JSON); `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse)]
    pub(crate) bencher: Option<Output>,
    /// Write bigger-is-better.json and smaller-is-better.json for github-action-benchmark into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) benchmark_action: Option<PathBuf>,
    /// Write comment.md and conclusion.json, from which a CI job makes a comment and a status, into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) ci: Option<PathBuf>,
    /// Exit with status 1 if this holds for a contender against the baseline, such as 'slower by 3%'; repeatable
    #[arg(long, value_name = "CONDITION", value_parser = fail_if)]
    pub(crate) fail_if: Vec<FailIf>,
    /// Model the latency behind an edge cache that answers this share, such as 92% [default: the record's]
    #[arg(long, value_name = "SHARE", value_parser = values::hit_rate)]
    pub(crate) hit_rate: Option<f64>,
    /// Also show this audit of the same study (a file of `audit --json`), here, on the page and in Markdown
    #[arg(long, value_name = "AUDIT")]
    pub(crate) audit: Option<PathBuf>,
}

impl ReportFlags {
    /// What goes to one file each, or to standard output.
    pub(crate) fn outputs(&self) -> [(&'static str, Option<&Output>); 4] {
        [
            ("--html", self.html.as_ref()),
            ("--markdown", self.markdown.as_ref()),
            ("--json", self.json.as_ref()),
            ("--bencher", self.bencher.as_ref()),
        ]
    }

    fn folders(&self) -> [(&'static str, Option<&PathBuf>); 4] {
        [
            ("--csv", self.csv.as_ref()),
            ("--svg", self.svg.as_ref()),
            ("--benchmark-action", self.benchmark_action.as_ref()),
            ("--ci", self.ci.as_ref()),
        ]
    }

    /// Whether anything is to be written; without, the record is shown.
    pub(crate) fn writes(&self) -> bool {
        self.outputs().iter().any(|(_, to)| to.is_some()) || self.folders().iter().any(|(_, to)| to.is_some())
    }

    /// Whether something goes to standard output.
    ///
    /// # Errors
    /// When more than one thing does.
    pub(crate) fn to_standard(&self) -> Result<bool, UsageError> {
        let all: Vec<&str> = self
            .outputs()
            .iter()
            .filter(|(_, to)| *to == Some(&Output::Standard))
            .map(|(option, _)| *option)
            .collect();
        match all[..] {
            [] => Ok(false),
            [_] => Ok(true),
            _ => Err(UsageError::new(
                format!("{} all go to standard output", all.join(" and ")),
                "give all but one of them a file",
            )),
        }
    }

    /// Where the audit is, if there is one.
    ///
    /// # Errors
    /// When nothing that is written shows it.
    pub(crate) fn shown_audit(&self) -> Result<Option<&Path>, UsageError> {
        let shows = !self.writes() || self.html.is_some() || self.markdown.is_some();
        match &self.audit {
            Some(_) if !shows => Err(UsageError::new(
                "--audit has no effect: none of these outputs shows an audit",
                "write a page with --html, or Markdown with --markdown",
            )),
            audit => Ok(audit.as_deref()),
        }
    }

    /// An option that only the record of a race has something for.
    pub(crate) fn of_races_only(&self) -> Option<&'static str> {
        let outputs = self.outputs().map(|(option, to)| (option, to.is_some()));
        let folders = self.folders().map(|(option, to)| (option, to.is_some()));
        let shown = [
            ("--audit", self.audit.is_some()),
            ("--hit-rate", self.hit_rate.is_some()),
            ("--fail-if", !self.fail_if.is_empty()),
        ];
        let mut all = outputs.into_iter().chain(folders).chain(shown);
        all.find(|(option, given)| *given && *option != "--json").map(|(option, _)| option)
    }
}
