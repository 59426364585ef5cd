//! Owns: the address of a server. Must not know what is sent there.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Address {
    /// An IPv4 or IPv6 address with its port.
    Tcp(SocketAddr),
    /// The path of a stream socket in the file system.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_shown_as_it_would_be_typed() {
        assert_eq!(Address::Tcp("127.0.0.1:80".parse().unwrap()).to_string(), "127.0.0.1:80");
        assert_eq!(Address::Tcp("[::1]:80".parse().unwrap()).to_string(), "[::1]:80");
        assert_eq!(Address::Unix("/run/a.sock".into()).to_string(), "unix:/run/a.sock");
    }
}
