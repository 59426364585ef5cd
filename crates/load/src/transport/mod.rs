//! Owns: the layer between a protocol's bytes and the bytes on the wire, without a socket. Must not know protocols,
//! sockets or clocks.

mod tls;

pub(crate) use tls::Received;
pub use tls::{TlsError, TlsFailure, TlsSettings, TlsTrust};

use tls::Tls;

/// The layer of one connection. It belongs to one socket and ends with it.
pub(crate) enum Transport {
    /// No layer: the wire carries the protocol's bytes, which are never copied.
    Plain,
    /// TLS.
    Tls(Box<Tls>),
}

impl Transport {
    /// The layer of a new connection: TLS if there are settings for it.
    pub(crate) fn new(tls: Option<&TlsSettings>) -> Result<Transport, TlsFailure> {
        Ok(match tls {
            None => Transport::Plain,
            Some(settings) => Transport::Tls(Box::new(Tls::new(settings)?)),
        })
    }

    /// Whether bytes pass unchanged.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Transport::Plain)
    }

    /// Whether the handshake is still under way, so that no protocol bytes can pass.
    pub(crate) fn is_handshaking(&self) -> bool {
        matches!(self, Transport::Tls(tls) if tls.is_handshaking())
    }

    /// Whether the server may have had more to send if the connection ends now. Plain TCP cannot show that, and gives
    /// false.
    pub(crate) fn can_be_cut_off(&self) -> bool {
        matches!(self, Transport::Tls(tls) if !tls.is_closed())
    }

    /// Calls `hand_over` with the bytes for the wire: those of `bytes` and any that wait. `hand_over` returns how many
    /// it took. It is not called if there are no bytes. Returns how many of `bytes` need not be passed again.
    ///
    /// # Errors
    /// If no more bytes can be sent, except an alert that reports the failure to the server.
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

    /// Processes bytes received on the wire and appends the decrypted bytes to `plain`, unless the transport is plain.
    /// Afterwards there may be bytes to send, also after an error.
    ///
    /// # Errors
    /// If the bytes are not valid. Bytes decrypted before the error are in `plain`.
    pub(crate) fn receive(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> Result<Received, TlsFailure> {
        match self {
            Transport::Plain => Ok(Received { established: true, closed: false }),
            Transport::Tls(tls) => tls.receive(wire, plain),
        }
    }

    /// The plain form of the bytes received last: `wire` itself, or what [`Transport::receive`] decrypted.
    #[inline]
    pub(crate) fn received<'a>(&self, wire: &'a [u8], plain: &'a [u8]) -> &'a [u8] {
        if self.is_plain() { wire } else { plain }
    }
}
