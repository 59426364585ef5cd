//! Sockets and the event loop: one thread, one epoll. This module does not decide the content of an answer.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags};
use rustix::process::{Resource, Rlimit};
use rustix::time::Timespec;
use rustls::ServerConfig;

use crate::answers::{After, Answers};
use crate::log::Log;
use crate::options::{Listen, Options};
use crate::request::{self, Read};
use crate::tls::{self, Tls};

const LISTENER: u64 = 0;
const BACKLOG: u16 = 4096;

struct Connection {
    socket: OwnedFd,
    tls: Option<Tls>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// With TLS: encrypted output that is not sent yet.
    sealed: Vec<u8>,
    close_when_sent: bool,
    /// Whether epoll also watches for room to write.
    waits_to_write: bool,
}

/// An answer that is held back until `due`.
struct Held {
    due: Instant,
    /// When its request arrived.
    came: Instant,
    connection: u64,
    bytes: Vec<u8>,
    after: After,
}

struct Server<'a> {
    options: &'a Options,
    epoll: OwnedFd,
    listener: OwnedFd,
    tcp: bool,
    tls: Option<Arc<ServerConfig>>,
    answers: Answers<'a>,
    connections: HashMap<u64, Connection>,
    next_id: u64,
    /// In order of `due`.
    held: VecDeque<Held>,
    started: Instant,
    log: Option<Log>,
    /// The arrival times of the requests whose answers are about to be sent.
    answered: Vec<Instant>,
    buffer: Vec<u8>,
}

/// Listens and answers until `deadline`, or until an option ends the server.
pub(crate) fn serve(options: &Options, deadline: Instant) -> io::Result<ExitCode> {
    allow_many_connections()?;
    let tls = tls::config(options)?;
    let place = options.listen(|name| std::env::var(name).ok()).map_err(io::Error::other)?;
    let (listener, port) = listen(&place, options.backlog.unwrap_or(BACKLOG))?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    if let (Some(path), Some(port)) = (&options.port_file, port) {
        write_whole(path, &port.to_string())?;
    }
    let started = Instant::now();
    let mut server = Server {
        options,
        epoll,
        listener,
        tcp: port.is_some(),
        tls,
        answers: Answers::new(options),
        connections: HashMap::new(),
        next_id: LISTENER + 1,
        held: VecDeque::new(),
        started,
        log: options.log.as_deref().map(|path| Log::create(path, started)).transpose()?,
        answered: Vec::new(),
        buffer: vec![0; 64 * 1024],
    };
    server.run(deadline)
}

/// Raises the limit on open files as far as an ordinary user may.
fn allow_many_connections() -> io::Result<()> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    Ok(rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}

/// The listening socket and, for TCP, its port.
fn listen(place: &Listen, backlog: u16) -> io::Result<(OwnedFd, Option<u16>)> {
    let (socket, port): (OwnedFd, Option<u16>) = match place {
        Listen::Tcp(address) => {
            let listener = TcpListener::bind(address)?;
            let port = listener.local_addr()?.port();
            (listener.into(), Some(port))
        }
        Listen::Socket(path) => match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => (UnixListener::bind(path)?.into(), None),
        },
    };
    // The standard library chooses the length of the queue. Listening again changes only that length.
    rustix::net::listen(&socket, i32::from(backlog))?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok((socket, port))
}

/// Writes a file in one step, so that a reader never sees an incomplete file.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    std::fs::write(&part, text)?;
    std::fs::rename(part, path)
}

