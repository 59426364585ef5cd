//! Owns: TLS of one connection, without a socket: it takes and gives wire bytes and plain bytes. Must not know HTTP,
//! sockets or clocks.
//!
//! It uses rustls' unbuffered interface, which decrypts in the caller's buffer and costs one allocation per record each
//! way. The buffered interface costs two to five for each answer.

mod failure;
mod sessions;
mod settings;
#[cfg(test)]
mod tests;

use std::mem;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, UnbufferedStatus,
    WriteTraffic,
};

pub use failure::TlsFailure;
pub use settings::{TlsError, TlsSettings, TlsTrust};

/// Wire bytes are processed in pieces of this size. Together with an incomplete record (16 KiB) or handshake message
/// (64 KiB), this limits the memory of one connection.
const PIECE: usize = 16 * 1024;

/// Room for what TLS adds to a record, with some to spare. If it is too small, rustls reports the size needed.
const OVERHEAD: usize = 64;

/// The state of the connection after bytes were received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// The handshake is complete.
    pub(crate) established: bool,
    /// The server has sent close_notify: nothing more will come. A connection that ends without it was cut off.
    pub(crate) closed: bool,
}

/// The TLS state of one connection. It belongs to one socket and ends with it.
pub(crate) struct Tls {
    conn: UnbufferedClientConnection,
    /// Received bytes that do not make a whole record yet.
    incoming: Vec<u8>,
    /// Bytes for the wire. The first `taken` bytes are already taken.
    outgoing: Vec<u8>,
    taken: usize,
    /// Plain bytes that wait for the handshake to complete.
    waiting: Vec<u8>,
    closed: bool,
    failed: Option<TlsFailure>,
}

impl Tls {
    /// A new connection. The first bytes of its handshake are ready to be taken.
    pub(crate) fn new(settings: &TlsSettings) -> Result<Tls, TlsFailure> {
        let conn = settings.connection().map_err(|error| TlsFailure::new(&error, true))?;
        let (incoming, outgoing, waiting) = (Vec::new(), Vec::new(), Vec::new());
        let mut tls = Tls { conn, incoming, outgoing, taken: 0, waiting, closed: false, failed: None };
        tls.advance(&mut Vec::new(), &[])?;
        Ok(tls)
    }

    /// Takes all of `wire`, in pieces as they came, and appends the decrypted bytes to `plain`. Afterwards there may be
    /// bytes for the wire: of the handshake, or an alert that reports a failure to the server. A connection that has
    /// failed stays failed.
    pub(crate) fn receive(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> Result<Received, TlsFailure> {
        for piece in wire.chunks(PIECE) {
            self.incoming.extend_from_slice(piece);
            self.advance(plain, &[])?;
        }
        Ok(Received { established: !self.is_handshaking(), closed: self.closed })
    }

    /// Encrypts `plain` for the wire, once the handshake is complete.
    pub(crate) fn send(&mut self, plain: &[u8]) -> Result<(), TlsFailure> {
        if self.is_handshaking() {
            self.waiting.extend_from_slice(plain);
            return Ok(());
        }
        let mut surprise = Vec::new();
        self.advance(&mut surprise, plain)?;
        debug_assert!(surprise.is_empty(), "every whole record was read when it came");
        Ok(())
    }

    /// The bytes for the wire that are not taken yet.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.outgoing[self.taken..]
    }

    /// Marks the first `count` bytes of [`Tls::unsent`] as taken.
    pub(crate) fn took(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.outgoing.len() {
            self.outgoing.clear();
            self.taken = 0;
        }
    }

