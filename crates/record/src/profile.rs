//! Where contenders spend their CPU time: what a diagnostic pass with sampled stacks observed.
//!
//! Owns: the nouns, and the limits on their size. Must not know: how stacks are sampled, which contenders are compared, or how a profile is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ExternalReading, Record};

/// When a scenario is followed by a pass that samples where its contenders spend CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Never.
    #[default]
    Never,
    /// If a contender has the verdict "slower" in one of the scenario's metrics.
    Slower,
    /// After every scenario with a steady load.
    Always,
}

impl Why {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Never, Self::Slower, Self::Always];

    /// Whether there is never such a pass.
    pub fn is_never(&self) -> bool {
        *self == Self::Never
    }

    /// The word that the command line and records use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Slower => "slower",
            Self::Always => "always",
        }
    }
}

/// What a diagnostic pass observed of a contender: where it spent CPU time, and what it used. In this pass, the contender runs alone in a separate
/// start, at the same rate as the others, with the maps of its runtime's compiled code enabled. No other result uses this pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfilePass {
    /// The scenario whose requests and connections were used.
    pub scenario: String,
    /// The contender's name.
    pub contender: String,
    /// Requests per second that the generator sent. It is the same for all contenders of the scenario.
    pub rate_per_s: f64,
    /// Length of the load during which stacks were sampled, after the warm-up, in nanoseconds.
    pub load_ns: u64,
    /// Disturbance of the machine during this load.
    #[serde(default)]
    pub external: ExternalReading,
    /// Requests that the contender answered during this load.
    pub requests: u64,
    /// What the contender used during this load.
    pub used: ProfileUsage,
    /// The sampled stacks.
    pub stacks: Stacks,
}

/// What a contender's process tree used during the load of a diagnostic pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileUsage {
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Context switches of its living threads, voluntary and involuntary; absent if no thread could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<u64>,
    /// Page faults, with and without reading from disk; absent if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_faults: Option<u64>,
    /// System calls; absent if the kernel's tracepoint `raw_syscalls:sys_enter` may not be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<u64>,
    /// Bytes that the contender sent to the load generator, including the heads of answers.
    pub sent_bytes: u64,
    /// Bytes that the contender received from the load generator.
    pub received_bytes: u64,
    /// Growth of the proportional set size of the tree, in bytes; negative if it shrank, absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_growth_bytes: Option<i64>,
}

/// Sampled stacks of a process tree, merged over its threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stacks {
    /// The event that took the samples, in the words of `perf`: `cycles`, or `cpu-clock` where there are no counters.
    pub event: String,
    /// Whether only code in user mode was sampled, because the kernel's code may not be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user_only: bool,
    /// Number of samples.
    pub samples: u64,
    /// Number of samples that were lost because deadheat could not read them in time.
    #[serde(default)]
    pub lost: u64,
    /// Samples whose innermost function has no known name.
    #[serde(default)]
    pub unnamed: u64,
    /// The functions, in the order in which `calls` refers to them.
    pub functions: Vec<Function>,
    /// The tree of calls. Each entry has the index of its caller's entry (absent for an outermost function), the index of its function, and the number
    /// of samples in the function and everything that it called there. Callers come before what they call. Entries with few samples are omitted.
    pub calls: Vec<(Option<usize>, usize, u64)>,
}

impl Stacks {
    /// The name of code without a name: its file has no symbols, or it was compiled at run time and is not in a map.
    pub const UNNAMED: &str = "[no symbols]";
    /// The largest number of functions. The rest is one function with the name [`Self::REST`].
    pub const MOST_FUNCTIONS: usize = 2_000;
    /// The largest number of entries in the tree of calls.
    pub const MOST_CALLS: usize = 4_000;
    /// The most characters of a function's name.
    pub const LONGEST_NAME: usize = 200;
    /// The name that stands for the functions beyond the limit.
    pub const REST: &str = "[other functions]";
}

/// A function in which samples were taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Function {
    /// Its name, demangled. `[no symbols]` stands for code without a name. The names of the kernel's functions end with ` [kernel]`.
    pub name: String,
    /// The name of the source file, without folders, if a map of compiled code gives it; for code without a name, that of the program or library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line on which the function begins, if known. Functions with the same name and file are one function, and the line is that of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Samples in the function itself, without what it called.
    #[serde(default)]
    pub own: u64,
    /// Whether its name or its place tells that it belongs to a runtime, a library or the kernel, and not to the contender's own code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub library: bool,
}

impl Record {
    /// The profiles of one scenario, in time order.
    pub fn profiles_of<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a ProfilePass> {
        self.profiles.iter().filter(move |pass| pass.scenario == scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_for_the_pass_is_written_as_its_word() {
        for why in Why::ALL {
            assert_eq!(serde_json::to_value(why).unwrap(), why.word());
        }
    }
}
