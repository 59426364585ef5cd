//! Owns: one blocking request on a new connection, with the whole answer kept. It is for probes, not for load. Must not
//! know sessions.

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::address::Address;
use crate::driver::Target;
use crate::protocol::http1::{Parser, Sink, Wrong};
use crate::transport::{TlsFailure, TlsSettings, Transport};

const PIECE: usize = 16 * 1024;
/// The first bytes of a TLS record with an alert: its type and the major version.
const ALERT: [u8; 2] = [21, 3];

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Headers in order, names as the server wrote them, values without surrounding white space.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Decoded body.
    pub body: Vec<u8>,
    /// Whether the server would have accepted another request on the connection.
    pub keep_alive: bool,
}

impl Answer {
    /// The first header with this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_slice())
    }
}

/// Whether a body with this content encoding holds, as it was sent, the time at which it was compressed: gzip has a place for it (RFC 1952, `MTIME`). A second
/// later, the same content has other bytes.
pub fn holds_time(body: &[u8], encoding: Option<&str>) -> bool {
    let is_gzip = encoding.is_some_and(|encoding| encoding.to_ascii_lowercase().contains("gzip"));
    is_gzip && body.get(4..8).is_some_and(|time| time != [0; 4])
}

/// Why there is no answer, in words.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// No connection could be made.
    #[error("cannot connect to {address}")]
    Connect {
        /// The address.
        address: Address,
        /// The system's error.
        source: io::Error,
    },
    /// The connection broke while the request was written, and no answer came.
    #[error("the connection broke while the request was sent")]
    Write(#[source] io::Error),
    /// The connection broke while the answer was read.
    #[error("the connection broke while the answer was read")]
    Read(#[source] io::Error),
    /// The server closed the connection before its answer was complete.
    #[error("the server closed the connection after {received} bytes, before its answer was complete")]
    Closed {
        /// Bytes received before that.
        received: usize,
    },
    /// There was no complete answer within the timeout.
    #[error("no complete answer within {0:?}")]
    Timeout(Duration),
    /// There was no complete TLS handshake within the timeout.
    #[error("no TLS handshake within {0:?}; does the server expect TLS on this port?")]
    Handshake(Duration),
    /// TLS failed.
    #[error(transparent)]
    Tls(#[from] TlsFailure),
    /// The server answered plain HTTP with TLS.
    #[error("the server expects TLS on this port: it answered plain HTTP with a TLS alert")]
    SpeaksTls,
    /// The bytes received are not an HTTP/1.x answer.
    #[error("the answer is not sound HTTP/1.1: {0}")]
    Wrong(#[from] Wrong),
    /// The body is longer than the caller allows.
    #[error("the body is longer than {max_body} bytes")]
    TooLong {
        /// The limit in bytes.
        max_body: usize,
    },
}

/// Why there is no answer, in words.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NoAnswer {
    /// The reason in words.
    pub reason: String,
    /// Whether the request timed out, so that another attempt would take as long again.
    pub timed_out: bool,
}

impl NoAnswer {
    /// For this reason, and not because the time was over.
    pub fn plain(reason: impl Into<String>) -> NoAnswer {
        NoAnswer { reason: reason.into(), timed_out: false }
    }
}

impl From<ExchangeError> for NoAnswer {
    fn from(error: ExchangeError) -> NoAnswer {
        let timed_out = matches!(error, ExchangeError::Timeout(_) | ExchangeError::Handshake(_));
        NoAnswer { reason: with_causes(&error), timed_out }
    }
}

/// Sends `request` (see [`crate::request_bytes`]) on a new connection and waits for the answer, at most `timeout` in
/// total. With settings for TLS, the connection is encrypted, and `timeout` includes the handshake. `head` says that it
/// is a HEAD request. Bodies above `max_body` bytes are refused.
///
/// # Errors
/// See [`ExchangeError`].
pub fn exchange(
    address: &Address,
    tls: Option<&TlsSettings>,
    request: &[u8],
    head: bool,
    timeout: Duration,
    max_body: usize,
) -> Result<Answer, ExchangeError> {
    let budget = Budget { timeout, end: Instant::now() + timeout };
    let mut stream = Stream::connect(address, tls, &budget)?;
    let written = match stream.send(request, &budget) {
        Err(late @ ExchangeError::Timeout(_)) => return Err(stream.in_the_handshake(late)),
        written => written,
    };
    // A server may answer and close without reading the whole request. Prefer its answer to the broken pipe.
    let answer = match read_answer(&mut stream, head, &budget, max_body) {
        Err(_) if stream.is_alert == Some(true) => Err(ExchangeError::SpeaksTls),
        answer => answer,
    };
    match (written, answer) {
        (_, Ok(answer)) => Ok(answer),
        (Err(error), Err(_)) => Err(error),
        (Ok(()), Err(error)) => Err(stream.in_the_handshake(error)),
    }
}

struct Budget {
    timeout: Duration,
    end: Instant,
}

impl Budget {
    /// The time left, or a timeout error.
    fn left(&self) -> Result<Duration, ExchangeError> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ExchangeError::Timeout(self.timeout)) } else { Ok(left) }
    }

    /// Turns a failed call into an error; a call that took too long is a timeout.
    fn failure(&self, error: io::Error, other: fn(io::Error) -> ExchangeError) -> ExchangeError {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ExchangeError::Timeout(self.timeout),
            _ => other(error),
        }
    }
}

