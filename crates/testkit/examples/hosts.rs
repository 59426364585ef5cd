//! Runs a command in a network from which ssh reaches hosts `h1` to `hN`, which are network namespaces of this machine:
//! `cargo run --release -p deadheat-testkit --example hosts -- 2 ssh root@h1 hostname`. Needs root. The hosts are gone when it ends.

use std::io::Write as _;
use std::process::ExitCode;

use deadheat_testkit::Bed;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(hosts), Some(program)) = (words.next().and_then(|word| word.parse().ok()), words.next()) else {
        return wrong("usage: hosts NUMBER COMMAND...: a number of hosts from 1 to 200, and a command");
    };
    let bed = Bed::new(hosts);
    match bed.inside(&program).args(words).status() {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => wrong(&format!("{program}: {error}")),
    }
}

fn wrong(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::from(2)
}
