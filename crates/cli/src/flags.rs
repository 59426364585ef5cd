//! The command line as typed data: what may be said, in which units, and which combinations make no sense.
//!
//! Owns: options, their help texts, the parsers of their values. Must not know: studies' contents, the plan, the
//! machine. Every option is absent unless typed; defaults are the plan's.

mod audit;
mod compare;
mod doctor;
mod fail_if;
mod input;
mod load;
mod null;
mod report;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::{Style, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use deadheat_record::{Metric, Objective};
use deadheat_report::comparison::FailIf;
use thiserror::Error;

pub(crate) use audit::AuditFlags;
pub(crate) use compare::CompareFlags;
pub(crate) use doctor::DoctorFlags;
pub(crate) use input::{AdHoc, Input};
pub(crate) use load::{ArrivalsFlag, ExpectFlag, LoadFlags, OrderFlag, RequestFlags};
pub(crate) use null::NullFlags;
pub(crate) use report::ReportFlags;
pub(crate) use values::{CpuList, EpochRange, Header, Output};

/// Wrong usage: what is wrong and what to do about it. Exit status 2.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem}\n  {remedy}")]
pub(crate) struct UsageError {
    /// What is wrong, with what was found.
    pub(crate) problem: String,
    /// What to type instead.
    pub(crate) remedy: String,
}

impl UsageError {
    pub(crate) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }
}

const EXAMPLES: &str = "\
Examples:
  deadheat race --url 'http://127.0.0.1:{port}/' 'node a.mjs' 'bun b.ts'
  deadheat race studies/trending --only bun,node26 --scenario steady
  deadheat check studies/trending
  deadheat load -r 2000 http://127.0.0.1:8080/x
  deadheat report trending.jsonl --html trending.html
  deadheat compare main.jsonl branch.jsonl --fail-if 'slower by 3%'
  deadheat audit studies/trending --self-test
  deadheat doctor

Exit status: 0 measured, or passed; 1 measured, and a parity check failed or a condition of --fail-if holds; 2 wrong
usage or input; 3 the measurement is invalid; 130 interrupted (what was measured is kept).";

/// What is wrong stands out in bold and not in yellow, which cannot be read on white.
const STYLES: Styles = Styles::styled().invalid(Style::new().bold());

/// Races HTTP servers and tells which one really won, or that it was a dead heat.
#[derive(Debug, Parser)]
#[command(name = "deadheat", version, max_term_width = 110, after_help = EXAMPLES, styles = STYLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Race a study, or commands given as they are
    Race(Box<RaceFlags>),
    /// Check that all contenders of a study answer alike; nothing is measured
    Check(CheckFlags),
    /// Load a server and say how it answers: the load generator alone
    Load(Box<LoadFlags>),
    /// Say whether this machine is fit for measuring, and what can be told apart on it
    Doctor(Box<DoctorFlags>),
    /// Hold a study's published figures against each other, their generator and this machine
    Audit(Box<AuditFlags>),
    /// Show a record again, or write it as a page, Markdown, CSV, figures and what trackers of benchmarks read
    Report(ReportFlags),
    /// Compare two records: did the service become slower?
    Compare(Box<CompareFlags>),
    /// A server that answers every request alike, as fast as this machine can: what a load generator's limit is found with
    Null(NullFlags),
}

const RACE_HELP: &str = "\
Examples:
  deadheat race --url 'http://127.0.0.1:{port}/x' 'node a.mjs' 'bun b.ts'
  deadheat race -n node -n bun 'node a.mjs' 'bun b.ts' -c 128 --profile full
  deadheat race studies/trending --metric p99 --rate 2000 --json trending.json

A command gets its port in the environment variable PORT and wherever {port} stands in it. With https:// in --url it must
listen with TLS: the files of its certificate and key are in CERT and KEY, and wherever {cert} and {key} stand.";

/// Options of `race`.
#[derive(Debug, Args)]
#[command(after_help = RACE_HELP)]
pub(crate) struct RaceFlags {
    /// A study (folder with study.toml, or that file), or two and more shell commands that start a server each
    #[arg(value_name = "STUDY | CMD")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHocFlags,
    #[command(flatten)]
    pub(crate) choices: Choices,
    /// Write the record with its results as JSON; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse, help_heading = "Output")]
    pub(crate) json: Option<Output>,
    /// Write a page that holds the record and everything that shows it, at the race's end; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse, help_heading = "Output")]
    pub(crate) html: Option<Output>,
    /// Write the journal there [default: deadheat-records/NAME-YYYYMMDD-HHMMSS.jsonl]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,
    /// Go on with a race that was interrupted, as its record planned it
    #[arg(long, value_name = "RECORD", help_heading = "Output")]
    pub(crate) resume: Option<PathBuf>,
    /// End with status 1 if this holds of a contender against the baseline, such as 'slower by 3%'; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = fail_if::fail_if, help_heading = "Output")]
    pub(crate) fail_if: Vec<FailIf>,
    /// Load this host, too (a race starts its contenders on this machine and loads the loopback only: not yet)
    #[arg(long, value_name = "HOST", hide = true)]
    pub(crate) allow_target: Vec<String>,
}

