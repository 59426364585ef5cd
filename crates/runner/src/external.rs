//! What the machine does to our cores besides the race: steal, and CPU time of others.
//!
//! Owns: reading `/proc/stat` and the root group's CPU time. Must not know: what follows from the readings.

use std::fs;
use std::time::{Duration, Instant};

use deadheat_record::ExternalReading;

use crate::cgroup::Hierarchy;

/// Reads our cores between two moments.
#[derive(Debug)]
pub(crate) struct Watch {
    cpus: Vec<usize>,
    online: usize,
    hierarchy: Hierarchy,
}

/// The state at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    at: Instant,
    ticks: Ticks,
    machine_ns: Option<u64>,
    ours_ns: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ticks {
    steal: u64,
    total: u64,
}

impl Watch {
    /// Watches `cpus`; all that are online where the list is empty.
    pub(crate) fn new(cpus: &[usize], hierarchy: &Hierarchy) -> Self {
        let online = online(&fs::read_to_string("/proc/stat").unwrap_or_default());
        let cpus = if cpus.is_empty() { online.clone() } else { cpus.to_vec() };
        Self { cpus, online: online.len(), hierarchy: hierarchy.clone() }
    }

    /// Reads the state. `contenders_ns` is the CPU time that contenders and services have used so far.
    pub(crate) fn moment(&self, contenders_ns: u64) -> Moment {
        let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let own_ns = own.tv_sec as u64 * 1_000_000_000 + own.tv_nsec as u64;
        Moment {
            at: Instant::now(),
            ticks: ticks(&fs::read_to_string("/proc/stat").unwrap_or_default(), &self.cpus),
            machine_ns: self.hierarchy.machine_cpu_ns(&self.cpus, self.online),
            ours_ns: contenders_ns + own_ns,
        }
    }

    /// What happened between two moments.
    pub(crate) fn between(&self, before: &Moment, after: &Moment) -> ExternalReading {
        let elapsed = after.at.duration_since(before.at);
        let machine =
            after.machine_ns.zip(before.machine_ns).map(|(after, before)| after.saturating_sub(before));
        let ours = after.ours_ns.saturating_sub(before.ours_ns);
        ExternalReading {
            steal_share: steal_share(before.ticks, after.ticks),
            foreign_share: machine.map(|machine| foreign_share(machine, ours, elapsed, self.cpus.len())),
        }
    }
}

fn steal_share(before: Ticks, after: Ticks) -> f64 {
    let total = after.total.saturating_sub(before.total);
    if total == 0 { 0.0 } else { after.steal.saturating_sub(before.steal) as f64 / total as f64 }
}

fn foreign_share(machine_ns: u64, ours_ns: u64, elapsed: Duration, cpus: usize) -> f64 {
    let available = elapsed.as_nanos() as f64 * cpus as f64;
    if available > 0.0 { machine_ns.saturating_sub(ours_ns) as f64 / available } else { 0.0 }
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
        Ticks {
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
        assert_eq!(ticks(STAT, &[1]), Ticks { steal: 10, total: 100 });
        assert_eq!(ticks(STAT, &[0, 1]), Ticks { steal: 14, total: 200 });
    }

    #[test]
    fn shares_are_shares() {
        let (before, after) = (Ticks { steal: 1, total: 100 }, Ticks { steal: 6, total: 200 });
        assert!((steal_share(before, after) - 0.05).abs() < 1e-12);
        assert_eq!(steal_share(after, after), 0.0);
        let second = Duration::from_secs(1);
        assert!((foreign_share(1_500_000_000, 1_400_000_000, second, 2) - 0.05).abs() < 1e-9);
        assert_eq!(foreign_share(5, 10, second, 2), 0.0, "clocks of different precision may cross");
    }

    #[test]
    fn this_machine_can_be_read() {
        let watch = Watch::new(&[], &Hierarchy::detect());
        let before = watch.moment(0);
        let reading = watch.between(&before, &watch.moment(0));
        assert!((0.0..=1.0).contains(&reading.steal_share));
    }
}
