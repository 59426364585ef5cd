//! Servers that misbehave badly: the generator counts each request once, and does not crash, hang or grow.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadheat_load::*;
use proptest::prelude::*;

use crate::kit::*;

fn impatient(address: Address, connections: usize) -> SessionConfig {
    SessionConfig { timeout: Duration::from_millis(150), ..config(address, connections) }
}

fn causes(tally: &Tally) -> Vec<String> {
    tally.faults.iter().map(|fault| format!("{:?}: {}", fault.outcome, fault.cause)).collect()
}

#[test]
fn what_is_no_sound_answer_is_a_protocol_error_with_its_reason() {
    for (text, reason) in [
        ("\u{1}\u{2}\u{3}garbage\r\n\r\n", "status line"),
        ("SSH-2.0-OpenSSH_9.2p1\r\n", "status line"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", "Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello", "Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", "Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhello", "after the end"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx", "chunk"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx", "chunk"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n", "chunk"),
    ] {
        let server = Server::start(move |stream, _| say(stream, text));
        let tally = run(config(server.at(), 2), &closed(6));
        assert_eq!((tally.outcomes.protocol, tally.due), (6, 6), "{text:?} {:?}", tally.outcomes);
        let causes = causes(&tally);
        assert!(causes.len() == 1 && causes[0].contains(reason), "{text:?}: {causes:?}");
    }
}

#[test]
fn a_head_without_end_is_given_up_early() {
    let server = Server::start(|stream, _| {
        let line = format!("X-Long: {}\r\n", "y".repeat(8_000));
        say(stream, "HTTP/1.1 200 OK\r\n") && (0..1_250).all(|_| say(stream, &line))
    });
    let tally = run(config(server.at(), 2), &closed(6));
    assert_eq!((tally.outcomes.protocol, tally.due), (6, 6), "{:?}", tally.outcomes);
    assert!(tally.bytes_read < 6 * 1_000_000, "read on to {} bytes", tally.bytes_read);
}

#[test]
fn interim_answers_without_end_are_given_up_early() {
    let server = Server::start(|stream, _| {
        let many = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(1_000);
        (0..200).all(|_| say(stream, &many))
    });
    let tally = run(config(server.at(), 1), &closed(2));
    assert_eq!((tally.outcomes.protocol, tally.due), (2, 2), "{:?}", tally.outcomes);
    assert!(tally.bytes_read < 2_000_000, "read on to {} bytes", tally.bytes_read);
}

#[test]
fn a_server_too_slow_to_finish_is_timed_out() {
    let server = Server::start(|stream, _| {
        HELLO.as_bytes().chunks(1).all(|byte| {
            std::thread::sleep(Duration::from_millis(50));
            stream.write_all(byte).is_ok()
        })
    });
    let tally = run(impatient(server.at(), 2), &closed(4));
    assert_eq!((tally.outcomes.timeout, tally.due), (4, 4), "{:?}", tally.outcomes);
}

#[test]
fn a_length_larger_than_the_body_is_waited_for_or_broken() {
    for (closes, outcome) in [(false, Outcome::Timeout), (true, Outcome::Read)] {
        let server = Server::start(move |stream, _| {
            say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello") && !closes
        });
        let session = if closes { config(server.at(), 2) } else { impatient(server.at(), 2) };
        let tally = run(session, &closed(4));
        assert_eq!((tally.outcomes.of(outcome), tally.due), (4, 4), "{:?}", tally.outcomes);
    }
}

/// Makes a connection end with a reset.
fn reset(stream: &TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
}

#[test]
fn resets_are_read_errors() {
    for before in ["", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"] {
        let server = Server::start(move |stream, _| {
            say(stream, before);
            reset(stream);
            false
        });
        let tally = run(config(server.at(), 2), &closed(6));
        let broken = tally.outcomes.read + tally.outcomes.write;
        assert_eq!((broken, tally.due), (6, 6), "{before:?} {:?} {:?}", tally.outcomes, causes(&tally));
    }
}

#[test]
fn answers_that_come_before_the_next_request_leaves_are_not_taken_for_its_answer() {
    // Each answer comes twice and fills one receive buffer, so that two receives complete at once.
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 8000\r\nX: ";
    let body = "x".repeat(8_000);
    let text = format!("{head}{}\r\n\r\n{body}", "y".repeat(8_192 - 8_000 - head.len() - 4));
    assert_eq!(text.len(), 8_192);
    let twice = text.repeat(2);
    let server = Server::start(move |stream, _| say(stream, &twice));
    let expect = Expectation { status: StatusRule::Exact(200), body: BodyRule::exactly(body.as_bytes()) };
    let requests = Arc::new(Requests::one(Prepared { expect, ..get() }));
    let tally = run(SessionConfig { requests, ..config(server.at(), 1) }, &closed(20));
    assert_eq!((tally.outcomes.ok + tally.outcomes.protocol, tally.due), (20, 20), "{:?}", tally.faults);
    let served = server.served.load(std::sync::atomic::Ordering::SeqCst);
    assert!(tally.outcomes.ok <= 10 && tally.outcomes.ok <= served, "{} of {served}", tally.outcomes.ok);
}

