//! Owns: the driver over io_uring: sends gathered and handed over in one call, receives that go on by themselves into
//! buffers that the kernel picks. The kernel reads memory that it is given here, which is owned by the driver and lives
//! until nothing is in flight any more. Must not know what bytes mean.
#![allow(
    unsafe_code,
    reason = "what is handed to the kernel must be vouched for; each use says why it holds"
)]

use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;
use rustix::net::{self, Shutdown};

use super::buffers::Buffers;
use super::{Driver, Event, Target, Wake, os, token};

/// Entries of the queue of submissions; a full one is handed over early.
const SUBMISSIONS: u32 = 512;
/// Entries of the queue of completions; the kernel keeps what does not fit.
const COMPLETIONS: u32 = 4096;
/// Buffers to receive into, and their size. Together they fit a core's cache.
const BUFFERS: u16 = 128;
const BUFFER_SIZE: usize = 8 * 1024;
/// The group that the buffers are registered as.
const GROUP: u16 = 0;
/// Most bytes taken for sending at once.
const MAX_SEND: usize = 64 * 1024;
/// Up to so many bytes a send gives up where there is too little room, and is not told of when it went well.
const SMALL_SEND: usize = 4 * 1024;

/// So often handing over is tried where the kernel has no room or memory for it; mostly the next time it has.
const TRIES: u32 = 100_000;

/// Kinds of operations, in the lower half of the highest byte of their mark.
const CONNECT: u64 = 1 << 56;
const RECEIVE: u64 = 2 << 56;
const SEND: u64 = 3 << 56;
const SEND_ALL: u64 = 4 << 56;
const KIND: u64 = 0x0f << 56;
/// Above the kind: which of the connection's small sends it is.
const NUMBER: u32 = 60;
/// What both leave of a mark.
const TOKEN: u64 = (1 << 56) - 1;

/// One ring with its slots and buffers.
pub(crate) struct Uring {
    ring: IoUring,
    buffers: Buffers,
    slots: Vec<Slot>,
    /// How many slots can have a socket.
    files: usize,
    /// Slots, with their generations, that found no buffer to receive into: armed again when some were given back.
    starved: Vec<(usize, u32)>,
    /// The buffer that the last data stand in, and their length.
    held: Option<u16>,
    length: usize,
    /// Operations queued so far, and how many of them had been handed over for sure when the last wait was over.
    queued: u64,
    handed_over: u64,
    /// Why an operation could not be queued: what it was to bring will never come, so that the next wait fails.
    failed: Option<Errno>,
}

struct Slot {
    socket: Option<OwnedFd>,
    generation: u32,
    /// What is being sent, and how much of it. It is never moved or freed while the ring lives, and not written to while
    /// `sending` or while a send of it still waits to be handed over.
    out: Option<Box<[u8]>>,
    length: usize,
    /// Counts its small sends, up to 15 and again from 0.
    number: u8,
    /// A send is under way whose end will be told.
    sending: bool,
    /// The place of its last send among all operations that were queued: until that is handed over, `out` must not change.
    last_send: u64,
    /// The place of its last operation of any kind.
    last: u64,
}

