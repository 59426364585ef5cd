//! Owns: the driver over io_uring. One call hands over many sends, and a receive stays active and puts data into
//! buffers that the kernel picks. The driver owns the memory that the kernel reads and keeps it until nothing is in
//! flight. Must not know what bytes mean.
#![allow(
    unsafe_code,
    reason = "what is handed to the kernel must be vouched for; each use says why it holds"
)]

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;
use rustix::net::{self, Shutdown};

use super::buffers::Buffers;
use super::ring::{self, WAITALL, errno, errno_of};
use super::{Driver, Event, Target, Wake, os, token};

/// Entries of the submission queue. When it is full, it is handed over early.
const SUBMISSIONS: u32 = 512;
/// Entries of the completion queue. The kernel keeps completions that do not fit.
const COMPLETIONS: u32 = 4096;
/// Number and size of the receive buffers. Together they fit a core's cache.
const BUFFERS: u16 = 128;
const BUFFER_SIZE: usize = 8 * 1024;
/// The ID of the registered group of buffers.
const GROUP: u16 = 0;
/// Most bytes taken for sending at once.
const MAX_SEND: usize = 64 * 1024;
/// Sends up to this many bytes give up where there is too little room, and report nothing on success.
const SMALL_SEND: usize = 4 * 1024;

/// How long the driver goes on handing over operations while the kernel has no room or memory for them. Usually the second attempt succeeds.
const PATIENCE: Duration = Duration::from_secs(1);

/// Kinds of operations, in the lower half of the highest byte of `user_data`.
const CONNECT: u64 = 1 << 56;
const RECEIVE: u64 = 2 << 56;
const SEND: u64 = 3 << 56;
const SEND_ALL: u64 = 4 << 56;
const KIND: u64 = 0x0f << 56;
/// The shift of the number of a connection's small send, above the kind.
const NUMBER: u32 = 60;
/// The bits that remain: slot and generation.
const TOKEN: u64 = (1 << 56) - 1;

/// One ring with its slots and buffers.
pub(crate) struct Uring {
    ring: IoUring,
    buffers: Buffers,
    slots: Vec<Slot>,
    /// How many slots can have a socket.
    files: usize,
    /// Slots, with their generations, that found no buffer to receive into. They receive again after buffers are given
    /// back.
    starved: Vec<(usize, u32)>,
    /// The buffer that holds the last data, and the length of the data.
    held: Option<u16>,
    length: usize,
    /// Operations queued so far, and how many of them were certainly handed over when the last wait ended.
    queued: u64,
    handed_over: u64,
    /// Why an operation could not be queued. Its completion will never come, so the next wait fails.
    failed: Option<Errno>,
}

struct Slot {
    socket: Option<OwnedFd>,
    generation: u32,
    /// The bytes being sent, and their number. They are never moved or freed while the ring lives. Nothing writes to
    /// them during `sending` or while a send of them waits to be handed over.
    out: Option<Box<[u8]>>,
    length: usize,
    /// Number of the last small send: up to 15, then again from 0.
    number: u8,
    /// A send is in flight that will report its completion.
    sending: bool,
    /// The place of the last send among all queued operations. Until that send is handed over, `out` must not change.
    last_send: u64,
    /// The place of the last operation of any kind.
    last: u64,
}

