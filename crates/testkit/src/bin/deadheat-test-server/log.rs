//! The server's log: when each request arrived and how long its answer took, measured in the server. Knows no request.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest time that a line waits before it is in the file.
const PATIENCE: Duration = Duration::from_millis(100);

/// A file with a line for each answer, in the order in which they were sent. A line has two times in microseconds: from the
/// start of the server until the request arrived, and from then until the server passed the answer to the system.
pub(crate) struct Log {
    file: BufWriter<File>,
    started: Instant,
    /// When the oldest line that is still in the buffer was written.
    waiting: Option<Instant>,
}

impl Log {
    /// Begins a new file.
    pub(crate) fn create(path: &Path, started: Instant) -> io::Result<Self> {
        Ok(Self { file: BufWriter::with_capacity(1 << 16, File::create(path)?), started, waiting: None })
    }

    /// Writes a line.
    pub(crate) fn sent(&mut self, came: Instant, now: Instant) -> io::Result<()> {
        self.waiting.get_or_insert(now);
        let us = |time: Duration| time.as_nanos() as f64 / 1e3;
        writeln!(self.file, "{:.1} {:.1}", us(came - self.started), us(now - came))
    }

    /// The latest time at which the buffered lines should be in the file.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.waiting.map(|since| since + PATIENCE)
    }

    /// Writes the buffered lines to the file, if they are due.
    pub(crate) fn keep(&mut self, now: Instant) -> io::Result<()> {
        if self.due().is_some_and(|due| due <= now) {
            self.waiting = None;
            self.file.flush()?;
        }
        Ok(())
    }
}
