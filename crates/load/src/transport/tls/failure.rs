//! Owns: short descriptions of TLS failures. Must not know connections.

use rustls::{AlertDescription, CertificateError, Error};

/// Most names to list of a certificate for the wrong name.
const NAMES_TOLD: usize = 5;

const DAY_S: u64 = 24 * 60 * 60;

/// Why TLS with a server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsFailure {
    /// The certificate does not prove the server's identity; with the reason.
    #[error("the server's certificate is not accepted: {0}")]
    Certificate(String),
    /// The server ended TLS with an alert; with its name and what it may mean.
    #[error("the server broke off TLS with the alert {0}")]
    Alert(String),
    /// The bytes received are not TLS.
    #[error(
        "the server does not expect TLS on this port: it answered the handshake with something else, such as plain HTTP"
    )]
    NotTls,
    /// The connection ended before the handshake was complete.
    #[error("the server closed the connection within the TLS handshake")]
    Ended,
    /// Any other failure; with its description.
    #[error("TLS failed: {0}")]
    Other(String),
}

impl TlsFailure {
    /// `heard`: the server had sent valid TLS before.
    pub(crate) fn new(error: &Error, heard: bool) -> TlsFailure {
        match error {
            Error::InvalidCertificate(why) => TlsFailure::Certificate(certificate(why)),
            Error::NoCertificatesPresented => TlsFailure::Certificate("it sent none".to_owned()),
            Error::AlertReceived(alert) => TlsFailure::Alert(told(*alert)),
            Error::InvalidMessage(_) if !heard => TlsFailure::NotTls,
            other => TlsFailure::Other(other.to_string()),
        }
    }
}

fn told(alert: AlertDescription) -> String {
    let hint = match alert {
        AlertDescription::NoApplicationProtocol => " (it offers no HTTP/1.1 over TLS)",
        AlertDescription::UnrecognisedName => " (it does not know the server name it was asked for)",
        AlertDescription::ProtocolVersion => " (it speaks neither TLS 1.2 nor TLS 1.3)",
        AlertDescription::HandshakeFailure => " (no version, cipher or key kind in common)",
        AlertDescription::CertificateRequired => " (it wants a certificate from its clients)",
        _ => "",
    };
    format!("{alert:?}{hint}")
}

fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::Expired => "expired".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / DAY_S;
            format!("expired {days} days ago")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "not valid yet, if the clock of this machine is right".to_owned()
        }
        CertificateError::UnknownIssuer => "unknown issuer: no trusted CA has signed it".to_owned(),
        CertificateError::BadSignature => {
            "wrong signature: it names a trusted CA as its issuer, whose key did not sign it".to_owned()
        }
        CertificateError::NotValidForName => "wrong name".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let name = expected.to_str();
            match presented.as_slice() {
                [] => format!("wrong name: it names no server, so it is not for {name}"),
                names => format!("wrong name: it is for {}, not for {name}", listed(names)),
            }
        }
        other => match other.to_string() {
            text if text.contains("CaUsedAsEndEntity") => {
                "it is a CA's own; a server's must be another one, which the CA has signed".to_owned()
            }
            text => text,
        },
    }
}

/// rustls writes names as `DnsName("localhost")` and `IpAddress(127.0.0.1)`.
fn listed(names: &[String]) -> String {
    let bare = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest.trim_end_matches(')'));
        inner.trim_matches('"').to_owned()
    };
    let mut told: Vec<String> = names.iter().take(NAMES_TOLD).map(bare).collect();
    if names.len() > NAMES_TOLD {
        told.push("others".to_owned());
    }
    told.join(", ")
}
