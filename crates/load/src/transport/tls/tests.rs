//! TLS against a server in memory.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, HandshakeKind, ServerConfig, ServerConnection, SupportedProtocolVersion};
use tempfile::TempDir;

use super::*;

const BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// A CA and the directory with its certificate.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Authority {
        Authority::named("one")
    }

    fn named(name: &str) -> Authority {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Authority { issuer, folder: tempfile::tempdir().unwrap() };
        std::fs::write(authority.file(), authority.issuer.pem()).unwrap();
        authority
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Settings of a client that trusts only this CA and connects to the server `name`.
    fn settings(&self, name: &str) -> TlsSettings {
        TlsSettings::new(name, TlsTrust::File(self.file())).unwrap()
    }

    fn server(
        &self,
        names: &[&str],
        last_year: i32,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Server {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_after = rcgen::date_time_ymd(last_year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
        let mut config = builder
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Server(config)
    }

    fn localhost(&self, version: &'static SupportedProtocolVersion) -> Server {
        self.server(&["localhost"], 2999, &[version])
    }
}

struct Server(ServerConfig);

impl Server {
    fn ready(self) -> Arc<ServerConfig> {
        Arc::new(self.0)
    }
}

/// Both ends of a connection, and the plain bytes that each has received.
struct Pair {
    client: Tls,
    server: ServerConnection,
    to_client: Vec<u8>,
    to_server: Vec<u8>,
    received: Received,
    server_says: Result<(), rustls::Error>,
}

impl Pair {
    fn new(settings: &TlsSettings, server: &Arc<ServerConfig>) -> Pair {
        let mut server = ServerConnection::new(server.clone()).unwrap();
        server.set_buffer_limit(None);
        let received = Received { established: false, closed: false };
        let client = Tls::new(settings).unwrap();
        Pair { client, server, to_client: vec![], to_server: vec![], received, server_says: Ok(()) }
    }

    /// Carries bytes both ways, in pieces, until neither side has any left.
    fn run(&mut self, piece: usize) -> Result<(), TlsFailure> {
        loop {
            let wire = self.client_wire();
            let mut moved = wire.len();
            self.hand_to_server(&wire, piece);
            let wire = self.server_wire();
            moved += wire.len();
            for piece in wire.chunks(piece) {
                self.received = self.client.receive(piece, &mut self.to_client)?;
            }
            if moved == 0 {
                return Ok(());
            }
        }
    }

    fn hand_to_server(&mut self, wire: &[u8], piece: usize) {
        for mut piece in wire.chunks(piece) {
            while !piece.is_empty() {
                self.server.read_tls(&mut piece).unwrap();
                match self.server.process_new_packets() {
                    Ok(_) => drop(self.server.reader().read_to_end(&mut self.to_server)),
                    Err(error) => self.server_says = Err(error),
                }
            }
        }
    }

    fn client_wire(&mut self) -> Vec<u8> {
        let wire = self.client.unsent().to_vec();
        self.client.took(wire.len());
        wire
    }

    fn server_wire(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut wire).unwrap();
        }
        wire
    }

    fn answer(&mut self, plain: &[u8]) {
        self.server.writer().write_all(plain).unwrap();
    }
}

/// Completes the handshake of a new connection, or returns its failure.
fn meet(settings: &TlsSettings, server: &Arc<ServerConfig>) -> Result<Pair, TlsFailure> {
    let mut pair = Pair::new(settings, server);
    pair.run(usize::MAX)?;
    assert!(pair.received.established && !pair.client.is_handshaking());
    Ok(pair)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 256) as u8).collect()
}

#[test]
fn bytes_pass_both_ways_in_pieces_of_any_size() {
    let authority = Authority::new();
    for version in BOTH {
        let server = authority.localhost(version).ready();
        for piece in [1, 7, 1448, 64 * 1024, usize::MAX] {
            let mut pair = Pair::new(&authority.settings("localhost"), &server);
            assert!(!pair.client.unsent().is_empty() && pair.client.is_handshaking());
            pair.client.send(b"early ").unwrap();
            pair.run(piece).unwrap();
            assert_eq!(pair.received, Received { established: true, closed: false });
            let (question, answer) = (pattern(60_000), pattern(100_000));
            pair.client.send(b"bird").unwrap();
            pair.client.send(&question).unwrap();
            pair.answer(&answer);
            pair.run(piece).unwrap();
            pair.answer(b"13 bytes long");
            pair.run(piece).unwrap();
            assert_eq!(pair.to_server, [b"early bird", question.as_slice()].concat());
            assert_eq!(pair.to_client, [answer.as_slice(), b"13 bytes long"].concat());
            assert!(pair.client.unsent().is_empty() && pair.client.incoming.is_empty());
        }
    }
}

