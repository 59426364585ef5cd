//! `deadheat null`: the built-in server that gives every request the same answer.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use deadheat_host::open_files::raise_open_files;
use deadheat_load::{Address, NullConfig, NullError, NullServer, Spin, with_causes};

use super::Failure;
use crate::console::{Console, lines_plain};
use crate::flags::NullFlags;
use crate::interrupt::Interrupt;
use deadheat_study::choices::UsageError;

const PORT: u16 = 8080;
/// The interval of checks for an interruption.
const GLANCE: Duration = Duration::from_millis(50);

/// Serves until it is interrupted, which is not a failure.
pub(crate) fn null(flags: &NullFlags, console: &mut Console) -> Result<u8, Failure> {
    // Each connection needs one open file. If the limit cannot be raised, there are fewer connections.
    let _ = raise_open_files();
    let usual = NullConfig::default();
    let port = flags.port.unwrap_or(PORT);
    let address = match &flags.unix_socket {
        Some(path) => Address::Unix(path.clone()),
        None => Address::Tcp(SocketAddr::from((flags.host.unwrap_or(Ipv4Addr::LOCALHOST), port))),
    };
    let interrupt = Interrupt::listen()?;
    let server = NullServer::start(NullConfig {
        address,
        body_bytes: flags.bytes.map_or(usual.body_bytes, |bytes| bytes as usize),
        threads: flags.threads.map_or(usual.threads, usize::from),
        cpus: flags.cpus.as_ref().map_or(usual.cpus, |list| list.0.clone()),
        spin: flags.spin_steps.map(Spin::steps).or(flags.spin.map(Spin::lasting)).unwrap_or_default(),
        backend: flags.backend.unwrap_or(usual.backend),
        tls: usual.tls,
    });
    let server = server.map_err(usage)?;
    let place = match server.address() {
        Address::Tcp(address) => format!("http://{address}/"),
        unix => unix.to_string(),
    };
    console.result(&lines_plain(&format!("listening on {place} ({})", server.backend().name())));
    console.result("\n");
    while !interrupt.asked() {
        if !server.is_running() {
            return Err(std::io::Error::other(
                "an error of the operating system stopped the server; start it again",
            )
            .into());
        }
        std::thread::sleep(GLANCE);
    }
    Ok(0)
}

/// The remedy for a server that cannot start.
fn usage(error: NullError) -> UsageError {
    let remedy = match &error {
        NullError::Listen { address: Address::Unix(path), source }
            if source.kind() == ErrorKind::AddrInUse =>
        {
            format!(
                "remove {} if nothing listens there any more, or choose another --unix-socket",
                path.display()
            )
        }
        NullError::Listen { address: Address::Unix(_), .. } => "choose another --unix-socket".to_owned(),
        NullError::Listen { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            "choose a --port from 1024 on, or 0 for any free one".to_owned()
        }
        NullError::Listen { .. } => "choose another --port, or 0 for any free one".to_owned(),
        NullError::Backend { .. } => "leave --backend out, or use --backend epoll".to_owned(),
        NullError::Pin { .. } => "name cores with --cpus that this process may run on".to_owned(),
        NullError::Config => "choose --threads and --bytes within these limits".to_owned(),
        NullError::Tls(_) => "name a certificate and its key, both in PEM".to_owned(),
        NullError::Thread(_) => "choose fewer --threads, or raise the limits of this process".to_owned(),
    };
    UsageError::new(with_causes(&error), remedy)
}
