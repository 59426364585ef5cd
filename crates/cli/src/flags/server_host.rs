//! Options of commands that may run on another machine, and what is passed on to that machine.
//!
//! Owns: their help, and which options the command there gets. Must not know: how it gets there.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Args, CommandFactory as _};
use deadheat_record::ServerHost;
use deadheat_remote::SshTarget;
use serde::{Deserialize, Serialize};

use super::Cli;

/// Where contenders run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Other machines")]
pub(crate) struct ServerHostFlags {
    /// Run the contenders on this machine, such as ssh://user@host:22; deadheat sends the study and itself there
    #[arg(long, value_name = "HOST")]
    pub(crate) server_host: Option<SshTarget>,
    /// Send this folder, which contains the study [default: the study's folder; for commands: the current folder]
    #[arg(long, value_name = "FOLDER", requires = "server_host")]
    pub(crate) send: Option<PathBuf>,
    /// Also send files that git ignores [default: deadheat leaves them out and names them]
    #[arg(long, requires = "server_host")]
    pub(crate) send_ignored: bool,
}

/// What the controlling side tells a race that it has sent to another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Controlled {
    /// Where the race runs and where it comes from, for the record.
    pub(crate) server_host: ServerHost,
    /// The record on the controlling side, which messages name.
    pub(crate) record: PathBuf,
}

impl Controlled {
    /// Reads the option.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

/// Options that only the controlling side carries out.
const CARRIED_OUT_HERE: [&str; 8] =
    ["server_host", "send", "send_ignored", "server_address", "json", "html", "record", "resume"];

/// The options of this command line that the command on the other machine gets, each as one word. Arguments without a name are not
/// among them.
pub(crate) fn forwarded(arguments: &[OsString]) -> Vec<OsString> {
    let cli = Cli::command();
    let Ok(matches) = cli.clone().try_get_matches_from(arguments) else { return Vec::new() };
    let Some((name, matches)) = matches.subcommand() else { return Vec::new() };
    let mut words = Vec::new();
    for option in cli.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments) {
        let id = option.get_id().as_str();
        let Some(long) = option.get_long().filter(|_| !CARRIED_OUT_HERE.contains(&id)) else { continue };
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        if !option.get_action().takes_values() {
            words.push(format!("--{long}").into());
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            let mut word = OsString::from(format!("--{long}="));
            word.push(value);
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::flags::Command;

    fn race(words: &[OsString]) -> super::super::RaceFlags {
        match Cli::try_parse_from(words).map(|cli| cli.command) {
            Ok(Command::Race(flags)) => *flags,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_there_gets_every_option_but_those_of_this_side() {
        let line = "deadheat race --server-host ssh://me@t --send . --send-ignored --load-host ssh://a --load-host ssh://b:2 \
                    --server-address 10.0.0.5 -n x -n y -c 8 --only x,y --metric p99,cpu --epochs 6..10 --control --why \
                    --margin 3% --json out.json --html - --record r.jsonl --profile full --server-cpus 0,2-4 --slice 200ms";
        let mut typed: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        let more =
            ["-H", "a: b", "--fail-if", "slower by 3%", "--build", "npm ci", "--", "node a.mjs", "bun b.ts"];
        typed.extend(more.map(OsString::from));
        let words = forwarded(&typed);
        let shown = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        for left_out in ["server-host", "--send", "json", "html", "record", "server-address", "node a.mjs"] {
            assert!(!shown.contains(left_out), "{left_out}: {shown}");
        }
        let (here, all) = (race(&typed), [vec!["deadheat".into(), "race".into()], words].concat());
        let there = race(
            &[all, ["--server-address=10.0.0.5", "node a.mjs", "bun b.ts"].map(OsString::from).to_vec()]
                .concat(),
        );
        assert_eq!((&here.choices, &here.ad_hoc), (&there.choices, &there.ad_hoc));
        assert_eq!((here.hosts.load_hosts(), here.targets), (there.hosts.load_hosts(), there.targets));
        assert_eq!(here.fail_if, there.fail_if);
        assert_eq!(there.hosts.server, ServerHostFlags::default());
    }
}
