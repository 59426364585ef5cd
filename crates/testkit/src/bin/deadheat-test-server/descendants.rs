//! Processes that are hard to end: they ignore SIGTERM, are in other groups or sessions, or are orphans. This module knows no HTTP.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::options::Place;

/// Contains the process id once SIGTERM is ignored, so that the program starts itself again only once.
const TRAPPED: &str = "DEADHEAT_TEST_SERVER_TRAPPED";

/// Makes this process ignore SIGTERM. An ignored signal stays ignored after `exec`, so a shell can ignore it and
/// start this program again under the same process id. This needs no handler and no unsafe code.
pub(crate) fn ignore_term(arguments: &[String]) -> io::Result<()> {
    let me = std::process::id().to_string();
    if std::env::var(TRAPPED).is_ok_and(|pid| pid == me) {
        return Ok(());
    }
    let error = Command::new("/bin/sh")
        .args(["-c", r#"trap "" TERM; exec "$0" "$@""#])
        .arg(std::env::current_exe()?)
        .args(arguments)
        .env(TRAPPED, me)
        .exec();
    Err(error)
}

/// Starts `count` idle descendants, cycling through the places, and returns once each is in its place.
pub(crate) fn spawn(count: u32) -> io::Result<()> {
    let places = ["same", "group", "session", "orphan"];
    for place in places.iter().cycle().take(count as usize) {
        let mut child = idle_command(place)?.stdout(Stdio::piped()).spawn()?;
        let Some(output) = child.stdout.take() else {
            return Err(io::Error::other("a piped child has no pipe"));
        };
        BufReader::new(output).read_line(&mut String::new())?;
        if *place == "orphan" {
            child.wait()?;
        }
    }
    Ok(())
}

fn idle_command(place: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--ignore-term", "--idle", "--place", place]).stdin(Stdio::null());
    Ok(command)
}

/// Moves to `place`, prints "ready", and sleeps until `deadline`.
pub(crate) fn idle(place: Place, deadline: Instant) -> io::Result<()> {
    match place {
        Place::Same => {}
        Place::Group => rustix::process::setpgid(None, None)?,
        Place::Session => {
            rustix::process::setsid()?;
        }
        Place::Orphan => {
            idle_command("session")?.spawn()?;
            return Ok(());
        }
    }
    crate::say_out("ready");
    crate::sleep_until(deadline);
    Ok(())
}
