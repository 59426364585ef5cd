//! A process tree as seen in `/proc`: members, CPU time, context switches, memory, signals.
//!
//! Owns: reading `/proc`. Must not know: contenders and control groups.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use deadheat_load::nanos;
use nix::time::{ClockId, clock_getcpuclockid};
use rustix::process::{Pid, Signal, kill_process};

/// The folder of the processes.
pub(crate) const PROC: &str = "/proc";

/// Whether a process has a handler for a signal, or waits for it: small init programs block signals and take them one by one.
pub(crate) fn handles(pid: Pid, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("{PROC}/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    let mask = |name: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    };
    (mask("SigCgt:") | mask("SigBlk:")) & (1 << (signal.as_raw() - 1)) != 0
}

/// All processes, as `proc` lists them now.
pub(crate) fn pids(proc: &Path) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Every process with its parent, as `proc` lists them now.
fn parents(proc: &Path) -> BTreeMap<i32, i32> {
    pids(proc).filter_map(|pid| Some((pid, stat(proc, pid)?.parent))).collect()
}

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    pub(crate) state: char,
    parent: i32,
    /// When it started, in clock ticks since boot: distinguishes it from a later process with the same number.
    pub(crate) started: u64,
    /// CPU time of all its threads, including ended ones.
    pub(crate) own: Ticks,
    /// CPU time of its children that have ended and that it has waited for.
    children: Ticks,
    /// Page faults, with those of the same children.
    faults: u64,
}

/// CPU time in clock ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    user: u64,
    system: u64,
}

impl Ticks {
    /// The same in nanoseconds.
    pub(crate) fn ns(self) -> u64 {
        (self.user + self.system) * tick_ns()
    }
}

/// Reads the `stat` of a process; none if it is gone. `proc` is `/proc`.
pub(crate) fn stat(proc: &Path, pid: i32) -> Option<Stat> {
    parsed(&text_of_stat(proc, pid)?).map(|(_, stat)| stat)
}

/// As [`stat`], with the name of the process, which it may change.
pub(crate) fn named_stat(proc: &Path, pid: i32) -> Option<(String, Stat)> {
    parsed(&text_of_stat(proc, pid)?).map(|(name, stat)| (String::from_utf8_lossy(name).into_owned(), stat))
}

fn text_of_stat(proc: &Path, pid: i32) -> Option<Vec<u8>> {
    fs::read(proc.join(format!("{pid}/stat"))).ok()
}

/// Name and figures.
fn parsed(text: &[u8]) -> Option<(&[u8], Stat)> {
    // The name in parentheses may contain anything; the fields begin after the last parenthesis.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let begin = text.iter().position(|byte| *byte == b'(')?;
    let fields: Vec<&str> =
        str::from_utf8(&text[end + 1..]).ok()?.split_ascii_whitespace().take(20).collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
    let stat = Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: ticks(19)?,
        own: Ticks { user: ticks(11)?, system: ticks(12)? },
        children: Ticks { user: ticks(13)?, system: ticks(14)? },
        faults: ticks(7)? + ticks(8)? + ticks(9)? + ticks(10)?,
    };
    Some((text.get(begin + 1..end)?, stat))
}

/// All living descendants of `ancestor`, without `ancestor` itself and without zombies.
pub(crate) fn descendants(ancestor: Pid) -> Vec<Pid> {
    let proc = Path::new(PROC);
    below(proc, ancestor).into_iter().filter(|pid| lives(proc, *pid)).filter_map(Pid::from_raw).collect()
}

/// Whether a process is there and no zombie. `proc` is `/proc`.
pub(crate) fn lives(proc: &Path, pid: i32) -> bool {
    stat(proc, pid).is_some_and(|stat| stat.state != 'Z')
}

/// The process below `ancestor` with which podman watches over a container: the container's processes descend from it. None before it is there.
pub(crate) fn watcher_of_container(ancestor: Pid) -> Option<Pid> {
    let proc = Path::new(PROC);
    // It leaves the process that podman started, and so becomes a child of the one that adopts all. Its own children have its name until they are the runtime.
    let is_watcher = |pid: &Pid| {
        let number = pid.as_raw_nonzero().get();
        is_called(number, "conmon")
            && stat(proc, number).is_some_and(|stat| stat.parent == ancestor.as_raw_nonzero().get())
    };
    descendants(ancestor).into_iter().find(is_watcher)
}

