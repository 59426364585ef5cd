//! The order of a race: parity, pilot, epochs, rounds of slices, the record, and when to stop.
//!
//! Owns: that order, what is compared between answers, and when a round is left out. Must not know: how processes run and machines are
//! read (`host`), flags and study files (`study`), statistics, renderers. The machine, load generator, clock and the contents of files are passed in, so that
//! tests can run whole races on fakes.
#![warn(missing_docs)]

mod alone;
mod ask;
mod authority;
mod capture;
pub mod ceiling;
mod check;
mod collector;
mod compare;
mod encoding;
mod epoch;
mod events;
#[cfg(test)]
mod fakes;
mod fixed_length;
mod handicap;
mod launcher;
mod linked;
mod load_hosts;
mod loaded;
mod observe;
mod parity;
mod peak;
mod profile;
mod question;
mod race;
mod readings;
mod schedule;
mod unloaded;

pub use ask::{LoadGenerator, LocalGenerator, MAX_BODY, Question};
pub use authority::AuthorityError;
pub use check::{Checked, check};
pub use compare::{BodyRules, BodyRulesError};
pub use events::{Event, Observer};
pub use handicap::MOST as LONGEST_HANDICAP;
pub use linked::Linked;
pub use load_hosts::{LoadHostWork, LoadHostsWork};
pub use loaded::outcomes;
pub use observe::{Observed, observe};
pub use parity::{ContractError, ProbeFiles, QuestionError};
pub use race::{Finish, Place, Race, RaceError, due_unix_ms, spent_ns};
