//! A shell command that tells by its exit status whether a service is ready.
//!
//! Owns: running it for no longer than it may take. Must not know: what it asks, and whom.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::contender::fill;

/// How often it is looked whether the command has ended.
const GLANCE: Duration = Duration::from_millis(2);
/// A command that takes longer is ended, and asked again.
const LONGEST: Duration = Duration::from_secs(5);

/// The command, ready to run.
#[derive(Debug)]
pub(crate) struct ReadyCommand {
    shell: String,
    folder: std::path::PathBuf,
    env: Vec<(String, String)>,
}

impl ReadyCommand {
    /// A command whose placeholders are replaced already; `values` reach it as variables too, in capitals.
    pub(crate) fn new(
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

    /// Runs it once, for `patience` at the most and no longer than until `stopped` says so.
    ///
    /// # Errors
    /// Why it is not ready, in words.
    pub(crate) fn succeeds(&self, patience: Duration, stopped: &dyn Fn() -> bool) -> Result<(), String> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(&self.shell).current_dir(&self.folder).envs(self.env.iter().cloned());
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = shell.spawn().map_err(|error| format!("`{}`: {error}", self.shell))?;
        let begin = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("`{}` says {status}", self.shell)),
                Ok(None) if begin.elapsed() < patience.min(LONGEST) && !stopped() => {
                    std::thread::sleep(GLANCE)
                }
                Ok(None) | Err(_) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("`{}` does not end", self.shell));
                }
            }
        }
    }
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
        assert!(asked("exit 3", 5_000).unwrap_err().contains("`exit 3` says exit status: 3"));
        assert!(asked("sleep 60", 20).unwrap_err().contains("does not end"));
    }
}
