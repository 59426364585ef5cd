//! What the machine does to the race's cores from outside the race: steal, CPU time of other programs, and stalls.
//!
//! Owns: reading the machine's CPU time, from the root group or else from `/proc/stat`, and assigning it to cores.
//! Must not know: what follows from the readings.

pub mod awake;
pub mod counters;
mod network;
pub mod noise;
pub mod stall;

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Counters of a machine's network, which agents also send.
pub use deadheat_record::NetworkReading;
use deadheat_record::{ExternalReading, Finding, HostReading};
use rustix::process::Pid;

use crate::cgroup::Hierarchy;
use crate::cgroup::throttle::Groups;
use crate::facts::virtual_here;
use crate::monitor::awake::Awake;
use crate::monitor::counters::Counters;
use crate::monitor::stall::{Stalled, Stalls};
use crate::process::tree;

/// How many clock ticks a reading may be off for each core: one at either end.
const TICKS_OFF: u64 = 2;

/// Reads the race's cores at two moments and compares the readings.
#[derive(Debug)]
pub struct Monitor {
    cpus: Vec<usize>,
    /// The same cores, divided into the servers' and the generator's; none if they share cores.
    sides: Option<Sides<Vec<usize>>>,
    tick_ns: u64,
    hierarchy: Hierarchy,
    /// `/proc`, or a test's fake folder.
    proc: PathBuf,
    counters: Counters,
    stalls: Option<Stalls>,
    awake: Option<Arc<Awake>>,
}

/// One value for the servers' cores and one for the generator's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sides<T> {
    servers: T,
    generator: T,
}

/// The state at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot {
    at: Instant,
    ticks: Ticks,
    /// On all watched cores.
    all: Used,
    /// The same for each side.
    sides: Option<Sides<Used>>,
    /// CPU time of this process's children that have ended, on any core.
    ended_ns: u64,
}

/// CPU time used on some of the watched cores up to a moment.
#[derive(Debug, Clone, Copy)]
struct Used {
    cores: usize,
    /// Used by all programs together; none if it cannot be read.
    machine: Option<MachineTime>,
    /// Used by the race itself.
    ours_ns: u64,
}

/// CPU time that all programs together have used on some of the watched cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MachineTime {
    ns: u64,
    /// The possible error of a difference between two readings.
    off_ns: u64,
}

/// CPU time that the race itself has used up to a moment.
#[derive(Debug, Clone, Copy, Default)]
struct Ours {
    /// On the servers' cores: contenders, services, and the threads of this process that are pinned there.
    servers_ns: u64,
    /// On the generator's cores: the rest of this process.
    generator_ns: u64,
    /// Children of this process that have ended, on any core.
    ended_ns: u64,
}

/// What happened between two moments.
#[derive(Debug, Clone, PartialEq)]
pub struct Disturbance {
    /// The reading that goes into the record.
    pub reading: ExternalReading,
    /// The possible error of the share of other programs, from the resolution of the clock.
    pub foreign_off: f64,
    /// The cores that the share refers to.
    pub foreign_of: Cow<'static, str>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    /// The part of the CPU time that went to devices and the network.
    interrupts: u64,
    steal: u64,
    total: u64,
}

impl Monitor {
    /// Watches `cpus`, or all online cores if the list is empty. `generator` lists the generator's cores if it has separate ones: the
    /// remaining cores belong to the servers.
    pub fn new(cpus: &[usize], generator: &[usize], hierarchy: &Hierarchy) -> Self {
        Self::under(Path::new("/proc"), cpus, generator, hierarchy)
    }

    /// As [`Self::new`], with another folder in place of `/proc`.
    pub fn under(proc: &Path, cpus: &[usize], generator: &[usize], hierarchy: &Hierarchy) -> Self {
        let sides = Sides::of(cpus, generator);
        let cpus = if cpus.is_empty() { online(&stat(proc)) } else { cpus.to_vec() };
        let tick_ns = tree::tick_ns();
        let counters = Counters::new(proc, Groups::own(hierarchy));
        let hierarchy = hierarchy.clone();
        Self { cpus, sides, tick_ns, hierarchy, proc: proc.into(), counters, stalls: None, awake: None }
    }

    /// Counts the CPU time of the threads that keep cores awake as the race's own.
    pub fn besides(self, awake: Option<Arc<Awake>>) -> Self {
        Self { awake, ..self }
    }

    /// Lets cores sleep while nothing is measured (`true`), or keeps them awake again.
    pub fn rest(&self, rest: bool) {
        self.awake.iter().for_each(|awake| awake.rest(rest));
    }

