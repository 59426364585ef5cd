//! TLS between a connection's socket and its requests. This module knows no socket and no HTTP.

use std::fs;
use std::io::{self, Read, Write};
use std::sync::Arc;

use deadheat_testkit::{Authority, Identity};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion, version};

use crate::options::{Options, TlsVersions};

const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The TLS configuration, or `None` if the options do not enable TLS. Also creates and writes the certificates.
pub(crate) fn config(options: &Options) -> io::Result<Option<Arc<ServerConfig>>> {
    if !options.tls {
        return Ok(None);
    }
    let identity = match (&options.tls_cert, &options.tls_key) {
        (Some(certificate), Some(key)) => {
            Identity { certificate: fs::read_to_string(certificate)?, key: fs::read_to_string(key)? }
        }
        _ => of_our_own(options)?,
    };
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(io::Error::other)?;
    let versions: &[&SupportedProtocolVersion] = match options.tls_versions {
        TlsVersions::Both => &[&version::TLS12, &version::TLS13],
        TlsVersions::Only12 => &[&version::TLS12],
        TlsVersions::Only13 => &[&version::TLS13],
    };
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(versions)
        .map_err(io::Error::other)?;
    let mut config = builder
        .with_no_client_auth()
        .with_single_cert(vec![certificate.map_err(io::Error::other)?], key)
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(Arc::new(config)))
}

/// A certificate that the test CA signs.
fn of_our_own(options: &Options) -> io::Result<Identity> {
    let authority = match &options.tls_dir {
        Some(folder) => Authority::in_folder(folder)?,
        None => Authority::new()?,
    };
    let names = options.tls_name.as_deref().map_or(OWN_NAMES.to_vec(), |name| vec![name]);
    let identity = authority.issue(&names, options.tls_expired)?;
    if let Some(folder) = &options.tls_dir {
        identity.write(folder)?;
    }
    Ok(identity)
}

/// The TLS of one connection.
pub(crate) struct Tls(Box<ServerConnection>);

impl Tls {
    pub(crate) fn new(config: &Arc<ServerConfig>) -> io::Result<Self> {
        let mut connection = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
        connection.set_buffer_limit(None);
        Ok(Self(Box::new(connection)))
    }

    /// Decrypts received bytes and appends the result to `plain`. Returns false when nothing more can arrive, because the
    /// client closed the TLS session or TLS failed. Even then there may be bytes to send.
    pub(crate) fn receive(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> bool {
        while !wire.is_empty() {
            let read = self.0.read_tls(&mut wire).is_ok_and(|count| count > 0);
            let Ok(state) = self.0.process_new_packets() else { return false };
            let start = plain.len();
            plain.resize(start + state.plaintext_bytes_to_read(), 0);
            if self.0.reader().read_exact(&mut plain[start..]).is_err() || !read || state.peer_has_closed() {
                return false;
            }
        }
        true
    }

    /// Encrypts `plain` and appends it to `wire`, with any pending TLS messages. If `last` is set, the message that closes
    /// the TLS session follows.
    pub(crate) fn seal(&mut self, plain: &mut Vec<u8>, wire: &mut Vec<u8>, last: bool) -> io::Result<()> {
        self.0.writer().write_all(plain)?;
        plain.clear();
        if last {
            self.0.send_close_notify();
        }
        while self.0.wants_write() {
            self.0.write_tls(wire)?;
        }
        Ok(())
    }
}
