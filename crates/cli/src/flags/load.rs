//! Options of `load`: as the users of wrk, oha, hey and wrk2 know them, where those agree.
//!
//! Owns their spelling and help. Must not know the plan; what is absent is the plan's.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use deadheat_load::{Backend, StatusSet};
use deadheat_record::LogFormat;
use deadheat_remote::SshTarget;

use super::Output;
use super::null::backend;
use deadheat_study::traffic::FIELDS;
use deadheat_study::values;
use deadheat_study::values::{CpuList, Header};

const LOAD_HELP: &str = "\
Examples:
  64 connections for 10 s, each waits for its answer
    deadheat load http://127.0.0.1:8080/x
  the latencies that users would see at 2,000 requests/s, and a ramp
    deadheat load -r 2000 -d 30s http://127.0.0.1:8080/x
    deadheat load -r 100..5000 -d 1m http://127.0.0.1:8080/x
  10,000 requests, with the results as JSON for another program
    deadheat load -n 10000 -c 8 --json - http://127.0.0.1:8080/x

A rate is RATE[..RATE][:TIME], several with commas between them:
  2000   20k   100..5000:30s   1k:10s,2k:10s
A file of requests has on each line a path, optionally with a tab and a weight, or
  {\"path\":\"/x\",\"method\":\"POST\",\"headers\":{\"a\":\"b\"},\"body\":\"c\",\"weight\":2}
or it is an access log or a HAR file, whose requests are sent again:
  deadheat load --requests-file access.log --order timing --speed 2 http://127.0.0.1:8080/

Exit status: 0 measured, all answers as expected; 1 measured, some were not; 2 wrong usage or input; 3 the \
measurement is invalid; 130 interrupted (what was measured is shown).";

/// Options of `load`.
#[derive(Debug, Default, Args)]
#[command(after_help = LOAD_HELP)]
pub(crate) struct LoadFlags {
    /// URL to request, such as http://127.0.0.1:8080/x; http:// may be left out
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) amount: AmountFlags,
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    #[command(flatten)]
    pub(crate) answer: AnswerFlags,
    #[command(flatten)]
    pub(crate) connection: ConnectionFlags,
    #[command(flatten)]
    pub(crate) generator: GeneratorFlags,
    #[command(flatten)]
    pub(crate) hosts: HostFlags,
    #[command(flatten)]
    pub(crate) kubernetes: KubernetesFlags,
    /// Write the result as JSON (deadheat.load/1); `-` writes it alone to standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse, help_heading = "Output")]
    pub(crate) json: Option<Output>,
}

/// How much, and when.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct AmountFlags {
    /// Number of connections [default: 64]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) connections: Option<u32>,
    /// Time for which requests are sent [default: 10s, or as long as the stages of -r; with -n: no limit]
    #[arg(short, long, short_alias = 'z', value_name = "TIME", value_parser = values::duration)]
    pub(crate) duration: Option<Duration>,
    /// Number of requests to send [default: as many as -d allows]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// Send this many requests per second, however fast answers come (also -q, -R) [default: wait for each answer]
    #[arg(short, long, short_aliases = ['q', 'R'], value_name = "RATE")]
    pub(crate) rate: Option<String>,
    /// How the requests of a --rate arrive: poisson (independent, as users are) or constant [default: poisson]
    #[arg(long, value_enum, value_name = "WORD", hide_possible_values = true)]
    pub(crate) arrivals: Option<ArrivalsFlag>,
    /// With --rate: open up to this many connections when none is free for a due request [default: 1024, or -c]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) max_connections: Option<u32>,
    /// Warm-up time, excluded from the results [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = values::duration_or_none)]
    pub(crate) warmup: Option<Duration>,
    /// Seed of the arrivals and of the order of requests [default: a new one, shown and kept]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// What is sent.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestFlags {
    /// Request method [default: GET]
    #[arg(short, long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Request header, such as 'accept: text/html'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = Header::parse)]
    pub(crate) headers: Vec<Header>,
    /// Request body, or @FILE to read it from a file
    #[arg(short, long, value_name = "BODY")]
    pub(crate) body: Option<String>,
    /// Send the requests of this file instead of the URL's path: a list, an access log or a HAR file
    #[arg(long, value_name = "FILE")]
    pub(crate) requests_file: Option<PathBuf>,
    /// Order of the file's requests: sequential, random, or timing of a log [default: sequential; with weights: random]
    #[arg(long, value_enum, value_name = "WORD", requires = "requests_file", hide_possible_values = true)]
    pub(crate) order: Option<OrderFlag>,
    /// Send the file's requests by Zipf's law: the k-th with a share in proportion to 1/k^EXPONENT, such as 1
    #[arg(long, value_name = "EXPONENT", requires = "requests_file", conflicts_with = "order")]
    pub(crate) zipf: Option<f64>,
    /// With --order timing: send the requests this many times as fast as they were recorded [default: 1]
    #[arg(long, value_name = "FACTOR", requires = "order")]
    pub(crate) speed: Option<f64>,
    #[command(flatten)]
    pub(crate) log: LogFlags,
}

