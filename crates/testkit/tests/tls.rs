//! Checks the test server over TLS and IPv6 with a client that inspects each answer.

use std::io::ErrorKind;
use std::net::{Ipv6Addr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use deadheat_testkit::{Authority, TestServer, skip_loudly};
use rustls::ProtocolVersion;
use tempfile::TempDir;

/// Starts a server with TLS. Returns it and the folder of its certificates.
fn start(more: &[&str]) -> (TestServer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(&[&["--tls-dir", folder.path().to_str().unwrap()], more].concat());
    (server, folder)
}

fn ca(folder: &TempDir) -> PathBuf {
    folder.path().join("ca.pem")
}

#[test]
fn a_good_server_answers_over_tls() {
    let (server, folder) = start(&["--body", "hi"]);
    assert!(server.url("/").starts_with("https://127.0.0.1:"));
    for name in ["localhost", "127.0.0.1", "::1"] {
        let mut client = server.tls_client(&ca(&folder), name);
        for _ in 0..3 {
            assert_eq!(client.get("/").unwrap().text(), "hi");
        }
        assert_eq!(client.tls().alpn_protocol(), Some(b"http/1.1".as_slice()));
        assert_eq!(client.tls().protocol_version(), Some(ProtocolVersion::TLSv1_3));
    }
    for file in ["cert.pem", "key.pem"] {
        assert!(std::fs::read_to_string(folder.path().join(file)).unwrap().starts_with("-----BEGIN "));
    }
    let bare = TestServer::start(&["--tls"]);
    assert!(bare.tls_client(&ca(&folder), "localhost").get("/").is_err(), "its CA is unknown");
}

#[test]
fn versions_can_be_chosen() {
    let expected = [("1.2", ProtocolVersion::TLSv1_2), ("1.3", ProtocolVersion::TLSv1_3)];
    for (version, expected) in expected {
        let (server, folder) = start(&["--tls-versions", version]);
        let mut client = server.tls_client(&ca(&folder), "localhost");
        assert_eq!(client.get("/").unwrap().status, 200);
        assert_eq!(client.tls().protocol_version(), Some(expected));
    }
}

#[test]
fn certificates_are_wrong_as_told() {
    let (named, folder) = start(&["--tls-name", "example.com"]);
    assert_eq!(named.tls_client(&ca(&folder), "example.com").get("/").unwrap().status, 200);
    let (expired, expired_folder) = start(&["--tls-expired"]);
    let (sound, _kept) = start(&[]);
    for (server, ca, complaint) in [
        (&named, ca(&folder), "not valid for name"),
        (&expired, ca(&expired_folder), "expired"),
        (&sound, ca(&folder), "UnknownIssuer"),
    ] {
        let error = server.tls_client(&ca, "localhost").get("/").unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidData && error.to_string().contains(complaint), "{error}");
    }
}

#[test]
fn an_authority_can_be_there_before_its_servers() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::in_folder(folder.path()).unwrap();
    let before = folder.path().join("before.pem");
    std::fs::write(&before, authority.pem()).unwrap();
    let arguments = ["--tls-dir", folder.path().to_str().unwrap()];
    let servers = [TestServer::start(&arguments), TestServer::start(&arguments)];
    for server in &servers {
        assert_eq!(server.tls_client(&before, "localhost").get("/").unwrap().status, 200);
    }
}

#[test]
fn requests_split_and_answers_larger_than_the_socket_pass_whole() {
    let body = "0123456789".repeat(12_000);
    let (server, folder) = start(&["--body", &body]);
    let mut client = server.tls_client(&ca(&folder), "localhost");
    let requests = "GET / HTTP/1.1\r\n\r\n".repeat(50);
    let (first, rest) = requests.split_at(requests.len() / 2 + 3);
    client.send(first.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    client.send(rest.as_bytes()).unwrap();
    for _ in 0..50 {
        assert_eq!(client.reply(false).unwrap().text(), body);
    }
}

#[test]
fn connections_end_with_a_word_unless_the_server_dies() {
    for option in ["--close-each", "--truncate"] {
        let (server, folder) = start(&[option]);
        let mut client = server.tls_client(&ca(&folder), "localhost");
        let reply = client.get("/");
        assert_eq!(reply.is_ok(), option == "--close-each");
        assert!(client.is_closed().unwrap(), "{option}: said to be the end");
    }
    let (server, folder) = start(&["--exit-after", "1"]);
    let mut client = server.tls_client(&ca(&folder), "localhost");
    assert_eq!(client.get("/").unwrap().status, 200);
    assert_eq!(client.is_closed().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn other_options_hold_over_tls() {
    let (server, folder) = start(&["--json", "--delay-ms", "200", "--status-under-load", "1", "503"]);
    let mut client = server.tls_client(&ca(&folder), "localhost");
    let begin = Instant::now();
    assert_eq!(client.get("/a").unwrap().status, 200);
    assert!(begin.elapsed() >= Duration::from_millis(200));
    let reply = client.get("/a").unwrap();
    assert_eq!((reply.status, reply.header("content-type")), (503, Some("application/json")));
}

#[test]
fn plain_text_and_tls_do_not_mix() {
    let (secured, folder) = start(&[]);
    let error = secured.client().get("/").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof), "{error}");
    let plain = TestServer::start(&[]);
    let error = plain.tls_client(&ca(&folder), "localhost").get("/").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
}

#[test]
fn a_server_listens_on_ipv6() {
    if let Err(error) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        skip_loudly!("there is no IPv6 here: {error}");
    }
    let plain = TestServer::start(&["--host", "::1", "--body", "six"]);
    assert!(plain.url("/x").starts_with("http://[::1]:") && plain.url("/x").ends_with("/x"));
    assert_eq!(plain.client().get("/").unwrap().text(), "six");
    let (secured, folder) = start(&["--host", "::1"]);
    assert_eq!(secured.tls_client(&ca(&folder), "::1").get("/").unwrap().status, 200);
}
