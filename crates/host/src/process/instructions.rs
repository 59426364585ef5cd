//! Instructions that a process and its descendants have retired, if the processor counts them.
//!
//! Owns: the counter, and how many instructions a request takes. Must not know: which contender they belong to.

use std::sync::{Arc, Mutex};

use perf_event::events::{Event, Hardware};
use perf_event::{Builder, Counter};
use rustix::process::{Pid, getpid};

/// Counts for a process and for all threads and processes that it or its descendants start after the counter was opened.
#[derive(Debug)]
pub struct Instructions {
    counter: Mutex<Counter>,
    source: &'static str,
}

/// A reading of the counter, with the time (in nanoseconds) for which it was enabled and for which it ran: a processor has few counters
/// and the kernel lets them take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    count: u64,
    enabled_ns: u64,
    running_ns: u64,
}

impl Reading {
    /// The count since `then`, scaled up to the time in which the counter did not run. None if it did not run at all.
    fn since(self, then: Self) -> Option<f64> {
        let of = |part: fn(&Self) -> u64| part(&self).saturating_sub(part(&then)) as f64;
        let (count, enabled, running) =
            (of(|one| one.count), of(|one| one.enabled_ns), of(|one| one.running_ns));
        (count > 0.0 && running > 0.0).then(|| count * (enabled / running).max(1.0))
    }
}

/// Whether this process may count instructions here, at least its own.
pub fn can_be_counted() -> bool {
    Instructions::of(getpid()).is_some()
}

impl Instructions {
    /// None if the processor does not count instructions (in most virtual machines), or if `kernel.perf_event_paranoid` forbids it. Includes
    /// the kernel's instructions, unless only those in user mode are permitted.
    pub fn of(pid: Pid) -> Option<Self> {
        let of = |with_kernel| open(pid, Hardware::INSTRUCTIONS, with_kernel).ok();
        let all = of(true).map(|counter| (counter, "instructions"));
        let (counter, source) = all.or_else(|| Some((of(false)?, "instructions:u")))?;
        Some(Self { counter: Mutex::new(counter), source })
    }

    fn read(&self) -> Option<Reading> {
        reading(&mut *self.counter.lock().ok()?)
    }
}

fn reading(counter: &mut Counter) -> Option<Reading> {
    let found = counter.read_full().ok()?;
    let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).ok();
    let (enabled_ns, running_ns) = (ns(found.time_enabled()?)?, ns(found.time_running()?)?);
    Some(Reading { count: found.count(), enabled_ns, running_ns })
}

fn open(pid: Pid, event: impl Event, with_kernel: bool) -> std::io::Result<Counter> {
    let mut builder = Builder::new(event);
    builder.observe_pid(pid.as_raw_nonzero().get()).inherit(true).exclude_kernel(!with_kernel);
    let mut counter = builder.build()?;
    counter.enable()?;
    Ok(counter)
}

/// Instructions per request of a load, from a mark to its end.
#[derive(Debug)]
pub struct PerRequest {
    counter: Option<Arc<Instructions>>,
    from: Option<(Reading, u64)>,
}

impl PerRequest {
    /// Counts from now, until another mark is set.
    pub fn of(counter: Option<Arc<Instructions>>) -> Self {
        let mut own = Self { counter, from: None };
        own.mark(0);
        own
    }

    /// Starts to count from now, when `completions` requests are complete.
    pub fn mark(&mut self, completions: u64) {
        self.from = self.counter.as_ref().and_then(|counter| Some((counter.read()?, completions)));
    }

