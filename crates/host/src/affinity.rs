//! The processors and the scheduling policy of the calling thread, which its children inherit.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use thread_priority::{
    ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};

/// Pins the calling thread to `cpus`; does nothing if the list is empty.
///
/// # Errors
/// When a processor does not exist or is not allowed.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    Ok(sched_setaffinity(None, &set_of(cpus)?)?)
}

fn set_of(cpus: &[usize]) -> io::Result<CpuSet> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("processor {cpu} cannot exist")));
        }
        set.set(*cpu);
    }
    Ok(set)
}

/// Pins all threads of these processes to `cpus`; does nothing if the list is empty, and to threads that are gone or another user's.
pub fn pin_processes(processes: &[Pid], cpus: &[usize]) {
    let Ok(set) = set_of(cpus) else { return };
    let tasks = |pid: &Pid| std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).ok();
    let threads = processes.iter().filter_map(tasks).flatten().flatten();
    let threads = threads.filter_map(|task| Pid::from_raw(task.file_name().to_str()?.parse().ok()?));
    threads.filter(|_| !cpus.is_empty()).for_each(|thread| {
        let _ = sched_setaffinity(Some(thread), &set);
    });
}

/// The processors that the calling thread may use; empty if the kernel does not report them.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Gives the calling thread a scheduling policy, at the lowest priority of that policy.
///
/// # Errors
/// When the policy is not allowed here.
pub fn schedule(policy: ThreadSchedulePolicy) -> io::Result<()> {
    let set = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
    set.map_err(|error| match error {
        thread_priority::Error::OS(code) => io::Error::from_raw_os_error(code),
        other => io::Error::other(other.to_string()),
    })
}
