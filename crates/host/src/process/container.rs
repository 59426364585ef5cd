//! Commands that run a container in the foreground: `podman run ...` and `docker run ...`.
//!
//! deadheat starts the engine's program like any other command. The container has another control group. deadheat freezes, ends and reads that group,
//! as it does for every contender.
//!
//! Owns: the options that deadheat adds to such a command, and what is left of containers whose deadheat was killed. Must not know: images, studies.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use deadheat_record::{CgroupKind, Finding};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};

use super::keeper::CGROUP_PREFIX;
use super::run::lives;
use crate::affinity::listed;

/// The label of every container that deadheat starts; its value is the run.
pub const LABEL: &str = "deadheat.run";
/// The variables in which the keeper says where a container's control groups go: an option of the engine, and one of its `run`.
pub(super) const MANAGER_VARIABLE: &str = "DEADHEAT_CONTAINER_MANAGER";
const MANAGER: &str = "${DEADHEAT_CONTAINER_MANAGER-}";
pub(super) const GROUPS_VARIABLE: &str = "DEADHEAT_CONTAINER_GROUPS";
/// The variable in which the keeper names the file for a container's ID, if the engine should write one.
pub(super) const ID_FILE_VARIABLE: &str = "DEADHEAT_CONTAINER_ID_FILE";

/// The options of `run` without a value, of podman and of docker. Any other option has one: behind `=`, or as the next word.
const FLAGS: [&str; 26] = [
    "detach",
    "disable-content-trust",
    "env-host",
    "help",
    "http-proxy",
    "init",
    "interactive",
    "no-healthcheck",
    "no-hostname",
    "no-hosts",
    "oom-kill-disable",
    "passwd",
    "privileged",
    "publish-all",
    "quiet",
    "read-only",
    "read-only-tmpfs",
    "replace",
    "rm",
    "rmi",
    "rootfs",
    "sig-proxy",
    "tls-verify",
    "tty",
    "unsetenv-all",
    "use-api-socket",
];
/// The same as letters.
const FLAG_LETTERS: &str = "ditPq";
/// Options that would take away what deadheat sets itself.
const OWN: [&str; 5] = ["name", "cgroups", "cgroup-parent", "cidfile", "pod"];

/// How often a container is tried to be removed, and the pause that grows between two attempts.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// How long an engine may take to answer, how long to end if it did not, and how often to look whether it has.
const ANSWER: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(2);
/// How long after the end of its command an engine may make a container.
const LATE: Duration = Duration::from_secs(2);

/// A program that runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Podman.
    Podman,
    /// Docker.
    Docker,
}

impl Engine {
    /// All engines, the preferred one first.
    pub const ALL: [Self; 2] = [Self::Podman, Self::Docker];

    /// The name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())
    }
}

/// The engine of a command that runs a container, and the command's words after `run`. None for any other command.
pub fn container_of(command: &str) -> Option<(Engine, &str)> {
    let command = command.trim_start();
    let command = command.strip_prefix("exec ").unwrap_or(command).trim_start();
    let engine = Engine::ALL.into_iter().find(|engine| {
        command.strip_prefix(engine.program()).is_some_and(|rest| rest.starts_with(char::is_whitespace))
    })?;
    let rest = command.strip_prefix(engine.program())?.trim_start();
    // deadheat's own word, if it has completed the command.
    let rest = rest.strip_prefix(MANAGER).unwrap_or(rest).trim_start().strip_prefix("run")?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| (engine, rest.trim_start()))
}

/// Whether a command runs a container of Docker's, which does not descend from the command.
pub fn is_dockers(command: &str) -> bool {
    matches!(container_of(command), Some((Engine::Docker, _)))
}

/// The place of the image among the words after `run`: the first that is neither an option nor an option's value. None if there is none.
///
/// # Errors
/// Why deadheat cannot run a container with the options before it.
pub fn image_at(words: &[String]) -> Result<Option<usize>, String> {
    let is_flag = |letter: char| FLAG_LETTERS.contains(letter);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let has_next = if word == "--" {
            return Ok((at + 1 < words.len()).then_some(at + 1));
        } else if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            if name == "detach" && long != "detach=false" {
                return Err(in_background());
            }
            if OWN.contains(&name) || long == "rm=false" {
                return Err(format!(
                    "deadheat names containers, places their control groups and removes them: leave out --{name}"
                ));
            }
            !long.contains('=') && !FLAGS.contains(&name)
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            if letters.chars().take_while(|letter| is_flag(*letter)).any(|letter| letter == 'd') {
                return Err(in_background());
            }
            // The first letter that needs a value takes the rest of the word, or the next one.
            let rest = letters.trim_start_matches(is_flag);
            rest.chars().count() == 1
        } else {
            return Ok(Some(at));
        };
        at += 1 + usize::from(has_next);
    }
    Ok(None)
}

