//! A shell command that runs to its end and writes its output to a file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use deadheat_record::{Contender, Plan};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::process;

/// How many characters of a command are shown in messages.
const SHOWN_LENGTH: usize = 200;
/// How often to check whether a command with a time limit has ended.
const GLANCE: Duration = Duration::from_millis(5);

/// Variables with which git points its children at the repository that it works on, for example when deadheat runs in a hook. Nothing that deadheat
/// starts may work on that repository.
pub const GIT_VARIABLES: [&str; 14] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_SHALLOW_FILE",
    "GIT_NAMESPACE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
];

/// The placeholder in a build for the layout of the code. A build that contains it runs again before each epoch.
pub const SEED: &str = "seed";

/// Placeholders and their values, as far as they are known before anything starts.
pub fn values(plan: &Plan) -> BTreeMap<String, String> {
    let folders =
        [("study", Some(&plan.folder)), ("work", Some(&plan.work)), ("dataset", plan.dataset.as_ref())];
    let known = folders.into_iter().filter_map(|(name, path)| Some((name, path?)));
    let mut values: BTreeMap<String, String> =
        known.map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned())).collect();
    // Without other machines and links, nothing tells contenders where to listen: as before, they are asked at the loopback.
    values.extend(plan.server_address().map(|address| ("host".to_owned(), address.to_string())));
    values
}

/// The values of `all` as a contender gets them: a contender of a revision has its own `study` and `work`.
pub fn values_of(contender: &Contender, all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut values = all.clone();
    if let Some(revision) = &contender.revision {
        for (name, path) in [("study", revision.folder.clone()), ("work", revision.work())] {
            values.insert(name.into(), path.to_string_lossy().into_owned());
        }
    }
    values
}

/// A text as one word of the shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A shell command, ready to run.
#[derive(Debug)]
pub struct ShellCommand {
    pub(crate) command: String,
    pub(crate) folder: PathBuf,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) log: PathBuf,
}

/// How the run of a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// By itself.
    Ended(ExitStatus),
    /// deadheat ended it because it ran for longer than this.
    TooLong(Duration),
    /// The user interrupted deadheat.
    Interrupted,
}

impl ShellCommand {
    /// Replaces placeholders in the command and passes their values on as variables in capitals. Leaves out variables of `env` that
    /// refer to ports, sockets or certificates, which do not exist yet.
    pub fn new<'e>(
        command: &str,
        folder: &Path,
        env: impl IntoIterator<Item = (&'e String, &'e String)>,
        values: &BTreeMap<String, String>,
        log: PathBuf,
    ) -> Self {
        let env = env.into_iter().filter(|(_, value)| !names_a_server(&process::fill(value, values)));
        Self::beside_services(command, folder, env, values, log)
    }

    /// The command as the shell gets it, shortened to one line.
    pub fn shown(&self) -> String {
        let line = printable(&self.command.split_whitespace().collect::<Vec<_>>().join(" "));
        if line.chars().count() <= SHOWN_LENGTH {
            return line;
        }
        line.chars().take(SHOWN_LENGTH).chain(['…']).collect()
    }

    /// Like [`Self::new`], for a command that runs beside services: all their values are known.
    pub fn beside_services<'e>(
        command: &str,
        folder: &Path,
        env: impl IntoIterator<Item = (&'e String, &'e String)>,
        values: &BTreeMap<String, String>,
        log: PathBuf,
    ) -> Self {
        let (command, env) = (process::fill(command, values), process::environment(env, values));
        Self { command, folder: folder.to_owned(), env, log }
    }

    /// Runs it in a separate process group, and kills that group after `limit`; returns none in that case.
    pub fn run_within(&self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        self.run_until(limit, &|| false)
    }

    /// Runs it in a separate process group, and kills that group after `limit` or as soon as `stopped` returns true; returns none in that
    /// case. Kills what it leaves behind, too: that would run beside the race.
    pub fn run_until(&self, limit: Duration, stopped: &dyn Fn() -> bool) -> io::Result<Option<ExitStatus>> {
        let mut child = self.shell()?.process_group(0).spawn()?;
        let begin = Instant::now();
        let ended = loop {
            match child.try_wait() {
                Ok(None) if begin.elapsed() < limit && !stopped() => std::thread::sleep(GLANCE),
                ended => break ended,
            }
        };
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.wait();
        ended
    }

    fn shell(&self) -> io::Result<Command> {
        let log = File::create(&self.log)?;
        let mut shell = Command::new("/bin/sh");
        for name in GIT_VARIABLES {
            shell.env_remove(name);
        }
        shell.arg("-c").arg(&self.command).current_dir(&self.folder).envs(self.env.iter().cloned());
        shell.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(shell)
    }

    /// What it printed.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Its last lines, indented, with the path of the full log.
    pub fn tail(&self) -> String {
        process::tail(&self.log)
    }
}