fn is_called(pid: i32, name: &str) -> bool {
    fs::read_to_string(format!("{PROC}/{pid}/comm")).is_ok_and(|text| text.trim_end() == name)
}

/// Docker's processes that lead a port of this machine to a container.
pub(crate) fn proxies_of_port(port: u16) -> Vec<Pid> {
    let words = format!("-host-port {port} ");
    let is_its = |pid: &i32| {
        is_called(*pid, "docker-proxy") && command_line(*pid).is_some_and(|line| line.contains(&words))
    };
    pids(Path::new(PROC)).filter(is_its).filter_map(Pid::from_raw).collect()
}

/// CPU time of a process in user mode and in the kernel, in nanoseconds, with the resolution of clock ticks.
pub(crate) fn own_split(pid: Pid) -> Option<(u64, u64)> {
    let own = stat(Path::new(PROC), pid.as_raw_nonzero().get())?.own;
    Some((own.user * tick_ns(), own.system * tick_ns()))
}

/// All descendants of `ancestor`, without `ancestor` itself but with zombies.
fn below(proc: &Path, ancestor: Pid) -> Vec<i32> {
    let ancestor = ancestor.as_raw_nonzero().get();
    let mut inside = families(&parents(proc), BTreeSet::from([ancestor]));
    inside.remove(&ancestor);
    inside.into_iter().collect()
}

/// The processes of the container that `watcher` watches over, with zombies. The runtime that prepares the container is a child of the watcher, too,
/// but sees the same mounts.
fn inside_container(proc: &Path, watcher: Pid) -> Vec<i32> {
    let watcher = watcher.as_raw_nonzero().get();
    let mounts = |pid: i32| fs::read_link(proc.join(format!("{pid}/ns/mnt"))).ok();
    let of_watcher = mounts(watcher);
    let parents = parents(proc);
    let is_first = |pid: i32| lives(proc, pid) && (of_watcher.is_none() || mounts(pid) != of_watcher);
    let children = parents.iter().filter(|(_, parent)| **parent == watcher).map(|(pid, _)| *pid);
    let firsts = children.filter(|pid| is_first(*pid)).collect();
    families(&parents, firsts).into_iter().collect()
}

/// These processes and all that descend from them.
fn families(parents: &BTreeMap<i32, i32>, mut inside: BTreeSet<i32>) -> BTreeSet<i32> {
    loop {
        let more: Vec<i32> = parents
            .iter()
            .filter(|(pid, parent)| inside.contains(parent) && !inside.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return inside;
        }
        inside.extend(more);
    }
}

/// Sends a signal to each process, ignoring those that are gone.
pub(crate) fn signal(pids: &[Pid], signal: Signal) {
    for pid in pids {
        let _ = kill_process(*pid, signal);
    }
}

/// Whether every living thread leader of `pids` is stopped.
pub(crate) fn all_stopped(pids: &[Pid]) -> bool {
    pids.iter()
        .filter_map(|pid| stat(Path::new(PROC), pid.as_raw_nonzero().get()))
        .all(|stat| matches!(stat.state, 'T' | 't' | 'Z'))
}

/// CPU time of everything below `ancestor`, in nanoseconds. The part of living processes is precise, from [`clock_ns`]. The part of ended
/// ones is in clock ticks, so that a later reading may be lower by a few ticks.
pub(crate) fn cpu_ns(ancestor: Pid) -> u64 {
    let proc = Path::new(PROC);
    // This includes every process that `ancestor` adopted and waited for.
    let ended = stat(proc, ancestor.as_raw_nonzero().get()).map_or(0, |stat| stat.children.ns());
    ended + below(proc, ancestor).into_iter().filter_map(used_ns).sum::<u64>()
}

/// CPU time of the container that `watcher` watches over, in nanoseconds, as [`cpu_ns`]. What the runtime used before the container began does not count.
pub(crate) fn cpu_ns_of_container(watcher: Pid) -> u64 {
    inside_container(Path::new(PROC), watcher).into_iter().filter_map(used_ns).sum()
}

/// CPU time of everything below `ancestor` in user mode and in the kernel, in nanoseconds. The source counts in clock ticks, so that a
/// later reading may be lower by a few ticks. `proc` is `/proc`.
pub(crate) fn cpu_split(proc: &Path, ancestor: Pid) -> Option<(u64, u64)> {
    let ended = stat(proc, ancestor.as_raw_nonzero().get())?.children;
    Some(split_of(proc, &below(proc, ancestor), ended))
}

