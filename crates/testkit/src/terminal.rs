//! A terminal without a screen: what a run writes to it is kept, byte by byte, with everything that moves the cursor.
//!
//! Owns: the two ends of a pseudo-terminal. Must not know what the bytes mean.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// How long nothing may come, once the run has ended, until that was all.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };

/// A pseudo-terminal of a fixed size.
#[derive(Debug)]
pub struct Terminal {
    user: OwnedFd,
    over: Arc<AtomicBool>,
    reader: JoinHandle<Vec<u8>>,
}

impl Terminal {
    /// A new one. What is written to it is read at once, so that nobody who writes has to wait.
    ///
    /// # Panics
    /// When the system has no pseudo-terminal left.
    pub fn new(columns: u16, rows: u16) -> Self {
        // It must not become the terminal by which this process is controlled.
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

    /// Everything that was written to it. Asked for when whoever writes has ended; what a descendant that outlives the run writes
    /// later is left out.
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
        // Asked first: what was written before the end is still to be read.
        let is_over = over.load(Ordering::Acquire);
        match poll(&mut [PollFd::new(host, PollFlags::IN)], Some(&PATIENCE)) {
            Ok(0) if is_over => return written,
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => panic!("a terminal cannot be waited for: {error}"),
        }
        match read(host, &mut bytes) {
            // Nobody holds the other end any more.
            Ok(0) | Err(Errno::IO) => return written,
            Ok(count) => written.extend_from_slice(&bytes[..count]),
            Err(Errno::INTR) => {}
            Err(error) => panic!("a terminal cannot be read: {error}"),
        }
    }
}
