//! The null server with both backends, against clients that behave in unusual ways.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use deadheat_load::*;

const LIMIT: Duration = Duration::from_secs(20);
const GET: &str = "GET /any/path?x HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n";

/// Runs a test with each backend, on a server whose answers have `body_bytes` bytes of body.
fn over_both(body_bytes: usize, test: impl Fn(&NullServer)) {
    for backend in [Backend::Uring, Backend::Epoll] {
        let server = NullServer::start(NullConfig { body_bytes, backend, ..NullConfig::default() }).unwrap();
        assert_eq!(server.backend(), backend);
        test(&server);
        assert!(server.is_running());
    }
}

fn address(server: &NullServer) -> SocketAddr {
    match server.address() {
        Address::Tcp(address) => *address,
        Address::Unix(path) => panic!("{}", path.display()),
    }
}

fn connect(server: &NullServer) -> TcpStream {
    let stream = TcpStream::connect(address(server)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn body(bytes: usize) -> String {
    "Hello, world!\n".chars().cycle().take(bytes).collect()
}

fn head(bytes: usize, more: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\nContent-Type: text/plain\r\n{more}\r\n")
}

fn full(bytes: usize) -> String {
    head(bytes, "") + &body(bytes)
}

/// Checks that the next bytes are `expected`.
fn expect(stream: &mut impl Read, expected: &str) {
    let mut found = vec![0; expected.len()];
    stream.read_exact(&mut found).unwrap();
    assert!(found == expected.as_bytes(), "{:?}", String::from_utf8_lossy(&found[..found.len().min(300)]));
}

/// Reads up to the end of the connection.
fn rest(stream: &mut impl Read) -> String {
    let mut found = String::new();
    stream.read_to_string(&mut found).unwrap();
    found
}

#[test]
fn its_cpu_time_grows_with_what_it_answers() {
    over_both(13, |server| {
        let before = server.cpu_ns().expect("Linux tells it");
        let mut stream = connect(server);
        for _ in 0..2_000 {
            stream.write_all(GET.as_bytes()).unwrap();
            expect(&mut stream, &full(13));
        }
        assert!(server.cpu_ns().unwrap() > before);
    });
}

#[test]
fn a_request_that_comes_byte_by_byte_is_answered_once() {
    over_both(13, |server| {
        let mut stream = connect(server);
        for _ in 0..3 {
            for byte in GET.as_bytes() {
                stream.write_all(&[*byte]).unwrap();
            }
            expect(&mut stream, &full(13));
        }
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(&mut stream), "");
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    over_both(13, |server| {
        let mut stream = connect(server);
        let (mut asked, mut answered) = (String::new(), String::new());
        for round in 0..100 {
            for (request, answer) in [
                (GET, full(13)),
                ("HEAD / HTTP/1.1\r\n\r\n", head(13, "")),
                ("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /", full(13)),
                ("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", full(13)),
            ] {
                asked.push_str(&request.repeat(1 + round % 3));
                answered.push_str(&answer.repeat(1 + round % 3));
            }
        }
        stream.write_all(asked.as_bytes()).unwrap();
        expect(&mut stream, &answered);
    });
}

#[test]
fn answers_are_whole_however_slowly_they_are_read() {
    for (bytes, count) in [(0, 10_000), (6_000, 3_000), (3_000_000, 9)] {
        over_both(bytes, |server| {
            let mut stream = connect(server);
            stream.write_all(GET.repeat(count).as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(50));
            // The send buffer is full now, and the client sends one more request.
            stream.write_all(GET.as_bytes()).unwrap();
            let one = full(bytes);
            for _ in 0..=count {
                expect(&mut stream, &one);
            }
            stream.write_all(GET.as_bytes()).unwrap();
            expect(&mut stream, &one);
        });
    }
}

#[test]
fn bodies_of_requests_are_read_and_thrown_away() {
    over_both(13, |server| {
        let mut stream = connect(server);
        let sent = "x".repeat(3_000_000);
        write!(stream, "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{sent}", sent.len()).unwrap();
        expect(&mut stream, &full(13));
        write!(stream, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        for piece in sent.as_bytes().chunks(70_000) {
            write!(stream, "{:x};a=b\r\n", piece.len()).unwrap();
            stream.write_all(piece).unwrap();
            stream.write_all(b"\r\n").unwrap();
        }
        stream.write_all(b"0\r\ntrailer: yes\r\n\r\n").unwrap();
        expect(&mut stream, &full(13));
        write!(stream, "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n").unwrap();
        expect(&mut stream, "HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"abc").unwrap();
        expect(&mut stream, &full(13));
    });
}

#[test]
fn connections_are_closed_when_the_client_wants_that() {
    over_both(600_000, |server| {
        let last = |bodiless: bool| {
            head(600_000, "Connection: close\r\n") + &body(if bodiless { 0 } else { 600_000 })
        };
        for (request, bodiless) in [
            ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false),
            ("HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n", true),
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\n\r\nGET / HTTP/1.1\r\n\r\n", false),
        ] {
            let mut stream = connect(server);
            stream.write_all(request.as_bytes()).unwrap();
            assert!(rest(&mut stream) == last(bodiless), "{request:?}");
        }
    });
}

#[test]
fn a_client_that_sends_no_more_gets_what_it_asked_for() {
    over_both(900_000, |server| {
        let mut stream = connect(server);
        stream.write_all(GET.repeat(3).as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        thread::sleep(Duration::from_millis(20));
        assert!(rest(&mut stream) == full(900_000).repeat(3));
    });
}

#[test]
fn nonsense_is_answered_by_400_and_the_end() {
    over_both(13, |server| {
        for (sent, before) in [
            ("this is not http\r\n\r\n".to_owned(), String::new()),
            ("\u{16}\u{3}\u{1}\r\n".repeat(5_000), String::new()),
            (format!("{GET}GET / HTTP/9\r\n\r\n{GET}"), full(13)),
            ("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned(), String::new()),
        ] {
            let mut stream = connect(server);
            stream.write_all(sent.as_bytes()).unwrap();
            let found = rest(&mut stream);
            let answer = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            assert_eq!(found, before + answer);
        }
    });
}

#[test]
fn a_head_without_end_is_answered_by_431_while_it_comes() {
    over_both(13, |server| {
        for line in ["x".repeat(1_000), format!("a: {}\r\n", "x".repeat(1_000))] {
            let mut stream = connect(server);
            let mut writer = stream.try_clone().unwrap();
            let sender = thread::spawn(move || {
                writer.write_all(b"GET / HTTP/1.1\r\n")?;
                (0..10_000).try_for_each(|_| writer.write_all(line.as_bytes()))?;
                writer.shutdown(Shutdown::Write)
            });
            let found = rest(&mut stream);
            assert!(found.starts_with("HTTP/1.1 431 ") && found.ends_with("\r\n\r\n"), "{found}");
            // The server has read and discarded everything, so that a reset does not lose the answer.
            sender.join().unwrap().unwrap();
        }
    });
}

#[test]
fn a_client_that_does_not_end_its_connection_loses_it() {
    over_both(13, |server| {
        let mut stream = connect(server);
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let begun = Instant::now();
        assert!(rest(&mut stream).ends_with("Hello, world!"));
        while stream.write_all(b"more").is_ok() {
            assert!(begun.elapsed() < LIMIT);
            thread::sleep(Duration::from_millis(20));
        }
        // The server serves other clients throughout, and afterwards.
        let mut stream = connect(server);
        stream.write_all(GET.as_bytes()).unwrap();
        expect(&mut stream, &full(13));
    });
}

#[test]
fn many_connections_are_served_side_by_side() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, most).unwrap();
    over_both(13, |server| {
        let mut streams: Vec<TcpStream> = (0..1_100).map(|_| connect(server)).collect();
        for _ in 0..3 {
            for stream in &mut streams {
                stream.write_all(GET.as_bytes()).unwrap();
            }
            for stream in &mut streams {
                expect(stream, &full(13));
            }
        }
    });
}

#[test]
fn connections_come_and_go() {
    over_both(13, |server| {
        for number in 0..2_000 {
            let mut stream = connect(server);
            match number % 4 {
                0 => {}
                1 => stream.write_all(&GET.as_bytes()[..20]).unwrap(),
                2 => stream.write_all(GET.as_bytes()).unwrap(),
                _ => {
                    stream.write_all(GET.as_bytes()).unwrap();
                    expect(&mut stream, &full(13));
                }
            }
        }
    });
}

#[test]
fn several_threads_serve_one_port() {
    for backend in [Backend::Uring, Backend::Epoll] {
        let server = NullServer::start(NullConfig { threads: 3, backend, ..NullConfig::default() }).unwrap();
        let mut streams: Vec<TcpStream> = (0..50).map(|_| connect(&server)).collect();
        for stream in &mut streams {
            stream.write_all(GET.as_bytes()).unwrap();
            expect(stream, &full(13));
        }
    }
}

#[test]
fn a_unix_socket_is_made_served_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("null.sock");
    for (backend, threads) in [(Backend::Uring, 1), (Backend::Epoll, 2)] {
        let config =
            NullConfig { address: Address::Unix(path.clone()), backend, threads, ..NullConfig::default() };
        let server = NullServer::start(config.clone()).unwrap();
        for _ in 0..10 {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            stream.write_all(GET.as_bytes()).unwrap();
            expect(&mut stream, &full(13));
        }
        let error = NullServer::start(config).unwrap_err();
        let NullError::Listen { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), ErrorKind::AddrInUse);
        drop(server);
        assert!(!path.exists());
    }
}

#[test]
fn the_end_comes_at_once_and_frees_the_port() {
    for backend in [Backend::Uring, Backend::Epoll, Backend::Uring] {
        for threads in [1, 2] {
            let config = NullConfig { backend, threads, body_bytes: 5_000_000, ..NullConfig::default() };
            let server = NullServer::start(config.clone()).unwrap();
            let address = address(&server);
            let mut streams: Vec<TcpStream> = (0..20).map(|_| connect(&server)).collect();
            // Some connections are idle, one has sent a part of a request, and one does not read its answer.
            streams[1].write_all(&GET.as_bytes()[..10]).unwrap();
            streams[2].write_all(GET.as_bytes()).unwrap();
            streams[2].read_exact(&mut [0; 100]).unwrap();
            let begun = Instant::now();
            drop(server);
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
            assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
            for mut stream in streams {
                let ended = std::io::copy(&mut stream, &mut std::io::sink());
                let kind = ended.err().map(|error| error.kind());
                assert!(matches!(kind, None | Some(ErrorKind::ConnectionReset)), "{kind:?}");
            }
            let again = NullConfig { address: Address::Tcp(address), ..config };
            drop(NullServer::start(again).unwrap());
        }
    }
}

#[test]
fn what_cannot_be_is_an_error_with_its_cause() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(taken.local_addr().unwrap());
    for threads in [1, 2] {
        let error =
            NullServer::start(NullConfig { address: address.clone(), threads, ..NullConfig::default() });
        let Err(NullError::Listen { address: named, source }) = error else { panic!("{error:?}") };
        assert_eq!((named, source.kind()), (address.clone(), ErrorKind::AddrInUse));
    }
    let error = NullServer::start(NullConfig { cpus: vec![5_000], ..NullConfig::default() });
    assert!(matches!(error, Err(NullError::Pin { cpu: 5_000, .. })), "{error:?}");
    for config in [
        NullConfig { threads: 0, ..NullConfig::default() },
        NullConfig { body_bytes: usize::MAX, ..NullConfig::default() },
    ] {
        assert!(matches!(NullServer::start(config), Err(NullError::Config)));
    }
}

#[test]
fn each_answer_costs_the_work_that_was_asked_for() {
    for backend in [Backend::Uring, Backend::Epoll] {
        let spin = Spin::steps(500_000);
        let server = NullServer::start(NullConfig { spin, backend, ..NullConfig::default() }).unwrap();
        let mut stream = connect(&server);
        // Each answer costs the work once, whether requests are pipelined, single, or HEAD requests.
        for (requests, answers, count) in [
            (GET.repeat(100), full(13).repeat(100), 100),
            (GET.to_owned(), full(13), 1),
            ("HEAD / HTTP/1.1\r\n\r\n".repeat(50), head(13, "").repeat(50), 50),
        ] {
            // The machine's speed changes, so the work is timed on both sides of the answers.
            let before = step_ns();
            let start = Instant::now();
            stream.write_all(requests.as_bytes()).unwrap();
            expect(&mut stream, &answers);
            let took = start.elapsed();
            let work = Duration::from_nanos((before.min(step_ns()) * 500_000.0) as u64);
            assert!(took >= work.mul_f64(0.8 * f64::from(count)), "{}: {took:?} {work:?}", backend.name());
        }
    }
}

/// A folder with a self-signed certificate for localhost, and the settings with which a client trusts it.
fn identity() -> (tempfile::TempDir, ServerIdentity, TlsSettings) {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, own.cert.pem()).unwrap();
    std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    let settings = TlsSettings::new("localhost", TlsTrust::File(certificate.clone())).unwrap();
    (folder, ServerIdentity { certificate, key }, settings)
}

