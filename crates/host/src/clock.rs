//! Time for a race: passed in as a trait, so that tests need not wait.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Tells the time and waits.
pub trait Clock {
    /// Time since a fixed origin; it never goes back.
    fn now(&self) -> Duration;
    /// Milliseconds since 1970.
    fn unix_ms(&self) -> u64;
    /// Waits.
    fn sleep(&self, duration: Duration);
}

/// This machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn unix_ms(&self) -> u64 {
        unix_ms()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// Milliseconds since 1970.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
