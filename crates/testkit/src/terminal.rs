//! A terminal without a screen: it keeps every byte that a run writes, including the sequences that move the cursor.
//!
//! This module owns the two ends of a pseudo-terminal. It does not interpret the bytes.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// After the run has ended, its output counts as complete when no byte arrives for this long.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };

/// A pseudo-terminal of a fixed size.
#[derive(Debug)]
pub struct Terminal {
    user: OwnedFd,
    over: Arc<AtomicBool>,
    reader: JoinHandle<Vec<u8>>,
}

impl Terminal {
    /// A new terminal. A thread reads its output at once, so that a program that writes never has to wait.
    ///
    /// # Panics
    /// When the system has no pseudo-terminal left.
    pub fn new(columns: u16, rows: u16) -> Self {
        // `NOCTTY`: it must not become the controlling terminal of this process.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let host = openpt(flags).expect("a pseudo-terminal");
        unlockpt(&host).expect("a pseudo-terminal that can be opened");
        let name = ptsname(&host, Vec::<u8>::new()).expect("its name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let user = open(name.as_c_str(), flags, Mode::empty()).expect("its other end");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&user, size).expect("a terminal that has a size");
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let reader = thread::spawn(move || read_all(&host, &told));
        Self { user, over, reader }
    }

    /// The end that a run writes to.
    ///
    /// # Panics
    /// When this process has too many open files.
    pub(crate) fn end(&self) -> OwnedFd {
        self.user.try_clone().expect("a file descriptor")
    }

    /// Everything that was written to it. Call this after the run has ended. It leaves out what a descendant that outlives the run
    /// writes later.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn written(self) -> Vec<u8> {
        drop(self.user);
        self.over.store(true, Ordering::Release);
        self.reader.join().expect("the reader of a terminal")
    }
}

fn read_all(host: &OwnedFd, over: &AtomicBool) -> Vec<u8> {
    let mut written = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        // Loads the flag before polling, so that everything written before the end is still read.
        let is_over = over.load(Ordering::Acquire);
        match poll(&mut [PollFd::new(host, PollFlags::IN)], Some(&PATIENCE)) {
            Ok(0) if is_over => return written,
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => panic!("a terminal cannot be waited for: {error}"),
        }
        match read(host, &mut bytes) {
            // No process has the other end open any more.
            Ok(0) | Err(Errno::IO) => return written,
            Ok(count) => written.extend_from_slice(&bytes[..count]),
            Err(Errno::INTR) => {}
            Err(error) => panic!("a terminal cannot be read: {error}"),
        }
    }
}
