//! Owns: work that costs CPU time and nothing else, and how long a step of it takes here. Must not know requests or servers.
//!
//! The work of an answer is a fixed number of steps and not a time. A clock on the wall goes on while a process is frozen or
//! waits for its CPU, so that work by that clock would be done by doing nothing. The CPU clock of the thread stands still
//! then, but asking it is a call into the kernel whose price is a good part of the microseconds that are to be spent, and
//! the work would end at one of its readings only. Steps are the same for every answer, in every process that is told the
//! same number, and their ratio between two servers is exact. The CPU clock serves once, to find the length of a step.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Steps of one measurement: about a millisecond, a thousand times what it costs to ask the clock.
const BATCH: u64 = 500_000;
/// The shortest of so many batches counts: what lengthens one is somebody else's.
const BATCHES: usize = 25;

/// CPU work of a fixed size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spin {
    steps: u64,
}

impl Spin {
    /// So many steps, each of some nanoseconds; 0 is no work.
    pub fn steps(steps: u64) -> Spin {
        Spin { steps }
    }

    /// As many steps as take so long on the CPU that this runs on, at its present frequency; measures it for some 25 ms.
    pub fn lasting(time: Duration) -> Spin {
        Spin { steps: (time.as_nanos() as f64 / step_ns()).round() as u64 }
    }

    /// How many steps it has.
    pub fn count(self) -> u64 {
        self.steps
    }

    /// Does the work so many times over.
    #[inline]
    pub(super) fn run(self, times: u32) {
        if self.steps > 0 {
            black_box(walk(self.steps * u64::from(times)));
        }
    }
}

/// CPU time of one step on the CPU that this runs on, in nanoseconds.
pub fn step_ns() -> f64 {
    let mut shortest = f64::INFINITY;
    for _ in 0..BATCHES {
        let before = thread_cpu_ns();
        black_box(walk(BATCH));
        shortest = shortest.min((thread_cpu_ns() - before) as f64);
    }
    (shortest / BATCH as f64).max(f64::MIN_POSITIVE)
}

/// Steps each of which needs the result of the one before, so that no CPU does two at once.
#[inline(never)]
fn walk(steps: u64) -> u64 {
    let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..steps {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_steps_take_twice_the_cpu_time() {
        let shortest = |spin: Spin, times: u32| {
            let one = || {
                let before = thread_cpu_ns();
                spin.run(times);
                (thread_cpu_ns() - before) as f64
            };
            (0..20).map(|_| one()).fold(f64::INFINITY, f64::min)
        };
        let base = shortest(Spin::steps(100_000), 1);
        for twice in [shortest(Spin::steps(200_000), 1), shortest(Spin::steps(100_000), 2)] {
            assert!((1.8..2.2).contains(&(twice / base)), "{base} {twice}");
        }
        assert!(shortest(Spin::default(), 1_000_000) < base / 2.0, "no work takes no time");
    }

    #[test]
    fn a_time_is_as_many_steps_as_it_has_room_for() {
        let (short, long) =
            (Spin::lasting(Duration::from_micros(40)), Spin::lasting(Duration::from_micros(400)));
        assert!((8.0..12.0).contains(&(long.count() as f64 / short.count() as f64)), "{short:?} {long:?}");
        assert!((0.1..50.0).contains(&step_ns()));
    }
}
