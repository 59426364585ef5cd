//! The way to a host by the user's own `ssh`, and the copy of this program that runs there.
//!
//! Owns: the text of a host, ssh's options, and the shell commands that install and start the agent. Must not know: what
//! the agent does.

use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::agent::{AGENT_COMMAND, ONLY_OPTION};
use crate::server_host::SERVER_AGENT_COMMAND;

/// The environment variable that names another program than `ssh`. It gets the same arguments.
pub const SSH_VARIABLE: &str = "DEADHEAT_SSH";

/// Wait for more lines of a refusal.
pub(crate) const REFUSED_REST: Duration = Duration::from_millis(200);

/// Digits of the digest in the name of the folder on the host. The whole digest is compared as well.
const SHORT: usize = 16;

/// ssh asks for nothing, because nobody could answer; it notices a dead connection; it forwards nothing, whatever its
/// configuration says; and it does not become the master of later connections, because it would not end with this one.
const OPTIONS: [&str; 17] = [
    "-T",
    "-a",
    "-x",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=2",
    "-o",
    "ServerAliveCountMax=5",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "ControlMaster=no",
    "-o",
    "EscapeChar=none",
];

/// A machine that is reached by ssh. Names and ports that are left out are those of ssh's own configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SshTarget {
    user: Option<String>,
    host: String,
    port: Option<u16>,
}

/// Why a text does not name a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write it like ssh://user@host or ssh://host:2222")]
pub struct SshTargetError;

impl FromStr for SshTarget {
    type Err = SshTargetError;

    fn from_str(text: &str) -> Result<Self, SshTargetError> {
        let rest = text.strip_prefix("ssh://").ok_or(SshTargetError)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user.to_owned()), place),
            None => (None, rest),
        };
        let (host, port) = match place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((address, rest)) => {
                address.parse::<Ipv6Addr>().map_err(|_| SshTargetError)?;
                let port =
                    if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(SshTargetError)?) };
                (address, port)
            }
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map(|port| port.parse().ok().filter(|port| *port > 0).ok_or(SshTargetError));
        // A name that begins with `-` would be an option of ssh.
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.starts_with('-')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte))
        };
        if !is_name(host) || user.as_deref().is_some_and(|user| !is_name(user) || user.contains(':')) {
            return Err(SshTargetError);
        }
        Ok(Self { user, host: host.to_owned(), port: port.transpose()? })
    }
}

impl fmt::Display for SshTarget {
    /// Without `ssh://`: `user@host:port`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(out, "{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(out, "[{}]", self.host)?,
            false => write!(out, "{}", self.host)?,
        }
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

impl SshTarget {
    /// The command that starts the agent of a load host. It copies the program first if the host lacks it.
    pub fn command(&self, program: &Program) -> Command {
        self.start(program, AGENT_COMMAND)
    }

    /// As [`Self::command`], for an agent that reaches `only` this address.
    pub fn command_for_only(&self, program: &Program, only: IpAddr) -> Command {
        self.start(program, &format!("{AGENT_COMMAND} {ONLY_OPTION} {only}"))
    }

    /// The command that starts the agent of a server host. It copies the program first if the host lacks it.
    pub fn server_command(&self, program: &Program) -> Command {
        self.start(program, SERVER_AGENT_COMMAND)
    }

    /// The name or address of the machine, without user and port, as ssh gets it.
    pub fn host(&self) -> &str {
        &self.host
    }

    fn start(&self, program: &Program, agent: &str) -> Command {
        let ssh = std::env::var_os(SSH_VARIABLE).filter(|name| !name.is_empty());
        let mut command = Command::new(ssh.unwrap_or_else(|| "ssh".into()));
        command.args(OPTIONS);
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        if let Some(user) = &self.user {
            command.args(["-l", user]);
        }
        command.arg("--").arg(&self.host).arg(program.start(agent));
        command
    }
}

/// This program, as it is copied to a host.
#[derive(Debug, Clone)]
pub struct Program {
    bytes: Arc<[u8]>,
    digest: String,
    version: String,
}

