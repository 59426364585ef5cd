//! Ports of the loopback: finding a free one, checking one, and finding the process that holds one.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::{Mutex, PoisonError};

use crate::process::tree;

/// Ports come from below the range that the kernel uses for outgoing connections, so that no connection of the load generator can take
/// a port before the contender listens on it.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;
/// A process claims so many neighbouring ports at a time.
const BLOCK: u16 = 100;

/// A free port, which no other process of this module gets meanwhile. Consecutive calls give different ports.
///
/// # Errors
/// When none of the ten thousand ports is free.
pub fn free() -> io::Result<u16> {
    static CLAIMED: Mutex<Blocks> = Mutex::new(Blocks { tried: 0, last: None });
    let mut blocks = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
    blocks.next_port()
}

/// The blocks of ports that this process claimed, one after the other.
struct Blocks {
    /// So many blocks were tried.
    tried: u16,
    /// The first port of the current block, and how many of its ports were tried.
    last: Option<(u16, u16)>,
}

impl Blocks {
    fn next_port(&mut self) -> io::Result<u16> {
        // Ports are used again once all are through: by then, no connection to an earlier listener lingers.
        for _ in 0..u32::from(COUNT) + u32::from(BLOCK) {
            let (first, tried) = match self.last {
                Some(block) if block.1 < BLOCK => block,
                _ => (self.claim_block(), 0),
            };
            self.last = Some((first, tried + 1));
            if is_free(first + tried) {
                return Ok(first + tried);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!("ports {FIRST} to {} are all taken", FIRST + (COUNT - 1)),
        ))
    }

    /// The first port of a block that no other process claims. Where all blocks are claimed, of any: its ports are checked one by one.
    fn claim_block(&mut self) -> u16 {
        let blocks = COUNT / BLOCK;
        // Two processes of close numbers start far apart.
        let offset = (u64::from(std::process::id()) * 37 % u64::from(blocks)) as u16;
        for _ in 0..blocks {
            let first = FIRST + (offset + self.tried) % blocks * BLOCK;
            self.tried = (self.tried + 1) % blocks;
            if claim(first) {
                return first;
            }
        }
        FIRST + (offset + self.tried) % blocks * BLOCK
    }
}

/// Claims a block for as long as this process lives: by a socket whose name only one process of a network namespace can hold. False if
/// another process holds it; a block that is this process's already is claimed.
fn claim(first: u16) -> bool {
    static HELD: Mutex<Vec<(u16, UnixListener)>> = Mutex::new(Vec::new());
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if held.iter().any(|(block, _)| *block == first) {
        return true;
    }
    let name = format!("deadheat-ports-{first}");
    let socket = SocketAddr::from_abstract_name(name).and_then(|name| UnixListener::bind_addr(&name));
    socket.map(|socket| held.push((first, socket))).is_ok()
}

/// Whether a listener can bind this port on the loopback and on all addresses.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        && TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

/// The process that listens on a port, with its command line; none if unknown.
pub fn holder(port: u16) -> Option<(i32, String)> {
    let inodes: Vec<String> =
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().filter_map(|table| listener(table, port)).collect();
    let entries = fs::read_dir("/proc").ok()?;
    let mut pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let pid = pids.find(|pid| holds(*pid, &inodes))?;
    Some((pid, tree::command_line(pid).unwrap_or_default()))
}

fn listener(table: &str, port: u16) -> Option<String> {
    let text = fs::read_to_string(table).ok()?;
    text.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let local = fields.get(1)?.rsplit_once(':')?.1;
        let listens = *fields.get(3)? == "0A" && u16::from_str_radix(local, 16).ok()? == port;
        listens.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
    })
}

fn holds(pid: i32, inodes: &[String]) -> bool {
    let Ok(fds) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    fds.flatten()
        .filter_map(|fd| fs::read_link(fd.path()).ok())
        .any(|target| inodes.iter().any(|inode| target.as_os_str() == inode.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_are_free_and_different() {
        let (one, two) = (free().unwrap(), free().unwrap());
        assert_ne!(one, two);
        assert!((FIRST..FIRST + COUNT).contains(&one));
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, one)).unwrap();
        assert!(!is_free(one));
        let (pid, _) = holder(one).unwrap();
        assert_eq!(pid, std::process::id() as i32);
    }

    #[test]
    fn a_block_that_another_process_claims_is_passed_over() {
        let mut blocks = Blocks { tried: 0, last: None };
        let first = blocks.claim_block();
        assert!(claim(first), "it is this process's own");
        let name = SocketAddr::from_abstract_name(format!("deadheat-ports-{first}")).unwrap();
        assert!(UnixListener::bind_addr(&name).is_err(), "and no other's");

        let offset = (first - FIRST) / BLOCK;
        let next = FIRST + (offset + 1) % (COUNT / BLOCK) * BLOCK;
        let name = SocketAddr::from_abstract_name(format!("deadheat-ports-{next}")).unwrap();
        let _other = UnixListener::bind_addr(&name);
        assert_ne!(blocks.claim_block(), next);
    }
}
