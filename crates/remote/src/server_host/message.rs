//! What the controlling side and the agent of a server host say to each other.
//!
//! Owns: the messages. Must not know: how they travel.
//!
//! The first lines of both sides are those of the load hosts' agents, and so are frames.

use serde::{Deserialize, Serialize};

/// What the controlling side asks for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerOrder {
    /// Answer with a [`ServerReply::Pong`]. It is sent all the time and shows that this side is alive.
    Ping(u64),
    /// Make an empty work folder of this name.
    Begin {
        /// Lower-case letters and digits.
        name: String,
    },
    /// Put this into the work folder.
    Put(Entry),
    /// Start the command.
    Run(RunOrder),
    /// Ask the command to end in an orderly way, as Ctrl-C does.
    Interrupt,
    /// What an ssh that runs for the command says.
    Ssh {
        /// The number that the agent gave to it.
        number: u32,
        /// What it says.
        output: SshOutput,
    },
}

/// A piece of the content of a folder. Paths are relative, with `/` between their parts. A folder comes before what is in it, and links
/// come last.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A folder.
    Folder {
        /// Its path.
        path: String,
    },
    /// A file. Its bytes follow.
    File {
        /// Its path.
        path: String,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// The record of a race to be continued. Its bytes follow. It is not in the folder, but beside it.
    Record,
    /// The next bytes of the file that came last. Each such piece is answered with [`ServerReply::Stored`].
    Bytes(Vec<u8>),
    /// A symbolic link.
    Link {
        /// Its path.
        path: String,
        /// What it contains.
        target: String,
    },
}

/// How to start the command.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOrder {
    /// Where it runs: a path in the folder of sent files.
    pub folder: String,
    /// The arguments of this program.
    pub arguments: Vec<String>,
    /// Variables to set.
    pub environment: Vec<(String, String)>,
    /// The user's terminal, if output goes to one.
    pub terminal: Option<Terminal>,
    /// Whether the command may ask for an ssh.
    pub relay: bool,
    /// How many bytes of the record the controlling side has.
    pub record_bytes: u64,
}

/// The terminal of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    /// Its width in characters.
    pub columns: u16,
    /// Its height in lines.
    pub rows: u16,
    /// Whether standard output goes to it.
    pub output: bool,
    /// Whether standard error goes to it.
    pub errors: bool,
}

/// One of the outputs of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error, and a terminal that gets both.
    Errors,
}

/// What the agent of a server host says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerReply {
    /// The agent is alive.
    Pong(u64),
    /// The work folder is there.
    Begun {
        /// Its path.
        path: String,
    },
    /// A piece of a file is stored.
    Stored,
    /// The command is being started. If that fails, the reason follows.
    Started,
    /// The command wrote this.
    Written {
        /// Where to.
        stream: Stream,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The record has grown by these bytes.
    Record(Vec<u8>),
    /// The last bytes of a log file, which come when the command has ended.
    Log {
        /// Its path below the folder of logs.
        path: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The command asks for an ssh, or talks to one.
    Ssh {
        /// A number for it.
        number: u32,
        /// What the command says.
        input: SshInput,
    },
    /// The command has ended, and the work folder is removed.
    Ended {
        /// Its exit status; none after a signal.
        status: Option<i32>,
        /// The status in words.
        how: String,
        /// Why something of the work folder is still there, if it is.
        left: Option<String>,
    },
    /// What was ordered failed; with the reason.
    Failed(String),
}

/// What a program that stands in for ssh says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SshInput {
    /// Start ssh with these arguments. This comes first.
    Start(Vec<String>),
    /// Bytes for its standard input.
    Bytes(Vec<u8>),
    /// Its standard input ends.
    End,
    /// Nobody waits for it any more.
    Gone,
}

/// What an ssh says that runs for another program.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SshOutput {
    /// Bytes of its standard output.
    Output(Vec<u8>),
    /// Bytes of its standard error.
    Errors(Vec<u8>),
    /// It ended with this exit status.
    Ended(u8),
}