impl Uring {
    /// Queues an operation. When the queue is full, hands it over first.
    fn push(&mut self, slot: usize, entry: &Entry) {
        // SAFETY: the operations made here use no memory but `Slot::out` and the registered buffers. Both live until
        // `drop` has cancelled all operations. The kernel only reads `out`, and nothing writes to it during that time:
        // a send that waits for room sets `sending`; any other send gives up at once and is complete when it was handed
        // over, and `send` does not write before that; sends of a closed connection find the socket shut, and read
        // nothing.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            if let Err(error) = self.hand_over() {
                self.failed = Some(error);
                return;
            }
        }
        self.queued += 1;
        self.slots[slot].last = self.queued;
    }

    /// Whether the queued operation with this place still waits to be handed over.
    #[inline]
    fn waits(&mut self, place: u64) -> bool {
        place > self.handed_over && place > self.queued - self.ring.submission().len() as u64
    }

    fn receive(&mut self, slot: usize) {
        let mark = RECEIVE | token(slot, self.slots[slot].generation);
        self.push(slot, &opcode::RecvMulti::new(Fixed(slot as u32), GROUP).build().user_data(mark));
    }

    /// Translates a completion into an event of its slot.
    #[inline]
    fn completion(&mut self, entry: &cqueue::Entry) -> Option<(usize, Event)> {
        let (mark, result) = (entry.user_data(), entry.result());
        let buffer = cqueue::buffer_select(entry.flags());
        let slot = (mark & 0xffff_ffff) as usize;
        let current =
            self.slots[slot].socket.is_some() && (mark & TOKEN) == token(slot, self.slots[slot].generation);
        if !current {
            if let Some(id) = buffer {
                self.buffers.give(id);
            }
            return None;
        }
        let event = match mark & KIND {
            RECEIVE => self.received(slot, result, buffer, cqueue::more(entry.flags()))?,
            CONNECT => self.connected(slot, result),
            SEND => self.cut_short(slot, mark, result)?,
            _ => self.sent(slot, result),
        };
        Some((slot, event))
    }

    #[inline]
    fn received(&mut self, slot: usize, result: i32, buffer: Option<u16>, more: bool) -> Option<Event> {
        if result > 0
            && let Some(id) = buffer
        {
            if !more {
                self.receive(slot);
            }
            self.held = Some(id);
            self.length = result as usize;
            return Some(Event::Data);
        }
        if let Some(id) = buffer {
            self.buffers.give(id);
        }
        match result {
            0 => Some(Event::Ended),
            _ => match errno(result) {
                Errno::NOBUFS | Errno::INTR | Errno::AGAIN => {
                    self.starved.push((slot, self.slots[slot].generation));
                    None
                }
                error => Some(Event::Broken(error)),
            },
        }
    }

    fn connected(&mut self, slot: usize, result: i32) -> Event {
        let made = match &self.slots[slot].socket {
            _ if result < 0 => Err(errno(result)),
            Some(socket) => os::connected(socket),
            None => Err(Errno::NOTCONN),
        };
        match made {
            Ok(()) => {
                self.receive(slot);
                Event::Connected
            }
            Err(error) => {
                self.close(slot);
                Event::Refused(error)
            }
        }
    }

    fn sent(&mut self, slot: usize, result: i32) -> Event {
        self.slots[slot].sending = false;
        if result >= 0 { Event::Writable } else { Event::Unsendable }
    }

    /// Handles a small send that found too little room, or failed. It ended when it was handed over. A send that waits
    /// for room sends the rest.
    fn cut_short(&mut self, slot: usize, mark: u64, result: i32) -> Option<Event> {
        let taken = match result {
            0.. => result as usize,
            _ if errno(result) == Errno::AGAIN => 0,
            _ => return Some(Event::Unsendable),
        };
        let entry = &self.slots[slot];
        if entry.sending || (mark >> NUMBER) != u64::from(entry.number) {
            // The next bytes have replaced the rest, which can no longer be sent.
            return Some(Event::Broken(Errno::AGAIN));
        }
        self.send_out(slot, taken, true);
        None
    }

    /// Queues a send of `out` without its first `taken` bytes. A `told` send continues until everything is sent or the
    /// connection fails, and reports its completion.
    #[inline]
    fn send_out(&mut self, slot: usize, taken: usize, told: bool) {
        let entry = &mut self.slots[slot];
        let Some(bytes) = entry.out.as_deref().and_then(|out| out.get(taken..entry.length)) else { return };
        let send = opcode::Send::new(Fixed(slot as u32), bytes.as_ptr(), bytes.len() as u32);
        let token = token(slot, entry.generation);
        entry.sending = told;
        let send = if told {
            let flags = net::SendFlags::NOSIGNAL.bits() | WAITALL;
            send.flags(flags as i32).build().user_data(SEND_ALL | token)
        } else {
            entry.number = (entry.number + 1) & 0x0f;
            let mark = SEND | (u64::from(entry.number) << NUMBER) | token;
            let flags = (net::SendFlags::NOSIGNAL | net::SendFlags::DONTWAIT).bits() | WAITALL;
            send.flags(flags as i32).build().user_data(mark).flags(Flags::SKIP_SUCCESS)
        };
        self.push(slot, &send);
        self.slots[slot].last_send = self.queued;
    }

    /// Hands over what is queued and waits for a completion.
    fn enter(&mut self, ns: u64) -> Result<(), Errno> {
        let limit = Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
        ring::entered(self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit)))
    }

    fn look(&mut self) -> Result<(), Errno> {
        let submission = self.ring.submission();
        let idle = submission.is_empty() && !submission.taskrun() && !submission.cq_overflow();
        drop(submission);
        if idle { Ok(()) } else { self.hand_over() }
    }
}

