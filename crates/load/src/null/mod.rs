//! The built-in null server: it answers every request alike, as fast as this machine can. What a generator reaches against
//! it is the generator's own limit.
//!
//! Owns: the server's threads, their start and their end. Must not know what a request is (`request`), what is owed to
//! whom (`peer`), what an answer is (`answers`), how bytes come and go (`epoll`, `uring`), or what TLS makes of them (`layer`).

mod answers;
mod epoll;
mod layer;
mod listener;
mod peer;
mod request;
mod spin;
mod uring;

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustls::ServerConfig;
use thiserror::Error;

use crate::address::Address;
use crate::driver::{Backend, os};
use answers::Answers;
pub use layer::ServerIdentity;
use layer::{Plain, Secured};
pub use spin::{Spin, step_ns};

/// A client that was told that its connection ends has so long to end it as well.
const LINGER: Duration = Duration::from_secs(2);
/// After a connection could not be accepted for want of something, it is tried again after so long.
const PAUSE: Duration = Duration::from_millis(100);
/// The largest body.
const MAX_BODY: usize = 1 << 30;
const MAX_THREADS: usize = 1024;

/// How a [`NullServer`] answers, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NullConfig {
    /// Where to listen; port 0 is any free port. A unix socket must not exist yet; it is removed at the end.
    pub address: Address,
    /// Bytes in the body of each answer, at most 1 GiB.
    pub body_bytes: usize,
    /// Threads, 1 to 1,024. Each serves connections of its own.
    pub threads: usize,
    /// CPUs to which the threads are tied, by turns; none: they are not.
    pub cpus: Vec<usize>,
    /// Work before each answer.
    pub spin: Spin,
    /// How to speak to the operating system.
    pub backend: Backend,
    /// With which certificate to speak TLS; none: plain HTTP. TLS is spoken over epoll, whatever the backend.
    pub tls: Option<ServerIdentity>,
}

impl Default for NullConfig {
    /// One thread on any CPU, at any free port of 127.0.0.1, with 13 bytes, no work and no TLS.
    fn default() -> NullConfig {
        NullConfig {
            address: Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            body_bytes: 13,
            threads: 1,
            cpus: Vec::new(),
            spin: Spin::default(),
            backend: Backend::Auto,
            tls: None,
        }
    }
}

