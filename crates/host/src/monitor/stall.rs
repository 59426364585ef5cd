//! Stalls: how long the watched processors stood still, whatever took them.
//!
//! Owns: threads that ask to be woken at regular intervals, and how late they were woken. Must not know: how much is too much.
//!
//! A hypervisor that rations a virtual machine stops its processors for milliseconds at a time, and need not report that as steal. From
//! inside, a real-time thread is then woken late: `cyclictest` (rt-tests) and jHiccup measure the same. If the thread was woken in time
//! but waited for another thread or for the kernel, the kernel counts that wait (`/proc/thread-self/schedstat`): that is no stall.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use thread_priority::{RealtimeThreadSchedulePolicy, ThreadSchedulePolicy};

use crate::affinity::{pin, schedule};
use crate::process::tree::schedstat_of;

/// The interval between wake-ups: a stall may be measured as shorter than it was by up to this much. A wake-up takes about 16 us in a
/// virtual machine, mostly for the timer, so that a shorter interval would cost the contenders more than it shows.
const PERIOD: Duration = Duration::from_millis(4);
/// A thread reads its wait and run times again after this many wake-ups: it runs for about a microsecond each time, and reading costs more.
const FRESH: u64 = 25;
/// A thread that is woken later than this found its processor standing still; timers alone are late by less.
const TOLERANCE: Duration = Duration::from_millis(1);

/// Watches processors for as long as it lives.
#[derive(Debug)]
pub struct Stalls {
    /// By processor.
    watched: Vec<(usize, Arc<Disturbance>)>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// How long each processor had stood still up to a moment.
#[derive(Debug, Clone)]
pub struct Stalled {
    at: Instant,
    stalled_ns: Vec<u64>,
}

#[derive(Debug, Default)]
struct Disturbance {
    stalled_ns: AtomicU64,
    longest_ns: AtomicU64,
    /// CPU time of the watching thread.
    used_ns: AtomicU64,
}

impl Stalls {
    /// Starts to watch these processors.
    ///
    /// # Errors
    /// When real-time threads are not allowed here (`CAP_SYS_NICE`), a thread may not run on one of the processors, or the kernel does not
    /// count waiting times.
    pub fn watch(cpus: &[usize]) -> io::Result<Self> {
        let (tell, told) = channel();
        let mut stalls = Self { watched: Vec::new(), over: Arc::default(), threads: Vec::new() };
        for cpu in cpus.iter().copied() {
            let seen = Arc::<Disturbance>::default();
            let (own, over, tell) = (Arc::clone(&seen), Arc::clone(&stalls.over), tell.clone());
            let thread = std::thread::Builder::new().name(format!("stalls-{cpu}"));
            stalls.threads.push(thread.spawn(move || watch(cpu, &own, &over, tell))?);
            stalls.watched.push((cpu, seen));
        }
        // Otherwise the receiver below would wait for one more message.
        drop(tell);
        told.into_iter().collect::<io::Result<Vec<()>>>().map(|_| stalls)
    }

    /// How long each processor has stood still so far.
    pub fn read(&self) -> Stalled {
        let stalled_ns =
            self.watched.iter().map(|(_, seen)| seen.stalled_ns.load(Ordering::Relaxed)).collect();
        Stalled { at: Instant::now(), stalled_ns }
    }

    /// The longest single stall, in nanoseconds.
    pub fn longest_ns(&self) -> u64 {
        self.watched.iter().map(|(_, seen)| seen.longest_ns.load(Ordering::Relaxed)).max().unwrap_or(0)
    }

    /// CPU time that watching has used so far on those of the watched processors that are in `cpus`, in nanoseconds; updated ten times a
    /// second.
    pub fn used_ns(&self, cpus: &[usize]) -> u64 {
        let there = self.watched.iter().filter(|(cpu, _)| cpus.contains(cpu));
        there.map(|(_, seen)| seen.used_ns.load(Ordering::Relaxed)).sum()
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing to return.
            let _ = thread.join();
        }
    }
}

impl Stalled {
    /// The share of the time since `before` during which the most stalled processor stood still, 0 to 1.
    pub fn share_since(&self, before: &Self) -> f64 {
        let since =
            self.stalled_ns.iter().zip(&before.stalled_ns).map(|(now, then)| now.saturating_sub(*then));
        let elapsed_ns = self.at.duration_since(before.at).as_nanos().max(1);
        // A stall that began before `before` may be longer than the elapsed time.
        (since.max().unwrap_or(0) as f64 / elapsed_ns as f64).min(1.0)
    }
}