impl Driver for Uring {
    const NAME: &'static str = "io_uring";
    const FRESH: u32 = 16;

    fn new(slots: usize) -> Result<Uring, Errno> {
        let to_errno = |error: std::io::Error| errno_of(&error);
        let mut ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)
            .map_err(to_errno)?;
        // The kernel does not allow more than the limit of open files. A slot beyond that could not have a socket
        // anyway.
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        let count = u32::try_from(files.min(slots as u64)).map_err(|_| Errno::INVAL)?;
        ring.submitter().register_files_sparse(count).map_err(to_errno)?;
        // Saves a lookup per call. If the kernel refuses, nothing else changes.
        let _ = ring.submitter().register_ring_fd();
        let buffers = Buffers::new(&mut ring, GROUP, BUFFERS, BUFFER_SIZE).map_err(to_errno)?;
        let empty = || Slot {
            socket: None,
            generation: 0,
            out: None,
            length: 0,
            number: 0,
            sending: false,
            last_send: 0,
            last: 0,
        };
        Ok(Uring {
            ring,
            buffers,
            slots: (0..slots).map(|_| empty()).collect(),
            files: count as usize,
            starved: Vec::with_capacity(slots),
            held: None,
            length: 0,
            queued: 0,
            handed_over: 0,
            failed: None,
        })
    }

    fn connect(&mut self, slot: usize, target: &Target) -> Result<(), Errno> {
        if slot >= self.files {
            return Err(Errno::MFILE);
        }
        let (socket, _) = target.connect()?;
        let registered = self.ring.submitter().register_files_update(slot as u32, &[socket.as_raw_fd()]);
        registered.map_err(|error| errno_of(&error))?;
        let entry = &mut self.slots[slot];
        entry.generation = entry.generation.wrapping_add(1);
        entry.socket = Some(socket);
        entry.sending = false;
        let mark = CONNECT | token(slot, entry.generation);
        let out = rustix::event::PollFlags::OUT.bits().into();
        self.push(slot, &opcode::PollAdd::new(Fixed(slot as u32), out).build().user_data(mark));
        Ok(())
    }

    #[inline]
    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno> {
        let entry = &mut self.slots[slot];
        if entry.socket.is_none() {
            return Err(Errno::NOTCONN);
        }
        if entry.sending {
            return Ok(0);
        }
        let place = entry.last_send;
        if self.waits(place) {
            let handed_over = self.hand_over();
            self.failed = handed_over.err().or(self.failed);
            handed_over?;
        }
        let entry = &mut self.slots[slot];
        let count = bytes.len().min(MAX_SEND);
        let out = entry.out.get_or_insert_with(|| vec![0; MAX_SEND].into_boxed_slice());
        out[..count].copy_from_slice(&bytes[..count]);
        entry.length = count;
        self.send_out(slot, 0, count > SMALL_SEND || count < bytes.len());
        Ok(count)
    }

    #[inline]
    fn overtaken(&mut self, slot: usize) -> bool {
        !self.slots[slot].sending && self.waits(self.slots[slot].last_send)
    }

    fn close(&mut self, slot: usize) {
        if let Some(socket) = self.slots[slot].socket.take() {
            // Ends the active receive, which would keep the socket open.
            let _ = net::shutdown(&socket, Shutdown::Both);
            // An operation names a slot, and the kernel looks up the slot's file when the operation is handed over. An
            // operation still queued for this connection must not find the next connection there, so hand it over now,
            // while it finds a socket that is shut.
            if self.waits(self.slots[slot].last) {
                self.failed = self.hand_over().err().or(self.failed);
            }
            let _ = self.ring.submitter().register_files_update(slot as u32, &[-1]);
        }
    }

    fn hand_over(&mut self) -> Result<(), Errno> {
        persist(PATIENCE, || self.ring.submit().map(|_| self.ring.submission().is_empty()))
    }

    fn wait(&mut self, wake: Wake) -> Result<(), Errno> {
        if let Some(id) = self.held.take() {
            self.buffers.give(id);
        }
        self.buffers.publish();
        while let Some((slot, generation)) = self.starved.pop() {
            if self.slots[slot].socket.is_some() && self.slots[slot].generation == generation {
                self.receive(slot);
            }
        }
        match wake {
            Wake::Now => self.look(),
            Wake::Within(ns) => self.enter(ns),
            Wake::At { in_ns, .. } => self.enter(in_ns),
        }?;
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.handed_over = self.queued - self.ring.submission().len() as u64;
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Option<(usize, Event)> {
        if let Some(id) = self.held.take() {
            self.buffers.give(id);
            self.buffers.publish();
        }
        loop {
            let entry = self.ring.completion().next()?;
            if let Some(event) = self.completion(&entry) {
                return Some(event);
            }
        }
    }

    #[inline]
    fn data(&self) -> &[u8] {
        match self.held {
            Some(id) => self.buffers.filled(id, self.length),
            None => &[],
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        for slot in 0..self.slots.len() {
            self.close(slot);
        }
        if !ring::cancel_all(&self.ring, GROUP) {
            // The kernel may still use this memory: leak it rather than let it be reused.
            std::mem::forget(std::mem::take(&mut self.buffers));
            self.slots.drain(..).for_each(|slot| std::mem::forget(slot.out));
        }
    }
}

/// Calls `submit` until it reports that nothing is left, also while the kernel temporarily lacks time, room or memory, but no longer than `patience`.
fn persist(patience: Duration, mut submit: impl FnMut() -> std::io::Result<bool>) -> Result<(), Errno> {
    let mut since = None;
    loop {
        let passing = match submit().map_err(|error| errno_of(&error)) {
            Ok(true) => return Ok(()),
            Ok(false) | Err(Errno::INTR) => Errno::AGAIN,
            Err(passing @ (Errno::AGAIN | Errno::BUSY)) => {
                std::thread::yield_now();
                passing
            }
            Err(error) => return Err(error),
        };
        // A count of attempts would not do: beside other programs, each yield can take milliseconds.
        if since.get_or_insert_with(Instant::now).elapsed() >= patience {
            return Err(passing);
        }
    }
}

#[cfg(test)]
impl Uring {
    /// Queues harmless operations for slot 1 until the queue is full.
    pub(super) fn fill(&mut self) {
        while !self.ring.submission().is_full() {
            self.receive(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_tried_again_and_nothing_else() {
        let hindered = |errors: &[Errno]| {
            let mut left = errors.iter();
            let result = persist(PATIENCE, || left.next().map_or(Ok(true), |error| Err((*error).into())));
            (result, left.len())
        };
        assert_eq!(hindered(&[Errno::INTR, Errno::AGAIN, Errno::BUSY]), (Ok(()), 0));
        assert_eq!(hindered(&[Errno::INTR, Errno::BADF, Errno::AGAIN]), (Err(Errno::BADF), 1));
        assert_eq!(persist(Duration::from_millis(5), || Err(Errno::BUSY.into())), Err(Errno::BUSY));
        let mut left = 3;
        let halfway = || {
            left -= 1;
            Ok(left == 0)
        };
        assert_eq!(persist(PATIENCE, halfway), Ok(()));
    }

    #[test]
    fn an_operation_that_could_not_be_queued_fails_the_wait() {
        let mut driver = Uring::new(2).unwrap();
        driver.fill();
        // The kernel accepts submissions only from the thread that made the ring.
        std::thread::scope(|scope| scope.spawn(|| driver.receive(1)).join()).unwrap();
        assert!(matches!(driver.wait(Wake::Now), Err(Errno::EXIST | Errno::BADF)));
        assert_eq!(driver.wait(Wake::Now), Ok(()));
    }
}