impl Program {
    /// The program that is running, which says that it is of this version.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn running(version: &str) -> io::Result<Self> {
        Ok(Self::of(fs::read("/proc/self/exe")?, version))
    }

    /// A program of these bytes.
    pub fn of(bytes: Vec<u8>, version: &str) -> Self {
        let digest = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { bytes: bytes.into(), digest, version: version.to_owned() }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The shell command that makes sure that the host has this program and becomes its agent. It is one line without a
    /// backslash, and the whole script is in single quotes, so that every shell reads it in the same way.
    fn start(&self, agent: &str) -> String {
        let Self { bytes, digest, version } = self;
        let (size, short) = (bytes.len(), &digest[..SHORT]);
        let script = format!(
            "umask 077; \
             f=\"${{XDG_CACHE_HOME:-$HOME/.cache}}/deadheat/agents/{version}-{short}/deadheat\"; t=\"$f.$$\"; \
             refuse() {{ echo \"deadheat: refused $1\"; exit 1; }}; \
             same() {{ [ -f \"$1\" ] && [ \"$(sha256sum < \"$1\" | cut -c 1-64)\" = {digest} ]; }}; \
             command -v sha256sum > /dev/null || refuse \"it has no sha256sum\"; \
             if same \"$f\"; then :; else \
             mkdir -p \"${{f%/*}}\" || refuse \"the folder ${{f%/*}} cannot be made\"; \
             remove() {{ rm -f \"$t\"; }}; trap remove EXIT; trap \"exit 1\" HUP INT TERM PIPE; \
             echo \"deadheat: send\"; head -c {size} > \"$t\"; \
             same \"$t\" || refuse \"the program did not arrive whole; is there room for $t?\"; \
             chmod 700 \"$t\"; said=$(\"$t\" --version 2>&1); \
             [ \"$said\" = \"deadheat {version}\" ] || {{ echo \"deadheat: foreign $(uname -sm): $said\"; exit 1; }}; \
             mv -f \"$t\" \"$f\" || refuse \"$f cannot be written\"; trap - EXIT; fi; \
             echo \"deadheat: ready\"; exec \"$f\" {agent}"
        );
        format!("exec sh -c '{script}'")
    }
}

/// What the shell on the host says while it installs the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// It waits for the program's bytes.
    Send,
    /// The program cannot be copied.
    Refused(&'a str),
    /// The program was copied and does not run.
    Foreign(&'a str),
    /// The agent comes next.
    Ready,
}

/// Reads such a line; `None` for any other text.
pub(crate) fn installing(line: &str) -> Option<Line<'_>> {
    match line.strip_prefix("deadheat: ")? {
        "send" => Some(Line::Send),
        "ready" => Some(Line::Ready),
        said => {
            let foreign = || said.strip_prefix("foreign ").map(Line::Foreign);
            said.strip_prefix("refused ").map(Line::Refused).or_else(foreign)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_and_written() {
        for (text, written) in [
            ("ssh://a", "a"),
            ("ssh://me@a.example/", "me@a.example"),
            ("ssh://me@a:2222", "me@a:2222"),
            ("ssh://10.0.0.1:22", "10.0.0.1:22"),
            ("ssh://me@[2001:db8::1]:22", "me@[2001:db8::1]:22"),
            ("ssh://[::1]", "[::1]"),
            ("ssh://load_1", "load_1"),
        ] {
            assert_eq!(
                text.parse::<SshTarget>().map(|one| one.to_string()),
                Ok(written.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_ssh_would_take_for_something_else_is_refused() {
        for text in [
            "",
            "a",
            "ssh://",
            "ssh://@a",
            "ssh://-oProxyCommand=x",
            "ssh://-l@a",
            "ssh://a b",
            "ssh://a:0",
            "ssh://a:x",
            "ssh://a:70000",
            "ssh://[a]",
            "ssh://[::1]x",
            "ssh://me:secret@a",
            "ssh://a/b",
            "ssh://a;b",
            "http://a",
            "ssh://\u{1b}[2J",
        ] {
            assert_eq!(text.parse::<SshTarget>(), Err(SshTargetError), "{text}");
        }
    }

    #[test]
    fn every_shell_reads_the_script_in_the_same_way() {
        let start = Program::of(b"program".to_vec(), "0.1.0").start(AGENT_COMMAND);
        let inner = start.strip_prefix("exec sh -c '").and_then(|rest| rest.strip_suffix('\'')).unwrap();
        assert!(!inner.contains(['\'', '\\', '\n', '!']), "{inner}");
        assert!(inner.contains("agents/0.1.0-") && inner.ends_with("exec \"$f\" agent"), "{inner}");
    }

    #[test]
    fn ssh_gets_host_user_and_port_and_asks_nothing() {
        let target: SshTarget = "ssh://me@a:2222".parse().unwrap();
        let command = target.command(&Program::of(b"program".to_vec(), "0.1.0"));
        let arguments: Vec<String> =
            command.get_args().map(|one| one.to_string_lossy().into_owned()).collect();
        let line = arguments.join(" ");
        assert!(line.contains("BatchMode=yes") && line.contains("-p 2222 -l me -- a exec sh -c"), "{line}");
        let only = target.command_for_only(&Program::of(b"program".to_vec(), "0.1.0"), [10, 0, 0, 5].into());
        let arguments: Vec<String> = only.get_args().map(|one| one.to_string_lossy().into_owned()).collect();
        let script = arguments.last().unwrap();
        assert!(script.ends_with("exec \"$f\" agent --only 10.0.0.5'"), "{script}");
    }
}
