//! Pinning of the calling thread, inherited by what it starts.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Pins the calling thread to `cpus`; nothing is done when the list is empty.
///
/// # Errors
/// When a processor does not exist or is not allowed.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("processor {cpu} cannot exist")));
        }
        set.set(*cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}