#[test]
fn new_keys_on_either_side_change_nothing() {
    let authority = Authority::new();
    let mut pair = meet(&authority.settings("localhost"), &authority.localhost(&TLS13).ready()).unwrap();
    for _ in 0..3 {
        pair.server.refresh_traffic_keys().unwrap();
        pair.answer(b"a");
        pair.client.send(b"b").unwrap();
        pair.run(1).unwrap();
    }
    assert_eq!((pair.to_client.as_slice(), pair.to_server.as_slice()), (&b"aaa"[..], &b"bbb"[..]));
}

#[test]
fn later_connections_resume() {
    let authority = Authority::new();
    for version in BOTH {
        let server = authority.localhost(version).ready();
        let settings = authority.settings("localhost");
        let kind = |settings: &TlsSettings| meet(settings, &server).unwrap().client.conn.handshake_kind();
        assert_eq!(kind(&settings), Some(HandshakeKind::Full));
        for _ in 0..3 {
            assert_eq!(kind(&settings.clone()), Some(HandshakeKind::Resumed));
        }
        assert_eq!(kind(&authority.settings("localhost")), Some(HandshakeKind::Full));
    }
}

#[test]
fn many_connections_made_anew_at_once_all_resume() {
    let authority = Authority::new();
    for version in BOTH {
        let server = authority.localhost(version).ready();
        let settings = authority.settings("localhost");
        for expected in [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed] {
            let mut pairs: Vec<Pair> = (0..40).map(|_| Pair::new(&settings, &server)).collect();
            for pair in &mut pairs {
                pair.run(usize::MAX).unwrap();
                assert_eq!(pair.client.conn.handshake_kind(), Some(expected));
            }
        }
    }
}

#[test]
fn wrong_certificates_are_told_apart_and_insecure_takes_them_all() {
    let (authority, stranger, impostor) = (Authority::new(), Authority::named("other"), Authority::new());
    for version in BOTH {
        let cases = [
            (authority.server(&["example.com", "127.0.0.1"], 2999, &[version]), "wrong name"),
            (authority.server(&["localhost"], 2001, &[version]), "expired"),
            (stranger.localhost(version), "unknown issuer"),
            (impostor.localhost(version), "wrong signature"),
        ];
        for (server, reason) in cases {
            let server = server.ready();
            let mut pair = Pair::new(&authority.settings("localhost"), &server);
            let failure = pair.run(1000).unwrap_err();
            assert!(
                matches!(&failure, TlsFailure::Certificate(text) if text.starts_with(reason)),
                "{failure}"
            );
            // The server receives the alert, and the connection stays failed.
            assert!(!pair.client.unsent().is_empty());
            let wire = pair.client_wire();
            pair.hand_to_server(&wire, usize::MAX);
            assert!(
                matches!(pair.server_says, Err(rustls::Error::AlertReceived(_))),
                "{:?}",
                pair.server_says
            );
            assert_eq!(pair.client.receive(b"x", &mut Vec::new()), Err(failure));
            assert!(meet(&TlsSettings::new("localhost", TlsTrust::Insecure).unwrap(), &server).is_ok());
        }
    }
}

#[test]
fn a_wrong_name_is_told_with_the_right_ones() {
    let authority = Authority::new();
    let server = authority.server(&["example.com", "127.0.0.1"], 2999, &BOTH).ready();
    let failure = meet(&authority.settings("localhost"), &server).err().unwrap();
    assert_eq!(
        failure.to_string(),
        "the server's certificate is not accepted: wrong name: it is for example.com, 127.0.0.1, not for localhost"
    );
    let many: Vec<String> = (0..100).map(|n| format!("n{n}.example.com")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let server = authority.server(&many, 2999, &BOTH).ready();
    let failure = meet(&authority.settings("localhost"), &server).err().unwrap().to_string();
    assert!(failure.contains("n4.example.com, others, not for localhost"), "{failure}");
}

#[test]
fn the_certificate_of_a_ca_is_no_servers() {
    let authority = Authority::new();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = KeyPair::from_pem(&authority.issuer.key().serialize_pem()).unwrap();
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&BOTH).unwrap();
    let builder = builder.with_no_client_auth();
    let config = builder.with_single_cert(vec![authority.issuer.der().clone()], key.into()).unwrap();
    let failure = meet(&authority.settings("localhost"), &Arc::new(config)).err().unwrap();
    assert!(matches!(&failure, TlsFailure::Certificate(text) if text.contains("a CA's own")), "{failure}");
}

#[test]
fn servers_may_be_named_by_address() {
    let authority = Authority::new();
    let server = authority.server(&["127.0.0.1", "::1"], 2999, &BOTH).ready();
    for name in ["127.0.0.1", "::1", "[::1]"] {
        let pair = meet(&authority.settings(name), &server).unwrap();
        assert_eq!(pair.server.server_name(), None, "addresses are not told");
    }
    for name in ["127.0.0.2", "localhost"] {
        assert!(
            matches!(meet(&authority.settings(name), &server), Err(TlsFailure::Certificate(_))),
            "{name}"
        );
    }
    let server = authority.localhost(&TLS13).ready();
    assert_eq!(
        meet(&authority.settings("localhost"), &server).unwrap().server.server_name(),
        Some("localhost")
    );
}

