//! Owns: what a worker asks of the operating system, and which of the two ways of asking is used. A worker names its
//! connections by slot; what happens on them comes back as events. Must not know requests, answers or tallies.

pub(crate) mod buffers;
mod epoll;
pub(crate) mod os;
#[cfg(test)]
mod tests;
mod uring;

use rustix::io::Errno;

pub(crate) use epoll::Epoll;
pub(crate) use os::{Clock, Target};
pub(crate) use uring::Uring;

/// Most bytes that one [`Event::Data`] brings.
pub(crate) const MAX_DATA: usize = 64 * 1024;

/// How the load generator speaks to the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// io_uring where the kernel allows all that is needed of it (Linux 6.1 or newer, not forbidden), else epoll.
    #[default]
    Auto,
    /// One call for many sends and receives.
    Uring,
    /// One call for each send and each receive.
    Epoll,
}

impl Backend {
    /// The name as a user types and reads it: `auto`, `io_uring` or `epoll`.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Auto => "auto",
            Backend::Uring => Uring::NAME,
            Backend::Epoll => Epoll::NAME,
        }
    }
}

/// What happened on a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The connection that was begun is made.
    Connected,
    /// The connection that was begun could not be made; its slot is empty again.
    Refused(Errno),
    /// Bytes came; they stand in [`Driver::data`] until the next event is asked for.
    Data,
    /// The other side sends no more.
    Ended,
    /// The connection failed while receiving.
    Broken(Errno),
    /// More can be sent, after [`Driver::send`] took less than it was given.
    Writable,
    /// What was taken for sending could not be sent. What the other side sent before may still come.
    Unsendable,
}

/// How long to wait for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Not at all: only look.
    Now,
    /// At most about this many nanoseconds.
    Within(u64),
    /// Until `due_ns` on the worker's clock, which is `in_ns` nanoseconds from now, to the microsecond.
    At { due_ns: u64, in_ns: u64 },
}

/// Slots with connections, of which events are told in the order in which they happened on each slot. An event of a
/// connection that was closed meanwhile is never told.
pub(crate) trait Driver: Sized {
    /// What users know this driver as.
    const NAME: &'static str;
    /// After how many events the time of day should be looked at again: received bytes are as old as the last wait
    /// where one wait receives for all, and new where each event is a receive of its own.
    const FRESH: u32;

    /// As many empty slots. To be called in the thread that will use it.
    fn new(slots: usize) -> Result<Self, Errno>;

    /// Begins to connect an empty slot; [`Event::Connected`] or [`Event::Refused`] follows. After an error the slot is
    /// still empty.
    fn connect(&mut self, slot: usize, target: &Target) -> Result<(), Errno>;

    /// Takes bytes for sending on a connected slot: how many it took. If not all, [`Event::Writable`] follows.
    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno>;

    /// Whether it is known that all that has come on a connection, its end included, was on its way before the bytes that
    /// were taken last could reach the other side: that had ended the connection before, or none of them was handed over
    /// yet. Never of bytes that were taken in more than one piece.
    fn overtaken(&mut self, slot: usize) -> bool;

    /// Empties a slot.
    fn close(&mut self, slot: usize);

    /// Sends what was taken, without looking for events.
    fn hand_over(&mut self) -> Result<(), Errno>;

    /// Sends what was taken, and waits for events as long as `wake` says unless there are some.
    fn wait(&mut self, wake: Wake) -> Result<(), Errno>;

    /// The next event, without waiting.
    fn next(&mut self) -> Option<(usize, Event)>;

    /// The bytes of the last [`Event::Data`].
    fn data(&self) -> &[u8];
}

/// Counts the connections that a slot has had, so that a late event of an old one is known as such.
#[inline]
pub(crate) fn token(slot: usize, generation: u32) -> u64 {
    (u64::from(generation & 0x00ff_ffff) << 32) | slot as u64
}
