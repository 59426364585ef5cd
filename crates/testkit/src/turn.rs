//! Owns: what keeps the races of one test program short and out of each other's way.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Options of a race that is as short as a test wants it: what is asserted must not depend on how precise it is.
pub const SHORT_RACE: [&str; 10] =
    ["--epochs", "3", "--warmup", "100ms", "--measure", "200ms", "--slice", "20ms", "-c", "8"];

/// Races take turns: each wants both cores. Held until the test is over, also one that failed.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
