//! Owns: sockets, clock, affinity and CPU time: what both drivers need from the operating system. Must not know slots.

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustix::thread::{self, CpuSet};
use rustix::time::{self, ClockId};

use crate::address::Address;

/// A monotonic clock in nanoseconds since its creation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock(Instant::now())
    }

    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// An address in the form that the operating system needs.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Tcp(std::net::SocketAddr),
    Unix(SocketAddrUnix),
}

impl Target {
    pub(crate) fn new(address: &Address) -> Result<Target, Errno> {
        match address {
            Address::Tcp(address) => Ok(Target::Tcp(*address)),
            Address::Unix(path) => SocketAddrUnix::new(path.as_path()).map(Target::Unix),
        }
    }

    /// Begins to connect without waiting. Returns the socket, and whether it is connected already.
    pub(crate) fn connect(&self) -> Result<(OwnedFd, bool), Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = match self {
            Target::Tcp(std::net::SocketAddr::V4(_)) => AddressFamily::INET,
            Target::Tcp(std::net::SocketAddr::V6(_)) => AddressFamily::INET6,
            Target::Unix(_) => AddressFamily::UNIX,
        };
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        let begun = match self {
            Target::Tcp(address) => {
                sockopt::set_tcp_nodelay(&socket, true)?;
                // A congestion control that paces (bbr) would delay sends and cost CPU time. Where the system does not
                // allow reno, its default stays.
                let _ = sockopt::set_tcp_congestion(&socket, "reno");
                net::connect(&socket, address)
            }
            Target::Unix(address) => net::connect(&socket, address),
        };
        match begun {
            Ok(()) => Ok((socket, true)),
            Err(Errno::INPROGRESS | Errno::INTR) => Ok((socket, false)),
            Err(error) => Err(error),
        }
    }
}

/// Whether a connection attempt has succeeded.
pub(super) fn connected(socket: &OwnedFd) -> Result<(), Errno> {
    sockopt::socket_error(socket)?
}

#[inline]
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    net::send(socket, bytes, SendFlags::NOSIGNAL)
}

/// Pins the calling thread to one CPU.
pub(crate) fn pin(cpu: usize) -> Result<(), Errno> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(Errno::INVAL);
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    thread::sched_setaffinity(None, &set)
}

/// Makes the calling thread's timers fire when they are due, not up to 50 us later.
pub(crate) fn sharpen_timers() {
    // If the system refuses, the thread wakes up later, and the send lag shows it.
    let _ = thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    let spent = time::clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}

/// How long the calling thread has waited, runnable, for a CPU, in nanoseconds, and how often it was scheduled; `None`
/// where the kernel does not report it.
pub(crate) fn thread_run_delay() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut numbers = text.split_ascii_whitespace().skip(1).map(|word| word.parse().ok());
    numbers.next()?.zip(numbers.next()?)
}
