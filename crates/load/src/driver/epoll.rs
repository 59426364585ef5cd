//! Owns: the driver over epoll: edge-triggered readiness, one call for each send and receive. Must not know what the
//! bytes mean.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use rustix::time::{self, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use super::{Driver, Event, MAX_DATA, Target, Wake, os, token};

const TIMER: u64 = u64::MAX;
const BATCH: usize = 256;

/// An epoll instance over many sockets, with one timer.
pub(crate) struct Epoll {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed_ns: Option<u64>,
    slots: Vec<Slot>,
    events: Vec<epoll::Event>,
    /// How many events are ready, and the index of the next one.
    ready: usize,
    at: usize,
    /// The slot that is being read, and whether to read it to its end.
    reading: Option<(usize, bool)>,
    buffer: Vec<u8>,
    length: usize,
}

#[derive(Default)]
struct Slot {
    socket: Option<OwnedFd>,
    generation: u32,
    connecting: bool,
    /// Whether the last send found no room, and the socket has not become writable since.
    full: bool,
    /// Whether the last send took fewer bytes than it was given, so that the next one continues it.
    partial: bool,
    /// Whether the other side had ended the connection before the last send, and that send took all its bytes.
    overtaken: bool,
}

impl Epoll {
    /// Sets the timer to end the next wait `in_ns` from now. The timeout of the wait itself has a resolution of a
    /// millisecond.
    fn ring(&mut self, due_ns: u64, in_ns: u64) -> Result<(), Errno> {
        if self.armed_ns == Some(due_ns) {
            return Ok(());
        }
        let value = timespec(Duration::from_nanos(in_ns.max(1)));
        let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: value };
        time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        self.armed_ns = Some(due_ns);
        Ok(())
    }

    /// Reads more if there may be something to read.
    #[inline]
    fn read(&mut self) -> Option<(usize, Event)> {
        let (slot, to_the_end) = self.reading?;
        let socket = self.slots[slot].socket.as_ref()?;
        loop {
            match net::recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => {
                    self.reading = None;
                    return Some((slot, Event::Ended));
                }
                Ok((count, _)) => {
                    self.length = count;
                    if count < MAX_DATA && !to_the_end {
                        self.reading = None;
                    }
                    return Some((slot, Event::Data));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.reading = None;
                    return None;
                }
                Err(error) => {
                    self.reading = None;
                    return Some((slot, Event::Broken(error)));
                }
            }
        }
    }

    /// Translates a readiness into an event of its slot.
    #[inline]
    fn readiness(&mut self, data: u64, flags: EventFlags) -> Option<(usize, Event)> {
        let index = (data & 0xffff_ffff) as usize;
        let slot = &mut self.slots[index];
        let socket = slot.socket.as_ref()?;
        if token(index, slot.generation) != data {
            return None;
        }
        let hangup = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let writable = flags.contains(EventFlags::OUT);
        if slot.connecting && !(writable || hangup) {
            return None;
        }
        if flags.contains(EventFlags::IN) || hangup {
            self.reading = Some((index, hangup));
        }
        if slot.connecting {
            slot.connecting = false;
            return match os::connected(socket) {
                Ok(()) => Some((index, Event::Connected)),
                Err(error) => {
                    self.close(index);
                    Some((index, Event::Refused(error)))
                }
            };
        }
        let again = slot.full && writable;
        slot.full &= !again;
        again.then_some((index, Event::Writable))
    }
}

impl Driver for Epoll {
    const NAME: &'static str = "epoll";
    const FRESH: u32 = 1;

    fn new(slots: usize) -> Result<Epoll, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Edge-triggered: the timer can fire again without being read.
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        let none = epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        Ok(Epoll {
            epoll,
            timer,
            armed_ns: None,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            events: vec![none; BATCH],
            ready: 0,
            at: 0,
            reading: None,
            buffer: vec![0; MAX_DATA],
            length: 0,
        })
    }

    fn connect(&mut self, slot: usize, target: &Target) -> Result<(), Errno> {
        let entry = &mut self.slots[slot];
        let (socket, _) = target.connect()?;
        entry.generation = entry.generation.wrapping_add(1);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &socket, EventData::new_u64(token(slot, entry.generation)), flags)?;
        // Also if the connection is made at once: it then becomes writable, which is an event.
        let generation = entry.generation;
        *entry = Slot { socket: Some(socket), generation, connecting: true, ..Slot::default() };
        Ok(())
    }

    #[inline]
    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno> {
        let entry = &mut self.slots[slot];
        let Some(socket) = &entry.socket else { return Err(Errno::NOTCONN) };
        entry.overtaken = !entry.partial && self.reading == Some((slot, true));
        let mut sent = 0;
        while sent < bytes.len() {
            match os::send(socket, &bytes[sent..]) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    entry.full = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        entry.partial = sent < bytes.len();
        Ok(sent)
    }

    #[inline]
    fn overtaken(&mut self, slot: usize) -> bool {
        self.slots[slot].overtaken
    }

    fn close(&mut self, slot: usize) {
        self.slots[slot].socket = None;
        self.reading = self.reading.filter(|(reading, _)| *reading != slot);
    }

    fn hand_over(&mut self) -> Result<(), Errno> {
        // Each `send` has already sent its bytes.
        Ok(())
    }

    fn wait(&mut self, wake: Wake) -> Result<(), Errno> {
        let timeout = match wake {
            Wake::Now => Duration::ZERO,
            Wake::Within(ns) => Duration::from_millis(ns.div_ceil(1_000_000)),
            Wake::At { due_ns, in_ns } => {
                self.ring(due_ns, in_ns)?;
                Duration::from_millis(in_ns / 1_000_000 + 2)
            }
        };
        (self.ready, self.at) = (0, 0);
        self.ready = match epoll::wait(&self.epoll, &mut self.events[..], Some(&timespec(timeout))) {
            Ok(ready) => ready,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error),
        };
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Option<(usize, Event)> {
        loop {
            if let Some(event) = self.read() {
                return Some(event);
            }
            self.reading = None;
            if self.at == self.ready {
                return None;
            }
            let epoll::Event { flags, data, .. } = self.events[self.at];
            self.at += 1;
            if data.u64() == TIMER {
                self.armed_ns = None;
            } else if let Some(event) = self.readiness(data.u64(), flags) {
                return Some(event);
            }
        }
    }

    #[inline]
    fn data(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: duration.subsec_nanos().into() }
}
