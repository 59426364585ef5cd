//! Keeping cores awake: how long it may take to wake an idle processor while contenders are measured.
//!
//! Owns: the request, the default, and the end of the request. Must not know: what is measured.
//!
//! A processor without work goes to sleep, and waking it up takes time. On bare metal the deep states add tens to hundreds of
//! microseconds to the next request. In a virtual machine, sleeping gives the processor back to the host, and waking it takes an
//! interrupt from one virtual processor to another, which delays the sender or the receiver of a request. The cost depends on the host.
//!
//! Threads at idle priority (`SCHED_IDLE`, sched(7)), one for each core, enforce a limit of 0: the kernel runs them only while
//! the core has nothing else to do, and any other thread takes their place at once. They need no rights and no driver for idle states,
//! so the result is the same for root, for an ordinary user and on every virtual machine. A longer limit goes to the kernel's power
//! management ("PM Quality Of Service Interface"): a program that holds `/dev/cpu_dma_latency` open sets how long waking up may take.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};
use thread_priority::{NormalThreadSchedulePolicy, ThreadSchedulePolicy};

use crate::affinity::{allowed, pin, schedule};
use crate::cgroup::Hierarchy;
use crate::facts::virtual_here;

/// The device file for a limit above 0.
pub const CPU_LATENCY_DEVICE: &str = "/dev/cpu_dma_latency";
/// The default limit in a virtual machine: processors do not sleep at all.
const VIRTUAL_US: u32 = 0;
/// The default limit on bare metal: it permits shallow states, from which a core wakes up in a few microseconds. A spinning core takes
/// turbo from its neighbours and resources from its sibling.
const BARE_US: u32 = 10;
/// How long an idle thread spins before it yields its core. Beside a busy contender it runs for 0.3 % of the time, the least that the
/// kernel gives any thread, and delays the contender by this long each time.
const TURN: Duration = Duration::from_micros(10);
/// How often a resting thread looks whether it is needed again.
const REST: Duration = Duration::from_millis(50);

/// Idle processors wake up within the limit for as long as this value lives.
#[derive(Debug)]
pub struct Awake {
    /// The kernel drops the limit when this file is closed, also when the program is killed.
    _held: Option<File>,
    idle: Vec<(usize, Arc<AtomicU64>)>,
    over: Arc<AtomicBool>,
    resting: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// Keeps wake-up times at or below `latency_us` microseconds. 0 applies to `cpus` (if empty, to all that the calling thread may use); a
    /// longer limit applies to all processors.
    ///
    /// # Errors
    /// When one of the cores may not be used, or for a limit above 0 when the device is missing or not writable.
    pub fn hold(latency_us: u32, cpus: &[usize]) -> io::Result<Self> {
        match latency_us {
            0 if cpus.is_empty() => Self::spin(&allowed()),
            0 => Self::spin(cpus),
            _ => Self::ask(Path::new(CPU_LATENCY_DEVICE), latency_us),
        }
    }

    fn ask(device: &Path, latency_us: u32) -> io::Result<Self> {
        let mut held = OpenOptions::new().write(true).open(device)?;
        held.write_all(&i32::try_from(latency_us).unwrap_or(i32::MAX).to_ne_bytes())?;
        Ok(Self::with(Some(held)))
    }

    fn with(held: Option<File>) -> Self {
        let (over, resting) = Default::default();
        Self { _held: held, idle: Vec::new(), over, resting, threads: Vec::new() }
    }

    fn spin(cpus: &[usize]) -> io::Result<Self> {
        let (ready, readies) = channel();
        let mut awake = Self::with(None);
        for cpu in cpus.iter().copied() {
            let used_ns = Arc::<AtomicU64>::default();
            let (own, ready) = (Arc::clone(&used_ns), ready.clone());
            let (over, resting) = (Arc::clone(&awake.over), Arc::clone(&awake.resting));
            let thread = std::thread::Builder::new().name(format!("awake-{cpu}"));
            awake.threads.push(thread.spawn(move || stay_awake(cpu, &own, &over, &resting, ready))?);
            awake.idle.push((cpu, used_ns));
        }
        // The collection below ends once every thread has dropped its sender.
        drop(ready);
        readies.into_iter().collect::<io::Result<Vec<()>>>().map(|_| awake)
    }