/// What is requested of commands; a study says it in its file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Commands instead of a study")]
pub(crate) struct AdHocFlags {
    /// What is requested of each command, by http or https; {port} is its port [default: http://127.0.0.1:{port}/]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Name of a command, in their order; once per command [default: the command itself]
    #[arg(short = 'n', long = "name", value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Request method [default: GET]
    #[arg(short, long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Request header, such as 'accept: text/html'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = Header::parse)]
    pub(crate) headers: Vec<Header>,
    /// Request body, or @FILE to read it from a file
    #[arg(short, long, value_name = "BODY")]
    pub(crate) body: Option<String>,
}

/// Everything by which the plan can be chosen; what is absent is the profile's or the study's.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(crate) struct Choices {
    #[command(flatten)]
    pub(crate) selection: Selection,
    #[command(flatten)]
    pub(crate) load: LoadChoices,
    #[command(flatten)]
    pub(crate) method: MethodChoices,
    #[command(flatten)]
    pub(crate) machine: MachineChoices,
}

/// Who is raced, and in which scenarios.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct Selection {
    /// Race only these contenders; comma-separated, may be repeated [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Race only in these scenarios of the study; comma-separated, may be repeated [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) scenario: Vec<String>,
    /// Compare all others with this contender only [default: the first; with three and more, every pair]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
}

/// How contenders are loaded; with a study, instead of what its scenarios say.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadChoices {
    /// Number of connections [default: the scenario's, else 64]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) connections: Option<u32>,
    /// Requests per second, due whatever the answers do [default: each connection waits for its answer]
    #[arg(short, long, value_name = "RATE", value_parser = values::rate)]
    pub(crate) rate: Option<f64>,
    /// Look for each contender's highest rate that meets this, such as 'p99 < 10ms'; instead of a rate
    #[arg(long, value_name = "OBJECTIVE", value_parser = values::objective, conflicts_with_all = ["rate", "metric"])]
    pub(crate) slo: Option<Objective>,
    /// A request unanswered for so long is a timeout [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) timeout: Option<Duration>,
    /// A contender must answer for the first time within this time [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) ready_timeout: Option<Duration>,
}

/// How it is measured and decided.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Method")]
pub(crate) struct MethodChoices {
    /// What is compared, what matters most first; comma-separated [default: throughput; at a --rate p50,p99]
    #[arg(long, value_enum, value_name = "METRIC,..", value_delimiter = ',')]
    pub(crate) metric: Vec<MetricWord>,
    /// quick: 4 to 12 epochs in about 3 minutes; full: 6 to 30 epochs with a longer warm-up [default: quick]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileWord>,
    /// Fewest and most epochs (fresh starts), 3 to 200; one number for exactly so many [default: the profile's]
    #[arg(long, value_name = "MIN..MAX", value_parser = EpochRange::parse)]
    pub(crate) epochs: Option<EpochRange>,
    /// Start no further epoch that would end later [default: 3m or more with quick; none with full or --epochs N]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) budget: Option<Duration>,
    /// Ratios within 1 +- so much count as equivalent [default: 3%]
    #[arg(long, value_name = "PERCENT", value_parser = values::margin)]
    pub(crate) margin: Option<f64>,
    /// Two-sided error rate of each scenario [default: 0.025]
    #[arg(long, value_name = "SHARE", value_parser = values::alpha)]
    pub(crate) alpha: Option<f64>,
    /// Every random order comes from this number [default: a new one, kept in the record]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How long one contender is loaded in its turn, 10ms to 60s [default: 100ms; 1s at a rate or with p50, p99]
    #[arg(long, value_name = "TIME", value_parser = values::slice)]
    pub(crate) slice: Option<Duration>,
    /// Load each contender so long in every epoch before it counts; no pilot then [default: found by a pilot]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) warmup: Option<Duration>,
    /// How long each contender is measured in every epoch, in slices [default: 3s; p50, p99: more]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) measure: Option<Duration>,
    /// Watch collectors for so long after each scenario's verdict; 0: not at all [default: 5s with full, 0 with quick]
    #[arg(long, value_name = "TIME", value_parser = values::duration_or_none)]
    pub(crate) collectors: Option<Duration>,
    /// Share of the requests that an edge cache answers, such as 92%: what users see behind it is told [default: the study's]
    #[arg(long, value_name = "SHARE", value_parser = values::hit_rate)]
    pub(crate) hit_rate: Option<f64>,
}

/// Which cores belong to whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Machine")]
pub(crate) struct MachineChoices {
    /// Cores of the contenders, such as 0,2-4 [default: half of the whole cores]
    #[arg(long, value_name = "LIST", value_parser = CpuList::parse)]
    pub(crate) server_cpus: Option<CpuList>,
    /// Cores of the load generator, such as 1,5-7 [default: the other cores, at most 4 of them]
    #[arg(long, value_name = "LIST", value_parser = CpuList::parse)]
    pub(crate) load_cpus: Option<CpuList>,
    /// An idle server core wakes up within this time, or any; 0: never sleeps [default: 0 if virtual, 10us as root]
    #[arg(long, value_name = "TIME", value_parser = values::cpu_latency)]
    pub(crate) cpu_latency: Option<CpuLatency>,
}

