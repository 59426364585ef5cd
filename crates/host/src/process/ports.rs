//! Ports of the loopback: finding a free one, checking one, and finding the process that holds one.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;
use rustix::process::Pid;

use crate::process::tree;

/// Ports come from below the range that the kernel uses for outgoing connections, so that no connection of the load generator can take
/// a port before the contender listens on it.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;
/// A process claims this many neighbouring ports at a time.
const BLOCK: u16 = 100;
const BLOCKS: u16 = COUNT / BLOCK;
/// A process holds the claims of its latest blocks only: a contender listens soon after its port is chosen.
const CLAIMS: usize = 2;
/// How a connection fails that does not arrive.
const UNREACHED: [io::ErrorKind; 5] = [
    io::ErrorKind::ConnectionRefused,
    io::ErrorKind::TimedOut,
    io::ErrorKind::HostUnreachable,
    io::ErrorKind::NetworkUnreachable,
    io::ErrorKind::PermissionDenied,
];
/// How long a connection within this machine may take to arrive.
const REACH_PATIENCE: Duration = Duration::from_secs(1);
/// How long the search for a free port may take, where connections to many of them never arrive.
const SEARCH_PATIENCE: Duration = Duration::from_secs(10);

/// A free port. Consecutive calls give different ports, and two processes that call this at the same time never get the same one.
///
/// # Errors
/// When none of the ten thousand ports is free and can be reached, as far as ten seconds suffice to try them.
pub fn free() -> io::Result<u16> {
    static BLOCKS: Mutex<Option<Blocks>> = Mutex::new(None);
    let mut blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    blocks.get_or_insert_with(|| Blocks::of(std::process::id())).next_port(claim)
}

/// The blocks of ports that this process claims, one after the other.
struct Blocks {
    /// The block to try next, from 0.
    next: u16,
    /// Where in a block to begin, so that a process does not reuse the ports that one before it has just left.
    begin: u16,
    /// The first port of the current block, and how many of its ports were tried.
    current: Option<(u16, u16)>,
    claims: VecDeque<UnixListener>,
}

impl Blocks {
    /// Processes of close numbers begin in blocks that are far apart.
    fn of(process: u32) -> Self {
        let next = (u64::from(process) * 37 % u64::from(BLOCKS)) as u16;
        let begin = (u64::from(process) / u64::from(BLOCKS) * 37 % u64::from(BLOCK)) as u16;
        Self { next, begin, current: None, claims: VecDeque::new() }
    }

    fn next_port(&mut self, claim: impl Fn(u16) -> io::Result<UnixListener>) -> io::Result<u16> {
        let end = Instant::now() + SEARCH_PATIENCE;
        for _ in (0..COUNT).take_while(|_| Instant::now() < end) {
            let (first, tried) = match self.current {
                Some(block) if block.1 < BLOCK => block,
                _ => (self.next_block(&claim), 0),
            };
            self.current = Some((first, tried + 1));
            let port = first + (self.begin + tried) % BLOCK;
            if obstacle(port).is_none() {
                return Ok(port);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!(
                "none of the ports {FIRST} to {} that were tried is free and can be reached; does a firewall keep connections within this machine away?",
                FIRST + (COUNT - 1)
            ),
        ))
    }

    /// The first port of the next block that no other process claims; if all are claimed, of the next block.
    fn next_block(&mut self, claim: impl Fn(u16) -> io::Result<UnixListener>) -> u16 {
        for _ in 0..BLOCKS {
            let first = self.step();
            match claim(first) {
                Ok(claimed) => {
                    self.claims.push_back(claimed);
                    self.claims.drain(..self.claims.len().saturating_sub(CLAIMS));
                    return first;
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                // Claims are impossible here: the check of each port has to do.
                Err(_) => return first,
            }
        }
        self.step()
    }

    fn step(&mut self) -> u16 {
        let first = FIRST + self.next * BLOCK;
        self.next = (self.next + 1) % BLOCKS;
        first
    }
}

/// Claims a block for as long as the socket lives. Only one process of a network namespace can hold a socket of this name.
fn claim(first: u16) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("deadheat-ports-{first}"))?)
}

/// What keeps a contender from being reached at a port of the loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// Another process uses the port, on the loopback or on all addresses. IPv6 counts where the machine has it.
    Taken,
    /// A connection to the port does not arrive at the process that listens there. A rule of the machine's firewall may lead it elsewhere:
    /// an engine that was killed leaves such rules for the ports of its containers.
    Redirected,
}

/// Why a contender could not be reached at this port; none if the port is free.
pub fn obstacle(port: u16) -> Option<Obstacle> {
    let taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(listener) => listener,
        Err(error) if taken(&error) => return Some(Obstacle::Taken),
        // This process may not take a port below 1024, for example; the contender may.
        Err(_) => return listeners("self").any(|one| one.0 == port).then_some(Obstacle::Taken),
    };
    // Whatever else may hinder this attempt, such as a lack of descriptors, says nothing about the port.
    if is_reached(&listener).is_ok_and(|reached| !reached) {
        return Some(Obstacle::Redirected);
    }
    drop(listener);
    let others: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::LOCALHOST.into()];
    let is_taken =
        others.iter().any(|address| TcpListener::bind((*address, port)).is_err_and(|error| taken(&error)));
    is_taken.then_some(Obstacle::Taken)
}

