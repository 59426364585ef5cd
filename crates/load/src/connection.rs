//! Owns: the state of one connection and of the request on it. Must not know what comes next or how things are counted.

use crate::answer::Parser;
use crate::body::BodyCheck;
use crate::tls::Tls;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Closed,
    /// Being made since this time, the handshake of TLS included.
    Connecting {
        since_ns: u64,
    },
    Open,
}

/// A request from being taken up until its outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    /// Index into the prepared requests.
    pub(crate) prepared: u32,
    pub(crate) intended_ns: u64,
    /// When the connection took it; timeouts count from here.
    pub(crate) taken_ns: u64,
    /// When it was handed to the driver, the last time.
    pub(crate) sent_ns: u64,
    /// How long it waited because no connection was free.
    pub(crate) waited_ns: u64,
    pub(crate) sample: bool,
    pub(crate) retried: bool,
}

/// One connection. Times are on the worker's clock.
pub(crate) struct Connection {
    pub(crate) link: Link,
    /// No attempt to connect is made before this.
    pub(crate) not_before_ns: u64,
    /// The last attempt found the server's queue full: nothing is wrong, it is only to be tried again.
    pub(crate) congested: bool,
    /// Whether the server may have closed it for being idle: it has carried an answer, or is older than the slice.
    pub(crate) used: bool,
    /// Whether it stands in the worker's list of free connections.
    pub(crate) listed: bool,
    pub(crate) request: Option<InFlight>,
    pub(crate) written: usize,
    /// Sending failed: when the other side has no more to say, it was the write that broke.
    pub(crate) unsendable: bool,
    /// Whether any byte of the answer has come.
    pub(crate) answering: bool,
    pub(crate) parser: Parser,
    pub(crate) check: BodyCheck,
    /// Bytes that came and could not be parsed yet: part of a line.
    pub(crate) rest: Vec<u8>,
    /// Where the bytes are encrypted.
    pub(crate) tls: Option<Box<Tls>>,
    /// Encrypted bytes, of which the first `sent` were taken by the driver.
    pub(crate) wire: Vec<u8>,
    pub(crate) sent: usize,
}

impl Connection {
    pub(crate) fn new() -> Connection {
        Connection {
            link: Link::Closed,
            not_before_ns: 0,
            congested: false,
            used: false,
            listed: false,
            request: None,
            written: 0,
            unsendable: false,
            answering: false,
            parser: Parser::new(),
            check: BodyCheck::new(),
            rest: Vec::new(),
            tls: None,
            wire: Vec::new(),
            sent: 0,
        }
    }

    pub(crate) fn is_free(&self) -> bool {
        self.request.is_none() && self.link == Link::Open
    }

    /// Whether the request may be sent again because the connection died before any byte of an answer, as one does
    /// that the server closed for being idle.
    pub(crate) fn may_retry(&self) -> bool {
        self.used && !self.answering && self.request.is_some_and(|request| !request.retried)
    }
}
