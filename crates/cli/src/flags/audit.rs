//! Owns: the options of `audit`. Must not know: claims.

use std::path::PathBuf;

use clap::Args;

use super::Output;

const AUDIT_HELP: &str = "\
Examples:
  deadheat audit studies/trending --self-test
  deadheat audit studies/ssr --record ssr.jsonl --markdown docs/audit-ssr.md

Three questions: do the published figures contradict each other; can the generator that made them reach them against a
server that does nothing; and does this machine find the same ratios. Absolute figures of another machine are compared as
ratios between contenders only.
Exit status: 0 nothing is contradicted; 1 something is; 2 wrong usage or input; 3 the measurement is invalid.";

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_HELP)]
pub(crate) struct AuditFlags {
    /// A folder with study.toml, or that file
    #[arg(value_name = "STUDY")]
    pub(crate) study: PathBuf,
    /// Hold the published figures against each other only; nothing is run
    #[arg(long)]
    pub(crate) self_test: bool,
    /// Write the audit as JSON; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse)]
    pub(crate) json: Option<Output>,
    /// Write the audit as a Markdown page [without FILE, or `-`: to standard output]
    #[arg(long, value_name = "FILE", value_parser = Output::parse, num_args = 0..=1, default_missing_value = "-")]
    pub(crate) markdown: Option<Output>,
}
