//! What is measured of a link before anything is asked over it: round trips, the rate, and losses.
//!
//! Owns: packets of our own from one end to the other. Must not know: how the link is made.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use deadheat_load::nanos;
use deadheat_record::{Link, LinkReading};

use super::WIRE;
use super::namespace::Namespace;

/// How long round trips are measured, and how many are at least and at most.
const ROUND_TRIPS_FOR: Duration = Duration::from_millis(1_500);
const FEWEST_ROUND_TRIPS: usize = 11;
const MOST_ROUND_TRIPS: usize = 300;
/// How long the first packets may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the rate is measured, and the packets that have to arrive in this time.
const RATE_FOR: Duration = Duration::from_millis(700);
const RATE_PACKETS: u64 = 400;
/// The contents of a packet that fits into a tunnel's, and of one that counts losses; the headers of both.
const LARGE: usize = 1_350;
const SMALL: usize = 64;
const HEADERS: usize = 42;
/// Packets to count losses with: this many in one second, or as many as take a quarter of the rate.
const PROBES: u64 = 4_000;
const FEWEST_PROBES: u64 = 300;
/// How long packets are waited for beside their delay.
const STRAGGLERS: Duration = Duration::from_millis(300);

/// Round trips over the link: the median in nanoseconds, and their number.
pub(super) type RoundTrips = (u64, u64);

/// Measures everything of a link but what it would be without its settings.
pub(super) fn reading(
    load: &Namespace,
    servers: &Namespace,
    load_address: Ipv4Addr,
    link: &Link,
    plain: RoundTrips,
    tunnel: Option<String>,
) -> io::Result<LinkReading> {
    let (round_trip_ns, round_trips) = round_trips(load, servers)?;
    let there = Way { from: load, to: servers, address: (Link::SERVERS, 0).into() };
    let back = Way { from: servers, to: load, address: (load_address, 0).into() };
    let rate_bits_per_s = match link.rate_bits_per_s {
        Some(asked) => Some((there.rate(asked)?, back.rate(asked)?)),
        None => None,
    };
    let (there, back) = (there.losses(link)?, back.losses(link)?);
    Ok(LinkReading {
        plain_round_trip_ns: plain.0,
        round_trip_ns,
        round_trips,
        rate_bits_per_s,
        sent: (there.0, back.0),
        lost: (there.1, back.1),
        tunnel,
    })
}

/// Sends a byte from the load to the servers and back, again and again, on one connection.
pub(super) fn round_trips(load: &Namespace, servers: &Namespace) -> io::Result<RoundTrips> {
    let listener = servers.inside(|| TcpListener::bind((Link::SERVERS, 0)))??;
    let address = listener.local_addr()?;
    let answering = thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut byte = [0];
        while stream.read(&mut byte)? == 1 {
            stream.write_all(&byte)?;
        }
        Ok(())
    });
    let mut stream = load.inside(|| TcpStream::connect_timeout(&address, PATIENCE))??;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut trips: Vec<u64> = Vec::new();
    let begin = Instant::now();
    while trips.len() < FEWEST_ROUND_TRIPS
        || (trips.len() < MOST_ROUND_TRIPS && begin.elapsed() < ROUND_TRIPS_FOR)
    {
        let sent = Instant::now();
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])?;
        trips.push(nanos(sent.elapsed()));
    }
    drop(stream);
    // It ends when the connection is closed.
    let _ = answering.join();
    trips.sort_unstable();
    Ok((trips[trips.len() / 2], trips.len() as u64))
}

/// One direction of a link.
struct Way<'a> {
    from: &'a Namespace,
    to: &'a Namespace,
    address: SocketAddr,
}

impl Way<'_> {
    /// A socket that sends, and one that receives.
    fn sockets(&self) -> io::Result<(UdpSocket, UdpSocket)> {
        let receiving = self.to.inside(|| UdpSocket::bind(self.address))??;
        let address = receiving.local_addr()?;
        let sending = self.from.inside(|| {
            let socket = UdpSocket::bind(("0.0.0.0", 0))?;
            socket.connect(address)?;
            io::Result::Ok(socket)
        })??;
        Ok((sending, receiving))
    }

    /// Bits per second that arrive when more is sent than the link takes.
    fn rate(&self, asked: u64) -> io::Result<u64> {
        let (sending, _receiving) = self.sockets()?;
        let enough = AtomicBool::new(false);
        let packet_bits = ((LARGE + HEADERS) * 8) as u64;
        let length =
            RATE_FOR.max(Duration::from_secs_f64((RATE_PACKETS * packet_bits) as f64 / asked as f64));
        let pause = Duration::from_secs_f64(packet_bits as f64 / (asked as f64 * 1.5));
        thread::scope(|scope| {
            scope.spawn(|| {
                let begin = Instant::now();
                let mut sent: u32 = 0;
                while !enough.load(Ordering::Relaxed) {
                    // Packets that do not fit are lost on the way, and an interface that is busy refuses some.
                    let _ = sending.send(&[0; LARGE]);
                    sent = sent.saturating_add(1);
                    let early = (pause * sent).saturating_sub(begin.elapsed());
                    if early > Duration::from_millis(1) {
                        thread::sleep(early);
                    }
                }
            });
            let counted = (|| {
                // The queue fills up.
                thread::sleep(Duration::from_millis(200).max(length / 4));
                let (begin, before) = (Instant::now(), self.to.inside(received_bytes)??);
                thread::sleep(length);
                let after = self.to.inside(received_bytes)??;
                io::Result::Ok(((after - before) * 8) as f64 / begin.elapsed().as_secs_f64())
            })();
            enough.store(true, Ordering::Relaxed);
            counted.map(|rate| rate.round() as u64)
        })
    }

    /// Sends packets that take little of the link. Returns how many, and how many did not arrive.
    fn losses(&self, link: &Link) -> io::Result<(u64, u64)> {
        let (sending, receiving) = self.sockets()?;
        let bits = ((SMALL + HEADERS) * 8) as u64;
        let per_s = link.rate_bits_per_s.map_or(PROBES, |rate| (rate / 4 / bits).clamp(1, PROBES));
        let count = per_s.max(FEWEST_PROBES);
        let wait = Duration::from_nanos(link.delay_ns + link.jitter_ns) + STRAGGLERS;
        receiving.set_read_timeout(Some(wait))?;
        let arrived = thread::scope(|scope| {
            scope.spawn(|| {
                let begin = Instant::now();
                for number in 0..count {
                    let due = Duration::from_secs_f64(number as f64 / per_s as f64);
                    thread::sleep(due.saturating_sub(begin.elapsed()));
                    let _ = sending.send(&[0; SMALL]);
                }
            });
            let mut arrived: u64 = 0;
            while arrived < count {
                match receiving.recv(&mut [0; SMALL]) {
                    Ok(_) => arrived += 1,
                    Err(error)
                        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
                    {
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(arrived)
        })?;
        Ok((count, count - arrived))
    }
}

/// What the wire's interface of the calling thread's network has received, in bytes, with the headers of packets.
fn received_bytes() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    let counters = text.lines().find_map(|line| line.trim_start().strip_prefix(WIRE)?.strip_prefix(':'));
    let received = counters.and_then(|line| line.split_whitespace().next()?.parse().ok());
    received.ok_or_else(|| io::Error::other("the kernel does not count the bytes of an interface"))
}
