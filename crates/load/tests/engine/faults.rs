//! Slices against servers that misbehave: every request still ends in exactly one outcome, and every slice ends.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::kit::*;
use deadheat_load::*;

fn impatient(address: Address, connections: usize) -> SessionConfig {
    SessionConfig { timeout: Duration::from_millis(100), ..config(address, connections) }
}

#[test]
fn each_kth_answer_that_differs_is_counted() {
    let server = Server::start(|stream, n| {
        let text = if n % 7 == 0 { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhellO" } else { HELLO };
        say(stream, text)
    });
    let tally = run(config(server.at(), 4), &closed(700));
    assert_eq!((tally.outcomes.ok, tally.outcomes.mismatch, tally.completions), (600, 100, 700));
    assert_eq!(tally.mismatches.len(), MAX_MISMATCHES);
    let first = &tally.mismatches[0];
    let got = (first.request, first.status, first.length, first.digest);
    assert_eq!(got, (0, 200, 5, Some(digest(b"hellO"))));
    assert_eq!(first.expected, get().expect);
    assert!(tally.counted() == 700, "wrong answers are work done all the same");
}

#[test]
fn wrong_lengths_and_statuses_are_counted() {
    let server = Server::start(|stream, n| match n % 4 {
        0 => say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell"),
        1 => say(stream, "HTTP/1.1 503 No\r\nContent-Length: 5\r\n\r\nhello"),
        _ => say(stream, HELLO),
    });
    let tally = run(config(server.at(), 2), &closed(400));
    let Outcomes { ok, status, mismatch, .. } = tally.outcomes;
    assert_eq!((ok, status, mismatch), (200, 100, 100));
    assert_eq!(tally.status.iter().collect::<Vec<_>>(), [(200, 300), (503, 100)]);
}

#[test]
fn a_server_that_closes_after_n_answers_without_a_word_makes_no_errors() {
    let server = Server::start(|stream, n| {
        let last = n % 10 == 9;
        hold(stream, last);
        say(stream, HELLO) && !last
    });
    let tally = run(config(server.at(), 1), &closed(100));
    assert_eq!(tally.outcomes.ok, 100);
    assert!(tally.closed_by_server >= 9 && tally.reconnects >= 9, "{tally:?}");
    assert!(tally.retried <= tally.closed_by_server);
}

#[test]
fn connections_closed_between_slices_are_reopened_first() {
    let server = Server::start(|stream, _| say(stream, HELLO));
    let mut session = Session::open(config(server.at(), 5)).unwrap();
    session.slice(&closed(50)).unwrap();
    for pacer in [Pacer::Closed, constant(1000.0)] {
        server.close_all();
        let tally = session.slice(&order(pacer, Limit::requests(50))).unwrap();
        check(&tally);
        assert_eq!((tally.outcomes.ok, tally.closed_by_server, tally.reconnects), (50, 5, 5));
    }
}

#[test]
fn connections_closed_under_the_first_request_are_retried_once() {
    // Each connection answers one request and hangs up on the next without an answer, as after a thaw.
    let server = Server::start(|stream, _| {
        say(stream, HELLO);
        read_request(stream);
        false
    });
    let mut session = Session::open(config(server.at(), 3)).unwrap();
    assert_eq!(session.slice(&closed(3)).unwrap().outcomes.ok, 3);
    let tally = session.slice(&closed(3)).unwrap();
    check(&tally);
    assert_eq!((tally.outcomes.ok, tally.retried, tally.reconnects), (3, 3, 3));
}

#[test]
fn garbage_and_surplus_are_protocol_errors() {
    for text in
        ["nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello", "HTTP/1.1 204 No\r\n\r\nx"]
    {
        let server = Server::start(move |stream, _| say(stream, text));
        let tally = run(config(server.at(), 2), &closed(6));
        assert_eq!(
            (tally.outcomes.protocol, tally.completions, tally.rate_per_s()),
            (6, 0, None),
            "{text:?}"
        );
    }
}

#[test]
fn answers_cut_short_are_read_errors() {
    let server = Server::start(|stream, _| {
        say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
        false
    });
    assert_eq!(run(config(server.at(), 2), &closed(6)).outcomes.read, 6);
}

#[test]
fn a_dripping_server_is_waited_for() {
    let server = Server::start(|stream, _| {
        HELLO.as_bytes().chunks(3).all(|piece| {
            std::thread::sleep(Duration::from_millis(1));
            std::io::Write::write_all(stream, piece).is_ok()
        })
    });
    assert_eq!(run(config(server.at(), 3), &closed(9)).outcomes.ok, 9);
}

#[test]
fn a_server_that_never_answers_makes_timeouts() {
    let server = Server::start(|_, _| true);
    let begun = Instant::now();
    // On a starved core, the slice may end while new connections are under way. Then another one shows it.
    let one = || run(impatient(server.at(), 2), &closed_for(2_000));
    let tally = (0..5).map(|_| one()).find(|tally| tally.outcomes.connect == 0).unwrap();
    assert!(tally.outcomes.timeout >= 4 && tally.completions == 0, "{:?}", tally.outcomes);
    assert_eq!(tally.outcomes.timeout + tally.outcomes.cut, tally.due, "{:?}", tally.outcomes);
    assert!(begun.elapsed() < Duration::from_secs(30));
    let tally = run(impatient(server.at(), 2), &order(constant(100.0), closed_for(250).limit));
    // On a starved core, a new connection may not be there in time either.
    let unanswered = tally.outcomes.timeout + tally.outcomes.cut + tally.outcomes.connect;
    assert_eq!((tally.due, unanswered), (25, 25), "{:?}", tally.outcomes);
}

#[test]
fn without_a_duration_a_silent_server_is_given_up() {
    let server = Server::start(|_, _| true);
    // The load waits longer than this for an answer, so it is short. On a busy machine, opening a connection can take over half a second.
    let connect_timeout = Duration::from_secs(2);
    let tally = run(SessionConfig { connect_timeout, ..impatient(server.at(), 2) }, &closed(1_000_000));
    assert!(tally.gave_up && tally.due < 100, "{tally:?}");
}

#[test]
fn what_is_unanswered_at_the_end_is_settled_and_the_session_goes_on() {
    let held = Arc::new(AtomicBool::new(true));
    let still = Arc::clone(&held);
    let server = Server::start(move |stream, _| {
        while still.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        say(stream, HELLO)
    });
    let patient = SessionConfig { timeout: Duration::from_secs(2), ..impatient(server.at(), 2) };
    let mut session = Session::open(patient).unwrap();
    let tally = loaded(&mut session, &closed_for(20));
    assert_eq!((tally.due, tally.outcomes.timeout + tally.outcomes.cut), (2, 2));
    held.store(false, Ordering::SeqCst);
    let tally = session.slice(&closed(20)).unwrap();
    check(&tally);
    assert_eq!((tally.outcomes.ok, tally.reconnects), (20, 2));
}

#[test]
fn a_server_that_dies_in_mid_slice_makes_connect_errors_without_spinning() {
    for pacer in [Pacer::Closed, constant(500.0)] {
        let server = Arc::new(Server::start(|stream, _| say(stream, HELLO)));
        let mut session = Session::open(config(server.at(), 4)).unwrap();
        let killer = server.clone();
        let thread = std::thread::spawn(move || {
            while killer.served.load(Ordering::SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            killer.kill();
        });
        let all = order(pacer.clone(), Limit::duration(Duration::from_millis(500)));
        let tally = session.slice(&all).unwrap();
        thread.join().unwrap();
        check(&tally);
        assert!(tally.outcomes.ok > 0 && tally.outcomes.connect > 0, "{pacer:?} {:?}", tally.outcomes);
        // Each of 4 connections makes one attempt per 10 ms of the slice, which ends late on a busy machine.
        // It may make two more: one that was already under way, and one in the first 10 ms.
        let most = 4 * (tally.elapsed_ns / 10_000_000 + 2);
        assert!(tally.outcomes.connect <= most, "{pacer:?} {most} {:?}", tally.outcomes);
        let after = session.slice(&order(Pacer::Closed, Limit::duration(Duration::from_millis(30)))).unwrap();
        check(&after);
        assert_eq!(after.outcomes.connect, after.due);
    }
}

#[test]
fn a_server_that_hangs_up_at_once_is_not_hammered() {
    let server = Server::start(|_, _| false);
    let tally = run(config(server.at(), 2), &closed_for(100));
    assert_eq!(tally.outcomes.read + tally.outcomes.write, tally.due);
    assert!(tally.due <= 2 * 12, "{:?}", tally.outcomes);
    assert!(server.accepted.load(Ordering::SeqCst) <= 2 * 14);
}

#[test]
fn an_address_where_nobody_listens_cannot_be_opened() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Session::open(config(Address::Tcp(port), 3)).unwrap_err();
    let OpenError::Connect { opened: 0, wanted: 3, source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::ConnectionRefused);
}

/// The server breaks off every second answer, so deadheat must connect again. The next request does not wait for a pause.
#[test]
fn a_failed_request_costs_the_next_one_no_pause() {
    let server = Server::start(|stream, n| match n % 2 {
        0 => say(stream, HELLO),
        _ => say_last(stream, "nonsense\r\n\r\n"),
    });
    let tally = run(config(server.at(), 1), &closed(100));
    assert_eq!((tally.outcomes.ok, tally.outcomes.protocol), (50, 50));
    // On a starved core many answers are late, but not nine of ten.
    assert!(tally.latency.quantile_ns(0.1).unwrap() < 10_000_000, "{tally:?}");
}

/// The rate is so low that nothing is in flight most of the time.
#[test]
fn without_a_duration_a_server_that_has_died_is_given_up_at_any_rate() {
    let server = Server::start(|stream, _| say(stream, HELLO));
    let connect_timeout = Duration::from_secs(1);
    let mut session = Session::open(SessionConfig { connect_timeout, ..impatient(server.at(), 1) }).unwrap();
    server.kill();
    let tally = session.slice(&order(constant(10.0), Limit::requests(1_000_000))).unwrap();
    assert!(tally.gave_up && tally.outcomes.ok == 0, "{tally:?}");
}

/// Without a duration, a load gives up when answers stop. Here nothing is asked for four seconds, and what was asked before failed.
#[test]
fn a_gap_between_requests_is_no_silence() {
    let server = Server::start(|stream, n| n > 0 && say(stream, HELLO));
    let timeout = Duration::from_secs(1);
    let settings = SessionConfig { timeout, connect_timeout: timeout, ..config(server.at(), 1) };
    let tally = run(settings, &order(constant(0.25), Limit::requests(2)));
    assert_eq!((tally.gave_up, tally.due), (false, 2), "{tally:?}");
}
