//! Requests to the kernel by netlink: interfaces, addresses, routes, and how an interface sends.
//!
//! All of them concern the network namespace that the calling thread is in. Owns: the messages. Must not know: what a link is for.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily as Family, SocketType, socket};

/// The number of the attribute that holds a queueing discipline's settings (`linux/rtnetlink.h`).
const TCA_OPTIONS: u16 = 2;

/// The number of the interface.
pub(super) fn index(name: &str) -> io::Result<u32> {
    let any = socket(Family::INET, SocketType::DGRAM, None)?;
    Ok(name_to_index(any, name)?)
}

/// Makes a pair of interfaces, one here and one in another namespace: what one sends, the other receives. Both send one packet at a time, as a wire does,
/// and not many in one piece: a piece would have one header for all of them, and would be lost as a whole.
pub(super) fn make_pair(here: &str, there: &str, other: BorrowedFd<'_>) -> io::Result<()> {
    let mut peer = LinkMessage::default();
    peer.attributes = vec![
        LinkAttribute::IfName(there.into()),
        LinkAttribute::NetNsFd(other.as_raw_fd()),
        LinkAttribute::GsoMaxSegs(1),
    ];
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(here.into()),
        LinkAttribute::GsoMaxSegs(1),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]),
    ];
    request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// Makes a WireGuard interface of the kernel.
pub(super) fn make_wireguard(name: &str) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(name.into()),
        LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Wireguard)]),
    ];
    request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// Removes an interface.
pub(super) fn remove(name: &str) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = index(name)?;
    request(RouteNetlinkMessage::DelLink(message), 0)
}

/// Lets an interface send and receive.
pub(super) fn bring_up(name: &str) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = index(name)?;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    request(RouteNetlinkMessage::SetLink(message), 0)
}

/// Gives an interface an address.
pub(super) fn add_address(name: &str, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = prefix;
    message.header.index = index(name)?;
    message.attributes =
        vec![AddressAttribute::Address(IpAddr::V4(address)), AddressAttribute::Local(IpAddr::V4(address))];
    request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE)
}

/// Sends packets for `to` by this interface, from the address `from`: to the neighbour `by`, or to whoever is at the other end.
pub(super) fn route(
    to: Ipv4Addr,
    name: &str,
    by: Option<Ipv4Addr>,
    from: Option<Ipv4Addr>,
) -> io::Result<()> {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: AddressFamily::Inet,
        destination_prefix_length: 32,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: if by.is_some() { RouteScope::Universe } else { RouteScope::Link },
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes =
        vec![RouteAttribute::Destination(RouteAddress::Inet(to)), RouteAttribute::Oif(index(name)?)];
    message.attributes.extend(by.map(|by| RouteAttribute::Gateway(RouteAddress::Inet(by))));
    message.attributes.extend(from.map(|from| RouteAttribute::PrefSource(RouteAddress::Inet(from))));
    request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
}

/// How an interface sends: one queueing discipline, with its settings as the kernel reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Discipline {
    /// Its name in the kernel.
    pub(super) kind: &'static str,
    /// Its settings.
    pub(super) options: Vec<u8>,
}

/// Lets an interface send by these disciplines, each inside the one before it. With none: at once.
pub(super) fn send_by(name: &str, disciplines: &[Discipline]) -> io::Result<()> {
    let index = i32::try_from(index(name)?).map_err(io::Error::other)?;
    match request(RouteNetlinkMessage::DelQueueDiscipline(discipline(index, 0, None)), 0) {
        Ok(()) => {}
        // It had none.
        Err(error) if matches!(error.raw_os_error(), Some(2 | 22)) => {}
        Err(error) => return Err(error),
    }
    for (level, one) in disciplines.iter().enumerate() {
        let message = RouteNetlinkMessage::NewQueueDiscipline(discipline(index, level as u16, Some(one)));
        request(message, NLM_F_CREATE | NLM_F_EXCL)?;
    }
    Ok(())
}

/// The message for a discipline: the outermost one has level 0.
fn discipline(index: i32, level: u16, settings: Option<&Discipline>) -> TcMessage {
    let mut message = TcMessage::with_index(index);
    message.header.parent = match level {
        0 => TcHandle::ROOT,
        inner => TcHandle { major: inner, minor: 1 },
    };
    if let Some(Discipline { kind, options }) = settings {
        message.header.handle = TcHandle { major: level + 1, minor: 0 };
        message.attributes = vec![
            TcAttribute::Kind((*kind).to_owned()),
            TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options.clone())),
        ];
    }
    message
}

/// Sends a request and waits for the kernel's answer.
fn request(message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut message = NetlinkMessage::from(message);
    message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    message.header.sequence_number = 1;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(io::Error::other)?;
    match answer.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        _ => Ok(()),
    }
}
