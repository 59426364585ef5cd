//! Owns: the workers' threads, from opening the connections until closing them, and the slices that they run together.
//! Must not know what happens on a connection. Between slices the threads block on a channel and use no CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;

use crate::address::Address;
use crate::driver::{Backend, Driver, Epoll, Target, Uring, os};
use crate::gauge::{Gauge, Progress};
use crate::limit::Limit;
use crate::pacer::Pacer;
use crate::protocol::Protocol;
use crate::protocol::http1::Http1;
use crate::requests::Requests;
use crate::slice::WorkerOrder;
use crate::tally::{Cause, Tally};
use crate::transport::TlsSettings;
use crate::worker::{Settings, Worker};

/// The settings of a session.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct SessionConfig {
    /// Where the server listens.
    pub address: Address,
    /// Whether and how the connections are encrypted.
    pub tls: Option<TlsSettings>,
    /// How many connections are opened before the first slice, spread evenly over the workers; at least 1.
    pub connections: usize,
    /// Open slices open more connections, up to this many, when requests are due and none is free. Not fewer than
    /// `connections`.
    pub max_connections: usize,
    /// Number of worker threads; at least 1. Threads beyond the number of connections are not started.
    pub threads: usize,
    /// The CPUs to which the workers are pinned, in turn. If empty, workers are not pinned.
    pub cpus: Vec<usize>,
    /// Whether workers stay awake for the whole slice. Sends are then on time, and the server does not spend time on
    /// waking the generator, just as if the generator ran on another machine. Use it only if each worker has a CPU to
    /// itself.
    pub spin: bool,
    /// How to communicate with the operating system.
    pub backend: Backend,
    /// The requests to send.
    #[serde(with = "crate::shared")]
    pub requests: Arc<Requests>,
    /// How long an attempt to connect may take.
    pub connect_timeout: Duration,
    /// Longest time from when a connection takes up a request to the complete answer. Checked every 10 ms.
    pub timeout: Duration,
    /// Keep the body of every n-th answer, beginning with the first (counted per worker over all slices); 0: keep none.
    pub sample_every: u32,
    /// Largest number of bodies to keep per slice and worker.
    pub max_samples_per_slice: u32,
    /// Which workers of the load these are, if sessions on other machines carry the rest of it. `None`: all of them.
    pub part: Option<WorkerRange>,
}

impl SessionConfig {
    /// The settings of a session with one worker, which sends these requests unencrypted on so many connections and never on more. An
    /// attempt to connect may take 5 s, and an answer too. No bodies are kept.
    pub fn to(address: Address, connections: usize, requests: impl Into<Arc<Requests>>) -> SessionConfig {
        SessionConfig {
            address,
            tls: None,
            connections,
            max_connections: connections,
            threads: 1,
            cpus: Vec::new(),
            spin: false,
            backend: Backend::Auto,
            requests: requests.into(),
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
            sample_every: 0,
            max_samples_per_slice: 0,
            part: None,
        }
    }
}

/// Which of a load's workers a session has. Of every `of` consecutive requests of a slice each worker takes one,
/// whichever session it is in, so that several sessions together send exactly the requests that one would send, at the
/// times at which it would send them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WorkerRange {
    /// How many workers are in front of this session's first one.
    pub first: usize,
    /// How many workers all sessions have together.
    pub of: usize,
}

/// The share of part number `index`, from 0, when `total` is divided as evenly as possible. The shares of all `parts`
/// add up to `total`; the first ones are larger by 1 when it cannot be divided evenly.
pub fn share(total: usize, index: usize, parts: usize) -> usize {
    (total - index.min(total)).div_ceil(parts)
}

/// What to do in one slice.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SliceOrder {
    /// When requests are due.
    pub pacer: Pacer,
    /// When to stop.
    pub limit: Limit,
    /// Settling time after the start: answers in it do not count for the rate, and requests intended in it not for the
    /// times.
    pub settle: Duration,
    /// Position of the slice's first request in the request order. Several workers share the order: of every n
    /// consecutive positions each of n workers takes one, and which one varies.
    pub start: u64,
}