impl Server<'_> {
    fn run(&mut self, deadline: Instant) -> io::Result<ExitCode> {
        let mut events = Vec::with_capacity(256);
        loop {
            let now = Instant::now();
            if now >= deadline {
                return Ok(ExitCode::SUCCESS);
            }
            let due = [self.held.front().map(|held| held.due), self.log.as_ref().and_then(Log::due)];
            let until = due.into_iter().flatten().fold(deadline, Instant::min);
            let wait = timespec(until.saturating_duration_since(now));
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let (id, flags) = (event.data.u64(), event.flags);
                if id == LISTENER { self.accept()? } else { self.attend(id, flags)? }
            }
            self.release()?;
            if let Some(log) = &mut self.log {
                log.keep(Instant::now())?;
            }
            if self.options.exit_after.is_some_and(|limit| self.answers.answered() >= limit)
                && self.held.is_empty()
            {
                crate::say_err("deadheat-test-server: as told, this server dies now");
                return Ok(ExitCode::FAILURE);
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let socket = match rustix::net::accept_with(
                &self.listener,
                SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            ) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(error) => return Err(error.into()),
            };
            if self.tcp {
                // This fails if the client has reset the connection. The next read reports that.
                let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
            }
            let id = self.next_id;
            self.next_id += 1;
            epoll::add(&self.epoll, &socket, EventData::new_u64(id), EventFlags::IN)?;
            let connection = Connection {
                socket,
                tls: self.tls.as_ref().map(Tls::new).transpose()?,
                input: Vec::new(),
                output: Vec::new(),
                sealed: Vec::new(),
                close_when_sent: false,
                waits_to_write: false,
            };
            self.connections.insert(id, connection);
        }
    }

    /// Handles an event that epoll reported for a connection.
    fn attend(&mut self, id: u64, flags: EventFlags) -> io::Result<()> {
        let Some(mut connection) = self.connections.remove(&id) else { return Ok(()) };
        let mut open = true;
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            open = self.receive(id, &mut connection);
        }
        if open && connection.flush(&self.epoll, id)? {
            self.connections.insert(id, connection);
        }
        if let Some(log) = &mut self.log {
            let now = Instant::now();
            self.answered.drain(..).try_for_each(|came| log.sent(came, now))?;
        }
        Ok(())
    }

    /// Reads the available bytes and answers each complete request. Returns false when the connection is over.
    fn receive(&mut self, id: u64, connection: &mut Connection) -> bool {
        let more = match rustix::io::read(&connection.socket, self.buffer.as_mut_slice()) {
            Ok(0) => return false,
            Ok(read) => connection.take(&self.buffer[..read]),
            Err(Errno::AGAIN | Errno::INTR) => return true,
            Err(_) => return false,
        };
        let came = Instant::now();
        let mut used = 0;
        while !connection.close_when_sent {
            match request::read(&connection.input[used..]) {
                Read::Incomplete => break,
                Read::Wrong => {
                    connection.output.extend_from_slice(
                        b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                    );
                    connection.close_when_sent = true;
                }
                Read::Complete(request) => {
                    used += request.length;
                    stall(self.options.stall, self.started);
                    let mut bytes = Vec::new();
                    let holds = !self.options.delay().is_zero() || self.options.slow.is_some();
                    let out = if holds { &mut bytes } else { &mut connection.output };
                    let after = self.answers.answer(&request, out);
                    if holds {
                        let due = came + self.answers.delay();
                        let at = self.held.partition_point(|held| held.due <= due);
                        self.held.insert(at, Held { due, came, connection: id, bytes, after });
                    } else {
                        connection.close_when_sent = after == After::Close;
                        if self.log.is_some() {
                            self.answered.push(came);
                        }
                    }
                }
            }
        }
        connection.input.drain(..used);
        connection.close_when_sent |= !more;
        true
    }

    /// Sends the held answers that are due.
    fn release(&mut self) -> io::Result<()> {
        let now = Instant::now();
        while let Some(held) = self.held.pop_front_if(|held| held.due <= now) {
            let Some(mut connection) = self.connections.remove(&held.connection) else { continue };
            connection.output.extend_from_slice(&held.bytes);
            connection.close_when_sent |= held.after == After::Close;
            if connection.flush(&self.epoll, held.connection)? {
                self.connections.insert(held.connection, connection);
            }
            if let Some(log) = &mut self.log {
                log.sent(held.came, Instant::now())?;
            }
        }
        Ok(())
    }
}

impl Connection {
    /// Adds received bytes to the input. Returns false when no more requests can arrive.
    fn take(&mut self, bytes: &[u8]) -> bool {
        match &mut self.tls {
            Some(tls) => tls.receive(bytes, &mut self.input),
            None => {
                self.input.extend_from_slice(bytes);
                true
            }
        }
    }

    /// Sends as much output as the socket accepts. Returns false when the connection is over.
    fn flush(&mut self, epoll: &OwnedFd, id: u64) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            tls.seal(&mut self.output, &mut self.sealed, self.close_when_sent)?;
        }
        let pending = if self.tls.is_some() { &mut self.sealed } else { &mut self.output };
        let mut sent = 0;
        while sent < pending.len() {
            match rustix::net::send(&self.socket, &pending[sent..], SendFlags::NOSIGNAL) {
                Ok(bytes) => sent += bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return Ok(false),
            }
        }
        pending.drain(..sent);
        let waits = !pending.is_empty();
        if waits != self.waits_to_write {
            let flags = if waits { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            epoll::modify(epoll, self.socket.as_fd(), EventData::new_u64(id), flags)?;
            self.waits_to_write = waits;
        }
        Ok(waits || !self.close_when_sent)
    }
}

/// Sleeps until the end of the current stall, if there is one now.
fn stall(plan: Option<(Duration, Duration)>, started: Instant) {
    if let Some((stall, every)) = plan {
        let phase = Duration::from_nanos((started.elapsed().as_nanos() % every.as_nanos().max(1)) as u64);
        std::thread::sleep(stall.saturating_sub(phase));
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}
