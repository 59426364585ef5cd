//! Owns: the address of a server, and whether something listens there. Must not know what is sent there.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Address {
    /// An IPv4 or IPv6 address with its port.
    Tcp(SocketAddr),
    /// The path of a stream socket in the file system.
    Unix(PathBuf),
}

impl Address {
    /// Where others reach what listens here, at that address of its machine: a port is the same there, and a path leads to the same socket.
    #[must_use]
    pub fn seen_at(&self, machine: IpAddr) -> Self {
        match self {
            Self::Tcp(here) => Self::Tcp(SocketAddr::new(machine, here.port())),
            Self::Unix(path) => Self::Unix(path.clone()),
        }
    }

    /// Opens a connection and closes it: whether something listens here. `timeout` is the longest wait for a port.
    ///
    /// # Errors
    /// Nothing listens, or the address cannot be used.
    pub fn accepts(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(address) => TcpStream::connect_timeout(address, timeout).map(drop),
            Self::Unix(path) => UnixStream::connect(path).map(drop),
        }
    }
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
    fn a_port_is_the_same_at_another_address_and_a_path_stays() {
        let here = Address::Tcp("127.0.0.1:80".parse().unwrap());
        assert_eq!(here.seen_at([10, 0, 0, 7].into()).to_string(), "10.0.0.7:80");
        let socket = Address::Unix("/run/a.sock".into());
        assert_eq!(socket.seen_at([10, 0, 0, 7].into()), socket);
    }

    #[test]
    fn is_shown_as_it_would_be_typed() {
        assert_eq!(Address::Tcp("127.0.0.1:80".parse().unwrap()).to_string(), "127.0.0.1:80");
        assert_eq!(Address::Tcp("[::1]:80".parse().unwrap()).to_string(), "[::1]:80");
        assert_eq!(Address::Unix("/run/a.sock".into()).to_string(), "unix:/run/a.sock");
    }
}
