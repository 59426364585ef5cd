//! The command line as typed data: what may be said, in which units, and which combinations make no sense.
//!
//! Owns: options, their help texts, the parsers of their values. Must not know: studies' contents, the plan, the
//! machine. Every option is absent unless typed; defaults are the plan's.

mod audit;
mod compare;
mod doctor;
mod fail_if;
mod init;
mod input;
mod load;
mod null;
mod output;
mod report;
mod server_host;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::{Style, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use deadheat_analysis::compare::FailIf;
use deadheat_remote::SshTarget;
use deadheat_study::choices::{Choices, LoadChoices, Selection};
use deadheat_study::git::GitRange;
use deadheat_study::values::{self, Header};

pub(crate) use audit::AuditFlags;
pub(crate) use compare::CompareFlags;
pub(crate) use doctor::DoctorFlags;
pub(crate) use init::{Asked, InitFlags};
pub(crate) use input::Input;
pub(crate) use load::{ArrivalsFlag, ExpectFlag, HostFlags, LoadFlags, LogFlags, OrderFlag, RequestFlags};
pub(crate) use null::NullFlags;
pub(crate) use output::Output;
pub(crate) use report::ReportFlags;
pub(crate) use server_host::{Controlled, ServerHostFlags, forwarded};

const EXAMPLES: &str = "\
Examples:
  deadheat race --url 'http://127.0.0.1:{port}/' 'node a.mjs' 'bun b.ts'
  deadheat race studies/trending --only bun,node26 --scenario steady
  deadheat race --git main --build 'npm ci' 'node server.js'
  deadheat init 'npm start' --url 'http://127.0.0.1:{port}/api/items'
  deadheat check studies/trending
  deadheat load -r 2000 http://127.0.0.1:8080/x
  deadheat report trending.jsonl --html trending.html
  deadheat compare main.jsonl branch.jsonl --fail-if 'slower by 3%'
  deadheat audit studies/trending --self-test
  deadheat doctor

Exit status: 0 measured, or passed; 1 measured, and a parity check failed or a condition of --fail-if holds; 2 wrong \
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
    /// Race a study, or commands that each start a server
    Race(Box<RaceFlags>),
    /// Write a study from a command that starts your service and the URLs to request from it
    Init(InitFlags),
    /// Check that all contenders of a study give the same answers; measure nothing
    Check(CheckFlags),
    /// Load one server and report rates and latencies: the load generator alone
    Load(Box<LoadFlags>),
    /// Check whether this machine can measure, and how small a difference a race can find on it
    Doctor(Box<DoctorFlags>),
    /// Check a study's published figures against each other, their load generator and this machine
    Audit(Box<AuditFlags>),
    /// Show a record again, or write it as a page, Markdown, CSV, figures or for a benchmark tracker
    Report(ReportFlags),
    /// Compare two records: did the service become slower?
    Compare(Box<CompareFlags>),
    /// Run a server that gives every request the same answer at once, to find a load generator's limit
    Null(NullFlags),
}

const RACE_HELP: &str = "\
Examples:
  deadheat race --url 'http://127.0.0.1:{port}/x' 'node a.mjs' 'bun b.ts'
  deadheat race -n node -n bun 'node a.mjs' 'bun b.ts' -c 128 --profile full
  deadheat race studies/trending --metric p99 --rate 2000 --json trending.json
  deadheat race --git main..feature services/api
  deadheat race studies/trending --server-host ssh://me@target --load-host ssh://me@other

deadheat tells a command its port in the environment variable PORT, and replaces {port} in the command. With https:// in --url, the command must listen with TLS: CERT and KEY name the files of its certificate and key, and deadheat replaces {cert} and {key}.";

/// Options of `race`.
#[derive(Debug, Default, Args)]
#[command(after_help = RACE_HELP)]
pub(crate) struct RaceFlags {
    /// A study (folder with study.toml, or that file), or at least two shell commands that each start a server
    #[arg(value_name = "STUDY | CMD")]
    pub(crate) targets: Vec<String>,
    /// Race two git revisions: BASE..HEAD; or BASE: the working tree against the commit at which it left BASE
    #[arg(long, value_name = "REVISIONS")]
    pub(crate) git: Option<GitRange>,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHocFlags,
    #[command(flatten)]
    pub(crate) choices: Choices,
    /// Write the record with its results as JSON; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse, help_heading = "Output")]
    pub(crate) json: Option<Output>,
    /// Write one HTML page with the results and the record at the end; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse, help_heading = "Output")]
    pub(crate) html: Option<Output>,
    /// Write the record to this file [default: deadheat-records/NAME-YYYYMMDD-HHMMSS.jsonl]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,
    /// Continue an interrupted race from its record, as planned
    #[arg(long, value_name = "RECORD", help_heading = "Output")]
    pub(crate) resume: Option<PathBuf>,
    /// Pause at a look if the next one would come after this time; continue with --resume or --continue [default: never]
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = "Output")]
    pub(crate) pause_after: Option<Duration>,
    /// Begin or continue the race of this record; show it if it is over. For CI: attempts share one error rate
    #[arg(long = "continue", value_name = "RECORD", help_heading = "Output", conflicts_with_all = ["resume", "record"])]
    pub(crate) attempt: Option<PathBuf>,
    /// Exit with status 1 if this holds for a contender against the baseline, such as 'slower by 3%'; repeatable
    #[arg(long, value_name = "CONDITION", value_parser = fail_if::fail_if, help_heading = "Output")]
    pub(crate) fail_if: Vec<FailIf>,
    #[command(flatten)]
    pub(crate) hosts: RaceHostFlags,
    /// Run everything on this machine, also if the study names others
    #[arg(long, help_heading = "Other machines", conflicts_with_all = ["server_host", "load_host"])]
    pub(crate) here: bool,
    /// The controlling side has sent the race to this machine
    #[arg(long, value_name = "JSON", value_parser = Controlled::parse, hide = true)]
    pub(crate) controlled: Option<Controlled>,
    /// Also load this host (not possible yet: a race starts its contenders here and loads only the loopback)
    #[arg(long, value_name = "HOST", hide = true)]
    pub(crate) allow_target: Vec<String>,
}

