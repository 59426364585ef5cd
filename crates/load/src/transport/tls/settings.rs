//! Owns: which server a client expects and which certificates it trusts. Must not know connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::{self, CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::sessions::Sessions;

/// Which certificates prove a server's identity.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum TlsTrust {
    /// Those of the CAs that this system trusts.
    System,
    /// Those of the CAs in this file, in PEM, and no others.
    File(PathBuf),
    /// As `File`, with the file's content.
    Pem(Vec<u8>),
    /// Any certificate, whatever its name, age or issuer.
    Insecure,
    /// As `System`, with the certificates of the system that the settings come from, in DER.
    Der(Vec<Vec<u8>>),
}

/// Why TLS settings cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The CA file cannot be read as PEM.
    #[error("cannot read CA certificates from {path}: {reason}; name a file in PEM format", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The CA file holds no certificate.
    #[error(
        "{path} holds no certificate; a CA file has at least one block between `-----BEGIN CERTIFICATE-----` and \
         `-----END CERTIFICATE-----`", path = path.display()
    )]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A certificate in the CA file is invalid.
    #[error("certificate {number} in {path} is not sound: {reason}; remove or replace it", path = path.display())]
    BadCertificate {
        /// The file.
        path: PathBuf,
        /// Its position in the file, from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Settings from another machine name a file of this one.
    #[error(
        "TLS settings from another machine name the file {path} of this one; send its content",
        path = path.display()
    )]
    FileOfAnother {
        /// The file.
        path: PathBuf,
    },
    /// This system has no CA certificates.
    #[error(
        "this system has no CA certificates{reason}; install its ca-certificates package or name a CA file"
    )]
    NoSystemRoots {
        /// The reason; empty or ` (...)`.
        reason: String,
    },
    /// The name cannot be the name of a server.
    #[error(
        "the server name {name:?} is neither a host name nor an IP address; give the name in the certificate"
    )]
    ServerName {
        /// The name.
        name: String,
    },
    /// The TLS library refuses; with its reason.
    #[error("TLS cannot be set up: {0}")]
    Library(String),
}

/// How to use TLS with one server. Connections made from clones of the same settings resume each other's sessions, so
/// make new settings for each server.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "TlsOrigin", into = "TlsOrigin")]
pub struct TlsSettings {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    origin: TlsOrigin,
}

/// What [`TlsSettings`] were made from, so that another machine can make the same. It names no file.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct TlsOrigin {
    server_name: String,
    trust: TlsTrust,
    resumption: bool,
}

impl From<TlsSettings> for TlsOrigin {
    fn from(settings: TlsSettings) -> TlsOrigin {
        let mut origin = settings.origin;
        if origin.trust == TlsTrust::System {
            // The other machine may have none, such as a container made from nothing.
            let found = rustls_native_certs::load_native_certs().certs;
            origin.trust = TlsTrust::Der(found.iter().map(|one| one.to_vec()).collect());
        }
        origin
    }
}

impl TryFrom<TlsOrigin> for TlsSettings {
    type Error = TlsError;

    fn try_from(origin: TlsOrigin) -> Result<TlsSettings, TlsError> {
        // Another machine must not learn what is in the files of this one.
        if let TlsTrust::File(path) = origin.trust {
            return Err(TlsError::FileOfAnother { path });
        }
        let settings = TlsSettings::new(&origin.server_name, origin.trust)?;
        Ok(if origin.resumption { settings } else { settings.without_resumption() })
    }
}

