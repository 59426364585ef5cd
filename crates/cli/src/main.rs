//! deadheat races HTTP servers and tells which one really won, or that it was a dead heat.

mod audit;
mod commands;
mod console;
mod doctor;
mod elsewhere;
mod flags;
mod folder;
mod interrupt;
mod live;
mod load;
mod server_host;
mod study_hosts;
mod trouble;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use console::Console;
use deadheat_remote::server_host::{UNDER_AGENT, UnderAgent};
use flags::{Cli, Command};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(status) = commands::internal(&arguments[1..]) {
        return ExitCode::from(status);
    }
    let mut console = Console::of_process();
    if arguments.get(1).is_some_and(|first| first == UNDER_AGENT) {
        return ExitCode::from(run_under_agent(&arguments, &mut console));
    }
    let status = match study_hosts::typed_for(arguments, &console) {
        Ok(arguments) => run(&arguments, &mut console),
        Err(failure) => console.failure(&failure),
    };
    ExitCode::from(status)
}

/// Runs the program for an agent that has started it on this machine. It ends with the agent.
fn run_under_agent(arguments: &[OsString], console: &mut Console) -> u8 {
    match UnderAgent::watch(&arguments[2..]) {
        Ok((agent, rest)) => {
            let status = run(&[&arguments[..1], rest].concat(), console);
            agent.finish();
            status
        }
        Err(error) => console.failure(&error.into()),
    }
}

/// Runs the program with these arguments and this console. Returns the exit status.
fn run(arguments: &[OsString], console: &mut Console) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return console.usage(&error),
    };
    let done = match cli.command {
        Command::Race(flags) => commands::race(&flags, arguments, console),
        Command::Init(flags) => commands::init(&flags, console),
        Command::Check(flags) => commands::check(&flags, arguments, console),
        Command::Load(flags) => commands::load(&flags, console),
        Command::Report(flags) => commands::report(&flags, console),
        Command::Compare(flags) => commands::compare(&flags, console),
        Command::Audit(flags) => commands::audit(&flags, console),
        Command::Doctor(flags) => commands::doctor(&flags, arguments, console),
        Command::Null(flags) => commands::null(&flags, console),
    };
    let status = done.unwrap_or_else(|failure| console.failure(&failure));
    console.broken().map_or(status, |failure| console.failure(&failure))
}
