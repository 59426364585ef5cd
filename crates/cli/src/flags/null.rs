//! Owns: the options of `null`. Must not know: the server.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use deadheat_load::Backend;

use deadheat_study::values;
use deadheat_study::values::CpuList;

const NULL_HELP: &str = "\
Examples:
  deadheat null --cpus 0                 then: taskset -c 1 wrk -t1 -c64 http://127.0.0.1:8080/
  deadheat null --port 0 --bytes 6000

It answers every HTTP/1.1 request with 200 and the same text, and ends with Ctrl-C.";

/// Options of `null`.
#[derive(Debug, Args)]
#[command(after_help = NULL_HELP)]
pub(crate) struct NullFlags {
    /// Listen on this port; 0 for any free one [default: 8080]
    #[arg(short, long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Listen at this address [default: 127.0.0.1, which only this machine reaches]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "unix_socket")]
    pub(crate) host: Option<Ipv4Addr>,
    /// Listen on a unix socket instead; the path must not exist yet
    #[arg(long, value_name = "PATH", conflicts_with = "port")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Bytes in the body of each answer, at most 1073741824 [default: 13]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=1 << 30))]
    pub(crate) bytes: Option<u64>,
    /// Number of threads; each has its own connections [default: 1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Pin the threads to these cores in turn, such as 0,2-4 [default: the system's choice]
    #[arg(long, value_name = "LIST", value_parser = CpuList::parse)]
    pub(crate) cpus: Option<CpuList>,
    /// CPU work before each answer, such as 40us: a fixed number of steps, found at the start [default: none]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) spin: Option<Duration>,
    /// The same as a number of steps, for servers whose work must be in an exact ratio
    #[arg(long, value_name = "N", hide = true, conflicts_with = "spin", value_parser = clap::value_parser!(u64).range(0..=1 << 32))]
    pub(crate) spin_steps: Option<u64>,
    /// Interface to the operating system: auto, io_uring or epoll [default: auto]
    #[arg(long, value_name = "WHICH", value_parser = backend)]
    pub(crate) backend: Option<Backend>,
}

/// A way to speak to the operating system, by its name.
pub(super) fn backend(text: &str) -> Result<Backend, String> {
    let known = [Backend::Auto, Backend::Uring, Backend::Epoll];
    known.into_iter().find(|one| one.name() == text).ok_or_else(|| "write auto, io_uring or epoll".into())
}
