//! All tests of the servers and the harness, as one program: linked once.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod bed;
mod harness;
mod server;
mod tls;