/// Where contenders run, and where their requests come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Other machines")]
pub(crate) struct RaceHostFlags {
    #[command(flatten)]
    pub(crate) server: ServerHostFlags,
    #[command(flatten)]
    hosts: HostFlags,
    /// Address at which the load hosts reach the contenders [default: found by the hosts' names]
    #[arg(long, value_name = "ADDRESS", requires = "load_host")]
    pub(crate) server_address: Option<Ipv4Addr>,
}

impl RaceHostFlags {
    /// The machines that send the load.
    pub(crate) fn load_hosts(&self) -> &[SshTarget] {
        &self.hosts.load_host
    }
}

/// What is requested of commands; a study says it in its file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Commands instead of a study")]
pub(crate) struct AdHocFlags {
    /// URL to request from each command, http or https; {port} is its port [default: http://127.0.0.1:{port}/]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Name of a command, in the order of the commands [default: the command itself]
    #[arg(short = 'n', long = "name", value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Run this before the race, such as 'npm ci'; with --git, in each revision; with {seed} in it, before each epoch
    #[arg(long, value_name = "CMD")]
    pub(crate) build: Option<String>,
    /// Request method [default: GET]
    #[arg(short, long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Request header, such as 'accept: text/html'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = Header::parse)]
    pub(crate) headers: Vec<Header>,
    /// Request body, or @FILE to read it from a file
    #[arg(short, long, value_name = "BODY")]
    pub(crate) body: Option<String>,
    /// Accept different values of this answer header; only content-type is ever compared
    #[arg(long, value_name = "NAME")]
    pub(crate) ignore_header: Vec<String>,
    /// Accept that answers differ at this JSON path, such as '$.items[*].time'; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) ignore_json: Vec<String>,
    /// What must be equal in the answers of the commands [default: all]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) parity: Option<ParityWord>,
}

/// How far the answers of commands must agree, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ParityWord {
    /// Status, content-type and body
    All,
    /// The status alone
    Status,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckFlags {
    /// A folder with study.toml, or that file
    #[arg(value_name = "STUDY")]
    pub(crate) study: PathBuf,
    /// Check only these contenders; comma-separated, may be repeated [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Count a request as failed if its answer takes longer than this [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Give up on a contender that gives no right answer within this time [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) ready_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) hosts: RaceHostFlags,
    /// Run everything on this machine, also if the study names others
    #[arg(long, help_heading = "Other machines", conflicts_with_all = ["server_host", "load_host"])]
    pub(crate) here: bool,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use deadheat_study::choices::WhyWord;
    use deadheat_study::values::{CpuList, EpochRange};

    use super::*;
    use deadheat_record::Metric;

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
                    --ready-timeout 5s --timeout 2s -m POST -b x --warmup 1s --measure 4s --collectors 0 --hit-rate 92% --why";
        let cli = Cli::try_parse_from(line.split_whitespace().chain(["-H", "a: b"])).unwrap();
        let Command::Race(flags) = cli.command else { panic!("race") };
        assert_eq!(flags.targets, ["a", "b"]);
        assert_eq!(flags.ad_hoc.names, ["x", "y"]);
        assert_eq!(flags.json, Some(Output::Standard));
        let choices = &flags.choices;
        assert_eq!(choices.selection.only, ["x", "y", "z"]);
        assert_eq!(choices.method.metric, [Metric::P99, Metric::Cpu]);
        assert_eq!(choices.method.epochs, Some(EpochRange { fewest: 6, most: 10 }));
        assert_eq!(choices.method.budget, Some(Duration::from_secs(180)));
        assert_eq!(choices.method.margin, Some(0.03));
        assert_eq!(choices.method.warmup, Some(Duration::from_secs(1)));
        assert_eq!(choices.method.measure, Some(Duration::from_secs(4)));
        assert_eq!(choices.method.collectors, Some(Duration::ZERO));
        assert_eq!(choices.method.why, Some(WhyWord::Always));
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
