//! Stalls: how long processors of ours stood still, whoever had taken them.
//!
//! Owns: threads that ask to be woken again and again, and how late they were. Must not know: how much is too much.
//!
//! A hypervisor that holds a virtual machine to a quota lets its processors stand still for milliseconds in a period, and need not
//! count that as steal. From inside, a thread that goes before all others is then woken late: `cyclictest` (rt-tests) and jHiccup
//! measure it so.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

use crate::affinity::pin;

/// A thread asks to be woken this often: a stall is seen as shorter than it was by up to so much.
const PERIOD_NS: u64 = 2_000_000;
/// A thread that is woken later than this found its processor standing still; the kernel itself is late by less.
const TOLERANCE_NS: u64 = 1_000_000;

/// Watches processors for as long as it lives.
#[derive(Debug)]
pub(crate) struct Stalls {
    watched: Vec<Arc<Seen>>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// How long each processor had stood still up to a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stalled(Vec<u64>);

#[derive(Debug, Default)]
struct Seen {
    stalled_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Stalls {
    /// Begins to watch these processors.
    ///
    /// # Errors
    /// When threads may not go before all others here (`CAP_SYS_NICE`), or not run on one of the processors.
    pub(crate) fn watch(cpus: &[usize]) -> io::Result<Self> {
        let (tell, told) = channel();
        let mut stalls = Self { watched: Vec::new(), over: Arc::default(), threads: Vec::new() };
        for cpu in cpus.iter().copied() {
            let seen = Arc::<Seen>::default();
            let (own, over, tell) = (Arc::clone(&seen), Arc::clone(&stalls.over), tell.clone());
            let thread = std::thread::Builder::new().name(format!("stalls-{cpu}"));
            stalls.threads.push(thread.spawn(move || watch(cpu, &own, &over, tell))?);
            stalls.watched.push(seen);
        }
        drop(tell);
        told.into_iter().collect::<io::Result<Vec<()>>>().map(|_| stalls)
    }

    /// How long each has stood still so far.
    pub(crate) fn read(&self) -> Stalled {
        Stalled(self.watched.iter().map(|seen| seen.stalled_ns.load(Ordering::Relaxed)).collect())
    }

    /// The longest time for which one of them stood still, in nanoseconds.
    pub(crate) fn longest_ns(&self) -> u64 {
        self.watched.iter().map(|seen| seen.longest_ns.load(Ordering::Relaxed)).max().unwrap_or(0)
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked has nothing more to tell.
            let _ = thread.join();
        }
    }
}

impl Stalled {
    /// The share of a time for which the processor stood still that did so longest since `before`, 0 to 1.
    pub(crate) fn share_since(&self, before: &Self, elapsed_ns: u64) -> f64 {
        let since = self.0.iter().zip(&before.0).map(|(now, then)| now.saturating_sub(*then));
        since.max().unwrap_or(0) as f64 / elapsed_ns.max(1) as f64
    }
}

fn watch(cpu: usize, seen: &Seen, over: &AtomicBool, tell: Sender<io::Result<()>>) {
    let ready = pin(&[cpu]).and_then(|()| go_before_all());
    let may = ready.is_ok();
    // Nobody hears it where another one could not begin. Who waits for it waits until all have told.
    let _ = tell.send(ready);
    drop(tell);
    let mut due_ns = now_ns();
    while may && !over.load(Ordering::Relaxed) {
        due_ns += PERIOD_NS;
        sleep_until(due_ns);
        let now = now_ns();
        let late_ns = now.saturating_sub(due_ns);
        if late_ns > TOLERANCE_NS {
            seen.stalled_ns.fetch_add(late_ns, Ordering::Relaxed);
            seen.longest_ns.fetch_max(late_ns, Ordering::Relaxed);
            due_ns = now;
        }
    }
}

/// Makes the calling thread one that runs as soon as it is woken, whatever else wants to.
fn go_before_all() -> io::Result<()> {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let set = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
    set.map_err(|error| match error {
        thread_priority::Error::OS(code) => io::Error::from_raw_os_error(code),
        other => io::Error::other(other.to_string()),
    })
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn sleep_until(at_ns: u64) {
    let at = Timespec { tv_sec: (at_ns / 1_000_000_000) as _, tv_nsec: (at_ns % 1_000_000_000) as _ };
    // A signal that was meant for another thread ends it early.
    while clock_nanosleep_absolute(ClockId::Monotonic, &at).is_err() && now_ns() < at_ns {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Takes the processor from everybody else, as a hypervisor would: a thread that goes before the one that watches.
    fn take(cpu: usize, time: Duration) {
        std::thread::spawn(move || {
            pin(&[cpu]).unwrap();
            let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
            set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Max, policy).unwrap();
            let start = Instant::now();
            while start.elapsed() < time {
                std::hint::spin_loop();
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_processor_that_stands_still_is_seen() {
        let cpus: Vec<usize> = (0..std::thread::available_parallelism().unwrap().get().min(2)).collect();
        let Ok(stalls) = Stalls::watch(&cpus) else {
            eprintln!("SKIPPED: threads may not go before all others here: run the tests as root");
            return;
        };
        // The machine may stall by itself, too: what was provoked is the least that must be seen.
        let before = stalls.read();
        take(0, Duration::from_millis(60));
        let after = stalls.read();
        std::thread::sleep(Duration::from_millis(20));
        let share = stalls.read().share_since(&before, 100_000_000);
        assert!(share > 0.5, "60 ms of 100: {share} ({before:?}, {after:?})");
        assert!(stalls.longest_ns() > 50_000_000, "{stalls:?}");
    }

    #[test]
    fn the_share_is_that_of_the_processor_that_stood_still_longest() {
        let (before, after) = (Stalled(vec![5, 100]), Stalled(vec![25, 110]));
        assert!((after.share_since(&before, 1_000) - 0.02).abs() < 1e-12);
        assert_eq!(Stalled(Vec::new()).share_since(&Stalled(Vec::new()), 0), 0.0);
    }

    #[test]
    fn a_processor_that_is_not_there_cannot_be_watched() {
        assert!(Stalls::watch(&[0, 100_000]).is_err());
    }
}