/// Within how many microseconds idle processors are to wake up; none for as they like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuLatency(pub(crate) Option<u32>);

/// Options of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckFlags {
    /// A folder with study.toml, or that file
    #[arg(value_name = "STUDY")]
    pub(crate) study: PathBuf,
    /// Check only these contenders; comma-separated, may be repeated [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// A request unanswered for so long is a timeout [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) timeout: Option<Duration>,
    /// A contender must answer for the first time within this time [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) ready_timeout: Option<Duration>,
}

impl CheckFlags {
    /// The same choices as a race would be told.
    pub(crate) fn choices(&self) -> Choices {
        let selection = Selection { only: self.only.clone(), ..Selection::default() };
        let load = LoadChoices {
            timeout: self.timeout,
            ready_timeout: self.ready_timeout,
            ..LoadChoices::default()
        };
        Choices { selection, load, ..Choices::default() }
    }
}

/// What is compared, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricWord {
    /// Completions per second; more is better
    Throughput,
    /// CPU time per request; less is better
    Cpu,
    /// Median latency; less is better
    P50,
    /// 99th percentile of latency; less is better
    P99,
}

impl From<MetricWord> for Metric {
    fn from(word: MetricWord) -> Self {
        match word {
            MetricWord::Throughput => Self::Throughput,
            MetricWord::Cpu => Self::Cpu,
            MetricWord::P50 => Self::P50,
            MetricWord::P99 => Self::P99,
        }
    }
}

/// A set of defaults, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileWord {
    /// A verdict within minutes
    Quick,
    /// For figures that are published
    Full,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_wrong_is_written_in_colours_that_white_paper_shows() {
        let error = Cli::try_parse_from(["deadheat", "race", "--alpa", "0.05"]).unwrap_err();
        let shown = error.render().ansi().to_string();
        assert!(shown.contains("\u{1b}[1m--alpa\u{1b}[0m"), "{shown:?}");
        assert!(!["\u{1b}[33m", "\u{1b}[36m"].iter().any(|color| shown.contains(color)), "{shown:?}");
    }

    #[test]
    fn every_option_is_read() {
        let line = "deadheat race a b --url http://127.0.0.1:{port}/ -n x -n y -c 8 -r 100 --metric p99,cpu --baseline x \
                    --only x,y --only z --scenario s --profile full --epochs 6..10 --budget 3m --margin 3% \
                    --alpha 0.05 --seed 7 --slice 200ms --server-cpus 0,2-4 --load-cpus 1 --json - --record r.jsonl \
                    --ready-timeout 5s --timeout 2s -m POST -b x --warmup 1s --measure 4s --collectors 0 --hit-rate 92%";
        let cli = Cli::try_parse_from(line.split_whitespace().chain(["-H", "a: b"])).unwrap();
        let Command::Race(flags) = cli.command else { panic!("race") };
        assert_eq!(flags.targets, ["a", "b"]);
        assert_eq!(flags.ad_hoc.names, ["x", "y"]);
        assert_eq!(flags.json, Some(Output::Standard));
        let choices = &flags.choices;
        assert_eq!(choices.selection.only, ["x", "y", "z"]);
        assert_eq!(choices.method.metric, [MetricWord::P99, MetricWord::Cpu]);
        assert_eq!(choices.method.epochs, Some(EpochRange { fewest: 6, most: 10 }));
        assert_eq!(choices.method.budget, Some(Duration::from_secs(180)));
        assert_eq!(choices.method.margin, Some(0.03));
        assert_eq!(choices.method.warmup, Some(Duration::from_secs(1)));
        assert_eq!(choices.method.measure, Some(Duration::from_secs(4)));
        assert_eq!(choices.method.collectors, Some(Duration::ZERO));
        assert_eq!(choices.method.hit_rate, Some(0.92));
        assert_eq!(choices.machine.server_cpus, Some(CpuList(vec![0, 2, 3, 4])));
    }

    #[test]
    fn what_is_not_typed_is_absent() {
        let cli = Cli::try_parse_from(["deadheat", "race", "x"]).unwrap();
        let Command::Race(flags) = cli.command else { panic!("race") };
        assert_eq!(flags.choices, Choices::default());
        assert_eq!(flags.ad_hoc, AdHocFlags::default());
    }

    #[test]
    fn each_option_has_one_line_of_help() {
        for command in Cli::command().get_subcommands() {
            for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
                let help = option.get_help().map(ToString::to_string).unwrap_or_default();
                let name = format!("{} {}", command.get_name(), option.get_id());
                assert!(!help.is_empty() && help.len() <= 120 && !help.contains('\n'), "{name}: {help}");
            }
        }
    }
}
