//! What the machine does to our cores besides the race: steal, CPU time of others, and stalls.
//!
//! Owns: reading the machine's CPU time, from the root group or else from `/proc/stat`. Must not know: what follows from the readings.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use deadheat_record::{ExternalReading, Finding, HostReading};
use rustix::process::Pid;

use crate::cgroup::Hierarchy;
use crate::counters::Counters;
use crate::host::virtual_here;
use crate::stall::{Stalled, Stalls};
use crate::throttle::Groups;

/// A reading in clock ticks may be off by so many of them for each core: one at either end.
const TICKS_OFF: u64 = 2;

/// Reads our cores between two moments.
#[derive(Debug)]
pub(crate) struct Watch {
    cpus: Vec<usize>,
    tick_ns: u64,
    hierarchy: Hierarchy,
    /// `/proc`, or what a test imitates it with.
    proc: PathBuf,
    counters: Counters,
    stalls: Option<Stalls>,
}

/// The state at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    at: Instant,
    ticks: Ticks,
    machine: Option<MachineTime>,
    ours_ns: u64,
}

/// CPU time that everybody together has used on our cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MachineTime {
    ns: u64,
    /// By how much a difference between two readings may be off.
    off_ns: u64,
}

/// What happened between two moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Seen {
    /// As it is recorded.
    pub reading: ExternalReading,
    /// By how much the share of others may be off, for the coarseness of the clock that it was read from.
    pub foreign_off: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    steal: u64,
    total: u64,
}

impl Watch {
    /// Watches `cpus`; all that are online where the list is empty.
    pub(crate) fn new(cpus: &[usize], hierarchy: &Hierarchy) -> Self {
        Self::under(Path::new("/proc"), cpus, hierarchy)
    }

    /// The same, with the files of `/proc` below another folder.
    pub(crate) fn under(proc: &Path, cpus: &[usize], hierarchy: &Hierarchy) -> Self {
        let cpus = if cpus.is_empty() { online(&stat(proc)) } else { cpus.to_vec() };
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let counters = Counters::new(proc, Groups::own(hierarchy));
        Self { cpus, tick_ns, hierarchy: hierarchy.clone(), proc: proc.into(), counters, stalls: None }
    }

    /// Watches for stalls of our cores from now on; what is to be said where that is not allowed and a hypervisor may cause them.
    pub(crate) fn see_stalls(&mut self) -> Option<Finding> {
        match Stalls::watch(&self.cpus) {
            Ok(stalls) => self.stalls = Some(stalls),
            Err(error) if virtual_here() => return Some(stalls_unknown(&error)),
            Err(_) => {}
        }
        None
    }

    /// How long our cores have stood still so far; none where nobody watches for it.
    pub(crate) fn stalled(&self) -> Option<Stalled> {
        self.stalls.as_ref().map(Stalls::read)
    }

    /// The share of the time since then for which the one of our cores stood still that did so longest, 0 to 1.
    pub(crate) fn stalled_share(&self, since: Option<Stalled>) -> Option<f64> {
        Some(self.stalled()?.share_since(&since?))
    }

    /// What the kernel has counted for the whole machine so far.
    pub(crate) fn host(&self) -> HostReading {
        self.counters.read()
    }

    /// The groups that hold `processes` and not ourselves, whose throttling is theirs alone.
    pub(crate) fn groups_of(&self, processes: &[Pid]) -> Groups {
        Groups::of_others(&self.hierarchy, processes)
    }

    /// Reads the state. `contenders_ns` is the CPU time that contenders and services have used so far.
    pub(crate) fn moment(&self, contenders_ns: u64) -> Moment {
        let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let own_ns = own.tv_sec as u64 * 1_000_000_000 + own.tv_nsec as u64;
        let ticks = ticks(&stat(&self.proc), &self.cpus);
        let precise = self.hierarchy.machine_cpu_ns(&self.cpus).map(|ns| MachineTime { ns, off_ns: 0 });
        let coarse = || MachineTime {
            ns: ticks.busy * self.tick_ns,
            off_ns: TICKS_OFF * self.tick_ns * self.cpus.len() as u64,
        };
        Moment {
            at: Instant::now(),
            ticks,
            machine: precise.or_else(|| (ticks.total > 0).then(coarse)),
            ours_ns: contenders_ns + own_ns,
        }
    }

    /// What is to be said when the CPU time of others cannot be told here.
    pub(crate) fn blind(&self) -> Option<Finding> {
        self.moment(0).machine.is_none().then(|| {
            Finding::warn(
                "foreign-cpu-unknown",
                "what other programs use of our cores cannot be told: neither the root control group nor /proc/stat can be read",
                "make /proc/stat readable where deadheat runs, or see to it yourself that nothing else runs",
            )
        })
    }

    /// What happened between two moments.
    pub(crate) fn between(&self, before: &Moment, after: &Moment) -> Seen {
        let available = after.at.duration_since(before.at).as_nanos() as f64 * self.cpus.len() as f64;
        let ours_ns = after.ours_ns.saturating_sub(before.ours_ns);
        let machine = after.machine.zip(before.machine);
        let share = |(after, before): (MachineTime, MachineTime)| {
            foreign_share(after.ns.saturating_sub(before.ns), ours_ns, available)
        };
        let off_ns = after.machine.map_or(0, |machine| machine.off_ns);
        Seen {
            reading: ExternalReading {
                steal_share: steal_share(before.ticks, after.ticks),
                foreign_share: machine.map(share),
            },
            foreign_off: if available > 0.0 { off_ns as f64 / available } else { 0.0 },
        }
    }
}