/// As [`cpu_split`], of the container that `watcher` watches over. None if it has ended.
pub(crate) fn cpu_split_of_container(proc: &Path, watcher: Pid) -> Option<(u64, u64)> {
    let pids = inside_container(proc, watcher);
    (!pids.is_empty()).then(|| split_of(proc, &pids, Ticks { user: 0, system: 0 }))
}

fn split_of(proc: &Path, pids: &[i32], ended: Ticks) -> (u64, u64) {
    let all = pids
        .iter()
        .filter_map(|pid| stat(proc, *pid))
        .flat_map(|stat| [stat.own, stat.children])
        .fold(ended, |sum, one| Ticks { user: sum.user + one.user, system: sum.system + one.system });
    (all.user * tick_ns(), all.system * tick_ns())
}

/// Page faults of everything below `ancestor`, with those of processes that have ended and that were waited for. `proc` is `/proc`.
pub(crate) fn page_faults(proc: &Path, ancestor: Pid) -> Option<u64> {
    // What `ancestor` itself did is almost nothing, and the same at each reading.
    let own = stat(proc, ancestor.as_raw_nonzero().get())?.faults;
    Some(own + below(proc, ancestor).into_iter().filter_map(|pid| Some(stat(proc, pid)?.faults)).sum::<u64>())
}

/// Voluntary and involuntary context switches of every living thread of `pids`, by thread. `proc` is `/proc`.
pub(crate) fn switches(proc: &Path, pids: &[Pid]) -> BTreeMap<i32, (u64, u64)> {
    let tasks = |pid: &Pid| fs::read_dir(proc.join(format!("{}/task", pid.as_raw_nonzero()))).ok();
    let tasks = pids.iter().filter_map(tasks).flatten().flatten();
    tasks
        .filter_map(|task| {
            let thread = task.file_name().to_str()?.parse().ok()?;
            let text = fs::read_to_string(task.path().join("status")).ok()?;
            let count =
                |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            Some((thread, (count("voluntary_ctxt_switches:")?, count("nonvoluntary_ctxt_switches:")?)))
        })
        .collect()
}

/// CPU time of this process's ended children and all their descendants, in nanoseconds, with the resolution of clock ticks.
pub(crate) fn ended_ns() -> u64 {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    stat(Path::new(PROC), own).map_or(0, |stat| stat.children.ns())
}

/// CPU time of a process, including its ended threads and the children that it has waited for, in nanoseconds.
fn used_ns(pid: i32) -> Option<u64> {
    let children = stat(Path::new(PROC), pid)?.children.ns();
    Some(clock_ns(pid)? + children)
}

/// CPU time of a process, including its ended threads, in nanoseconds: its CPU-time clock, clock_getcpuclockid(3). None if the process has gone.
pub(crate) fn clock_ns(pid: i32) -> Option<u64> {
    let time = clock_getcpuclockid(nix::unistd::Pid::from_raw(pid)).and_then(ClockId::now).ok()?;
    Some(nanos(time.into()))
}

/// The kernel's threads for deferred work that are bound to a processor (`kworker/CPU:...`): the processor of each, and the CPU time that it has used, in
/// nanoseconds.
pub(crate) fn kernel_workers(proc: &Path) -> BTreeMap<i32, (usize, u64)> {
    let worker = |pid: i32| {
        let folder = proc.join(pid.to_string());
        let name = fs::read_to_string(folder.join("comm")).ok()?;
        let cpu = name.strip_prefix("kworker/")?.split(':').next()?.parse().ok()?;
        Some((pid, (cpu, schedstat_of(&folder)?.0)))
    };
    pids(proc).filter_map(worker).collect()
}

/// The length of a clock tick, in nanoseconds.
pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// CPU time and run delay of one thread, in nanoseconds; `task` is its folder in `/proc`.
pub(crate) fn schedstat_of(task: &Path) -> Option<(u64, u64)> {
    let text = fs::read_to_string(task.join("schedstat")).ok()?;
    let mut words = text.split_whitespace().map(str::parse::<u64>);
    Some((words.next()?.ok()?, words.next()?.ok()?))
}

/// Proportional set size summed over `pids`, in bytes; none when no process could be read.
pub(crate) fn pss_bytes(pids: &[Pid]) -> Option<u64> {
    let each: Vec<u64> = pids.iter().filter_map(|pid| pss_of(pid.as_raw_nonzero().get())).collect();
    (!each.is_empty()).then(|| each.iter().sum())
}

