//! Owns: the layer between a connection's socket and its requests and answers: plain or TLS. Must not know which
//! connections exist, or when anything happens on them.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, ServerConnection, crypto};

use super::Post;
use super::answers::Answers;
use super::peer::{Flood, Known, Peer};
use crate::driver::os;

/// Largest plain text of one record: the largest that TLS allows.
const RECORD: usize = 16 * 1024;

/// The result of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// Everything owed is sent.
    All,
    /// The socket has no more room.
    Part,
    /// The connection is over.
    Failed,
}

/// The layer between a socket and its peer.
pub(super) trait Layer: Sized {
    /// The layer of a new connection.
    fn new(post: &Post) -> Self;

    /// Processes received bytes.
    ///
    /// # Errors
    /// When the connection must be closed.
    fn take(&mut self, bytes: &[u8], peer: &mut Peer, known: &mut Known) -> Result<(), Flood>;

    /// Sends as much of what is owed as the socket has room for.
    fn send(&mut self, socket: &OwnedFd, peer: &mut Peer, answers: &Answers) -> Sent;
}

/// No layer: plain HTTP.
pub(super) struct Plain;

impl Layer for Plain {
    fn new(_: &Post) -> Plain {
        Plain
    }

    #[inline]
    fn take(&mut self, bytes: &[u8], peer: &mut Peer, known: &mut Known) -> Result<(), Flood> {
        peer.take(bytes, known)
    }

    #[inline]
    fn send(&mut self, socket: &OwnedFd, peer: &mut Peer, answers: &Answers) -> Sent {
        loop {
            if peer.sending.is_empty() && !peer.advance(answers) {
                return Sent::All;
            }
            match os::send(socket, answers.bytes(&peer.sending)) {
                Ok(count) => peer.sending.start += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Sent::Part,
                Err(_) => return Sent::Failed,
            }
        }
    }
}

/// The files with which a server proves its identity, both in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// Its certificate, followed by any intermediate certificates.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

impl ServerIdentity {
    /// The TLS configuration of the null server: versions 1.2 and 1.3, without session resumption, so that it writes no
    /// tickets.
    pub(super) fn config(&self) -> Result<Arc<ServerConfig>, String> {
        let unread = |path: &PathBuf, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_file_iter(&self.certificate).and_then(Iterator::collect);
        let chain = chain.map_err(|error| unread(&self.certificate, &error))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| unread(&self.key, &error))?;
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?.with_no_client_auth();
        let mut config = builder.with_single_cert(chain, key).map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

/// TLS on one connection.
pub(super) struct Secured {
    conn: Option<Box<ServerConnection>>,
    plain: Vec<u8>,
    /// Encrypted bytes. The first `sent` bytes are sent.
    wire: Vec<u8>,
    sent: usize,
    /// Ignore further input.
    over: bool,
    /// The server has sent `close_notify`.
    said_the_end: bool,
}

impl Layer for Secured {
    fn new(post: &Post) -> Secured {
        let conn = post.tls.as_ref().and_then(|config| ServerConnection::new(config.clone()).ok());
        let conn = conn.map(|mut conn| {
            // Encrypted bytes are sent at once, or nothing more is encrypted. So the buffer needs no limit.
            conn.set_buffer_limit(None);
            Box::new(conn)
        });
        let (plain, wire) = (Vec::new(), Vec::new());
        Secured { over: conn.is_none(), conn, plain, wire, sent: 0, said_the_end: false }
    }

    fn take(&mut self, mut bytes: &[u8], peer: &mut Peer, known: &mut Known) -> Result<(), Flood> {
        let Some(conn) = &mut self.conn else { return Ok(()) };
        while !bytes.is_empty() && !self.over {
            let read = conn.read_tls(&mut bytes).is_ok_and(|count| count > 0);
            let Ok(state) = conn.process_new_packets() else {
                self.over = true;
                break;
            };
            self.plain.resize(state.plaintext_bytes_to_read(), 0);
            self.over =
                !read || conn.reader().read_exact(&mut self.plain).is_err() || state.peer_has_closed();
            peer.take(&self.plain, known)?;
        }
        Ok(())
    }

    fn send(&mut self, socket: &OwnedFd, peer: &mut Peer, answers: &Answers) -> Sent {
        loop {
            while self.sent < self.wire.len() {
                match os::send(socket, &self.wire[self.sent..]) {
                    Ok(count) => self.sent += count,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return Sent::Part,
                    Err(_) => return Sent::Failed,
                }
            }
            self.wire.clear();
            self.sent = 0;
            if self.seal(peer, answers).is_err() {
                return Sent::Failed;
            }
            if self.wire.is_empty() {
                return if self.over { Sent::Failed } else { Sent::All };
            }
        }
    }
}

impl Secured {
    /// Makes the next record of what is owed, and takes the bytes that TLS itself must send.
    fn seal(&mut self, peer: &mut Peer, answers: &Answers) -> std::io::Result<()> {
        let Some(conn) = &mut self.conn else { return Ok(()) };
        self.plain.clear();
        while self.plain.len() < RECORD && (!peer.sending.is_empty() || peer.advance(answers)) {
            let end = peer.sending.end.min(peer.sending.start + RECORD - self.plain.len());
            self.plain.extend_from_slice(answers.bytes(&(peer.sending.start..end)));
            peer.sending.start = end;
        }
        conn.writer().write_all(&self.plain)?;
        if peer.is_over() && peer.sending.is_empty() && !peer.is_owed() && !self.said_the_end {
            self.said_the_end = true;
            conn.send_close_notify();
        }
        while conn.wants_write() {
            conn.write_tls(&mut self.wire)?;
        }
        Ok(())
    }
}
