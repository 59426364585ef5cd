//! Measures what the generator reaches on the contenders' cores against a server that does nothing.
//!
//! Owns: the null server as a separate process (the same program under a hidden command), and the measurement. The measurement is as
//! similar to the slices of a race as possible: the same connections, cores and requests, and a body as long as the contenders'. Must not
//! know how the ceiling is judged.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use deadheat_load::{
    Address, Expectation, NullConfig, NullServer, Prepared, Requests, ServerIdentity, SessionConfig,
    StatusRule, request_bytes, with_causes,
};
use deadheat_record::{Experiment, LinkBandwidth, Pinning, ScenarioPlan};

use crate::epoch::{EpochError, EpochRun};
use crate::launcher::{NullStart, ReadyContender};
use crate::loaded::{LoadedContender, Sent, SliceStart};
use crate::parity::Parity;
use deadheat_host::open_files::raise_open_files;

/// The hidden subcommand that runs the null server. Its arguments are the length of a body and a number of threads, and for TLS the files
/// of a certificate and its key.
pub const NULL_COMMAND: &str = "__null";

/// Maximum length of the warm-up and of the measurement. The measurement is never longer than an epoch measures a contender.
const WARMUP: Duration = Duration::from_millis(300);
const MEASURED: Duration = Duration::from_secs(1);
/// Minimum length of the measurement.
const SHORTEST: Duration = Duration::from_millis(100);
/// Length of the bodies that show a network's bandwidth, in bytes, and the connections of each load host. With 20 ms to and fro, they still fill
/// 1.6 Gbit/s. At 10 Mbit/s, what is on its way at the end takes 3 s more.
pub const LARGE_BODY: usize = 256 * 1024;
const LINK_CONNECTIONS: usize = 16;
/// How long a connection and an answer may take in this measurement.
const LINK_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between checks whether the server still runs.
const GLANCE: Duration = Duration::from_millis(200);

/// Runs the null server: it listens at `PORT` or `SOCKET` of its environment until another process ends it. Returns its exit status.
pub fn serve(arguments: &[OsString]) -> u8 {
    let number = |place: usize| arguments.get(place)?.to_str()?.parse::<usize>().ok();
    let port = std::env::var("PORT").ok().and_then(|port| port.parse().ok());
    // Set if the load comes from other machines.
    let host = std::env::var("HOST").ok().and_then(|host| host.parse().ok()).unwrap_or(Ipv4Addr::LOCALHOST);
    let address = match (port, std::env::var_os("SOCKET")) {
        (Some(port), _) => Address::Tcp(SocketAddr::from((host, port))),
        (None, Some(path)) => Address::Unix(path.into()),
        (None, None) => return 2,
    };
    let (Some(body_bytes), Some(threads)) = (number(0), number(1)) else { return 2 };
    // Each connection needs one open file. If the limit cannot be raised, fewer connections are possible.
    let _ = raise_open_files();
    let file = |place: usize| arguments.get(place).map(PathBuf::from);
    let tls = file(2).zip(file(3)).map(|(certificate, key)| ServerIdentity { certificate, key });
    let config = NullConfig { address, body_bytes, threads, tls, ..NullConfig::default() };
    let Ok(server) = NullServer::start(config) else { return 1 };
    while server.is_running() {
        std::thread::sleep(GLANCE);
    }
    1
}

/// Measures answers per second while all contenders are frozen.
///
/// # Errors
/// The reason in words.
pub(crate) fn measure(epoch_run: &EpochRun<'_>, parity: &Parity) -> Result<f64, String> {
    let launcher = epoch_run.launcher;
    let threads = launcher.plan.pinning.server_cpus.len().max(1);
    let NullStart { process, answer } =
        launcher.start_null(body_length(parity), threads).map_err(|error| error.to_string())?;
    let runner = ReadyContender { contender: 0, process, cold_start: Duration::ZERO, build_seed: None };
    let requests = requests(epoch_run, parity, &answer.body)?;
    let shape = Experiment::Closed { connections: epoch_run.scenario.shape.connections() };
    let scenario = ScenarioPlan { shape, ..epoch_run.scenario.clone() };
    let tls = epoch_run.launcher.contract.tls().cloned();
    let opened = LoadedContender::open(
        launcher.generator,
        runner,
        &scenario,
        launcher.plan,
        requests,
        tls,
        epoch_run.seed,
    );
    let mut loaded = opened.map_err(|failure| with_causes(&failure.1))?;
    let mut slice =
        |length| loaded.slice(length, SliceStart::Position(0)).map_err(|error| with_causes(&error));
    let of_an_epoch = Duration::from_nanos(launcher.plan.slices(epoch_run.scenario).measured_ns());
    let measured = of_an_epoch.clamp(SHORTEST, MEASURED);
    slice(WARMUP.min(measured))?;
    slice(measured)?.rate_per_s().ok_or_else(|| "the null server gave no answer".into())
}