/// Where an engine makes the control group of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Below the group of the command that runs the container. What limits that group limits the container too.
    Below,
    /// Where systemd makes the groups of system services.
    System,
}

/// Where this engine makes the control group of a container, if deadheat makes groups of this version. Asks Docker, with these variables in the environment.
///
/// # Errors
/// Why such a container cannot be raced, with what to do.
pub fn place(engine: Engine, groups: CgroupKind, env: &[(String, String)]) -> Result<Place, String> {
    if engine == Engine::Podman {
        return Ok(Place::Below);
    }
    let driver = ask_with(engine, &["info", "--format", "{{.CgroupDriver}}"], env);
    let driver = driver.map_err(|error| format!("see whether `docker info` works: {error}"))?;
    place_with_docker(
        driver.trim(),
        if rustix::process::geteuid().is_root() { groups } else { CgroupKind::None },
    )
}

/// As [`place`], for Docker with this driver of control groups.
fn place_with_docker(driver: &str, groups: CgroupKind) -> Result<Place, String> {
    match (driver, groups) {
        (_, CgroupKind::None) => Err(
            "Docker starts containers outside of the command, where deadheat can freeze and read them only by control groups, as root: \
             run deadheat as root, or use podman"
                .into(),
        ),
        ("systemd", CgroupKind::V1) => Err(
            "Docker has systemd make the control groups of containers, where deadheat does not find those of version 1: \
             use podman, or start dockerd with --exec-opt native.cgroupdriver=cgroupfs"
                .into(),
        ),
        ("systemd", CgroupKind::V2) => Ok(Place::System),
        ("cgroupfs", _) => Ok(Place::Below),
        _ => Err(format!(
            "Docker says that `{}` makes the control groups of containers, where deadheat does not find them: use podman",
            crate::command::printable(driver)
        )),
    }
}

fn in_background() -> String {
    "a container that runs in the background cannot be raced: leave out -d and --detach".to_owned()
}

/// The command with what deadheat needs: a name and a label, no log of the engine's own, the keeper's options for control groups, and the
/// variables that deadheat sets. None if the command runs no container.
pub(super) fn with_options(command: &str, name: &str, run: &str, variables: &[&str]) -> Option<String> {
    let (engine, rest) = container_of(command)?;
    // Behind `exec`, nothing else of a list of commands would run.
    let exec = if is_alone(rest) { "exec " } else { "" };
    let mut words = vec![
        format!("{exec}{engine} {MANAGER} run --rm --name {name} --label {LABEL}={run} --log-driver none"),
        format!("${{{GROUPS_VARIABLE}-}} ${{{ID_FILE_VARIABLE}:+--cidfile=\"${ID_FILE_VARIABLE}\"}}"),
    ];
    words.extend(variables.iter().map(|name| format!("--env {name}")));
    words.push(rest.to_owned());
    Some(words.join(" "))
}

/// Whether these words of a shell command are the whole of it: no `;`, `&`, `|` or line break outside of quotes.
fn is_alone(words: &str) -> bool {
    let (mut quote, mut escaped) = (None, false);
    words.trim_end().chars().all(|one| {
        let was_escaped = std::mem::replace(&mut escaped, false);
        match (quote, one) {
            _ if was_escaped => {}
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(one),
            (Some(open), _) if open == one => quote = None,
            (None, ';' | '&' | '|' | '\n') => return false,
            _ => {}
        }
        true
    })
}

const CPUSET: &str = "--cpuset-cpus";

/// The processors that options of `run` hold a container to, as a list such as `0-2,5`.
pub fn processors<S: AsRef<str>>(options: &[S]) -> Option<&str> {
    options.iter().enumerate().rev().find_map(|(at, word)| match word.as_ref().strip_prefix(CPUSET)? {
        "" => options.get(at + 1).map(S::as_ref),
        rest => rest.strip_prefix('='),
    })
}