impl SliceOrder {
    /// A slice of this length in which each connection waits for its answer. Every answer counts.
    pub fn closed(length: Duration) -> SliceOrder {
        SliceOrder { pacer: Pacer::Closed, limit: Limit::duration(length), settle: Duration::ZERO, start: 0 }
    }
}

/// Why a session could not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The number of connections is 0.
    #[error("a session needs at least one connection")]
    NoConnections,
    /// The address cannot be used, for example because the path of the socket is too long.
    #[error("the address {address} cannot be used")]
    Address {
        /// The address.
        address: Address,
        /// The system's error.
        source: std::io::Error,
    },
    /// Some connections could not be opened in time.
    #[error("only {opened} of {wanted} connections to {address} could be opened")]
    Connect {
        /// The address.
        address: Address,
        /// Connections that were opened.
        opened: usize,
        /// Connections that were wanted.
        wanted: usize,
        /// Error of the last attempt that failed.
        source: std::io::Error,
    },
    /// A worker could not be pinned to its CPU.
    #[error("the load generator cannot run on CPU {cpu}: choose one that this process may use")]
    Pin {
        /// The CPU.
        cpu: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// The thread of a worker, or its driver, could not be created.
    #[error("a worker of the load generator could not be started")]
    Worker(#[source] std::io::Error),
    /// The requested backend cannot be used here.
    #[error("the backend {backend} cannot be used here: leave the choice to deadheat, or take another", backend = .backend.name())]
    Backend {
        /// The requested backend.
        backend: Backend,
        /// The system's error.
        source: std::io::Error,
    },
    /// Another machine, which carries the load, could not open its connections.
    #[error("{reason}")]
    Elsewhere {
        /// The reason, with the machine's name.
        reason: String,
        /// Whether the machine or the generator there is the reason, and not the server.
        own: bool,
    },
}

impl OpenError {
    /// Whether the load generator or its machine failed, and not the server.
    pub fn is_our_own(&self) -> bool {
        match self {
            Self::NoConnections | Self::Pin { .. } | Self::Worker(_) => true,
            // Too many open files, in this process or on the machine.
            Self::Connect { source, .. } => [Errno::MFILE, Errno::NFILE]
                .iter()
                .any(|one| source.raw_os_error() == Some(one.raw_os_error())),
            Self::Elsewhere { own, .. } => *own,
            Self::Address { .. } | Self::Backend { .. } => false,
        }
    }
}

/// Why a slice could not run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Neither a duration nor a number of requests was given.
    #[error("a slice needs a duration, a number of requests, or both")]
    NoLimit,
    /// Waiting for connections failed.
    #[error("the load generator could not wait for its connections")]
    Wait(#[source] std::io::Error),
    /// A worker's thread has ended; the session cannot be used any more.
    #[error("a worker of the load generator ended unexpectedly")]
    WorkerLost,
    /// The session is on other machines, and one of them failed.
    #[error(transparent)]
    Elsewhere(Box<dyn std::error::Error + Send + Sync>),
}

/// Connections to one server, and the threads that use them. Dropping it closes the connections and joins the threads.
#[derive(Debug)]
pub struct Session {
    workers: Vec<Handle>,
    part: Option<WorkerRange>,
    backend: Backend,
    max_samples: u32,
    stop: Arc<AtomicBool>,
}

/// Reads the progress of a session's slices, from any thread.
#[derive(Clone)]
pub struct ProgressHandle(Arc<dyn Fn() -> Progress + Send + Sync>);

impl ProgressHandle {
    /// A handle that reads the progress with this function.
    pub fn new(read: impl Fn() -> Progress + Send + Sync + 'static) -> ProgressHandle {
        ProgressHandle(Arc::new(read))
    }

    /// What has happened since the session was opened; of a session on this machine, at most 10 ms old.
    pub fn read(&self) -> Progress {
        (self.0)()
    }
}

impl std::fmt::Debug for ProgressHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProgressHandle")
    }
}

