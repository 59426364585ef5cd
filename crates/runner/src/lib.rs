//! A contender's life and a race's course: start, readiness, parity, schedule, freezing, usage, gates.
//!
//! Owns: processes, the order of slices, what is compared between answers, what is read from the machine.
//! Must not know: flags and study files, statistics (it asks `stats`), renderers.
#![warn(missing_docs)]

pub mod affinity;
mod ask;
mod authority;
mod awake;
pub mod ceiling;
mod cgroup;
mod check;
mod collector;
mod compare;
mod contender;
mod counters;
mod epoch;
mod events;
mod external;
mod field;
mod fixed_length;
mod handicap;
mod host;
pub mod instructions;
mod json_path;
mod judge;
pub mod keeper;
mod limits;
mod measured;
mod open_files;
mod parity;
mod peak;
mod ports;
mod race;
mod ready;
mod room;
mod run;
mod schedule;
mod single;
mod stall;
mod stretch;
mod throttle;
mod tree;
mod usage;

pub use authority::AuthorityError;
pub use awake::{Awake, CPU_LATENCY_DEVICE, usual_cpu_latency_us};
pub use cgroup::{Cgroup, Hierarchy};
pub use check::{Checked, check};
pub use compare::{Rules, RulesError};
pub use contender::StartError;
pub use events::{Event, Observer};
pub use handicap::MOST as LONGEST_HANDICAP;
pub use host::{machine, throttle_events, watch_noise};
pub use json_path::{JsonPath, JsonPathError, Step};
pub use judge::AskError;
pub use open_files::raise_open_files;
pub use parity::ContractError;
pub use race::{Finish, Race, RaceError, unix_ms};
pub use run::{RunId, leftovers};
