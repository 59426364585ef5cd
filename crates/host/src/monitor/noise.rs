//! What disturbs the machine now: steal, the CPU time of other programs, and which programs these are.
//!
//! Owns: watching for a while, and the shares of processes. Must not know: how much is too much.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use deadheat_record::{BusyProcess, Noise};

use crate::affinity::pin;
use crate::cgroup::Hierarchy;
use crate::monitor::Monitor;
use crate::monitor::stall::Stalls;
use crate::process::tree::{self, Stat};

/// How often to check whether the user asked to stop.
const GLANCE: Duration = Duration::from_millis(50);
/// The most processes that are named.
const MOST_NAMED: usize = 5;
/// A process that uses less than this many cores is not named.
const LEAST_CORES: f64 = 0.01;
/// How many clock readings are averaged to find the cost of one.
const CLOCK_READS: u32 = 20_000;

/// Watches `cpus` for the given time, or until `stopped` returns true: all CPU time but that of this process belongs to other programs.
/// Then keeps each processor busy for the same time: the hypervisor cannot steal from a sleeping processor, however full the host is.
pub fn watch_noise(
    cpus: &[usize],
    hierarchy: &Hierarchy,
    time: Duration,
    stopped: &dyn Fn() -> bool,
) -> Noise {
    let proc = Path::new(tree::PROC);
    let watch = Monitor::new(cpus, &[], hierarchy);
    let clock_read_ns = clock_read_ns();
    let (before, processes, start) = (watch.moment(0), Processes::read(proc), Instant::now());
    while start.elapsed() < time && !stopped() {
        std::thread::sleep(GLANCE.min(time.saturating_sub(start.elapsed())));
    }
    let seconds = start.elapsed().as_secs_f64();
    let (seen, later) = (watch.between(&before, &watch.moment(0)).reading, Processes::read(proc));
    let taken = taken_while_busy(&watch, cpus, time, stopped);
    let cpu_pressure = cpu_pressure(&fs::read_to_string("/proc/pressure/cpu").unwrap_or_default());
    Noise {
        seconds,
        cpus: cpus.to_vec(),
        steal_share: taken.steal_share,
        stalled_share: taken.stalled.map(|(share, _)| share),
        longest_stall_ns: taken.stalled.map(|(_, longest_ns)| longest_ns),
        foreign_share: seen.foreign_share.map(|share| share.max(0.0)),
        busiest: later.busiest(&processes, std::process::id() as i32, seconds),
        cpu_pressure,
        clock_read_ns,
        throttled: None,
    }
}

/// What the hypervisor took from processors while they were busy.
struct Taken {
    /// The share of their time that it gave away.
    steal_share: f64,
    /// The share of the time during which the most stalled processor stood still, and the longest single stall in nanoseconds; none if
    /// stalls cannot be measured.
    stalled: Option<(f64, u64)>,
}

