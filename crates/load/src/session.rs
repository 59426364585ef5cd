//! Owns: the workers' threads, from opening the connections until they are closed, and the slices they run together.
//! Must not know what happens on a connection. Between slices the threads are blocked on a channel and use no CPU.

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

/// What a session is made from.
#[derive(Debug, Clone)]
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
    /// How many worker threads there are; at least 1. Those beyond the number of connections are not started.
    pub threads: usize,
    /// The CPUs that the workers are tied to, in turn; empty: they are not tied.
    pub cpus: Vec<usize>,
    /// Whether workers stay awake for the whole of a slice: sends are on time, and the server is not charged for waking the
    /// generator, as it would not be if that ran on another machine. Only for workers that have a CPU of their own each.
    pub spin: bool,
    /// How to speak to the operating system.
    pub backend: Backend,
    /// What is sent.
    pub requests: Arc<Requests>,
    /// How long an attempt to connect may take.
    pub connect_timeout: Duration,
    /// How long a request may take from being taken up by a connection to its complete answer. Checked every 10 ms.
    pub timeout: Duration,
    /// Of each n-th answer (per worker, counted over all slices, the first one among them) the body is kept; 0: never.
    pub sample_every: u32,
    /// No more bodies than this are kept per slice and worker.
    pub max_samples_per_slice: u32,
}

/// What is to be done in one slice.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceOrder {
    /// When requests are due.
    pub pacer: Pacer,
    /// When to stop.
    pub limit: Limit,
    /// Answers up to this time after the start are left out of the rate; requests intended before it, of the times.
    pub settle: Duration,
    /// Position in the request order of the slice's first request. Several workers share the order out among them: of n
    /// positions that follow each other each takes one, in changing turns.
    pub start: u64,
}

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No connection was asked for.
    #[error("a session needs at least one connection")]
    NoConnections,
    /// The address cannot be used, for example because the path of the socket is too long.
    #[error("the address {address} cannot be used")]
    Address {
        /// The address.
        address: Address,
        /// Why.
        source: std::io::Error,
    },
    /// Not all connections could be opened in time.
    #[error("only {opened} of {wanted} connections to {address} could be opened")]
    Connect {
        /// The address.
        address: Address,
        /// Connections that were opened.
        opened: usize,
        /// Connections that were to be opened.
        wanted: usize,
        /// Why the last one that failed did.
        source: std::io::Error,
    },
    /// A worker could not be tied to its CPU.
    #[error("the load generator cannot run on CPU {cpu}: choose one that this process may use")]
    Pin {
        /// The CPU.
        cpu: usize,
        /// Why.
        source: std::io::Error,
    },
    /// A worker's thread or its means of waiting could not be made.
    #[error("a worker of the load generator could not be started")]
    Worker(#[source] std::io::Error),
    /// The backend that was asked for cannot be used here.
    #[error("the backend {backend} cannot be used here: leave the choice to deadheat, or take another", backend = .backend.name())]
    Backend {
        /// What was asked for.
        backend: Backend,
        /// Why.
        source: std::io::Error,
    },
}

/// Why a slice could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Neither a duration nor a number of requests was given.
    #[error("a slice needs a duration, a number of requests, or both")]
    NoLimit,
    /// Waiting for connections failed.
    #[error("the load generator could not wait for its connections")]
    Wait(#[source] std::io::Error),
    /// A worker's thread is gone; the session cannot be used any more.
    #[error("a worker of the load generator ended unexpectedly")]
    WorkerLost,
}

/// Connections to one server, and the threads that use them. Dropping it closes and joins.
#[derive(Debug)]
pub struct Session {
    workers: Vec<Handle>,
    backend: Backend,
    max_samples: u32,
    stop: Arc<AtomicBool>,
}

/// Reads how far the slices of a session are, from any thread.
#[derive(Debug, Clone)]
pub struct ProgressHandle(Vec<Arc<Gauge>>);

impl ProgressHandle {
    /// What has happened since the session was opened; at most 10 ms old.
    pub fn read(&self) -> Progress {
        Progress::of(self.0.iter().map(Arc::as_ref))
    }
}

