//! Keeps the races of one test program short, and limits how many of them run at a time.

use std::sync::{Condvar, Mutex, PoisonError};

/// Options that make a race as short as possible. A test that uses them must not depend on the precision of the results. Cores may sleep:
/// where many races run side by side, the threads that keep cores awake would take a quarter of them.
pub const SHORT_RACE: [&str; 12] = [
    "--epochs",
    "3",
    "--cpu-latency",
    "any",
    "--warmup",
    "20ms",
    "--measure",
    "40ms",
    "--slice",
    "10ms",
    "-c",
    "8",
];

/// How many races run side by side. They mostly wait, and what the tests assert must also hold on a busy machine.
const SIDE_BY_SIDE: usize = 22;

static FREE: (Mutex<usize>, Condvar) = (Mutex::new(SIDE_BY_SIDE), Condvar::new());

/// The right to race. Dropping it gives the right back, even when the test fails.
#[derive(Debug)]
#[must_use = "a turn is over when it is dropped"]
pub struct Turn {
    places: usize,
}

/// Waits for the right to race beside a few other tests of this program.
pub fn turn() -> Turn {
    take(1)
}

/// Waits for the right to race while no other test of this program races.
pub fn turn_alone() -> Turn {
    take(SIDE_BY_SIDE)
}

fn take(places: usize) -> Turn {
    let (free, changed) = &FREE;
    let free = free.lock().unwrap_or_else(PoisonError::into_inner);
    let mut free = changed.wait_while(free, |free| *free < places).unwrap_or_else(PoisonError::into_inner);
    *free -= places;
    Turn { places }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (free, changed) = &FREE;
        *free.lock().unwrap_or_else(PoisonError::into_inner) += self.places;
        changed.notify_all();
    }
}
