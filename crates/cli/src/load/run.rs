//! Runs the load: connections, warm-up, measurement, and Ctrl-C.
//!
//! Owns: the engine's session. Must not know: how to draw progress, how the tally is used.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadheat_load::{
    Address, Answer, ExchangeError, Limit, OpenError, ProgressHandle, Requests, Session, SessionConfig,
    SessionError, SliceOrder, StopHandle, Tally, Times, TlsSettings, exchange, with_causes,
};
use deadheat_remote::kubernetes::LoadJob;
use deadheat_remote::message::Asked;
use deadheat_remote::{HostSlice, LoadHosts, Part, Patience, RemoteError, RemoteSession, merge, start_skew};
use deadheat_report::load::live::Phase;

use super::plan::LoadPlan;
use super::show::{Goal, Show};
use super::target::first_that_answers;
use super::wire::Wire;
use crate::interrupt::{Interrupt, unless};
use crate::trouble::Trouble;
use deadheat_study::choices::UsageError;

/// The interval of checks for Ctrl-C. Progress is redrawn after every second check.
const GLANCE: Duration = Duration::from_millis(100);
/// The longest body of an answer before the load.
const MAX_BODY: usize = 16 << 20;

/// The address of the server, and the machines from which it is loaded.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    pub(crate) address: Address,
    pub(crate) tls: Option<TlsSettings>,
    /// `None`: it is loaded from this machine.
    pub(crate) hosts: Option<Arc<LoadHosts>>,
}

/// Starts the pods of a Job, with an agent in each. `None` if `stopped` becomes true before that.
pub(crate) fn start_pods(job: LoadJob, stopped: &dyn Fn() -> bool) -> Result<Option<LoadHosts>, RemoteError> {
    let started = unless(stopped, move || {
        job.start()?;
        LoadHosts::connect(job.workers(), env!("CARGO_PKG_VERSION"), Patience::default())
    });
    started.transpose()
}

