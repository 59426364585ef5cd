//! Owns: what a worker needs from the operating system, and the choice between two backends. A worker names its
//! connections by slot, and the driver reports what happens on them as events. Must not know requests, answers or
//! tallies.

pub(crate) mod buffers;
mod epoll;
pub(crate) mod os;
pub(crate) mod ring;
#[cfg(test)]
mod tests;
mod uring;

use rustix::io::Errno;

pub(crate) use epoll::Epoll;
pub(crate) use os::{Clock, Target};
pub(crate) use uring::Uring;

/// Largest number of bytes in one [`Event::Data`].
pub(crate) const MAX_DATA: usize = 64 * 1024;

/// How the load generator communicates with the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Backend {
    /// io_uring where the kernel allows everything needed (Linux 6.1 or newer, not forbidden), otherwise epoll.
    #[default]
    Auto,
    /// One call for many sends and receives.
    Uring,
    /// One call for each send and each receive.
    Epoll,
}

impl Backend {
    /// The name as users type and read it: `auto`, `io_uring` or `epoll`.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Auto => "auto",
            Backend::Uring => Uring::NAME,
            Backend::Epoll => Epoll::NAME,
        }
    }

    /// The backend to use: io_uring or epoll. `probe` finds out whether io_uring has all that is needed.
    pub(crate) fn choose(self, probe: impl FnOnce() -> Result<(), Errno>) -> Result<Backend, Errno> {
        match self {
            Backend::Epoll => Ok(Backend::Epoll),
            Backend::Auto => Ok(probe().map_or(Backend::Epoll, |()| Backend::Uring)),
            Backend::Uring => probe().map(|()| Backend::Uring),
        }
    }
}

/// What happened on a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The connection attempt has succeeded.
    Connected,
    /// The connection attempt has failed; its slot is empty again.
    Refused(Errno),
    /// Bytes came. They are in [`Driver::data`] until the next call of [`Driver::next`].
    Data,
    /// The other side sends nothing more.
    Ended,
    /// The connection failed while receiving.
    Broken(Errno),
    /// There is room to send again, after [`Driver::send`] took fewer bytes than it was given.
    Writable,
    /// Bytes taken for sending could not be sent. Bytes that the other side sent before may still come.
    Unsendable,
}

/// How long to wait for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Do not wait: only look.
    Now,
    /// At most about this many nanoseconds.
    Within(u64),
    /// Until `due_ns` on the worker's clock, which is `in_ns` nanoseconds from now. Precise to a microsecond.
    At { due_ns: u64, in_ns: u64 },
}

/// Slots with connections. The driver reports the events of each slot in the order in which they happened, and never
/// reports an event of a connection that is closed by then.
pub(crate) trait Driver: Sized {
    /// The name of this driver for users.
    const NAME: &'static str;
    /// After how many events the caller should read the clock again. Where one wait receives for all slots, received
    /// bytes are as old as that wait. Where each event is a separate receive, they are new.
    const FRESH: u32;

    /// Makes this many empty slots. Call it in the thread that will use the driver.
    fn new(slots: usize) -> Result<Self, Errno>;

    /// Begins to connect an empty slot; [`Event::Connected`] or [`Event::Refused`] follows. After an error the slot is
    /// still empty.
    fn connect(&mut self, slot: usize, target: &Target) -> Result<(), Errno>;

    /// Takes bytes for sending on a connected slot; returns how many it took. If not all, [`Event::Writable`] follows.
    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno>;

    /// Whether everything received on the connection, its end included, was certainly sent before the last bytes taken
    /// could reach the other side. That is so if the other side had ended the connection before, or if none of these
    /// bytes was handed to the kernel yet. Always false for bytes taken in more than one piece.
    fn overtaken(&mut self, slot: usize) -> bool;

    /// Closes the connection of a slot, which is empty then.
    fn close(&mut self, slot: usize);

    /// Sends the bytes taken, without looking for events.
    fn hand_over(&mut self) -> Result<(), Errno>;

    /// Sends the bytes taken. Then, if there are no events, waits for some as `wake` says.
    fn wait(&mut self, wake: Wake) -> Result<(), Errno>;

    /// The next event, without waiting.
    fn next(&mut self) -> Option<(usize, Event)>;

    /// The bytes of the last [`Event::Data`].
    fn data(&self) -> &[u8];
}

/// Combines a slot with the count of its connections, so that a late event of an old connection can be recognised.
#[inline]
pub(crate) fn token(slot: usize, generation: u32) -> u64 {
    (u64::from(generation & 0x00ff_ffff) << 32) | slot as u64
}
