//! Owns: what a worker needs from a protocol: how a request becomes bytes, and how bytes become its answer. Must not
//! know transports, sockets, time or tallies.

pub(crate) mod body;
pub(crate) mod http1;

use crate::outcome::Outcome;
use crate::request::Prepared;
use http1::Wrong;

/// The client's end of a connection: bytes in, answers out. It does no I/O and allocates nothing per request. At most
/// one request is under way. [`Protocol::start`] begins it. A complete answer, an error or a new connection ends it.
pub(crate) trait Protocol: Sized {
    /// State shared by the connections of one worker, such as known answers.
    type Shared;

    /// The shared state for a worker that sends these requests.
    fn shared(requests: &[Prepared]) -> Self::Shared;

    /// The state of a new connection.
    fn new() -> Self;

    /// Begins a request.
    fn start(&mut self, request: &Prepared);

    /// The bytes still to be sent; `request` is the one under way, if any.
    fn unsent<'a>(&'a self, request: Option<&'a Prepared>) -> &'a [u8];

    /// Marks the first `count` bytes of [`Protocol::unsent`] as taken.
    fn took(&mut self, count: usize);

    /// Processes bytes that came while a request is under way; returns the answer once it is complete.
    ///
    /// # Errors
    /// When the bytes are not an answer to the request, or more than that.
    fn receive(
        &mut self,
        shared: &mut Self::Shared,
        asked: Asked<'_>,
        bytes: &[u8],
    ) -> Result<Option<Answered>, Wrong>;

    /// Whether bytes that came while no request was under way only explain why the server closes the connection.
    fn is_farewell(&self, bytes: &[u8]) -> bool;

    /// The state of the answer under way when the server sends nothing more.
    fn ended(&mut self, shared: &Self::Shared, asked: Asked<'_>) -> Ended;

    /// Whether the request under way may be sent again: no byte of its answer has come, and a repetition does no harm.
    fn may_repeat(&self, request: &Prepared) -> bool;

    /// The body of the last complete answer; `bytes` is the input received last.
    fn body<'a>(&'a mut self, bytes: &'a [u8]) -> Body<'a>;
}

/// The request that is under way on a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a Prepared,
    /// Its index among all requests.
    pub(crate) index: u32,
    /// Whether to copy the body of its answer.
    pub(crate) sample: bool,
    /// Whether the bytes received now were sent before the server can have read it.
    pub(crate) early: bool,
}

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// The result of checking the answer.
    pub(crate) outcome: Outcome,
    /// Whether the connection can carry another request.
    pub(crate) reusable: bool,
}

/// How much of an answer had come when the server ended the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The end of the connection completes it.
    Complete(Answered),
    /// A part of it has come.
    Partial,
    /// Nothing of it has come.
    Nothing,
}

/// The body of an answer, as far as it was kept.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    /// Its length in bytes.
    pub(crate) length: u64,
    /// Its digest, if the check required computing it.
    pub(crate) digest: Option<u64>,
    /// Its last piece, as far as it is still available.
    pub(crate) last: &'a [u8],
    /// Its beginning, if it was copied.
    pub(crate) copy: Option<Vec<u8>>,
}