    /// Lets cores sleep if keeping them awake would take time from these processes. Returns the finding to report in that case.
    pub fn give_way_to(&self, processes: &[Pid]) -> Option<Finding> {
        let awake = self.awake.as_ref().filter(|awake| !awake.gives_way_to(processes, &self.hierarchy))?;
        awake.end();
        Some(processors_sleep(
            "the contenders have a control group or session to themselves, which shares the cores with deadheat's",
            "start contenders without setsid; compare contenders in containers at full load; limits on CPU time need control groups of version 1",
        ))
    }

    /// Starts to watch for stalls. Returns a finding if that is not allowed and a hypervisor may cause stalls.
    pub fn see_stalls(&mut self) -> Option<Finding> {
        match Stalls::watch(&self.cpus) {
            Ok(stalls) => self.stalls = Some(stalls),
            Err(error) if virtual_here() => return Some(stalls_unknown(&error)),
            Err(_) => {}
        }
        None
    }

    /// How long each core has been stalled so far; none if stalls are not watched.
    pub fn stalled(&self) -> Option<Stalled> {
        self.stalls.as_ref().map(Stalls::read)
    }

    /// The share of the time since `since` during which the most stalled core stood still, 0 to 1.
    pub fn stalled_share(&self, since: Option<Stalled>) -> Option<f64> {
        Some(self.stalled()?.share_since(&since?))
    }

    /// The kernel's counts for the whole machine so far.
    pub fn host(&self) -> HostReading {
        self.counters.read()
    }

    /// The kernel's counts for the machine's network so far.
    pub fn network(&self) -> NetworkReading {
        network::read(&self.proc, self.tick_ns)
    }

    /// The groups that contain `processes` but not this process: their throttling affects only those processes.
    pub fn groups_of(&self, processes: &[Pid]) -> Groups {
        Groups::of_others(&self.hierarchy, processes)
    }

    /// Reads the current state. `contenders_ns` is the CPU time that contenders and services have used so far.
    pub fn moment(&self, contenders_ns: u64) -> Snapshot {
        self.moment_with(contenders_ns, 0)
    }

    /// As [`Self::moment`]. `carriers_ns` is the CPU time that programs which carry requests have used on the generator's cores so far.
    pub fn moment_with(&self, contenders_ns: u64, carriers_ns: u64) -> Snapshot {
        let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let own_ns = own.tv_sec as u64 * 1_000_000_000 + own.tv_nsec as u64;
        let looking_ns = match (&self.stalls, &self.sides) {
            (Some(stalls), Some(sides)) => stalls.used_ns(&sides.servers),
            _ => 0,
        };
        // Idle threads run on all of the servers' cores, including cores that are not watched because a scenario uses fewer.
        let idle_ns = self.awake.as_ref().map_or(0, |awake| awake.used_ns(|_| true));
        let idle_here_ns =
            self.awake.as_ref().map_or(0, |awake| awake.used_ns(|cpu| self.cpus.contains(&cpu)));
        let ours = Ours {
            servers_ns: contenders_ns + looking_ns + idle_here_ns,
            generator_ns: own_ns.saturating_sub(looking_ns + idle_ns) + carriers_ns,
            ended_ns: tree::ended_ns(),
        };
        self.moment_of(Instant::now(), ours)
    }

    /// CPU time of the children of this process, and of their descendants, that have ended since a moment, on any core; in nanoseconds, with the
    /// resolution of clock ticks.
    pub fn ended_since(&self, before: &Snapshot) -> u64 {
        tree::ended_ns().saturating_sub(before.ended_ns)
    }

    fn moment_of(&self, at: Instant, ours: Ours) -> Snapshot {
        let (stat, precise) = (stat(&self.proc), self.hierarchy.machine_cpu_ns());
        let used = |cpus: &[usize], ours_ns: u64, interrupts: bool| Used {
            cores: cpus.len(),
            machine: self.machine(precise.as_deref(), &stat, cpus, interrupts),
            ours_ns,
        };
        // Without sides, nothing else shows whether that was the load's own work for the network.
        let interrupts = self.sides.is_some();
        Snapshot {
            at,
            ticks: ticks(&stat, &self.cpus),
            all: used(&self.cpus, ours.servers_ns + ours.generator_ns, interrupts),
            sides: self.sides.as_ref().map(|sides| Sides {
                servers: used(&sides.servers, ours.servers_ns, false),
                generator: used(&sides.generator, ours.generator_ns, false),
            }),
            ended_ns: ours.ended_ns,
        }
    }