/// Ends the slices of a session from another thread.
#[derive(Clone)]
pub struct StopHandle(Arc<dyn Fn() + Send + Sync>);

impl StopHandle {
    /// A handle that ends the slices with this function.
    pub fn new(stop: impl Fn() + Send + Sync + 'static) -> StopHandle {
        StopHandle(Arc::new(stop))
    }

    /// Ends the current slice and all later ones. No request begins any more, requests in flight are drained, and the
    /// slice returns its tally as usual. Takes effect within 10 ms; on another machine, as soon as it hears of it.
    pub fn stop(&self) {
        (self.0)();
    }
}

impl std::fmt::Debug for StopHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StopHandle")
    }
}

#[derive(Debug)]
struct Handle {
    commands: Option<Sender<Command>>,
    replies: Receiver<Reply>,
    thread: Option<JoinHandle<()>>,
    gauge: Arc<Gauge>,
}

#[derive(Debug)]
enum Command {
    Prepare(WorkerOrder),
    Run,
    Handicap(Duration),
}

#[derive(Debug)]
enum Reply {
    Opened { open: usize, wanted: usize, error: Option<Cause> },
    NotPinned { cpu: usize, error: Errno },
    Failed(Errno),
    Ready,
    Done(Box<Tally>),
}

/// Connections that carry load slice by slice. It is called once per slice, never per request.
pub trait LoadSession {
    /// Runs one slice: see [`Session::slice`].
    ///
    /// # Errors
    /// If the slice fails as a whole.
    fn slice(&mut self, order: &SliceOrder) -> Result<Tally, SessionError>;

    /// Adds this much work to each request, from the next slice on.
    ///
    /// # Errors
    /// If the generator has failed.
    fn set_handicap(&self, handicap: Duration) -> Result<(), SessionError>;
}

impl LoadSession for Session {
    fn slice(&mut self, order: &SliceOrder) -> Result<Tally, SessionError> {
        Session::slice(self, order)
    }

    fn set_handicap(&self, handicap: Duration) -> Result<(), SessionError> {
        Session::set_handicap(self, handicap)
    }
}

impl Session {
    /// Starts the workers and opens all connections.
    ///
    /// # Errors
    /// See [`OpenError`]. After an error nothing is left running or open.
    pub fn open(config: SessionConfig) -> Result<Session, OpenError> {
        if config.connections == 0 {
            return Err(OpenError::NoConnections);
        }
        let target = Target::new(&config.address)
            .map_err(|error| OpenError::Address { address: config.address.clone(), source: error.into() })?;
        let threads = config.threads.clamp(1, config.connections);
        let unusable = |error: Errno| OpenError::Backend { backend: config.backend, source: error.into() };
        let backend = config.backend.choose(|| Uring::new(1).map(drop)).map_err(unusable)?;
        let mut session = Session {
            workers: Vec::new(),
            part: config.part,
            backend,
            max_samples: config.max_samples_per_slice,
            stop: Arc::new(AtomicBool::new(false)),
        };
        for index in 0..threads {
            let handle = session.spawn(&config, target.clone(), index, threads);
            session.workers.push(handle.map_err(OpenError::Worker)?);
        }
        session.await_open(&config.address)?;
        Ok(session)
    }

    /// Runs one slice and waits for its end. That takes at most the connect timeout (to reopen connections), the
    /// slice's duration and the request timeout together. A slice without a duration gives up when no answer has come
    /// for twice the request timeout plus the connect timeout.
    ///
    /// Connections stay open from slice to slice. Before a slice starts, the workers reopen those that the server has
    /// closed. At the deadline no more requests become due. Requests in flight, and with an open pacer also requests
    /// that are due and wait, are drained for at most the request timeout, and then cut.
    ///
    /// # Errors
    /// [`SessionError`]. Failures of single requests are not errors but outcomes.
    pub fn slice(&mut self, order: &SliceOrder) -> Result<Tally, SessionError> {
        self.slice_after(order, || {})
    }

