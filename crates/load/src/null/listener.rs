//! Owns: listening sockets, and the options that accepted connections inherit from them. Must not know what they carry.

use std::fs;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::address::Address;

/// Connections that may wait to be accepted. The system's own limit applies too.
const BACKLOG: i32 = 4096;

/// One listening socket for each thread, all at the same address. Returns that address with the actual port.
pub(super) fn listen(address: &Address, threads: usize) -> Result<(Vec<OwnedFd>, Address), Errno> {
    match address {
        Address::Tcp(address) => {
            // Sockets that share a port would also share it with another program's. The first, unshared socket makes
            // sure that the port is free.
            let alone = tcp(*address, false)?;
            let bound = local(&alone)?;
            if threads == 1 {
                return Ok((vec![alone], Address::Tcp(bound)));
            }
            drop(alone);
            let sockets: Result<Vec<OwnedFd>, Errno> = (0..threads).map(|_| tcp(bound, true)).collect();
            Ok((sockets?, Address::Tcp(bound)))
        }
        Address::Unix(path) => {
            let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags(), None)?;
            net::bind(&socket, &SocketAddrUnix::new(path.as_path())?)?;
            let made = net::listen(&socket, BACKLOG).and_then(|()| {
                let more: Result<Vec<OwnedFd>, Errno> =
                    (1..threads).map(|_| rustix::io::dup(&socket)).collect();
                more
            });
            if made.is_err() {
                let _ = fs::remove_file(path);
            }
            let mut sockets = made?;
            sockets.push(socket);
            Ok((sockets, address.clone()))
        }
    }
}

fn flags() -> SocketFlags {
    SocketFlags::NONBLOCK | SocketFlags::CLOEXEC
}

fn tcp(address: SocketAddr, shared: bool) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::STREAM, flags(), None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    // Connections inherit both options. A congestion control that paces would delay answers and cost CPU time. Where
    // the system does not allow reno, its default stays.
    sockopt::set_tcp_nodelay(&socket, true)?;
    let _ = sockopt::set_tcp_congestion(&socket, "reno");
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn local(socket: &OwnedFd) -> Result<SocketAddr, Errno> {
    net::getsockname(socket)?.try_into()
}