impl TlsSettings {
    /// Settings for TLS 1.2 and 1.3 that carry HTTP/1.1. The certificate must be valid for `server_name`: an IP
    /// address, with or without brackets, or a host name, which is also sent to the server.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn new(server_name: &str, trust: TlsTrust) -> Result<TlsSettings, TlsError> {
        let unbracketed = server_name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let name = ServerName::try_from(unbracketed.unwrap_or(server_name).to_owned())
            .map_err(|_| TlsError::ServerName { name: server_name.to_owned() })?;
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Library(error.to_string()))?;
        let mut trust = trust;
        let builder = match &trust {
            TlsTrust::System => {
                let found = rustls_native_certs::load_native_certs();
                let reason = found.errors.first().map_or(String::new(), |error| format!(" ({error})"));
                builder
                    .with_root_certificates(parsable(found.certs).ok_or(TlsError::NoSystemRoots { reason })?)
            }
            TlsTrust::Der(roots) => {
                let roots = parsable(roots.iter().map(|one| CertificateDer::from(one.as_slice())));
                builder
                    .with_root_certificates(roots.ok_or(TlsError::NoSystemRoots { reason: String::new() })?)
            }
            TlsTrust::File(path) => {
                let pem = read(path)?;
                let roots = roots_in(&pem, path)?;
                trust = TlsTrust::Pem(pem);
                builder.with_root_certificates(roots)
            }
            TlsTrust::Pem(pem) => builder.with_root_certificates(roots_in(pem, Path::new("the CA file"))?),
            TlsTrust::Insecure => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate::new(&provider)))
            }
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::store(Arc::new(Sessions::new()));
        let origin = TlsOrigin { server_name: server_name.to_owned(), trust, resumption: true };
        Ok(TlsSettings { config: Arc::new(config), name, origin })
    }

    /// The same settings, with a full handshake on every connection, as for a client that connects for the first time.
    /// No state passes from one connection to the next, so that clones of these settings can be used for several
    /// servers.
    pub fn without_resumption(mut self) -> TlsSettings {
        Arc::make_mut(&mut self.config).resumption = Resumption::disabled();
        self.origin.resumption = false;
        self
    }

    pub(super) fn connection(&self) -> Result<UnbufferedClientConnection, rustls::Error> {
        UnbufferedClientConnection::new(self.config.clone(), self.name.clone())
    }
}

/// Those of the certificates that can be read; none if none can. Some systems have very old ones that no longer parse.
fn parsable<'c>(certificates: impl IntoIterator<Item = CertificateDer<'c>>) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let (sound, _) = roots.add_parsable_certificates(certificates);
    (sound > 0).then_some(roots)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path)
        .map_err(|error| TlsError::Unreadable { path: path.to_owned(), reason: error.to_string() })
}

/// The CAs in a PEM file with this content.
fn roots_in(pem: &[u8], path: &Path) -> Result<RootCertStore, TlsError> {
    let unreadable =
        |error: pem::Error| TlsError::Unreadable { path: path.to_owned(), reason: error.to_string() };
    let mut roots = RootCertStore::empty();
    for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
        let bad = |error: rustls::Error| TlsError::BadCertificate {
            path: path.to_owned(),
            number: index + 1,
            reason: error.to_string(),
        };
        roots.add(certificate.map_err(unreadable)?).map_err(bad)?;
    }
    if roots.is_empty() {
        return Err(TlsError::NoCertificate { path: path.to_owned() });
    }
    Ok(roots)
}

/// Accepts every certificate. It still checks that the server holds its key, because a real client does that work too.
#[derive(Debug)]
struct AnyCertificate {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AnyCertificate {
    fn new(provider: &CryptoProvider) -> AnyCertificate {
        AnyCertificate { algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It may have none, such as a container made from nothing.
    #[test]
    fn another_machine_gets_the_certificates_that_this_one_trusts() {
        let of = |trust| TlsOrigin { server_name: "localhost".into(), trust, resumption: true };
        let none = TlsSettings::try_from(of(TlsTrust::Der(Vec::new()))).unwrap_err();
        assert!(matches!(none, TlsError::NoSystemRoots { .. }), "{none}");
        let sent = match TlsSettings::new("localhost", TlsTrust::System) {
            Ok(here) => TlsOrigin::from(here),
            Err(TlsError::NoSystemRoots { .. }) => return,
            Err(error) => panic!("{error}"),
        };
        assert!(matches!(&sent.trust, TlsTrust::Der(roots) if !roots.is_empty()), "{:?}", sent.trust);
        assert!(TlsSettings::try_from(sent).is_ok());
    }

    #[test]
    fn another_machine_sends_certificates_and_no_name_of_a_file() {
        let of = |trust| {
            TlsSettings::try_from(TlsOrigin { server_name: "localhost".into(), trust, resumption: true })
        };
        let refused = of(TlsTrust::File("/etc/passwd".into())).unwrap_err();
        assert!(matches!(refused, TlsError::FileOfAnother { .. }), "{refused}");
        assert!(of(TlsTrust::Insecure).is_ok());
    }
}
