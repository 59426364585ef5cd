//! A command of this program that runs on another machine, the one of the servers, as if it had been typed there.
//!
//! Owns: how a folder gets there, how the command is started and ended, and what comes back while it runs: what it writes to the
//! terminal, its record, its logs. Must not know: what is raced, how a record is read.
//!
//! The agent of a server host is another command than that of a load host ([`SERVER_AGENT_COMMAND`]): it writes files and starts this
//! program. Everything that it writes is in one folder, which it removes at the end.
//!
//! The command there may reach load hosts by ssh, but it has no keys. Its `ssh` is a script that hands its arguments and bytes to the
//! agent, the agent hands them to the controlling side, and that side runs the user's own ssh ([`relay`]).

use std::io::{self, Read};

mod agent;
mod control;
pub mod message;
pub mod relay;
mod under_agent;
mod work_folder;

pub use agent::{SERVER_AGENT_COMMAND, serve};
pub use control::{End, Feedback, ServerHost, ServerHostError, folder_name};
pub use relay::RELAY_COMMAND;
pub use under_agent::{UNDER_AGENT, UnderAgent};
pub use work_folder::{FILES, RECORD, WorkFolder};

/// The largest piece of output, record or log in one message, in bytes.
const PIECE: usize = 64 * 1024;

/// Hands each piece of what a program writes to `pass`, until nothing comes any more.
fn pieces(mut from: impl Read, mut pass: impl FnMut(Vec<u8>)) {
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece) {
            Ok(count @ 1..) => pass(piece[..count].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A terminal whose other end is closed gives an error.
            Ok(0) | Err(_) => return,
        }
    }
}