/// Finds the address at which the server answers. `None` if `stopped` becomes true before that.
pub(crate) fn connect(
    plan: &LoadPlan,
    hosts: Option<Arc<LoadHosts>>,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Connected>, UsageError> {
    let plan = plan.clone();
    unless(stopped, move || find(&plan, hosts)).transpose()
}

fn find(plan: &LoadPlan, hosts: Option<Arc<LoadHosts>>) -> Result<Connected, UsageError> {
    let tls = plan.target.tls.then(|| TlsSettings::new(&plan.target.host, plan.trust.clone())).transpose();
    let tls = tls.map_err(|error| {
        UsageError::new(with_causes(&error), "for a self-signed certificate, use --ca FILE or --insecure")
    })?;
    let address = match &plan.unix_socket {
        Some(path) => Address::Unix(path.clone()),
        None => {
            let addresses = plan.target.addresses(&plan.allowed, hosts.is_some(), &resolve)?;
            let connect = |address: &SocketAddr| match &hosts {
                None => Address::Tcp(*address).accepts(plan.connect_timeout),
                Some(hosts) => hosts
                    .reach(&Address::Tcp(*address), plan.connect_timeout)
                    .map_err(io::Error::other)?
                    .map_err(io::Error::other),
            };
            let from = hosts.as_ref().and_then(|hosts| hosts.names().next());
            let origin = plan.target.origin();
            let place = from.map_or(origin.clone(), |host| format!("{origin}, as load host {host} sees it"));
            first_that_answers(&place, &addresses, &connect)?.into()
        }
    };
    Ok(Connected { address, tls, hosts })
}

/// The addresses of a name. `localhost` means both loopback addresses, whatever the hosts file says.
fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let found = (host, port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    if host != "localhost" {
        return found;
    }
    let mut addresses = found.unwrap_or_default();
    let both: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    for address in both.map(|address| SocketAddr::new(address, port)) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

impl Connected {
    /// Why a load host is lost; none if none is.
    pub(crate) fn lost(&self) -> Option<RemoteError> {
        self.hosts.as_ref()?.lost().into_iter().next()
    }

    /// Sends one request on a separate connection, from the first load host if there are any. If `stopped` becomes true, it no longer waits for the
    /// answer and reports a timeout.
    ///
    /// # Errors
    /// Why there is no answer, in words.
    pub(crate) fn ask(
        &self,
        wire: &Wire,
        timeout: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Answer, String> {
        let (server, bytes, head) = (self.clone(), wire.bytes.clone(), wire.method == "HEAD");
        let asking = move || {
            let (address, tls) = (&server.address, server.tls.as_ref());
            match &server.hosts {
                None => exchange(address, tls, &bytes, head, timeout, MAX_BODY)
                    .map_err(|error| with_causes(&error)),
                Some(hosts) => {
                    let asked = Asked { address: address.clone(), tls: tls.cloned(), bytes, head };
                    let answers = hosts.ask(vec![asked], timeout, MAX_BODY);
                    let mut answers = answers.map_err(|error| error.to_string())?;
                    answers.remove(0).map_err(|why| why.reason)
                }
            }
        };
        unless(stopped, asking).unwrap_or_else(|| Err(ExchangeError::Timeout(timeout).to_string()))
    }
}

/// The results of a load.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The tally of the measured load, without the warm-up.
    pub(crate) tally: Tally,
    /// io_uring or epoll; both if load hosts differ.
    pub(crate) backend: String,
    /// Worker threads, on all load hosts.
    pub(crate) workers: usize,
    /// Whether the user interrupted it.
    pub(crate) interrupted: bool,
    /// What each load host did; empty if the load came from this machine.
    pub(crate) hosts: Vec<LoadedHost>,
    /// By how much the load hosts began apart.
    pub(crate) start_skew: Option<Duration>,
}

/// What one load host did.
#[derive(Debug)]
pub(crate) struct LoadedHost {
    pub(crate) name: String,
    pub(crate) part: Part,
    pub(crate) backend: &'static str,
    pub(crate) slice: HostSlice,
    /// Round trips of its channel.
    pub(crate) round_trips: Times,
}

/// Opens the connections, warms up and loads. `None` if it was interrupted before the measurement.
pub(crate) fn load(
    plan: &LoadPlan,
    server: &Connected,
    requests: Arc<Requests>,
    interrupt: &Interrupt,
    show: &mut Show,
) -> Result<Option<Loaded>, LoadError> {
    let config = config(plan, server, requests);
    let mut session = match &server.hosts {
        None => Carrier::Here(Session::open(config).map_err(|error| opening(plan, &error))?),
        Some(hosts) => Carrier::There(RemoteSession::open(Arc::clone(hosts), &config)?, Arc::clone(hosts)),
    };
    let warmup = SliceOrder {
        pacer: plan.pacer(true),
        limit: Limit::duration(plan.warmup),
        settle: Duration::ZERO,
        start: plan.start(true),
    };
    if !plan.warmup.is_zero() {
        let goal = Goal { phase: Phase::WarmUp, duration: Some(plan.warmup), requests: None };
        for slice in watched(&mut session, &warmup, &goal, interrupt, show)?.1 {
            slice.result?;
        }
    }
    if interrupt.asked() {
        return Ok(None);
    }
    let order =
        SliceOrder { pacer: plan.pacer(false), limit: plan.limit(), start: plan.start(false), ..warmup };
    let goal = Goal { phase: Phase::Load, duration: plan.duration, requests: plan.requests };
    let (tally, slices) = watched(&mut session, &order, &goal, interrupt, show)?;
    let interrupted = interrupt.asked();
    let start_skew = start_skew(&slices);
    Ok(Some(match session {
        Carrier::Here(session) => Loaded {
            tally,
            backend: session.backend().name().to_owned(),
            workers: session.workers(),
            interrupted,
            hosts: Vec::new(),
            start_skew,
        },
        Carrier::There(session, hosts) => {
            let mut backends: Vec<&str> = session.backends().iter().map(|backend| backend.name()).collect();
            let each = session.parts().iter().zip(hosts.names()).zip(&backends).zip(slices).enumerate();
            let each = each.map(|(index, (((part, name), backend), slice))| LoadedHost {
                name: name.to_owned(),
                part: part.clone(),
                backend,
                slice,
                round_trips: hosts.round_trips(index),
            });
            let each = each.collect();
            backends.sort_unstable();
            backends.dedup();
            let workers = session.parts().iter().map(|part| part.threads).sum();
            Loaded { tally, backend: backends.join(" and "), workers, interrupted, hosts: each, start_skew }
        }
    }))
}

/// The session that carries the load.
enum Carrier {
    Here(Session),
    There(RemoteSession, Arc<LoadHosts>),
}

impl Carrier {
    fn handles(&self) -> (StopHandle, ProgressHandle) {
        match self {
            Self::Here(session) => (session.stop_handle(), session.progress()),
            Self::There(session, _) => (session.stop_handle(), session.progress()),
        }
    }

    /// Runs a slice. The tally is that of all load hosts that were not lost, and each host's own result comes with it.
    fn slice(&mut self, order: &SliceOrder) -> Result<(Tally, Vec<HostSlice>), SessionError> {
        match self {
            Self::Here(session) => Ok((session.slice(order)?, Vec::new())),
            Self::There(session, _) => {
                let slices = session.slice_on_hosts(order);
                let tally = merge(slices.iter().filter_map(|slice| slice.result.as_ref().ok()));
                Ok((tally, slices))
            }
        }
    }
}

pub(super) fn config(plan: &LoadPlan, server: &Connected, requests: Arc<Requests>) -> SessionConfig {
    SessionConfig {
        tls: server.tls.clone(),
        max_connections: plan.max_connections,
        threads: plan.threads,
        cpus: plan.cpus.clone(),
        spin: plan.spin(),
        backend: plan.backend,
        connect_timeout: plan.connect_timeout,
        timeout: plan.timeout,
        ..SessionConfig::to(server.address.clone(), plan.connections, requests)
    }
}

/// Runs one slice on a separate thread, while this thread watches it. This thread wakes rarely, because it may share a CPU with the server.
fn watched(
    session: &mut Carrier,
    order: &SliceOrder,
    goal: &Goal,
    interrupt: &Interrupt,
    show: &mut Show,
) -> Result<(Tally, Vec<HostSlice>), SessionError> {
    let (stop, progress) = session.handles();
    let mut trouble = match session {
        Carrier::Here(_) => None,
        Carrier::There(_, hosts) => Some(Trouble::with(Arc::clone(hosts), "the load ends")),
    };
    let (watcher, begun) = (std::thread::current(), Instant::now());
    show.begin(goal, &progress, begun);
    std::thread::scope(|scope| {
        let slice = scope.spawn(|| {
            let tally = session.slice(order);
            watcher.unpark();
            tally
        });
        let mut stopped = false;
        while !slice.is_finished() {
            if interrupt.asked() && !stopped {
                stop.stop();
                stopped = true;
                show.ends();
            }
            if let Some(trouble) = &mut trouble {
                tell(trouble, show);
            }
            show.glance(Instant::now());
            if !slice.is_finished() {
                std::thread::park_timeout(GLANCE);
            }
        }
        // A slice ends soon after a host is lost.
        if let Some(trouble) = &mut trouble {
            tell(trouble, show);
        }
        // A panic of that thread is reported as a lost worker.
        slice.join().unwrap_or(Err(SessionError::WorkerLost))
    })
}

/// Shows what is wrong with load hosts.
fn tell(trouble: &mut Trouble, show: &mut Show) {
    let had_lost = trouble.has_lost();
    trouble.news().iter().for_each(|line| show.say(line));
    if trouble.has_lost() && !had_lost {
        show.ends();
    }
}

/// Why the load failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The connections could not be opened as requested.
    #[error(transparent)]
    Open(#[from] UsageError),
    /// The generator failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A load host cannot be used.
    #[error(transparent)]
    Host(#[from] RemoteError),
}

/// The remedy for connections that cannot be opened.
fn opening(plan: &LoadPlan, error: &OpenError) -> UsageError {
    let remedy = match error {
        OpenError::Connect { opened: 0, .. } if plan.target.tls => {
            "write http:// if there is no TLS; for a self-signed certificate, use --ca FILE or --insecure"
                .into()
        }
        OpenError::Connect { opened: 0, .. } => "start the server first, or correct the address".into(),
        OpenError::Connect { opened, .. } => {
            format!("lower -c to at most {opened}, or let the server accept more connections at once")
        }
        OpenError::Address { .. } => "name a socket with a shorter path".into(),
        OpenError::Pin { .. } => "name CPUs with --cpus that this process may use".into(),
        OpenError::Backend { .. } => "leave --backend out, or use --backend epoll".into(),
        // Load hosts report their errors themselves.
        OpenError::NoConnections | OpenError::Worker(_) | OpenError::Elsewhere { .. } => {
            "ask for fewer connections (-c) or threads (-t), or raise the limits of this process (ulimit -a)"
                .into()
        }
    };
    UsageError::new(with_causes(error), remedy)
}