fn loaded(address: &Address, tls: &TlsSettings, body_bytes: usize, headers: &[(String, String)]) -> Tally {
    let bytes = request_bytes("GET", "/", "localhost", headers, b"").unwrap();
    let expect =
        Expectation { status: StatusRule::Exact(200), body: BodyRule::exactly(body(body_bytes).as_bytes()) };
    let config = SessionConfig {
        tls: Some(tls.clone()),
        connect_timeout: LIMIT,
        timeout: LIMIT,
        ..SessionConfig::to(address.clone(), 8, Requests::one(Prepared { bytes, head: false, expect }))
    };
    let order =
        SliceOrder { pacer: Pacer::Closed, limit: Limit::requests(200), settle: Duration::ZERO, start: 0 };
    Session::open(config).unwrap().slice(&order).unwrap()
}

#[test]
fn over_tls_it_answers_the_same() {
    let (_folder, identity, settings) = identity();
    let close = [("Connection".to_owned(), "close".to_owned())];
    for body_bytes in [0, 13, 100_000] {
        let config =
            NullConfig { body_bytes, threads: 2, tls: Some(identity.clone()), ..NullConfig::default() };
        let server = NullServer::start(config).unwrap();
        assert_eq!(server.backend(), Backend::Epoll);
        for (headers, ended) in [(&[][..], 0), (&close[..], 200)] {
            let tally = loaded(server.address(), &settings, body_bytes, headers);
            let found = (tally.outcomes.ok, tally.closed_by_server);
            assert_eq!(found, (200, ended), "{body_bytes}: {:?}", tally.faults);
        }
        let ask =
            |request: &[u8], head| exchange(server.address(), Some(&settings), request, head, LIMIT, 200_000);
        let answer = ask(b"HEAD / HTTP/1.1\r\n\r\n", true).unwrap();
        assert_eq!((answer.status, answer.body.len()), (200, 0));
        let answer = ask(b"nonsense\r\n\r\n", false).unwrap();
        assert_eq!((answer.status, answer.keep_alive), (400, false));
        assert!(server.is_running());
    }
}

