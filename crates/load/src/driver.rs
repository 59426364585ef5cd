//! Owns: the calls to the operating system: sockets, readiness, timer, affinity, CPU time. Must not know requests,
//! answers or tallies.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::thread::{self, CpuSet};
use rustix::time::{self, ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use crate::address::Address;

const TIMER: u64 = u64::MAX;
const BATCH: usize = 256;

/// A clock that counts nanoseconds from its making and never goes back.
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

/// What a socket is ready for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readiness {
    /// What the socket was added with.
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The other side closed, or the socket failed.
    pub(crate) hangup: bool,
}

/// Readiness of many sockets, edge-triggered, and one timer.
pub(crate) struct Driver {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed_ns: Option<u64>,
    events: Vec<Event>,
    ready: usize,
}

impl Driver {
    pub(crate) fn new() -> Result<Driver, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Edge-triggered: a timer that rang needs not be read before it can ring again.
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        Ok(Driver { epoll, timer, armed_ns: None, events: vec![none; BATCH], ready: 0 })
    }

    /// Watches a socket until it is closed.
    pub(crate) fn watch(&self, socket: &OwnedFd, token: u64) -> Result<(), Errno> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)
    }

    /// Has the next wait end at `due_ns`, `in_ns` from now, without the millisecond grain of its timeout.
    pub(crate) fn ring(&mut self, due_ns: u64, in_ns: u64) -> Result<(), Errno> {
        if self.armed_ns == Some(due_ns) {
            return Ok(());
        }
        let value = timespec(Duration::from_nanos(in_ns.max(1)));
        let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: value };
        time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        self.armed_ns = Some(due_ns);
        Ok(())
    }

    /// Waits for readiness, at most `millis` (0: only looks); says how many are ready.
    pub(crate) fn wait(&mut self, millis: u64) -> Result<usize, Errno> {
        let timeout = timespec(Duration::from_millis(millis));
        self.ready = match epoll::wait(&self.epoll, &mut self.events[..], Some(&timeout)) {
            Ok(ready) => ready,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error),
        };
        Ok(self.ready)
    }

    /// The `index`-th of those ready; `None` if it was the timer.
    #[inline]
    pub(crate) fn readiness(&mut self, index: usize) -> Option<Readiness> {
        let Event { flags, data, .. } = self.events[index];
        if data.u64() == TIMER {
            self.armed_ns = None;
            return None;
        }
        Some(Readiness {
            token: data.u64(),
            readable: flags.contains(EventFlags::IN),
            writable: flags.contains(EventFlags::OUT),
            hangup: flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
        })
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: duration.subsec_nanos().into() }
}

/// An address in the form that the operating system wants.
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

    /// Begins to connect without waiting: the socket, and whether it is connected already.
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
                net::sockopt::set_tcp_nodelay(&socket, true)?;
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

/// Whether a connection that was begun has been made.
pub(crate) fn connected(socket: &OwnedFd) -> Result<(), Errno> {
    net::sockopt::socket_error(socket)?
}

#[inline]
pub(crate) fn receive(socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
    net::recv(socket, into, RecvFlags::empty()).map(|(count, _)| count)
}

#[inline]
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    net::send(socket, bytes, SendFlags::NOSIGNAL)
}

/// Ties the calling thread to one CPU.
pub(crate) fn pin(cpu: usize) -> Result<(), Errno> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(Errno::INVAL);
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    thread::sched_setaffinity(None, &set)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    let spent = time::clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}