fn stalls_unknown(error: &io::Error) -> Finding {
    Finding::warn(
        "stalls-unknown",
        format!("for how long the hypervisor lets our cores stand still cannot be told: {error}"),
        "race as root, with CAP_SYS_NICE (`docker run --cap-add SYS_NICE`) or after `ulimit -r 1`: real-time threads see it",
    )
}

fn stat(proc: &Path) -> String {
    fs::read_to_string(proc.join("stat")).unwrap_or_default()
}

fn steal_share(before: Ticks, after: Ticks) -> f64 {
    let total = after.total.saturating_sub(before.total);
    if total == 0 { 0.0 } else { after.steal.saturating_sub(before.steal) as f64 / total as f64 }
}

/// May lie a little below 0 where clocks of different precision cross, so that the errors of many rounds cancel.
fn foreign_share(machine_ns: u64, ours_ns: u64, available_ns: f64) -> f64 {
    if available_ns > 0.0 { (machine_ns as f64 - ours_ns as f64) / available_ns } else { 0.0 }
}

fn online(stat: &str) -> Vec<usize> {
    stat.lines().filter_map(|line| line.strip_prefix("cpu")?.split(' ').next()?.parse().ok()).collect()
}

/// `cpuN user nice system idle iowait irq softirq steal guest guest_nice`; guest time is part of user time.
fn ticks(stat: &str, cpus: &[usize]) -> Ticks {
    stat.lines().fold(Ticks::default(), |sum, line| {
        let mut words = line.split_whitespace();
        let cpu =
            words.next().and_then(|word| word.strip_prefix("cpu")).and_then(|number| number.parse().ok());
        if !cpu.is_some_and(|cpu: usize| cpus.contains(&cpu)) {
            return sum;
        }
        let fields: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
        let busy = [0, 1, 2, 5, 6].iter().filter_map(|field| fields.get(*field)).sum::<u64>();
        Ticks {
            busy: sum.busy + busy,
            steal: sum.steal + fields.get(7).copied().unwrap_or(0),
            total: sum.total + fields.iter().sum::<u64>(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 0 5 80 0 0 1 4 0 0\ncpu1 20 0 10 60 0 0 0 10 7 0\nintr 5\n";

    #[test]
    fn only_our_cores_count() {
        assert_eq!(online(STAT), [0, 1]);
        assert_eq!(ticks(STAT, &[1]), Ticks { busy: 30, steal: 10, total: 100 });
        assert_eq!(ticks(STAT, &[0, 1]), Ticks { busy: 46, steal: 14, total: 200 });
    }

    #[test]
    fn shares_are_shares() {
        let at = |steal, total| Ticks { busy: 0, steal, total };
        let (before, after) = (at(1, 100), at(6, 200));
        assert!((steal_share(before, after) - 0.05).abs() < 1e-12);
        assert_eq!(steal_share(after, after), 0.0);
        let available = 2e9;
        assert!((foreign_share(1_500_000_000, 1_400_000_000, available) - 0.05).abs() < 1e-9);
        assert!(foreign_share(5, 10, available) < 0.0, "errors of many rounds cancel");
    }

    #[test]
    fn others_are_seen_by_processor_where_no_group_counts_the_machine() {
        let watch = Watch::new(&[1], &nowhere());
        let at = Instant::now();
        let moment = |seconds, busy, ours_ns| Moment {
            at: at + std::time::Duration::from_secs(seconds),
            ticks: Ticks::default(),
            machine: Some(MachineTime { ns: busy, off_ns: 20_000_000 }),
            ours_ns,
        };
        let seen = watch.between(&moment(0, 5, 5), &moment(1, 700_000_005, 500_000_005));
        assert!((seen.reading.foreign_share.unwrap() - 0.2).abs() < 1e-9);
        assert!((seen.foreign_off - 0.02).abs() < 1e-9);
    }

    fn nowhere() -> Hierarchy {
        Hierarchy::parse("", "", std::path::Path::new("/nowhere"))
    }

    /// Burns CPU time on a core of this machine, as seen by a watch without groups.
    #[test]
    fn another_programs_time_is_seen_without_groups() {
        let watch = Watch::new(&[], &nowhere());
        assert_eq!(watch.blind(), None);
        let before = watch.moment(0).machine.unwrap();
        let mut other = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let grown = |now: MachineTime| now.ns - before.ns >= 200_000_000;
        let start = Instant::now();
        let seen = loop {
            let seen = watch.moment(0).machine.is_some_and(grown);
            if seen || start.elapsed().as_secs() > 60 {
                break seen;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(seen);
    }

    #[test]
    fn a_watch_that_sees_nothing_says_so() {
        let watch = Watch::new(&[100_000], &nowhere());
        assert_eq!(watch.blind().unwrap().code, "foreign-cpu-unknown");
        let seen = watch.between(&watch.moment(0), &watch.moment(0));
        assert_eq!(seen.reading.foreign_share, None);
    }

    #[test]
    fn this_machine_can_be_read() {
        let watch = Watch::new(&[], &Hierarchy::detect());
        let before = watch.moment(0);
        let seen = watch.between(&before, &watch.moment(0));
        assert!((0.0..=1.0).contains(&seen.reading.steal_share));
    }
}