    /// As [`Session::slice`], but when all connections are open and the workers are ready, the slice begins only after
    /// `begin` has returned.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn slice_after(&mut self, order: &SliceOrder, begin: impl FnOnce()) -> Result<Tally, SessionError> {
        if order.limit == Limit::default() {
            return Err(SessionError::NoLimit);
        }
        for (index, worker) in self.workers.iter().enumerate() {
            worker.send(Command::Prepare(self.worker_order(order, index)))?;
        }
        for worker in &self.workers {
            worker.receive()?;
        }
        begin();
        for worker in &self.workers {
            worker.send(Command::Run)?;
        }
        let mut tally: Option<Tally> = None;
        let mut failure = None;
        for worker in &self.workers {
            match (worker.receive(), &mut tally) {
                (Ok(Reply::Done(share)), None) => tally = Some(*share),
                (Ok(Reply::Done(share)), Some(sum)) => sum.merge(*share),
                (Ok(_), _) => failure = Some(SessionError::WorkerLost),
                (Err(error), _) => failure = Some(error),
            }
        }
        match failure {
            Some(error) => Err(error),
            None => tally.ok_or(SessionError::WorkerLost),
        }
    }

    /// From the next slice on, each worker spends this much extra time on every request before sending it. The effect
    /// on the rate shows whether the workers limit it. Zero, the initial value, costs nothing.
    ///
    /// # Errors
    /// [`SessionError::WorkerLost`].
    pub fn set_handicap(&self, handicap: Duration) -> Result<(), SessionError> {
        self.workers.iter().try_for_each(|worker| worker.send(Command::Handicap(handicap)))
    }

    /// A handle to end slices early from another thread.
    pub fn stop_handle(&self) -> StopHandle {
        let stop = self.stop.clone();
        StopHandle::new(move || stop.store(true, Ordering::Relaxed))
    }

    /// A handle to read the progress of slices from another thread.
    pub fn progress(&self) -> ProgressHandle {
        let gauges: Vec<Arc<Gauge>> = self.workers.iter().map(|worker| worker.gauge.clone()).collect();
        ProgressHandle::new(move || Progress::of(gauges.iter().map(Arc::as_ref)))
    }

    /// The backend in use: [`Backend::Uring`] or [`Backend::Epoll`].
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// How many worker threads there are.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    fn worker_order(&self, order: &SliceOrder, index: usize) -> WorkerOrder {
        let part = self.part.unwrap_or(WorkerRange { first: 0, of: self.workers.len() });
        WorkerOrder {
            pacer: order.pacer.clone(),
            limit: order.limit,
            settle: order.settle,
            first: order.start,
            index: (part.first + index) as u64,
            workers: part.of.max(1) as u64,
            max_samples: self.max_samples,
        }
    }

    fn spawn(
        &self,
        config: &SessionConfig,
        target: Target,
        index: usize,
        threads: usize,
    ) -> std::io::Result<Handle> {
        let share = |total: usize| share(total, index, threads);
        let gauge = Arc::new(Gauge::new());
        let settings = Settings {
            connections: share(config.connections),
            max_connections: share(config.max_connections.max(config.connections)),
            connect_timeout: config.connect_timeout,
            timeout: config.timeout,
            tls: config.tls.clone(),
            sample_every: config.sample_every,
            spin: config.spin,
            stop: self.stop.clone(),
            gauge: gauge.clone(),
        };
        let cpu = config.cpus.get(index % config.cpus.len().max(1)).copied();
        let requests = config.requests.clone();
        let backend = self.backend;
        let (commands, orders) = channel();
        let (answers, replies) = channel();
        let body = move || {
            if let Some((cpu, error)) = cpu.and_then(|cpu| os::pin(cpu).err().map(|error| (cpu, error))) {
                let _ = answers.send(Reply::NotPinned { cpu, error });
                return;
            }
            let served = match backend {
                Backend::Epoll => serve::<Epoll, Http1>(target, requests, settings, &orders, &answers),
                Backend::Auto | Backend::Uring => {
                    serve::<Uring, Http1>(target, requests, settings, &orders, &answers)
                }
            };
            if let Err(error) = served {
                let _ = answers.send(Reply::Failed(error));
            }
        };
        let thread = std::thread::Builder::new().name("deadheat-load".to_owned()).spawn(body)?;
        Ok(Handle { commands: Some(commands), replies, thread: Some(thread), gauge })
    }

    fn await_open(&self, address: &Address) -> Result<(), OpenError> {
        let (mut opened, mut total, mut cause) = (0, 0, None);
        for worker in &self.workers {
            match worker.replies.recv() {
                Ok(Reply::Opened { open, wanted, error }) => {
                    opened += open;
                    total += wanted;
                    cause = error.or(cause);
                }
                Ok(Reply::NotPinned { cpu, error }) => {
                    return Err(OpenError::Pin { cpu, source: error.into() });
                }
                Ok(Reply::Failed(error)) => return Err(OpenError::Worker(error.into())),
                Ok(_) | Err(_) => return Err(OpenError::Worker(std::io::ErrorKind::Other.into())),
            }
        }
        if opened < total {
            let source = match cause {
                Some(Cause::System(number)) => std::io::Error::from_raw_os_error(number),
                Some(Cause::Closed) => {
                    std::io::Error::other("the server closed connections as soon as they were made")
                }
                Some(cause) => std::io::Error::other(cause.to_string()),
                None => Errno::TIMEDOUT.into(),
            };
            return Err(OpenError::Connect { address: address.clone(), opened, wanted: total, source });
        }
        Ok(())
    }
}