    /// Reads the groups' times by processor if there are any, otherwise the ticks of `/proc/stat`.
    ///
    /// `interrupts`: include the kernel's work for devices and the network, if the clock reports it separately. Some kernels assign that work
    /// to no process, others to the interrupted process. Without it, the race's own time is never counted as that of another program.
    fn machine(
        &self,
        precise: Option<&[u64]>,
        stat: &str,
        cpus: &[usize],
        interrupts: bool,
    ) -> Option<MachineTime> {
        let sum = |each: &[u64]| cpus.iter().map(|cpu| each.get(*cpu).copied()).sum::<Option<u64>>();
        let precise = precise.and_then(sum).map(|ns| MachineTime { ns, off_ns: 0 });
        let ticks = ticks(stat, cpus);
        let coarse = || MachineTime {
            ns: (ticks.busy - if interrupts { 0 } else { ticks.interrupts }) * self.tick_ns,
            off_ns: TICKS_OFF * self.tick_ns * cpus.len() as u64,
        };
        precise.or_else(|| (ticks.total > 0).then(coarse))
    }

    /// The finding to report if the CPU time of other programs cannot be read here.
    pub fn blind(&self) -> Option<Finding> {
        self.moment(0).all.machine.is_none().then(|| {
            Finding::warn(
                "foreign-cpu-unknown",
                "deadheat cannot measure the CPU time of other programs: it can read neither the root control group nor /proc/stat",
                "make /proc/stat readable where deadheat runs, or make sure yourself that no other programs run",
            )
        })
    }

    /// What happened between two moments.
    ///
    /// The share of other programs is that of the side that lost more to them, the servers' cores or the generator's: a loop on the servers'
    /// only core takes half of it, however many cores the generator has. The share of all cores together is used unless the worse side
    /// exceeds it by more than the clock's error. Otherwise chance would decide which side is larger, and taking the larger one each time
    /// would add that chance up over many rounds.
    ///
    /// Steal is always that of all cores together. `/proc/stat` has it in ticks of 10 ms, and a round may last only 250 ms: over 5 % of
    /// two cores is three ticks, of one core two, and the worse of two cores reaches that much more often. Rounds would then be left out
    /// because of one tick, although a host that is short of time takes it from all cores about equally.
    pub fn between(&self, before: &Snapshot, after: &Snapshot) -> Disturbance {
        let elapsed_ns = after.at.duration_since(before.at).as_nanos() as f64;
        let available_ns = elapsed_ns * self.cpus.len() as f64;
        let off_ns = after.all.machine.map_or(0, |machine| machine.off_ns);
        let foreign_off = if available_ns > 0.0 { off_ns as f64 / available_ns } else { 0.0 };
        let all = after.all.foreign_since(&before.all, elapsed_ns);
        let worse = worse_side(before, after, elapsed_ns);
        let worse = worse.filter(|(share, _)| all.is_some_and(|all| *share - all > foreign_off));
        let (share, foreign_of) = worse.map_or((all, "our cores"), |(share, whose)| (Some(share), whose));
        Disturbance {
            reading: ExternalReading {
                steal_share: steal_share(before.ticks, after.ticks),
                foreign_share: share,
            },
            foreign_off,
            foreign_of: foreign_of.into(),
        }
    }
}

impl Disturbance {
    /// This reading and that of other machines together: the larger share of the hypervisor, and of other programs where they exceed what the
    /// clock's resolution leaves open by more.
    pub fn or_worse(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        let beyond =
            |one: &Self| one.reading.foreign_share.map_or(f64::NEG_INFINITY, |share| share - one.foreign_off);
        let steal_share = self.reading.steal_share.max(other.reading.steal_share);
        let mut worse = if beyond(&other) > beyond(&self) { other } else { self };
        worse.reading.steal_share = steal_share;
        worse
    }
}

impl Sides<Vec<usize>> {
    /// Divides `cpus` into the generator's cores and the rest. None unless `cpus` contains each of the generator's cores once, and others.
    fn of(cpus: &[usize], own: &[usize]) -> Option<Self> {
        let (generator, servers): (Vec<usize>, Vec<usize>) =
            cpus.iter().copied().partition(|cpu| own.contains(cpu));
        let once = generator.len() == own.len() && own.iter().all(|cpu| generator.contains(cpu));
        (once && !generator.is_empty() && !servers.is_empty()).then_some(Self { servers, generator })
    }
}

