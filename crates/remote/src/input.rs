//! Reads lines and messages from a pipe, and waits no longer than it is told to.
//!
//! Owns: that wait. Must not know: what is read.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::de::DeserializeOwned;

use crate::frame::{Decoder, FrameError};

/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;

/// A pipe that is read, with what has arrived of the next message.
#[derive(Debug)]
pub(crate) struct Input {
    from: OwnedFd,
    decoder: Decoder,
    piece: Vec<u8>,
    arrived: Instant,
    /// Bytes that came last.
    count: usize,
}

/// What came of waiting for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Bytes came.
    Bytes,
    /// None came in time.
    Nothing,
    /// None will ever come.
    End,
}

impl Input {
    pub(crate) fn new(from: impl Into<OwnedFd>) -> Self {
        let (from, piece) = (from.into(), vec![0; PIECE]);
        Self { from, decoder: Decoder::default(), piece, arrived: Instant::now(), count: 0 }
    }

    /// Waits at most `patience` for bytes. A signal does not shorten that.
    pub(crate) fn wait(&mut self, patience: Duration) -> io::Result<Waited> {
        let begun = Instant::now();
        loop {
            let left = patience.saturating_sub(begun.elapsed());
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            match poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => return Ok(Waited::Nothing),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            match rustix::io::read(&self.from, &mut self.piece[..]) {
                Ok(0) => return Ok(Waited::End),
                Ok(count) => {
                    self.arrived = Instant::now();
                    self.count = count;
                    self.decoder.push(&self.piece[..count]);
                    return Ok(Waited::Bytes);
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// When the last bytes came.
    pub(crate) fn arrived(&self) -> Instant {
        self.arrived
    }

    /// How many bytes came last.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The next line, if it is complete.
    pub(crate) fn line(&mut self) -> Option<String> {
        self.decoder.line()
    }

    /// The next message, if it is complete.
    pub(crate) fn message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        self.decoder.message()
    }

    /// How many bytes have come that are not a complete line.
    pub(crate) fn waiting(&self) -> usize {
        self.decoder.waiting()
    }
}
