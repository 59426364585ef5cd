//! The events of a running race. The observer decides how to show them.

use std::time::Duration;

use deadheat_record::{Difference, Finding, Record};

/// One thing that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The current step, in a few words: `starting go`, `parity`, `warming up bun (2 of 7)`.
    Doing(&'a str),
    /// A contender does not answer yet, for a reason that the user should know now.
    Waiting {
        /// The contender's name.
        contender: &'a str,
        /// The reason, such as `it listens on port 3000, not on 27346 (PORT)`.
        reason: &'a str,
    },
    /// A contender cannot take part in the race, or dropped out of it.
    Out {
        /// The contender's name.
        contender: &'a str,
        /// The reason, with a remedy. It may have several lines.
        reason: &'a str,
    },
    /// A parity check found differences.
    Parity(&'a [Difference]),
    /// Something weakens the measurements.
    Finding(&'a Finding),
    /// A scenario starts, resumes or starts again, or a contender dropped out of it. The record shows its state and its remaining
    /// contenders.
    Racing {
        /// The record, with what the scenario has so far.
        record: &'a Record,
        /// The scenario's name.
        scenario: &'a str,
    },
    /// The pilot has found the warm-up length of a scenario.
    Pilot {
        /// The scenario's name.
        scenario: &'a str,
        /// The warm-up of every contender in every epoch.
        warmup: Duration,
    },
    /// A round has ended.
    Round {
        /// The number of the round, from 1 to `rounds`.
        round: u32,
        /// The number of rounds in an epoch.
        rounds: u32,
        /// The number of the epoch, from 1.
        epoch: usize,
        /// Completions per second of each slice: the contender's index in the plan, and its rate.
        rates: &'a [(usize, Option<f64>)],
    },
    /// An epoch was added to the record.
    Epoch {
        /// The record with the epoch.
        record: &'a Record,
        /// The scenario's name.
        scenario: &'a str,
    },
    /// A scenario has ended.
    Scenario {
        /// The record with its end.
        record: &'a Record,
        /// The scenario's name.
        scenario: &'a str,
    },
}

/// Receives the events of a race.
pub trait Observer {
    /// Called in the order of events, from the race's own thread, never while a slice runs.
    fn event(&mut self, event: &Event<'_>);
}