impl Used {
    /// The share of these cores' time since `before` that other programs used; none if it cannot be read.
    fn foreign_since(&self, before: &Self, elapsed_ns: f64) -> Option<f64> {
        let machine_ns = self.machine?.ns.saturating_sub(before.machine?.ns);
        let ours_ns = self.ours_ns.saturating_sub(before.ours_ns);
        Some(foreign_share(machine_ns, ours_ns, elapsed_ns * self.cores as f64))
    }
}

/// The share of the side that lost more to other programs, and which side that is. None if children of this process ended between the
/// two readings, as in rounds of fresh starts: keepers run beside the generator, but count in clock ticks together with their contenders.
fn worse_side(before: &Snapshot, after: &Snapshot, elapsed_ns: f64) -> Option<(f64, &'static str)> {
    let (then, now) = before.sides.zip(after.sides).filter(|_| before.ended_ns == after.ended_ns)?;
    let servers = now.servers.foreign_since(&then.servers, elapsed_ns)?;
    let generator = now.generator.foreign_since(&then.generator, elapsed_ns)?;
    let worse_there = generator > servers;
    Some(if worse_there { (generator, "the generator's cores") } else { (servers, "the servers' cores") })
}

/// The finding for idle processors that sleep while contenders are measured.
pub fn processors_sleep(why: &str, remedy: &str) -> Finding {
    // Measured: "The same result for everybody" in docs/src/method.md.
    let effect = "below its limit, a contender pays for waking them up, and ratios may be off by 8 % in CPU time and by 17 % in median \
                  latency; at its limit it does not";
    Finding::warn("processors-sleep", format!("idle processors sleep ({why}): {effect}"), remedy)
}

fn stalls_unknown(error: &io::Error) -> Finding {
    Finding::warn(
        "stalls-unknown",
        format!("deadheat cannot measure for how long the hypervisor stops deadheat's cores: {error}"),
        "race as root, with CAP_SYS_NICE (`docker run --cap-add SYS_NICE`) or after `ulimit -r 1`: only real-time threads can measure it",
    )
}

fn stat(proc: &Path) -> String {
    fs::read_to_string(proc.join("stat")).unwrap_or_default()
}

fn steal_share(before: Ticks, after: Ticks) -> f64 {
    let total = after.total.saturating_sub(before.total);
    if total == 0 { 0.0 } else { after.steal.saturating_sub(before.steal) as f64 / total as f64 }
}

/// May be slightly negative, because the clocks differ in precision: so the errors of many rounds cancel.
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
        let of = |places: &[usize]| places.iter().filter_map(|field| fields.get(*field)).sum::<u64>();
        Ticks {
            busy: sum.busy + of(&[0, 1, 2, 5, 6]),
            interrupts: sum.interrupts + of(&[5, 6]),
            steal: sum.steal + fields.get(7).copied().unwrap_or(0),
            total: sum.total + fields.iter().sum::<u64>(),
        }
    })
}

