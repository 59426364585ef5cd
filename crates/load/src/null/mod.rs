//! The built-in null server. It gives every request the same answer, as fast as this machine can. The rate that a
//! generator reaches against it is the generator's own limit.
//!
//! Owns: the server's threads, from start to end. Must not know requests (`request`), what a client is owed (`peer`),
//! the answers' bytes (`answers`), how bytes are sent and received (`epoll`, `uring`), or TLS (`layer`).

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

/// After the server has announced the end of a connection, the client has this long to close its side.
const LINGER: Duration = Duration::from_secs(2);
/// If accepting a connection fails for lack of a resource, the server tries again after this pause.
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
    /// Number of threads, 1 to 1,024. Each thread serves separate connections.
    pub threads: usize,
    /// CPUs to which the threads are pinned, in turn. If empty, threads are not pinned.
    pub cpus: Vec<usize>,
    /// Work done before each answer.
    pub spin: Spin,
    /// How to speak to the operating system.
    pub backend: Backend,
    /// The certificate to use for TLS. `None`: plain HTTP. TLS always uses epoll, whatever the backend.
    pub tls: Option<ServerIdentity>,
}

impl Default for NullConfig {
    /// One thread on any CPU, any free port of 127.0.0.1, 13-byte bodies, no work, no TLS.
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

/// Why a [`NullServer`] could not start.
#[derive(Debug, Error)]
pub enum NullError {
    /// The number of threads or of bytes is out of range.
    #[error("a null server has 1 to {MAX_THREADS} threads and answers with at most {MAX_BODY} bytes")]
    Config,
    /// The server cannot listen on this address.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: Address,
        /// The system's error; `AddrInUse` when another process listens there.
        source: std::io::Error,
    },
    /// The system does not allow an operation that the backend needs.
    #[error("{} cannot be used here", backend.name())]
    Backend {
        /// The backend that the caller asked for.
        backend: Backend,
        /// The system's error.
        source: std::io::Error,
    },
    /// A thread cannot be pinned to its CPU.
    #[error("cannot run on CPU {cpu}")]
    Pin {
        /// The CPU.
        cpu: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// The certificate or its key cannot be used; with the reason.
    #[error("cannot speak TLS: {0}")]
    Tls(String),
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

/// A server that answers every HTTP/1.1 request with `200 OK` and the same bytes, whatever its method, path, headers
/// and body. A HEAD request gets the head only. Connections stay open, except with HTTP/1.0 and where the client asks
/// to close. Input that is not HTTP gets a 400, a head over 64 KiB gets a 431, and in both cases the server closes the
/// connection.
///
/// Of a request, the server keeps only a line that is not yet complete (at most 8 KiB for each connection). It accepts
/// as many connections as the process may have open files. Dropping it closes all connections and ends its threads.
#[derive(Debug)]
pub struct NullServer {
    address: Address,
    backend: Backend,
    stop: Arc<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
    /// The threads' IDs in the operating system.
    known_as: Vec<i32>,
}

/// What a thread needs to serve.
struct Post {
    listener: OwnedFd,
    /// Becomes readable when the server must stop.
    stop: Arc<OwnedFd>,
    answers: Arc<Answers>,
    tls: Option<Arc<ServerConfig>>,
}

impl NullServer {
    /// Starts the threads, and returns when all of them accept connections.
    ///
    /// # Errors
    /// See [`NullError`]. After an error nothing is left running.
    pub fn start(config: NullConfig) -> Result<NullServer, NullError> {
        let NullConfig { address, body_bytes, threads, cpus, spin, backend, tls } = config;
        if !(1..=MAX_THREADS).contains(&threads) || body_bytes > MAX_BODY {
            return Err(NullError::Config);
        }
        let tls = tls.map(|identity| identity.config()).transpose().map_err(NullError::Tls)?;
        let unusable = |error: Errno| NullError::Backend { backend, source: error.into() };
        let asked = if tls.is_some() { Backend::Epoll } else { backend };
        let backend = asked.choose(uring::possible).map_err(unusable)?;
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

    /// The address that it listens on, with the actual port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The backend in use: never [`Backend::Auto`].
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// CPU time of all its threads so far, in nanoseconds; `None` where the kernel does not report it. If it grows as
    /// fast as all the cores allow, then the server is the limit and not the generator.
    pub fn cpu_ns(&self) -> Option<u64> {
        let spent = |thread: &i32| {
            let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
            text.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        self.known_as.iter().map(spent).sum()
    }

    /// Whether all threads still serve: false after the operating system has failed one of them.
    pub fn is_running(&self) -> bool {
        self.threads.iter().all(|thread| !thread.is_finished())
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        // The write fails only when the counter is full, and then the threads have the signal already.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
        if let Address::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Runs one thread.
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
    // `is_running` reports a server that ends while it serves.
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

/// How many connections one thread may have: as many as this process may have open files.
fn capacity() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    usize::try_from(limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX).min(1 << 16)
}
