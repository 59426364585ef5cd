//! Ctrl-C and its relatives: the first asks for the end, the second ends at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

/// Whether a person asked for the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens to INT, TERM and HUP from here on. The contenders' keepers see to the rest when the program ends at once.
    ///
    /// # Errors
    /// When the system does not allow it.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let flag = || Arc::clone(&interrupt.0);
            signal_hook::flag::register_conditional_shutdown(signal.as_raw(), 130, flag())?;
            signal_hook::flag::register(signal.as_raw(), flag())?;
        }
        Ok(interrupt)
    }

    /// Whether it was asked for.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
