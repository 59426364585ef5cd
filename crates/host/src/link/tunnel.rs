//! WireGuard between load and servers: by the kernel, or by the program wireguard-go where the kernel cannot.
//!
//! Owns: keys, addresses and routes of the tunnel. Must not know: what the wire below it is like.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use deadheat_record::{Ending, Limits, Link, Listen, Plan};

use super::namespace::Namespace;
use super::{LinkError, SERVERS, netlink};
use crate::process::{Observe, Process, ProcessSpec, tree};
use crate::{Host, LocalHost};

/// The ends of the tunnel.
pub(super) const LOAD: Ipv4Addr = Ipv4Addr::new(198, 18, 2, 1);
const SERVERS_INSIDE: Ipv4Addr = Ipv4Addr::new(198, 18, 2, 2);
/// Where the servers' end listens.
const PORT: u16 = 51_820;
/// How long a tunnel may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(10);
/// Where wireguard-go makes its sockets.
const SOCKETS: &str = "/var/run/wireguard";

/// The sides of the tunnel, as the names of their interfaces have them.
const LOAD_SIDE: char = 'l';
const SERVERS_SIDE: char = 's';

/// The name of an interface. The sockets of all tunnels of the machine are in one folder, so the name has this process's number.
fn interface(side: char) -> String {
    format!("wg-{side}{}", std::process::id())
}

/// A tunnel that is up.
#[derive(Debug)]
pub(super) struct WireGuard {
    name: String,
    by: By,
}

/// What encrypts.
#[derive(Debug)]
enum By {
    /// A program at either end, the load's first.
    Programs([Program; 2]),
    /// The kernel.
    Kernel(RefCell<KernelWork>),
}

struct Program {
    process: Box<dyn Process>,
    socket: PathBuf,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Program").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// One end of the tunnel.
struct End<'a> {
    namespace: &'a Namespace,
    interface: String,
    address: Ipv4Addr,
    cpus: &'a [usize],
}

/// What the kernel's threads for deferred work have used since the tunnel was made.
#[derive(Debug, Default)]
struct KernelWork {
    load_cpus: Vec<usize>,
    server_cpus: Vec<usize>,
    /// The last reading of each thread.
    last: BTreeMap<i32, (usize, u64)>,
    /// The sum of all differences, in nanoseconds: on the processors of the load, and of the servers.
    sum: (u64, u64),
}

impl KernelWork {
    /// Adds what these threads have used since the last reading. Threads come and go.
    fn used_ns(&mut self, now: BTreeMap<i32, (usize, u64)>) -> (u64, u64) {
        for (pid, (cpu, ns)) in &now {
            let before = self.last.get(pid).map_or(*ns, |(_, before)| *before);
            let more = ns.saturating_sub(before);
            if self.load_cpus.contains(cpu) {
                self.sum.0 += more;
            } else if self.server_cpus.is_empty() || self.server_cpus.contains(cpu) {
                self.sum.1 += more;
            }
        }
        self.last = now;
        self.sum
    }
}

