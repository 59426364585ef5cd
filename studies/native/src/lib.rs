//! What the native contenders of all studies have in common: an HTTP server by hand, and JSON texts.
//!
//! Owns: sockets, epoll, heads of requests and answers. Must not know: what a study answers.

mod date;
mod http;
mod json;
mod server;

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::{env, io};

pub use http::path_and_query;
pub use json::{push_escaped, push_integer};
pub use server::{serve, serve_on_cores};

/// What stands before an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Status code and reason, such as `200 OK`.
    pub status: &'static str,
    /// Header lines, each with its `\r\n`; date, length and connection are added.
    pub headers: &'static str,
}

/// Whatever answers requests.
pub trait Answer {
    /// Appends the body of the answer to a request for `target`, path and query as sent; gives what stands before it.
    fn answer(&mut self, target: &[u8], body: &mut Vec<u8>) -> Head;
}

/// Runs a contender; what it fails of goes to standard error, with its name before it.
pub fn run(name: &str, contender: impl FnOnce() -> Result<(), Box<dyn Error>>) -> ExitCode {
    match contender() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where even this cannot be written, the exit status still tells.
            let _ = writeln!(io::stderr(), "{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The port that the environment variable `PORT` names.
///
/// # Errors
/// When it is not set or no port.
pub fn port() -> Result<u16, Box<dyn Error>> {
    Ok(env::var("PORT").map_err(|_| "PORT is not set: the port to serve on")?.parse::<u16>()?)
}