/// Keeps a thread busy on each processor and measures how much the hypervisor takes from it.
fn taken_while_busy(watch: &Monitor, cpus: &[usize], time: Duration, stopped: &dyn Fn() -> bool) -> Taken {
    let (before, over, start) = (watch.moment(0), AtomicBool::new(false), Instant::now());
    let stalls = Stalls::watch(cpus).ok().map(|stalls| (stalls.read(), stalls));
    std::thread::scope(|scope| {
        for cpu in cpus {
            scope.spawn(|| {
                // If the thread may not run there, it keeps another processor busy.
                let _ = pin(&[*cpu]);
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        while start.elapsed() < time && !stopped() {
            std::thread::sleep(GLANCE.min(time.saturating_sub(start.elapsed())));
        }
        over.store(true, Ordering::Relaxed);
    });
    Taken {
        steal_share: watch.between(&before, &watch.moment(0)).reading.steal_share,
        stalled: stalls.map(|(before, stalls)| (stalls.read().share_since(&before), stalls.longest_ns())),
    }
}

/// The time of one reading of this machine's clock, in nanoseconds.
pub(crate) fn clock_read_ns() -> f64 {
    let start = Instant::now();
    for _ in 0..CLOCK_READS {
        std::hint::black_box(Instant::now());
    }
    start.elapsed().as_nanos() as f64 / f64::from(CLOCK_READS)
}

/// `some avg10=1.23 avg60=...`, in percent.
fn cpu_pressure(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent: f64 = line.split(' ').find_map(|word| word.strip_prefix("avg10="))?.parse().ok()?;
    Some(percent / 100.0)
}

/// Every process by its number, with its name.
struct Processes(BTreeMap<i32, (String, Stat)>);

impl Processes {
    fn read(proc: &Path) -> Self {
        Self(tree::pids(proc).filter_map(|pid| Some((pid, tree::named_stat(proc, pid)?))).collect())
    }

    /// The processes that used most since `before`, in cores. For a new process, all its CPU time counts.
    fn busiest(&self, before: &Self, own: i32, seconds: f64) -> Vec<BusyProcess> {
        let cores = |(pid, (name, now)): (&i32, &(String, Stat))| {
            let same = before.0.get(pid).filter(|(_, before)| before.started == now.started);
            let used_ns = now.own.ns().saturating_sub(same.map_or(0, |(_, before)| before.own.ns()));
            let cores = used_ns as f64 / 1e9 / seconds.max(1e-3);
            BusyProcess { pid: *pid, name: name.clone(), cores }
        };
        let others = self.0.iter().filter(|(pid, _)| **pid != own).map(cores);
        let mut busy: Vec<BusyProcess> = others.filter(|one| one.cores >= LEAST_CORES).collect();
        busy.sort_by(|a, b| b.cores.total_cmp(&a.cores));
        busy.truncate(MOST_NAMED);
        busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(proc: &Path, pid: i32, name: &str, ticks: (u64, u64), started: u64) {
        let (user, system) = ticks;
        let folder = proc.join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let stat = format!(
            "{pid} ({name}) S 1 1 1 0 -1 4194560 0 0 0 0 {user} {system} 7 7 20 0 1 0 {started} 0 0\n"
        );
        fs::write(folder.join("stat"), stat).unwrap();
    }

    #[test]
    fn the_busiest_are_named_and_we_are_not_among_them() {
        let proc = tempfile::tempdir().unwrap();
        let path = proc.path();
        write(path, 5, "a) (b", (1_000, 500), 1);
        write(path, 6, "idle", (9_000, 0), 2);
        write(path, 7, "deadheat", (100, 0), 3);
        write(path, 9, "old", (400, 0), 4);
        let before = Processes::read(path);
        write(path, 5, "renamed) (b", (1_030, 520), 1);
        write(path, 7, "deadheat", (200, 0), 3);
        write(path, 8, "new", (20, 0), 5);
        write(path, 9, "old", (10, 0), 6);
        let busiest = Processes::read(path).busiest(&before, 7, 1.0);
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let named = |pid, name: &str, used: f64| BusyProcess { pid, name: name.into(), cores: used / ticks };
        let expected = [named(5, "renamed) (b", 50.0), named(8, "new", 20.0), named(9, "old", 10.0)];
        assert_eq!(busiest, expected);
    }

    #[test]
    fn pressure_is_a_share() {
        let text =
            "some avg10=12.50 avg60=1.00 avg300=0.00 total=5\nfull avg10=0.00 avg60=0 avg300=0 total=0\n";
        assert_eq!(cpu_pressure(text), Some(0.125));
        assert_eq!(cpu_pressure(""), None);
    }

    #[test]
    fn this_machine_is_watched_for_as_long_as_was_said() {
        let noise = watch_noise(&[0], &Hierarchy::detect(), Duration::from_millis(60), &|| false);
        assert!(noise.seconds >= 0.06 && noise.clock_read_ns > 0.0, "{noise:?}");
        assert!((0.0..=1.0).contains(&noise.steal_share));
        let asked = watch_noise(&[0], &Hierarchy::detect(), Duration::from_secs(600), &|| true);
        assert!(asked.seconds < 60.0);
    }

    #[test]
    fn what_is_stolen_is_read_from_processors_that_are_busy() {
        let own = || rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let used_ms = |now: rustix::time::Timespec, then: rustix::time::Timespec| {
            (now.tv_sec - then.tv_sec) * 1_000 + (now.tv_nsec - then.tv_nsec) / 1_000_000
        };
        let (watch, before) = (Monitor::new(&[0], &[], &Hierarchy::detect()), own());
        taken_while_busy(&watch, &[0], Duration::from_millis(300), &|| false);
        let used_ms = used_ms(own(), before);
        assert!(used_ms > 30, "it spun for {used_ms} ms, which is not a tenth of the time");
    }
}