/// A connection that carries plain bytes, over TCP or TLS.
struct Stream {
    socket: Socket,
    transport: Transport,
    wire: Vec<u8>,
    /// What came from the server while it took no more of the request; the next to be read.
    early: Vec<u8>,
    /// Under TLS the server has announced the end, so the answer cannot have been cut short on the way.
    closed: bool,
    /// Whether the first plain bytes received are those of a TLS alert; `None` before any came.
    is_alert: Option<bool>,
}

impl Stream {
    fn connect(
        address: &Address,
        tls: Option<&TlsSettings>,
        budget: &Budget,
    ) -> Result<Stream, ExchangeError> {
        let socket = Socket::connect(address, budget)?;
        let transport = Transport::new(tls)?;
        Ok(Stream { socket, transport, wire: Vec::new(), early: Vec::new(), closed: false, is_alert: None })
    }

    /// A timeout before the end of the handshake is one of the handshake.
    fn in_the_handshake(&self, error: ExchangeError) -> ExchangeError {
        match error {
            ExchangeError::Timeout(timeout) if self.transport.is_handshaking() => {
                ExchangeError::Handshake(timeout)
            }
            error => error,
        }
    }

    /// Sends plain bytes, and any bytes that wait to be sent. Under TLS the plain bytes wait until the server has done
    /// its part of the handshake.
    fn send(&mut self, plain: &[u8], budget: &Budget) -> Result<(), ExchangeError> {
        let mut written = Ok(());
        self.transport.send(plain, |wire| {
            written = self.socket.write_all(wire, &mut self.early, budget);
            wire.len()
        })?;
        written
    }

    /// Appends the plain bytes of the next piece to `plain`; under TLS there may be none. Returns the number of bytes
    /// received on the wire: 0 at the end of the connection.
    fn receive(&mut self, plain: &mut Vec<u8>, budget: &Budget) -> Result<usize, ExchangeError> {
        self.send(&[], budget)?;
        let count = if self.early.is_empty() {
            self.wire.resize(PIECE, 0);
            self.socket.read(&mut self.wire, budget)?
        } else {
            self.wire = std::mem::take(&mut self.early);
            self.wire.len()
        };
        let piece = &self.wire[..count];
        if self.transport.is_plain() {
            // No HTTP answer begins with these bytes.
            self.is_alert.get_or_insert(piece.starts_with(&ALERT));
            plain.extend_from_slice(piece);
        }
        if count == 0 && self.transport.is_handshaking() {
            return Err(TlsFailure::Ended.into());
        }
        match self.transport.receive(piece, plain) {
            Ok(received) => self.closed = received.closed,
            Err(failure) => {
                // Try to send the alert to the server. The failure stands in either case.
                let _ = self.send(&[], budget);
                return Err(failure.into());
            }
        }
        Ok(count)
    }

    /// Appends at least one plain byte to `plain`; returns how many, or 0 at the end of the connection.
    fn read(&mut self, plain: &mut Vec<u8>, budget: &Budget) -> Result<usize, ExchangeError> {
        let before = plain.len();
        while plain.len() == before && !self.closed && self.receive(plain, budget)? > 0 {}
        Ok(plain.len() - before)
    }
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn connect(address: &Address, budget: &Budget) -> Result<Socket, ExchangeError> {
        let made = match address {
            Address::Tcp(socket) => {
                let stream = TcpStream::connect_timeout(socket, budget.left()?);
                stream.and_then(|stream| stream.set_nodelay(true).map(|()| Socket::Tcp(stream)))
            }
            Address::Unix(_) => connect_unix(address, budget)?.map(Socket::Unix),
        };
        made.map_err(|source| ExchangeError::Connect { address: address.clone(), source })
    }

