//! Owns: the options of `doctor`. Must not know: the machine.

use std::time::Duration;

use clap::Args;

use super::input::requested;
use super::{Output, RaceHostFlags};
use crate::load::MEASURED;
use deadheat_study::choices::{MachineChoices, UsageError};
use deadheat_study::file::shown;
use deadheat_study::plan::AdHoc;
use deadheat_study::values;

const DOCTOR_HELP: &str = "\
Examples:
  deadheat doctor                    facts, ceiling, a server against itself: a minute
  deadheat doctor --quick            facts and ceiling: a few seconds
  deadheat doctor 'node a.mjs'       the noise floor of your own server
  deadheat doctor --full             the proof: 20 races each with 0 %, 3 % and 5 % more work
  deadheat doctor --full 'node a.mjs' --races 10

Exit status: 0 the machine is fit for measuring; 3 it is not; 2 wrong usage; 130 interrupted.";

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_HELP)]
pub(crate) struct DoctorFlags {
    /// A shell command that starts a server, to be raced against itself [default: a built-in server]
    #[arg(value_name = "CMD", conflicts_with = "quick")]
    pub(crate) command: Option<String>,
    /// URL to request from the command; {port} is its port [default: http://127.0.0.1:{port}/]
    #[arg(long, value_name = "URL", requires = "command")]
    pub(crate) url: Option<String>,
    /// Only the facts and the ceiling; takes a few seconds
    #[arg(long, conflicts_with_all = ["full", "epochs"])]
    pub(crate) quick: bool,
    /// Also run races with a known result, as a proof
    #[arg(long)]
    pub(crate) full: bool,
    /// Races of each kind in the proof [default: 20]
    #[arg(long, value_name = "N", requires = "full", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) races: Option<u32>,
    /// Epochs of the race of a server against itself; below 12, also of each race of the proof [3 to 200; default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=200))]
    pub(crate) epochs: Option<u32>,
    /// Seed of every random order [default: a new one, shown at the end]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) machine: MachineChoices,
    #[command(flatten)]
    pub(crate) hosts: RaceHostFlags,
    /// Write the result as JSON; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse, help_heading = "Output")]
    pub(crate) json: Option<Output>,
    /// As in a race, for tests
    #[arg(long, hide = true, value_name = "TIME", value_parser = values::slice)]
    pub(crate) slice: Option<Duration>,
    /// As in a race, for tests
    #[arg(long, hide = true, value_name = "TIME", value_parser = values::duration)]
    pub(crate) warmup: Option<Duration>,
    /// As in a race, for tests; the generator and the built-in servers are not measured for longer either
    #[arg(long, hide = true, value_name = "TIME", value_parser = values::duration)]
    pub(crate) measure: Option<Duration>,
}

impl DoctorFlags {
    /// How long the generator and the built-in servers are measured.
    pub(crate) fn measured(&self) -> Duration {
        self.measure.map_or(MEASURED, |measure| measure.min(MEASURED))
    }

    /// The command twice, as a race would be given it; none without one.
    ///
    /// # Errors
    /// When the command is empty or the URL cannot be requested.
    pub(crate) fn own_server(&self) -> Result<Option<AdHoc>, UsageError> {
        let Some(command) = &self.command else { return Ok(None) };
        if command.trim().is_empty() {
            return Err(UsageError::new("the command is empty", "for example: deadheat doctor 'node a.mjs'"));
        }
        let (tls, path) = requested(self.url.as_deref().unwrap_or("http://127.0.0.1:{port}/"))?;
        if !tls && command.contains("{cert}") {
            let problem = format!("`{}` uses {{cert}}, but the URL is not https", shown(command));
            return Err(UsageError::new(
                problem,
                "deadheat makes a certificate only for https: --url 'https://127.0.0.1:{port}/'",
            ));
        }
        Ok(Some(AdHoc { tls, ..AdHoc::pair([command.clone(), command.clone()], path) }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::flags::{Cli, Command};

    fn flags(line: &str) -> Result<DoctorFlags, clap::Error> {
        let words = ["deadheat", "doctor"].into_iter().chain(line.split_whitespace());
        Cli::try_parse_from(words).map(|cli| match cli.command {
            Command::Doctor(flags) => *flags,
            _ => panic!("doctor"),
        })
    }

    #[test]
    fn combinations_that_make_no_sense_are_wrong_usage() {
        for line in [
            "--quick --full",
            "--races 5",
            "--url http://127.0.0.1:{port}/",
            "--quick cmd",
            "--quick --epochs 5",
            "--full --races 0",
            "--epochs 2",
            "a b",
        ] {
            assert!(flags(line).is_err(), "{line}");
        }
        for line in [
            "",
            "--quick",
            "--full --races 3",
            "cmd",
            "--full cmd --url http://127.0.0.1:{port}/x --epochs 5",
        ] {
            assert!(flags(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn a_command_is_raced_against_itself() {
        let twice = flags("cmd --url http://127.0.0.1:{port}/x").unwrap().own_server().unwrap().unwrap();
        assert_eq!((twice.commands, twice.path), (vec!["cmd".to_owned(), "cmd".into()], "/x".to_owned()));
        assert_eq!(flags("").unwrap().own_server(), Ok(None));
        assert!(flags("cmd --url http://example.org/").unwrap().own_server().is_err());
    }
}
