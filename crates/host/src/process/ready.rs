//! A shell command whose exit status says whether a service is ready.
//!
//! Owns: running it within its time limit. Must not know: what it checks, and on which service.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::process::fill;

/// How often to check whether the command has ended.
const GLANCE: Duration = Duration::from_millis(2);
/// A command that takes longer is killed and run again.
const LONGEST: Duration = Duration::from_secs(5);

/// The command, ready to run.
#[derive(Debug)]
pub struct ReadyCommand {
    shell: String,
    folder: std::path::PathBuf,
    env: Vec<(String, String)>,
}

impl ReadyCommand {
    /// A command whose placeholders are already replaced; it also gets `values` as variables in capitals.
    pub fn new(
        shell: &str,
        folder: &Path,
        values: &BTreeMap<String, String>,
        env: &BTreeMap<String, String>,
    ) -> Self {
        let own = env.iter().map(|(name, value)| (name.clone(), fill(value, values)));
        let given =
            values.iter().map(|(name, value)| (name.to_uppercase().replace(['.', '-'], "_"), value.clone()));
        Self { shell: shell.into(), folder: folder.into(), env: own.chain(given).collect() }
    }

    /// Runs it once, in a separate process group, for at most `patience` and only until `stopped` returns true. Kills what it leaves behind,
    /// which would otherwise run beside the race.
    ///
    /// # Errors
    /// Why the service is not ready, in words.
    pub fn succeeds(&self, patience: Duration, stopped: &dyn Fn() -> bool) -> Result<(), String> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(&self.shell).current_dir(&self.folder).envs(self.env.iter().cloned());
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = shell.spawn().map_err(|error| format!("`{}`: {error}", self.shell))?;
        let begin = Instant::now();
        let ended = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if begin.elapsed() < patience.min(LONGEST) && !stopped() => {
                    std::thread::sleep(GLANCE)
                }
                Ok(None) | Err(_) => break None,
            }
        };
        end_group(&mut child);
        match ended {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("`{}` ended with {status}", self.shell)),
            None => Err(format!("`{}` did not end in time", self.shell)),
        }
    }
}

/// Kills what is left of a process group, and waits for its first process.
fn end_group(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_exit_status_tells() {
        let values = BTreeMap::from([("port".to_owned(), "7".to_owned())]);
        let env = BTreeMap::from([("A".to_owned(), "a{port}".to_owned())]);
        let asked = |shell: &str, patience_ms| {
            ReadyCommand::new(shell, Path::new("/"), &values, &env)
                .succeeds(Duration::from_millis(patience_ms), &|| false)
        };
        assert_eq!(asked("test $PORT$A$(pwd) = 7a7/", 5_000), Ok(()));
        assert!(asked("exit 3", 5_000).unwrap_err().contains("`exit 3` ended with exit status: 3"));
        assert!(asked("sleep 60", 20).unwrap_err().contains("did not end in time"));
    }

    /// Whether the process is alive whose number a command left in a file.
    fn lives(file: &Path) -> bool {
        let text = std::fs::read_to_string(file).unwrap();
        let pid = Pid::from_raw(text.trim().parse().unwrap()).unwrap();
        // A zombie, which has ended but has not been waited for, does not count as alive.
        let state =
            std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        state.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
    }

    #[test]
    fn nothing_of_it_lives_on() {
        let folder = tempfile::tempdir().unwrap();
        let nothing = BTreeMap::new();
        let asked = |shell: &str, stopped: &dyn Fn() -> bool| {
            let command = ReadyCommand::new(shell, folder.path(), &nothing, &nothing);
            command.succeeds(Duration::from_secs(60), stopped)
        };
        let left = folder.path().join("pid");
        let begun = || left.exists();
        // The shell waits for the last command of a pipeline, and that one waits for the first.
        let pipeline = "sh -c 'echo $$ > new; mv new pid; exec sleep 600' | cat";
        assert!(asked(pipeline, &begun).unwrap_err().contains("did not end in time"));
        let gone = (0..5_000).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            !lives(&left)
        });
        assert!(gone, "the first one of the pipeline lives on");
        std::fs::remove_file(&left).unwrap();
        assert_eq!(asked("sleep 600 & echo $! > pid", &|| false), Ok(()));
        let gone = (0..5_000).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            !lives(&left)
        });
        assert!(gone, "what it left in the background lives on");
    }
}