/// Why a [`NullServer`] could not be started.
#[derive(Debug, Error)]
pub enum NullError {
    /// Threads or bytes beyond what is possible.
    #[error("a null server has 1 to {MAX_THREADS} threads and answers with at most {MAX_BODY} bytes")]
    Config,
    /// It cannot listen there.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: Address,
        /// What the system said; `AddrInUse` when somebody else listens there.
        source: std::io::Error,
    },
    /// The system does not allow what the backend needs.
    #[error("{} cannot be used here", backend.name())]
    Backend {
        /// What was asked for.
        backend: Backend,
        /// What the system said.
        source: std::io::Error,
    },
    /// A thread cannot be tied to its CPU.
    #[error("cannot run on CPU {cpu}")]
    Pin {
        /// The CPU.
        cpu: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The certificate or its key cannot be used; with the reason.
    #[error("cannot speak TLS: {0}")]
    Tls(String),
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

/// A server that answers every HTTP/1.1 request with `200 OK` and the same bytes, whatever the request's method, path, headers
/// and body are; HEAD without the body. Connections stay open, but for HTTP/1.0 and where the client wants them closed. What
/// is not HTTP is answered by 400, a head over 64 KiB by 431, and the connection is closed.
///
/// It keeps nothing of a request but a line that is not complete yet (at most 8 KiB for each connection), and has as many
/// connections as the process may have open files. Dropping it closes all connections and ends its threads.
#[derive(Debug)]
pub struct NullServer {
    address: Address,
    backend: Backend,
    stop: Arc<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
    /// The threads as the operating system calls them.
    known_as: Vec<i32>,
}

/// What a thread serves with.
struct Post {
    listener: OwnedFd,
    /// Can be read from when the end has come.
    stop: Arc<OwnedFd>,
    answers: Arc<Answers>,
    tls: Option<Arc<ServerConfig>>,
}

impl NullServer {
    /// Starts the threads; returns when all of them accept connections.
    ///
    /// # Errors
    /// See [`NullError`]. Nothing is left running then.
    pub fn start(config: NullConfig) -> Result<NullServer, NullError> {
        let NullConfig { address, body_bytes, threads, cpus, spin, backend, tls } = config;
        if !(1..=MAX_THREADS).contains(&threads) || body_bytes > MAX_BODY {
            return Err(NullError::Config);
        }
        let tls = tls.map(|identity| identity.config()).transpose().map_err(NullError::Tls)?;
        let backend = if tls.is_some() { Backend::Epoll } else { choose(backend)? };
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let stop = Arc::new(stop.map_err(|error| NullError::Thread(error.into()))?);
        let (listeners, address) = listener::listen(&address, threads)
            .map_err(|error| NullError::Listen { address: address.clone(), source: error.into() })?;
        let answers = Arc::new(Answers::new(body_bytes, spin));
        let mut server = NullServer { address, backend, stop, threads: Vec::new(), known_as: Vec::new() };
        let (ready, started) = channel();
        for (index, listener) in listeners.into_iter().enumerate() {
            let (stop, answers, tls) = (server.stop.clone(), answers.clone(), tls.clone());
            let post = Post { listener, stop, answers, tls };
            let (cpu, ready) = (cpus.get(index % cpus.len().max(1)).copied(), ready.clone());
            let body = move || serve(backend, post, cpu, &ready);
            let thread = std::thread::Builder::new().name("deadheat-null".to_owned()).spawn(body);
            server.threads.push(thread.map_err(NullError::Thread)?);
        }
        for _ in 0..threads {
            let thread = started.recv();
            let thread =
                thread.unwrap_or_else(|_| Err(NullError::Thread(std::io::ErrorKind::Other.into())))?;
            server.known_as.push(thread);
        }
        Ok(server)
    }

    /// Where it listens, with its port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// How it speaks to the operating system: never [`Backend::Auto`].
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// CPU time of all its threads so far, in nanoseconds; none where the kernel does not say. Where it grows by the time of all cores
    /// that they have, it is the server that is the limit, and not who asks it.
    pub fn cpu_ns(&self) -> Option<u64> {
        let spent = |thread: &i32| {
            let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
            text.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        self.known_as.iter().map(spent).sum()
    }

    /// Whether all threads still serve: false when the operating system has failed one of them.
    pub fn is_running(&self) -> bool {
        self.threads.iter().all(|thread| !thread.is_finished())
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        // A counter that has no room for another end has told it already.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        for thread in self.threads.drain(..) {
            // A panic of a thread has ended it, too.
            let _ = thread.join();
        }
        if let Address::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The life of a thread.
fn serve(backend: Backend, post: Post, cpu: Option<usize>, ready: &Sender<Result<i32, NullError>>) {
    if let Some((cpu, error)) = cpu.and_then(|cpu| os::pin(cpu).err().map(|error| (cpu, error))) {
        let _ = ready.send(Err(NullError::Pin { cpu, source: error.into() }));
        return;
    }
    let tell = |made: Result<(), Errno>| {
        let known_as = rustix::thread::gettid().as_raw_nonzero().get();
        let _ = ready.send(
            made.map(|()| known_as).map_err(|error| NullError::Backend { backend, source: error.into() }),
        );
    };
    // What ends a server while it serves is seen by `is_running`.
    let made = match backend {
        Backend::Epoll if post.tls.is_some() => epoll::Server::<Secured>::new(post).map(|mut server| {
            tell(Ok(()));
            server.run()
        }),
        Backend::Epoll => epoll::Server::<Plain>::new(post).map(|mut server| {
            tell(Ok(()));
            server.run()
        }),
        Backend::Auto | Backend::Uring => uring::Server::new(post).map(|mut server| {
            tell(Ok(()));
            server.run()
        }),
    };
    if let Err(error) = made {
        tell(Err(error));
    }
}

/// The backend to use: io_uring if a ring with all that is needed can be made, which is found out by making one.
fn choose(asked: Backend) -> Result<Backend, NullError> {
    match (asked, uring::possible()) {
        (Backend::Epoll, _) | (Backend::Auto, Err(_)) => Ok(Backend::Epoll),
        (_, Ok(())) => Ok(Backend::Uring),
        (backend, Err(error)) => Err(NullError::Backend { backend, source: error.into() }),
    }
}

/// How many connections one thread may have: as many as this process may have open files.
fn capacity() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    usize::try_from(limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX).min(1 << 16)
}
