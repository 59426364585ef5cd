//! Owns: the null server over io_uring. The kernel accepts connections and receives without a new request for each, and
//! one call hands over all answers of a turn. The kernel reads the answers, which all threads share and which never
//! change, and writes the buffers. Both live until nothing is in flight. Must not know what bytes mean.
#![allow(
    unsafe_code,
    reason = "what is handed to the kernel must be vouched for; each use says why it holds"
)]

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;
use rustix::net::{self, SendFlags};

use super::peer::{Known, Peer};
use super::{LINGER, PAUSE, Post, capacity};
use crate::driver::buffers::Buffers;
use crate::driver::ring::{self, WAITALL, errno, errno_of};
use crate::driver::token;

/// Entries of the submission queue. When it is full, it is handed over early.
const SUBMISSIONS: u32 = 512;
/// Entries of the completion queue. The kernel keeps completions that do not fit.
const COMPLETIONS: u32 = 4096;
/// Number and size of the receive buffers. Together they fit a core's cache.
const BUFFERS: u16 = 256;
const BUFFER_SIZE: usize = 4 * 1024;
/// The ID of the registered group of buffers.
const GROUP: u16 = 0;

/// Kinds of operations, in the highest byte of `user_data`.
const ACCEPT: u64 = 1 << 56;
const RECEIVE: u64 = 2 << 56;
/// A send that completes visibly only if it did not send everything at once.
const SEND: u64 = 3 << 56;
/// A send that continues until everything is sent, and then reports its completion.
const SEND_ALL: u64 = 4 << 56;
const STOP: u64 = 5 << 56;
/// An operation that reports only failure, and whose failure does not matter.
const QUIET: u64 = 6 << 56;
const KIND: u64 = 0xff << 56;

const SHUT_WR: i32 = 1;
const SHUT_RDWR: i32 = 2;

/// One thread's connections, indexed by their place in the ring's file table.
pub(super) struct Server {
    ring: IoUring,
    buffers: Buffers,
    post: Post,
    turn: Turn,
    connections: Vec<Option<Connection>>,
    open: usize,
    capacity: usize,
    generation: u32,
    known: Known,
    /// Connections on which something happened in this turn.
    touched: Vec<usize>,
    /// Deadlines by which clients must close their connections, in order.
    lingering: VecDeque<(Instant, u64)>,
    accepting: bool,
    /// When to accept again, after accepting failed for lack of a resource.
    paused: Option<Instant>,
}

/// Completions that were taken from the ring and are being processed.
type Turn = Vec<(u64, i32, u32)>;

struct Connection {
    generation: u32,
    peer: Peer,
    touched: bool,
    /// A send is in flight that will report its completion.
    sending: bool,
    /// A send was cut short: its rest must be sent before everything else.
    short: bool,
    /// The connection failed: send nothing more.
    broken: bool,
    /// The connection receives nothing more, and no receive is in flight.
    ended: bool,
    /// The server sends nothing more, and ignores what it receives.
    lingers: bool,
}

/// Whether this kernel allows everything that the server needs.
pub(super) fn possible() -> Result<(), Errno> {
    let mut ring = make_ring()?;
    ring.submitter().register_files_sparse(1).map_err(|error| errno_of(&error))?;
    let buffers = Buffers::new(&mut ring, GROUP, 1, BUFFER_SIZE).map_err(|error| errno_of(&error))?;
    if ring.submitter().unregister_buf_ring(GROUP).is_err() {
        // If the buffers are still registered, leak them: the kernel could write to freed memory.
        std::mem::forget(buffers);
    }
    Ok(())
}

fn make_ring() -> Result<IoUring, Errno> {
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_defer_taskrun().setup_cqsize(COMPLETIONS);
    builder.build(SUBMISSIONS).map_err(|error| errno_of(&error))
}

impl Server {
    /// Call this in the thread that will use the server.
    pub(super) fn new(post: Post) -> Result<Server, Errno> {
        let mut ring = make_ring()?;
        let capacity = capacity();
        ring.submitter().register_files_sparse(capacity as u32).map_err(|error| errno_of(&error))?;
        // Saves a lookup per call. If the kernel refuses, nothing else changes.
        let _ = ring.submitter().register_ring_fd();
        let buffers =
            Buffers::new(&mut ring, GROUP, BUFFERS, BUFFER_SIZE).map_err(|error| errno_of(&error))?;
        Ok(Server {
            ring,
            buffers,
            post,
            turn: Vec::with_capacity(COMPLETIONS as usize),
            connections: Vec::new(),
            open: 0,
            capacity,
            generation: 0,
            known: Known::default(),
            touched: Vec::with_capacity(COMPLETIONS as usize),
            lingering: VecDeque::new(),
            accepting: false,
            paused: None,
        })
    }

