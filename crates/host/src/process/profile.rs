//! Samples the stacks of a process tree while it is under load, and names the functions in them.
//!
//! Owns: the events that sample a tree, their buffers, and the files in which runtimes describe the code that they compile. Must not know: which
//! contender it is, and what is compared.

mod jit;
mod names;
mod stacks;
mod symbols;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use deadheat_record::Stacks;
use perf_event::data::Record;
use perf_event::events::{Event, Hardware, Software, Tracepoint};
use perf_event::{Builder, Counter, SampleFlag, Sampler};
use rustix::process::{Pid, getpid};

use jit::perf_map_of;
use stacks::RawStacks;
use symbols::Symbols;

use crate::affinity::cpu_list;

/// Samples per second of CPU time. Not a round number, so that sampling does not keep step with timers.
const PER_S: u64 = 3_989;
/// Bytes of the buffer for the samples of one processor: what it collects in several pauses of the reader. It fits into the memory that
/// the kernel lets every user lock.
const SAMPLES_BYTES: usize = 256 << 10;
/// Bytes of the buffer for the processes that start on one processor.
const STARTS_BYTES: usize = 64 << 10;
/// How often samples are read.
const PAUSE: Duration = Duration::from_millis(20);
/// The folders in which the kernel shows its tracepoints.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Why stacks cannot be sampled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The kernel does not permit or support it.
    #[error("the kernel does not let deadheat sample stacks: {reason}")]
    NotPermitted {
        /// The system's error, and the setting that causes it.
        reason: String,
    },
    /// The process was not started with a profiler, or was profiled before.
    #[error("it was not started to be profiled")]
    NotStarted,
    /// The processes do not descend from the command.
    #[error(
        "Docker starts containers outside of the command, where deadheat cannot sample their stacks; podman starts them below it"
    )]
    Elsewhere,
    /// Samples could not be read.
    #[error("its stacks could not be read: {0}")]
    Failed(String),
}

/// Whether this process may sample stacks here, at least its own.
///
/// # Errors
/// The reason if it may not.
pub fn can_be_sampled() -> Result<(), ProfileError> {
    Sampling::open(getpid(), &processors()).map(drop)
}

/// The profiler of a process and of everything that it or its descendants start after the profiler was opened.
#[derive(Debug)]
pub struct Profiler {
    state: Mutex<State>,
    /// Processes that started in the tree so far, with the buffers that report more of them.
    starts: Mutex<Starts>,
    system_calls: Option<Mutex<Counter>>,
    event: &'static str,
    user_only: bool,
}

/// The stages of a profiler.
enum State {
    Idle(Vec<Sampler>),
    Running { ended: Arc<AtomicBool>, reader: JoinHandle<RawStacks> },
    Over,
}

impl std::fmt::Debug for State {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Self::Idle(_) => "Idle",
            Self::Running { .. } => "Running",
            Self::Over => "Over",
        })
    }
}

impl Profiler {
    /// Opens the events for a process on every processor. They take no samples yet.
    ///
    /// # Errors
    /// When the kernel does not permit it.
    pub fn open(pid: Pid) -> Result<Self, ProfileError> {
        let cpus = processors();
        let Sampling { buffers, event, user_only } = Sampling::open(pid, &cpus)?;
        let starts =
            Starts { buffers: starts_of(pid, &cpus), seen: BTreeSet::from([pid.as_raw_nonzero().get()]) };
        let system_calls = system_calls_of(pid).ok().map(Mutex::new);
        Ok(Self {
            state: Mutex::new(State::Idle(buffers)),
            starts: Mutex::new(starts),
            system_calls,
            event,
            user_only,
        })
    }

    /// Starts to sample.
    ///
    /// # Errors
    /// When it has sampled before, or the kernel refuses.
    pub fn begin(&self) -> Result<(), ProfileError> {
        let mut state = self.state.lock().map_err(|_| ProfileError::NotStarted)?;
        let mut buffers = match std::mem::replace(&mut *state, State::Over) {
            State::Idle(buffers) => buffers,
            other => {
                *state = other;
                return Err(ProfileError::NotStarted);
            }
        };
        let failed = |error: io::Error| ProfileError::Failed(error.to_string());
        for buffer in &mut buffers {
            buffer.as_counter_mut().enable().map_err(failed)?;
        }
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        let reader = std::thread::Builder::new().name("profile".into());
        let reader = reader.spawn(move || read_until(buffers, &told)).map_err(failed)?;
        *state = State::Running { ended, reader };
        Ok(())
    }

    /// Ends sampling, and names the functions of all stacks. The processes must still exist, and should be frozen. `dumps` is the folder
    /// into which runtimes write dumps of compiled code.
    ///
    /// # Errors
    /// When it does not sample.
    pub fn end(&self, dumps: &Path) -> Result<Stacks, ProfileError> {
        let mut state = self.state.lock().map_err(|_| ProfileError::NotStarted)?;
        let (ended, reader) = match std::mem::replace(&mut *state, State::Over) {
            State::Running { ended, reader } => (ended, reader),
            other => {
                *state = other;
                return Err(ProfileError::NotStarted);
            }
        };
        ended.store(true, Ordering::Release);
        let raw = reader.join().map_err(|_| ProfileError::Failed("its reader failed".into()))?;
        let mut symbols = Symbols::new(dumps);
        let stacks = stacks::named(&raw, &mut symbols);
        Ok(Stacks { event: self.event.into(), user_only: self.user_only, ..stacks })
    }