    /// Instructions per request from the mark until now, when `completions` requests are complete, and the event's name in `perf`; none if
    /// they were not counted.
    pub fn until(&self, completions: u64) -> Option<(f64, &'static str)> {
        let (counter, (then, before)) = (self.counter.as_ref()?, self.from?);
        let requests = completions.checked_sub(before).filter(|requests| *requests > 0)?;
        Some((counter.read()?.since(then)? / requests as f64, counter.source))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use perf_event::events::Software;

    use super::*;
    use crate::monitor::stolen_ns;
    use crate::process::held_shell::{end, go_on, waiting};
    use crate::process::tree;

    /// An event that every kernel counts in the same way: nanoseconds on a processor.
    fn clock(pid: Pid) -> Counter {
        open(pid, Software::TASK_CLOCK, true).or_else(|_| open(pid, Software::TASK_CLOCK, false)).unwrap()
    }

    fn may_count() -> bool {
        open(getpid(), Software::TASK_CLOCK, false).is_ok()
    }

    #[test]
    fn what_was_not_counted_is_taken_to_be_like_what_was() {
        let at = |count, enabled_ns, running_ns| Reading { count, enabled_ns, running_ns };
        assert_eq!(at(70, 9, 9).since(at(20, 4, 4)), Some(50.0));
        // Only the sharing between the two readings counts: half of the time before is not half of the time after.
        assert_eq!(at(21, 12, 11).since(at(1, 2, 1)), Some(20.0));
        assert_eq!(at(21, 22, 11).since(at(1, 2, 1)), Some(40.0));
        assert_eq!([at(1, 9, 1).since(at(1, 2, 1)), at(1, 2, 1).since(at(5, 9, 9))], [None; 2]);
    }

    #[test]
    fn requests_before_the_mark_are_none() {
        assert!(PerRequest::of(None).until(10).is_none());
        if !may_count() {
            return assert!(!can_be_counted());
        }
        let mut shell = waiting("i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done");
        let counter = Mutex::new(clock(Pid::from_child(&shell)));
        let mut own = PerRequest::of(Some(Arc::new(Instructions { counter, source: "ns" })));
        own.mark(1_000);
        assert_eq!(own.until(1_000), None);
        go_on(&mut shell);
        let (each, source) = own.until(1_010).unwrap();
        assert!(each > 1e5 && source == "ns", "{each} ns in each of ten");
        let fewer = own.until(1_100).unwrap().0;
        assert!(fewer < each / 2.0, "{fewer} of a hundred, {each} of ten");
        end(shell);
    }

    /// A child and a grandchild use nearly all of the CPU time.
    #[test]
    fn descendants_are_counted_also_once_they_have_ended() {
        if !may_count() {
            return assert!(!can_be_counted());
        }
        let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let mut shell = waiting(&format!("(sh -c '{burn}'; {burn}; :)"));
        let pid = Pid::from_child(&shell);
        let mut counter = clock(pid);
        let (before, stolen_ns_before) = (reading(&mut counter).unwrap(), stolen_ns());
        go_on(&mut shell);
        let counted = reading(&mut counter).unwrap().since(before).unwrap();
        // The shell has waited for both by now, so that its own times include theirs.
        let used = tree::cpu_split(Path::new(tree::PROC), pid).unwrap();
        end(shell);
        let used_ns = (used.0 + used.1) as f64;
        assert!(counted > 5e7, "{counted} ns of burning");
        // The counter includes the time that the hypervisor took; the shell's times do not.
        let stolen_ns = (stolen_ns() - stolen_ns_before) as f64;
        let off = used_ns / 4.0 + 4e7;
        assert!(counted > used_ns - off, "{counted} {used_ns}");
        assert!(counted < used_ns + off + stolen_ns, "{counted} {used_ns} {stolen_ns}");
    }

    #[test]
    fn a_process_that_is_gone_has_no_counter() {
        let mut shell = waiting(":");
        let pid = Pid::from_child(&shell);
        let counter = Instructions::of(pid).map(Arc::new);
        assert_eq!(counter.is_some(), can_be_counted());
        let own = PerRequest::of(counter);
        go_on(&mut shell);
        let counted = own.until(1);
        assert_eq!(counted.is_some(), can_be_counted());
        assert!(counted.is_none_or(|(each, source)| each > 1e3 && source.starts_with("instructions")));
        end(shell);
        assert!(Instructions::of(pid).is_none());
    }
}