impl WireGuard {
    /// Makes the tunnel, and sends requests through it from now on.
    pub(super) fn make(
        load: &Namespace,
        servers: &Namespace,
        plan: &Plan,
        host: &LocalHost<'_>,
    ) -> Result<Self, LinkError> {
        tool("wg", &["--version"], "").map_err(|error| {
            LinkError::new(
                format!("a link with `tunnel = \"wireguard\"` needs the program wg: {error}"),
                "install the package wireguard-tools",
            )
        })?;
        let end =
            |namespace, side, address, cpus| End { namespace, interface: interface(side), address, cpus };
        let ends = [
            end(load, LOAD_SIDE, LOAD, plan.load_cpus_here()),
            end(servers, SERVERS_SIDE, SERVERS_INSIDE, &plan.pinning.server_cpus),
        ];
        let failed =
            |error: io::Error| LinkError::new(format!("the tunnel does not come up: {error}"), "see its log");
        let by_kernel = ends[0].namespace.inside(|| netlink::make_wireguard(&ends[0].interface));
        let by = match by_kernel.and_then(|made| made) {
            Ok(()) => {
                let other = ends[1].namespace.inside(|| netlink::make_wireguard(&ends[1].interface));
                other.and_then(|made| made).map_err(failed)?;
                By::Kernel(RefCell::new(KernelWork {
                    load_cpus: plan.load_cpus_here().to_vec(),
                    server_cpus: plan.pinning.server_cpus.clone(),
                    ..KernelWork::default()
                }))
            }
            Err(_) => By::Programs(Self::programs(&ends, plan, host)?),
        };
        let name = match by {
            By::Kernel(_) => "the kernel".to_owned(),
            By::Programs(_) => tool("wireguard-go", &["--version"], "")
                .ok()
                .and_then(|text| Some(text.lines().next()?.trim().to_owned()))
                .unwrap_or_else(|| "wireguard-go".to_owned()),
        };
        let tunnel = Self { name, by };
        match join(&ends) {
            Ok(()) => Ok(tunnel),
            Err(error) => {
                tunnel.end(load, servers);
                Err(failed(error))
            }
        }
    }

    fn programs(ends: &[End<'_>; 2], plan: &Plan, host: &LocalHost<'_>) -> Result<[Program; 2], LinkError> {
        tool("wireguard-go", &["--version"], "").map_err(|error| {
            LinkError::new(
                format!("a link with `tunnel = \"wireguard\"` needs WireGuard: the kernel has none (the module wireguard), and wireguard-go cannot be run ({error})"),
                "load the module (`modprobe wireguard`), or install the package wireguard-go",
            )
        })?;
        remove_sockets_left_behind(Path::new(SOCKETS));
        let failed = |error: &dyn std::fmt::Display| {
            LinkError::new(format!("wireguard-go: {error}"), "try it by hand: wireguard-go -f wg-test")
        };
        fs::create_dir_all(&plan.work).map_err(|error| failed(&error))?;
        let start = |end: &End<'_>| -> Result<Program, LinkError> {
            let spec = ProcessSpec {
                name: "wireguard-go",
                command: &format!("exec wireguard-go -f {}", end.interface),
                folder: Path::new("/"),
                env: &BTreeMap::new(),
                listen: &Listen::FreePort,
                cpus: end.cpus,
                limits: &Limits::default(),
                ending: &Ending::default(),
                log: plan.work.join(format!("{}.log", end.interface)),
                values: &BTreeMap::new(),
                sockets: &plan.work,
                observe: Observe::Nothing,
            };
            let started = end.namespace.inside(|| host.start(&spec)).map_err(|error| failed(&error))?;
            let process = started.map_err(|error| failed(&error))?;
            let socket = Path::new(SOCKETS).join(format!("{}.sock", end.interface));
            let program = Program { process, socket };
            let begin = Instant::now();
            while !program.socket.exists() {
                if let Some(how) = program
                    .process
                    .exited()
                    .or_else(|| (begin.elapsed() > PATIENCE).then(|| "it does not start".into()))
                {
                    let tail = program.process.tail();
                    program.end();
                    return Err(failed(&format!("{how}{tail}")));
                }
                thread::sleep(GLANCE);
            }
            Ok(program)
        };
        let load = start(&ends[0])?;
        match start(&ends[1]) {
            Ok(servers) => Ok([load, servers]),
            Err(error) => {
                load.end();
                Err(error)
            }
        }
    }

    /// What encrypts.
    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// CPU time that it has used so far, in nanoseconds: of the load's end and of the servers', or on the load generator's processors and on the contenders'. The kernel
    /// has threads for all its work, and does not say which part of it was for the tunnel: all of it counts.
    pub(super) fn cpu_ns(&self) -> (u64, u64) {
        let of = |program: &Program| program.process.cpu_ns().0;
        match &self.by {
            By::Programs([load, servers]) => (of(load), of(servers)),
            By::Kernel(work) => work.borrow_mut().used_ns(tree::kernel_workers(Path::new(tree::PROC))),
        }
    }

