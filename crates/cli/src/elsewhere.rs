//! Load hosts: reaching them, and the load of a race from them.
//!
//! Owns: that agents are started on machines that ssh reaches, that contenders are loaded at the address at which these reach this machine, and what the network
//! between them carries. Must not know: how a load is judged.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use deadheat_host::monitor::Disturbance;
use deadheat_load::{Address, Answer, LoadSession, NoAnswer, OpenError, SessionConfig, SliceOrder, nanos};
use deadheat_record::{
    Bandwidth, Clock, DoctorLinkHost, ExternalReading, Finding, LinkBandwidth, LoadFrom, LoadHostShare, Plan,
};
use deadheat_remote::message::{Asked, Seen, Unseen};
use deadheat_remote::{
    HostCommand, HostSlice, HostWork, LoadHosts, Patience, Program, RemoteError, RemoteSession, SshTarget,
};
use deadheat_runner::{LoadGenerator, LoadHostWork, LoadHostsWork, MAX_BODY, Question};
use deadheat_study::choices::UsageError;
use deadheat_study::prepare::PrepareError;

use crate::commands::Failure;
use crate::console::{Console, lines_plain};
use crate::flags::RaceHostFlags;
use crate::interrupt::{Interrupt, unless};
use crate::trouble::{Telling, Trouble};

/// How long the bandwidth of the network is measured, and for how long connections get going before.
const LINK_MEASURED: Duration = Duration::from_millis(500);
const LINK_WARMUP: Duration = Duration::from_millis(200);

/// How long round trips are measured.
const ROUND_TRIPS_MEASURED: Duration = Duration::from_millis(500);

/// Refuses a load host that is named twice: two agents would share its cores.
///
/// # Errors
/// One is.
pub(crate) fn named_once(hosts: &[SshTarget]) -> Result<(), UsageError> {
    let twice = hosts.iter().enumerate().find(|(at, host)| hosts[..*at].contains(host));
    twice.map_or(Ok(()), |(_, twice)| {
        Err(UsageError::new(format!("--load-host ssh://{twice} is named twice"), "name each host once"))
    })
}

/// The machines from which the load comes, if there are any.
///
/// # Errors
/// One is named twice, or it is not known where they reach this one.
pub(crate) fn load_from(flags: &RaceHostFlags, console: &Console) -> Result<Option<LoadFrom>, UsageError> {
    named_once(flags.load_hosts())?;
    let Some(first) = flags.load_hosts().first() else { return Ok(None) };
    let hosts = flags.load_hosts().iter().map(|host| format!("ssh://{host}")).collect();
    if let Some(server_address) = flags.server_address {
        return Ok(Some(LoadFrom { hosts, server_address }));
    }
    let name = first.host();
    let server_address = address_towards(name).map_err(|error| {
        UsageError::new(
            format!("--load-host: it is not known at which address the load hosts reach this machine: {name}: {error}"),
            "add the address of this machine in their network, for example: --server-address 10.0.0.5",
        )
    })?;
    console.note(&lines_plain(&format!(
        "the load hosts reach the contenders at {server_address}, from where this machine reaches {name}; --server-address names another address"
    )));
    Ok(Some(LoadFrom { hosts, server_address }))
}

/// The address from which this machine reaches another one.
fn address_towards(name: &str) -> io::Result<Ipv4Addr> {
    // A port must be named, and none is used: to connect chooses the way, and sends nothing.
    let all: Vec<SocketAddr> = (name, 9).to_socket_addrs()?.filter(SocketAddr::is_ipv4).collect();
    if all.is_empty() {
        return Err(io::Error::other("it has no IPv4 address"));
    }
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(&all[..])?;
    match socket.local_addr()? {
        SocketAddr::V4(own) => Ok(*own.ip()),
        SocketAddr::V6(_) => Err(io::Error::other("it has no IPv4 address")),
    }
}

