//! What a person chooses of a race: selection, load, method and machine, as the command line reads it.
//!
//! Owns: the options that the plan depends on, with their help. Every option is absent unless it is typed; defaults are the plan's.
//! Must not know: the machine, contents of studies.

use std::time::Duration;

use clap::{Args, ValueEnum};
use deadheat_record::{Metric, Objective};
use thiserror::Error;

use crate::values::{self, CpuList, EpochRange};

/// Wrong usage: what is wrong and what to do about it. Exit status 2.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem}\n  {remedy}")]
pub struct UsageError {
    /// What is wrong, with what was found.
    pub problem: String,
    /// What to type instead.
    pub remedy: String,
}

impl UsageError {
    /// An error with its remedy.
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }
}

/// What to do about a contender with a fixed port that runs twice at the same time.
pub(crate) const READ_PORT: &str =
    "let it read its port from PORT or {port}, and remove `port` from the study";

/// Everything by which the plan can be chosen; what is absent is the profile's or the study's.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Choices {
    /// Which contenders and scenarios are raced.
    #[command(flatten)]
    pub selection: Selection,
    /// How contenders are loaded.
    #[command(flatten)]
    pub load: LoadChoices,
    /// How it is measured and decided.
    #[command(flatten)]
    pub method: MethodChoices,
    /// Which cores belong to whom.
    #[command(flatten)]
    pub machine: MachineChoices,
}

/// Who is raced, and in which scenarios.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Selection")]
pub struct Selection {
    /// Race only these contenders; comma-separated, may be repeated [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Race only in these scenarios of the study; comma-separated, may be repeated [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub scenario: Vec<String>,
    /// Compare all others with this contender only [default: the first; with three or more, every pair]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
}

/// How contenders are loaded; with a study, instead of what its scenarios say.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadChoices {
    /// Number of connections [default: the scenario's, else 64]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub connections: Option<u32>,
    /// Send this many requests per second, however fast answers come [default: each connection waits for its answer]
    #[arg(short, long, value_name = "RATE", value_parser = values::rate)]
    pub rate: Option<f64>,
    /// Find each contender's highest rate that meets this objective, such as 'p99 < 10ms'; instead of --rate
    #[arg(long, value_name = "OBJECTIVE", value_parser = values::objective, conflicts_with_all = ["rate", "metric"])]
    pub slo: Option<Objective>,
    /// Count a request as failed if its answer takes longer than this [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub timeout: Option<Duration>,
    /// Give up on a contender that gives no right answer within this time [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub ready_timeout: Option<Duration>,
    /// Give up on a build command that takes longer than this [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub build_timeout: Option<Duration>,
}

/// How it is measured and decided.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Method")]
pub struct MethodChoices {
    /// Metrics to compare, the most important first; comma-separated [default: throughput; with --rate: p50,p99]
    #[arg(long, value_parser = values::metric(&Metric::OF_LOADS), value_name = "METRIC,..", value_delimiter = ',')]
    pub metric: Vec<Metric>,
    /// quick: 4 to 12 epochs in about 3 minutes; full: 6 to 30 epochs with a longer warm-up [default: quick]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub profile: Option<ProfileWord>,
    /// Fewest and most epochs (fresh starts), 3 to 200; one number means exactly that many [default: the profile's]
    #[arg(long, value_name = "MIN..MAX", value_parser = EpochRange::parse)]
    pub epochs: Option<EpochRange>,
    /// Start no epoch that would end after this time [default: 3m or more with quick; none with full or --epochs N]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub budget: Option<Duration>,
    /// Spread the epochs of each scenario over this time, such as 8h: intervals then cover what changes from hour to hour
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub over: Option<Duration>,
    /// Treat ratios this close to 1 as equivalent [default: 3%]
    #[arg(long, value_name = "PERCENT", value_parser = values::margin)]
    pub margin: Option<f64>,
    /// Two-sided error rate of each scenario [default: 0.025]
    #[arg(long, value_name = "SHARE", value_parser = values::alpha)]
    pub alpha: Option<f64>,
    /// Race the baseline also against itself, to see how much identical code differs [default: with --git if CI is set]
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", hide_possible_values = true)]
    pub control: Option<YesNo>,
    /// Seed of every random order [default: a new one, kept in the record]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Length of one contender's slice of load, 10ms to 60s [default: 100ms; 1s at a rate or with a percentile]
    #[arg(long, value_name = "TIME", value_parser = values::slice)]
    pub slice: Option<Duration>,
    /// Warm-up of each contender in each epoch, excluded from the results [default: found by a pilot]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub warmup: Option<Duration>,
    /// Time for which each contender is measured in each epoch [default: 3s; with a percentile: more]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub measure: Option<Duration>,
    /// Watch garbage collectors for this time after each verdict; 0: never [default: 5s with full, 0 with quick]
    #[arg(long, value_name = "TIME", value_parser = values::duration_or_none)]
    pub collectors: Option<Duration>,
    /// Sample where CPU time goes after each verdict: always, slower (only then), never [default: never; with --git: slower]
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, default_missing_value = "always", require_equals = true)]
    pub why: Option<WhyWord>,
    /// Model the latency behind an edge cache that answers this share, such as 92% [default: the study's]
    #[arg(long, value_name = "SHARE", value_parser = values::hit_rate)]
    pub hit_rate: Option<f64>,
}

/// When to sample where contenders spend CPU time, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhyWord {
    /// After every scenario with a steady load
    Always,
    /// After a scenario in which a contender is slower
    Slower,
    /// Never
    Never,
}

/// Which cores belong to whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Machine")]
pub struct MachineChoices {
    /// Cores of the contenders, such as 0,2-4 [default: half of the whole cores]
    #[arg(long, value_name = "LIST", value_parser = CpuList::parse)]
    pub server_cpus: Option<CpuList>,
    /// Cores of the load generator, such as 1,5-7 [default: the other cores, at most 4 of them]
    #[arg(long, value_name = "LIST", value_parser = CpuList::parse)]
    pub load_cpus: Option<CpuList>,
    /// Longest wake-up time of an idle server core, or any; 0: it never sleeps [default: 0 if virtual, 10us as root]
    #[arg(long, value_name = "TIME", value_parser = values::cpu_latency)]
    pub cpu_latency: Option<CpuLatency>,
}

/// Within how many microseconds idle processors are to wake up; none for as they like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuLatency(pub Option<u32>);

/// An answer, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum YesNo {
    /// Yes
    Yes,
    /// No
    No,
}

/// A set of defaults, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileWord {
    /// A verdict within minutes
    Quick,
    /// For figures that are published
    Full,
}