    /// CPU time that the idle threads have used so far on the cores selected by `of`, in nanoseconds, to 10 us.
    pub fn used_ns(&self, of: impl Fn(usize) -> bool) -> u64 {
        let there = self.idle.iter().filter(|(cpu, _)| of(*cpu));
        there.map(|(_, used_ns)| used_ns.load(Ordering::Relaxed)).sum()
    }

    /// Whether the idle threads give way to all of these processes. The kernel first divides a core among control groups and sessions, and
    /// applies priorities only within each of them. A process in another group or session than deadheat, and not below it, would have to
    /// share its core with an idle thread.
    pub fn gives_way_to(&self, processes: &[Pid], hierarchy: &Hierarchy) -> bool {
        self.idle.is_empty() || processes.iter().all(|process| is_beside_us(*process, hierarchy))
    }

    /// Lets the idle threads sleep while nothing is measured (`true`), or keep their cores awake again.
    pub fn rest(&self, rest: bool) {
        self.resting.store(rest, Ordering::Relaxed);
    }

    /// Lets the cores sleep from now on, while this value still exists.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.end();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing more to report.
            let _ = thread.join();
        }
    }
}

/// The default limit on this machine, in microseconds; none on bare metal where the device may not be written.
pub fn usual_cpu_latency_us() -> Option<u32> {
    if virtual_here() {
        return Some(VIRTUAL_US);
    }
    // Opening and closing it sets the kernel's default for an instant, which restricts no state.
    OpenOptions::new().write(true).open(CPU_LATENCY_DEVICE).ok().map(|_| BARE_US)
}

/// Spins on one core at idle priority until `over` is set.
fn stay_awake(
    cpu: usize,
    used_ns: &AtomicU64,
    over: &AtomicBool,
    resting: &AtomicBool,
    ready: Sender<io::Result<()>>,
) {
    let begun =
        pin(&[cpu]).and_then(|()| schedule(ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle)));
    let may = begun.is_ok();
    // The receiver is gone if another thread failed to start.
    let _ = ready.send(begun);
    drop(ready);
    while may && !over.load(Ordering::Relaxed) {
        if resting.load(Ordering::Relaxed) {
            std::thread::sleep(REST);
            continue;
        }
        let since = Instant::now();
        while since.elapsed() < TURN {
            std::hint::spin_loop();
        }
        let used = clock_gettime(ClockId::ThreadCPUTime);
        used_ns.store(used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64, Ordering::Relaxed);
        std::thread::yield_now();
    }
}

fn is_beside_us(process: Pid, hierarchy: &Hierarchy) -> bool {
    let read = |of: &str, file: &str| std::fs::read_to_string(format!("/proc/{of}/{file}")).ok();
    let process = process.as_raw_nonzero().to_string();
    // A process that is gone takes no time.
    let (Some(ours), Some(its)) = (read("self", "cgroup"), read(&process, "cgroup")) else { return true };
    let below = match (hierarchy.scheduled_in(&ours), hierarchy.scheduled_in(&its)) {
        (Some(ours), Some(its)) => its.starts_with(ours),
        _ => true,
    };
    below
        && (!sessions_count() || read(&process, "autogroup").is_none_or(|its| session(&its) == own_session()))
}

/// Whether the kernel divides processors among sessions (sched(7), "The autogroup feature").
fn sessions_count() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|text| text.trim() == "1")
}

/// `/autogroup-12 nice 0`: the session's name comes first.
fn session(autogroup: &str) -> String {
    autogroup.split(' ').next().unwrap_or_default().to_owned()
}