/// Reaches load hosts, and starts an agent on each. None if the load comes from this machine.
pub(crate) fn reach(
    from: Option<&LoadFrom>,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<Elsewhere>, Failure> {
    let Some(from) = from else { return Ok(None) };
    let target = |host: &String| -> Result<SshTarget, UsageError> {
        host.parse()
            .map_err(|error| UsageError::new(format!("{host}: {error}"), "write it as ssh://user@host:22"))
    };
    let targets = from.hosts.iter().map(target).collect::<Result<Vec<_>, _>>()?;
    tell_reached(&targets, console);
    let program = Program::running(env!("CARGO_PKG_VERSION"))?;
    let hosts = connect(&targets, &program, &|| interrupt.asked())?.ok_or(PrepareError::Interrupted)?;
    Ok(Some(Elsewhere { hosts: Arc::new(hosts), from: from.clone() }))
}

/// Says which machines are about to be reached.
pub(crate) fn tell_reached<'t>(targets: impl IntoIterator<Item = &'t SshTarget>, console: &Console) {
    let names: Vec<String> = targets.into_iter().map(ToString::to_string).collect();
    console.note(&lines_plain(&format!("reaching {} by ssh", names.join(", "))));
}

/// Starts an agent on each of these machines. `None` if `stopped` becomes true before that.
///
/// # Errors
/// One cannot be reached.
pub(crate) fn connect(
    targets: &[SshTarget],
    program: &Program,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<LoadHosts>, UsageError> {
    let hosts: Vec<HostCommand> = targets.iter().map(|host| HostCommand::ssh(host, program)).collect();
    let version = env!("CARGO_PKG_VERSION");
    let reached = unless(stopped, move || LoadHosts::connect(hosts, version, Patience::default()));
    reached.transpose().map_err(|error| UsageError::new(error.to_string(), error.remedy()))
}

/// Loads contenders on this machine from others.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    hosts: Arc<LoadHosts>,
    from: LoadFrom,
}

impl Elsewhere {
    /// Whether a load host was lost.
    pub(crate) fn has_lost(&self) -> bool {
        !self.hosts.lost().is_empty()
    }

    /// Where the load hosts reach a contender.
    fn seen_from_there(&self, address: &Address) -> Address {
        address.seen_at(self.from.server_address.into())
    }

    /// Calls `say` at once when a load host is silent or lost, until the result is dropped. None if the system cannot start a thread.
    pub(crate) fn tell_trouble(&self, say: impl Fn(&str) + Send + 'static) -> Option<Telling> {
        let trouble = Trouble::with(Arc::clone(&self.hosts), "the race ends");
        trouble.tell_with(move |line| say(&lines_plain(line))).ok()
    }

    /// Time that a slice takes beside its load.
    pub(crate) fn order_cost(&self) -> Duration {
        self.hosts.order_cost()
    }

    /// The number of load hosts.
    pub(crate) fn count(&self) -> usize {
        self.hosts.count()
    }

    /// The load hosts as a plan names them, and the address at which they reach this machine.
    pub(crate) fn from(&self) -> &LoadFrom {
        &self.from
    }

    /// The round trips of each load host, while the others are idle, and its clock. `config` has the address and the request.
    ///
    /// # Errors
    /// A load host fails, or gets no answer.
    pub(crate) fn round_trips(&self, config: &SessionConfig) -> io::Result<Vec<DoctorLinkHost>> {
        let watched = self.hosts.watch(&[], false).map_err(io::Error::other)?;
        let clocks: Vec<Clock> = watched.into_iter().map(|(_, watching)| watching.clock).collect();
        let of = |(host, name): (usize, &str)| {
            let one = SessionConfig { connections: 1, max_connections: 1, threads: 1, ..config.clone() };
            let mut session = RemoteSession::open_on(Arc::clone(&self.hosts), vec![host], &one)
                .map_err(io::Error::other)?;
            session.slice(&SliceOrder::closed(LINK_WARMUP)).map_err(io::Error::other)?;
            let latency =
                session.slice(&SliceOrder::closed(ROUND_TRIPS_MEASURED)).map_err(io::Error::other)?.latency;
            let at = |quantile| {
                let no_answer =
                    || io::Error::other(format!("load host {name} got no answer from this machine"));
                latency.quantile_ns(quantile).ok_or_else(no_answer)
            };
            Ok(DoctorLinkHost {
                name: name.to_owned(),
                count: latency.count(),
                min_ns: at(0.0)?,
                p50_ns: at(0.5)?,
                p99_ns: at(0.99)?,
                clock: clocks.get(host).cloned(),
            })
        };
        self.hosts.names().enumerate().map(of).collect()
    }

