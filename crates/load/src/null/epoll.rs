//! Owns: the null server over epoll, with one call for each receive and each send. Must not know what the bytes mean,
//! nor whether they are encrypted (`layer`).

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, Shutdown, SocketFlags};
use rustix::time::Timespec;

use super::layer::{Layer, Sent};
use super::peer::{Known, Peer};
use super::{LINGER, PAUSE, Post};
use crate::driver::token;

const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
const BATCH: usize = 256;
const BUFFER: usize = 64 * 1024;

/// One thread's connections.
pub(super) struct Server<L> {
    post: Post,
    epoll: OwnedFd,
    connections: Vec<Option<Connection<L>>>,
    /// Empty places in `connections`.
    empty: Vec<usize>,
    generation: u32,
    known: Known,
    /// Deadlines by which clients must close their connections, in order.
    lingering: VecDeque<(Instant, u64)>,
    /// When to watch the listener again, after accepting failed for lack of a resource.
    paused: Option<Instant>,
    buffer: Vec<u8>,
}

struct Connection<L> {
    socket: OwnedFd,
    generation: u32,
    layer: L,
    peer: Peer,
    /// Whether epoll also watches for room to send.
    full: bool,
    /// The client sends nothing more.
    ended: bool,
    /// The server sends nothing more.
    lingers: bool,
}

impl<L: Layer> Server<L> {
    pub(super) fn new(post: Post) -> Result<Server<L>, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &post.listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &*post.stop, EventData::new_u64(STOP), EventFlags::IN)?;
        Ok(Server {
            post,
            epoll,
            connections: Vec::new(),
            empty: Vec::new(),
            generation: 0,
            known: Known::default(),
            lingering: VecDeque::new(),
            paused: None,
            buffer: vec![0; BUFFER],
        })
    }

    /// Serves until the stop signal.
    pub(super) fn run(&mut self) -> Result<(), Errno> {
        let none = epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = vec![none; BATCH];
        loop {
            let limit = self.limit();
            let ready = match epoll::wait(&self.epoll, &mut events[..], limit.as_ref()) {
                Ok(ready) => ready,
                Err(Errno::INTR) => 0,
                Err(error) => return Err(error),
            };
            let mut accept = false;
            for event in &events[..ready] {
                match event.data.u64() {
                    STOP => return Ok(()),
                    LISTENER => accept = true,
                    mark => self.attend(mark, event.flags),
                }
            }
            self.look_at_the_clock()?;
            if accept {
                self.accept()?;
            }
        }
    }

    /// The longest time to wait for events.
    fn limit(&self) -> Option<Timespec> {
        let next = [self.paused, self.lingering.front().map(|(due, _)| *due)].into_iter().flatten().min()?;
        let left = next.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        Some(Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() })
    }

    fn look_at_the_clock(&mut self) -> Result<(), Errno> {
        if self.paused.is_none() && self.lingering.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        while let Some((due, mark)) = self.lingering.front().copied() {
            match self.find(mark) {
                Some(index) if due <= now => self.close(index),
                Some(_) => break,
                None => {}
            }
            self.lingering.pop_front();
        }
        if self.paused.is_some_and(|due| due <= now) {
            self.paused = None;
            let flags = EventFlags::IN;
            epoll::modify(&self.epoll, &self.post.listener, EventData::new_u64(LISTENER), flags)?;
        }
        Ok(())
    }

    /// Accepts waiting connections. If descriptors or memory run out, the server ignores the listener for a while,
    /// because its readiness would keep waking the thread.
    fn accept(&mut self) -> Result<(), Errno> {
        for _ in 0..BATCH {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match net::accept_with(&self.post.listener, flags) {
                Ok(socket) => self.add(socket),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => {
                    self.paused = Some(Instant::now() + PAUSE);
                    let none = EventFlags::empty();
                    return epoll::modify(
                        &self.epoll,
                        &self.post.listener,
                        EventData::new_u64(LISTENER),
                        none,
                    );
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, socket: OwnedFd) {
        let index = self.empty.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let mark = EventData::new_u64(token(index, generation));
        if epoll::add(&self.epoll, &socket, mark, EventFlags::IN).is_err() {
            self.empty.push(index);
            return;
        }
        let (layer, peer) = (L::new(&self.post), Peer::new());
        let connection =
            Connection { socket, generation, layer, peer, full: false, ended: false, lingers: false };
        self.connections[index] = Some(connection);
    }

    /// The connection that `mark` belongs to, if it still exists.
    fn find(&self, mark: u64) -> Option<usize> {
        let index = (mark & 0xffff_ffff) as usize;
        let connection = self.connections.get(index)?.as_ref()?;
        (token(index, connection.generation) == mark).then_some(index)
    }

    fn close(&mut self, index: usize) {
        self.connections[index] = None;
        self.empty.push(index);
    }

    /// Serves one connection that is ready.
    #[inline]
    fn attend(&mut self, mark: u64, flags: EventFlags) {
        let Some(index) = self.find(mark) else { return };
        let Some(connection) = &mut self.connections[index] else { return };
        let hangup = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        let mut open = true;
        if (flags.contains(EventFlags::IN) || hangup) && !connection.ended {
            open = connection.receive(&mut self.buffer, &mut self.known);
        }
        let open = open && connection.send(&self.post, &self.epoll, mark);
        if !open {
            self.close(index);
            return;
        }
        if connection.peer.is_over() && !connection.lingers && !connection.full {
            connection.lingers = true;
            let _ = net::shutdown(&connection.socket, Shutdown::Write);
            self.lingering.push_back((Instant::now() + LINGER, mark));
        }
    }
}

impl<L: Layer> Connection<L> {
    /// Reads once; false when the connection is over.
    #[inline]
    fn receive(&mut self, buffer: &mut [u8], known: &mut Known) -> bool {
        match net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => {
                self.ended = true;
                !self.lingers
            }
            Ok((count, _)) => self.layer.take(&buffer[..count], &mut self.peer, known).is_ok(),
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        }
    }

    /// Sends as much of what is owed as the socket has room for; false when the connection is over.
    #[inline]
    fn send(&mut self, post: &Post, epoll: &OwnedFd, mark: u64) -> bool {
        match self.layer.send(&self.socket, &mut self.peer, &post.answers) {
            // A client that sends nothing more has now received all its answers.
            Sent::All => !self.ended && self.watch(epoll, mark, false),
            Sent::Part => self.watch(epoll, mark, true),
            Sent::Failed => false,
        }
    }

    /// Watches for room to send if `full`, and for bytes until the client has ended; false when epoll fails.
    #[inline]
    fn watch(&mut self, epoll: &OwnedFd, mark: u64, full: bool) -> bool {
        if full == self.full && !self.ended {
            return true;
        }
        self.full = full;
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, !self.ended);
        flags.set(EventFlags::OUT, full);
        epoll::modify(epoll, &self.socket, EventData::new_u64(mark), flags).is_ok()
    }
}