    fn limit(&self, left: Duration) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(Some(left)),
            Socket::Unix(stream) => stream.set_read_timeout(Some(left)),
        }
    }

    /// Writes everything. A server that answers while it reads may wait until its answer is read: what it has sent then is added to `early`.
    fn write_all(
        &mut self,
        mut bytes: &[u8],
        early: &mut Vec<u8>,
        budget: &Budget,
    ) -> Result<(), ExchangeError> {
        let mut wanted = PollFlags::OUT | PollFlags::IN;
        while !bytes.is_empty() {
            // Cannot fail: no timeout is that long.
            let left = Timespec::try_from(budget.left()?).ok();
            let mut ready = [PollFd::new(self, wanted)];
            let ready = match poll(&mut ready, left.as_ref()) {
                Ok(_) => ready[0].revents(),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(ExchangeError::Write(error.into())),
            };
            if ready == PollFlags::IN {
                let before = early.len();
                early.resize(before + PIECE, 0);
                let count = self.read(&mut early[before..], budget)?;
                early.truncate(before + count);
                if count == 0 {
                    wanted = PollFlags::OUT;
                }
            } else if !ready.is_empty() {
                match rustix::net::send(&*self, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                    Ok(count) => bytes = &bytes[count..],
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(error) => return Err(ExchangeError::Write(error.into())),
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, into: &mut [u8], budget: &Budget) -> Result<usize, ExchangeError> {
        loop {
            self.limit(budget.left()?).map_err(ExchangeError::Read)?;
            let read = match self {
                Socket::Tcp(stream) => stream.read(into),
                Socket::Unix(stream) => stream.read(into),
            };
            match read {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(budget.failure(error, ExchangeError::Read)),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

/// The standard library's connect can block without limit where the server's queue is full.
fn connect_unix(address: &Address, budget: &Budget) -> Result<io::Result<UnixStream>, ExchangeError> {
    loop {
        match Target::new(address).and_then(|target| target.connect()) {
            Ok((socket, _)) => {
                let stream = UnixStream::from(socket);
                return Ok(stream.set_nonblocking(false).map(|()| stream));
            }
            Err(Errno::AGAIN) => std::thread::sleep(budget.left()?.min(Duration::from_millis(1))),
            Err(error) => return Ok(Err(error.into())),
        }
    }
}

/// Keeps the whole answer, up to a limit.
#[derive(Default)]
struct Keep {
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    max_body: usize,
    too_long: bool,
}

impl Sink for Keep {
    fn header(&mut self, name: &[u8], value: &[u8]) {
        self.headers.push((String::from_utf8_lossy(name).into_owned(), value.to_vec()));
    }

    fn interim(&mut self) {
        self.headers.clear();
    }

    fn body(&mut self, piece: &[u8]) {
        let room = self.max_body - self.body.len();
        self.too_long |= piece.len() > room;
        self.body.extend_from_slice(&piece[..piece.len().min(room)]);
    }
}

fn read_answer(
    stream: &mut Stream,
    head: bool,
    budget: &Budget,
    max_body: usize,
) -> Result<Answer, ExchangeError> {
    let mut keep = Keep { max_body, ..Keep::default() };
    let mut parser = Parser::new();
    parser.begin(head);
    let (mut rest, mut received) = (Vec::new(), 0);
    loop {
        let count = stream.read(&mut rest, budget)?;
        received += count;
        let step = parser.advance(&rest, &mut keep)?;
        rest.drain(..step.consumed);
        if keep.too_long {
            return Err(ExchangeError::TooLong { max_body });
        }
        if step.complete && !rest.is_empty() {
            return Err(ExchangeError::Wrong(Wrong::Surplus));
        }
        if step.complete || (count == 0 && parser.ends_with_close() && !stream.transport.can_be_cut_off()) {
            let Keep { headers, body, .. } = keep;
            return Ok(Answer { status: parser.status(), headers, body, keep_alive: parser.keep_alive() });
        }
        if count == 0 {
            return Err(ExchangeError::Closed { received });
        }
    }
}

/// An error with its causes, without repetition.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        let more = one.to_string();
        if !text.contains(&more) {
            text += &format!(": {more}");
        }
        cause = one.source();
    }
    text
}