    /// System calls of the tree since the profiler was opened; none if they cannot be counted.
    pub fn system_calls(&self) -> Option<u64> {
        self.system_calls.as_ref()?.lock().ok()?.read().ok()
    }

    /// Removes the maps of compiled code that processes of the tree wrote. Call this after all of them have ended.
    pub fn remove_maps(&self) {
        let Ok(mut starts) = self.starts.lock() else { return };
        starts.read();
        starts.seen.iter().for_each(|pid| remove_map(*pid));
    }
}

/// Removes the map of compiled code of a process that has ended, if it wrote one.
pub(crate) fn remove_map(pid: i32) {
    let _ = fs::remove_file(perf_map_of(pid));
}

/// The processors of this machine that are in use, whether or not a process may run on them: an event with a buffer belongs to one of them.
fn processors() -> Vec<usize> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok();
    online.and_then(|list| cpu_list(&list)).unwrap_or_else(|| vec![0])
}

/// Open events that take samples, one for each processor.
struct Sampling {
    buffers: Vec<Sampler>,
    event: &'static str,
    user_only: bool,
}

impl Sampling {
    /// Opens the best event that the kernel permits: cycles if the processor counts them, otherwise its clock; with the kernel's code if
    /// possible.
    fn open(pid: Pid, cpus: &[usize]) -> Result<Self, ProfileError> {
        let mut last = None;
        for user_only in [false, true] {
            let cycles = all_of(Hardware::CPU_CYCLES, pid, cpus, user_only);
            let found = cycles.map(|buffers| (buffers, "cycles"));
            let found = found.or_else(|_| {
                all_of(Software::CPU_CLOCK, pid, cpus, user_only).map(|buffers| (buffers, "cpu-clock"))
            });
            match found {
                Ok((buffers, event)) => return Ok(Self { buffers, event, user_only }),
                Err(error) => last = Some(error),
            }
        }
        Err(ProfileError::NotPermitted { reason: last.as_ref().map_or_else(String::new, refusal) })
    }
}

/// The system's error, with the setting that may be its cause.
fn refusal(error: &io::Error) -> String {
    let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let setting = setting.map_or_else(
        |_| "this kernel has no perf events".into(),
        |level| format!("kernel.perf_event_paranoid is {}", level.trim()),
    );
    format!("{error}; {setting}")
}

fn all_of(event: impl Event + Copy, pid: Pid, cpus: &[usize], user_only: bool) -> io::Result<Vec<Sampler>> {
    let one = |cpu: &usize| {
        let mut builder = of_tree(event, pid);
        builder.one_cpu(*cpu).sample_frequency(PER_S).exclude_kernel(user_only);
        builder.sample(SampleFlag::IP).sample(SampleFlag::TID).sample(SampleFlag::CALLCHAIN);
        builder.build()?.sampled(SAMPLES_BYTES)
    };
    cpus.iter().map(one).collect()
}

/// An event of a process and of everything that it starts.
fn of_tree<'a>(event: impl Event, pid: Pid) -> Builder<'a> {
    let mut builder = Builder::new(event);
    builder.observe_pid(pid.as_raw_nonzero().get()).inherit(true);
    builder
}

fn system_calls_of(pid: Pid) -> io::Result<Counter> {
    let path = |folder: &&str| format!("{folder}/events/raw_syscalls/sys_enter/id");
    let text = TRACEFS.iter().find_map(|folder| fs::read_to_string(path(folder)).ok());
    let id = text.and_then(|text| text.trim().parse().ok());
    let id = id.ok_or_else(|| io::Error::other("the kernel's tracepoints cannot be read"))?;
    let mut counter = of_tree(Tracepoint::with_id(id), pid).include_kernel().build()?;
    counter.enable()?;
    Ok(counter)
}

/// Reads samples until the end, then once more.
fn read_until(mut buffers: Vec<Sampler>, ended: &AtomicBool) -> RawStacks {
    let mut raw = RawStacks::default();
    loop {
        let last = ended.load(Ordering::Acquire);
        for buffer in &mut buffers {
            if last {
                let _ = buffer.as_counter_mut().disable();
            }
            while let Some(record) = buffer.next_record() {
                if let Ok(record) = record.parse_record() {
                    raw.add(&record);
                }
            }
        }
        if last {
            return raw;
        }
        std::thread::sleep(PAUSE);
    }
}

/// The processes of a tree.
#[derive(Default)]
struct Starts {
    buffers: Vec<Sampler>,
    seen: BTreeSet<i32>,
}

impl std::fmt::Debug for Starts {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.seen.fmt(to)
    }
}

impl Starts {
    fn read(&mut self) {
        for buffer in &mut self.buffers {
            while let Some(record) = buffer.next_record() {
                if let Ok(Record::Fork(fork)) = record.parse_record() {
                    self.seen.extend(i32::try_from(fork.pid));
                }
            }
        }
    }
}

/// Buffers that report every start of a process in the tree; empty if the kernel refuses.
fn starts_of(pid: Pid, cpus: &[usize]) -> Vec<Sampler> {
    let one = |cpu: &usize| {
        let mut buffer =
            of_tree(Software::DUMMY, pid).one_cpu(*cpu).task(true).build()?.sampled(STARTS_BYTES)?;
        buffer.as_counter_mut().enable()?;
        Ok(buffer)
    };
    cpus.iter().map(one).collect::<io::Result<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests;