    /// Whether the handshake is not complete yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.conn.is_handshaking()
    }

    /// Whether the server has sent close_notify.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Processes as many of the received bytes as possible, and encrypts `to_send`.
    fn advance(&mut self, plain: &mut Vec<u8>, to_send: &[u8]) -> Result<(), TlsFailure> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        let mut used = 0;
        let result = self.step(&mut used, plain, to_send);
        if let Err(failure) = &result {
            self.failed = Some(failure.clone());
            self.take_alerts();
            self.incoming = Vec::new();
        } else if self.closed || used == self.incoming.len() {
            // Bytes after the end have no meaning.
            self.incoming.clear();
        } else {
            self.incoming.drain(..used);
        }
        result
    }

    /// `used` counts the processed bytes at the front of `incoming`.
    fn step(&mut self, used: &mut usize, plain: &mut Vec<u8>, to_send: &[u8]) -> Result<(), TlsFailure> {
        loop {
            let UnbufferedStatus { discard, state, .. } =
                self.conn.process_tls_records(&mut self.incoming[*used..]);
            let mut done = discard;
            let state = match state {
                Ok(state) => state,
                Err(error) => {
                    *used += done;
                    // Before its ServerHello the server has sent no valid TLS.
                    return Err(TlsFailure::new(&error, self.conn.protocol_version().is_some()));
                }
            };
            let mut at_rest = false;
            match state {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(|error| TlsFailure::new(&error, true))?;
                        done += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => encode(&mut data, &mut self.outgoing)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::WriteTraffic(mut traffic) => {
                    encrypt(&mut traffic, &mem::take(&mut self.waiting), &mut self.outgoing)?;
                    encrypt(&mut traffic, to_send, &mut self.outgoing)?;
                    at_rest = true;
                }
                ConnectionState::PeerClosed => (self.closed, at_rest) = (true, to_send.is_empty()),
                ConnectionState::BlockedHandshake if to_send.is_empty() => at_rest = true,
                state => return Err(TlsFailure::Other(format!("no way on from {state:?}"))),
            }
            *used += done;
            if at_rest {
                return Ok(());
            }
        }
    }

    /// Prepares the bytes with which rustls reports a failure to the server. rustls must not read further: it gets no
    /// bytes, and is called only while it has something to write.
    fn take_alerts(&mut self) {
        while self.conn.wants_write() {
            match self.conn.process_tls_records(&mut []).state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => while traffic.next_record().is_some() {},
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    if encode(&mut data, &mut self.outgoing).is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    }
}

fn encode(data: &mut EncodeTlsData<'_, ClientConnectionData>, out: &mut Vec<u8>) -> Result<(), TlsFailure> {
    append(out, 0, |room| match data.encode(room) {
        Ok(count) => Ok(Ok(count)),
        Err(EncodeError::InsufficientSize(size)) => Ok(Err(size)),
        Err(error) => Err(TlsFailure::Other(error.to_string())),
    })
}

fn encrypt(
    traffic: &mut WriteTraffic<'_, ClientConnectionData>,
    plain: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), TlsFailure> {
    if plain.is_empty() {
        return Ok(());
    }
    append(out, plain.len() + OVERHEAD, |room| match traffic.encrypt(plain, room) {
        Ok(count) => Ok(Ok(count)),
        Err(EncryptError::InsufficientSize(size)) => Ok(Err(size)),
        Err(error) => Err(TlsFailure::Other(error.to_string())),
    })
}

/// Appends what `write` writes to `out`, and enlarges the room if `write` needs more.
fn append(
    out: &mut Vec<u8>,
    mut room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<Result<usize, InsufficientSizeError>, TlsFailure>,
) -> Result<(), TlsFailure> {
    let start = out.len();
    loop {
        out.resize(start + room, 0);
        let failure = match write(&mut out[start..]) {
            Ok(Ok(count)) => {
                out.truncate(start + count);
                return Ok(());
            }
            Ok(Err(short)) if short.required_size > room => {
                room = short.required_size;
                continue;
            }
            Ok(Err(short)) => TlsFailure::Other(format!("{short:?} in a buffer of {room}")),
            Err(failure) => failure,
        };
        out.truncate(start);
        return Err(failure);
    }
}