    /// Ends the programs, and removes the kernel's interfaces.
    pub(super) fn end(self, load: &Namespace, servers: &Namespace) {
        if let By::Programs(programs) = self.by {
            programs.into_iter().for_each(Program::end);
        }
        for (namespace, side) in [(load, LOAD_SIDE), (servers, SERVERS_SIDE)] {
            // With a program, it is gone already.
            let _ = namespace.inside(|| netlink::remove(&interface(side)));
        }
    }
}

impl Program {
    fn end(self) {
        self.process.stop();
        let _ = fs::remove_file(&self.socket);
    }
}

/// Gives both ends their keys, addresses and routes.
fn join(ends: &[End<'_>; 2]) -> io::Result<()> {
    let key = || -> io::Result<(String, String)> {
        let private = tool("wg", &["genkey"], "")?;
        let public = tool("wg", &["pubkey"], &private)?;
        Ok((private, public.trim().to_owned()))
    };
    let keys = [key()?, key()?];
    let [load, servers] = ends;
    let endpoint = format!("{SERVERS}:{PORT}");
    let (to_load, to_servers) = (format!("{LOAD}/32"), format!("{SERVERS_INSIDE}/32,{}/32", Link::SERVERS));
    let port = PORT.to_string();
    let set = |end: &End<'_>, private: &str, more: &[&str]| -> io::Result<()> {
        let mut words = vec!["set", &end.interface, "private-key", "/proc/self/fd/0"];
        words.extend(more);
        end.namespace.inside(|| {
            tool("wg", &words, private)?;
            netlink::add_address(&end.interface, end.address, 30)?;
            netlink::bring_up(&end.interface)
        })?
    };
    set(servers, &keys[1].0, &["listen-port", &port, "peer", &keys[0].1, "allowed-ips", &to_load])?;
    set(load, &keys[0].0, &["peer", &keys[1].1, "endpoint", &endpoint, "allowed-ips", &to_servers])?;
    load.namespace.inside(|| netlink::route(Link::SERVERS, &load.interface, None, Some(LOAD)))?
}

/// Runs a program in the calling thread's network. Returns what it printed.
fn tool(program: &str, arguments: &[&str], input: &str) -> io::Result<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read says itself what is wrong.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{program}: {}: {}", output.status, said.trim())))
}

/// Removes the sockets of programs whose deadheat was killed.
fn remove_sockets_left_behind(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| {
            let owner = name.strip_suffix(".sock")?.strip_prefix("wg-")?;
            owner.strip_prefix([LOAD_SIDE, SERVERS_SIDE])?.parse::<u32>().ok()
        });
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_the_dead_go_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let living = format!("wg-s{}.sock", std::process::id());
        for name in ["wg-l4194304.sock", "wg-s4194304.sock", &living, "wg0.sock", "wg-lx.sock"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        remove_sockets_left_behind(folder.path());
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["wg-lx.sock", &living, "wg0.sock"]);
    }

    #[test]
    fn threads_of_the_kernel_come_and_go() {
        let mut work = KernelWork { load_cpus: vec![1], server_cpus: vec![0], ..KernelWork::default() };
        let of = |all: &[(i32, usize, u64)]| all.iter().map(|(pid, cpu, ns)| (*pid, (*cpu, *ns))).collect();
        assert_eq!(work.used_ns(of(&[(7, 0, 60_000), (8, 1, 10)])), (0, 0), "before the tunnel");
        assert_eq!(work.used_ns(of(&[(8, 1, 15), (9, 0, 70_000)])), (5, 0), "one went, one came");
        assert_eq!(work.used_ns(of(&[(8, 1, 15), (9, 0, 70_004), (10, 2, 9)])), (5, 4));
        assert_eq!(work.used_ns(of(&[(10, 2, 1_000)])), (5, 4), "on a processor of nobody's");
    }
}