/// Whether a command that runs a container says itself on which processors.
pub(super) fn chooses_processors(command: &str) -> bool {
    let words = |rest: &'_ str| rest.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    container_of(command).is_some_and(|(_, rest)| processors(&words(rest)).is_some())
}

/// The option that holds a container to these processors; none if there are none.
pub fn option_for_processors(cpus: &[usize]) -> Option<String> {
    (!cpus.is_empty()).then(|| format!("{CPUSET}={}", listed(cpus)))
}

/// Names and removes the containers of runs that have ended, where an engine answers.
pub(super) fn left_behind() -> Vec<Finding> {
    Engine::ALL.into_iter().flat_map(left_behind_of).collect()
}

/// Removes the container of a command that was ended before there was one, in case the engine makes it nevertheless.
pub(super) fn remove_late(command: &str, name: &str) {
    let Some((engine, _)) = container_of(command) else { return };
    let begin = Instant::now();
    while begin.elapsed() < LATE {
        if ours(engine).is_ok_and(|names| names.iter().any(|one| one == name)) {
            remove(engine, name);
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Removes a container whose processes had to be killed, so that the engine had no time to.
pub(super) fn remove_killed(command: &str, name: &str) {
    if let Some((engine, _)) = container_of(command) {
        remove(engine, name);
    }
}

fn left_behind_of(engine: Engine) -> Vec<Finding> {
    let names = ours(engine).unwrap_or_default();
    let dead = names.into_iter().filter(|name| !lives(name.trim_start_matches(CGROUP_PREFIX)));
    let finding = |name: String| {
        let (what, remedy) = if remove(engine, &name) {
            ("it was removed", "nothing has to be done".to_owned())
        } else {
            ("it could not be removed", format!("remove it: {engine} rm --force {name}"))
        };
        let message = format!("container {name} is left over from an earlier run of deadheat; {what}");
        Finding::warn("leftover-container", message, remedy)
    };
    dead.map(finding).collect()
}

/// The names of the containers that deadheat started: those of their control groups, which say whose they are.
///
/// # Errors
/// As [`ask`].
fn ours(engine: Engine) -> Result<Vec<String>, AskError> {
    let filter = format!("label={LABEL}");
    let listed = ask(engine, &["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]);
    let named = |line: &str| line.starts_with(CGROUP_PREFIX).then(|| line.trim().to_owned());
    Ok(listed?.lines().filter_map(named).collect())
}

/// Kills and removes a container, and says whether it is gone.
fn remove(engine: Engine, name: &str) -> bool {
    // Podman would ask it to end first, and wait.
    let at_once: &[&str] = if engine == Engine::Podman { &["--time", "0"] } else { &[] };
    let words = [&["rm", "--force"], at_once, &[name]].concat();
    let removed = || match ask(engine, &words) {
        // Podman before version 4 does not know the option.
        Err(AskError::Refused(reason)) if reason.contains("--time") => ask(engine, &["rm", "--force", name]),
        other => other,
    };
    is_removed(removed, || Ok(ours(engine)?.iter().any(|one| one == name)))
}

/// Asks an engine to remove a container until it has, or until it does not answer.
fn is_removed(
    remove: impl Fn() -> Result<String, AskError>,
    is_there: impl Fn() -> Result<bool, AskError>,
) -> bool {
    // It refuses while something else, such as the engine's own watcher, is about to remove the container.
    for attempt in 0..ATTEMPTS {
        thread::sleep(PAUSE * attempt);
        match remove() {
            Ok(_) => return true,
            Err(AskError::NoAnswer(_)) => return false,
            Err(AskError::Refused(_)) => {}
        }
        match is_there() {
            Ok(false) => return true,
            Err(AskError::NoAnswer(_)) => return false,
            Ok(true) | Err(AskError::Refused(_)) => {}
        }
    }
    false
}

/// Why an engine did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It cannot be run, or did not end in time.
    #[error(transparent)]
    NoAnswer(#[from] io::Error),
    /// It failed. This is the first line of what it says.
    #[error("{0}")]
    Refused(String),
}

/// What an engine prints when it runs with these arguments.
///
/// # Errors
/// See [`AskError`].
pub fn ask(engine: Engine, arguments: &[&str]) -> Result<String, AskError> {
    ask_with(engine, arguments, &[])
}

fn ask_with(engine: Engine, arguments: &[&str], env: &[(String, String)]) -> Result<String, AskError> {
    let mut command = Command::new(engine.program());
    command.envs(env.iter().map(|(name, value)| (name, value))).args(arguments).stdin(Stdio::null());
    let output = answer_of(command, ANSWER)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(AskError::Refused(said.lines().next().map_or_else(|| output.status.to_string(), str::to_owned)))
}

/// Runs a command, and ends it if it has not ended after `patience`: some engines wait for ever if their daemon hangs. It stays in deadheat's group, so
/// that Ctrl-C ends it, too.
fn answer_of(mut command: Command, patience: Duration) -> io::Result<Output> {
    // Files and not pipes: what a command starts may hold them for as long as it likes, and no answer is too long for them.
    let file = || Ok::<_, io::Error>(File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?));
    let (mut stdout, mut stderr) = (file()?, file()?);
    let mut child = command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).spawn()?;
    let Some(status) = end_within(&mut child, patience)? else {
        // An engine that is killed while it removes a container leaves the container's network behind.
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        if end_within(&mut child, GRACE)?.is_none() {
            child.kill()?;
            child.wait()?;
        }
        let problem = format!("it did not answer within {} s", patience.as_secs());
        return Err(io::Error::new(io::ErrorKind::TimedOut, problem));
    };
    let said = |file: &mut File| {
        let mut text = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut text)?;
        Ok::<_, io::Error>(text)
    };
    Ok(Output { status, stdout: said(&mut stdout)?, stderr: said(&mut stderr)? })
}

/// Waits for a process for at most `patience`; none if it still runs.
fn end_within(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > patience {
            return Ok(None);
        }
        thread::sleep(GLANCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_run_containers_are_known() {
        for (command, expected) in [
            (
                "podman run --network host x:1 -p {port}",
                Some((Engine::Podman, "--network host x:1 -p {port}")),
            ),
            ("  exec docker  run x", Some((Engine::Docker, "x"))),
            ("podman run", Some((Engine::Podman, ""))),
            ("podman runner x", None),
            ("podmanrun x", None),
            ("podman build .", None),
            ("node podman run", None),
            ("", None),
        ] {
            assert_eq!(container_of(command), expected, "{command}");
        }
    }

    #[test]
    fn the_image_is_the_first_word_that_no_option_takes() {
        let found = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            image_at(&words).map(|at| at.map(|at| words[at].clone()))
        };
        for (line, image) in [
            ("x serve -d", "x"),
            ("--rm -it --detach-keys=a --device /d -e a=-d x", "x"),
            ("--network host --cpus 1 -u node x:1 --name y", "x:1"),
            ("-p 80:80 -p=80:80 -p80:80 -itv /a:/b -ie a=b x", "x"),
            ("--init --privileged=true --hostname redis x", "x"),
            ("--network=host -- x", "x"),
            ("--unsetenv-all --tls-verify --read-only x serve", "x"),
        ] {
            assert_eq!(found(line), Ok(Some(image.to_owned())), "{line}");
        }
        assert_eq!(found("--network host"), Ok(None));
        for line in ["-d x", "--network host --detach=true x", "-dit x", "-dp 80:80 x"] {
            assert!(found(line).unwrap_err().contains("-d and --detach"), "{line}");
        }
        for (line, option) in [
            ("--name web x", "--name"),
            ("--cgroup-parent=/a x", "--cgroup-parent"),
            ("--cidfile a x", "--cidfile"),
            ("--rm=false x", "--rm"),
        ] {
            assert!(found(line).unwrap_err().ends_with(option), "{line}");
        }
    }

    #[test]
    fn a_command_gets_what_deadheat_needs_and_keeps_what_it_says() {
        let full = with_options("podman run x:1 serve", "deadheat-1", "1:2", &["PORT"]).unwrap();
        assert_eq!(
            full,
            "exec podman ${DEADHEAT_CONTAINER_MANAGER-} run --rm --name deadheat-1 --label deadheat.run=1:2 --log-driver none \
             ${DEADHEAT_CONTAINER_GROUPS-} ${DEADHEAT_CONTAINER_ID_FILE:+--cidfile=\"$DEADHEAT_CONTAINER_ID_FILE\"} \
             --env PORT x:1 serve"
        );
        assert!(full.contains(MANAGER) && MANAGER.contains(MANAGER_VARIABLE));
        assert!(matches!(container_of(&full), Some((Engine::Podman, rest)) if rest.ends_with("x:1 serve")));
        assert_eq!(with_options("node server.js", "n", "r", &[]), None);
        // Behind `exec`, the second command would never run.
        for several in ["docker run x a && b", "podman run x a; b", "docker run x a | b", "podman run x a\nb"]
        {
            assert!(!with_options(several, "n", "r", &[]).unwrap().starts_with("exec"), "{several}");
        }
        for one in ["podman run x sh -c 'a && b; c'", r#"podman run x "a;b" a\;b"#, "podman run x\n"] {
            assert!(with_options(one, "n", "r", &[]).unwrap().starts_with("exec "), "{one}");
        }
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(processors(&words("--rm --cpuset-cpus 1,3 -q")), Some("1,3"));
        assert_eq!(processors(&words("--cpuset-cpus=0-2 --cpuset-mems=7")), Some("0-2"));
        assert_eq!(processors(&words("--cpus 1")), None);
        assert_eq!(option_for_processors(&[0, 3]).as_deref(), Some("--cpuset-cpus=0,3"));
        assert_eq!(option_for_processors(&[]), None);
        assert!(!chooses_processors(&full) && !chooses_processors("docker run --cpuset-mems 1 x"));
        for own in ["docker run --cpuset-cpus 1 x", "docker run --cpuset-cpus=1 x"] {
            assert!(chooses_processors(own), "{own}");
        }
    }

    #[test]
    fn an_engine_that_does_not_answer_is_not_waited_for() {
        let shell = |line: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", line]).stdin(Stdio::null());
            command
        };
        let output = answer_of(shell("echo here; echo there >&2; exit 3"), ANSWER).unwrap();
        assert_eq!(
            (output.status.code(), &output.stdout[..], &output.stderr[..]),
            (Some(3), &b"here\n"[..], &b"there\n"[..])
        );
        // What it leaves behind may hold its output, and its output may be longer than a pipe takes.
        let begin = Instant::now();
        let long = answer_of(shell("sleep 20 & yes | head -c 200000"), ANSWER).unwrap();
        assert_eq!((long.stdout.len(), begin.elapsed().as_secs() < 20), (200_000, true));
        let silent = answer_of(shell("exec sleep 4321"), Duration::ZERO).unwrap_err();
        assert!(silent.to_string().contains("did not answer within"), "{silent}");
    }

    #[test]
    fn a_container_is_gone_if_its_engine_says_so_and_a_silent_engine_is_not_asked_again() {
        let error = |word: &str| match word {
            "silent" => AskError::NoAnswer(io::ErrorKind::TimedOut.into()),
            _ => AskError::Refused(word.into()),
        };
        // What the engine answers to `rm`, and then to the question whether the container is there.
        for (answers, gone, asked) in [
            (&[("done", "")][..], true, 1),
            (&[("silent", "")], false, 1),
            (&[("busy", "gone")], true, 1),
            (&[("busy", "silent")], false, 1),
            (&[("busy", "there"), ("done", "")], true, 2),
            (&[("busy", "busy"), ("busy", "gone")], true, 2),
        ] {
            let count = std::cell::Cell::new(0);
            let remove = || {
                let (word, _) = answers[count.replace(count.get() + 1)];
                if word == "done" { Ok(String::new()) } else { Err(error(word)) }
            };
            let is_there = || match answers[count.get() - 1].1 {
                "there" => Ok(true),
                "gone" => Ok(false),
                word => Err(error(word)),
            };
            assert_eq!((is_removed(remove, is_there), count.get()), (gone, asked), "{answers:?}");
        }
    }

    #[test]
    fn docker_is_raced_where_its_containers_can_be_found() {
        use CgroupKind::{None, V1, V2};

        for (driver, groups, found) in [
            ("cgroupfs", V1, Ok(Place::Below)),
            ("cgroupfs", V2, Ok(Place::Below)),
            ("systemd", V2, Ok(Place::System)),
            ("systemd", V1, Err("native.cgroupdriver=cgroupfs")),
            ("systemd", None, Err("run deadheat as root")),
            ("cgroupfs", None, Err("run deadheat as root")),
            ("none", V2, Err("use podman")),
        ] {
            match (place_with_docker(driver, groups), found) {
                (Ok(place), found) => assert_eq!(Ok(place), found, "{driver} {groups:?}"),
                (Err(problem), found) => assert!(problem.contains(found.unwrap_err()), "{problem}"),
            }
        }
        assert_eq!(place(Engine::Podman, None, &[]), Ok(Place::Below));
    }
}
