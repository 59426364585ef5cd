//! Ctrl-C and similar signals: the first requests an orderly end, the second ends the program immediately.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

/// Whether the user interrupted the program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles INT, TERM and HUP from now on. If the program ends immediately, the keepers stop the contenders.
    ///
    /// # Errors
    /// The system refuses the signal handlers.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let flag = || Arc::clone(&interrupt.0);
            signal_hook::flag::register_conditional_shutdown(signal.as_raw(), 130, flag())?;
            signal_hook::flag::register(signal.as_raw(), flag())?;
        }
        Ok(interrupt)
    }

    /// Whether the user interrupted the program.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