impl Uring {
    /// Queues an operation, handing over what is queued if there is no more room.
    fn push(&mut self, slot: usize, entry: &Entry) {
        // SAFETY: the operations made here use no memory but `Slot::out` and the registered buffers, both of which live
        // until `drop` has cancelled everything. `out` is only read, and not written to meanwhile: a send that waits for
        // room holds `sending`; any other one gives up at once and is done with as soon as it was handed over, before
        // which `send` does not write; and those of a connection that was closed find its socket shut, and read nothing.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            if let Err(error) = self.hand_over() {
                self.failed = Some(error);
                return;
            }
        }
        self.queued += 1;
        self.slots[slot].last = self.queued;
    }

    /// Whether the operation with this place among all that were queued still waits to be handed over.
    #[inline]
    fn waits(&mut self, place: u64) -> bool {
        place > self.handed_over && place > self.queued - self.ring.submission().len() as u64
    }

    fn receive(&mut self, slot: usize) {
        let mark = RECEIVE | token(slot, self.slots[slot].generation);
        self.push(slot, &opcode::RecvMulti::new(Fixed(slot as u32), GROUP).build().user_data(mark));
    }

    /// What a completion means for its slot.
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

    /// A small send found too little room, or failed. It was given up as soon as it was handed over; what is left of it is
    /// sent by one that waits for room.
    fn cut_short(&mut self, slot: usize, mark: u64, result: i32) -> Option<Event> {
        let taken = match result {
            0.. => result as usize,
            _ if errno(result) == Errno::AGAIN => 0,
            _ => return Some(Event::Unsendable),
        };
        let entry = &self.slots[slot];
        if entry.sending || (mark >> NUMBER) != u64::from(entry.number) {
            // Its bytes have made room for the next ones, and cannot be sent any more.
            return Some(Event::Broken(Errno::AGAIN));
        }
        self.send_out(slot, taken, true);
        None
    }

    /// Queues a send of what stands in `out`, without the first `taken` bytes. One that is `told` of goes on until all is
    /// sent or the connection fails.
    #[inline]
    fn send_out(&mut self, slot: usize, taken: usize, told: bool) {
        let entry = &mut self.slots[slot];
        let Some(bytes) = entry.out.as_deref().and_then(|out| out.get(taken..entry.length)) else { return };
        let send = opcode::Send::new(Fixed(slot as u32), bytes.as_ptr(), bytes.len() as u32);
        let token = token(slot, entry.generation);
        entry.sending = told;
        let send = if told {
            let flags = net::SendFlags::NOSIGNAL.bits() | MSG_WAITALL;
            send.flags(flags as i32).build().user_data(SEND_ALL | token)
        } else {
            entry.number = (entry.number + 1) & 0x0f;
            let mark = SEND | (u64::from(entry.number) << NUMBER) | token;
            let flags = (net::SendFlags::NOSIGNAL | net::SendFlags::DONTWAIT).bits() | MSG_WAITALL;
            send.flags(flags as i32).build().user_data(mark).flags(Flags::SKIP_SUCCESS)
        };
        self.push(slot, &send);
        self.slots[slot].last_send = self.queued;
    }

    /// Hands over what is queued and waits for a completion.
    fn enter(&mut self, ns: u64) -> Result<(), Errno> {
        let limit = Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
        let entered = self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit));
        match entered.map_err(|error| errno_of(&error)) {
            Ok(_) | Err(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
            Err(error) => Err(error),
        }
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
        // The kernel allows no more than there may be files; a slot beyond could have none anyway.
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        let count = u32::try_from(files.min(slots as u64)).map_err(|_| Errno::INVAL)?;
        ring.submitter().register_files_sparse(count).map_err(to_errno)?;
        // Saves a look-up per call; where it is refused, nothing else changes.
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
            // Ends the receive that goes on by itself, which holds the socket open otherwise.
            let _ = net::shutdown(&socket, Shutdown::Both);
            // An operation names a slot, and the kernel looks up its file when it is handed over: what is still queued for
            // this connection must not find the next one there. Handed over now, it finds one that is shut.
            if self.waits(self.slots[slot].last) {
                self.failed = self.hand_over().err().or(self.failed);
            }
            let _ = self.ring.submitter().register_files_update(slot as u32, &[-1]);
        }
    }

    fn hand_over(&mut self) -> Result<(), Errno> {
        persist(|| self.ring.submit().map(|_| self.ring.submission().is_empty()))
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
        // What is queued is handed over, then cancelled with all that is in flight; only then may the memory go.
        let _ = self.ring.submit();
        let limit = Timespec::new().sec(5);
        let cancelled = self.ring.submitter().register_sync_cancel(Some(limit), CancelBuilder::any());
        let nothing_left = match cancelled {
            Ok(()) => true,
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        let unregistered = self.ring.submitter().unregister_buf_ring(GROUP).is_ok();
        if !(nothing_left && unregistered) {
            // The kernel may still write: better lost than overwritten.
            std::mem::forget(std::mem::take(&mut self.buffers));
            self.slots.drain(..).for_each(|slot| std::mem::forget(slot.out));
        }
    }
}

/// `MSG_WAITALL`: a send that does not send all has failed; unless it gives up at once, it waits for room before.
const MSG_WAITALL: u32 = 0x100;

fn errno(result: i32) -> Errno {
    Errno::from_raw_os_error(-result)
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Submits until that says that nothing is left, also where the kernel has no time, no room or no memory for the moment.
fn persist(mut submit: impl FnMut() -> std::io::Result<bool>) -> Result<(), Errno> {
    let mut error = Errno::AGAIN;
    for _ in 0..TRIES {
        match submit().map_err(|error| errno_of(&error)) {
            Ok(true) => return Ok(()),
            Ok(false) | Err(Errno::INTR) => {}
            Err(passing @ (Errno::AGAIN | Errno::BUSY)) => {
                error = passing;
                std::thread::yield_now();
            }
            Err(error) => return Err(error),
        }
    }
    Err(error)
}

#[cfg(test)]
impl Uring {
    /// Queues harmless operations for slot 1 until there is no more room.
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
            let result = persist(|| left.next().map_or(Ok(true), |error| Err((*error).into())));
            (result, left.len())
        };
        assert_eq!(hindered(&[Errno::INTR, Errno::AGAIN, Errno::BUSY]), (Ok(()), 0));
        assert_eq!(hindered(&[Errno::INTR, Errno::BADF, Errno::AGAIN]), (Err(Errno::BADF), 1));
        assert_eq!(persist(|| Err(Errno::BUSY.into())), Err(Errno::BUSY));
        let mut left = 3;
        let halfway = || {
            left -= 1;
            Ok(left == 0)
        };
        assert_eq!(persist(halfway), Ok(()));
    }

    #[test]
    fn an_operation_that_could_not_be_queued_fails_the_wait() {
        let mut driver = Uring::new(2).unwrap();
        driver.fill();
        // The kernel takes submissions from the thread alone that made the ring.
        std::thread::scope(|scope| scope.spawn(|| driver.receive(1)).join()).unwrap();
        assert!(matches!(driver.wait(Wake::Now), Err(Errno::EXIST | Errno::BADF)));
        assert_eq!(driver.wait(Wake::Now), Ok(()));
    }
}