#[test]
fn over_tls_a_client_without_it_is_told_so_and_cut_off() {
    let (_folder, identity, settings) = identity();
    let server =
        NullServer::start(NullConfig { tls: Some(identity.clone()), ..NullConfig::default() }).unwrap();
    let plain = exchange(server.address(), None, GET.as_bytes(), false, LIMIT, 1_000);
    assert!(matches!(plain, Err(ExchangeError::SpeaksTls)), "{plain:?}");
    let mut stream = connect(&server);
    stream.write_all(GET.as_bytes()).unwrap();
    assert!(!rest_of(&mut stream).is_empty(), "an alert");
    let tally = loaded(server.address(), &settings, 13, &[]);
    assert_eq!(tally.outcomes.ok, 200, "{:?}", tally.faults);
    let missing = ServerIdentity { key: "/nowhere/key.pem".into(), ..identity };
    let error = NullServer::start(NullConfig { tls: Some(missing), ..NullConfig::default() }).unwrap_err();
    assert!(matches!(&error, NullError::Tls(reason) if reason.contains("/nowhere/key.pem")), "{error}");
}

/// All bytes up to the end of the connection, even if it ends with an error.
fn rest_of(stream: &mut impl Read) -> Vec<u8> {
    let mut found = Vec::new();
    let _ = stream.read_to_end(&mut found);
    found
}
