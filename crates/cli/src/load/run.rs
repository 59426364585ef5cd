//! Runs the load: connections, warm-up, measurement, and Ctrl-C.
//!
//! Owns: the engine's session. Must not know: how to draw progress, how the tally is used.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use deadheat_load::{
    Address, Answer, Backend, ExchangeError, Limit, OpenError, Requests, Session, SessionConfig,
    SessionError, SliceOrder, Tally, TlsSettings, exchange_tls,
};
use deadheat_report::load::live::Phase;

use super::checks::chain;
use super::plan::LoadPlan;
use super::show::{Goal, Show};
use super::target::first_that_answers;
use super::wire::Wire;
use crate::interrupt::Interrupt;
use deadheat_study::choices::UsageError;

/// The interval of checks for Ctrl-C. Progress is redrawn after every second check.
const GLANCE: Duration = Duration::from_millis(100);
/// The longest body of an answer before the load.
const MAX_BODY: usize = 16 << 20;

/// The address of the server.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    pub(crate) address: Address,
    pub(crate) tls: Option<TlsSettings>,
}

/// Finds the address at which the server answers. `None` if `stopped` becomes true before that.
pub(crate) fn connect(plan: &LoadPlan, stopped: &dyn Fn() -> bool) -> Result<Option<Connected>, UsageError> {
    let plan = plan.clone();
    unless(stopped, move || find(&plan)).transpose()
}

fn find(plan: &LoadPlan) -> Result<Connected, UsageError> {
    let tls = plan.target.tls.then(|| TlsSettings::new(&plan.target.host, plan.trust.clone())).transpose();
    let tls = tls.map_err(|error| {
        UsageError::new(chain(&error), "for a self-signed certificate, use --ca FILE or --insecure")
    })?;
    let address = match &plan.unix_socket {
        Some(path) => Address::Unix(path.clone()),
        None => {
            let addresses = plan.target.addresses(&plan.allowed, &resolve)?;
            let connect =
                |address: &SocketAddr| TcpStream::connect_timeout(address, plan.connect_timeout).map(drop);
            first_that_answers(&plan.target.origin(), &addresses, &connect)?.into()
        }
    };
    Ok(Connected { address, tls })
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
    /// Sends one request on a separate connection. If `stopped` becomes true, it no longer waits for the answer and reports a timeout.
    pub(crate) fn ask(
        &self,
        wire: &Wire,
        timeout: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Answer, ExchangeError> {
        let (server, bytes, head) = (self.clone(), wire.bytes.clone(), wire.method == "HEAD");
        let exchange =
            move || exchange_tls(&server.address, server.tls.as_ref(), &bytes, head, timeout, MAX_BODY);
        unless(stopped, exchange).unwrap_or(Err(ExchangeError::Timeout(timeout)))
    }
}

/// Runs `work` on a separate thread and returns its result. `None` as soon as `stopped` is true. The thread then continues until it or the program
/// ends.
fn unless<T: Send + 'static>(
    stopped: &dyn Fn() -> bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    // A late result has no receiver.
    std::thread::spawn(move || drop(sender.send(work())));
    loop {
        match receiver.recv_timeout(GLANCE) {
            Ok(done) => return Some(done),
            Err(RecvTimeoutError::Timeout) if !stopped() => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// The results of a load.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The tally of the measured load, without the warm-up.
    pub(crate) tally: Tally,
    /// io_uring or epoll.
    pub(crate) backend: Backend,
    /// Worker threads.
    pub(crate) workers: usize,
    /// Whether the user interrupted it.
    pub(crate) interrupted: bool,
}

/// Opens the connections, warms up and loads. `None` if it was interrupted before the measurement.
pub(crate) fn load(
    plan: &LoadPlan,
    server: &Connected,
    requests: Arc<Requests>,
    interrupt: &Interrupt,
    show: &mut Show,
) -> Result<Option<Loaded>, LoadError> {
    let mut session = Session::open(config(plan, server, requests)).map_err(|error| opening(plan, &error))?;
    let warmup = SliceOrder {
        pacer: plan.pacer(true),
        limit: Limit::duration(plan.warmup),
        settle: Duration::ZERO,
        start: plan.start(true),
    };
    if !plan.warmup.is_zero() {
        let goal = Goal { phase: Phase::WarmUp, duration: Some(plan.warmup), requests: None };
        watched(&mut session, &warmup, &goal, interrupt, show)?;
    }
    if interrupt.asked() {
        return Ok(None);
    }
    let order =
        SliceOrder { pacer: plan.pacer(false), limit: plan.limit(), start: plan.start(false), ..warmup };
    let goal = Goal { phase: Phase::Load, duration: plan.duration, requests: plan.requests };
    let tally = watched(&mut session, &order, &goal, interrupt, show)?;
    let interrupted = interrupt.asked();
    let (backend, workers) = (session.backend(), session.workers());
    Ok(Some(Loaded { tally, backend, workers, interrupted }))
}

pub(super) fn config(plan: &LoadPlan, server: &Connected, requests: Arc<Requests>) -> SessionConfig {
    SessionConfig {
        address: server.address.clone(),
        tls: server.tls.clone(),
        connections: plan.connections,
        max_connections: plan.max_connections,
        threads: plan.threads,
        cpus: plan.cpus.clone(),
        spin: plan.spin(),
        backend: plan.backend,
        requests,
        connect_timeout: plan.connect_timeout,
        timeout: plan.timeout,
        sample_every: 0,
        max_samples_per_slice: 0,
        part: None,
    }
}

/// Runs one slice on a separate thread, while this thread watches it. This thread wakes rarely, because it may share a CPU with the server.
fn watched(
    session: &mut Session,
    order: &SliceOrder,
    goal: &Goal,
    interrupt: &Interrupt,
    show: &mut Show,
) -> Result<Tally, SessionError> {
    let (stop, progress) = (session.stop_handle(), session.progress());
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
            show.glance(Instant::now());
            if !slice.is_finished() {
                std::thread::park_timeout(GLANCE);
            }
        }
        // A panic of that thread is reported as a lost worker.
        slice.join().unwrap_or(Err(SessionError::WorkerLost))
    })
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
        OpenError::NoConnections | OpenError::Worker(_) => {
            "ask for fewer connections (-c) or threads (-t), or raise the limits of this process (ulimit -a)"
                .into()
        }
    };
    UsageError::new(chain(error), remedy)
}