#[test]
fn the_protocol_is_http_1_1_and_nothing_else() {
    let authority = Authority::new();
    for version in BOTH {
        let mut server = authority.localhost(version);
        let pair = meet(&authority.settings("localhost"), &Arc::new(server.0.clone())).unwrap();
        let expected = Some(b"http/1.1".as_slice());
        assert_eq!((pair.client.conn.alpn_protocol(), pair.server.alpn_protocol()), (expected, expected));
        server.0.alpn_protocols = vec![b"h2".to_vec()];
        let failure = meet(&authority.settings("localhost"), &server.ready()).err().unwrap();
        let told =
            "the server broke off TLS with the alert NoApplicationProtocol (it offers no HTTP/1.1 over TLS)";
        assert_eq!(failure.to_string(), told);
    }
}

#[test]
fn plain_text_is_known_as_such() {
    let authority = Authority::new();
    for text in ["HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", "SSH-2.0-x\r\n", "<html></html>"] {
        for piece in [1, 1000] {
            let mut client = Tls::new(&authority.settings("localhost")).unwrap();
            let mut pieces = text.as_bytes().chunks(piece);
            let result = pieces.try_for_each(|piece| client.receive(piece, &mut Vec::new()).map(|_| ()));
            assert_eq!(result, Err(TlsFailure::NotTls), "{text}");
        }
    }
}

#[test]
fn an_end_that_is_said_differs_from_one_that_is_not() {
    let authority = Authority::new();
    for version in BOTH {
        let server = authority.localhost(version).ready();
        let mut pair = meet(&authority.settings("localhost"), &server).unwrap();
        pair.answer(b"whole");
        pair.run(1).unwrap();
        assert!(!pair.received.closed, "so far it could be cut off");
        pair.answer(b" answer");
        pair.server.send_close_notify();
        pair.run(1).unwrap();
        assert_eq!((pair.to_client.as_slice(), pair.received.closed), (&b"whole answer"[..], true));
        let after = pair.client.receive(&pattern(100_000), &mut pair.to_client).unwrap();
        assert_eq!((after.closed, pair.to_client.len(), pair.client.incoming.len()), (true, 12, 0));
        // The client may still send, for example the rest of its request.
        pair.client.send(b"late").unwrap();
        pair.run(1).unwrap();
        assert_eq!(pair.to_server, b"late");
    }
}

#[test]
fn a_byte_changed_on_the_way_is_noticed() {
    let authority = Authority::new();
    for version in BOTH {
        let mut pair = meet(&authority.settings("localhost"), &authority.localhost(version).ready()).unwrap();
        pair.answer(b"right");
        pair.answer(b"wrong");
        let mut wire = pair.server_wire();
        *wire.last_mut().unwrap() ^= 1;
        let mut plain = Vec::new();
        let failure = pair.client.receive(&wire, &mut plain).unwrap_err();
        assert!(matches!(failure, TlsFailure::Other(_)), "{failure}");
        assert_eq!(plain, b"right");
        assert_eq!(pair.client.send(b"more"), Err(failure));
        let wire = pair.client_wire();
        pair.hand_to_server(&wire, usize::MAX);
        assert_eq!(pair.server_says, Err(rustls::Error::AlertReceived(AlertDescription::BadRecordMac)));
    }
}

#[test]
fn a_flood_leaves_no_buffers_behind() {
    let authority = Authority::new();
    let mut pair = meet(&authority.settings("localhost"), &authority.localhost(&TLS13).ready()).unwrap();
    let (mut plain, mut total) = (Vec::new(), 0);
    for _ in 0..20 {
        pair.answer(&pattern(1_000_000));
        let wire = pair.server_wire();
        // With this size almost every piece ends within a record.
        for piece in wire.chunks(50_001) {
            plain.clear();
            pair.client.receive(piece, &mut plain).unwrap();
            total += plain.len();
            assert!(plain.len() <= 50_001 + 2 * PIECE, "{} bytes came late", plain.len());
            assert!(pair.client.incoming.len() <= PIECE + 256 + 5, "no more than a record waits");
            assert!(pair.client.incoming.capacity() <= 4 * PIECE);
        }
    }
    assert_eq!((total, pair.client.outgoing.len()), (20_000_000, 0));
}