/// How an access log or a HAR file is read.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Requests of a log")]
pub(crate) struct LogFlags {
    /// Format of the file: combined (nginx, Apache), json, pattern or har [default: recognised, but for json]
    #[arg(long, value_name = "WORD", value_parser = log_format, requires = "requests_file")]
    pub(crate) log_format: Option<LogFormat>,
    /// Name of a field of a JSON log, such as path=req.url; may be repeated [default: usual names]
    #[arg(long, value_name = "FIELD=NAME", value_parser = log_field, requires = "requests_file")]
    pub(crate) log_field: Vec<(String, String)>,
    /// Regular expression for the lines of another log, with groups such as (?<method>\w+) and (?<path>\S+)
    #[arg(long, value_name = "REGEX", requires = "requests_file")]
    pub(crate) log_pattern: Option<String>,
    /// How the log writes times, as for strptime, such as '%Y-%m-%d %H:%M:%S' [default: the usual ways]
    #[arg(long, value_name = "FORMAT", requires = "requests_file")]
    pub(crate) log_time: Option<String>,
    /// Send only requests that were answered with one of these statuses [default: 200-399]
    #[arg(long, value_name = "CODES", requires = "requests_file")]
    pub(crate) log_status: Option<StatusSet>,
    /// Send only requests to this host [default: all; of a HAR file, those to the host of its first request]
    #[arg(long, value_name = "HOST", requires = "requests_file")]
    pub(crate) log_host: Option<String>,
    /// Also send requests of the log with these methods, which may change data, such as POST,PUT
    #[arg(long, value_name = "METHODS", value_delimiter = ',', requires = "requests_file")]
    pub(crate) allow_methods: Vec<String>,
    /// Also send the cookies and the authorization that a HAR file contains
    #[arg(long, requires = "requests_file")]
    pub(crate) credentials: bool,
}

fn log_format(word: &str) -> Result<LogFormat, String> {
    let words = LogFormat::ALL.map(LogFormat::word).join(", ");
    LogFormat::of_word(word).ok_or_else(|| format!("write one of {words}"))
}

fn log_field(text: &str) -> Result<(String, String), String> {
    let (field, name) = text.split_once('=').ok_or("write FIELD=NAME, such as path=req.url")?;
    if FIELDS.contains(&field) && !name.is_empty() {
        return Ok((field.to_owned(), name.to_owned()));
    }
    Err(format!("the fields of a log are {}", FIELDS.join(", ")))
}

/// What answers must be.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Answers")]
pub(crate) struct AnswerFlags {
    /// Expected status codes, such as 200,204,3xx or 200-399 [default: 200-399]
    #[arg(long, value_name = "CODES")]
    pub(crate) expect_status: Option<StatusSet>,
    /// Expected body: same (as before the load), length (as long as then) or any [default: what two answers agree in]
    #[arg(long, value_enum, value_name = "WORD", hide_possible_values = true)]
    pub(crate) expect: Option<ExpectFlag>,
    /// Count a request as failed if its answer takes longer than this [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Give up an attempt to connect after this time [default: the timeout, at most 10s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) connect_timeout: Option<Duration>,
}

/// The server to load, and how to connect to it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct ConnectionFlags {
    /// Allow load on this host or address outside this machine's loopback; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_target: Vec<String>,
    /// Connect to this Unix socket; the URL only gives the host name and the path
    #[arg(long, value_name = "PATH")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// With https: accept any certificate
    #[arg(long, conflicts_with = "ca")]
    pub(crate) insecure: bool,
    /// With https: trust only the CAs in this PEM file [default: those that the system trusts]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

