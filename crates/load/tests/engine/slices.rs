//! Slices against well-behaved servers, with closed and open loads.

use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::kit::*;
use deadheat_load::*;
use rustix::thread::{CpuSet, sched_setaffinity};

fn hello() -> Server {
    Server::start(|stream, _| say(stream, HELLO))
}

#[test]
fn a_number_of_requests_is_sent_exactly() {
    let server = hello();
    for (connections, threads, cpus, requests) in
        [(1, 1, vec![], 100), (8, 1, vec![], 1001), (5, 2, vec![0], 333), (4, 9, vec![0, 1], 3)]
    {
        let before = server.served.load(Ordering::SeqCst);
        let tally =
            run(SessionConfig { threads, cpus, ..config(server.at(), connections) }, &closed(requests));
        assert_eq!((tally.due, tally.outcomes.ok, tally.completions), (requests, requests, requests));
        assert_eq!(server.served.load(Ordering::SeqCst) - before, requests);
        assert_eq!(tally.status.of(200), requests);
        assert_eq!(tally.bytes_read, requests * HELLO.len() as u64);
        assert_eq!(tally.bytes_written, requests * get().bytes.len() as u64);
        assert_eq!(
            (tally.reconnects, tally.retried, tally.closed_by_server, tally.gave_up),
            (0, 0, 0, false)
        );
        assert_eq!(tally.latency.count(), requests);
        assert!(tally.rate_per_s().unwrap() > 0.0);
        assert!(tally.elapsed_ns > 0 && tally.wall_ns >= tally.elapsed_ns);
    }
}

#[test]
fn a_duration_ends_the_slice_and_connections_persist() {
    let server = hello();
    let mut session = Session::open(config(server.at(), 6)).unwrap();
    let (mut slices, mut requests) = (0, 0);
    // Each of the six connections carries several requests. On a busy machine, a slice may be over before the worker sends anything.
    while slices < 4 || (requests <= 4 * 6 && slices < 1_000) {
        let tally = session.slice(&closed_for(40)).unwrap();
        check(&tally);
        assert!(tally.elapsed_ns >= 40_000_000 && tally.outcomes.ok == tally.due);
        assert!(tally.cpu_ns > 0 && tally.rates[0].last_ns <= tally.elapsed_ns);
        (slices, requests) = (slices + 1, requests + tally.due);
    }
    assert!(requests > 4 * 6, "{requests} requests in {slices} slices");
    assert_eq!(server.accepted.load(Ordering::SeqCst), 6);
}

/// A worker that may spin never sleeps, so the server spends no time on waking it. This holds at every load.
#[test]
fn a_worker_that_may_spin_never_sleeps_and_counts_spinning_apart() {
    let server = Server::start(|stream, _| {
        std::thread::sleep(Duration::from_millis(2));
        say(stream, HELLO)
    });
    let for_a_while = Limit::duration(Duration::from_millis(200));
    for (connections, pacer) in
        [(1, Pacer::Closed), (16, Pacer::Closed), (1, constant(50.0)), (16, constant(2_000.0))]
    {
        for spin in [false, true] {
            let one = || {
                let config = SessionConfig { spin, ..config(server.at(), connections) };
                run(config, &order(pacer.clone(), for_a_while))
            };
            let tally = if spin { first_awake(one) } else { one() };
            assert!(tally.outcomes.ok > 0);
            assert!(!spin || never_slept(&tally), "{connections} connections, {pacer:?}: {tally:?}");
            assert_eq!(tally.spin_ns > 0, spin, "{} ns", tally.spin_ns);
            assert!(spin || tally.cpu_ns < tally.wall_ns / 2, "{} of {} ns", tally.cpu_ns, tally.wall_ns);
            let busy = tally.cpu_ns.saturating_sub(tally.spin_ns) as f64;
            assert_eq!(tally.cpu_share(), Some(busy / tally.wall_ns as f64));
            assert!(busy < tally.wall_ns as f64 / 2.0, "{busy} of {} ns is work", tally.wall_ns);
        }
    }
}

