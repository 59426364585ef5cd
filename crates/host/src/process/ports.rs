//! Ports of the loopback: finding a free one, checking one, and finding the process that holds one.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::process::tree;

/// Ports come from below the range that the kernel uses for outgoing connections, so that no connection of the load generator can take
/// a port before the contender listens on it.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A free port. Consecutive calls give different ports.
///
/// # Errors
/// When none of the ten thousand ports is free.
pub fn free() -> io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Two runs with close process numbers start far apart here.
    let offset = (u64::from(std::process::id()) * 7_919 % u64::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        // A stride that shares no factor with the count visits every port; the offset keeps runs apart.
        let port = FIRST + (u32::from(offset) + u32::from(step) * 37).rem_euclid(u32::from(COUNT)) as u16;
        if is_free(port) {
            return Ok(port);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        format!("ports {FIRST} to {} are all taken", FIRST + (COUNT - 1)),
    ))
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
}
