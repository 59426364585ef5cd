//! Slices over TLS, against correct and incorrect servers.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadheat_load::*;
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

use crate::kit::*;

type Secured = StreamOwned<ServerConnection, TcpStream>;

/// A server for localhost that counts resumed handshakes.
struct TlsServer {
    address: SocketAddr,
    folder: tempfile::TempDir,
    resumed: Arc<AtomicU64>,
}

impl TlsServer {
    /// Calls `behaviour` for each request, and ends the connection if it returns false.
    fn start(behaviour: impl Fn(&mut Secured) -> bool + Send + Sync + 'static) -> TlsServer {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cert.pem"), own.cert.pem()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![own.cert.der().clone()], own.signing_key.into()).unwrap();
        let (config, behaviour) = (Arc::new(config), Arc::new(behaviour));
        let resumed = Arc::new(AtomicU64::new(0));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counted = resumed.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, behaviour, resumed) = (config.clone(), behaviour.clone(), counted.clone());
                std::thread::spawn(move || {
                    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                    while read_request(&mut stream) {
                        if stream.conn.handshake_kind() == Some(HandshakeKind::Resumed) {
                            resumed.fetch_add(1, Ordering::Relaxed);
                        }
                        if !behaviour(&mut stream) {
                            break;
                        }
                    }
                });
            }
        });
        TlsServer { address, folder, resumed }
    }

    fn config(&self, name: &str, connections: usize) -> SessionConfig {
        let tls = TlsSettings::new(name, TlsTrust::File(self.folder.path().join("cert.pem"))).unwrap();
        SessionConfig { tls: Some(tls), ..config(self.address.into(), connections) }
    }
}

#[test]
fn answers_of_any_size_come_through() {
    for length in [0, 13, 20_000, 400_000] {
        let body = "x".repeat(length);
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
        let server = TlsServer::start(move |stream| say(stream, &text));
        let expect = Expectation { status: StatusRule::Exact(200), body: BodyRule::exactly(body.as_bytes()) };
        let requests = Arc::new(Requests::one(Prepared { expect, ..get() }));
        let tally = run(SessionConfig { requests, ..server.config("localhost", 8) }, &closed(200));
        assert_eq!((tally.outcomes.ok, tally.due), (200, 200), "{length}: {:?}", tally.faults);
        assert!(tally.bytes_read > 200 * length as u64 && tally.bytes_written > 200 * 40);
    }
}

#[test]
fn a_worker_that_may_spin_never_sleeps() {
    let server = TlsServer::start(|stream| {
        std::thread::sleep(Duration::from_millis(2));
        say(stream, HELLO)
    });
    for pacer in [Pacer::Closed, constant(200.0)] {
        let order = order(pacer, Limit::duration(Duration::from_millis(200)));
        let tally =
            first_awake(|| run(SessionConfig { spin: true, ..server.config("localhost", 4) }, &order));
        assert!(tally.outcomes.ok > 0 && tally.spin_ns > 0 && never_slept(&tally), "{tally:?}");
    }
}

#[test]
fn large_requests_come_through() {
    let server = TlsServer::start(|stream| say(stream, HELLO));
    // The body ends like a head, because the server recognizes the end of a request only by an empty line.
    let body = ["y".repeat(300_000).as_bytes(), b"\r\n\r\n"].concat();
    let bytes = request_bytes("POST", "/", "localhost", &[], &body).unwrap();
    let requests = Arc::new(Requests::one(Prepared { bytes, ..get() }));
    let tally = run(SessionConfig { requests, ..server.config("localhost", 3) }, &closed(30));
    assert_eq!(tally.outcomes.ok, 30, "{:?}", tally.faults);
}

#[test]
fn connections_made_anew_resume() {
    let server = TlsServer::start(|stream| {
        let _ = say(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
        stream.conn.send_close_notify();
        let _ = stream.flush();
        false
    });
    let tally = run(server.config("localhost", 2), &closed(40));
    assert_eq!((tally.outcomes.ok, tally.closed_by_server), (40, 40), "{:?}", tally.faults);
    let resumed = server.resumed.load(Ordering::Relaxed);
    assert!(resumed >= 30, "{resumed}");
}

#[test]
fn without_resumption_every_connection_makes_a_full_handshake() {
    let server = TlsServer::start(|stream| {
        let _ = say(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
        stream.conn.send_close_notify();
        let _ = stream.flush();
        false
    });
    let config = server.config("localhost", 2);
    let tls = config.tls.clone().map(TlsSettings::without_resumption);
    let tally = run(SessionConfig { tls, ..config }, &closed(40));
    assert_eq!((tally.outcomes.ok, tally.closed_by_server), (40, 40), "{:?}", tally.faults);
    assert_eq!(server.resumed.load(Ordering::Relaxed), 0);
}

#[test]
fn an_end_of_the_body_counts_only_if_it_was_said() {
    for said in [true, false] {
        let server = TlsServer::start(move |stream| {
            let _ = say(stream, "HTTP/1.1 200 OK\r\n\r\nhello");
            if said {
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
            false
        });
        let tally = run(server.config("localhost", 1), &closed(3));
        let wanted = if said { (3, 0) } else { (0, 3) };
        assert_eq!((tally.outcomes.ok, tally.outcomes.read), wanted, "{:?}", tally.faults);
    }
}

fn refused(config: SessionConfig) -> String {
    let error = Session::open(config).unwrap_err();
    format!("{error}: {}", std::error::Error::source(&error).unwrap())
}

#[test]
fn wrong_certificates_and_plain_text_refuse_the_session() {
    let server = TlsServer::start(|stream| say(stream, HELLO));
    let text = refused(server.config("example.org", 2));
    assert!(text.contains("0 of 2") && text.contains("localhost"), "{text}");
    let strangers = TlsServer::start(|stream| say(stream, HELLO));
    let text = refused(SessionConfig { address: strangers.address.into(), ..server.config("localhost", 1) });
    assert!(text.contains("certificate"), "{text}");
    let plain = Server::start(|stream, _| say(stream, HELLO));
    let impatient = Duration::from_millis(500);
    let text = refused(SessionConfig {
        address: plain.at(),
        connect_timeout: impatient,
        ..server.config("localhost", 1)
    });
    assert!(text.contains("0 of 1"), "{text}");
}

#[test]
fn tls_that_breaks_in_the_middle_is_a_fault_and_no_answer() {
    let server = TlsServer::start(|stream| {
        let _ = say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
        // These bytes are not a TLS record.
        let _ = stream.sock.write_all(b"this is not encrypted at all");
        std::thread::sleep(Duration::from_millis(50));
        false
    });
    let tally = run(server.config("localhost", 1), &closed(3));
    assert_eq!((tally.outcomes.read, tally.due), (3, 3), "{:?}", tally.faults);
    assert!(tally.faults.iter().all(|fault| matches!(fault.cause, Cause::Tls(_))), "{:?}", tally.faults);
}