/// Whether a connection to this listener arrives. It leaves no trace at the port.
fn is_reached(listener: &TcpListener) -> io::Result<bool> {
    let client = match TcpStream::connect_timeout(&listener.local_addr()?, REACH_PATIENCE) {
        Ok(client) => client,
        Err(error) if UNREACHED.contains(&error.kind()) => return Ok(false),
        Err(error) => return Err(error),
    };
    // Closed by a reset: a closing handshake would leave a socket that waits for a minute.
    set_socket_linger(&client, Some(Duration::ZERO))?;
    let patience = Timespec::try_from(REACH_PATIENCE).map_err(io::Error::other)?;
    if poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&patience))? == 0 {
        return Ok(false);
    }
    let (arrived, _) = listener.accept()?;
    drop(client);
    drop(arrived);
    Ok(true)
}

/// The process that listens on a port, with its command line; none if unknown.
pub fn holder(port: u16) -> Option<(i32, String)> {
    let sockets: Vec<String> =
        listeners("self").filter(|one| one.0 == port).map(|(_, socket)| socket).collect();
    let holds = |pid: &i32| held(*pid).any(|held| sockets.contains(&held));
    let pid = tree::pids(Path::new(tree::PROC)).find(holds)?;
    Some((pid, tree::command_line(pid).unwrap_or_default()))
}

/// The TCP ports on which these processes listen. Leaves out processes in another network than this one, such as a container's: their ports
/// say nothing about the ports here.
pub(crate) fn listened_to(processes: &[Pid]) -> BTreeSet<u16> {
    let network = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let here = network("self");
    let of = |pid: &Pid| {
        let pid = pid.as_raw_nonzero().get();
        let held: BTreeSet<String> = held(pid).collect();
        listeners(&pid.to_string()).filter(move |(_, socket)| held.contains(socket)).map(|(port, _)| port)
    };
    let is_here = |pid: &&Pid| network(&pid.as_raw_nonzero().to_string()) == here;
    processes.iter().filter(is_here).flat_map(of).collect()
}

/// All TCP ports in the network of a process that have a listener, each with the listener's socket in the words of `/proc/PID/fd`.
fn listeners(process: &str) -> impl Iterator<Item = (u16, String)> + use<> {
    let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/{process}/net/{name}")));
    tables.into_iter().flatten().flat_map(|text| {
        let listener = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
            (*fields.get(3)? == "0A").then_some(())?;
            Some((port, format!("socket:[{}]", fields.get(9)?)))
        };
        text.lines().skip(1).filter_map(listener).collect::<Vec<_>>()
    })
}

/// What a process has open, as `/proc/PID/fd` names it.
fn held(pid: i32) -> impl Iterator<Item = String> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|fd| fs::read_link(fd.path()).ok()?.into_os_string().into_string().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn free_ports_are_free_and_different() {
        let (one, two) = (free().unwrap(), free().unwrap());
        assert_ne!(one, two);
        assert!((FIRST..FIRST + COUNT).contains(&one));
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, one)).unwrap();
        assert_eq!(obstacle(one), Some(Obstacle::Taken));
        // Another process may look at the same port at this moment.
        let end = Instant::now() + SEARCH_PATIENCE;
        assert!((0..).take_while(|_| Instant::now() < end).any(|_| obstacle(two).is_none()));
        let (pid, _) = holder(one).unwrap();
        assert_eq!(pid, std::process::id() as i32);
        let ours = listened_to(&[rustix::process::getpid()]);
        assert!(ours.contains(&one) && !ours.contains(&two), "{ours:?}");
    }

    /// Claims all blocks but those of `others`.
    fn claim_but(others: &[u16]) -> impl Fn(u16) -> io::Result<UnixListener> {
        move |first| {
            if others.contains(&first) {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("deadheat-ports-test-{}-{number}", std::process::id());
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
        }
    }

    #[test]
    fn blocks_that_other_processes_claim_are_passed_over() {
        let mut blocks = Blocks::of(0);
        let taken = [FIRST, FIRST + BLOCK, FIRST + 3 * BLOCK];
        let got: Vec<u16> = (0..3).map(|_| blocks.next_block(claim_but(&taken))).collect();
        assert_eq!(got, [2, 4, 5].map(|block| FIRST + block * BLOCK));
        assert_eq!(blocks.claims.len(), CLAIMS);
    }

    #[test]
    fn where_all_blocks_are_claimed_or_none_can_be_all_ports_are_tried() {
        let all: Vec<u16> = (0..BLOCKS).map(|block| FIRST + block * BLOCK).collect();
        let mut blocks = Blocks::of(0);
        let got: Vec<u16> = (0..BLOCKS).map(|_| blocks.next_block(claim_but(&all))).collect();
        assert_eq!(got, all);
        let denied = |_: u16| Err(io::ErrorKind::PermissionDenied.into());
        let mut blocks = Blocks::of(0);
        let got: Vec<u16> = (0..BLOCKS).map(|_| blocks.next_block(denied)).collect();
        assert_eq!(got, all);
    }

    #[test]
    fn only_one_holds_a_claim() {
        let first = 1;
        let held = claim(first).unwrap();
        assert_eq!(claim(first).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(held);
        claim(first).unwrap();
    }
}