/// A worker that shares its CPU loses it mostly while it polls for events.
/// The time that other programs had the CPU must not count as time that the worker spent.
#[test]
fn no_more_is_spent_on_looking_out_than_is_spent() {
    let (server, over) = (hello(), Arc::new(AtomicBool::new(false)));
    let rival = || {
        let over = over.clone();
        std::thread::spawn(move || {
            let mut cpu = CpuSet::new();
            cpu.set(0);
            sched_setaffinity(None, &cpu).unwrap();
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })
    };
    let rivals: Vec<_> = (0..3).map(|_| rival()).collect();
    let config = SessionConfig { spin: true, cpus: vec![0], ..config(server.at(), 8) };
    let tally = run(config, &order(constant(11_000.0), Limit::duration(Duration::from_millis(400))));
    over.store(true, Ordering::Relaxed);
    rivals.into_iter().for_each(|rival| rival.join().unwrap());
    assert!(tally.spin_ns > 0 && tally.spin_ns <= tally.cpu_ns, "{} of {}", tally.spin_ns, tally.cpu_ns);
}

#[test]
fn settling_is_left_out_of_rate_and_times() {
    let server = hello();
    let with = |settle_ms: u64| {
        let order = SliceOrder { settle: Duration::from_millis(settle_ms), ..closed_for(2 * settle_ms) };
        run(config(server.at(), 2), &order)
    };
    // On a busy machine it can take long until the first answer arrives. The time to settle is as long as that needs.
    let (settle_ms, tally) = (0..)
        .map(|doublings| 30 << doublings)
        .map(|settle_ms| (settle_ms, with(settle_ms)))
        .find(|(settle_ms, tally)| tally.rates[0].first_ns > 0 || *settle_ms > 10_000)
        .unwrap();
    let piece = tally.rates[0];
    assert!(piece.first_ns > 0 && piece.first_ns <= settle_ms * 1_000_000, "{piece:?}");
    assert!(piece.counted < tally.completions && tally.latency.count() < tally.completions);
}

#[test]
fn the_request_order_is_followed_from_any_start() {
    let lines = Arc::new(std::sync::Mutex::new(String::new()));
    let seen = lines.clone();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 1024];
        while let Ok(count @ 1..) = std::io::Read::read(&mut stream, &mut bytes) {
            seen.lock().unwrap().push(bytes[..count][5] as char);
            say(&mut stream, HELLO);
        }
    });
    let named = |name: &str| {
        let bytes = request_bytes("GET", &format!("/{name}"), "test", &[], b"").unwrap();
        Prepared { bytes, ..get() }
    };
    let requests = Requests::in_turn(vec![named("a"), named("b"), named("c")]).unwrap();
    let mut session =
        Session::open(SessionConfig { requests: Arc::new(requests), ..config(address, 1) }).unwrap();
    session.slice(&closed(4)).unwrap();
    session.slice(&SliceOrder { start: 5, ..closed(4) }).unwrap();
    assert_eq!(*lines.lock().unwrap(), "abcacabc");
}