/// The generator itself.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Generator")]
pub(crate) struct GeneratorFlags {
    /// Worker threads; with --load-host or --load-kubernetes, on each host or pod [default: 1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Pin the workers to these CPUs in turn, such as 1,5-7; one alone on its CPU never sleeps [default: taskset's]
    #[arg(long, value_name = "LIST", value_parser = CpuList::parse)]
    pub(crate) cpus: Option<CpuList>,
    /// Interface to the operating system: auto, io_uring or epoll [default: auto]
    #[arg(long, value_name = "WHICH", value_parser = backend)]
    pub(crate) backend: Option<Backend>,
    /// First measure the generator's ceiling: for two seconds, its rate against a server that does nothing
    #[arg(long)]
    pub(crate) ceiling: bool,
}

/// Where the load comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Other machines")]
pub(crate) struct HostFlags {
    /// Send the load from this machine, such as ssh://user@host:22; may be repeated, and the hosts share the load
    #[arg(long, value_name = "HOST")]
    pub(crate) load_host: Vec<SshTarget>,
}

/// Pods that send the load.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Kubernetes")]
pub(crate) struct KubernetesFlags {
    /// Send the load from pods in this namespace of the cluster that kubectl uses; needs --image
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace, requires = "image", conflicts_with = "load_host")]
    pub(crate) load_kubernetes: Option<String>,
    /// Number of pods, which share the load [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), requires = "load_kubernetes")]
    pub(crate) load_workers: Option<u32>,
    /// Image of the pods, which starts this version of deadheat
    #[arg(long, value_name = "IMAGE", requires = "load_kubernetes")]
    pub(crate) image: Option<String>,
    /// Secret of the namespace with which the image is pulled [default: as for any pod there]
    #[arg(long, value_name = "NAME", requires = "load_kubernetes")]
    pub(crate) image_pull_secret: Option<String>,
    /// CPUs of each pod, such as 2 or 500m [default: as many as threads]
    #[arg(long, value_name = "CPUS", requires = "load_kubernetes")]
    pub(crate) worker_cpu: Option<String>,
    /// Memory of each pod, such as 1Gi [default: 512Mi]
    #[arg(long, value_name = "BYTES", requires = "load_kubernetes")]
    pub(crate) worker_memory: Option<String>,
    /// Give up if not all pods run within this time [default: 1m]
    #[arg(long, value_name = "TIME", value_parser = values::duration, requires = "load_kubernetes")]
    pub(crate) ready_timeout: Option<Duration>,
}

/// A name as Kubernetes wants it. Other characters would change the path of requests.
fn namespace(text: &str) -> Result<String, String> {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match (1..=63).contains(&text.len()) && text.bytes().all(fine) {
        true => Ok(text.to_owned()),
        false => Err("a namespace has at most 63 lower-case letters, digits and `-`".into()),
    }
}

/// How requests arrive, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalsFlag {
    /// Independent of each other, as users are
    Poisson,
    /// Evenly
    Constant,
}

/// The order of a file's requests, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderFlag {
    /// One after the other, again and again
    Sequential,
    /// Drawn by weight
    Random,
    /// When they were recorded
    Timing,
}

