//! Garbage collectors: how contenders log their pauses, and what a diagnostic pass observed.
//!
//! Owns: the nouns. Must not know: how a log is read, or how pauses are shown.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ExternalReading, Record};

/// The kind of garbage collector, which determines how its log is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CollectorKind {
    /// V8: Node.js, Deno and programs built on them.
    V8,
    /// JavaScriptCore: Bun and programs built on it.
    JavaScriptCore,
    /// The collector of the standard Go toolchain.
    Go,
}

impl CollectorKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::V8, Self::JavaScriptCore, Self::Go];

    /// The word that studies and records use.
    pub fn word(self) -> &'static str {
        match self {
            Self::V8 => "v8",
            Self::JavaScriptCore => "javascriptcore",
            Self::Go => "go",
        }
    }
}

/// A contender's garbage collector, and how deadheat enables its log. deadheat does so in the diagnostic pass only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collector {
    /// The kind of collector.
    pub kind: CollectorKind,
    /// Variables that deadheat adds to the contender's environment in the pass, with the same placeholders replaced. If the contender already sets a
    /// variable that holds options, the new options are appended to its value.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Pauses: periods in which the garbage collector stops the code of the contender in one of its processes or in one of the threads of its runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// Number of pauses.
    pub count: u64,
    /// Total length of all pauses, in nanoseconds, summed over processes.
    pub total_ns: u64,
    /// The longest pause, in nanoseconds.
    pub longest_ns: u64,
    /// Lengths in nanoseconds of the pauses that were logged individually, in the order of the log, up to [`Pauses::MOST_EACH`] of them.
    #[serde(default)]
    pub each_ns: Vec<u64>,
    /// Number of pauses that `each_ns` does not list: those above its limit, and those for which the log gives only the sum and the longest.
    #[serde(default)]
    pub omitted: u64,
}

impl Pauses {
    /// The most pauses that are listed individually.
    pub const MOST_EACH: usize = 1_000;

    /// Adds one pause.
    pub fn add(&mut self, ns: u64) {
        self.add_sum(1, ns, ns);
        if self.each_ns.len() < Self::MOST_EACH {
            self.each_ns.push(ns);
            self.omitted -= 1;
        }
    }

    /// Adds pauses for which only the number, the sum and the longest are known.
    pub fn add_sum(&mut self, count: u64, total_ns: u64, longest_ns: u64) {
        self.count = self.count.saturating_add(count);
        self.omitted = self.omitted.saturating_add(count);
        self.total_ns = self.total_ns.saturating_add(total_ns);
        self.longest_ns = self.longest_ns.max(longest_ns);
    }
}

/// What a diagnostic pass observed of a contender's collector. In this pass, the contender runs alone in a separate start with the log of its
/// collector enabled. No other result uses this pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectorPass {
    /// The scenario whose load was used.
    pub scenario: String,
    /// The contender's name.
    pub contender: String,
    /// The kind of collector whose log was read.
    pub kind: CollectorKind,
    /// Length of the load during which pauses were counted, after the warm-up, in nanoseconds.
    pub load_ns: u64,
    /// Disturbance of the machine during this load. A pause takes longer if something else uses the core.
    #[serde(default)]
    pub external: ExternalReading,
    /// Requests that the contender answered during this load.
    pub requests: u64,
    /// Pauses that the log reports for this load.
    pub pauses: Pauses,
    /// The log file.
    pub log: PathBuf,
}

impl Record {
    /// The diagnostic passes of one scenario, in time order.
    pub fn collectors_of<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a CollectorPass> {
        self.collectors.iter().filter(move |pass| pass.scenario == scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_add_up_and_only_the_first_are_kept() {
        let mut pauses = Pauses::default();
        (1..=1_500).for_each(|ns| pauses.add(ns));
        pauses.add_sum(10, 5_000, 2_000);
        assert_eq!((pauses.count, pauses.omitted, pauses.each_ns.len()), (1_510, 510, 1_000));
        assert_eq!((pauses.total_ns, pauses.longest_ns), (1_500 * 1_501 / 2 + 5_000, 2_000));
        assert_eq!((pauses.each_ns[0], pauses.each_ns[999]), (1, 1_000));
        pauses.add_sum(u64::MAX, u64::MAX, 0);
        assert_eq!((pauses.count, pauses.longest_ns), (u64::MAX, 2_000));
    }

    #[test]
    fn a_kind_is_written_as_its_word() {
        for kind in CollectorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
        }
    }
}