fn pss_of(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The command line of a process, words joined by spaces.
pub(crate) fn command_line(pid: i32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> =
        bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect();
    Some(words.join(" "))
}

/// When a process started: see [`Stat::started`].
pub(crate) fn start_ticks(pid: i32) -> Option<u64> {
    Some(stat(Path::new(PROC), pid)?.started)
}

/// Processes that have the environment variable `name`, with its value.
pub(crate) fn with_environment(name: &str) -> Vec<(i32, String)> {
    let with_value = |pid: i32| {
        let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let value = bytes
            .split(|byte| *byte == 0)
            .filter_map(|pair| std::str::from_utf8(pair).ok())
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        Some((pid, value.to_owned()))
    };
    pids(Path::new(PROC)).filter_map(with_value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;

    #[test]
    fn a_child_is_found_stopped_and_measured() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(descendants(getpid()).contains(&pid));
        signal(&[pid], Signal::STOP);
        while !all_stopped(&[pid]) {
            std::thread::yield_now();
        }
        assert!(pss_bytes(&[pid]).unwrap() > 0);
        assert!((0..10_000).any(|_| command_line(pid.as_raw_nonzero().get()).unwrap().contains("sleep 30")));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants(getpid()).contains(&pid));
    }

    #[test]
    fn our_own_times_are_read() {
        let pid = getpid().as_raw_nonzero().get();
        assert!(clock_ns(pid).unwrap() > 0);
        assert!(start_ticks(pid).unwrap() > 0);
    }

    /// The runtime starts threads in a container's process, and they end before the server begins. If their time made the count go in clock ticks, it would
    /// miss a few milliseconds of the server's work.
    #[test]
    fn what_ended_threads_used_is_not_in_clock_ticks() {
        std::thread::spawn(|| {
            let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_nsec;
            while used() < 50_000_000 {}
        })
        .join()
        .unwrap();
        let pid = getpid().as_raw_nonzero().get();
        assert_ne!(used_ns(pid).unwrap() % tick_ns(), 0);
    }

    /// A keeper (7) that has adopted a process and waited for it, its child (8), that child's child (9), and an unrelated process (10).
    fn imitated() -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        let stat = |pid: i32, parent: i32, ticks: &str| {
            let text = format!("{pid} (a) b) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 20 0 1 0 5\n");
            fs::create_dir_all(proc.path().join(format!("{pid}/task"))).unwrap();
            fs::write(proc.path().join(format!("{pid}/stat")), text).unwrap();
        };
        stat(7, 1, "1000 1000 5 1");
        stat(8, 7, "100 30 20 3");
        stat(9, 8, "7 2 0 0");
        stat(10, 1, "9999 9999 9999 9999");
        proc
    }

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    #[test]
    fn user_mode_and_kernel_are_told_apart_with_what_has_ended() {
        let proc = imitated();
        let split = (132 * tick_ns(), 36 * tick_ns());
        assert_eq!(cpu_split(proc.path(), pid(7)), Some(split), "not the keeper's own, and not a stranger's");
        assert_eq!(cpu_split(proc.path(), pid(6)), None, "a keeper that is gone");
    }

    /// Podman's watcher (8) has waited for a runtime. A second runtime (11) still lives and sees the same mounts; a third one (12) is a zombie. The
    /// container's first process (13) does not wait for its child (14), which has ended.
    #[test]
    fn only_what_sees_other_mounts_than_its_watcher_is_the_container() {
        let proc = imitated();
        let process = |pid: i32, parent: i32, state: char, mounts: Option<&str>, ticks: &str| {
            let folder = proc.path().join(pid.to_string());
            fs::create_dir_all(folder.join("ns")).unwrap();
            let text = format!("{pid} (x) {state} {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 20 0 1 0 5\n");
            fs::write(folder.join("stat"), text).unwrap();
            if let Some(mounts) = mounts {
                std::os::unix::fs::symlink(mounts, folder.join("ns/mnt")).unwrap();
            }
        };
        process(8, 7, 'S', Some("mnt:[1]"), "100 30 20 3");
        process(11, 8, 'R', Some("mnt:[1]"), "50 50 0 0");
        process(12, 8, 'Z', None, "40 40 0 0");
        fs::remove_dir_all(proc.path().join("9")).unwrap();
        assert_eq!(cpu_split_of_container(proc.path(), pid(8)), None, "no container yet");
        process(13, 8, 'S', Some("mnt:[2]"), "7 2 1 0");
        process(14, 13, 'Z', None, "5 3 0 0");
        assert_eq!(inside_container(proc.path(), pid(8)), [13, 14]);
        let split = (13 * tick_ns(), 5 * tick_ns());
        assert_eq!(cpu_split_of_container(proc.path(), pid(8)), Some(split));
    }

    #[test]
    fn switches_are_those_of_every_thread() {
        let proc = imitated();
        let thread = |path: &str, text: &str| {
            let folder = proc.path().join(path);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("status"), text).unwrap();
        };
        let told = |voluntary, involuntary| {
            format!(
                "Name:\tx\nvoluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t{involuntary}\n"
            )
        };
        thread("8/task/8", &told(12, 3));
        thread("8/task/11", &told(400, 0));
        thread("9/task/9", &told(1, 70));
        thread("10/task/10", &told(5, 5));
        // As if it ended between the listing and the reading.
        thread("9/task/12", "");
        let seen = switches(proc.path(), &[pid(8), pid(9), pid(99)]);
        assert_eq!(seen, BTreeMap::from([(8, (12, 3)), (9, (1, 70)), (11, (400, 0))]));
    }

    #[test]
    fn what_an_ended_thread_used_stays_counted() {
        let own_ns = || used_ns(getpid().as_raw_nonzero().get()).unwrap();
        let before = own_ns();
        let burn = || {
            let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_nsec;
            while used() < 300_000_000 {}
        };
        std::thread::spawn(burn).join().unwrap();
        assert!(own_ns() >= before + 250_000_000, "the thread is gone, what it used is not");
    }

    #[test]
    fn what_an_ended_child_used_stays_counted() {
        let before = cpu_ns(getpid());
        // Runs until it has used 0.3 s in user mode.
        let burn = "while read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user _ < /proc/self/stat; do test $user -ge 30 && exit; done";
        let status = std::process::Command::new("sh").args(["-c", burn]).status().unwrap();
        assert!(status.success());
        assert!(cpu_ns(getpid()) >= before + 250_000_000);
    }

    #[test]
    fn an_environment_is_found() {
        let mut child =
            std::process::Command::new("sleep").arg("30").env("DEADHEAT_TREE_TEST", "x y").spawn().unwrap();
        let pid = Pid::from_child(&child).as_raw_nonzero().get();
        // A new process shows its environment only a moment later.
        assert!((0..10_000).any(|_| with_environment("DEADHEAT_TREE_TEST").contains(&(pid, "x y".into()))));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_kernels_workers_are_told_by_their_processors() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, name, ns) in [
            ("7", "kworker/0:1-wg-crypt-wg-l1", 100),
            ("8", "kworker/1:0H-kblockd", 20),
            ("9", "kworker/u8:2-events", 3),
            ("10", "bun", 5_000),
        ] {
            fs::create_dir(proc.path().join(pid)).unwrap();
            fs::write(proc.path().join(pid).join("comm"), format!("{name}\n")).unwrap();
            fs::write(proc.path().join(pid).join("schedstat"), format!("{ns} 1 1\n")).unwrap();
        }
        fs::write(proc.path().join("uptime"), "1").unwrap();
        assert_eq!(kernel_workers(proc.path()), BTreeMap::from([(7, (0, 100)), (8, (1, 20))]));
        assert!(kernel_workers(&proc.path().join("nowhere")).is_empty());
    }

    #[test]
    fn what_leads_a_port_to_a_container_is_found_by_its_port() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("docker-proxy");
        fs::copy("/bin/sh", &program).unwrap();
        let start = |port: &str| {
            let mut one = std::process::Command::new(&program);
            one.args([
                "-c",
                "read -r end",
                "-proto",
                "tcp",
                "-host-port",
                port,
                "-container-ip",
                "172.17.0.2",
            ]);
            one.stdin(std::process::Stdio::piped()).spawn().unwrap()
        };
        let (mut one, mut two) = (start("4711"), start("47112"));
        let is_named = |child: &std::process::Child| is_called(child.id() as i32, "docker-proxy");
        while !(is_named(&one) && is_named(&two)) {
            std::thread::yield_now();
        }
        let found = proxies_of_port(4711);
        for child in [&mut one, &mut two] {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        assert_eq!(found, [Pid::from_raw(one.id() as i32).unwrap()]);
    }
}