#[test]
fn chunked_close_delimited_and_interim_answers_are_ok() {
    for (name, text, keep) in [
        (
            "chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\n\r\n",
            true,
        ),
        (
            "interim",
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            true,
        ),
        ("until close", "HTTP/1.1 200 OK\r\n\r\nhello", false),
        ("announced", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", false),
        ("old", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", false),
    ] {
        let server = Server::start(move |stream, _| say(stream, text) && keep);
        let tally = run(config(server.at(), 3), &closed(60));
        assert_eq!((tally.outcomes.ok, tally.retried), (60, 0), "{name}");
        assert_eq!(tally.closed_by_server, if keep { 0 } else { 60 }, "{name}");
        assert_eq!(tally.reconnects, if keep { 0 } else { 57 }, "{name}");
    }
}

#[test]
fn a_request_that_ends_its_connection_is_the_last_one_on_it() {
    // The server keeps every connection open, even after `Connection: close`.
    let server = hello();
    let close = [("Connection".to_owned(), "close".to_owned())];
    let bytes = request_bytes("GET", "/", "test", &close, b"").unwrap();
    let requests = Arc::new(Requests::one(Prepared { bytes, ..get() }));
    let tally = run(SessionConfig { requests, ..config(server.at(), 2) }, &closed(60));
    assert_eq!((tally.outcomes.ok, tally.closed_by_server), (60, 60), "{:?}", tally.faults);
    assert!(server.accepted.load(Ordering::SeqCst) >= 60);
}

#[test]
fn head_answers_have_no_body() {
    let server = Server::start(|stream, _| say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"));
    let bytes = request_bytes("HEAD", "/", "test", &[], b"").unwrap();
    let expect = Expectation { status: StatusRule::Exact(200), body: BodyRule::Length(0) };
    let requests = Arc::new(Requests::one(Prepared { bytes, head: true, expect }));
    assert_eq!(run(SessionConfig { requests, ..config(server.at(), 2) }, &closed(20)).outcomes.ok, 20);
}

#[test]
fn large_requests_and_answers_pass_whole() {
    let body: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let answer = body.clone();
    let server = Server::start(move |stream, _| {
        let mut sent = vec![0; 3_000_000];
        std::io::Read::read_exact(stream, &mut sent).unwrap();
        assert!(sent == answer);
        say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n")
            && std::io::Write::write_all(stream, &answer).is_ok()
    });
    let mut bytes = request_bytes("POST", "/", "test", &[], &body).unwrap();
    // The test server looks for the end of the head in pieces of 256 bytes, so the body must begin where a piece ends.
    let head = bytes.len() - body.len();
    let padding = format!("X: {}\r\n", "x".repeat(512 - head - 5));
    bytes.splice(head - 2..head - 2, padding.bytes());
    assert_eq!((bytes.len() - body.len()) % 256, 0);
    let expect = Expectation { status: StatusRule::Exact(200), body: BodyRule::exactly(&body) };
    let requests = Arc::new(Requests::one(Prepared { bytes, head: false, expect }));
    let mut all = config(server.at(), 2);
    (all.requests, all.sample_every, all.max_samples_per_slice) = (requests, 2, 1);
    let tally = run(all, &closed(6));
    assert_eq!(tally.outcomes.ok, 6);
    assert!(tally.samples.len() == 1 && tally.samples[0].body == body && !tally.samples[0].truncated);
}

#[test]
fn samples_are_each_nth_up_to_the_limit() {
    let server = hello();
    for (every, most, wanted) in [(0, 9, 0), (10, 9, 5), (10, 3, 3), (1, 0, 0), (1, 100, 50)] {
        let mut all = config(server.at(), 2);
        (all.sample_every, all.max_samples_per_slice) = (every, most);
        let samples = run(all, &closed(50)).samples;
        assert_eq!(samples.len(), wanted, "{every} {most}");
        assert!(samples.iter().all(|s| s.body == b"hello" && s.status == 200 && s.request == 0));
    }
}

#[test]
fn unix_sockets_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || while read_request(&mut stream) && say(&mut stream, HELLO) {});
        }
    });
    let address = Address::Unix(path);
    assert_eq!(run(config(address.clone(), 4), &closed(100)).outcomes.ok, 100);
    let answer = exchange(&address, None, &get().bytes, false, Duration::from_secs(5), 100).unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"hello".as_slice()));
}

#[test]
fn open_slices_send_what_is_due() {
    let server = hello();
    let poisson =
        Pacer::Open { rate: Rate::constant(1000.0).unwrap(), arrivals: Arrivals::Poisson { seed: 5 } };
    for pacer in [constant(1000.0), poisson] {
        for (threads, cpus) in [(1, vec![]), (3, vec![0])] {
            let due = pacer.due_times().unwrap().take_while(|at| *at < 200_000_000).count() as u64;
            let all = SessionConfig { threads, cpus, ..config(server.at(), 4) };
            let tally = run(all, &order(pacer.clone(), Limit::duration(Duration::from_millis(200))));
            assert_eq!((tally.due, tally.outcomes.ok), (due, due), "{pacer:?}");
            assert!(tally.elapsed_ns >= 200_000_000);
            assert_eq!(tally.send_lag.count(), due);
        }
    }
    let limited = Limit { duration: Some(Duration::from_secs(60)), requests: Some(50) };
    let tally = run(config(server.at(), 4), &order(constant(1000.0), limited));
    assert_eq!(tally.outcomes.ok, 50);
}

#[test]
fn waiting_for_a_free_connection_is_in_the_latency_not_in_the_service() {
    let server = Server::start(|stream, _| {
        std::thread::sleep(Duration::from_millis(20));
        say(stream, HELLO)
    });
    // Ten requests are due at once on one connection, so the last one waits for nine others.
    let order = order(constant(1e6), Limit::requests(10));
    let tally = run(config(server.at(), 1), &order);
    assert_eq!(tally.outcomes.ok, 10);
    assert!(tally.latency.quantile_ns(1.0).unwrap() >= 195_000_000);
    assert!(tally.send_lag.quantile_ns(1.0).unwrap() >= 175_000_000);
    assert!(tally.service.quantile_ns(0.0).unwrap() < tally.latency.quantile_ns(1.0).unwrap() / 2);
}

