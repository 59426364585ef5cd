//! Owns: the options of `audit`. Must not know: claims.

use std::path::PathBuf;

use clap::Args;

use super::{Output, RaceFlags};
use deadheat_study::choices::{Choices, UsageError};

const AUDIT_HELP: &str = "\
Examples:
  deadheat audit studies/trending --self-test
  deadheat audit studies/ssr --record ssr.jsonl --markdown docs/audit-ssr.md
  deadheat audit studies/hello --scenario one-core --profile full

It asks three questions. Do the published figures contradict each other? Can their load generator reach them against a server that does nothing? Does this machine find the same ratios? It compares figures of another machine \
only as ratios between contenders, unless the study says machine_matches = true.

Exit status: 0 nothing is contradicted; 1 something is, or a contender was excluded from the race; 2 wrong usage or input, or \
the race failed; 3 a comparison of the race or of the record is invalid; 130 interrupted.";

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_HELP)]
pub(crate) struct AuditFlags {
    /// A folder with study.toml, or that file
    #[arg(value_name = "STUDY")]
    pub(crate) study: PathBuf,
    /// Only check the published figures against each other; run nothing
    #[arg(long)]
    pub(crate) self_test: bool,
    /// Take this machine's figures from this record of the study; do not race it now
    #[arg(long, value_name = "FILE", conflicts_with = "self_test")]
    pub(crate) record: Option<PathBuf>,
    /// Do not race; only measure the published generators (with --record, also compare that record)
    #[arg(long, conflicts_with = "self_test")]
    pub(crate) no_race: bool,
    /// Do not run the published generators
    #[arg(long, conflicts_with = "self_test")]
    pub(crate) no_generators: bool,
    #[command(flatten)]
    pub(crate) choices: Choices,
    /// Write the audit as JSON; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse)]
    pub(crate) json: Option<Output>,
    /// Write the audit as a Markdown page [without FILE, or `-`: to standard output]
    #[arg(long, value_name = "FILE", value_parser = Output::parse, num_args = 0..=1, default_missing_value = "-")]
    pub(crate) markdown: Option<Output>,
}

impl AuditFlags {
    /// Checks that choices about a race are given only for a race. Those of cores are also for the generators.
    ///
    /// # Errors
    /// There are such choices, and no race.
    pub(crate) fn choices_count(&self) -> Result<(), UsageError> {
        let instead = [
            ("--self-test", self.self_test),
            ("--record", self.record.is_some()),
            ("--no-race", self.no_race),
        ];
        let Some((option, _)) = instead.into_iter().find(|(_, given)| *given) else { return Ok(()) };
        let mut of_race = self.choices.clone();
        if !self.self_test && !self.no_generators {
            (of_race.machine.server_cpus, of_race.machine.load_cpus) = (None, None);
        }
        if of_race == Choices::default() {
            return Ok(());
        }
        let problem = format!("{option}: there is no race, so options of a race have no effect");
        Err(UsageError::new(problem, format!("leave them out, or leave out {option}")))
    }

    /// The race that an audit runs: the study as it would be raced, by the same choices.
    pub(crate) fn race(&self) -> RaceFlags {
        RaceFlags {
            here: true,
            targets: vec![self.study.to_string_lossy().into_owned()],
            choices: self.choices.clone(),
            ..RaceFlags::default()
        }
    }
}