/// What the hypervisor has taken from all cores so far, in nanoseconds.
#[cfg(test)]
pub(crate) fn stolen_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    ticks(&stat, &online(&stat)).steal * crate::process::tree::tick_ns()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const STAT: &str =
        "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 0 5 80 0 0 1 4 0 0\ncpu1 20 0 10 60 0 0 0 10 7 0\nintr 5\n";

    #[test]
    fn only_our_cores_count() {
        assert_eq!(online(STAT), [0, 1]);
        assert_eq!(ticks(STAT, &[1]), Ticks { busy: 30, interrupts: 0, steal: 10, total: 100 });
        assert_eq!(ticks(STAT, &[0, 1]), Ticks { busy: 46, interrupts: 1, steal: 14, total: 200 });
    }

    #[test]
    fn shares_are_shares() {
        let at = |steal, total| Ticks { steal, total, ..Ticks::default() };
        let (before, after) = (at(1, 100), at(6, 200));
        assert!((steal_share(before, after) - 0.05).abs() < 1e-12);
        assert_eq!(steal_share(after, after), 0.0);
        let available = 2e9;
        assert!((foreign_share(1_500_000_000, 1_400_000_000, available) - 0.05).abs() < 1e-9);
        assert!(foreign_share(5, 10, available) < 0.0, "errors of many rounds cancel");
    }

    #[test]
    fn others_are_seen_by_processor_where_no_group_counts_the_machine() {
        let watch = Monitor::new(&[1], &[], &nowhere());
        let at = Instant::now();
        let moment = |seconds, busy, ours_ns| Snapshot {
            at: at + Duration::from_secs(seconds),
            ticks: Ticks::default(),
            all: Used { cores: 1, machine: Some(MachineTime { ns: busy, off_ns: 20_000_000 }), ours_ns },
            sides: None,
            ended_ns: 0,
        };
        let seen = watch.between(&moment(0, 5, 5), &moment(1, 700_000_005, 500_000_005));
        assert!((seen.reading.foreign_share.unwrap() - 0.2).abs() < 1e-9);
        assert!((seen.foreign_off - 0.02).abs() < 1e-9);
    }

    fn nowhere() -> Hierarchy {
        Hierarchy::parse("", "", std::path::Path::new("/nowhere"))
    }

    /// What a monitor reports over two seconds in which the cores are busy for these shares of the time, as `/proc/stat` would show it. The
    /// first core is the servers', the others are the generator's.
    fn seen_over_two_seconds(busy: &[f64], ours: Ours) -> Disturbance {
        let (proc, cpus) = (tempfile::tempdir().unwrap(), (0..busy.len()).collect::<Vec<_>>());
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let imitate = |seconds: f64| {
            let line = |(cpu, share): (usize, &f64)| {
                let ticks = (share * seconds * per_second).round();
                format!("cpu{cpu} {ticks} 0 0 1000 0 0 0 0 0 0\n")
            };
            let text: Vec<String> = busy.iter().enumerate().map(line).collect();
            fs::write(proc.path().join("stat"), text.concat()).unwrap();
        };
        let watch = Monitor::under(proc.path(), &cpus, &cpus[1..], &nowhere());
        let at = Instant::now();
        imitate(0.0);
        let before = watch.moment_of(at, Ours::default());
        imitate(2.0);
        watch.between(&before, &watch.moment_of(at + Duration::from_secs(2), ours))
    }

    /// The race's own CPU time, given in seconds.
    fn ours(servers_s: f64, generator_s: f64) -> Ours {
        let ns = |seconds: f64| (seconds * 1e9).round() as u64;
        Ours { servers_ns: ns(servers_s), generator_ns: ns(generator_s), ended_ns: 0 }
    }

    #[track_caller]
    fn assert_share(seen: &Disturbance, share: f64, of: &str) {
        let read = seen.reading.foreign_share.unwrap();
        assert!((read - share).abs() < 1e-9 && seen.foreign_of == of, "{seen:?}");
    }

    /// A busy loop takes half of the servers' core: that is 3 % of all sixteen cores.
    #[test]
    fn a_loop_on_the_servers_only_core_is_seen_however_many_the_generator_has() {
        let mut busy = [0.6; 16];
        busy[0] = 1.0;
        let seen = seen_over_two_seconds(&busy, ours(1.0, 18.0));
        assert_share(&seen, 0.5, "the servers' cores");
    }

    #[test]
    fn with_a_core_each_a_loop_on_either_reads_no_less_than_over_both() {
        assert_share(&seen_over_two_seconds(&[1.0, 0.6], ours(1.0, 1.2)), 0.5, "the servers' cores");
        assert_share(&seen_over_two_seconds(&[0.4, 1.0], ours(0.8, 1.0)), 0.5, "the generator's cores");
        let both = seen_over_two_seconds(&[0.9, 0.9], ours(1.2, 1.2));
        assert_share(&both, 0.3, "our cores");
    }

    /// Two ticks in two seconds are 1 %.
    #[test]
    fn sides_that_the_clock_cannot_tell_apart_are_read_together() {
        let seen = seen_over_two_seconds(&[0.5, 0.5], ours(0.98, 1.0));
        assert_share(&seen, 0.005, "our cores");
        let seen = seen_over_two_seconds(&[0.5, 0.5], ours(0.94, 1.0));
        assert_share(&seen, 0.03, "the servers' cores");
    }

    /// A kernel that assigns this time to no process does not assign it to the race either.
    #[test]
    fn what_the_kernel_does_for_the_network_is_no_others_time_on_a_side() {
        let watch = Monitor::under(Path::new("/nowhere"), &[0, 1], &[1], &nowhere());
        let stat = "cpu0 50 0 20 10 0 3 17 0\ncpu1 40 0 20 40 0 0 0 0\n";
        let ns = |cpus: &[usize], interrupts| watch.machine(None, stat, cpus, interrupts).unwrap().ns;
        assert_eq!((ns(&[0], true), ns(&[0], false)), (90 * watch.tick_ns, 70 * watch.tick_ns));
        assert_eq!(ns(&[1], true), ns(&[1], false));
        let precise = watch.machine(Some(&[10, 20, 30]), stat, &[0, 2], true);
        assert_eq!(precise, Some(MachineTime { ns: 40, off_ns: 0 }));
        assert_ne!(
            watch.machine(Some(&[10]), stat, &[0, 1], true).unwrap().off_ns,
            0,
            "a processor is missing"
        );
    }

    #[test]
    fn what_the_kernel_does_for_the_network_is_no_others_time_without_sides() {
        let proc = tempfile::tempdir().unwrap();
        let per_second = rustix::param::clock_ticks_per_second();
        let imitate = |user: u64, softirq: u64| {
            let line = |cpu: usize| format!("cpu{cpu} {user} 0 0 1000 0 0 {softirq} 0 0 0\n");
            fs::write(proc.path().join("stat"), [line(0), line(1)].concat()).unwrap();
        };
        let watch = Monitor::under(proc.path(), &[0, 1], &[], &nowhere());
        let at = Instant::now();
        imitate(0, 0);
        let before = watch.moment_of(at, Ours::default());
        imitate(per_second, per_second / 2);
        let seen = watch.between(&before, &watch.moment_of(at + Duration::from_secs(2), ours(0.0, 2.0)));
        assert_share(&seen, 0.0, "our cores");
    }

    #[test]
    fn what_has_ended_is_on_no_side() {
        let ended = Ours { ended_ns: 10_000_000, ..ours(1.0, 1.2) };
        assert_share(&seen_over_two_seconds(&[1.0, 0.6], ended), 0.25, "our cores");
    }

    #[test]
    fn sides_are_told_apart_only_where_each_has_cores_of_its_own() {
        let sides = |servers: &[usize], generator: &[usize]| {
            Some(Sides { servers: servers.to_vec(), generator: generator.to_vec() })
        };
        assert_eq!(Sides::of(&[0, 2, 1, 3], &[1, 3]), sides(&[0, 2], &[1, 3]));
        assert_eq!(Sides::of(&[], &[0, 1]), None, "nobody is pinned");
        assert_eq!(Sides::of(&[0, 1], &[0, 1]), None);
        assert_eq!(Sides::of(&[0, 1], &[1, 2]), None, "the generator runs elsewhere as well");
        assert_eq!(Sides::of(&[0, 1, 1], &[1]), None, "a core of both");
        assert_eq!(Sides::of(&[0, 1], &[]), None);
    }

    /// Another program, which ends with the test.
    struct Other(std::process::Child);

    impl Other {
        fn start() -> Self {
            Self(std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
        }

        /// CPU time that the program has used so far, in nanoseconds.
        fn used_ns(&self) -> u64 {
            let folder = format!("/proc/{}", self.0.id());
            crate::process::tree::schedstat_of(Path::new(&folder)).map_or(0, |(used_ns, _)| used_ns)
        }
    }

    impl Drop for Other {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Without groups, the monitor reports at least the time that the other program has used.
    #[test]
    fn another_programs_time_is_seen_without_groups() {
        let watch = Monitor::new(&[], &[], &nowhere());
        assert_eq!(watch.blind(), None);
        let before = watch.moment(0).all.machine.unwrap();
        let other = Other::start();
        let start = Instant::now();
        while other.used_ns() < 200_000_000 {
            assert!(start.elapsed().as_secs() < 120, "the other program does not run");
            std::thread::sleep(Duration::from_millis(5));
        }
        let used_ns = other.used_ns();
        let after = watch.moment(0).all.machine.unwrap();
        let seen_ns = after.ns - before.ns + before.off_ns + after.off_ns;
        assert!(seen_ns >= used_ns, "the watch saw {seen_ns} of {used_ns} ns");
    }

    #[test]
    fn a_watch_that_sees_nothing_says_so() {
        let watch = Monitor::new(&[100_000], &[], &nowhere());
        assert_eq!(watch.blind().unwrap().code, "foreign-cpu-unknown");
        let seen = watch.between(&watch.moment(0), &watch.moment(0));
        assert_eq!(seen.reading.foreign_share, None);
    }

    #[test]
    fn this_machine_can_be_read() {
        let watch = Monitor::new(&[], &[], &Hierarchy::detect());
        let before = watch.moment(0);
        let seen = watch.between(&before, &watch.moment(0));
        assert!((0.0..=1.0).contains(&seen.reading.steal_share));
    }
}