/// Which bodies are right, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExpectFlag {
    /// The very same
    Same,
    /// As long
    Length,
    /// Any
    Any,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{Cli, Command};

    fn flags(line: &str) -> LoadFlags {
        let cli = Cli::try_parse_from(["deadheat", "load"].into_iter().chain(line.split_whitespace()));
        let Command::Load(flags) = cli.unwrap_or_else(|error| panic!("{line}: {error}")).command else {
            panic!("load")
        };
        *flags
    }

    #[test]
    fn every_option_is_read() {
        let flags = flags(
            "http://h/ -c 8 -t 2 -d 500ms -n 7 -r 100..5k:1s --arrivals constant --max-connections 9 --warmup 0s \
             --seed 3 -m PUT -H a:b -b x --requests-file f --order random --expect-status 2xx --expect any \
             --timeout 1s --connect-timeout 2s --allow-target h --unix-socket /s --ca c --cpus 0,2-3 \
             --backend io_uring --ceiling --speed 2 --log-format json --log-field path=req.url --log-time %s \
             --log-status 2xx,404 --log-host h --allow-methods POST,PUT --credentials --json - \
             --load-host ssh://me@a --load-host ssh://b:2222",
        );
        let log = &flags.request.log;
        assert_eq!((log.log_format, log.credentials), (Some(LogFormat::Json), true));
        assert_eq!(log.log_field, [("path".to_owned(), "req.url".to_owned())]);
        assert_eq!(
            (&log.allow_methods[..], flags.request.speed),
            (&["POST".to_owned(), "PUT".to_owned()][..], Some(2.0))
        );
        let amount = &flags.amount;
        assert_eq!(
            (amount.connections, amount.requests, amount.max_connections),
            (Some(8), Some(7), Some(9))
        );
        assert_eq!(
            (amount.duration, amount.warmup),
            (Some(Duration::from_millis(500)), Some(Duration::ZERO))
        );
        assert_eq!((amount.rate.as_deref(), amount.seed), (Some("100..5k:1s"), Some(3)));
        assert_eq!(amount.arrivals, Some(ArrivalsFlag::Constant));
        assert_eq!(flags.request.order, Some(OrderFlag::Random));
        assert_eq!(flags.answer.expect, Some(ExpectFlag::Any));
        assert_eq!(flags.generator.threads, Some(2));
        assert_eq!(flags.generator.cpus, Some(CpuList(vec![0, 2, 3])));
        assert_eq!(flags.generator.backend, Some(Backend::Uring));
        assert_eq!(flags.json, Some(Output::Standard));
        let hosts: Vec<String> = flags.hosts.load_host.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["me@a", "b:2222"]);
    }

    #[test]
    fn the_options_of_pods_are_read() {
        let line = "h --load-kubernetes load --load-workers 3 --image r/deadheat:1 --image-pull-secret s --worker-cpu 2 \
                    --worker-memory 1Gi --ready-timeout 2m";
        let read = KubernetesFlags {
            load_kubernetes: Some("load".into()),
            load_workers: Some(3),
            image: Some("r/deadheat:1".into()),
            image_pull_secret: Some("s".into()),
            worker_cpu: Some("2".into()),
            worker_memory: Some("1Gi".into()),
            ready_timeout: Some(Duration::from_secs(120)),
        };
        assert_eq!(flags(line).kubernetes, read);
    }

    #[test]
    fn others_spellings_are_understood() {
        for (line, seconds) in [("-d10s h", 10), ("-z 3s h", 3), ("--duration=1m h", 60)] {
            assert_eq!(flags(line).amount.duration, Some(Duration::from_secs(seconds)), "{line}");
        }
        for line in ["-r 5 h", "-R5 h", "-q 5 h", "--rate 5 h"] {
            assert_eq!(flags(line).amount.rate.as_deref(), Some("5"), "{line}");
        }
        let wrk = flags("-t1 -c64 -d10s http://h/");
        assert_eq!((wrk.generator.threads, wrk.amount.connections), (Some(1), Some(64)));
    }

    #[test]
    fn wrong_values_are_refused() {
        for line in [
            "",
            "h -c 0",
            "h -c 60001",
            "h -t 0",
            "h -d 10",
            "h -d 0s",
            "h -n 0",
            "h -n -1",
            "h --arrivals bursty",
            "h --warmup x",
            "h -H nonsense",
            "h --expect-status 2x",
            "h --expect-status 700",
            "h --expect sometimes",
            "h --zipf 1",
            "h --load-host a",
            "h --load-host ssh://-oProxyCommand=x",
            "h --credentials",
            "h --requests-file f --speed 2",
            "h --requests-file f --log-format xml",
            "h --requests-file f --log-field url=x",
            "h --order random",
            "h --requests-file f --zipf 1 --order random",
            "h --insecure --ca f",
            "h --cpus x",
            "h --backend kqueue",
            "h h2",
            "h --load-kubernetes load",
            "h --load-kubernetes Load --image i",
            "h --load-kubernetes a/b --image i",
            "h --load-kubernetes load --image i --load-workers 0",
            "h --load-kubernetes load --image i --load-host ssh://a",
            "h --image i",
            "h --load-workers 3",
        ] {
            let cli = Cli::try_parse_from(["deadheat", "load"].into_iter().chain(line.split_whitespace()));
            assert!(cli.is_err(), "{line}");
        }
    }
}