    /// The bandwidth of each load host alone, and of all together. `config` has the connections of each.
    fn link(&self, config: &SessionConfig) -> Result<LinkBandwidth, RemoteError> {
        let count = self.hosts.count();
        let alone = (0..count).map(|host| self.received(vec![host], config));
        let hosts = alone.collect::<Result<Vec<Bandwidth>, RemoteError>>()?;
        let together = match hosts[..] {
            [one] => one,
            _ => self.received((0..count).collect(), config)?,
        };
        Ok(LinkBandwidth { hosts, together })
    }

    /// What these hosts receive per second when all of them are loaded at once.
    fn received(&self, on: Vec<usize>, config: &SessionConfig) -> Result<Bandwidth, RemoteError> {
        let connections = config.connections * on.len();
        let config = SessionConfig { connections, max_connections: connections, ..config.clone() };
        let mut session = RemoteSession::open_on(Arc::clone(&self.hosts), on, &config)?;
        for slice in session.slice_on_hosts(&SliceOrder::closed(LINK_WARMUP)) {
            slice.result?;
        }
        let of = |HostSlice { result, seen, .. }: HostSlice| -> Result<Bandwidth, RemoteError> {
            let tally = result?;
            let per_s = |bytes: u64| bytes as f64 * 1e9 / tally.elapsed_ns.max(1) as f64;
            let received = seen.and_then(|seen| seen.network.received_bytes);
            Ok(Bandwidth {
                payload_bytes_per_s: per_s(tally.bytes_read),
                interface_bytes_per_s: received.map(per_s),
            })
        };
        let each = session.slice_on_hosts(&SliceOrder::closed(LINK_MEASURED)).into_iter().map(of);
        let each = each.collect::<Result<Vec<Bandwidth>, RemoteError>>()?;
        Ok(each.into_iter().reduce(|sum, one| sum.plus(&one)).unwrap_or_default())
    }

    /// What was last seen of the machines, with their names.
    fn seen(&self) -> Vec<(&str, Seen)> {
        self.hosts.seen()
    }
}

