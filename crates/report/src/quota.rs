//! What a CPU quota does to contenders: the figures that are told where a scenario has one.
//!
//! Owns which they are, and how each is written. Must not know how they are laid out.

use deadheat_analysis::ContenderResult;
use deadheat_analysis::number::{bytes, percent, time_ns, whole};
use deadheat_record::Limits;

/// A title, and what stands below it.
pub(crate) type Told = (&'static str, fn(&ContenderResult) -> Option<String>);

/// What matters most comes first.
pub(crate) const TOLD: [Told; 6] = [
    ("processes", |one| one.processes.map(|count| whole(count as u64))),
    ("of quota", |one| one.cpu_share.map(percent)),
    ("throttled periods", |one| one.throttled.map(|all| whole(all.periods))),
    ("timeouts", |one| Some(whole(one.outcomes.timeout))),
    ("slowest", |one| one.latency_ns.max.map(|ns| time_ns(ns as f64))),
    ("received", |one| one.received_bytes_per_s.map(|rate| format!("{}/s", bytes(rate as u64)))),
];

/// What each contender is held to, where that is a share of CPU time: `1 core and 512 MiB`.
pub(crate) fn about(limits: &Limits) -> Option<String> {
    let cpus = limits.cpus?;
    let cores = if cpus > 1.0 { "cores" } else { "core" };
    let memory = limits.memory_bytes.map_or_else(String::new, |size| format!(" and {}", bytes(size)));
    Some(format!("{cpus} {cores}{memory}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_share_of_cpu_time_is_a_quota() {
        let limits = |cpus, memory_bytes| Limits { cpus, memory_bytes, ..Limits::default() };
        let said = |cpus, memory_bytes| about(&limits(cpus, memory_bytes)).unwrap_or_default();
        assert_eq!(said(Some(1.0), None), "1 core");
        assert_eq!(said(Some(2.5), Some(512 << 20)), "2.5 cores and 512 MiB");
        assert_eq!([about(&limits(None, Some(1))), about(&Limits::default())], [None, None]);
    }
}
