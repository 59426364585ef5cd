//! Collectors: how contenders are made to log their pauses, and what a diagnostic pass saw of them.
//!
//! Owns the nouns. Must not know how a log is read, or how pauses are shown.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ExternalReading, Record};

/// Whose garbage collector it is, and so how its log is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CollectorKind {
    /// V8: Node.js, Deno and what is built of them.
    V8,
    /// JavaScriptCore: Bun and what is built of it.
    JavaScriptCore,
    /// The collector of Go's own toolchain.
    Go,
}

impl CollectorKind {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::V8, Self::JavaScriptCore, Self::Go];

    /// As it is written in studies and records.
    pub fn word(self) -> &'static str {
        match self {
            Self::V8 => "v8",
            Self::JavaScriptCore => "javascriptcore",
            Self::Go => "go",
        }
    }
}

/// A contender's garbage collector, and how it is made to log: in the diagnostic pass only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collector {
    /// Whose it is.
    pub kind: CollectorKind,
    /// Added to the contender's environment in the pass, with the same replacements. What the contender has already in a variable
    /// of options stays before it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Pauses: times for which no code of the contender ran, in one of its processes or threads of its runtime, because its garbage
/// collector did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// How many.
    pub count: u64,
    /// All of them together, in nanoseconds; of several processes their sum.
    pub total_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// Those that were logged one by one, in the log's order, up to [`Pauses::MOST_EACH`].
    #[serde(default)]
    pub each_ns: Vec<u64>,
    /// How many are not among them: those beyond, and those of which the log has only the sum and the longest.
    #[serde(default)]
    pub omitted: u64,
}

impl Pauses {
    /// So many pauses are kept one by one.
    pub const MOST_EACH: usize = 1_000;

    /// Takes in one pause.
    pub fn add(&mut self, ns: u64) {
        self.add_sum(1, ns, ns);
        if self.each_ns.len() < Self::MOST_EACH {
            self.each_ns.push(ns);
            self.omitted -= 1;
        }
    }

    /// Takes in pauses of which only their number, sum and longest are known.
    pub fn add_sum(&mut self, count: u64, total_ns: u64, longest_ns: u64) {
        self.count = self.count.saturating_add(count);
        self.omitted = self.omitted.saturating_add(count);
        self.total_ns = self.total_ns.saturating_add(total_ns);
        self.longest_ns = self.longest_ns.max(longest_ns);
    }
}

/// What a diagnostic pass saw of a contender's collector: one start that counts for nothing else, alone, with its logging on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectorPass {
    /// The scenario whose load it was.
    pub scenario: String,
    /// Who.
    pub contender: String,
    /// Whose log was read.
    pub kind: CollectorKind,
    /// How long the contender was loaded while pauses were counted, after its warm-up.
    pub load_ns: u64,
    /// What the machine did meanwhile: a pause is longer where something else has the core.
    #[serde(default)]
    pub external: ExternalReading,
    /// Requests that it answered meanwhile.
    pub requests: u64,
    /// What the log said meanwhile.
    pub pauses: Pauses,
    /// The log.
    pub log: PathBuf,
}

impl Record {
    /// What diagnostic passes saw under the load of one scenario, in time order.
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
