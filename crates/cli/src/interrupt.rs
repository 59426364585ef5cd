//! Ctrl-C and similar signals: the first requests an orderly end, the second ends the program immediately.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rustix::process::Signal;

/// The interval of checks for Ctrl-C.
const GLANCE: Duration = Duration::from_millis(20);

/// The exit status of a command that the user interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Whether the user interrupted the program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles INT, TERM and HUP from now on; HUP not if it is ignored, as `nohup` asks. If the program ends immediately, the keepers stop the contenders.
    ///
    /// # Errors
    /// The system refuses the signal handlers.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let hup = Some(Signal::HUP).filter(|hup| !is_ignored(*hup));
        for signal in [Signal::INT, Signal::TERM].into_iter().chain(hup) {
            let flag = || Arc::clone(&interrupt.0);
            signal_hook::flag::register_conditional_shutdown(signal.as_raw(), INTERRUPTED.into(), flag())?;
            signal_hook::flag::register(signal.as_raw(), flag())?;
        }
        Ok(interrupt)
    }

    /// Whether the user interrupted the program.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether this process ignores a signal: it inherited that.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored & (1 << (signal.as_raw() - 1)) != 0
}

/// Runs `work` on a separate thread and returns its result. `None` as soon as `stopped` is true. The thread then continues until it or the program
/// ends.
pub(crate) fn unless<T: Send + 'static>(
    stopped: &dyn Fn() -> bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    // A late result has no receiver.
    std::thread::spawn(move || drop(sender.send(work())));
    loop {
        match receiver.recv_timeout(GLANCE) {
            Ok(done) => return Some(done),
            Err(RecvTimeoutError::Timeout) if !stopped() => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}