/// An exit status in words that follow "ended with".
pub fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".into(),
    }
}

/// A line of a command's output without terminal control characters.
pub fn printable(line: &str) -> String {
    line.trim_end().chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// Turns any name into a file name.
pub fn log_name(kind: &str, name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    format!("{kind}-{}.log", name.chars().map(plain).collect::<String>())
}

fn names_a_server(value: &str) -> bool {
    value.contains("{port}")
        || value.contains("{socket}")
        || value.contains("{cert}")
        || value.contains(".port}")
        || value.contains(".socket}")
}

/// The variables that `stdbuf` sets.
const BUFFERING: [&str; 2] = ["LD_PRELOAD", "_STDBUF_O"];

/// Variables that make the C library write standard output line by line to a file. Otherwise it writes 4 KiB at a time, and the last
/// lines are lost when the process is killed. Empty if the machine has no `stdbuf`.
pub fn line_buffering() -> BTreeMap<String, String> {
    let mut stdbuf = Command::new("stdbuf");
    stdbuf.args(["-oL", "env"]).env_remove("LD_PRELOAD").stdin(Stdio::null()).stderr(Stdio::null());
    let output = stdbuf.output().map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&output).into_owned();
    let set = text.lines().filter_map(|line| line.split_once('='));
    set.filter(|(name, _)| BUFFERING.contains(name))
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a command ended that has at most this long; none if it had to be killed.
    fn code(command: &ShellCommand, limit: Duration) -> Option<i32> {
        command.run_within(limit).unwrap().map(|status| status.code().unwrap())
    }

    #[test]
    fn its_exit_status_tells() {
        let values = BTreeMap::from([("port".to_owned(), "7".to_owned())]);
        let env = BTreeMap::from([("A".to_owned(), "a{port}".to_owned())]);
        let ran = |shell: &str, limit_ms| {
            let command =
                ShellCommand::beside_services(shell, Path::new("/"), &env, &values, "/dev/null".into());
            code(&command, Duration::from_millis(limit_ms))
        };
        assert_eq!(ran("test $PORT$A$(pwd) = 7a7/", 5_000), Some(0));
        assert_eq!(ran("exit 3", 5_000), Some(3));
        assert_eq!(ran("sleep 60", 20), None);
    }

    /// Whether the process is alive whose number a command left in a file.
    fn lives(file: &Path) -> bool {
        let text = fs::read_to_string(file).unwrap();
        process::tree::lives(Path::new(process::tree::PROC), text.trim().parse().unwrap())
    }

    #[test]
    fn nothing_of_it_lives_on() {
        let folder = tempfile::tempdir().unwrap();
        let ran = |shell: &str, stopped: &dyn Fn() -> bool| {
            let command =
                ShellCommand::new(shell, folder.path(), [], &BTreeMap::new(), folder.path().join("log"));
            command.run_until(Duration::from_secs(60), stopped).unwrap()
        };
        let left = folder.path().join("pid");
        let begun = || left.exists();
        // The shell waits for the last command of a pipeline, and that one waits for the first.
        let pipeline = "sh -c 'echo $$ > new; mv new pid; exec sleep 600' | cat";
        assert_eq!(ran(pipeline, &begun), None);
        let gone = (0..5_000).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            !lives(&left)
        });
        assert!(gone, "the first one of the pipeline lives on");
        fs::remove_file(&left).unwrap();
        assert!(ran("sleep 600 & echo $! > pid", &|| false).unwrap().success());
        let gone = (0..5_000).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            !lives(&left)
        });
        assert!(gone, "what it left in the background lives on");
    }
}
