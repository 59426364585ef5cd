//! What a race tells while it runs. Whoever shows it decides how.

use std::time::Duration;

use deadheat_record::{Difference, Finding, Record};

/// One thing that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// What is done now, in a few words: `starting go`, `parity`, `warming up bun (2 of 7)`.
    Doing(&'a str),
    /// A contender cannot be raced, or no longer.
    Out {
        /// Who.
        contender: &'a str,
        /// Why, with a remedy; may have several lines.
        reason: &'a str,
    },
    /// A parity check found differences.
    Parity(&'a [Difference]),
    /// Something weakens what is measured.
    Finding(&'a Finding),
    /// A scenario begins, is gone on with or begins anew, or somebody fell out of it: how it stands, and who races in it.
    Racing {
        /// The record, with what the scenario has so far.
        record: &'a Record,
        /// The scenario's name.
        scenario: &'a str,
    },
    /// A scenario's warm-up length is known.
    Pilot {
        /// The scenario's name.
        scenario: &'a str,
        /// The warm-up of every contender in every epoch.
        warmup: Duration,
    },
    /// A round is over.
    Round {
        /// From 1, of `rounds`.
        round: u32,
        /// Rounds in an epoch.
        rounds: u32,
        /// From 1.
        epoch: usize,
        /// Completions per second of each slice: index into the plan's contenders, rate.
        rates: &'a [(usize, Option<f64>)],
    },
    /// An epoch is in the record.
    Epoch {
        /// The record with the epoch.
        record: &'a Record,
        /// The scenario's name.
        scenario: &'a str,
    },
    /// A scenario is over.
    Scenario {
        /// The record with its end.
        record: &'a Record,
        /// The scenario's name.
        scenario: &'a str,
    },
}

/// Takes in what a race tells.
pub trait Observer {
    /// Called in the order of events, from the race's own thread, never while a slice runs.
    fn event(&mut self, event: &Event<'_>);
}