    /// Serves until the stop signal.
    pub(super) fn run(&mut self) -> Result<(), Errno> {
        let stop = Fd(self.post.stop.as_raw_fd());
        let readable = rustix::event::PollFlags::IN.bits().into();
        self.push(&opcode::PollAdd::new(stop, readable).build().user_data(STOP))?;
        loop {
            self.look_at_the_clock()?;
            self.enter()?;
            let mut turn = std::mem::take(&mut self.turn);
            turn.extend(
                self.ring.completion().map(|entry| (entry.user_data(), entry.result(), entry.flags())),
            );
            for &(mark, result, flags) in &turn {
                match mark & KIND {
                    RECEIVE => self.received(mark, result, flags)?,
                    SEND => self.cut_short(mark, result),
                    SEND_ALL => self.sent(mark, result),
                    ACCEPT => self.accepted(result, cqueue::more(flags))?,
                    STOP => return Ok(()),
                    _ => {}
                }
            }
            turn.clear();
            self.turn = turn;
            self.buffers.publish();
            let mut touched = std::mem::take(&mut self.touched);
            for &slot in &touched {
                self.attend(slot)?;
                // If answers cost work, send each one as soon as its work is done, and not after the work for all
                // others.
                if self.post.answers.cost_work() {
                    self.hand_over()?;
                }
            }
            touched.clear();
            self.touched = touched;
        }
    }