fn own_session() -> String {
    session(&std::fs::read_to_string("/proc/self/autogroup").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_a_number_in_the_byte_order_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("cpu_dma_latency");
        assert_eq!(Awake::ask(&device, 10).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&device, "").unwrap();
        let held = Awake::ask(&device, 10).unwrap();
        assert_eq!(std::fs::read(&device).unwrap(), 10_i32.to_ne_bytes());
        assert_eq!(held.used_ns(|_| true), 0);
    }

    /// Reads the kernel's current limit from the device, as four bytes.
    #[test]
    fn the_kernel_holds_it_for_as_long_as_it_is_asked() {
        use std::io::Read;
        let read = || {
            let mut bytes = [0; 4];
            let mut device = File::open(CPU_LATENCY_DEVICE).ok()?;
            device.read_exact(&mut bytes).ok()?;
            Some(i32::from_ne_bytes(bytes))
        };
        let may = OpenOptions::new().write(true).open(CPU_LATENCY_DEVICE).is_ok();
        let Some(before) = read().filter(|_| may) else {
            eprintln!("skipped: {CPU_LATENCY_DEVICE} cannot be read and written here; needs root");
            return;
        };
        let held = Awake::hold(7, &[]).unwrap();
        let asked = read().unwrap();
        assert!(asked <= 7, "{asked}");
        drop(held);
        // Other programs may have requested the same limit.
        assert!(before <= 7 || read() != Some(7), "given back");
    }

    #[test]
    fn idle_threads_need_no_rights_count_their_time_and_end() {
        let cpu = allowed()[0];
        let awake = Awake::hold(0, &[cpu]).unwrap();
        while awake.used_ns(|one| one == cpu) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(awake.used_ns(|one| one != cpu), 0);
        assert!(awake.gives_way_to(&[rustix::process::getpid()], &Hierarchy::detect()));
        let used = || awake.used_ns(|_| true);
        awake.rest(true);
        let resting = (0..200).any(|_| {
            let before = used();
            std::thread::sleep(REST);
            used() == before
        });
        assert!(resting);
        let before = used();
        awake.rest(false);
        while used() == before {
            std::thread::yield_now();
        }
        let counted = Arc::clone(&awake.idle[0].1);
        drop(awake);
        let at_the_end = counted.load(Ordering::Relaxed);
        assert_eq!(Arc::strong_count(&counted), 1, "the thread is gone");
        assert_eq!(counted.load(Ordering::Relaxed), at_the_end);
        assert!(Awake::hold(0, &[100_000]).is_err());
    }

    /// Imitates a contender that calls `setsid`, on a kernel that divides processors among sessions.
    #[test]
    fn idle_threads_do_not_give_way_to_another_session() {
        let other = std::process::Command::new("setsid").args(["--wait", "sleep", "60"]).spawn();
        let Ok(mut other) = other else {
            eprintln!("SKIPPED: no setsid here");
            return;
        };
        let hierarchy = Hierarchy::detect();
        let awake = Awake::hold(0, &[allowed()[0]]).unwrap();
        let leader = Pid::from_child(&other);
        let child = || {
            let path = format!("/proc/{0}/task/{0}/children", leader.as_raw_nonzero());
            std::fs::read_to_string(path)
                .ok()?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
                .and_then(Pid::from_raw)
        };
        // proc_pid_stat(5): the session is field 6; the text after the name in brackets begins with field 3. It is 0 if the
        // session's leader is outside our process namespace, which getsid(2) does not expect.
        let session_of = |process: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            stat.rsplit_once(") ")?.1.split(' ').nth(6 - 3)?.parse::<u32>().ok()
        };
        let ours = session_of("self");
        // `setsid` leads no group here, so that it can call setsid itself; then it is in a new session.
        let process = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            let elsewhere = |pid: &Pid| {
                session_of(&pid.as_raw_nonzero().to_string()).is_some_and(|its| Some(its) != ours)
            };
            [Some(leader), child()].into_iter().flatten().find(elsewhere)
        });
        let gives_way = process.map(|process| awake.gives_way_to(&[process], &hierarchy));
        let _ = rustix::process::kill_process(process.unwrap_or(leader), rustix::process::Signal::KILL);
        let _ = other.kill();
        let _ = other.wait();
        assert_eq!(gives_way, Some(!sessions_count()));
    }

    /// Asks the thread itself, because other tests also have threads of this name.
    #[test]
    fn idle_threads_run_at_idle_priority() {
        let (cpu, over) = (allowed()[0], AtomicBool::new(true));
        let (ready, begun) = channel();
        let thread = std::thread::spawn(move || {
            stay_awake(cpu, &AtomicU64::default(), &over, &AtomicBool::default(), ready);
            // proc_pid_stat(5): the policy is field 41; the text after the name in brackets begins with field 3.
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            stat.rsplit_once(") ").unwrap().1.split(' ').nth(41 - 3).unwrap().parse::<u32>().unwrap()
        });
        const SCHED_IDLE: u32 = 5;
        assert_eq!(thread.join().unwrap(), SCHED_IDLE);
        begun.recv().unwrap().unwrap();
    }
}
