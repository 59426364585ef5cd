//! The command that an agent starts, and what it does when the agent has ended before it.
//!
//! Owns: that end. Must not know: what the command does.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use super::work_folder::remove_abandoned;

/// The first argument of a command that an agent starts. The path of the work folder and the command follow.
pub const UNDER_AGENT: &str = "under-agent";

/// How long the command has for its orderly end.
const ORDERLY: Duration = Duration::from_secs(3);

/// Ends this process when the agent that started it has ended: in an orderly way, as Ctrl-C does, and after some seconds at once. Then
/// the agent's work folder goes, too. Standard input is the pipe that ends with the agent.
#[derive(Debug)]
pub struct UnderAgent {
    folder: PathBuf,
    has_ended: Arc<AtomicBool>,
}

impl UnderAgent {
    /// Watches the agent from now on. `arguments` are those of this process behind [`UNDER_AGENT`]; the rest is its real command line.
    ///
    /// # Errors
    /// There is no work folder among them, or no thread can be started.
    pub fn watch(arguments: &[OsString]) -> io::Result<(Self, &[OsString])> {
        let Some((folder, rest)) = arguments.split_first() else {
            return Err(io::Error::other("this command is for deadheat itself"));
        };
        let watched = Self { folder: folder.into(), has_ended: Arc::default() };
        let (folder, has_ended) = (watched.folder.clone(), Arc::clone(&watched.has_ended));
        let body = move || {
            while let Ok(count) = io::stdin().read(&mut [0; 64]) {
                if count == 0 {
                    break;
                }
            }
            has_ended.store(true, Ordering::SeqCst);
            let end = || kill_process(getpid(), Signal::TERM);
            let _ = end();
            std::thread::sleep(ORDERLY);
            remove_abandoned(&folder);
            let _ = end();
        };
        std::thread::Builder::new().name("agent".into()).spawn(body)?;
        Ok((watched, rest))
    }

    /// To be called at the end of the command.
    pub fn finish(&self) {
        if self.has_ended.load(Ordering::SeqCst) {
            remove_abandoned(&self.folder);
        }
    }
}
