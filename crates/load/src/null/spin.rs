//! Owns: work that costs only CPU time, and the measured length of a step on this machine. Must not know requests or
//! servers.
//!
//! The work of an answer is a fixed number of steps, not a time. A wall clock keeps running while a process is frozen
//! or waits for its CPU, so that a process would complete work measured by that clock without doing any. The thread's
//! CPU clock stops then, but reading it is a call into the kernel, which costs a good part of the few microseconds to
//! spend, and work could end only at one of its readings. A number of steps is the same for every answer and in every
//! process with the same setting, and the ratio of the work of two servers is exact. The CPU clock serves once, to
//! measure the length of a step.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Steps of one measurement: about a millisecond, a thousand times the cost of reading the clock.
const BATCH: u64 = 500_000;
/// Number of measurements. The shortest counts, because only interference makes one longer.
const BATCHES: usize = 25;

/// CPU work of a fixed size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spin {
    steps: u64,
}

impl Spin {
    /// This number of steps, each of some nanoseconds; 0 is no work.
    pub fn steps(steps: u64) -> Spin {
        Spin { steps }
    }

    /// As many steps as take `time` on the current CPU at its present frequency. Measures for about 25 ms.
    pub fn lasting(time: Duration) -> Spin {
        Spin { steps: (time.as_nanos() as f64 / step_ns()).round() as u64 }
    }

    /// The number of steps.
    pub fn count(self) -> u64 {
        self.steps
    }

    /// Does the work `times` times.
    #[inline]
    pub(super) fn run(self, times: u32) {
        if self.steps > 0 {
            black_box(walk(self.steps * u64::from(times)));
        }
    }
}

/// CPU time of one step on the current CPU, in nanoseconds.
pub fn step_ns() -> f64 {
    let mut shortest = f64::INFINITY;
    for _ in 0..BATCHES {
        let before = thread_cpu_ns();
        black_box(walk(BATCH));
        shortest = shortest.min((thread_cpu_ns() - before) as f64);
    }
    (shortest / BATCH as f64).max(f64::MIN_POSITIVE)
}

/// Each step needs the result of the one before, so that a CPU cannot overlap them.
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

    /// Other programs and other guests of the machine slow single measurements down: one attempt of many must be undisturbed.
    fn in_one_attempt(holds: impl Fn() -> bool) -> bool {
        (0..100).any(|_| holds())
    }

    #[test]
    fn twice_the_steps_take_twice_the_cpu_time() {
        let shortest = |spin: Spin, times: u32| {
            let one = || {
                let before = thread_cpu_ns();
                spin.run(times);
                (thread_cpu_ns() - before) as f64
            };
            (0..5).map(|_| one()).fold(f64::INFINITY, f64::min)
        };
        let base = || shortest(Spin::steps(100_000), 1);
        for (steps, times) in [(200_000, 1), (100_000, 2)] {
            let is_twice = || (1.8..2.2).contains(&(shortest(Spin::steps(steps), times) / base()));
            assert!(in_one_attempt(is_twice), "{times} times {steps} steps");
        }
        let is_nothing = || shortest(Spin::default(), 1_000_000) < base() / 2.0;
        assert!(in_one_attempt(is_nothing), "no work takes no time");
    }

    #[test]
    fn a_time_is_as_many_steps_as_it_has_room_for() {
        let count = |micros: u64| Spin::lasting(Duration::from_micros(micros)).count() as f64;
        assert!(
            in_one_attempt(|| (8.0..12.0).contains(&(count(400) / count(40)))),
            "ten times as many steps"
        );
        assert!((0.1..50.0).contains(&step_ns()));
    }
}
