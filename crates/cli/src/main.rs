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
mod trouble;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use console::Console;
use flags::{Cli, Command};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(status) = commands::internal(&arguments[1..]) {
        return ExitCode::from(status);
    }
    let mut console = Console::of_process();
    ExitCode::from(run(&arguments, &mut console))
}

/// Runs the program with these arguments and this console. Returns the exit status.
fn run(arguments: &[OsString], console: &mut Console) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return console.usage(&error),
    };
    let done = match cli.command {
        Command::Race(flags) => commands::race(&flags, console),
        Command::Init(flags) => commands::init(&flags, console),
        Command::Check(flags) => commands::check(&flags, console),
        Command::Load(flags) => commands::load(&flags, console),
        Command::Report(flags) => commands::report(&flags, console),
        Command::Compare(flags) => commands::compare(&flags, console),
        Command::Audit(flags) => commands::audit(&flags, console),
        Command::Doctor(flags) => commands::doctor(&flags, console),
        Command::Null(flags) => commands::null(&flags, console),
    };
    done.unwrap_or_else(|failure| console.failure(&failure))
}