fn watch(cpu: usize, seen: &Disturbance, over: &AtomicBool, tell: Sender<io::Result<()>>) {
    let ready = pin(&[cpu]).and_then(|()| go_first()).and_then(|()| ran_and_waited());
    let begun = ready.as_ref().ok().copied();
    // The receiver is gone if another thread failed to start.
    let _ = tell.send(ready.map(drop));
    drop(tell);
    let Some(mut before) = begun else { return };
    let mut now = Instant::now();
    for woken in 1_u64.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let due = now + PERIOD;
        std::thread::sleep(PERIOD);
        now = Instant::now();
        let late = now.saturating_duration_since(due);
        if late <= TOLERANCE && woken % FRESH != 0 {
            continue;
        }
        let counted = ran_and_waited().unwrap_or(before);
        seen.used_ns.store(counted.0, Ordering::Relaxed);
        if let Some(stall) = stood_still(late, counted.1.saturating_sub(before.1)) {
            let ns = stall.as_nanos() as u64;
            seen.stalled_ns.fetch_add(ns, Ordering::Relaxed);
            seen.longest_ns.fetch_max(ns, Ordering::Relaxed);
        }
        before = counted;
    }
}

/// How long the calling thread has run, in nanoseconds, and how long it has waited for a processor after wake-ups.
fn ran_and_waited() -> io::Result<(u64, Duration)> {
    let counted = schedstat_of(Path::new("/proc/thread-self"));
    let counted =
        counted.ok_or_else(|| io::Error::other("the kernel does not count what threads wait (schedstat)"));
    counted.map(|(used_ns, waited_ns)| (used_ns, Duration::from_nanos(waited_ns)))
}

/// How long the processor stood still, given how late the thread was and how long it waited for others; none if it did not.
fn stood_still(late: Duration, waited: Duration) -> Option<Duration> {
    Some(late.saturating_sub(waited)).filter(|stall| *stall > TOLERANCE)
}

/// Makes the calling thread a real-time thread, so that no ordinary thread delays it.
fn go_first() -> io::Result<()> {
    schedule(ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// None if the tests may not watch this processor.
    fn watched() -> Option<Stalls> {
        match Stalls::watch(&[0]) {
            Ok(stalls) => Some(stalls),
            Err(error) => {
                eprintln!("SKIPPED: no real-time thread on processor 0 here: {error}");
                None
            }
        }
    }

    #[test]
    fn a_processor_is_looked_at_by_a_thread_of_its_own() {
        let Some(stalls) = watched() else { return };
        let start = Instant::now();
        while stalls.used_ns(&[0]) == 0 {
            assert!(start.elapsed().as_secs() < 60, "nobody looks: {stalls:?}");
            std::thread::sleep(PERIOD);
        }
        assert_eq!(stalls.used_ns(&[1]), 0, "{stalls:?}");
    }

    /// Stalls are lateness minus this wait: the kernel counts how long a thread waited for another one on its processor.
    #[test]
    fn what_a_thread_waits_for_others_is_counted() {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let rival = std::thread::spawn(move || {
            pin(&[0]).unwrap();
            while !told.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let waits = std::thread::spawn(|| {
            pin(&[0]).unwrap();
            let start = Instant::now();
            let before = ran_and_waited().unwrap().1;
            loop {
                let waited = ran_and_waited().unwrap().1.saturating_sub(before);
                if waited >= Duration::from_millis(20) || start.elapsed().as_secs() > 60 {
                    return (waited, start.elapsed());
                }
            }
        });
        let waits = waits.join();
        over.store(true, Ordering::Relaxed);
        rival.join().unwrap();
        let (waited, elapsed) = waits.unwrap();
        assert!(waited >= Duration::from_millis(20) && waited <= elapsed, "{waited:?} of {elapsed:?}");
    }

    #[test]
    fn a_stall_is_a_lateness_that_is_no_wait() {
        let us = Duration::from_micros;
        assert_eq!(stood_still(us(5_000), us(20)), Some(us(4_980)));
        assert_eq!(stood_still(us(60_000), us(59_900)), None);
        assert_eq!(stood_still(TOLERANCE, Duration::ZERO), None);
        assert_eq!(stood_still(us(1), us(5)), None);
    }

    #[test]
    fn the_share_is_that_of_the_processor_that_stood_still_longest() {
        let at = Instant::now();
        let stalled = |ns, stalled_ns: [u64; 2]| Stalled {
            at: at + Duration::from_nanos(ns),
            stalled_ns: stalled_ns.to_vec(),
        };
        let before = stalled(0, [5, 100]);
        assert!((stalled(1_000, [25, 110]).share_since(&before) - 0.02).abs() < 1e-12);
        assert_eq!(stalled(10, [25, 110]).share_since(&before), 1.0);
        assert_eq!(before.share_since(&before), 0.0);
    }

    #[test]
    fn a_processor_that_is_not_there_cannot_be_watched() {
        assert!(Stalls::watch(&[0, 100_000]).is_err());
    }
}
