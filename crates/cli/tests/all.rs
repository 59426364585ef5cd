//! All tests of the program but those of its gates, as one program: linked once, and its races take turns.
//!
//! Tests run side by side, so that none may rely on a quiet machine, change what the process shares (limits, folder, environment), or
//! expect a process, a port or a control group to be the only one of its kind.
#![allow(clippy::unwrap_used)]

mod attempts;
mod audit;
mod bad_contenders;
mod collectors;
mod common;
mod compare;
mod containers;
mod control_cost;
mod docker;
mod docs;
mod doctor;
mod house;
mod init;
mod keeper;
mod kept;
mod killed;
mod links;
mod live;
mod load;
mod load_hosts;
mod null;
mod over_tls;
mod parity_trending;
mod plants;
mod races;
mod report;
mod revisions;
mod server_hosts;
mod shipped_studies;
mod study_runs;
mod sudden_ends;
mod why;