/// Ends the slices of a session from another thread.
#[derive(Debug, Clone)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Lets the slice that is running, and all later ones, end: nothing more is begun, what is in flight is drained, and
    /// the tally is returned as usual. Takes effect within 10 ms.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
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
    Requests(Arc<Requests>),
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

/// Connections that are loaded slice by slice. It is asked once per slice, never per request.
pub trait LoadSession {
    /// Loads the server once: see [`Session::slice`].
    ///
    /// # Errors
    /// When the slice fails as a whole.
    fn slice(&mut self, order: &SliceOrder) -> Result<Tally, SessionError>;

    /// Lets the generator work so much longer on each request, from the next slice on.
    ///
    /// # Errors
    /// When the generator has failed.
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
    /// See [`OpenError`]; nothing is left running or open.
    pub fn open(config: SessionConfig) -> Result<Session, OpenError> {
        if config.connections == 0 {
            return Err(OpenError::NoConnections);
        }
        let target = Target::new(&config.address)
            .map_err(|error| OpenError::Address { address: config.address.clone(), source: error.into() })?;
        let threads = config.threads.clamp(1, config.connections);
        let mut session = Session {
            workers: Vec::new(),
            backend: choose(config.backend)?,
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

    /// Runs one slice and waits for its end: at the latest the slice's duration, the request timeout and (before it, to
    /// reopen connections) the connect timeout from now. Without a duration, it is given up when no answer has come for
    /// twice the request timeout and the connect timeout.
    ///
    /// Connections stay open from slice to slice; those that the server has closed meanwhile are reopened first. At the
    /// deadline nothing more becomes due; what is in flight, and with an open pacer also what is due and waits, is
    /// drained for at most the request timeout, and then cut.
    ///
    /// # Errors
    /// [`SessionError`]; failures of single requests are no errors but outcomes.
    pub fn slice(&mut self, order: &SliceOrder) -> Result<Tally, SessionError> {
        if order.limit == Limit::default() {
            return Err(SessionError::NoLimit);
        }
        for (index, worker) in self.workers.iter().enumerate() {
            worker.send(Command::Prepare(self.worker_order(order, index)))?;
        }
        for worker in &self.workers {
            worker.receive()?;
        }
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

    /// Changes what is sent from the next slice on.
    ///
    /// # Errors
    /// [`SessionError::WorkerLost`].
    pub fn set_requests(&mut self, requests: Arc<Requests>) -> Result<(), SessionError> {
        self.workers.iter().try_for_each(|worker| worker.send(Command::Requests(requests.clone())))
    }

    /// From the next slice on, each worker works so much longer on every request before it is sent: what that does to the rate
    /// says whether the workers are what limits it. Zero, as it is at first, takes nothing.
    ///
    /// # Errors
    /// [`SessionError::WorkerLost`].
    pub fn set_handicap(&self, handicap: Duration) -> Result<(), SessionError> {
        self.workers.iter().try_for_each(|worker| worker.send(Command::Handicap(handicap)))
    }

    /// A handle that ends slices early, for use from another thread.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(self.stop.clone())
    }

    /// Reads how far the slices are, for use from another thread.
    pub fn progress(&self) -> ProgressHandle {
        ProgressHandle(self.workers.iter().map(|worker| worker.gauge.clone()).collect())
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
        WorkerOrder {
            pacer: order.pacer.clone(),
            limit: order.limit,
            settle: order.settle,
            first: order.start,
            index: index as u64,
            workers: self.workers.len() as u64,
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
        let share = |total: usize| (total - index.min(total)).div_ceil(threads);
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
                // A panic of the worker has been reported as WorkerLost.
                let _ = thread.join();
            }
        }
    }
}

/// The backend to use: io_uring if a ring with all that is needed can be made, which is found out by making one.
fn choose(asked: Backend) -> Result<Backend, OpenError> {
    match (asked, Uring::new(1)) {
        (Backend::Epoll, _) | (Backend::Auto, Err(_)) => Ok(Backend::Epoll),
        (_, Ok(_)) => Ok(Backend::Uring),
        (backend, Err(error)) => Err(OpenError::Backend { backend, source: error.into() }),
    }
}

/// The life of a worker's thread. It ends when the session hangs up, or with the first failure to wait.
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
            Command::Requests(requests) => {
                worker.set_requests(requests);
                Ok(())
            }
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