#[test]
fn what_an_overloaded_server_cannot_take_is_drained_or_cut() {
    // It answers a few slowly, and then none: a busy machine changes nothing about that.
    let server = Server::start(|stream, n| {
        std::thread::sleep(Duration::from_millis(if n < 10 { 20 } else { 5_000 }));
        say(stream, HELLO)
    });
    let all = SessionConfig { timeout: Duration::from_secs(1), ..config(server.at(), 2) };
    let limit = Limit::duration(Duration::from_millis(100));
    let begun = Instant::now();
    let tally = run(all, &order(constant(2000.0), limit));
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(tally.due, 200);
    assert!(tally.outcomes.ok >= 2 && tally.outcomes.cut >= 150, "{:?}", tally.outcomes);
}

/// Stops the session's next slice after its first answers. Returns the progress that was visible before the stop.
fn stopped_in_the_middle(session: &Session) -> std::thread::JoinHandle<Progress> {
    let (progress, handle) = (session.progress(), session.stop_handle());
    let before = progress.read();
    std::thread::spawn(move || {
        let between = loop {
            let between = progress.read().since(&before);
            if between.completions > 0 && between.bytes_read > 0 && between.quantile_ns(0.5).is_some() {
                break between;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        handle.stop();
        between
    })
}

#[test]
fn a_slice_can_be_stopped() {
    let server = hello();
    let mut session = Session::open(config(server.at(), 2)).unwrap();
    let stopper = stopped_in_the_middle(&session);
    let tally = session.slice(&closed_for(600_000)).unwrap();
    check(&tally);
    assert!(tally.outcomes.ok > 0 && tally.elapsed_ns < 300_000_000_000);
    stopper.join().unwrap();
    assert_eq!(session.slice(&closed_for(600_000)).unwrap().due, 0);
}

#[test]
fn orders_that_cannot_be_run_are_refused() {
    let server = hello();
    let mut session = Session::open(config(server.at(), 1)).unwrap();
    let none = order(Pacer::Closed, Limit::default());
    assert!(matches!(session.slice(&none), Err(SessionError::NoLimit)));
    assert_eq!(session.slice(&closed(0)).unwrap().due, 0);
    assert!(matches!(Session::open(config(server.at(), 0)), Err(OpenError::NoConnections)));
    let pinned = SessionConfig { cpus: vec![1_000_000], ..config(server.at(), 1) };
    assert!(matches!(Session::open(pinned), Err(OpenError::Pin { cpu: 1_000_000, .. })));
    let long = Address::Unix("x".repeat(200).into());
    assert!(matches!(Session::open(config(long, 1)), Err(OpenError::Address { .. })));
}

#[test]
fn more_answers_at_once_than_there_is_room_for_are_all_received() {
    // Each answer takes many receives, and all connections receive at the same time.
    let body = "x".repeat(30_000);
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let server = Server::start(move |stream, _| say(stream, &text));
    let requests = Requests::one(Prepared {
        expect: Expectation { status: StatusRule::Exact(200), body: BodyRule::exactly(body.as_bytes()) },
        ..get()
    });
    let many = SessionConfig { requests: Arc::new(requests), ..config(server.at(), 400) };
    let tally = run(many, &closed(2000));
    assert_eq!((tally.outcomes.ok, tally.due), (2000, 2000), "{:?}", tally.faults);
}

#[test]
fn connections_grow_while_requests_wait_and_not_beyond() {
    // Each answer takes 50 ms, so 400 requests per second keep 20 connections busy.
    let server = Server::start(|stream, _| {
        std::thread::sleep(Duration::from_millis(50));
        say(stream, HELLO)
    });
    let order = order(constant(400.0), Limit::duration(Duration::from_millis(500)));
    // A worker that does not get the CPU finds many requests due at once, and most of them wait. Once it gets it, few do.
    let found_enough = (0..20).any(|_| {
        let enough = run(SessionConfig { max_connections: 64, ..config(server.at(), 2) }, &order);
        assert!((15..=64).contains(&enough.connections), "{}", enough.connections);
        assert!(enough.waited > 0 && enough.outcomes.ok == 200, "{}", enough.waited);
        assert_eq!(enough.wait.count(), 200);
        enough.waited < 150
    });
    assert!(found_enough, "requests wait although connections grow");
    let few = run(SessionConfig { max_connections: 4, ..config(server.at(), 2) }, &order);
    assert_eq!((few.connections, few.outcomes.ok), (4, 200));
    assert!(few.waited > 150 && few.wait.quantile_ns(0.9) > few.service.quantile_ns(0.9), "{}", few.waited);
}

/// With one connection, no answer can come sooner than the work on its request takes, on any machine.
/// The CPU time shows this work only while the worker gets the CPU, so it is enough that one of several slices shows it.
#[test]
fn a_handicap_is_worked_off_on_every_request_and_only_while_it_is_set() {
    let server = hello();
    let mut session = Session::open(config(server.at(), 1)).unwrap();
    session.set_handicap(Duration::from_millis(2)).unwrap();
    let mut most_cpu_ns = 0;
    for _ in 0..20 {
        let with = session.slice(&closed(20)).unwrap();
        check(&with);
        assert!(with.elapsed_ns >= 40_000_000, "{}", with.elapsed_ns);
        most_cpu_ns = most_cpu_ns.max(with.cpu_ns);
        if most_cpu_ns >= 30_000_000 {
            break;
        }
    }
    assert!(most_cpu_ns >= 10_000_000, "{most_cpu_ns}");
    session.set_handicap(Duration::ZERO).unwrap();
    let least_cpu_ns = (0..5).map(|_| session.slice(&closed(20)).unwrap().cpu_ns).min().unwrap();
    assert!(least_cpu_ns < most_cpu_ns / 2, "{least_cpu_ns} of {most_cpu_ns}");
}

fn assert_littles_law(tally: &Tally) {
    let (in_flight, product) = tally.littles_law().unwrap();
    assert!((in_flight / product - 1.0).abs() < 0.01, "{in_flight} in flight, {product} by latency");
}

#[test]
fn littles_law_holds_of_what_is_left_when_slices_settle() {
    let server = Server::start(|stream, n| {
        std::thread::sleep(Duration::from_millis(n % 7));
        say(stream, HELLO)
    });
    let settled = SliceOrder { settle: Duration::from_millis(100), ..closed_for(300) };
    // On a busy machine the first answer may come after the time to settle, or none after it.
    let mut tallies = (0..20).map(|_| run(config(server.at(), 8), &settled));
    let tally = tallies.find(|tally| (1..tally.completions).contains(&tally.latency.count()));
    assert_littles_law(&tally.unwrap());
}

#[test]
fn connections_that_cannot_be_opened_are_no_connections_and_counted() {
    // The server takes 4 connections and then stops listening. Each answer takes 20 ms.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let acceptor = std::thread::spawn(move || {
        for _ in 0..4 {
            let (mut stream, _) = listener.accept().unwrap();
            std::thread::spawn(move || {
                while read_request(&mut stream) {
                    std::thread::sleep(Duration::from_millis(20));
                    say(&mut stream, HELLO);
                }
            });
        }
    });
    let many = SessionConfig { max_connections: 64, ..config(address, 4) };
    let mut session = Session::open(many).unwrap();
    acceptor.join().unwrap();
    let order = order(constant(400.0), Limit::duration(Duration::from_millis(200)));
    let tally = session.slice(&order).unwrap();
    check(&tally);
    assert_eq!((tally.outcomes.ok, tally.connections), (80, 4), "{:?}", tally.faults);
    let [fault] = tally.unopened.as_slice() else { panic!("{:?}", tally.unopened) };
    assert_eq!((fault.outcome, &fault.cause), (Outcome::Connect, &Cause::System(111)));
    assert!(session.progress().read().connections == 4);
    // After the first failure the generator tries again every 10 ms. A few other attempts that had already begun may fail too.
    let attempts = tally.elapsed_ns / 10_000_000;
    assert!((1..=4 * attempts + 8).contains(&fault.count), "{} in {attempts} times 10 ms", fault.count);
}

#[test]
fn littles_law_holds_in_both_shapes() {
    let server = Server::start(|stream, n| {
        std::thread::sleep(Duration::from_millis(n % 7));
        say(stream, HELLO)
    });
    for order in [closed_for(300), order(constant(500.0), Limit::duration(Duration::from_millis(300)))] {
        assert_littles_law(&run(config(server.at(), 8), &order));
    }
}

#[test]
fn progress_can_be_read_meanwhile() {
    let server = hello();
    let mut session = Session::open(config(server.at(), 4)).unwrap();
    let reader = stopped_in_the_middle(&session);
    let tally = session.slice(&closed_for(600_000)).unwrap();
    let between = reader.join().unwrap();
    assert!(between.completions > 0 && between.completions <= tally.completions);
    assert!(between.quantile_ns(0.5).is_some() && between.bytes_read > 0 && between.connections == 4);
    assert_eq!(session.progress().read().completions, tally.completions);
}