impl Handle {
    fn send(&self, command: Command) -> Result<(), SessionError> {
        let commands = self.commands.as_ref().ok_or(SessionError::WorkerLost)?;
        commands.send(command).map_err(|_| SessionError::WorkerLost)
    }

    fn receive(&self) -> Result<Reply, SessionError> {
        match self.replies.recv() {
            Ok(Reply::Failed(error)) => Err(SessionError::Wait(error.into())),
            Ok(reply) => Ok(reply),
            Err(_) => Err(SessionError::WorkerLost),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in &mut self.workers {
            worker.commands = None;
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A panic of the worker was already reported as WorkerLost.
                let _ = thread.join();
            }
        }
    }
}

/// Runs a worker's thread. It ends when the session hangs up, or when waiting first fails.
fn serve<D: Driver, P: Protocol>(
    target: Target,
    requests: Arc<Requests>,
    settings: Settings,
    orders: &Receiver<Command>,
    answers: &Sender<Reply>,
) -> Result<(), Errno> {
    let mut worker = Worker::<D, P>::new(target, requests, settings)?;
    let limit = Limit::requests(0);
    let nothing = WorkerOrder {
        pacer: Pacer::Closed,
        limit,
        settle: Duration::ZERO,
        first: 0,
        index: 0,
        workers: 1,
        max_samples: 0,
    };
    worker.prepare(&nothing)?;
    let (open, wanted, error) = worker.opened();
    let mut reply = answers.send(Reply::Opened { open, wanted, error });
    let mut ready = None;
    while reply.is_ok()
        && let Ok(command) = orders.recv()
    {
        reply = match command {
            Command::Handicap(handicap) => {
                worker.set_handicap(handicap);
                Ok(())
            }
            Command::Prepare(order) => {
                let prepared = worker.prepare(&order)?;
                ready = Some((order, prepared));
                answers.send(Reply::Ready)
            }
            Command::Run => match ready.take() {
                None => Err(Errno::INVAL)?,
                Some((order, prepared)) => answers.send(Reply::Done(Box::new(worker.run(&order, prepared)?))),
            },
        };
    }
    Ok(())
}
