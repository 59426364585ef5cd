//! Servers that close connections without notice: which requests the generator sends again, and that it repeats no others.

use std::collections::HashMap;
use std::io::Read;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::kit::*;
use deadheat_load::*;

/// A server that calls `behaviour` for each request, with its path and its number on the connection (from 0).
/// It hangs up if `behaviour` returns false. It counts the requests for each path; `?` counts requests without a path.
struct Paths {
    address: Address,
    asked: Arc<Mutex<HashMap<String, u64>>>,
}

impl Paths {
    fn start(behaviour: impl Fn(&mut TcpStream, &str, u64) -> bool + Send + Sync + 'static) -> Paths {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(HashMap::new()));
        let (counted, behaviour) = (asked.clone(), Arc::new(behaviour));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (counted, behaviour) = (counted.clone(), behaviour.clone());
                std::thread::spawn(move || serve(stream, &counted, &*behaviour));
            }
        });
        Paths { address, asked }
    }

    /// The number of requests.
    fn asked(&self) -> u64 {
        self.asked.lock().unwrap().values().sum()
    }
}

fn serve(
    mut stream: TcpStream,
    asked: &Mutex<HashMap<String, u64>>,
    behaviour: &dyn Fn(&mut TcpStream, &str, u64) -> bool,
) {
    stream.set_nodelay(true).unwrap();
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    for number in 0.. {
        let end = loop {
            if let Some(end) = text.find("\r\n\r\n") {
                break end + 4;
            }
            let Ok(count @ 1..) = stream.read(&mut piece) else { return };
            text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
        };
        let path = text.split(' ').nth(1).unwrap_or("?").to_owned();
        *asked.lock().unwrap().entry(path.clone()).or_default() += 1;
        text.drain(..end);
        if !behaviour(&mut stream, &path, number) {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

/// `count` requests, each with a different path and with the header fields `head`. The path is also the expected body of the answer.
fn named(method: &str, count: u32, head: &[(String, String)]) -> Arc<Requests> {
    let request = |number| {
        let path = format!("/{number:05}");
        let bytes = request_bytes(method, &path, "test", head, b"").unwrap();
        let body = BodyRule::exactly(path.as_bytes());
        Prepared { bytes, head: false, expect: Expectation { status: StatusRule::Exact(200), body } }
    };
    Arc::new(Requests::in_turn((0..count).map(request).collect()).unwrap())
}

fn echo(stream: &mut TcpStream, path: &str) -> bool {
    say(stream, &format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{path}", path.len()))
}

#[test]
fn a_request_under_way_on_a_connection_that_ends_is_not_sent_on_the_next_one() {
    // The last answer on a connection and the connection's end come in one packet, when the next request is already under way.
    let server = Paths::start(|stream, path, number| {
        let last = number == 4;
        hold(stream, last);
        echo(stream, path) && !last
    });
    let config = SessionConfig { requests: named("GET", 40, &[]), ..config(server.address.clone(), 32) };
    let tally = run(config, &closed(8_000));
    assert_eq!((tally.outcomes.ok, tally.due), (8_000, 8_000), "{:?} {:?}", tally.outcomes, tally.faults);
    assert!(tally.retried > 1_000, "{}", tally.retried);
    assert_eq!(server.asked(), 8_000, "each request was to be read by the server once");
}

/// A server that pauses after each request, and hangs up on every 20th without an answer. Also returns the number of hang-ups.
fn dropping(pause: Duration) -> (Paths, Arc<AtomicU64>) {
    let (served, dropped) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    let counted = dropped.clone();
    let server = Paths::start(move |stream, path, _| {
        std::thread::sleep(pause);
        let drop = served.fetch_add(1, Ordering::SeqCst) % 20 == 19;
        counted.fetch_add(u64::from(drop), Ordering::SeqCst);
        !drop && echo(stream, path)
    });
    (server, dropped)
}

#[test]
fn requests_that_were_read_and_dropped_are_failures() {
    for (method, pause_ms) in [("GET", 3), ("POST", 3), ("POST", 0)] {
        let (server, dropped) = dropping(Duration::from_millis(pause_ms));
        let config = SessionConfig { requests: named(method, 40, &[]), ..config(server.address.clone(), 4) };
        let tally = run(config, &closed(200));
        assert_eq!(
            (tally.outcomes.read, tally.outcomes.ok, tally.retried),
            (10, 190, 0),
            "{method} {:?}",
            tally.faults
        );
        assert_eq!((server.asked(), dropped.load(Ordering::SeqCst)), (200, 10), "{method}");
    }
}

#[test]
fn requests_dropped_at_once_are_failures_or_counted_as_repeated() {
    let (server, dropped) = dropping(Duration::ZERO);
    let config = SessionConfig { requests: named("GET", 40, &[]), ..config(server.address.clone(), 4) };
    let tally = run(config, &closed(4_000));
    let dropped = dropped.load(Ordering::SeqCst);
    assert_eq!(tally.outcomes.read + tally.retried, dropped, "{:?}", tally.faults);
    assert_eq!(server.asked(), tally.due + tally.retried);
    assert!(dropped >= 200 && tally.outcomes.read > 0, "{} of {dropped} repeated", tally.retried);
}
