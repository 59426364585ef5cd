//! The processors and the scheduling policy of the calling thread, which its children inherit, and the notation of lists of processors.

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
    sched_getaffinity(None).map(|set| members(&set)).unwrap_or_default()
}

fn members(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Whether these are fewer processors than the system's first process may use. This means that the process was restricted, for example with
/// `taskset`. In a container, the first process may use all processors of the container.
pub fn is_narrowed(cpus: &[usize]) -> bool {
    // As in our own list, only online processors count, even if the first process was allowed others at boot.
    sched_getaffinity(Pid::from_raw(1)).is_ok_and(|all| is_narrower(cpus, &members(&all)))
}

fn is_narrower(cpus: &[usize], all: &[usize]) -> bool {
    all.iter().any(|cpu| !cpus.contains(cpu))
}

/// The processors of a list in the kernel's notation, `0,2-4`, sorted and without duplicates; none if it is no such list.
pub fn cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u16>().map(usize::from).ok();
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Processors as a list: `0,2,3`.
pub fn listed(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_chosen_where_the_first_process_has_more() {
        assert!(is_narrower(&[1], &[0, 1, 2, 3]) && is_narrower(&[0, 1, 2], &[0, 1, 2, 3]));
        assert!(!is_narrower(&[0, 1, 2, 3], &[0, 1, 2, 3]) && !is_narrower(&[1], &[]));
        assert!(!allowed().is_empty());
    }

    #[test]
    fn lists_are_those_of_the_kernel() {
        assert_eq!(cpu_list("0,2-4,3"), Some(vec![0, 2, 3, 4]));
        assert_eq!(cpu_list(" 0, 2-3\n"), Some(vec![0, 2, 3]));
        for text in ["", "a", "1-", "4-2", "0,,1", "-1", "70000", "0-99999999"] {
            assert_eq!(cpu_list(text), None, "{text}");
        }
        assert_eq!((listed(&[0, 2, 3]), listed(&[])), ("0,2,3".into(), String::new()));
    }
}
