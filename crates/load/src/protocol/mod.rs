//! Owns: what a worker needs to know of a protocol: how a request becomes bytes, and what bytes say of its answer. Must not
//! know transports, sockets, time or tallies.

pub(crate) mod body;
pub(crate) mod http1;

use crate::outcome::Outcome;
use crate::request::Prepared;
use http1::Wrong;

/// One end of a connection: bytes in, answers out. It does no I/O, and does not allocate for each request. One request at
/// most is under way; [`Protocol::start`] begins it, and a complete or wrong answer, or a new connection, ends it.
pub(crate) trait Protocol: Sized {
    /// What the connections of one worker share, such as answers that are known already.
    type Shared;

    /// What the connections of a worker that sends these requests share.
    fn shared(requests: &[Prepared]) -> Self::Shared;

    /// That of a connection to be.
    fn new() -> Self;

    /// Begins a request.
    fn start(&mut self, request: &Prepared);

    /// What is still to be sent, of `request` if one is under way.
    fn unsent<'a>(&'a self, request: Option<&'a Prepared>) -> &'a [u8];

    /// The first `count` bytes of [`Protocol::unsent`] need not be offered again.
    fn took(&mut self, count: usize);

    /// Takes in bytes that came while a request is under way; returns its answer once it is complete.
    ///
    /// # Errors
    /// When the bytes are not, or not only, an answer to the request.
    fn receive(
        &mut self,
        shared: &mut Self::Shared,
        asked: Asked<'_>,
        bytes: &[u8],
    ) -> Result<Option<Answered>, Wrong>;

    /// Whether bytes that came while no request was under way only say why the server closes the connection.
    fn is_farewell(&self, bytes: &[u8]) -> bool;

    /// What becomes of the request under way when the server sends no more.
    fn ended(&mut self, shared: &Self::Shared, asked: Asked<'_>) -> Ended;

    /// Whether the request under way may be sent again: nothing of its answer has come, and the server may be asked twice as
    /// well as once.
    fn may_repeat(&self, request: &Prepared) -> bool;

    /// The body of the answer that was completed last; `bytes` is what came last.
    fn body<'a>(&'a mut self, bytes: &'a [u8]) -> Body<'a>;
}

/// The request that is under way on a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a Prepared,
    /// Its index among all requests.
    pub(crate) index: u32,
    /// Whether the body of its answer is to be copied.
    pub(crate) sample: bool,
    /// Whether what comes now was sent before the server can have read it.
    pub(crate) early: bool,
}

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// What the check of the answer found.
    pub(crate) outcome: Outcome,
    /// Whether the connection can carry another request.
    pub(crate) reusable: bool,
}

/// How far an answer had come when the server ended the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The end completes it.
    Complete(Answered),
    /// A part of it has come.
    Partial,
    /// Nothing of it has come.
    Nothing,
}

/// What is known of the body of an answer.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    /// Its bytes.
    pub(crate) length: u64,
    /// Its digest, if the check needed it.
    pub(crate) digest: Option<u64>,
    /// Its last piece, as far as it is still there.
    pub(crate) last: &'a [u8],
    /// Its beginning, if it was to be copied.
    pub(crate) copy: Option<Vec<u8>>,
}