    /// Queues an operation. When the queue is full, hands it over first.
    #[inline]
    fn push(&mut self, entry: &Entry) -> Result<(), Errno> {
        // SAFETY: the operations made here use no memory but the answers and the registered buffers. Both live until
        // `drop` has cancelled all operations.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            match self.ring.submit() {
                Ok(_) => {}
                Err(error) => match errno_of(&error) {
                    Errno::INTR | Errno::AGAIN | Errno::BUSY => std::thread::yield_now(),
                    error => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Hands the queued operations to the kernel.
    fn hand_over(&mut self) -> Result<(), Errno> {
        ring::entered(self.ring.submit())
    }

    /// Hands the queued operations to the kernel and waits for a completion.
    #[inline]
    fn enter(&mut self) -> Result<(), Errno> {
        let next = self.lingering.front().map(|(due, _)| *due).into_iter().chain(self.paused).min();
        let entered = match next {
            None => self.ring.submit_and_wait(1),
            Some(due) => {
                let left = due.saturating_duration_since(Instant::now()) + Duration::from_micros(100);
                let limit = Timespec::new().sec(left.as_secs()).nsec(left.subsec_nanos());
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
        };
        ring::entered(entered)
    }

    /// Accepts again when the pause is over, and ends connections whose clients did not close in time.
    fn look_at_the_clock(&mut self) -> Result<(), Errno> {
        if self.accepting && self.lingering.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        if !self.accepting && self.open < self.capacity && self.paused.is_none_or(|due| due <= now) {
            (self.accepting, self.paused) = (true, None);
            let listener = Fd(self.post.listener.as_raw_fd());
            let accept = opcode::AcceptMulti::new(listener).allocate_file_index(true);
            self.push(&accept.build().user_data(ACCEPT))?;
        }
        while let Some((due, mark)) = self.lingering.front().copied() {
            match self.find(mark) {
                // This also ends the receive, and with it the connection.
                Some(slot) if due <= now => self.shut(slot, SHUT_RDWR)?,
                Some(_) => break,
                None => {}
            }
            self.lingering.pop_front();
        }
        Ok(())
    }

    fn accepted(&mut self, result: i32, more: bool) -> Result<(), Errno> {
        self.accepting &= more;
        if result < 0 {
            let again =
                matches!(errno(result), Errno::INTR | Errno::AGAIN | Errno::CONNABORTED | Errno::CANCELED);
            if !again {
                self.paused = Some(Instant::now() + PAUSE);
            }
            return Ok(());
        }
        let slot = result as usize;
        if self.connections.len() <= slot {
            self.connections.resize_with(slot + 1, || None);
        }
        self.generation = self.generation.wrapping_add(1);
        self.connections[slot] = Some(Connection {
            generation: self.generation,
            peer: Peer::new(),
            touched: false,
            sending: false,
            short: false,
            broken: false,
            ended: false,
            lingers: false,
        });
        self.open += 1;
        self.receive(slot, self.generation)
    }

    fn receive(&mut self, slot: usize, generation: u32) -> Result<(), Errno> {
        let receive = opcode::RecvMulti::new(Fixed(slot as u32), GROUP).build();
        self.push(&receive.user_data(RECEIVE | token(slot, generation)))
    }

    /// The connection that `mark` belongs to, if it still exists.
    #[inline]
    fn find(&self, mark: u64) -> Option<usize> {
        let slot = (mark & 0xffff_ffff) as usize;
        let connection = self.connections.get(slot)?.as_ref()?;
        (token(slot, connection.generation) == mark & !KIND).then_some(slot)
    }

    /// Makes sure that the connection is attended to before the turn ends.
    #[inline]
    fn touch(touched: &mut Vec<usize>, slot: usize, connection: &mut Connection) {
        if !connection.touched {
            connection.touched = true;
            touched.push(slot);
        }
    }

    #[inline]
    fn received(&mut self, mark: u64, result: i32, flags: u32) -> Result<(), Errno> {
        let buffer = cqueue::buffer_select(flags);
        let slot = self.find(mark);
        let mut again = None;
        if let Some(slot) = slot
            && let Some(connection) = &mut self.connections[slot]
        {
            let more = cqueue::more(flags);
            if result > 0
                && let Some(id) = buffer
                && !connection.broken
                && !connection.lingers
            {
                let data = self.buffers.filled(id, result as usize);
                connection.broken = connection.peer.take(data, &mut self.known).is_err();
            }
            let wait = result < 0 && matches!(errno(result), Errno::NOBUFS | Errno::INTR | Errno::AGAIN);
            if !more {
                if result > 0 || wait {
                    again = Some(connection.generation);
                } else {
                    connection.ended = true;
                    connection.broken |= result < 0;
                }
            }
            Server::touch(&mut self.touched, slot, connection);
        }
        if let Some(id) = buffer {
            self.buffers.give(id);
        }
        match (slot, again) {
            (Some(slot), Some(generation)) => self.receive(slot, generation),
            _ => Ok(()),
        }
    }

    /// Handles a [`SEND`] that did not send everything at once.
    fn cut_short(&mut self, mark: u64, result: i32) {
        let Some(slot) = self.find(mark) else { return };
        let Some(connection) = &mut self.connections[slot] else { return };
        match result {
            0.. => connection.peer.sending.start += result as usize,
            _ => connection.broken |= errno(result) != Errno::AGAIN,
        }
        connection.short = true;
        Server::touch(&mut self.touched, slot, connection);
    }

    fn sent(&mut self, mark: u64, result: i32) {
        let Some(slot) = self.find(mark) else { return };
        let Some(connection) = &mut self.connections[slot] else { return };
        connection.sending = false;
        connection.broken |= usize::try_from(result) != Ok(connection.peer.sending.len());
        Server::touch(&mut self.touched, slot, connection);
    }

    /// Decides what to do on a connection after a turn.
    #[inline]
    fn attend(&mut self, slot: usize) -> Result<(), Errno> {
        let Some(connection) = &mut self.connections[slot] else { return Ok(()) };
        connection.touched = false;
        if connection.sending {
            return Ok(());
        }
        if connection.broken {
            connection.peer.forget();
            connection.short = false;
        }
        let generation = connection.generation;
        if connection.short || connection.peer.advance(&self.post.answers) {
            let last = connection.peer.is_over() || connection.ended;
            let all = connection.short || last || connection.peer.is_owed();
            connection.short = false;
            connection.sending = all;
            let range = connection.peer.sending.clone();
            return self.send(slot, generation, &range, all);
        }
        if connection.ended {
            return self.close(slot);
        }
        let end = connection.broken || connection.peer.is_over();
        if end && !connection.lingers {
            connection.lingers = true;
            let how = if connection.broken { SHUT_RDWR } else { SHUT_WR };
            self.lingering.push_back((Instant::now() + LINGER, token(slot, generation)));
            return self.shut(slot, how);
        }
        Ok(())
    }

    /// Sends a part of the answers. Usually there is room for all of it, and then the send reports nothing: it gives up
    /// where there is no room. In that case it reports by the next turn, before anything else is sent on the
    /// connection.
    #[inline]
    fn send(&mut self, slot: usize, generation: u32, range: &Range<usize>, all: bool) -> Result<(), Errno> {
        let bytes = self.post.answers.bytes(range);
        let give_up = if all { SendFlags::empty() } else { SendFlags::DONTWAIT };
        let flags = ((SendFlags::NOSIGNAL | give_up).bits() | WAITALL) as i32;
        let send =
            opcode::Send::new(Fixed(slot as u32), bytes.as_ptr(), bytes.len() as u32).flags(flags).build();
        let mark = token(slot, generation);
        self.push(&if all {
            send.user_data(SEND_ALL | mark)
        } else {
            send.user_data(SEND | mark).flags(Flags::SKIP_SUCCESS)
        })
    }

    fn shut(&mut self, slot: usize, how: i32) -> Result<(), Errno> {
        let shut = opcode::Shutdown::new(Fixed(slot as u32), how).build();
        self.push(&shut.user_data(QUIET).flags(Flags::SKIP_SUCCESS))
    }

    fn close(&mut self, slot: usize) -> Result<(), Errno> {
        self.connections[slot] = None;
        self.open -= 1;
        self.paused = None;
        let close = opcode::Close::new(Fixed(slot as u32)).build();
        self.push(&close.user_data(QUIET).flags(Flags::SKIP_SUCCESS))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !ring::cancel_all(&self.ring, GROUP) {
            // The kernel may still read and write this memory: leak it rather than let it be reused.
            std::mem::forget(std::mem::take(&mut self.buffers));
            std::mem::forget(Arc::clone(&self.post.answers));
        }
        // The kernel frees the ring later. Free its connections and the port at once.
        let _ = net::shutdown(&self.post.listener, net::Shutdown::Both);
        let _ = self.ring.submitter().unregister_files();
    }
}
