//! The commands, one per file. Each turns its options into actions and their results into an exit status.

mod audit;
mod check;
mod compare;
mod doctor;
mod failure;
mod init;
mod load;
mod null;
mod output;
mod race;
mod report;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use deadheat_host::open_files::raise_open_files;
use deadheat_host::process::keeper;
use deadheat_remote::server_host::{self, RELAY_COMMAND, SERVER_AGENT_COMMAND};
use deadheat_remote::{AGENT_COMMAND, AgentEnd, ONLY_OPTION, serve};
use deadheat_runner::ceiling;
use deadheat_study::plan::Places;

pub(crate) use audit::audit;
pub(crate) use check::check;
pub(crate) use compare::compare;
pub(crate) use doctor::doctor;
pub(crate) use failure::Failure;
pub(crate) use init::init;
pub(crate) use load::load;
pub(crate) use null::null;
pub(crate) use output::keep_for_data;
pub(crate) use race::{
    concluded, is_over, journal_of, make_ignored, numbered_beside, race, record_exists, writable,
};
pub(crate) use report::report;

/// The hidden commands with which the program starts itself as keeper, stage, null server, agent and stand-in for ssh. `None` for other commands.
pub(crate) fn internal(arguments: &[OsString]) -> Option<u8> {
    let (first, rest) = arguments.split_first()?;
    if first == keeper::KEEPER_COMMAND {
        return Some(keeper::keep());
    }
    if first == ceiling::NULL_COMMAND {
        return Some(ceiling::serve(rest));
    }
    if first == AGENT_COMMAND
        && let Some(only) = only_address(rest)
    {
        return Some(agent(|input, output| serve(input, output, env!("CARGO_PKG_VERSION"), only)));
    }
    if first == SERVER_AGENT_COMMAND && rest.is_empty() {
        return Some(agent(|input, output| {
            let Some(cache) = Places::of_process().cache else {
                return AgentEnd::Failed("HOME is not set, so there is no place for a work folder".into());
            };
            let parent = cache.join("deadheat").join("races");
            server_host::serve(input, output, env!("CARGO_PKG_VERSION"), &parent)
        }));
    }
    if first == RELAY_COMMAND {
        return Some(server_host::relay::relay(rest).unwrap_or_else(|error| {
            let _ = writeln!(io::stderr().lock(), "deadheat relay: {error}");
            255
        }));
    }
    if first == keeper::STAGE_COMMAND {
        let error = keeper::stage(rest);
        // Standard error is the contender's log.
        let _ = writeln!(io::stderr().lock(), "deadheat: the contender could not be started: {error}");
        return Some(127);
    }
    None
}

/// The only address that an agent with these arguments may reach, if they name one. `None` for arguments that no agent has.
fn only_address(arguments: &[OsString]) -> Option<Option<IpAddr>> {
    match arguments {
        [] => Some(None),
        [option, address] if option == ONLY_OPTION => Some(Some(address.to_str()?.parse().ok()?)),
        _ => None,
    }
}

/// Does on this machine what the other side of standard input and output says. When it returns, the process ends.
fn agent(serve: impl FnOnce(OwnedFd, OwnedFd) -> AgentEnd) -> u8 {
    // Each connection needs one open file. If the limit stays too low, opening the connections fails, and the agent reports it.
    let _ = raise_open_files();
    let pipes = io::stdin().as_fd().try_clone_to_owned().and_then(|input| {
        // Not through the buffer of standard output, which looks for lines.
        Ok((input, io::stdout().as_fd().try_clone_to_owned()?))
    });
    let end = match pipes {
        Ok((input, output)) => serve(input, output),
        Err(error) => AgentEnd::Failed(error.to_string()),
    };
    match end {
        AgentEnd::Closed => 0,
        AgentEnd::Failed(reason) => {
            let _ = writeln!(io::stderr().lock(), "deadheat agent: {reason}");
            2
        }
    }
}

/// Replaces a file atomically: a reader sees the old text or the new one. A link stays, and the file that it names is replaced. What is no
/// regular file, such as `/dev/null` or a pipe, is written to.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let done = written.and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    use super::*;

    #[test]
    fn a_link_stays_and_a_pipe_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| folder.path().join(name));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        write_atomically(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");

        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write_atomically(&pipe, "text").unwrap();
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), "text");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left");
    }
}