/// Measures the bandwidth between the load hosts and this machine while all contenders are frozen. None if the load comes from this machine.
///
/// # Errors
/// The reason in words.
pub(crate) fn bandwidth(epoch_run: &EpochRun<'_>) -> Result<Option<LinkBandwidth>, String> {
    let (launcher, plan) = (epoch_run.launcher, epoch_run.launcher.plan);
    let threads = plan.pinning.server_cpus.len().max(1);
    let started = launcher.start_null(LARGE_BODY, threads).map_err(|error| error.to_string())?;
    let address = started.process.address().clone();
    let config = SessionConfig {
        tls: epoch_run.launcher.contract.tls().cloned(),
        ..link_session(address, &plan.pinning)?
    };
    launcher.generator.bandwidth(&config).transpose()
}

/// The connections of each load host that show the bandwidth of its network, to a null server whose bodies have [`LARGE_BODY`] bytes.
///
/// # Errors
/// None in practice: the request is a fixed one.
pub fn link_session(address: Address, pinning: &Pinning) -> Result<SessionConfig, String> {
    let bytes = request_bytes("GET", "/", "localhost", &[], b"").map_err(|error| error.to_string())?;
    let request = Prepared { bytes, head: false, expect: Expectation::ANY };
    Ok(SessionConfig {
        threads: pinning.load_cpus.len().max(1),
        cpus: pinning.load_cpus.clone(),
        connect_timeout: LINK_TIMEOUT,
        timeout: LINK_TIMEOUT,
        ..SessionConfig::to(address, LINK_CONNECTIONS, Requests::one(request))
    })
}

/// Makes requests that cost the generator the same work as in the race: it computes a digest if the race does.
fn requests(epoch_run: &EpochRun<'_>, parity: &Parity, body: &[u8]) -> Result<Sent, String> {
    let contender = epoch_run.racing.first().copied().unwrap_or(0);
    let all = epoch_run.requests_with(contender, parity, |mut prepared| {
        let body = prepared.expect.body.as_costly(body, prepared.head);
        prepared.expect = Expectation { status: StatusRule::Any, body };
        prepared
    });
    all.map_err(|broken| match broken {
        EpochError::Failed(reason) => reason,
        EpochError::Out(..) | EpochError::Parity(_) | EpochError::Interrupted => {
            "its requests could not be made".into()
        }
    })
}

/// The mean length of the contenders' bodies.
fn body_length(parity: &Parity) -> usize {
    let bodies = parity.answers.values().flat_map(|of_probes| of_probes.values()).flatten();
    let (sum, count) = bodies.fold((0, 0), |(sum, count), body| (sum + body.len(), count + 1));
    sum.checked_div(count).unwrap_or_else(|| NullConfig::default().body_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_null_servers_body_is_as_long_as_theirs() {
        let of = |lengths: &[usize]| {
            let bodies = BTreeMap::from([("p".to_owned(), lengths.iter().map(|n| vec![b'x'; *n]).collect())]);
            body_length(&Parity { answers: BTreeMap::from([("a".to_owned(), bodies)]), ..Parity::default() })
        };
        assert_eq!((of(&[100, 300]), of(&[0]), of(&[])), (200, 0, 13));
    }

    #[test]
    fn a_null_server_without_a_place_ends() {
        assert_eq!(serve(&["13".into()]), 2);
    }
}
