//! Owns: what stands between a protocol's bytes and the bytes of the wire, without any socket. Must not know protocols,
//! sockets or clocks.

mod tls;

pub(crate) use tls::Received;
pub use tls::{TlsError, TlsFailure, TlsSettings, TlsTrust};

use tls::Tls;

/// What one connection puts its bytes through. It belongs to one socket and ends with it.
pub(crate) enum Transport {
    /// Nothing: the bytes are those of the wire, and are never copied.
    Plain,
    /// TLS.
    Tls(Box<Tls>),
}

impl Transport {
    /// That of a new connection, with TLS if there are settings for it.
    pub(crate) fn new(tls: Option<&TlsSettings>) -> Result<Transport, TlsFailure> {
        Ok(match tls {
            None => Transport::Plain,
            Some(settings) => Transport::Tls(Box::new(Tls::new(settings)?)),
        })
    }

    /// Whether bytes pass as they are.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Transport::Plain)
    }

    /// Whether no bytes of a protocol can pass yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        matches!(self, Transport::Tls(tls) if tls.is_handshaking())
    }

    /// Whether an end of the connection now can have cut off what the server had to say. TCP alone does not tell.
    pub(crate) fn can_be_cut_off(&self) -> bool {
        matches!(self, Transport::Tls(tls) if !tls.is_closed())
    }

    /// Gives `hand_over` the bytes for the wire, those of `bytes` and others that are waiting; it says how many it took,
    /// and is not called if there are none. Returns how many of `bytes` need not be offered again.
    ///
    /// # Errors
    /// When there can be no more bytes for the wire, except some that tell the server so.
    #[inline]
    pub(crate) fn send(
        &mut self,
        bytes: &[u8],
        hand_over: impl FnOnce(&[u8]) -> usize,
    ) -> Result<usize, TlsFailure> {
        match self {
            Transport::Plain if bytes.is_empty() => Ok(0),
            Transport::Plain => Ok(hand_over(bytes)),
            Transport::Tls(tls) => {
                let sealed = if bytes.is_empty() { Ok(()) } else { tls.send(bytes) };
                if !tls.unsent().is_empty() {
                    let count = hand_over(tls.unsent());
                    tls.took(count);
                }
                sealed.map(|()| bytes.len())
            }
        }
    }

    /// Takes in what came on the wire; what it says is appended to `plain`, unless it passes as it is. There may be bytes
    /// to send afterwards, also after a failure.
    ///
    /// # Errors
    /// When it makes no sense. What came before may have made some, and is in `plain`.
    pub(crate) fn receive(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> Result<Received, TlsFailure> {
        match self {
            Transport::Plain => Ok(Received { established: true, closed: false }),
            Transport::Tls(tls) => tls.receive(wire, plain),
        }
    }

    /// What the bytes that came last say: themselves, or what [`Transport::receive`] made of them.
    #[inline]
    pub(crate) fn received<'a>(&self, wire: &'a [u8], plain: &'a [u8]) -> &'a [u8] {
        if self.is_plain() { wire } else { plain }
    }
}