impl LoadGenerator for Elsewhere {
    fn ask(
        &self,
        asked: &[(&Address, &Question)],
        patience: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Option<Vec<Result<Answer, NoAnswer>>> {
        let asked: Vec<Asked> = asked
            .iter()
            .map(|(address, question)| Asked {
                address: self.seen_from_there(address),
                tls: question.tls.clone(),
                bytes: question.bytes.to_vec(),
                head: question.head,
            })
            .collect();
        let (hosts, count) = (Arc::clone(&self.hosts), asked.len());
        let answers = unless(stopped, move || hosts.ask(asked, patience, MAX_BODY))?;
        Some(match answers {
            Ok(answers) => answers,
            Err(error) => vec![Err(NoAnswer::plain(error.to_string())); count],
        })
    }

    fn open(&self, config: SessionConfig) -> Result<Box<dyn LoadSession>, OpenError> {
        let config = SessionConfig {
            address: self.seen_from_there(&config.address),
            // A sample is a whole body, and travels with the results of each slice.
            max_samples_per_slice: config.max_samples_per_slice.min(1),
            ..config
        };
        let session = RemoteSession::open(Arc::clone(&self.hosts), &config);
        session.map(|session| Box::new(session) as Box<dyn LoadSession>).map_err(|error| {
            OpenError::Elsewhere {
                reason: error.to_string(),
                own: !matches!(error, RemoteError::Failed { own: false, .. }),
            }
        })
    }

    fn take_load_hosts(&self) -> Option<LoadHostsWork> {
        let work = self.hosts.take_work();
        let of = |(index, (name, work)): (usize, (&str, HostWork))| LoadHostWork {
            name: name.to_owned(),
            connections: work.connections as u64,
            share: LoadHostShare {
                requests: work.requests,
                completions: work.completions,
                bytes_read: work.bytes_read,
                bytes_written: work.bytes_written,
                loaded_ns: nanos(work.elapsed),
                network: work.network.unwrap_or_default(),
            },
            round_trips: self.hosts.take_round_trips(index),
            start_delays: work.delays,
            external: work.seen.as_ref().map(external),
            stalled_share: work.stalled_share,
            silence: self.hosts.take_silence(index),
        };
        let hosts = self.hosts.names().zip(work.hosts).enumerate().map(of).collect();
        Some(LoadHostsWork { hosts, start_skews: work.start_skews })
    }

    fn bandwidth(&self, config: &SessionConfig) -> Option<Result<LinkBandwidth, String>> {
        let config = SessionConfig { address: self.seen_from_there(&config.address), ..config.clone() };
        Some(self.link(&config).map_err(|error| error.to_string()))
    }

    fn lost(&self) -> Option<Finding> {
        let error = self.hosts.lost().into_iter().next()?;
        Some(Finding::warn("host-lost", error.to_string(), error.remedy()))
    }

    fn watch(&self, plan: &Plan) -> Result<Vec<Finding>, String> {
        let cpus = &plan.pinning.load_cpus;
        let stalls =
            !cpus.is_empty() && plan.scenarios.iter().any(|one| plan.highest_quantile(one).is_some());
        let all = self.hosts.watch(cpus, stalls).map_err(|error| error.to_string())?;
        let mut findings = Vec::new();
        for (host, watching) in all {
            let finding = |one: Unseen| {
                Finding::warn(&one.code, format!("load host {host}: {}", one.message), one.remedy)
            };
            findings.extend(watching.unseen.into_iter().map(finding));
        }
        Ok(findings)
    }

    fn disturbance(&self) -> Option<Disturbance> {
        let all = self.seen().into_iter().map(|(host, seen)| Disturbance {
            reading: external(&seen),
            foreign_off: seen.foreign_off,
            foreign_of: format!("load host {host}'s cores").into(),
        });
        let worst = all.reduce(|one, other| one.or_worse(Some(other)));
        self.hosts.count_afresh();
        worst
    }

    fn stalled_share(&self) -> Option<f64> {
        self.seen().into_iter().filter_map(|(_, seen)| seen.stalled_share).reduce(f64::max)
    }
}

fn external(seen: &Seen) -> ExternalReading {
    ExternalReading { steal_share: seen.steal_share, foreign_share: seen.foreign_share }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_host_is_named_once() {
        let named = |all: &[&str]| {
            let hosts: Vec<SshTarget> = all.iter().map(|host| host.parse().unwrap()).collect();
            named_once(&hosts).map_err(|error| error.problem)
        };
        assert_eq!(named(&["ssh://a", "ssh://me@a", "ssh://a:2222"]), Ok(()));
        let problem = named(&["ssh://b", "ssh://a", "ssh://a/"]).unwrap_err();
        assert_eq!(problem, "--load-host ssh://a is named twice");
    }

    #[test]
    fn the_way_to_this_machine_begins_at_its_loopback() {
        assert_eq!(address_towards("127.0.0.1").unwrap(), Ipv4Addr::LOCALHOST);
        assert!(address_towards("::1").unwrap_err().to_string().contains("no IPv4"));
    }
}
