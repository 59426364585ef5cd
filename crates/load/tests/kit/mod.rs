//! Owns: small servers for the tests, each with a different behaviour. Each connection has a thread, which ends with the test.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "only tests use it")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use deadheat_load::*;

/// What a connection does with its n-th request (from 0, over all connections). The server hangs up if this returns false.
pub(crate) type Behaviour = dyn Fn(&mut TcpStream, u64) -> bool + Send + Sync;

/// A server on a free port.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) served: Arc<AtomicU64>,
    pub(crate) accepted: Arc<AtomicU64>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    dead: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start(behaviour: impl Fn(&mut TcpStream, u64) -> bool + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            address: listener.local_addr().unwrap(),
            served: Arc::default(),
            accepted: Arc::default(),
            open: Arc::default(),
            dead: Arc::default(),
        };
        let behaviour: Arc<Behaviour> = Arc::new(behaviour);
        let (served, accepted) = (server.served.clone(), server.accepted.clone());
        let (open, dead) = (server.open.clone(), server.dead.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                if dead.load(Ordering::SeqCst) {
                    return;
                }
                stream.set_nodelay(true).unwrap();
                accepted.fetch_add(1, Ordering::SeqCst);
                open.lock().unwrap().push(stream.try_clone().unwrap());
                let (behaviour, served) = (behaviour.clone(), served.clone());
                thread::spawn(move || serve(stream, &*behaviour, &served));
            }
        });
        server
    }

    pub(crate) fn at(&self) -> Address {
        Address::Tcp(self.address)
    }

    /// Closes all connections, as servers close idle ones.
    pub(crate) fn close_all(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Closes the listener and all connections.
    pub(crate) fn kill(&self) {
        self.dead.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        self.close_all();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn serve(mut stream: TcpStream, behaviour: &Behaviour, served: &AtomicU64) {
    while read_request(&mut stream) {
        let number = served.fetch_add(1, Ordering::SeqCst);
        if !behaviour(&mut stream, number) {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// Reads one request head (most tests send no body). Returns false at the end of the connection.
pub(crate) fn read_request(stream: &mut impl Read) -> bool {
    let (mut seen, mut byte) = (0, [0; 256]);
    loop {
        match stream.read(&mut byte) {
            Ok(count) if count > 0 => {
                for b in &byte[..count] {
                    seen = match (seen, b) {
                        (0 | 2, b'\r') | (1 | 3, b'\n') => seen + 1,
                        (_, b'\r') => 1,
                        _ => 0,
                    };
                }
                if seen == 4 {
                    return true;
                }
            }
            _ => return false,
        }
    }
}

/// Writes `text`, and returns whether that worked.
pub(crate) fn say(stream: &mut impl Write, text: &str) -> bool {
    stream.write_all(text.as_bytes()).is_ok()
}

/// With `until_the_end`, holds back everything written from now on and sends it together with the end of the connection.
pub(crate) fn hold(stream: &TcpStream, until_the_end: bool) {
    rustix::net::sockopt::set_tcp_cork(stream, until_the_end).unwrap();
}

/// Writes and hangs up.
pub(crate) fn say_last(stream: &mut impl Write, text: &str) -> bool {
    say(stream, text);
    false
}

pub(crate) const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

pub(crate) fn get() -> Prepared {
    Prepared {
        bytes: request_bytes("GET", "/", "test", &[], b"").unwrap(),
        head: false,
        expect: Expectation { status: StatusRule::Exact(200), body: BodyRule::exactly(b"hello") },
    }
}

pub(crate) fn config(address: Address, connections: usize) -> SessionConfig {
    SessionConfig {
        backend: crate::BACKEND,
        connect_timeout: Duration::from_secs(60),
        timeout: Duration::from_secs(60),
        ..SessionConfig::to(address, connections, Requests::one(get()))
    }
}

pub(crate) fn order(pacer: Pacer, limit: Limit) -> SliceOrder {
    SliceOrder { pacer, limit, settle: Duration::ZERO, start: 0 }
}

pub(crate) fn constant(rate_per_s: f64) -> Pacer {
    Pacer::Open { rate: Rate::constant(rate_per_s).unwrap(), arrivals: Arrivals::Constant }
}

pub(crate) fn closed(requests: u64) -> SliceOrder {
    order(Pacer::Closed, Limit::requests(requests))
}

pub(crate) fn closed_for(millis: u64) -> SliceOrder {
    SliceOrder::closed(Duration::from_millis(millis))
}

/// Checks what must hold for every tally.
pub(crate) fn check(tally: &Tally) {
    assert_eq!(tally.due, tally.outcomes.total(), "{:?}", tally.outcomes);
    let Outcomes { ok, status, mismatch, .. } = tally.outcomes;
    assert_eq!(tally.completions, ok + status + mismatch);
    assert_eq!(tally.completions, tally.status.iter().map(|(_, count)| count).sum::<u64>());
    assert!(tally.counted() <= tally.completions);
    for times in [&tally.latency, &tally.service, &tally.send_lag] {
        assert!(times.count() <= tally.completions);
        assert_eq!(times.count(), tally.latency.count());
    }
}

/// Whether the only worker had the CPU, or waited for it, for over half of the time.
/// The hypervisor may take some of that time. A worker that sleeps between answers sleeps nearly all the time here.
pub(crate) fn never_slept(tally: &Tally) -> bool {
    tally.cpu_ns + tally.run_delay_ns.unwrap_or(0) > tally.wall_ns / 2
}

/// The first tally of a worker that never slept, or the last of ten. If the hypervisor takes the processor away for most of a slice, that looks like
/// sleep; a worker that sleeps does so in all of them.
pub(crate) fn first_awake(mut one: impl FnMut() -> Tally) -> Tally {
    let mut tally = one();
    for _ in 0..9 {
        if never_slept(&tally) {
            break;
        }
        tally = one();
    }
    tally
}

/// Opens a session, runs one slice, checks its tally: see [`loaded`].
pub(crate) fn run(config: SessionConfig, order: &SliceOrder) -> Tally {
    loaded(&mut Session::open(config).unwrap(), order)
}

/// Runs one slice, checks its tally. On a busy machine a worker may get no processor before the slice is over, and sends nothing. Such a slice
/// runs again, a few times.
pub(crate) fn loaded(session: &mut Session, order: &SliceOrder) -> Tally {
    let mut tally = session.slice(order).unwrap();
    for _ in 0..20 {
        if tally.due > 0 {
            break;
        }
        tally = session.slice(order).unwrap();
    }
    check(&tally);
    tally
}
