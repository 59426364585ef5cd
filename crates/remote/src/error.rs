//! Why another machine cannot be used, in words that name it.

/// Why another machine cannot be used, or cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The program that leads to the host cannot be started.
    #[error("cannot start `{program}` to reach the host {host}: {reason}")]
    Start {
        /// The host.
        host: String,
        /// The program.
        program: String,
        /// The system's reason.
        reason: String,
    },
    /// The channel ended, or nothing came, before the agent had said a word.
    #[error("cannot reach the host {host}: {reason}")]
    Unreachable {
        /// The host.
        host: String,
        /// What the program that leads to it said.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The program cannot be copied to the host.
    #[error("deadheat cannot copy itself to the host {host}: {reason}")]
    Refused {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The host cannot run the program that deadheat copied to it.
    #[error("the host {host} cannot run this build of deadheat: {reason}")]
    Foreign {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The agent is of another version.
    #[error("the agent on the host {host} is of version {theirs}, but this is version {ours}")]
    Version {
        /// The host.
        host: String,
        /// Protocol and version here.
        ours: String,
        /// Protocol and version there.
        theirs: String,
    },
    /// The channel ended.
    #[error("the load host {host} was lost: {reason}")]
    Ended {
        /// The host.
        host: String,
        /// What the program that leads to it said, or how it ended.
        reason: String,
    },
    /// Nothing was heard for the deadline.
    #[error("the load host {host} was lost: nothing was heard from it for {seconds} s{seen}")]
    Silent {
        /// The host.
        host: String,
        /// The deadline in seconds, as text.
        seconds: String,
        /// What others say of the host, after a semicolon; may be empty.
        seen: String,
    },
    /// A message is too large or malformed.
    #[error("the channel to the load host {host} failed: {reason}")]
    Channel {
        /// The host.
        host: String,
        /// What is wrong with the message.
        reason: String,
    },
    /// The host could not do what it was asked for.
    #[error("load host {host}: {reason}")]
    Failed {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
        /// Whether the host or its generator is the reason, and not the server.
        own: bool,
    },
    /// A cluster cannot carry the load.
    #[error(transparent)]
    Cluster(Box<crate::kubernetes::ClusterError>),
    /// There are fewer connections than hosts.
    #[error("{connections} connections cannot be divided over {hosts} load hosts: each needs at least one")]
    TooFewConnections {
        /// Connections of the whole load.
        connections: usize,
        /// Hosts.
        hosts: usize,
    },
}

impl RemoteError {
    /// No thread could be started to talk to this host.
    pub(crate) fn no_thread(host: &str, error: &std::io::Error) -> Self {
        Self::Unreachable {
            host: host.to_owned(),
            reason: format!("no thread could be started: {error}"),
            remedy: "raise the limits of this process (ulimit -a)",
        }
    }

    /// Whether the host was there and is not any more.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Ended { .. } | Self::Silent { .. } | Self::Channel { .. })
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        let fixed = match self {
            Self::Cluster(error) => return error.remedy(),
            Self::Start { .. } => {
                "install ssh, or name another program in the environment variable DEADHEAT_SSH"
            }
            Self::Unreachable { remedy, .. } => remedy,
            Self::Refused { .. } => "repair that on the host, and repeat the command",
            Self::Foreign { .. } => {
                "run a build of deadheat here that needs no other libraries: `cargo build --release --target \
                 x86_64-unknown-linux-musl` makes one for any Linux on x86_64"
            }
            Self::Version { .. } => "run the same version on both machines",
            Self::Ended { .. } | Self::Silent { .. } => {
                "look at the load host and at the network to it, and repeat the load"
            }
            Self::Channel { .. } => "send fewer or smaller requests; otherwise report this as a defect",
            Self::Failed { .. } => {
                "addresses are those that the load host sees: start the server first, or correct the address"
            }
            Self::TooFewConnections { .. } => "raise -c, or name fewer load hosts",
        };
        fixed.into()
    }
}
