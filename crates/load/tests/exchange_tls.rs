//! Single exchanges over TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::kit::{HELLO, get, read_request, say};
use deadheat_load::*;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

type Secured = StreamOwned<ServerConnection, TcpStream>;

/// A server for localhost with its certificate in a file, which clients trust directly.
struct TlsServer {
    address: SocketAddr,
    folder: TempDir,
}

impl TlsServer {
    /// Calls `behaviour` for each connection after its first request.
    fn start(behaviour: impl Fn(&mut Secured) + Send + 'static) -> TlsServer {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cert.pem"), own.cert.pem()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.unwrap().with_no_client_auth();
        let key = own.signing_key.into();
        let config = Arc::new(config.with_single_cert(vec![own.cert.der().clone()], key).unwrap());
        let address = listen(move |stream| {
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            if read_request(&mut stream) {
                behaviour(&mut stream);
            }
        });
        TlsServer { address, folder }
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    fn ask(&self, name: &str, millis: u64) -> Result<Answer, ExchangeError> {
        let settings = TlsSettings::new(name, TlsTrust::File(self.certificate())).unwrap();
        ask(self.address, Some(&settings), millis)
    }
}

/// Calls `behaviour` for every connection, one after the other.
fn listen(behaviour: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().flatten().for_each(behaviour));
    address
}

fn ask(address: SocketAddr, tls: Option<&TlsSettings>, millis: u64) -> Result<Answer, ExchangeError> {
    exchange(&address.into(), tls, &get().bytes, false, Duration::from_millis(millis), 300_000)
}

#[test]
fn answers_pass_whole() {
    let body = "0123456789".repeat(20_000);
    let expected = body.clone();
    let server = TlsServer::start(move |stream| {
        say(stream, &format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()));
        say(stream, &body);
    });
    let answer = server.ask("localhost", 5000).unwrap();
    assert_eq!((answer.status, answer.keep_alive), (200, true));
    assert_eq!(answer.body, expected.as_bytes());
}

#[test]
fn a_body_ends_with_the_connection_only_where_the_server_says_so() {
    let text = "HTTP/1.1 200 OK\r\n\r\nabc";
    let whole = TlsServer::start(move |stream| {
        say(stream, text);
        stream.conn.send_close_notify();
        stream.flush().unwrap();
    });
    assert_eq!(whole.ask("localhost", 5000).unwrap().body, b"abc");
    let cut = TlsServer::start(move |stream| assert!(say(stream, text)));
    let failure = cut.ask("localhost", 5000).unwrap_err();
    assert!(matches!(failure, ExchangeError::Closed { received: 22 }), "{failure}");
}

#[test]
fn failures_of_tls_are_told_as_such() {
    let server = TlsServer::start(|stream| assert!(say(stream, HELLO)));
    let failure = server.ask("elsewhere", 5000).unwrap_err();
    assert!(matches!(&failure, ExchangeError::Tls(TlsFailure::Certificate(_))), "{failure}");
    assert!(failure.to_string().contains("wrong name: it is for localhost, not for elsewhere"), "{failure}");

    let any = TlsSettings::new("elsewhere", TlsTrust::Insecure).unwrap();
    assert_eq!(ask(server.address, Some(&any), 5000).unwrap().body, b"hello");
    let plain = listen(|mut stream| {
        let _ = stream.read(&mut [0; 2000]);
        say(&mut stream, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let failure = ask(plain, Some(&any), 5000).unwrap_err();
    assert!(matches!(failure, ExchangeError::Tls(TlsFailure::NotTls)), "{failure}");
    let leaving = listen(|mut stream| drop(stream.read(&mut [0; 2000])));
    let failure = ask(leaving, Some(&any), 5000).unwrap_err();
    assert!(matches!(failure, ExchangeError::Tls(TlsFailure::Ended)), "{failure}");
}

#[test]
fn a_handshake_that_never_comes_is_no_late_answer() {
    let any = TlsSettings::new("localhost", TlsTrust::Insecure).unwrap();
    let deaf = crate::kit::Server::start(|_, _| true);
    let failure = ask(deaf.address, Some(&any), 50).unwrap_err();
    assert!(matches!(failure, ExchangeError::Handshake(_)), "{failure}");
    let slow = TlsServer::start(|stream| drop(stream.read(&mut [0; 1])));
    // A busy machine may need seconds for the handshake.
    let ask = |ms| slow.ask("localhost", ms).unwrap_err();
    let mut failures = [1_000, 4_000, 16_000, 64_000].into_iter().map(ask);
    let failure = failures.find(|one| !matches!(one, ExchangeError::Handshake(_))).unwrap();
    assert!(matches!(failure, ExchangeError::Timeout(_)), "{failure}");
}
