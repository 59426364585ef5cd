//! Tools for the end-to-end tests: a folder to work in, the `deadheat` binary under a time limit, servers that
//! behave well or badly, other hosts, and functions that find what a run left behind.
//!
//! Only tests call this crate, so its functions panic when something goes wrong, with all available details.
//! The crate knows the names of deadheat's options (`Race`), not what they do.
//!
//! ```no_run
//! use deadheat_testkit::{Kit, server_line};
//!
//! let kit = Kit::new("target/debug/deadheat"); // in a test: env!("CARGO_BIN_EXE_deadheat")
//! let outcome = kit
//!     .race()
//!     .contender("plain", &server_line(&["--body", "hi"]))
//!     .contender("slower", &server_line(&["--body", "hi", "--spin-us", "20"]))
//!     .args(["--epochs", "6..6", "--seed", "1"])
//!     .run();
//! outcome.assert_status(0);
//! assert_eq!(outcome.json()["schema"], "deadheat.record/1");
//! kit.assert_nothing_left();
//! ```
#![warn(missing_docs)]

mod authority;
mod bed;
mod cgroups;
mod client;
mod hold;
mod invocation;
mod kit;
mod network;
mod processes;
mod race;
mod server;
mod skip;
mod terminal;
mod turn;
mod wait;

pub use authority::{Authority, Identity};
pub use bed::{Bed, Host};
pub use cgroups::{cgroups_under, leftover_cgroups};
pub use client::{Client, Reply};
pub use hold::Hold;
pub use invocation::{Invocation, Outcome, Running};
pub use kit::Kit;
pub use processes::{
    Process, Signal, descendants, is_alive, kill_9, kill_all_with_env, processes_with_env, send_signal,
};
pub use race::Race;
pub use server::{TestServer, free_port, quote, server_command, server_line};
pub use skip::skipped;
pub use terminal::Terminal;
pub use turn::{SHORT_RACE, Turn, turn, turn_alone};
pub use wait::{line_count, wait_for_lines, wait_until};
