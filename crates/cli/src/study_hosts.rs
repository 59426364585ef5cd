//! The machines that a study names become options of the command line, as if the user had typed them.
//!
//! Owns: which options these are. Must not know: how another machine is reached.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser as _;
use deadheat_remote::SshTarget;
use deadheat_study::choices::UsageError;
use deadheat_study::file::{self as study, Host, Runs};

use crate::commands::Failure;
use crate::console::{Console, lines_plain};
use crate::flags::{Cli, Command, Input, RaceHostFlags};

/// The command line with the options of the study's machines. Without a study, or with `--here`, it stays as it is. What is typed comes
/// before what the study says.
///
/// # Errors
/// The study names a machine that ssh cannot reach by this name.
pub(crate) fn typed_for(arguments: Vec<OsString>, console: &Console) -> Result<Vec<OsString>, Failure> {
    // The command itself reports what is wrong with its options or its study.
    let Ok(Cli { command }) = Cli::try_parse_from(&arguments) else { return Ok(arguments) };
    let Some((path, flags, chooses_cpus)) = of(&command) else { return Ok(arguments) };
    let Ok(study) = study::load(&path) else { return Ok(arguments) };
    for host in &study.hosts {
        let ssh = host.ssh.get_ref();
        if let Err(error) = ssh.parse::<SshTarget>() {
            let problem = format!("{}: [[host]] {ssh}: {error}", study::file_of(&path).display());
            return Err(UsageError::new(problem, "correct the study").into());
        }
    }
    let words = words(&study.hosts, flags, chooses_cpus);
    if words.is_empty() {
        return Ok(arguments);
    }
    console.note(&lines_plain(&format!(
        "options from the study: {} (with --here, everything runs on this machine)",
        words.join(" ")
    )));
    let (command, rest) = arguments.split_at(2);
    Ok([command, &words.into_iter().map(Into::into).collect::<Vec<_>>(), rest].concat())
}

/// The study of a command that can run on other machines, the machines that are typed, and whether a study may choose the cores there.
fn of(command: &Command) -> Option<(PathBuf, &RaceHostFlags, bool)> {
    match command {
        Command::Race(flags) if !flags.here => match flags.input() {
            Ok(Input::Study(path)) => Some((path, &flags.hosts, flags.choices.machine.server_cpus.is_none())),
            _ => None,
        },
        Command::Check(flags) if !flags.here => Some((flags.study.clone(), &flags.hosts, false)),
        _ => None,
    }
}

fn words(hosts: &[Host], typed: &RaceHostFlags, chooses_cpus: bool) -> Vec<String> {
    let mut words = Vec::new();
    let of = |runs| hosts.iter().filter(move |host| host.runs == runs);
    if typed.load_hosts().is_empty() {
        words.extend(of(Runs::Load).map(|host| format!("--load-host={}", host.ssh.get_ref())));
    }
    if typed.server.server_host.is_some() {
        return words;
    }
    let has_load = !words.is_empty() || !typed.load_hosts().is_empty();
    for host in of(Runs::Contenders) {
        words.push(format!("--server-host={}", host.ssh.get_ref()));
        let address = host.address.filter(|_| has_load && typed.server_address.is_none());
        words.extend(address.map(|address| format!("--server-address={address}")));
        let cpus = host.cpus.as_ref().filter(|_| chooses_cpus);
        words.extend(cpus.map(|cpus| format!("--server-cpus={cpus}")));
    }
    words
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const HOSTS: &str = "[[contender]]\nname = \"a\"\ncommand = \"a\"\n[[contender]]\nname = \"b\"\ncommand = \"b\"\n[[probe]]\npath = \"/\"\n\
        [[host]]\nssh = \"ssh://me@target\"\nruns = \"contenders\"\naddress = \"10.0.0.5\"\ncpus = \"0,2-3\"\n\
        [[host]]\nssh = \"ssh://a\"\nruns = \"load\"\n[[host]]\nssh = \"ssh://b:2222\"\nruns = \"load\"\n";

    fn words_of(line: &str) -> String {
        let hosts = study::parse(HOSTS, "study.toml", Path::new("/s")).unwrap().hosts;
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Race(flags) = cli.command else { panic!("race") };
        words(&hosts, &flags.hosts, flags.choices.machine.server_cpus.is_none()).join(" ")
    }

    #[test]
    fn what_is_typed_comes_before_what_the_study_says() {
        let load = "--load-host=ssh://a --load-host=ssh://b:2222";
        let server = "--server-host=ssh://me@target --server-address=10.0.0.5";
        for (typed, added) in [
            ("", format!("{load} {server} --server-cpus=0,2-3")),
            ("--server-cpus 1", format!("{load} {server}")),
            ("--load-host ssh://c", format!("{server} --server-cpus=0,2-3")),
            (
                "--load-host ssh://c --server-address 10.0.0.9",
                "--server-host=ssh://me@target --server-cpus=0,2-3".into(),
            ),
            ("--server-host ssh://d", load.to_owned()),
            ("--server-host ssh://d --load-host ssh://c", String::new()),
        ] {
            assert_eq!(words_of(&format!("deadheat race study {typed}")), added, "{typed}");
        }
    }

    #[test]
    fn a_study_on_other_machines_can_be_raced_here() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("study.toml"), HOSTS).unwrap();
        let path = folder.path().to_str().unwrap();
        let console = Console::of_process();
        let lines: [(&[&str], bool); 5] = [
            (&["race", path], true),
            (&["check", path], true),
            (&["race", path, "--here"], false),
            (&["check", "--here", path], false),
            (&["report", path], false),
        ];
        for (line, is_elsewhere) in lines {
            let typed: Vec<OsString> = ["deadheat"].iter().chain(line).map(OsString::from).collect();
            let all = typed_for(typed.clone(), &console).unwrap();
            assert_eq!(all.contains(&"--server-host=ssh://me@target".into()), is_elsewhere, "{line:?}");
            assert_eq!(all == typed, !is_elsewhere, "{line:?}");
            assert!(Cli::try_parse_from(all).is_ok(), "{line:?}");
        }
        let wrong = HOSTS.replace("ssh://a", "ssh://-a");
        std::fs::write(folder.path().join("study.toml"), wrong).unwrap();
        let failure = typed_for(["deadheat", "race", path].map(Into::into).to_vec(), &console).unwrap_err();
        let text = failure.render(false);
        assert!(text.contains("[[host]] ssh://-a: write it like ssh://user@host"), "{text}");
    }
}