#[test]
fn a_handshake_of_many_records_is_put_together() {
    let authority = Authority::new();
    let names: Vec<String> = (0..3200).map(|n| format!("n{n}.example.com")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for version in BOTH {
        let server = authority.server(&names, 2999, &[version]).ready();
        for piece in [1000, usize::MAX] {
            let mut pair = Pair::new(&authority.settings("n7.example.com"), &server);
            pair.run(piece).unwrap();
            assert!(pair.received.established && pair.client.incoming.capacity() <= 8 * PIECE);
        }
    }
}

#[test]
fn settings_that_cannot_be_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = |content: &str| {
        let path = folder.path().join("file.pem");
        std::fs::write(&path, content).unwrap();
        TlsSettings::new("localhost", TlsTrust::File(path)).unwrap_err()
    };
    let missing = TlsTrust::File(folder.path().join("missing.pem"));
    let missing = TlsSettings::new("localhost", missing).unwrap_err();
    assert!(matches!(missing, TlsError::Unreadable { .. }) && missing.to_string().contains("No such file"));
    assert!(matches!(file(""), TlsError::NoCertificate { .. }));
    let key = KeyPair::generate().unwrap().serialize_pem();
    assert!(matches!(file(&key), TlsError::NoCertificate { .. }));
    let block = |inner: &str| format!("-----BEGIN CERTIFICATE-----\n{inner}\n-----END CERTIFICATE-----\n");
    assert!(matches!(file(&block("?")), TlsError::Unreadable { .. }));
    let sound = Authority::new().issuer.pem();
    let half = file(&format!("{sound}{}", block("AAAA")));
    assert!(matches!(half, TlsError::BadCertificate { number: 2, .. }), "{half}");
    for name in ["", "two words", "https://localhost", "localhost:443", "[localhost"] {
        let error = TlsSettings::new(name, TlsTrust::Insecure).unwrap_err();
        assert!(matches!(error, TlsError::ServerName { .. }), "{name}: {error}");
    }
}

#[test]
fn the_system_does_not_trust_whom_we_made_up() {
    let server = Authority::new().localhost(&TLS13).ready();
    match TlsSettings::new("localhost", TlsTrust::System) {
        Ok(settings) => {
            let failure = meet(&settings, &server).err().unwrap();
            assert!(failure.to_string().contains("unknown issuer"), "{failure}");
        }
        Err(none) => assert!(matches!(none, TlsError::NoSystemRoots { .. }), "{none}"),
    }
}

#[test]
fn what_is_sent_does_not_disturb_a_record_half_here() {
    let authority = Authority::new();
    for version in BOTH {
        let mut pair = Pair::new(&authority.settings("localhost"), &authority.localhost(version).ready());
        let mut sent = 0;
        pair.answer(&pattern(3000));
        while sent < 10_000 {
            let wire = pair.client_wire();
            pair.hand_to_server(&wire, usize::MAX);
            for byte in pair.server_wire() {
                pair.client.send(b"x").unwrap();
                sent += 1;
                pair.client.receive(&[byte], &mut pair.to_client).unwrap();
            }
            if !pair.client.is_handshaking() {
                pair.answer(&pattern(3000));
            }
        }
        pair.run(usize::MAX).unwrap();
        assert_eq!(pair.to_server, vec![b'x'; sent]);
        assert!(pair.to_client.len() >= 6000 && pair.to_client.chunks(3000).all(|one| one == pattern(3000)));
    }
}

proptest! {
    /// No disturbance of the server's bytes produces a wrong answer or a panic.
    #[test]
    fn no_disturbance_gets_through(
        tls12 in any::<bool>(),
        place in 0.0..1.0f64,
        change in 1u8..,
        piece in prop_oneof![Just(1usize), 2usize..200, Just(100_000)],
        cut in any::<bool>(),
    ) {
        let authority = Authority::new();
        let server = authority.localhost(if tls12 { &TLS12 } else { &TLS13 }).ready();
        let mut pair = Pair::new(&authority.settings("localhost"), &server);
        let answer = pattern(1000);
        // The position of the disturbance among the server's bytes (about 2,700).
        let (target, mut seen) = ((place * 2700.0) as usize, 0);
        for round in 0..6 {
            let wire = pair.client_wire();
            pair.hand_to_server(&wire, usize::MAX);
            if round == 3 && pair.server_says.is_ok() {
                pair.answer(&answer);
            }
            let mut wire = pair.server_wire();
            let at = target.wrapping_sub(seen);
            seen += wire.len();
            if let Some(byte) = wire.get_mut(at) {
                *byte ^= change;
                if cut {
                    wire.remove(at);
                }
            }
            for piece in wire.chunks(piece) {
                // After a failure, more bytes come: the failure must persist.
                let before = pair.client.failed.clone();
                let result = pair.client.receive(piece, &mut pair.to_client);
                prop_assert!(before.is_none() || result == Err(before.unwrap()));
            }
        }
        prop_assert!(answer.starts_with(&pair.to_client));
    }
}