#[test]
fn answers_that_come_while_none_is_owed_are_counted_and_end_the_connection() {
    // The second answer is correct too, but it comes while the connection is idle.
    for (again, unsolicited) in [(HELLO, true), ("HTTP/1.1 408 Request Timeout\r\n\r\n", false)] {
        let server = Server::start(move |stream, _| {
            let first = say(stream, HELLO);
            std::thread::sleep(Duration::from_millis(5));
            first && say(stream, again)
        });
        // Requests go out 1 s apart: what the server sends after 5 ms arrives before the next request. On a very busy machine one of
        // them may come later, and is then a wrong answer to that request.
        let tally = run(config(server.at(), 1), &order(constant(1.0), Limit::requests(4)));
        let (ok, wrong) = (tally.outcomes.ok, tally.outcomes.errors());
        assert!(tally.due == 4 && ok + wrong == 4 && ok >= 2, "{:?}", tally.faults);
        let (counted, other) = match unsolicited {
            true => (tally.unsolicited, tally.closed_by_server),
            false => (tally.closed_by_server, tally.unsolicited),
        };
        assert!((1..=4).contains(&counted) && other == 0, "{counted} {other}");
    }
}

#[test]
fn surplus_answers_that_differ_are_errors() {
    // The second answer comes with the first one, or a little later.
    for pause_ms in [0, 5] {
        let server = Server::start(move |stream, _| {
            let first = say(stream, HELLO);
            std::thread::sleep(Duration::from_millis(pause_ms));
            first && say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
        });
        let tally = run(config(server.at(), 2), &closed(20));
        assert_eq!(tally.due, 20);
        assert!(tally.outcomes.errors() > 0, "{:?}", tally.outcomes);
    }
}

#[test]
fn a_server_that_stops_reading_is_timed_out() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    let bytes = request_bytes("POST", "/", "test", &[], &vec![b'z'; 32 << 20]).unwrap();
    let requests = Arc::new(Requests::one(Prepared { bytes, ..get() }));
    let begun = Instant::now();
    let tally = run(SessionConfig { requests, ..impatient(address, 2) }, &closed(4));
    assert_eq!((tally.outcomes.timeout, tally.due), (4, 4), "{:?}", tally.outcomes);
    assert!(tally.bytes_written < 4 * (32 << 20) && begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_answer_before_the_request_was_read_ends_the_connection() {
    let server = Server::start(|stream, _| {
        say(stream, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        false
    });
    let bytes = request_bytes("POST", "/", "test", &[], &vec![b'z'; 4 << 20]).unwrap();
    let expect = Expectation { status: StatusRule::Exact(413), body: BodyRule::Any };
    let head = bytes.len() - (4 << 20);
    assert!(bytes[..head].ends_with(b"\r\n\r\n"));
    let requests = Arc::new(Requests::one(Prepared { bytes, head: false, expect }));
    let tally = run(SessionConfig { requests, ..impatient(server.at(), 1) }, &closed(3));
    let Outcomes { ok, read, write, timeout, connect, .. } = tally.outcomes;
    // On a busy machine a connection may not be accepted in time.
    let ended = ok + read + write + timeout + connect;
    assert_eq!((ended, tally.due), (3, 3), "{:?}", tally.outcomes);
}

/// A random reaction of the server to a request, fixed by the seed.
fn whim(stream: &mut TcpStream, number: u64, seed: u64) -> bool {
    let mixed = (number ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
    match mixed {
        0 => false,
        1 => {
            reset(stream);
            false
        }
        2 => say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhellO"),
        3 => say(stream, "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"),
        4 => say(stream, "nonsense\r\n\r\n"),
        5 => {
            say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhel");
            false
        }
        6 => say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhel"),
        7 => say(stream, HELLO) && say(stream, HELLO),
        8 => {
            say(stream, "HTTP/1.1 200 OK\r\n\r\nhello");
            false
        }
        9 => true,
        _ => say(stream, HELLO),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Invariant 6: every request that was due has exactly one outcome, whatever the server does. `run` checks this.
    #[test]
    fn every_request_ends_once(seed: u64, connections in 1usize..9, rate in 0u32..3000, requests in 1u64..80) {
        let server = Server::start(move |stream, number| whim(stream, number, seed));
        let pacer = if rate < 500 { Pacer::Closed } else { constant(f64::from(rate)) };
        let limit = Limit { requests: Some(requests), duration: Some(Duration::from_millis(400)) };
        let tally = run(impatient(server.at(), connections), &order(pacer, limit));
        prop_assert_eq!(tally.due, tally.outcomes.total());
        prop_assert!(tally.due <= requests);
        prop_assert_eq!(tally.completions, tally.latency.count());
        let faults: u64 = tally.faults.iter().map(|fault| fault.count).sum();
        prop_assert_eq!(faults + tally.completions, tally.due, "{:?}", tally.faults);
    }
}
